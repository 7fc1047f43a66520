//! TPC-C's statements for SQLite, and a connection that runs them, each prepared once.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Error, Result, Row, ToSql};

use crate::tpcc::{Columns, Sql, Value, Values, Variant};

/// A connection.
pub(super) struct SqliteSession<'a>(pub(super) &'a Connection);

impl ToSql for Value {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl SqliteSession<'_> {
    /// A statement with its parameters.
    fn bound(&self, sql: &str, values: &Values) -> Result<CachedStatement<'_>> {
        let mut statement = self.0.prepare_cached(sql)?;
        for at in 1..=statement.parameter_count() {
            let value =
                statement.parameter_name(at).map_or(&Value::Null, |name| values.get(name.trim_start_matches(':')));
            statement.raw_bind_parameter(at, value)?;
        }
        Ok(statement)
    }
}

fn columns(row: &Row<'_>) -> Result<Columns> {
    let statement = row.as_ref();
    let column = |at| {
        let value = match row.get_ref(at)? {
            ValueRef::Integer(value) => Value::Integer(value),
            ValueRef::Real(value) => Value::Real(value),
            ValueRef::Text(_) => Value::Text(row.get(at)?),
            ValueRef::Null | ValueRef::Blob(_) => Value::Null,
        };
        Ok((statement.column_name(at)?.to_owned(), value))
    };
    (0..statement.column_count()).map(column).collect()
}

impl Sql for SqliteSession<'_> {
    type Error = Error;
    const STATEMENTS: &'static str = include_str!("statements.sql");
    const VARIANT: Variant = Variant::Specification;

    fn begin(&mut self, is_writing: bool) -> Result<()> {
        let sql = if is_writing { "BEGIN IMMEDIATE" } else { "BEGIN" };
        self.0.prepare_cached(sql)?.execute(()).map(drop)
    }

    fn commit(&mut self) -> Result<()> {
        self.0.prepare_cached("COMMIT")?.execute(()).map(drop)
    }

    fn rollback(&mut self) -> Result<()> {
        self.0.prepare_cached("ROLLBACK")?.execute(()).map(drop)
    }

    fn execute(&mut self, sql: &str, values: &Values) -> Result<Columns> {
        let mut statement = self.bound(sql, values)?;
        if statement.column_count() == 0 {
            return statement.raw_execute().map(|_| Columns::new());
        }
        statement.raw_query().next()?.map_or(Err(Error::QueryReturnedNoRows), columns)
    }

    fn query(&mut self, sql: &str, values: &Values) -> Result<Vec<Columns>> {
        let mut statement = self.bound(sql, values)?;
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(columns(row)?);
        }
        Ok(found)
    }
}
