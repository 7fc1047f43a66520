//! TPC-C on any database: random draws, loaded rows, and the five transactions with their mix.
//!
//! ```text
//!   Source ─▶ load: rows of nine tables ──────────────────▶ a database's own way to insert them in bulk
//!        └──▶ Deck ─▶ Terminal: five transactions ─▶ Sql ─▶ a database's statements.sql
//! ```
//!
//! Source: TPC Benchmark C, revision 5.11. [`Variant`] has the differences of sysbench-tpcc. Each database has its own
//! schema, statements, and an adapter for [`Sql`]; see [`crate::sqlite`] and [`crate::postgres`].

mod deck;
mod load;
mod random;
mod scale;
mod sql;
mod transactions;
mod values;
mod variant;

pub use deck::TpccTransaction;
pub(crate) use deck::{DECK, Deck};
pub(crate) use load::{
    CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, RowSource, STOCK, Table, WAREHOUSE,
};
pub(crate) use random::Source;
pub(crate) use scale::{DISTRICTS, Scale};
pub(crate) use sql::Sql;
pub(crate) use transactions::Terminal;
pub(crate) use values::{Columns, Value, Values};
pub(crate) use variant::Variant;

/// Queries that count violations of a condition of clause 3.3.2.
#[cfg(test)]
pub(crate) fn consistency() -> impl Iterator<Item = &'static str> {
    include_str!("consistency.sql").split(';').filter(|sql| sql.contains("SELECT"))
}
