//! Pages of real SQLite with room left in them.
//!
//! SQLite knows no fill factor. A table is loaded with more rows than are wanted, in the order of their keys, which
//! fills its pages; then the superfluous ones, evenly spread, are deleted. SQLite merges pages only when more than two
//! thirds of one are free, so that down to a fill factor of 50 % the wanted rows stay on the more pages. With
//! `secure_delete` the freed room is zeros, without it the old bytes stay there.

use std::path::Path;

use rusqlite::{Connection, params_from_iter, types::Value};

use super::place::Place;
use super::rows::{Content, DISTRICTS, Row, Rows};
use crate::StudyError;

/// As PostgreSQL's.
const PAGE_BYTES: u32 = 8192;
/// What the seed of superfluous rows has that others do not.
const SUPERFLUOUS: u64 = 1 << 63;

/// A database file with so many rows, and so many per cent of its pages filled.
pub(super) fn image(
    content: Content,
    rows: u32,
    fill_percent: u32,
    has_zeros: bool,
    seed: u64,
) -> Result<Vec<u8>, StudyError> {
    let place = Place::new()?;
    let path = place.path().join("study.db");
    make(&path, content, rows, fill_percent, has_zeros, seed)?;
    Ok(std::fs::read(path)?)
}

fn make(
    path: &Path,
    content: Content,
    rows: u32,
    fill_percent: u32,
    has_zeros: bool,
    seed: u64,
) -> Result<(), StudyError> {
    let mut db = Connection::open(path)?;
    let secure = if has_zeros { "ON" } else { "OFF" };
    db.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA secure_delete = {secure}; PRAGMA cache_size = -65536;
         CREATE TABLE stock (k INTEGER PRIMARY KEY, i, w, q, {}, y, o, r, data)",
        (1..=DISTRICTS).map(|n| format!("d{n}")).collect::<Vec<_>>().join(", ")
    ))?;
    let loaded = u64::from(rows) * 100 / u64::from(fill_percent);
    let (mut wanted, mut superfluous) = (Rows::new(content, seed), Rows::new(content, seed ^ SUPERFLUOUS));
    let is_wanted = |k: u64| (k + 1) * u64::from(fill_percent) / 100 > k * u64::from(fill_percent) / 100;
    let transaction = db.transaction()?;
    {
        let mut insert =
            transaction.prepare(&format!("INSERT INTO stock VALUES (?{})", ", ?".repeat(DISTRICTS + 7)))?;
        let mut delete = transaction.prepare("DELETE FROM stock WHERE k = ?")?;
        for k in 0..loaded {
            let source = if is_wanted(k) { &mut wanted } else { &mut superfluous };
            let Some(row) = source.next() else { return Err(StudyError::Lost) };
            insert.execute(params_from_iter(values(k, row)))?;
        }
        for k in (0..loaded).filter(|&k| !is_wanted(k)) {
            delete.execute([k as i64])?;
        }
    }
    transaction.commit()?;
    let answer: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if answer == "ok" { Ok(()) } else { Err(StudyError::Damaged(answer)) }
}

fn values(key: u64, row: Row) -> impl Iterator<Item = Value> {
    let numbers = [key as i64, row.item.into(), row.warehouse.into(), row.quantity.into()].map(Value::Integer);
    let counts = [row.year_to_date, row.orders, row.remote].map(|n| Value::Integer(n.into()));
    let texts = row.districts.into_iter().map(Value::Text);
    numbers.into_iter().chain(texts).chain(counts).chain([Value::Text(row.data)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of an image that are zeros.
    fn zeros(image: &[u8]) -> f64 {
        image.iter().filter(|&&byte| byte == 0).count() as f64
    }

    #[test]
    fn the_same_rows_lie_on_more_pages_and_the_room_between_is_zeros_only_with_secure_delete() {
        let of = |fill, has_zeros| image(Content::Strings, 1_000, fill, has_zeros, 3).unwrap();
        let (full, clean, old) = (of(100, true), of(75, true), of(75, false));
        let more = clean.len() as f64 / full.len() as f64;
        // 4 / 3 as many pages; the last page of the table, and the few that lead to the others, are a few per cent.
        assert!((1.28..1.38).contains(&more), "{more}");
        assert_eq!(clean.len(), old.len());
        // What is added is a quarter of the pages: all of it is zeros, or hardly any of it.
        let added = (clean.len() - full.len()) as f64;
        assert!(zeros(&clean) - zeros(&full) > 0.9 * added);
        assert!(zeros(&old) - zeros(&full) < 0.1 * added);
    }
}
