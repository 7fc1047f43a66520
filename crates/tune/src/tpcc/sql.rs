//! The interface of TPC-C to a database: statements with named parameters, and transactions.
//!
//! A database's `statements.sql` has these parts. The columns found by a query are parameters of the next statements,
//! by their names. Known from the start are the home warehouse `:w` and the district `:d`; a customer is `:c`, for
//! Payment of warehouse `:c_w` and district `:c_d`; an order is `:o`, the run's date `:date`.
//!
//! | part | effect |
//! |---|---|
//! | `customers_by_name` | finds customers by last name `:name`, in order of first names; the last query gives `c_id` |
//! | `new_order` | creates the order `:o` of `:lines` lines |
//! | `item` | finds `i_price` of `:item` |
//! | `stock` | reads `s_quantity` and `info` of `:item` in warehouse `:supplier`; `NN` is the district in two digits |
//! | `order_line` | sets the quantity `:left` after `:wanted` were taken, and creates line `:line` with `:amount` |
//! | `payment` | adds `:amount` to the home, and reads `w_name` and `d_name` |
//! | `payer` | reads `c_credit` of the customer |
//! | `good_credit` | completes a payment with good credit |
//! | `credit_data` | reads `c_data`, if the new `:data` needs it |
//! | `bad_credit` | completes a payment with bad credit, with `:data` |
//! | `history` | appends to HISTORY |
//! | `balance`, `last_order` | a customer's balance, and last order `o` |
//! | `order_status` | reads the order and its lines |
//! | `oldest`, `deliver` | a district's oldest undelivered order `o`, and its delivery by `:carrier` |
//! | `stock_level` | counts items with a stock of fewer than `:least` |

use std::collections::HashMap;

use super::values::{Columns, Values};
use super::variant::Variant;

/// A session with a database that knows TPC-C in its dialect.
///
/// Parameters of a statement are `:name`, where the name is one of [`Values`].
pub(crate) trait Sql {
    type Error;
    /// Its `statements.sql`.
    const STATEMENTS: &'static str;
    /// Which TPC-C this is.
    const VARIANT: Variant;

    fn begin(&mut self, is_writing: bool) -> Result<(), Self::Error>;

    fn commit(&mut self) -> Result<(), Self::Error>;

    fn rollback(&mut self) -> Result<(), Self::Error>;

    /// Runs a statement; gives the row of a query.
    ///
    /// # Errors
    /// When it fails, or the query finds no row.
    fn execute(&mut self, sql: &str, values: &Values) -> Result<Columns, Self::Error>;

    /// All rows of a query.
    ///
    /// # Errors
    /// When it fails.
    fn query(&mut self, sql: &str, values: &Values) -> Result<Vec<Columns>, Self::Error>;
}

/// The statements of each part of the transactions, by the part's name.
pub(super) struct Statements(HashMap<&'static str, Vec<&'static str>>);

impl Statements {
    /// Reads SQL: a line `-- NAME` before the statements of each part.
    pub(super) fn parse(sql: &'static str) -> Self {
        let part = |text: &'static str| {
            let (name, statements) = text.split_once('\n')?;
            let statements = statements.split(';').map(str::trim).filter(|statement| !statement.is_empty());
            Some((name.trim(), statements.collect()))
        };
        // Text before the first part is about the file.
        Self(sql.split("\n-- ").skip(1).filter_map(part).collect())
    }

    /// Those of a part; there may be none.
    pub(super) fn of(&self, part: &str) -> &[&'static str] {
        debug_assert!(self.0.contains_key(part), "{part}");
        self.0.get(part).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects_have_the_same_parts() {
        let [sqlite, postgres] =
            [include_str!("../sqlite/tpcc/statements.sql"), include_str!("../postgres/tpcc/statements.sql")];
        let (sqlite, postgres) = (Statements::parse(sqlite), Statements::parse(postgres));
        assert_eq!((sqlite.0.len(), sqlite.of("deliver").len(), sqlite.of("good_credit").len()), (17, 6, 0));
        assert!(sqlite.0.keys().all(|part| postgres.0.contains_key(part)) && postgres.0.len() == 17);
    }
}
