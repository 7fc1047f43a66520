//! TPC-C, whatever database it runs on: what is drawn, which rows are loaded, and the five transactions with their mix.
//!
//! ```text
//!   Source ─▶ load: rows of nine tables ──────────────────▶ a database's own way to insert them in bulk
//!        └──▶ Deck ─▶ Terminal: five transactions ─▶ Sql ─▶ a database's statements.sql
//! ```
//!
//! Source: TPC Benchmark C, revision 5.11. [`Variant`] is what sysbench-tpcc does differently. What a database has of its own:
//! its schema, its statements, and an adapter for [`Sql`]; see [`crate::sqlite`] and [`crate::postgres`].

mod deck;
mod load;
mod random;
mod sql;
mod transactions;
mod variant;

pub use deck::TpccTransaction;
pub(crate) use deck::{DECK, Deck};
pub(crate) use load::{
    CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, RowSource, STOCK, Table, WAREHOUSE,
};
pub(crate) use random::{Source, Uneven};
pub(crate) use sql::{Columns, Sql, Value, Values};
pub(crate) use transactions::Terminal;
pub(crate) use variant::Variant;

use random::last_name;

/// Districts of a warehouse.
pub(crate) const DISTRICTS: u32 = 10;

/// How many rows the tables have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) warehouses: u32,
    /// Items, and rows of STOCK a warehouse.
    pub(crate) items: u32,
    /// Customers and orders of a district.
    pub(crate) customers: u32,
}

impl Scale {
    /// Last names that some customer of each district has.
    fn names(&self) -> u32 {
        self.customers.min(1_000)
    }

    /// Whether an order was delivered before the first transaction: all but the last 30 %.
    pub(crate) fn is_delivered(&self, order: u32) -> bool {
        order <= self.customers - self.customers * 3 / 10
    }

    /// Another warehouse, or the same where there is no other.
    fn other_warehouse(&self, source: &mut Source, home: u32) -> u32 {
        match self.warehouses {
            1 => home,
            count => (home - 1 + source.uniform(1, count - 1)) % count + 1,
        }
    }

    /// A customer's last name, by a number that is chosen as unevenly as the specification wants it.
    fn random_name(&self, source: &mut Source) -> String {
        last_name(source.uneven(Uneven::LastName, 0, self.names() - 1))
    }
}

/// Queries that count what violates a condition of clause 3.3.2.
#[cfg(test)]
pub(crate) fn consistency() -> impl Iterator<Item = &'static str> {
    include_str!("consistency.sql").split(';').filter(|sql| sql.contains("SELECT"))
}
