//! YCSB's mixes A to F from a client of our own.
//!
//! Rows of 1 KiB: a key and ten fields of 100 letters. Which row an operation is of follows YCSB's distributions:
//! zipfian with an exponent of 0.99, whose popular rows are scattered over the table; in D, the latest rows. A scan is
//! of 1 to 100 rows.
//!
//! Source: B. F. Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010, and its core workloads.

use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::key_value::{DATABASE, letters};
use crate::StudyError;

const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
const THETA: f64 = 0.99;
const LONGEST_SCAN: u32 = 100;
const LOADED_AT_ONCE: u64 = 200;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// A mix of operations.
#[derive(Debug)]
pub(super) struct Mix {
    pub(super) name: &'static str,
    pub(super) words: &'static str,
    /// Of a hundred operations.
    shares: [(Operation, u32); 2],
    /// Whether the latest rows are the popular ones.
    is_latest: bool,
}

/// YCSB's core workloads.
pub(super) static MIXES: [Mix; 6] = {
    use Operation::{Insert, Read, ReadModifyWrite, Scan, Update};
    [
        Mix { name: "A", words: "50 % reads, 50 % updates", shares: [(Read, 50), (Update, 50)], is_latest: false },
        Mix { name: "B", words: "95 % reads, 5 % updates", shares: [(Read, 95), (Update, 5)], is_latest: false },
        Mix { name: "C", words: "reads", shares: [(Read, 100), (Update, 0)], is_latest: false },
        Mix {
            name: "D",
            words: "95 % reads of the latest, 5 % inserts",
            shares: [(Read, 95), (Insert, 5)],
            is_latest: true,
        },
        Mix { name: "E", words: "95 % scans, 5 % inserts", shares: [(Scan, 95), (Insert, 5)], is_latest: false },
        Mix {
            name: "F",
            words: "50 % reads, 50 % reads that update",
            shares: [(Read, 50), (ReadModifyWrite, 50)],
            is_latest: false,
        },
    ]
};

/// Ranks by popularity: the k-th most popular has a probability proportional to 1 ÷ k^0.99.
#[derive(Debug)]
struct Zipf {
    /// Sums of the weights up to each rank.
    sums: Vec<f64>,
}

impl Zipf {
    fn new(count: u64) -> Self {
        let mut sum = 0.0;
        let weigh = |rank: u64| {
            sum += (rank as f64).powf(-THETA);
            sum
        };
        Self { sums: (1..=count).map(weigh).collect() }
    }

    /// A rank, from 0 on.
    fn draw(&self, random: &mut Pcg64Mcg) -> u64 {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let drawn = random.random::<f64>() * all;
        self.sums.partition_point(|&sum| sum <= drawn).min(self.sums.len().saturating_sub(1)) as u64
    }
}

/// A table of YCSB's and who works on it.
#[derive(Debug)]
pub(super) struct Client {
    /// Rows that were loaded.
    loaded: u64,
    /// Rows that are there.
    rows: u64,
    zipf: Zipf,
    random: Pcg64Mcg,
}

/// The key of a row: rows that were made one after the other lie far from each other (FNV-1a of the number, as YCSB's).
fn key(number: u64) -> String {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("user{:020}", number.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, hash))
}

/// A number that is scattered over `0..count`, always in the same way.
fn scattered(rank: u64, count: u64) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    (!rank).to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, hash) % count
}

fn fields(random: &mut Pcg64Mcg) -> String {
    (0..FIELDS).map(|_| format!("'{}'", letters(random, FIELD_BYTES))).collect::<Vec<_>>().join(",")
}

impl Client {
    pub(super) fn new(rows: u64, seed: u64) -> Self {
        Self { loaded: rows, rows, zipf: Zipf::new(rows), random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// Makes the table and fills it.
    pub(super) fn load(&mut self, connection: &mut Conn) -> Result<(), StudyError> {
        let columns: Vec<String> =
            (0..FIELDS).map(|n| format!("field{n} CHAR({FIELD_BYTES}) CHARACTER SET latin1 NOT NULL")).collect();
        connection.query_drop(format!(
            "CREATE TABLE {DATABASE}.usertable (ycsb_key CHAR(24) CHARACTER SET latin1 PRIMARY KEY, {}) ENGINE = InnoDB",
            columns.join(", ")
        ))?;
        let mut next = 0;
        while next < self.loaded {
            let last = self.loaded.min(next + LOADED_AT_ONCE);
            let random = &mut self.random;
            let rows: Vec<String> = (next..last).map(|n| format!("('{}',{})", key(n), fields(random))).collect();
            connection.query_drop(format!("INSERT INTO {DATABASE}.usertable VALUES {}", rows.join(",")))?;
            next = last;
        }
        Ok(())
    }

    /// Some operations of a mix; `seed` says which.
    pub(super) fn play(
        &mut self,
        connection: &mut Conn,
        mix: &Mix,
        operations: u32,
        seed: u64,
    ) -> Result<(), StudyError> {
        self.random = Pcg64Mcg::seed_from_u64(seed);
        (0..operations).try_for_each(|_| self.operate(connection, mix))
    }

    fn operate(&mut self, connection: &mut Conn, mix: &Mix) -> Result<(), StudyError> {
        let drawn = self.random.random_range(0..100_u32);
        let [(often, share), (seldom, _)] = mix.shares;
        let operation = if drawn < share { often } else { seldom };
        let rank = self.zipf.draw(&mut self.random);
        let key = match mix.is_latest {
            true => key(self.rows - 1 - rank.min(self.rows - 1)),
            false => key(scattered(rank, self.loaded)),
        };
        match operation {
            Operation::Read => self.read(connection, &key),
            Operation::Update => self.update(connection, &key),
            Operation::ReadModifyWrite => self.read(connection, &key).and_then(|()| self.update(connection, &key)),
            Operation::Insert => self.insert(connection),
            Operation::Scan => self.scan(connection, &key),
        }
    }

    fn read(&mut self, connection: &mut Conn, key: &str) -> Result<(), StudyError> {
        let statement = connection.prep(format!("SELECT * FROM {DATABASE}.usertable WHERE ycsb_key = ?"))?;
        let row: Option<Row> = connection.exec_first(statement, (key,))?;
        row.map(drop).ok_or_else(|| StudyError::Damaged(format!("row {key} of the table usertable is missing")))
    }

    fn update(&mut self, connection: &mut Conn, key: &str) -> Result<(), StudyError> {
        let field = self.random.random_range(0..FIELDS);
        let value = letters(&mut self.random, FIELD_BYTES);
        let statement =
            connection.prep(format!("UPDATE {DATABASE}.usertable SET field{field} = ? WHERE ycsb_key = ?"))?;
        Ok(connection.exec_drop(statement, (value, key))?)
    }

    fn insert(&mut self, connection: &mut Conn) -> Result<(), StudyError> {
        let row = format!("('{}',{})", key(self.rows), fields(&mut self.random));
        connection.query_drop(format!("INSERT INTO {DATABASE}.usertable VALUES {row}"))?;
        self.rows += 1;
        Ok(())
    }

    fn scan(&mut self, connection: &mut Conn, key: &str) -> Result<(), StudyError> {
        let count = self.random.random_range(1..=LONGEST_SCAN);
        let sql = "SELECT * FROM flashwise.usertable WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?";
        let statement = connection.prep(sql)?;
        let rows: Vec<Row> = connection.exec(statement, (key, count))?;
        match rows.is_empty() {
            true => Err(StudyError::Damaged(format!("row {key} of the table usertable is missing"))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mix_is_a_hundred_per_cent() {
        for mix in &MIXES {
            assert_eq!(mix.shares.iter().map(|(_, share)| share).sum::<u32>(), 100, "{}", mix.name);
        }
    }

    #[test]
    fn ranks_are_drawn_as_often_as_their_weights_say() {
        let (zipf, mut random) = (Zipf::new(1_000), Pcg64Mcg::seed_from_u64(1));
        let mut seen = vec![0_u32; 1_000];
        (0..400_000).for_each(|_| seen[zipf.draw(&mut random) as usize] += 1);
        let all: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for rank in [1, 2, 10, 100] {
            let expected = 400_000.0 * f64::from(rank).powf(-0.99) / all;
            let found = f64::from(seen[rank as usize - 1]);
            // Five times the deviation of a count.
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {found}, expected {expected}");
        }
    }

    #[test]
    fn popular_rows_are_scattered_and_keys_are_all_different() {
        let rows: Vec<u64> = (0..20).map(|rank| scattered(rank, 1_000)).collect();
        assert!(rows.iter().all(|&row| row < 1_000));
        assert!(rows.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) > 50).count() > 14, "{rows:?}");
        let mut keys: Vec<String> = (0..10_000).map(key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), keys[0].len()), (10_000, 24));
    }
}
