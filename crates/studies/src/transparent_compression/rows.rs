//! Rows as those of TPC-C's STOCK, its largest table but one.
//!
//! Source: TPC Benchmark C, revision 5.11, clauses 1.3.1 (columns), 4.3.2.2 (random a-strings), 4.3.3.1 (values).

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What the strings of a row are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Random letters and digits, as TPC-C has it.
    Strings,
    /// Random words of a short list: for data that compress about as well as the text's.
    Words,
}

impl Content {
    pub(super) const ALL: [Self; 2] = [Self::Strings, Self::Words];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Strings => "random strings",
            Self::Words => "words",
        }
    }
}

/// Strings of a row, each of 24 characters.
pub(super) const DISTRICTS: usize = 10;
const DISTRICT_BYTES: usize = 24;
const SYMBOLS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const WORDS: [&str; 16] = [
    "ordered",
    "shipped",
    "pending",
    "returned",
    "standard",
    "express",
    "domestic",
    "overseas",
    "warehouse",
    "district",
    "customer",
    "delivery",
    "quantity",
    "original",
    "discount",
    "unpriced",
];

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) item: u32,
    pub(super) warehouse: u32,
    pub(super) quantity: u32,
    pub(super) districts: [String; DISTRICTS],
    pub(super) year_to_date: u32,
    pub(super) orders: u32,
    pub(super) remote: u32,
    pub(super) data: String,
}

/// Draws rows.
pub(super) struct Rows {
    random: Pcg64Mcg,
    content: Content,
    next: u32,
}

impl Rows {
    pub(super) fn new(content: Content, seed: u64) -> Self {
        Self { random: Pcg64Mcg::seed_from_u64(seed), content, next: 0 }
    }

    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 10);
        while text.len() < bytes {
            match self.content {
                Content::Strings => text.push(char::from(SYMBOLS[self.random.random_range(0..SYMBOLS.len())])),
                Content::Words => {
                    text.push_str(WORDS[self.random.random_range(0..WORDS.len())]);
                    text.push(' ');
                }
            }
        }
        text.truncate(bytes);
        text
    }
}

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.next += 1;
        let data_bytes = self.random.random_range(26..=50);
        Some(Row {
            item: self.next,
            warehouse: 1,
            quantity: self.random.random_range(10..=100),
            districts: std::array::from_fn(|_| self.text(DISTRICT_BYTES)),
            year_to_date: 0,
            orders: 0,
            remote: 0,
            data: self.text(data_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_its_own_rows_and_they_are_as_long_as_tpc_c_has_them() {
        for content in Content::ALL {
            let rows: Vec<Row> = Rows::new(content, 7).take(100).collect();
            assert_eq!(rows, Rows::new(content, 7).take(100).collect::<Vec<_>>());
            assert_ne!(rows, Rows::new(content, 8).take(100).collect::<Vec<_>>());
            for row in rows {
                assert!(row.districts.iter().all(|text| text.len() == 24) && (26..=50).contains(&row.data.len()));
            }
        }
    }
}
