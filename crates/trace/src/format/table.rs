//! Texts whose fields stand between separators, with what spreadsheets and data frames make of them.
//!
//! A line of column names may come first, and again where files were joined. Where it has all the names of the format,
//! columns are found by them, in any order and beside others (pandas writes the row's number before them); a line of
//! other names is skipped, and the order is the format's. Fields may be in quotes. The separator is the format's, or a
//! semicolon or a tab where the first line has those in its place.

use super::fields::separated;

/// Separators that are taken for the format's own.
const OTHERS: [u8; 2] = [b';', b'\t'];
/// Most fields of a line.
const MOST_FIELDS: usize = 256;

/// The columns of a format, and where they are.
#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    names: [&'static str; N],
    separator: u8,
    /// What the names are in messages.
    layout: &'static str,
    /// Whether more fields may follow, which are left out.
    has_rest: bool,
    is_started: bool,
    header: Option<Header<N>>,
}

#[derive(Clone, Debug)]
struct Header<const N: usize> {
    line: Vec<u8>,
    /// The field that each column is.
    places: [usize; N],
    fields: usize,
}

impl<const N: usize> Table<N> {
    /// Columns between commas; `layout` is the line of their names.
    pub(crate) const fn new(names: [&'static str; N], layout: &'static str) -> Self {
        Self { names, separator: b',', layout, has_rest: false, is_started: false, header: None }
    }

    /// A line may have more fields than the format's.
    pub(crate) const fn with_rest(mut self) -> Self {
        self.has_rest = true;
        self
    }

    /// The columns of a line; `None` where it is the line of their names.
    #[inline]
    pub(crate) fn fields<'a>(&mut self, line: &'a [u8]) -> Result<Option<[&'a [u8]; N]>, String> {
        if !self.is_started {
            self.start(line);
        }
        if let Some(header) = &self.header {
            return if header.line == line.trim_ascii() { Ok(None) } else { self.by_name(line) };
        }
        if !line.contains(&b'"') && !self.has_rest {
            return separated::<N>(line, self.separator, self.layout).map(Some);
        }
        if !line.contains(&b'"')
            && let Some(found) = first(line, self.separator)
        {
            return Ok(Some(found));
        }
        let fields = split(line, self.separator);
        let fits = fields.len() == N || (self.has_rest && fields.len() > N);
        let found = fields.get(..N).filter(|_| fits).and_then(|fields| fields.try_into().ok());
        found.map(Some).ok_or_else(|| format!("it has {} of {N} fields: {}", fields.len(), self.layout))
    }

    #[cold]
    fn start(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        // A comment before the line of names is none.
        self.is_started = !matches!(line.first(), None | Some(b'#' | b'^' | 0x1a));
        if let Some(&other) = OTHERS.iter().find(|&other| line.contains(other) && !line.contains(&self.separator)) {
            self.separator = other;
        }
        let names = split(line, self.separator);
        let place = |name: &str| names.iter().position(|field| field.eq_ignore_ascii_case(name.as_bytes()));
        let places: Vec<usize> = self.names.iter().filter_map(|name| place(name)).collect();
        if let Ok(places) = places.try_into() {
            self.header = Some(Header { line: line.to_vec(), places, fields: names.len() });
        }
    }

    fn by_name<'a>(&self, line: &'a [u8]) -> Result<Option<[&'a [u8]; N]>, String> {
        let Some(header) = &self.header else { return Ok(None) };
        let fields = split(line, self.separator);
        if fields.len() != header.fields {
            return Err(format!("it has {} fields, the line of names {}", fields.len(), header.fields));
        }
        Ok(Some(header.places.map(|place| fields.get(place).copied().unwrap_or_default())))
    }
}

/// The first fields of a line without quotes.
fn first<const N: usize>(line: &[u8], separator: u8) -> Option<[&[u8]; N]> {
    let mut found = [&line[..0]; N];
    let mut fields = line.split(|&byte| byte == separator);
    for place in &mut found {
        *place = fields.next()?.trim_ascii();
    }
    Some(found)
}

/// The fields of a line, without quotes and white space around them.
pub(crate) fn split(line: &[u8], separator: u8) -> Vec<&[u8]> {
    let mut fields = Vec::new();
    let mut rest = line;
    while fields.len() < MOST_FIELDS {
        let start = rest.iter().position(|&byte| byte == separator || !byte.is_ascii_whitespace()).unwrap_or(0);
        let quoted = rest[start..].strip_prefix(b"\"").and_then(|inside| {
            let end = inside.iter().position(|&byte| byte == b'"')?;
            Some((&inside[..end], &inside[end + 1..]))
        });
        let (field, behind) = quoted.unwrap_or((&[], rest));
        let end = behind.iter().position(|&byte| byte == separator);
        let whole = &behind[..end.unwrap_or(behind.len())];
        fields.push(if quoted.is_some() { field.trim_ascii() } else { whole.trim_ascii() });
        match end {
            Some(end) => rest = &behind[end + 1..],
            None => break,
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table<2> = Table::new(["time", "size"], "time,size");

    fn rows(text: &str) -> Vec<Result<Option<[String; 2]>, String>> {
        let mut table = TABLE;
        let string = |fields: [&[u8]; 2]| fields.map(|field| String::from_utf8_lossy(field).into_owned());
        text.lines().map(|line| table.fields(line.as_bytes()).map(|row| row.map(string))).collect()
    }

    fn row(time: &str, size: &str) -> Result<Option<[String; 2]>, String> {
        Ok(Some([time.to_owned(), size.to_owned()]))
    }

    #[test]
    fn columns_are_found_by_their_names_and_else_by_their_order() {
        assert_eq!(rows("1, 2\n3,4"), [row("1", "2"), row("3", "4")]);
        assert_eq!(rows(",Size,x,TIME\n0,2,9,1\n,Size,x,TIME\n"), [Ok(None), row("1", "2"), Ok(None)]);
        assert_eq!(rows("\"time\";\"size\"\n\"1\";\"2\""), [Ok(None), row("1", "2")]);
        assert_eq!(rows("# of a tool\nsize,time\n2,1").pop(), Some(row("1", "2")));
        assert_eq!(rows("1\t2"), [row("1", "2")]);
        assert_eq!(rows("time,size\n1")[1], Err("it has 1 fields, the line of names 2".to_owned()));
    }

    #[test]
    fn fields_may_be_in_quotes_with_separators_in_them() {
        assert_eq!(split(b"\"a,b\", c ,,\"\"", b','), [&b"a,b"[..], b"c", b"", b""]);
        assert_eq!(split(b"\"open", b','), [b"\"open"]);
    }
}
