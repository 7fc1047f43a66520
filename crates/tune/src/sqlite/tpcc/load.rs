//! Rows, inserted warehouse by warehouse and district by district.

use rusqlite::{Connection, Result, params_from_iter};

use super::sql::SqliteSession;
use crate::tpcc::{
    CUSTOMER, DISTRICT, DISTRICTS, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, RowSource, STOCK, Scale, Source, Sql,
    Table, Value, WAREHOUSE,
};

/// Loads everything. `told` is called with the progress, 0 to 1, and may stop it.
pub(super) fn load<E: From<rusqlite::Error>>(
    db: &Connection,
    scale: Scale,
    source: &mut Source,
    told: &mut dyn FnMut(f64) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    db.execute_batch(include_str!("schema.sql"))?;
    let mut rows = RowSource { scale, variant: SqliteSession::VARIANT, source };
    (1..=scale.items).try_for_each(|item| insert(db, &ITEM, &rows.item(item)))?;
    for warehouse in 1..=scale.warehouses {
        let share = |part: f64| (f64::from(warehouse - 1) + part) / f64::from(scale.warehouses);
        told(share(0.0))?;
        insert(db, &WAREHOUSE, &rows.warehouse(warehouse))?;
        (1..=scale.items).try_for_each(|item| insert(db, &STOCK, &rows.stock((warehouse, item))))?;
        for district in 1..=DISTRICTS {
            told(share(0.3 + 0.7 * f64::from(district - 1) / f64::from(DISTRICTS)))?;
            self::district(db, &mut rows, (warehouse, district))?;
        }
    }
    Ok(())
}

/// A district with its customers, and as many orders, one each in random order.
fn district(db: &Connection, rows: &mut RowSource<'_>, place: (u32, u32)) -> Result<()> {
    insert(db, &DISTRICT, &rows.district(place))?;
    let key = |number| (place.0, place.1, number);
    for customer in 1..=rows.scale.customers {
        insert(db, &CUSTOMER, &rows.customer(key(customer)))?;
        insert(db, &HISTORY, &rows.history(key(customer)))?;
    }
    for (order, customer) in (1..).zip(rows.source.permutation(rows.scale.customers)) {
        let (row, lines) = rows.order(key(order), customer, None);
        insert(db, &ORDERS, &row)?;
        if !rows.scale.is_delivered(order) {
            insert(db, &NEW_ORDER, &[place.0, place.1, order].map(Value::from))?;
        }
        (1..=lines).try_for_each(|line| insert(db, &ORDER_LINE, &rows.order_line(key(order), line)))?;
    }
    Ok(())
}

fn insert(db: &Connection, table: &Table, row: &[Value]) -> Result<()> {
    let places = vec!["?"; row.len()].join(", ");
    let sql = format!("INSERT INTO {} ({}) VALUES ({places})", table.name, table.columns);
    db.prepare_cached(&sql)?.execute(params_from_iter(row)).map(drop)
}
