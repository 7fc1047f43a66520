//! What TPC-C is, whatever database it runs on: random numbers and strings, the five transactions and their mix.
//!
//! Source: TPC Benchmark C, revision 5.11. The adapters have its tables and statements: [`crate::sqlite`] and
//! [`crate::postgres`].

mod deck;
mod random;

pub use deck::TpccTransaction;
pub(crate) use deck::{DECK, Deck};
pub(crate) use random::{Source, Uneven, last_name};

/// Districts of a warehouse.
pub(crate) const DISTRICTS: u32 = 10;
