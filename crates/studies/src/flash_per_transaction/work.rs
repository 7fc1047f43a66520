//! What is asked of a database: rows as YCSB has them, ten fields of 100 letters; a transaction replaces one field of
//! one row, drawn by Zipf's law with an exponent of 0.8, popular rows scattered over the table.
//!
//! Source of the rows: B. F. Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010; of the exponent:
//! the measurement of a real drive that the study compares itself with.

use flashwise_trace::workload::Zipf;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Fields of a row, and bytes of each.
pub(super) const FIELDS: usize = 10;
pub(super) const FIELD_BYTES: usize = 100;
const EXPONENT: f64 = 0.8;
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// From 1 on.
    pub(super) row: i32,
    pub(super) field: usize,
    pub(super) value: String,
}

/// Rows and transactions, which follow from the seed.
pub(super) struct Work {
    zipf: Zipf,
    /// Rows by popularity.
    order: Vec<i32>,
    random: Pcg64Mcg,
}

impl Work {
    pub(super) fn new(rows: u32, seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut order: Vec<i32> = (1..=rows as i32).collect();
        order.shuffle(&mut random);
        Self { zipf: Zipf::new(rows.into(), EXPONENT), order, random }
    }

    /// The fields of a new row.
    pub(super) fn fields(&mut self) -> [String; FIELDS] {
        std::array::from_fn(|_| self.value())
    }

    pub(super) fn update(&mut self) -> Update {
        let rank = self.zipf.draw(&mut self.random) as usize;
        let field = self.random.random_range(0..FIELDS);
        Update { row: self.order[rank], field, value: self.value() }
    }

    fn value(&mut self) -> String {
        let letter = |_| char::from(LETTERS[self.random.random_range(0..LETTERS.len())]);
        (0..FIELD_BYTES).map(letter).collect()
    }
}

/// The columns of the table behind its key, as SQL.
pub(super) fn columns(of_type: &str) -> String {
    (0..FIELDS).map(|n| format!("field{n} {of_type} NOT NULL")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_follow_from_the_seed_and_popular_rows_are_scattered() {
        let draw = |seed| {
            let mut work = Work::new(1_000, seed);
            (0..2_000).map(|_| work.update()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let updates = draw(1);
        assert!(updates.iter().all(|update| (1..=1_000).contains(&update.row) && update.value.len() == FIELD_BYTES));
        let mut counts = [0; 1_001];
        updates.iter().for_each(|update| counts[update.row as usize] += 1);
        let most = (0..counts.len()).max_by_key(|&row| counts[row]).unwrap();
        // 1 ÷ Σ k^-0.8 of 1,000 ranks is 6.6 %.
        assert!((80..200).contains(&counts[most]) && most > 1, "{most}: {}", counts[most]);
    }
}
