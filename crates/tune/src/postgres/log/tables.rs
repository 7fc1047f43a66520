//! The formats `csvlog` and `jsonlog`: an entry in a record of CSV, which may have several lines, or in an object.
//!
//! Source: PostgreSQL's documentation, "Error Reporting and Logging"; jsonlog is there from version 15 on.

use serde_json::Value;

use super::entry::Entry;

/// Columns of csvlog in version 13, the first that is supported; later versions append some.
const COLUMNS: usize = 24;
const DATABASE: usize = 2;
const SESSION: usize = 5;
const SEVERITY: usize = 11;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const STATEMENT: usize = 19;
/// The longest record that is kept, bytes.
const RECORD_BYTES_MAX: usize = 16 << 20;

/// Lines at which reading starts again within a record that is none.
const RESTARTS_MAX: usize = 100;

/// Puts lines together to records: one ends where its quotes are even. Where a quote or a line is missing, it starts
/// again at the next line that looks like a record's first.
#[derive(Debug, Default)]
pub(super) struct CsvRecords {
    record: String,
    quotes: usize,
}

impl CsvRecords {
    /// The records that end with a line; an error for each that is none, or too long.
    pub(super) fn line(&mut self, line: &str) -> Vec<Result<Entry, ()>> {
        match self.push(line) {
            None => Vec::new(),
            Some(Ok(entry)) => vec![Ok(entry)],
            Some(Err(broken)) => self.start_again(&broken),
        }
    }

    /// What the record that ends with a line is: an entry, or a text that is none.
    fn push(&mut self, line: &str) -> Option<Result<Entry, String>> {
        if !self.record.is_empty() {
            self.record.push('\n');
        }
        self.record.push_str(line);
        self.quotes += line.bytes().filter(|&byte| byte == b'"').count();
        if self.quotes.is_multiple_of(2) || self.record.len() > RECORD_BYTES_MAX {
            self.quotes = 0;
            let record = std::mem::take(&mut self.record);
            return Some(csv_entry(&record).ok_or(record));
        }
        None
    }

    fn start_again(&mut self, broken: &str) -> Vec<Result<Entry, ()>> {
        let lines: Vec<&str> = broken.split('\n').collect();
        let (mut read, mut at, mut failures) = (vec![Err(())], 1, 0);
        while failures < RESTARTS_MAX {
            let Some(start) = (at..lines.len()).find(|&number| is_first(lines[number])) else { break };
            self.clear();
            at = lines.len();
            for (number, line) in lines.iter().enumerate().skip(start) {
                match self.push(line) {
                    None => continue,
                    Some(Ok(entry)) => {
                        read.push(Ok(entry));
                        at = number + 1;
                    }
                    Some(Err(_)) => (at, failures) = (start + 1, failures + 1),
                }
                break;
            }
        }
        read
    }

    /// Forgets a record of which a line is missing.
    pub(super) fn clear(&mut self) {
        self.record.clear();
        self.quotes = 0;
    }

    /// The records of what is left at the end of a file.
    pub(super) fn finish(&mut self) -> Vec<Result<Entry, ()>> {
        self.quotes = 0;
        let record = std::mem::take(&mut self.record);
        if record.is_empty() { Vec::new() } else { self.start_again(&record) }
    }
}

/// Whether a line looks like the first one of a record: it starts with a time.
fn is_first(line: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00 00:00:00";
    let is_like = |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    line.len() > FORM.len() && line.bytes().zip(FORM).all(is_like)
}

/// The entry of a record.
pub(super) fn csv_entry(record: &str) -> Option<Entry> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(record.as_bytes());
    let record = reader.records().next()?.ok().filter(|record| record.len() >= COLUMNS - 1)?;
    let column = |number: usize| record.get(number).unwrap_or_default().to_owned();
    let is_severity =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if !is_severity(record.get(SEVERITY).unwrap_or_default()) {
        return None;
    }
    Some(Entry {
        session: column(SESSION),
        database: Some(column(DATABASE)).filter(|name| !name.is_empty()),
        severity: column(SEVERITY),
        message: column(MESSAGE),
        detail: column(DETAIL),
        statement: column(STATEMENT),
    })
}

/// The entry of an object.
pub(super) fn json_entry(line: &str) -> Option<Entry> {
    let object: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let session = Some(text("session_id")).filter(|session| !session.is_empty());
    Some(Entry {
        session: session.or_else(|| Some(object.get("pid")?.as_u64()?.to_string())).unwrap_or_default(),
        database: Some(text("dbname")).filter(|name| !name.is_empty()),
        severity: Some(text("error_severity")).filter(|severity| !severity.is_empty())?,
        message: text("message"),
        detail: text("detail"),
        statement: text("statement"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: [&str; 2] = [
        "2026-11-29 15:56:08.738 UTC,\"postgres\",\"shop\",11725,\"[local]\",6b0c4b18.2dcd,3,\"SELECT\",\
         2026-11-29 15:56:08 UTC,4/9,0,LOG,00000,\"execute <unnamed>: SELECT \"\"a\"\"",
        "FROM t WHERE b = $1;\",\"parameters: $1 = '983'\",,,,,,,,\"pgbench\",\"client backend\",,-3617937050683582465",
    ];

    #[test]
    fn a_record_may_have_several_lines() {
        let mut records = CsvRecords::default();
        assert_eq!(records.line(RECORD[0]), []);
        let entry = records.line(RECORD[1]).remove(0).unwrap();
        assert_eq!((&*entry.session, entry.database.as_deref()), ("6b0c4b18.2dcd", Some("shop")));
        assert_eq!(entry.message, "execute <unnamed>: SELECT \"a\"\nFROM t WHERE b = $1;");
        assert_eq!((&*entry.severity, &*entry.detail), ("LOG", "parameters: $1 = '983'"));
        assert_eq!(records.line("a,b"), [Err(())]);
    }

    #[test]
    fn a_damaged_record_costs_no_other() {
        let whole = RECORD.join("\n");
        let mut records = CsvRecords::default();
        let (first, second) = (RECORD[0].replacen('"', "", 1), RECORD[1]);
        let lines = [&*first, second, RECORD[0], RECORD[1], RECORD[0]];
        let mut read: Vec<_> = lines.iter().flat_map(|line| records.line(line)).collect();
        read.extend(records.finish());
        let entries: Vec<Entry> = read.into_iter().flatten().collect();
        assert_eq!(entries, [csv_entry(&whole).unwrap()]);
    }

    #[test]
    fn objects_give_the_same_entry() {
        let object = r#"{"user":"postgres","dbname":"shop","pid":11725,"session_id":"6b0c4b18.2dcd","error_severity":
            "LOG","message":"execute <unnamed>: SELECT \"a\"\nFROM t WHERE b = $1;","detail":"parameters: $1 = '983'"}"#;
        assert_eq!(json_entry(&object.replace('\n', "")), csv_entry(&RECORD.join("\n")));
        assert_eq!(json_entry("{\"message\": 5}"), None);
        assert_eq!(json_entry("[[[["), None);
    }
}
