//! How often each statement runs, by `pg_stat_statements`; the log gives the values.
//!
//! A log of samples has the slow statements, or a few of all. The module has counted every call. A transaction of the
//! log weighs as much as its statements on average: calls of a statement ÷ times that the log has it.
//!
//! Source: PostgreSQL's documentation of `pg_stat_statements`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use flashwise_block::input::read_text;
use postgres::Client;
use serde_json::Value;

use super::sql::prints;
use crate::TuneError;
use crate::postgres::server::failed;
use crate::servers::logged::{Counts, LoggedTransaction, LoggedWorkload, Weighted};

/// Where the counts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementCounts {
    /// An export: CSV with a header, or JSON, with the columns `query` and `calls`.
    File(PathBuf),
    /// The view of the server that is fitted.
    Server,
}

/// Calls of each statement, by its text without values.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Calls(HashMap<String, f64>);

const QUERY: &str = "SELECT query, calls FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
                     WHERE d.datname = current_database()";

impl Calls {
    /// Reads an export.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub(in crate::postgres) fn read(path: &Path) -> Result<Self, TuneError> {
        let text = read_text(path).map_err(|e| TuneError::file(path, &e))?;
        let fail = |message: String| TuneError::File { path: path.to_owned(), message };
        let rows = match text.trim_start().starts_with(['[', '{']) {
            true => json_rows(&text),
            false => csv_rows(&text),
        };
        let calls = Self::of(rows.map_err(fail)?);
        match calls.0.is_empty() {
            true => Err(fail("no calls of a statement in it".to_owned())),
            false => Ok(calls),
        }
    }

    /// Asks a server.
    ///
    /// # Errors
    /// When it has no `pg_stat_statements` in this database.
    pub(in crate::postgres) fn ask(client: &mut Client) -> Result<Self, TuneError> {
        let rows = client.query(QUERY, &[]).map_err(|e| failed("pg_stat_statements", &e))?;
        Ok(Self::of(rows.iter().map(|row| (row.get(0), row.get::<_, i64>(1) as f64)).collect()))
    }

    fn of(rows: Vec<(String, f64)>) -> Self {
        let mut calls = HashMap::new();
        for (query, count) in rows.into_iter().filter(|(_, count)| count.is_finite() && *count > 0.0) {
            // One entry is one statement.
            if let Some(print) = prints(&query).into_iter().next() {
                *calls.entry(print).or_insert(0.0) += count;
            }
        }
        Self(calls)
    }

    /// The weights of the transactions of a log.
    pub(in crate::postgres) fn weigh(&self, log: &LoggedWorkload) -> Weighted {
        let of = |transaction: &LoggedTransaction| -> Vec<String> {
            transaction.statements.iter().flat_map(|statement| prints(&statement.sql)).collect()
        };
        let mut samples: HashMap<String, f64> = HashMap::new();
        let mut missing = Counts::default();
        for print in log.transactions.iter().flat_map(of) {
            if !self.0.contains_key(&print) {
                missing.add("statements of the log that pg_stat_statements does not count", &print);
            }
            *samples.entry(print).or_insert(0.0) += 1.0;
        }
        let weight = |transaction: &LoggedTransaction| {
            let known = |print: &String| Some(self.0.get(print)? / samples[print]);
            let weights: Vec<f64> = of(transaction).iter().filter_map(known).collect();
            match weights.is_empty() {
                true => 0.0,
                false => weights.iter().sum::<f64>() / weights.len() as f64,
            }
        };
        let weights = log.transactions.iter().map(weight).collect();
        let all: f64 = self.0.values().sum();
        let covered: f64 =
            self.0.iter().filter(|(print, _)| samples.contains_key(*print)).map(|(_, calls)| calls).sum();
        let mut without: Vec<_> = self.0.iter().filter(|(print, _)| !samples.contains_key(*print)).collect();
        without.sort_by(|a, b| b.1.total_cmp(a.1).then_with(|| a.0.cmp(b.0)));
        for (print, _) in without {
            missing.add("statements that pg_stat_statements counts and the log has no sample of", print);
        }
        Weighted { weights, calls_covered: if all > 0.0 { covered / all } else { 0.0 }, missing }
    }
}

fn csv_rows(text: &str) -> Result<Vec<(String, f64)>, String> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| e.to_string())?.clone();
    let column = |name: &str| {
        let found = header.iter().position(|column| column.trim().eq_ignore_ascii_case(name));
        found.ok_or_else(|| format!("no column {name}; export it with COPY (SELECT query, calls FROM pg_stat_statements) TO STDOUT (FORMAT csv, HEADER)"))
    };
    let (query, calls) = (column("query")?, column("calls")?);
    let row = |(number, record): (usize, csv::Result<csv::StringRecord>)| {
        let record = record.map_err(|e| e.to_string())?;
        let count = record.get(calls).and_then(|text| text.trim().parse().ok());
        let count = count.ok_or_else(|| format!("record {}: calls is no number", number + 1))?;
        Ok((record.get(query).unwrap_or_default().to_owned(), count))
    };
    reader.records().enumerate().map(row).collect()
}

fn json_rows(text: &str) -> Result<Vec<(String, f64)>, String> {
    let objects = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(objects)) => objects,
        // One object a line.
        _ => {
            serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map_err(|e| e.to_string())?
        }
    };
    let row = |(number, object): (usize, &Value)| {
        let query = object.get("query").and_then(Value::as_str);
        let calls = object.get("calls").and_then(|calls| calls.as_f64().or_else(|| calls.as_str()?.parse().ok()));
        match (query, calls) {
            (Some(query), Some(calls)) => Ok((query.to_owned(), calls)),
            _ => Err(format!("object {}: no query with calls", number + 1)),
        }
    };
    objects.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::logged::LoggedStatement;

    fn workload(texts: &[&str]) -> LoggedWorkload {
        let transaction = |text: &&str| LoggedTransaction {
            session: 0,
            statements: text.split("; ").map(|sql| LoggedStatement { sql: sql.into(), values: None }).collect(),
            works: true,
        };
        let transactions = texts.iter().map(transaction).collect();
        LoggedWorkload { transactions, database: None, left_out: Counts::default() }
    }

    #[test]
    fn a_transaction_weighs_its_calls_for_each_sample() {
        let log = workload(&[
            "SELECT a FROM t WHERE id = 1",
            "select a from t where id = 2",
            "BEGIN; DELETE FROM t; COMMIT",
            "SELECT 5",
        ]);
        let export =
            "queryid,query,calls\n1,SELECT a FROM t WHERE id = $1,90\n2,DELETE FROM t,10\n3,BEGIN,10\n4,VACUUM t,100\n";
        let weighted = Calls::of(csv_rows(export).unwrap()).weigh(&log);
        assert_eq!(weighted.weights, [45.0, 45.0, 10.0, 0.0]);
        assert!((weighted.calls_covered - 0.5).abs() < 1e-12);
        let missing: Vec<_> = weighted.missing.sorted().into_iter().map(|counted| counted.example).collect();
        assert!(missing.contains(&"select ?".to_owned()) && missing.contains(&"vacuum t".to_owned()), "{missing:?}");
    }

    #[test]
    fn exports_are_csv_or_json() {
        let csv = csv_rows("query,calls\n\"SELECT 1,\n2\",5\n").unwrap();
        assert_eq!(csv, [("SELECT 1,\n2".to_owned(), 5.0)]);
        assert_eq!(json_rows(r#"[{"query": "SELECT 1,\n2", "calls": 5}]"#).unwrap(), csv);
        assert_eq!(json_rows("{\"query\": \"SELECT 1,\\n2\", \"calls\": \"5\"}\n").unwrap(), csv);
        assert!(csv_rows("text,calls\na,5\n").unwrap_err().contains("no column query"));
        assert!(csv_rows("query,calls\na,many\n").unwrap_err().contains("record 1"));
        assert!(json_rows("{\"calls\": 5}").unwrap_err().contains("object 1"));
    }
}
