//! Five workloads: a small database each, and its statements.

use std::fmt::{self, Write as _};
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rusqlite::Connection;

use crate::StudyError;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Single rows by key.
    PointReads,
    /// Sums over ranges of a table.
    Scans,
    /// Rows of 8 to 64 KiB, read whole and replaced.
    LargeRows,
    /// One row a transaction.
    Commits,
    /// Orders of a shop: point reads, transactions of three rows, and short scans.
    Mixed,
}

impl Work {
    /// All of them.
    pub(super) const ALL: [Self; 5] = [Self::PointReads, Self::Scans, Self::LargeRows, Self::Commits, Self::Mixed];

    const fn name(self) -> &'static str {
        match self {
            Self::PointReads => "point reads",
            Self::Scans => "scans",
            Self::LargeRows => "large rows",
            Self::Commits => "commits",
            Self::Mixed => "mixed",
        }
    }

    const fn rows(self) -> u32 {
        match self {
            Self::LargeRows => 600,
            Self::Commits => 50_000,
            Self::PointReads | Self::Scans | Self::Mixed => 100_000,
        }
    }

    /// Creates the database.
    pub(super) fn create(self, path: &Path, seed: u64) -> Result<(), StudyError> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut db = Connection::open(path)?;
        let all = db.transaction()?;
        all.execute_batch("CREATE TABLE item (id INTEGER PRIMARY KEY, count INTEGER NOT NULL, body BLOB NOT NULL)")?;
        if self == Self::Mixed {
            all.execute_batch("CREATE INDEX item_count ON item (count)")?;
        }
        let mut insert = all.prepare("INSERT INTO item VALUES (?1, ?2, ?3)")?;
        for id in 1..=self.rows() {
            let mut body = vec![0_u8; self.body_bytes(&mut random)];
            random.fill(&mut body[..]);
            insert.execute((id, random.random_range(0..1_000_000), body))?;
        }
        drop(insert);
        all.commit()?;
        db.close().map_err(|(_, error)| error.into())
    }

    fn body_bytes(self, random: &mut Pcg64Mcg) -> usize {
        if self == Self::LargeRows { random.random_range(8 << 10..64 << 10) } else { 100 }
    }

    /// The statements of a run.
    pub(super) fn statements(self, seed: u64) -> String {
        let mut random = Pcg64Mcg::seed_from_u64(seed ^ 1);
        let mut sql = String::new();
        let count = match self {
            Self::PointReads => 6_000,
            Self::Scans => 60,
            Self::LargeRows => 600,
            Self::Commits => 1_500,
            Self::Mixed => 2_000,
        };
        for n in 0..count {
            // Formatting into a string cannot fail.
            let _ = match self {
                Self::PointReads => self.read(&mut sql, &mut random),
                Self::Scans => self.scan(&mut sql, &mut random, 10_000),
                Self::LargeRows if n % 3 == 0 => self.replace(&mut sql, &mut random),
                Self::LargeRows => self.read(&mut sql, &mut random),
                Self::Commits => self.update(&mut sql, &mut random),
                Self::Mixed if n % 10 == 0 => self.scan(&mut sql, &mut random, 200),
                Self::Mixed if n % 10 < 4 => self.order(&mut sql, &mut random, n),
                Self::Mixed => self.read(&mut sql, &mut random),
            };
        }
        sql
    }

    fn id(self, random: &mut Pcg64Mcg) -> u32 {
        random.random_range(1..=self.rows())
    }

    fn read(self, sql: &mut String, random: &mut Pcg64Mcg) -> fmt::Result {
        // The last byte is at the end of a chain of pages.
        writeln!(sql, "SELECT count, substr(body, -1) FROM item WHERE id = {};", self.id(random))
    }

    fn scan(self, sql: &mut String, random: &mut Pcg64Mcg, rows: u32) -> fmt::Result {
        let first = random.random_range(1..=self.rows() - rows);
        writeln!(sql, "SELECT sum(count) FROM item WHERE id BETWEEN {first} AND {};", first + rows - 1)
    }

    fn replace(self, sql: &mut String, random: &mut Pcg64Mcg) -> fmt::Result {
        let bytes = self.body_bytes(random);
        writeln!(sql, "UPDATE item SET body = zeroblob({bytes}) WHERE id = {};", self.id(random))
    }

    fn update(self, sql: &mut String, random: &mut Pcg64Mcg) -> fmt::Result {
        writeln!(sql, "UPDATE item SET count = count + 1 WHERE id = {};", self.id(random))
    }

    fn order(self, sql: &mut String, random: &mut Pcg64Mcg, n: u32) -> fmt::Result {
        writeln!(sql, "BEGIN;")?;
        self.update(sql, random)?;
        self.update(sql, random)?;
        writeln!(sql, "INSERT INTO item VALUES ({}, {n}, zeroblob(100)); COMMIT;", self.rows() + 1 + n)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_of_each_run_on_its_database_and_change_what_they_should() {
        for work in Work::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("work.db");
            work.create(&path, 1).unwrap();
            let db = Connection::open(&path).unwrap();
            db.execute_batch(&work.statements(1)).unwrap();
            let rows: u32 = db.query_row("SELECT count(*) FROM item", [], |row| row.get(0)).unwrap();
            let inserted = if work == Work::Mixed { 600 } else { 0 };
            assert_eq!(rows, work.rows() + inserted, "{work}");
        }
    }
}
