//! TPC-C's statements for PostgreSQL, as sysbench-tpcc sends them, and a session that prepares each once.

use std::collections::HashMap;

use postgres::types::{ToSql, Type};
use postgres::{Client, Error, Row, Statement};

use crate::tpcc::{Columns, Sql, Statements, Value, Values, Variant};

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

/// What transactions use of a row; columns of other types are received and not read.
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
    const STATEMENTS: Statements = STATEMENTS;
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

const STATEMENTS: Statements = Statements {
    customers_by_name: &[
        "SELECT count(c_id) FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = :name",
        "SELECT c_id FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = :name ORDER BY c_first",
    ],
    new_order: &[
        "SELECT c_discount::float8, c_last, c_credit, w_tax::float8 FROM customer, warehouse \
         WHERE w_id = :w AND c_w_id = w_id AND c_d_id = :d AND c_id = :c",
        "SELECT d_next_o_id AS o, d_tax::float8 FROM district WHERE d_w_id = :w AND d_id = :d FOR UPDATE",
        "UPDATE district SET d_next_o_id = :o + 1 WHERE d_id = :d AND d_w_id = :w",
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
         VALUES (:o, :d, :w, :c, now(), :lines, :is_local)",
        "INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (:o, :d, :w)",
    ],
    item: "SELECT i_price::float8, i_name, i_data FROM item WHERE i_id = :item",
    stock: "SELECT s_quantity::int, s_data, s_dist_NN AS info FROM stock \
            WHERE s_i_id = :item AND s_w_id = :supplier FOR UPDATE",
    order_line: &[
        "UPDATE stock SET s_quantity = :left WHERE s_i_id = :item AND s_w_id = :supplier",
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
         ol_dist_info) VALUES (:o, :d, :w, :line, :item, :supplier, :wanted, :amount, :info)",
    ],
    payment: &[
        "UPDATE warehouse SET w_ytd = w_ytd + :amount::numeric WHERE w_id = :w",
        "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = :w",
        "UPDATE district SET d_ytd = d_ytd + :amount::numeric WHERE d_w_id = :w AND d_id = :d",
        "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = :w AND d_id = :d",
    ],
    payer: &["SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, \
              c_credit_lim, c_discount::float8, c_balance::float8, c_ytd_payment::float8, c_since FROM customer \
              WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c FOR UPDATE"],
    good_credit: &["UPDATE customer SET c_balance = :c_balance - :amount, c_ytd_payment = :c_ytd_payment + :amount \
                    WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c"],
    credit_data: &["SELECT c_data FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c"],
    bad_credit: &["UPDATE customer SET c_balance = :c_balance - :amount, c_ytd_payment = :c_ytd_payment + :amount, \
                   c_data = :data WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c"],
    history: "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
              VALUES (:c_d, :c_w, :c, :d, :w, now(), :amount, :data)",
    balance: "SELECT c_balance::float8, c_first, c_middle, c_last FROM customer \
              WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c",
    last_order: "SELECT o_id AS o, o_carrier_id, o_entry_d FROM orders \
                 WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c ORDER BY o_id DESC LIMIT 1",
    order_status: &["SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::float8, ol_delivery_d FROM order_line \
                     WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o"],
    oldest: "SELECT no_o_id AS o FROM new_orders WHERE no_d_id = :d AND no_w_id = :w \
             ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE",
    deliver: &[
        "DELETE FROM new_orders WHERE no_o_id = :o AND no_d_id = :d AND no_w_id = :w",
        "SELECT o_c_id AS c FROM orders WHERE o_id = :o AND o_d_id = :d AND o_w_id = :w",
        "UPDATE orders SET o_carrier_id = :carrier WHERE o_id = :o AND o_d_id = :d AND o_w_id = :w",
        "UPDATE order_line SET ol_delivery_d = now() WHERE ol_o_id = :o AND ol_d_id = :d AND ol_w_id = :w",
        "SELECT coalesce(sum(ol_amount), 0)::float8 AS amount FROM order_line \
         WHERE ol_o_id = :o AND ol_d_id = :d AND ol_w_id = :w",
        "UPDATE customer SET c_balance = c_balance + :amount::numeric, c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_id = :c AND c_d_id = :d AND c_w_id = :w",
    ],
    stock_level: &[
        "SELECT d_next_o_id AS next FROM district WHERE d_id = :d AND d_w_id = :w",
        "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = :w AND ol_d_id = :d \
         AND ol_o_id < :next AND ol_o_id >= :next - 20 AND s_w_id = :w AND s_i_id = ol_i_id AND s_quantity < :least",
    ],
};

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
