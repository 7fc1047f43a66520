//! The values known in a transaction: parameters of statements, and columns of the rows found.

use std::collections::HashMap;

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

/// The values known in a transaction, by name.
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
