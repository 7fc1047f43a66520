//! Generated statements for a database without statements of the user: point SELECTs of its rows, and updates that
//! change no value.
//!
//! Each table is used in proportion to its rows. The rows are chosen at random, the same for every run with one seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rusqlite::Connection;

/// SELECTs in all.
const SELECTS: usize = 4_000;
/// SELECTs between two updates.
const SELECTS_PER_UPDATE: usize = 4;
/// Most tables to use, the longest ones.
const TABLES: usize = 50;

/// An ordinary table whose rows have numbers.
struct Table {
    name: String,
    /// A column that may be set, if there is one.
    column: Option<String>,
    first: i64,
    last: i64,
}

impl Table {
    fn numbers(&self) -> u64 {
        self.last.abs_diff(self.first).saturating_add(1)
    }
}

/// Statements that touch the rows of a database; empty if it has no rows.
pub(crate) fn statements(db: &Connection, seed: u64) -> rusqlite::Result<String> {
    let tables = tables(db)?;
    let total = tables.iter().fold(0_u64, |sum, table| sum.saturating_add(table.numbers()));
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut text = String::new();
    if total == 0 {
        return Ok(text);
    }
    for number in 0..SELECTS {
        let (table, rowid) = place(&tables, random.random_range(0..total));
        // The row at this number or the next one: there may be gaps.
        let row = format!("rowid = (SELECT min(rowid) FROM {0} WHERE rowid >= {rowid})", quoted(&table.name));
        text += &format!("SELECT * FROM {} WHERE {row};\n", quoted(&table.name));
        if number % SELECTS_PER_UPDATE == 0
            && let Some(column) = &table.column
        {
            text += &format!("UPDATE {} SET {2} = {2} WHERE {1};\n", quoted(&table.name), row, quoted(column));
        }
    }
    Ok(text)
}

/// The table and the row number at a place among all row numbers.
fn place(tables: &[Table], mut at: u64) -> (&Table, i64) {
    for table in tables {
        if at < table.numbers() {
            return (table, table.first.wrapping_add_unsigned(at));
        }
        at -= table.numbers();
    }
    (&tables[0], tables[0].first)
}

fn tables(db: &Connection) -> rusqlite::Result<Vec<Table>> {
    const NAMES: &str = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT wr
                         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let names: Vec<String> = db.prepare(NAMES)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut tables: Vec<Table> = Vec::new();
    for name in names {
        let range = format!("SELECT min(rowid), max(rowid) FROM {}", quoted(&name));
        let (first, last): (Option<i64>, Option<i64>) =
            db.query_row(&range, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        // No part of a key, not generated: setting it to itself is always allowed.
        let column = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0 AND pk = 0 ORDER BY cid LIMIT 1";
        let column = db.prepare(column)?.query_map([&name], |row| row.get(0))?.next().transpose()?;
        if let (Some(first), Some(last)) = (first, last) {
            tables.push(Table { name, column, first, last });
        }
    }
    tables.sort_by_key(|table| std::cmp::Reverse(table.numbers()));
    tables.truncate(TABLES);
    Ok(tables)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(sql: &str) -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(sql).unwrap();
        db
    }

    #[test]
    fn every_statement_finds_a_row_whatever_the_names_and_the_gaps() {
        let db = database(
            "CREATE TABLE \"a \"\"b\" (\"x \"\"y\", g AS (1)); INSERT INTO \"a \"\"b\" (rowid, \"x \"\"y\") VALUES (-5, 1), (9000, 2);
             CREATE TABLE empty (x); CREATE TABLE w (k PRIMARY KEY) WITHOUT ROWID; INSERT INTO w VALUES (1);",
        );
        let text = statements(&db, 1).unwrap();
        assert_eq!(text, statements(&db, 1).unwrap(), "the same for one seed");
        assert_ne!(text, statements(&db, 2).unwrap());
        let (mut selects, mut updates) = (0, 0);
        for line in text.lines() {
            let mut statement = db.prepare(line).unwrap();
            match statement.readonly() {
                true => selects += usize::from(statement.query([]).unwrap().next().unwrap().is_some()),
                false => updates += statement.execute([]).unwrap(),
            }
        }
        assert_eq!((selects, updates), (SELECTS, SELECTS / SELECTS_PER_UPDATE));
    }

    #[test]
    fn a_database_without_rows_has_no_statements() {
        assert_eq!(statements(&database("CREATE TABLE t (x)"), 1).unwrap(), "");
    }
}
