//! Rows, copied table by table within the transaction that makes the tables.

use std::fmt::Write as _;
use std::io::Write as _;

use postgres::{Client, Error, Transaction};

use super::sql::PostgresSession;
use crate::tpcc::{
    CUSTOMER, DISTRICT, DISTRICTS, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, RowSource, STOCK, Scale, Source, Sql,
    Table, Value, WAREHOUSE,
};

/// Bytes that are handed over at once.
const PIECE: usize = 1 << 16;

pub(super) fn load(client: &mut Client, scale: Scale, fill_factor: u32, source: &mut Source) -> Result<(), Error> {
    let mut work = client.transaction()?;
    let fill = format!("WITH (fillfactor = {fill_factor});");
    work.batch_execute(&include_str!("schema.sql").replace("FILL;", &fill))?;
    let mut rows = RowSource { scale, variant: PostgresSession::VARIANT, source };
    let warehouses = || 1..=scale.warehouses;
    copy(&mut work, &ITEM, (1..=scale.items).map(|item| rows.item(item)))?;
    copy(&mut work, &WAREHOUSE, warehouses().map(|warehouse| rows.warehouse(warehouse)))?;
    copy(&mut work, &DISTRICT, districts(scale).map(|place| rows.district(place)))?;
    copy(&mut work, &CUSTOMER, keys(scale).map(|key| rows.customer(key)))?;
    copy(&mut work, &HISTORY, keys(scale).map(|key| rows.history(key)))?;
    let stock = warehouses().flat_map(|warehouse| (1..=scale.items).map(move |item| (warehouse, item)));
    copy(&mut work, &STOCK, stock.map(|key| rows.stock(key)))?;
    // Both tables have to agree on how many lines an order has.
    let lines: Vec<u32> = keys(scale).map(|_| rows.source.uniform(5, 15)).collect();
    let mut customers = Vec::new();
    let order = |(key, &lines): ((u32, u32, u32), &u32)| {
        if key.2 == 1 {
            customers = rows.source.permutation(scale.customers);
        }
        rows.order(key, customers.pop().unwrap_or(key.2), Some(lines)).0
    };
    copy(&mut work, &ORDERS, keys(scale).zip(&lines).map(order))?;
    let waiting = keys(scale).filter(|key| !scale.is_delivered(key.2));
    let new_orders = Table { name: "new_orders", ..NEW_ORDER };
    copy(&mut work, &new_orders, waiting.map(|(w, d, o)| [w, d, o].map(Value::from).to_vec()))?;
    let lines = keys(scale).zip(&lines).flat_map(|(key, &lines)| (1..=lines).map(move |line| (key, line)));
    copy(&mut work, &ORDER_LINE, lines.map(|(key, line)| rows.order_line(key, line)))?;
    work.batch_execute(include_str!("indexes.sql"))?;
    work.commit()?;
    client.batch_execute("ANALYZE")
}

fn districts(scale: Scale) -> impl Iterator<Item = (u32, u32)> {
    (1..=scale.warehouses).flat_map(|warehouse| (1..=DISTRICTS).map(move |district| (warehouse, district)))
}

/// Warehouse, district and number of every customer or order.
fn keys(scale: Scale) -> impl Iterator<Item = (u32, u32, u32)> {
    districts(scale).flat_map(move |(w, d)| (1..=scale.customers).map(move |number| (w, d, number)))
}

/// `FREEZE`: no later reader has to mark the rows as old, which would write every page once more.
fn copy(work: &mut Transaction<'_>, table: &Table, rows: impl Iterator<Item = Vec<Value>>) -> Result<(), Error> {
    let mut to = work.copy_in(&format!("COPY {} ({}) FROM STDIN WITH (FREEZE)", table.name, table.columns))?;
    let mut text = String::with_capacity(2 * PIECE);
    for row in rows {
        line(&mut text, &row);
        if text.len() >= PIECE {
            // If the server refused the data, the end of the copy returns the reason.
            if to.write_all(text.as_bytes()).is_err() {
                break;
            }
            text.clear();
        }
    }
    let _ = to.write_all(text.as_bytes());
    to.finish().map(drop)
}

/// A line of `COPY`'s text format. The tables' fractions have two digits.
fn line(text: &mut String, row: &[Value]) {
    for (at, value) in row.iter().enumerate() {
        let tab = if at == 0 { "" } else { "\t" };
        // A String takes all that is written to it.
        let _ = match value {
            Value::Null => write!(text, "{tab}\\N"),
            Value::Integer(value) => write!(text, "{tab}{value}"),
            Value::Real(value) => write!(text, "{tab}{value:.2}"),
            Value::Text(value) => write!(text, "{tab}{value}"),
        };
    }
    text.push('\n');
}
