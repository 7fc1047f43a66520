//! TPC-C's statements for PostgreSQL, as sysbench-tpcc sends them, and a session that prepares each once.

use std::collections::HashMap;

use postgres::types::{ToSql, Type};
use postgres::{Client, Error, Row, Statement};

use crate::tpcc::{Columns, Sql, Value, Values, Variant};

/// A session.
pub(super) struct PostgresSession {
    client: Client,
    /// By text: the prepared statement and the names of its parameters.
    prepared: HashMap<String, (Statement, Vec<String>)>,
}

type Parameter = Box<dyn ToSql + Sync>;

impl PostgresSession {
    pub(super) fn new(client: Client) -> Self {
        Self { client, prepared: HashMap::new() }
    }

    /// A statement with its parameters.
    fn bound(&mut self, sql: &str, values: &Values) -> Result<(Statement, Vec<Parameter>), Error> {
        if !self.prepared.contains_key(sql) {
            let (numbered, names) = numbered(sql, values);
            let statement = self.client.prepare(&numbered)?;
            self.prepared.insert(sql.to_owned(), (statement, names));
        }
        let (statement, names) = &self.prepared[sql];
        let parameter = |name: &String| -> Parameter {
            match values.get(name) {
                Value::Null => Box::new(None::<i32>),
                Value::Integer(value) => Box::new(i32::try_from(*value).unwrap_or(i32::MAX)),
                Value::Real(value) => Box::new(*value),
                Value::Text(text) => Box::new(text.clone()),
            }
        };
        Ok((statement.clone(), names.iter().map(parameter).collect()))
    }
}

/// A statement with `$1::int` for `:name`, and the names in the order of their numbers.
fn numbered(sql: &str, values: &Values) -> (String, Vec<String>) {
    let (mut text, mut names) = (String::new(), Vec::<String>::new());
    let mut rest = sql;
    while let Some(at) = rest.find(':') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        text.push_str(before);
        // `::` is a cast.
        if let Some(cast) = after.strip_prefix(':') {
            text.push_str("::");
            rest = cast;
            continue;
        }
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, following) = after.split_at(end);
        let number = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        let of = match values.get(name) {
            Value::Real(_) => "float8",
            Value::Text(_) => "text",
            Value::Integer(_) | Value::Null => "int",
        };
        text.push_str(&format!("${}::{of}", number + 1));
        rest = following;
    }
    (text + rest, names)
}

/// The columns of a row that transactions use; those of other types are received but not parsed.
fn columns(row: &Row) -> Columns {
    let column = |(at, column): (usize, &postgres::Column)| {
        let value = match *column.type_() {
            Type::INT2 => row.get::<_, Option<i16>>(at).map(i32::from).into(),
            Type::INT4 => row.get::<_, Option<i32>>(at).into(),
            Type::INT8 => row.get::<_, Option<i64>>(at).into(),
            Type::FLOAT8 => row.get::<_, Option<f64>>(at).into(),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR => row.get::<_, Option<String>>(at).into(),
            _ => Value::Null,
        };
        (column.name().to_owned(), value)
    };
    row.columns().iter().enumerate().map(column).collect()
}

fn borrowed(parameters: &[Parameter]) -> Vec<&(dyn ToSql + Sync)> {
    parameters.iter().map(AsRef::as_ref).collect()
}

impl Sql for PostgresSession {
    type Error = Error;
    const STATEMENTS: &'static str = include_str!("statements.sql");
    const VARIANT: Variant = Variant::Sysbench;

    fn begin(&mut self, _: bool) -> Result<(), Error> {
        self.client.batch_execute("BEGIN")
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.client.batch_execute("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), Error> {
        self.client.batch_execute("ROLLBACK")
    }

    fn execute(&mut self, sql: &str, values: &Values) -> Result<Columns, Error> {
        let (statement, parameters) = self.bound(sql, values)?;
        match statement.columns() {
            [] => self.client.execute(&statement, &borrowed(&parameters)).map(|_| Columns::new()),
            _ => self.client.query_one(&statement, &borrowed(&parameters)).map(|row| columns(&row)),
        }
    }

    fn query(&mut self, sql: &str, values: &Values) -> Result<Vec<Columns>, Error> {
        let (statement, parameters) = self.bound(sql, values)?;
        Ok(self.client.query(&statement, &borrowed(&parameters))?.iter().map(columns).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_parameters_get_numbers_and_casts_stay() {
        let mut values = Values::default();
        values.set("amount", 1.5);
        values.set("w", 1);
        let (sql, names) = numbered("SET y = y + :amount::numeric, z = :w WHERE w = :w AND n::int = :amount", &values);
        assert_eq!(sql, "SET y = y + $1::float8::numeric, z = $2::int WHERE w = $2::int AND n::int = $1::float8");
        assert_eq!(names, ["amount", "w"]);
    }
}
