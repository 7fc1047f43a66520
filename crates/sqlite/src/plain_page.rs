//! The page that SQLite's own VFS finds in place of the header of a file in a layout: a database of one page that
//! cannot be opened, with a message on how to open this file.
//!
//! ```text
//!   0..100     database header: pages of 512 bytes, UTF-8, one page; a write version that prevents writing
//!   100..110   leaf of the schema table with one row
//!   110..248   unused for SQLite: the fields of our header (layout.rs)
//!   248..504   the row: a table without a root page, whose name is the message
//!   504..512   after the row, without meaning to SQLite: our checksum
//! ```
//!
//! SQLite reads the schema before it does anything with a database, and a table without a root page makes it fail with
//! `malformed database schema (NAME)`. If that does not stop it, as under `PRAGMA writable_schema`, nothing is written
//! anyway: a database with a write version above 2 is read-only. (`VACUUM` as the first statement reports less:
//! `database disk image is malformed`.)
//!
//! Source: "Database File Format", <https://www.sqlite.org/fileformat2.html>, sections 1.3, 1.6, 2.1 and 2.6.

use crate::bytes::{HEADER_BYTES, SQLITE_MAGIC};

/// SQLite's message in parentheses.
const NAME: &str = "laid out by flashwise: open it with vfs=flashwise, or run 'flashwise sqlite export'";

/// The write version: above 2, SQLite's newest. It identifies our files.
const WRITE_VERSION: u8 = 255;
const WRITE_VERSION_AT: usize = 18;
/// `PRAGMA application_id`, which `file(1)` shows, too.
const APPLICATION_ID: &[u8; 4] = b"flws";
const APPLICATION_ID_AT: usize = 68;

/// SQLite reads nothing from here until the row starts: our fields may be from here to [`ROW_BEGIN`].
pub(crate) const FREE_BEGIN: usize = LEAF_AT + 10;
const LEAF_AT: usize = 100;
/// The row is in between, at the end.
pub(crate) const ROW_BEGIN: usize = 248;
pub(crate) const ROW_END: usize = 504;

/// The page, with zeros where it is not in use.
pub(crate) fn page() -> [u8; HEADER_BYTES] {
    let mut page = [0; HEADER_BYTES];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, SQLITE_MAGIC);
    put(16, &(HEADER_BYTES as u16).to_be_bytes());
    // Write and read version, nothing reserved, and the payload fractions that are always these.
    put(WRITE_VERSION_AT, &[WRITE_VERSION, 1, 0, 64, 32, 32]);
    let (change_counter, pages, schema_format, utf8, sqlite) = (1_u32, 1_u32, 4_u32, 1_u32, 3_032_000_u32);
    put(24, &change_counter.to_be_bytes());
    put(28, &pages.to_be_bytes());
    put(40, &change_counter.to_be_bytes());
    put(44, &schema_format.to_be_bytes());
    put(56, &utf8.to_be_bytes());
    put(APPLICATION_ID_AT, APPLICATION_ID);
    put(92, &change_counter.to_be_bytes());
    put(96, &sqlite.to_be_bytes());
    let row = row();
    let begin = (ROW_END - row.len()) as u16;
    // A leaf of a table, no free block, one cell, the start of the cells; then the start of this one.
    put(LEAF_AT, &[13, 0, 0, 0, 1]);
    put(LEAF_AT + 5, &begin.to_be_bytes());
    put(LEAF_AT + 8, &begin.to_be_bytes());
    put(usize::from(begin), &row);
    page
}

/// The row of the schema table, number 1: type, name, the name of its table, root page, SQL.
fn row() -> Vec<u8> {
    const KIND: &[u8] = b"table";
    const { assert!(ROW_BEGIN + 16 + KIND.len() + NAME.len() <= ROW_END && NAME.len() * 2 + 13 < 1 << 14) };
    let of_text = |length: usize| (13 + 2 * length) as u16;
    let name = of_text(NAME.len());
    // The types; that of the name is of two bytes, seven bits each. The table's name is empty, the rest NULL.
    let types = [of_text(KIND.len()) as u8, 0x80 | (name >> 7) as u8, (name & 0x7f) as u8, of_text(0) as u8, 0, 0];
    let payload = [&[types.len() as u8 + 1][..], &types, KIND, NAME.as_bytes()].concat();
    [&[payload.len() as u8, 1][..], &payload].concat()
}

/// Whether a file with this start is one of ours: no other has that write version.
pub(crate) fn begins(head: &[u8]) -> bool {
    head.starts_with(SQLITE_MAGIC)
        && head.get(WRITE_VERSION_AT) == Some(&WRITE_VERSION)
        && head[APPLICATION_ID_AT.min(head.len())..].starts_with(APPLICATION_ID)
}

/// Bytes that [`begins`] checks.
#[cfg(test)]
pub(crate) fn identifies(at: usize) -> bool {
    at < SQLITE_MAGIC.len() || at == WRITE_VERSION_AT || (APPLICATION_ID_AT..APPLICATION_ID_AT + 4).contains(&at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    fn told(sql: &str, file: &std::path::Path) -> String {
        let db = Connection::open(file).unwrap();
        db.execute_batch(sql).unwrap_err().to_string()
    }

    #[test]
    fn plain_sqlite_says_how_to_open_it_and_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ours.db");
        // As in a file of ours, the following bytes are not a page of it.
        let bytes = [&page()[..], &[7; 5000]].concat();
        std::fs::write(&file, &bytes).unwrap();
        for sql in ["SELECT * FROM t", "CREATE TABLE t (x)", "PRAGMA integrity_check", "DELETE FROM t"] {
            let told = told(sql, &file);
            assert!(
                told.contains("malformed database schema (laid out by flashwise: open it with vfs=flashwise"),
                "{sql}: {told}"
            );
        }
        // These do not read the schema, or use the readable part of it.
        for sql in
            ["VACUUM", "PRAGMA user_version = 7", "PRAGMA journal_mode = wal", "BEGIN IMMEDIATE; CREATE TABLE t (x)"]
        {
            let _ = Connection::open(&file).unwrap().execute_batch(&format!("PRAGMA writable_schema = on; {sql}"));
        }
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "and leaves no other file");
    }

    #[test]
    fn it_is_told_from_any_other_database() {
        assert!(begins(&page()));
        for length in [0, 16, 19, 70] {
            assert!(!begins(&page()[..length]), "the first {length} bytes");
        }
        for at in (0..HEADER_BYTES).filter(|&at| identifies(at)) {
            let mut other = page();
            other[at] ^= 1;
            assert!(!begins(&other), "byte {at}");
        }
        assert!(page()[FREE_BEGIN..ROW_BEGIN].iter().chain(&page()[ROW_END..]).all(|&byte| byte == 0));
    }
}
