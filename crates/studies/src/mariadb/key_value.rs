//! The text's key-value workload: keys in random order into a table, then rounds of inserts and of SELECTs by key.
//!
//! Source: Kakaraparthy et al., PVLDB 13(4), 2019: table KV (K INT PRIMARY KEY, V CHAR(100)), 10 million rows to start
//! with, 100 rounds of 50,000 inserts and 50,000 SELECTs. Here all of it is divided, and so is the buffer pool.

use mysql::Conn;
use mysql::prelude::Queryable;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::StudyError;

/// Bytes of a value.
const VALUE_BYTES: usize = 100;
/// Rows of a statement that loads.
const LOADED_AT_ONCE: usize = 1_000;
/// Where the table is.
pub(super) const DATABASE: &str = "flashwise";
/// Its file, below the instance's.
pub(super) const FILE: &str = "flashwise/kv.ibd";

/// The table and what is done with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyValue {
    /// Rows that are loaded.
    pub(super) rows: u32,
    pub(super) rounds: u32,
    /// Of a round.
    pub(super) inserts: u32,
    pub(super) per_transaction: u32,
    pub(super) selects: u32,
}

/// The keys of a run: those that are there come first.
pub(super) struct Keys {
    all: Vec<u32>,
    present: usize,
    random: Pcg64Mcg,
}

/// Letters.
pub(super) fn letters(random: &mut Pcg64Mcg, count: usize) -> String {
    (0..count).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect()
}

impl KeyValue {
    /// The same keys for everybody who has the seed.
    pub(super) fn keys(&self, seed: u64) -> Keys {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut all: Vec<u32> = (0..self.rows + self.rounds * self.inserts).collect();
        all.shuffle(&mut random);
        Keys { all, present: self.rows as usize, random }
    }

    /// Makes the table and fills it, in the order of [`Keys`].
    pub(super) fn load(&self, connection: &mut Conn, seed: u64) -> Result<(), StudyError> {
        connection.query_drop(format!(
            "CREATE TABLE {DATABASE}.kv (k INT UNSIGNED PRIMARY KEY, v CHAR({VALUE_BYTES}) CHARACTER SET latin1 NOT NULL) \
             ENGINE = InnoDB"
        ))?;
        let mut keys = self.keys(seed);
        let (all, random) = (&keys.all[..keys.present], &mut keys.random);
        for some in all.chunks(LOADED_AT_ONCE) {
            let rows: Vec<String> =
                some.iter().map(|key| format!("({key},'{}')", letters(random, VALUE_BYTES))).collect();
            connection.query_drop(format!("INSERT INTO {DATABASE}.kv VALUES {}", rows.join(",")))?;
        }
        Ok(())
    }

    /// One round's inserts of keys that are not there.
    pub(super) fn insert(&self, connection: &mut Conn, keys: &mut Keys) -> Result<(), StudyError> {
        let statement = connection.prep(format!("INSERT INTO {DATABASE}.kv VALUES (?, ?)"))?;
        let last = keys.present + self.inserts as usize;
        while keys.present < last {
            connection.query_drop("BEGIN")?;
            for _ in 0..(self.per_transaction as usize).clamp(1, last - keys.present) {
                let Some(&key) = keys.all.get(keys.present) else { return Err(StudyError::Lost) };
                connection.exec_drop(&statement, (key, letters(&mut keys.random, VALUE_BYTES)))?;
                keys.present += 1;
            }
            connection.query_drop("COMMIT")?;
        }
        Ok(())
    }

    /// One round's SELECTs of keys that are there.
    pub(super) fn select(&self, connection: &mut Conn, keys: &mut Keys) -> Result<(), StudyError> {
        let statement = connection.prep(format!("SELECT v FROM {DATABASE}.kv WHERE k = ?"))?;
        for _ in 0..self.selects {
            let key = keys.all[keys.random.random_range(0..keys.present)];
            let value: Option<String> = connection.exec_first(&statement, (key,))?;
            if value.is_none_or(|value| value.len() != VALUE_BYTES) {
                return Err(StudyError::Damaged(format!("row {key} of the table kv is missing")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_with_the_seed_has_the_same_keys_each_of_them_once() {
        let work = KeyValue { rows: 100, rounds: 3, inserts: 20, per_transaction: 5, selects: 7 };
        let (one, other) = (work.keys(1), work.keys(1));
        assert_eq!((&one.all, one.present), (&other.all, 100));
        assert_ne!(one.all, work.keys(2).all);
        let mut sorted = one.all.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..160).collect::<Vec<_>>());
    }
}
