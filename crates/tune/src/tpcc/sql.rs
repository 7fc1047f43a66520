//! What TPC-C needs of a database: statements with named parameters, and transactions.

use std::collections::HashMap;

use super::Variant;

/// A parameter, or a column of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

macro_rules! value_from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}
value_from!(u32 => Integer, i32 => Integer, i64 => Integer, bool => Integer, f64 => Real, &str => Text, String => Text);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row, by the names of its columns.
pub(crate) type Columns = Vec<(String, Value)>;

/// A session with a database that knows TPC-C in its dialect.
///
/// Parameters of a statement are `:name`, where the name is one of [`Values`].
pub(crate) trait Sql {
    type Error;
    /// The statements in the database's dialect.
    const STATEMENTS: Statements;
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

/// The transactions' statements, in order. What a query finds is known to the next statements by the names of its columns.
///
/// Known from the start are the home warehouse `:w` and the district `:d`; a customer is `:c`, for Payment of warehouse
/// `:c_w` and district `:c_d`; an order is `:o`.
pub(crate) struct Statements {
    /// Customers by their last name `:name`, the first one first; the last query counts, and gives `c_id`.
    pub(crate) customers_by_name: &'static [&'static str],
    /// Makes the order `:o` of `:lines` lines.
    pub(crate) new_order: &'static [&'static str],
    /// `i_price` of `:item`.
    pub(crate) item: &'static str,
    /// `s_quantity` and `info` of `:item` in warehouse `:supplier`; `NN` is the district in two digits.
    pub(crate) stock: &'static str,
    /// Takes `:wanted` of the stock, of which `:left` are left, and makes line `:line` with `:amount`.
    pub(crate) order_line: &'static [&'static str],
    /// Gives `:amount` to the home, whose names are `w_name` and `d_name`.
    pub(crate) payment: &'static [&'static str],
    /// `c_credit` of the customer who pays.
    pub(crate) payer: &'static [&'static str],
    /// What is left to do where credit is good.
    pub(crate) good_credit: &'static [&'static str],
    /// Reads `c_data` where the new `:data` needs it.
    pub(crate) credit_data: &'static [&'static str],
    /// What is left to do with `:data` where credit is bad.
    pub(crate) bad_credit: &'static [&'static str],
    /// Appends to HISTORY.
    pub(crate) history: &'static str,
    /// A customer's balance.
    pub(crate) balance: &'static str,
    /// The last order `o` of the customer.
    pub(crate) last_order: &'static str,
    /// The order and its lines.
    pub(crate) order_status: &'static [&'static str],
    /// The oldest order `o` of a district that waits.
    pub(crate) oldest: &'static str,
    /// Delivers `:o` with `:carrier`.
    pub(crate) deliver: &'static [&'static str],
    /// Counts items of which fewer than `:least` are left.
    pub(crate) stock_level: &'static [&'static str],
}

/// What is known in a transaction, by name.
#[derive(Debug, Default)]
pub(crate) struct Values(HashMap<String, Value>);

impl Values {
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        match self.0.get_mut(name) {
            Some(known) => *known = value.into(),
            None => drop(self.0.insert(name.to_owned(), value.into())),
        }
    }

    pub(crate) fn extend(&mut self, columns: Columns) {
        columns.into_iter().for_each(|(name, value)| self.set(&name, value));
    }

    /// The value of a name; nothing where it is unknown, as a statement would see it.
    pub(crate) fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    pub(super) fn integer(&self, name: &str) -> i64 {
        match self.get(name) {
            Value::Integer(value) => *value,
            _ => 0,
        }
    }

    pub(super) fn real(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Real(value) => *value,
            _ => 0.0,
        }
    }

    pub(super) fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Value::Text(text) => text,
            _ => "",
        }
    }
}
