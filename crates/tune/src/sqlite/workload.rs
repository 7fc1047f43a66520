//! The seed's workload: a table of keys and values, inserts of new keys, SELECTs of random ones.
//!
//! Source: Kakaraparthy et al., PVLDB 13(4), 2019: `KV(K INTEGER PRIMARY KEY, V CHAR(100))`, loaded in random order;
//! rounds of inserts of new keys, then point SELECTs of uniformly random present keys in one transaction; the number of
//! inserts a transaction varied.

use flashwise_block::ByteSize;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::{TuneError, WorkloadDescription};

/// Bytes of a value.
const VALUE_BYTES: usize = 100;

/// How much of the seed's workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyValueWorkload {
    /// Rows loaded before the rounds.
    pub rows: u32,
    /// Measured rounds.
    pub rounds: u32,
    /// Inserts a round.
    pub inserts_per_round: u32,
    /// SELECTs a round.
    pub selects_per_round: u32,
    /// Inserts a transaction.
    pub inserts_per_transaction: u32,
    /// SQLite's page cache.
    pub page_cache: ByteSize,
}

/// The page cache of the seed's experiment, for its 10 million rows.
const SEED_PAGE_CACHE: ByteSize = ByteSize::mib(128);
const SEED_ROWS: u32 = 10_000_000;

impl KeyValueWorkload {
    /// A size that fits the user's first minute: the seed's shape, its page cache scaled with the rows.
    pub const QUICK: Self = Self {
        rows: 200_000,
        rounds: 10,
        inserts_per_round: 2_000,
        selects_per_round: 4_000,
        inserts_per_transaction: 500,
        page_cache: ByteSize(SEED_PAGE_CACHE.bytes() * 200_000 / SEED_ROWS as u64),
    };

    /// The seed's own size.
    pub const FULL: Self = Self {
        rows: SEED_ROWS,
        rounds: 100,
        inserts_per_round: 50_000,
        selects_per_round: 50_000,
        inserts_per_transaction: 500,
        page_cache: SEED_PAGE_CACHE,
    };

    /// Refuses a workload that cannot be run.
    ///
    /// # Errors
    /// With the wrong option.
    pub fn check(&self) -> Result<(), TuneError> {
        let fail = |reason: &str| Err(TuneError::Options(reason.to_owned()));
        if self.rows == 0 || self.rounds == 0 || self.inserts_per_transaction == 0 {
            return fail("rows, rounds and inserts per transaction must be at least 1");
        }
        if self.inserts_per_round == 0 && self.selects_per_round == 0 {
            return fail("a round needs INSERTs or SELECTs");
        }
        check_page_cache(self.page_cache)?;
        if self.keys() > 1 << 31 { fail("more than 2,147,483,648 keys; use fewer rows or rounds") } else { Ok(()) }
    }

    /// INSERTs and SELECTs of a round.
    pub(crate) fn statements_per_round(&self) -> u64 {
        u64::from(self.inserts_per_round) + u64::from(self.selects_per_round)
    }

    /// Keys that are in the table at the end.
    fn keys(&self) -> u64 {
        u64::from(self.rows) + u64::from(self.rounds) * u64::from(self.inserts_per_round)
    }

    /// Bytes of the database at most: random inserts leave leaves two thirds full, half at worst.
    pub(crate) fn database_bytes_max(&self) -> ByteSize {
        const ROW_OVERHEAD_BYTES: u64 = 12;
        ByteSize(ByteSize::mib(2).0 + 2 * self.keys() * (VALUE_BYTES as u64 + ROW_OVERHEAD_BYTES))
    }

    pub(crate) fn describe(&self, seed: u64) -> WorkloadDescription {
        WorkloadDescription {
            summary: "table KV(K INTEGER PRIMARY KEY, V CHAR(100)), loaded in random order, then rounds of INSERTs of \
                      new keys and point SELECTs of random ones"
                .into(),
            rows: self.rows.into(),
            rounds: self.rounds.into(),
            inserts_per_round: self.inserts_per_round.into(),
            selects_per_round: self.selects_per_round.into(),
            inserts_per_transaction: self.inserts_per_transaction.into(),
            page_cache_bytes: self.page_cache.bytes(),
            seed,
        }
    }
}

/// SQLite counts its cache in KiB, with 31 bits.
pub(crate) fn check_page_cache(size: ByteSize) -> Result<(), TuneError> {
    if size < ByteSize::gib(2048) {
        return Ok(());
    }
    Err(TuneError::Options(format!("a page cache of {size} is more than SQLite supports; give less than 2 TiB")))
}

/// The keys in the order in which they are inserted, and the values; the same for every run of one seed.
#[derive(Clone, Debug)]
pub(crate) struct KeySource {
    keys: Vec<u32>,
    inserted: usize,
    random: Pcg64Mcg,
}

impl KeySource {
    pub(crate) fn new(workload: &KeyValueWorkload, seed: u64) -> Self {
        let count = workload.rows + workload.rounds * workload.inserts_per_round;
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut keys: Vec<u32> = (0..count).collect();
        keys.shuffle(&mut random);
        Self { keys, inserted: 0, random }
    }

    /// The same keys are there; those to come, in what order, and what is selected follows from another seed.
    pub(crate) fn reseeded(&self, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut keys = self.keys.clone();
        keys[self.inserted..].shuffle(&mut random);
        Self { keys, inserted: self.inserted, random }
    }

    /// The next new key.
    pub(crate) fn new_key(&mut self) -> u32 {
        self.inserted += 1;
        self.keys[self.inserted - 1]
    }

    /// A present key.
    pub(crate) fn present_key(&mut self) -> u32 {
        self.keys[self.random.random_range(0..self.inserted)]
    }

    /// A value that does not compress below a half.
    pub(crate) fn value(&mut self) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
        let mut bits = 0_u64;
        (0..VALUE_BYTES)
            .map(|n| {
                if n.is_multiple_of(10) {
                    bits = self.random.random();
                }
                let letter = LETTERS[(bits % 64) as usize];
                bits >>= 6;
                char::from(letter)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_comes_once_in_random_order_and_only_present_keys_are_selected() {
        let workload = KeyValueWorkload { rows: 500, rounds: 2, inserts_per_round: 250, ..KeyValueWorkload::QUICK };
        let mut source = KeySource::new(&workload, 1);
        let first: Vec<u32> = (0..500).map(|_| source.new_key()).collect();
        assert!(!first.is_sorted());
        assert!((0..1000).all(|_| first.contains(&source.present_key())));
        let mut all = first;
        all.extend((0..500).map(|_| source.new_key()));
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        assert_eq!(source.value().len(), VALUE_BYTES);
    }

    #[test]
    fn a_workload_that_does_nothing_is_refused() {
        assert!(KeyValueWorkload { rows: 0, ..KeyValueWorkload::QUICK }.check().is_err());
        let idle = KeyValueWorkload { inserts_per_round: 0, selects_per_round: 0, ..KeyValueWorkload::QUICK };
        assert!(idle.check().is_err());
        let vast = KeyValueWorkload { page_cache: ByteSize::gib(4096), ..KeyValueWorkload::QUICK };
        assert!(vast.check().unwrap_err().to_string().contains("page cache of 4 TiB"));
        assert!(KeyValueWorkload::FULL.check().is_ok());
    }
}
