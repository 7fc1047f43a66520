//! The tables as TPC-C wants them before the first transaction (clause 4.3.3).

use rusqlite::{Connection, Result, params};

use super::TpccWorkload;
use crate::tpcc::{DISTRICTS, Source, Uneven, last_name};

/// Dates are counted in steps of the run; what was loaded happened at its start.
const AT_LOAD: u32 = 0;

/// Loads everything. `told` hears how far it is, 0 to 1, and may end it.
pub(super) fn load<E: From<rusqlite::Error>>(
    db: &Connection,
    workload: &TpccWorkload,
    source: &mut Source,
    told: &mut dyn FnMut(f64) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    db.execute_batch(include_str!("schema.sql"))?;
    items(db, workload, source)?;
    for warehouse in 1..=workload.warehouses {
        let share = |part: f64| (f64::from(warehouse - 1) + part) / f64::from(workload.warehouses);
        told(share(0.0))?;
        self::warehouse(db, warehouse, source)?;
        stock(db, workload, warehouse, source)?;
        for district in 1..=DISTRICTS {
            told(share(0.3 + 0.7 * f64::from(district - 1) / f64::from(DISTRICTS)))?;
            self::district(db, workload, (warehouse, district), source)?;
            customers(db, workload, (warehouse, district), source)?;
            orders(db, workload, (warehouse, district), source)?;
        }
    }
    Ok(())
}

fn zip(source: &mut Source) -> String {
    format!("{:04}11111", source.uniform(0, 9999))
}

fn items(db: &Connection, workload: &TpccWorkload, source: &mut Source) -> Result<()> {
    let mut insert = db.prepare("INSERT INTO item VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for item in 1..=workload.items() {
        let (image, price) = (source.uniform(1, 10_000), f64::from(source.uniform(100, 10_000)) / 100.0);
        let name = source.text(14, 24).to_owned();
        insert.execute(params![item, image, name, price, source.data()])?;
    }
    Ok(())
}

fn address(source: &mut Source) -> (String, String, String, String) {
    let mut text = |shortest, longest| source.text(shortest, longest).to_owned();
    (text(10, 20), text(10, 20), text(10, 20), text(2, 2))
}

fn warehouse(db: &Connection, warehouse: u32, source: &mut Source) -> Result<()> {
    let (name, tax) = (source.text(6, 10).to_owned(), f64::from(source.uniform(0, 2000)) / 10_000.0);
    let (street_1, street_2, city, state) = address(source);
    let sql = "INSERT INTO warehouse VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 300000)";
    db.execute(sql, params![warehouse, name, street_1, street_2, city, state, zip(source), tax]).map(drop)
}

fn stock(db: &Connection, workload: &TpccWorkload, warehouse: u32, source: &mut Source) -> Result<()> {
    let sql = "INSERT INTO stock VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 0, 0, 0, ?14)";
    let mut insert = db.prepare(sql)?;
    for item in 1..=workload.items() {
        let quantity = source.uniform(10, 100);
        let districts: Vec<String> = (0..DISTRICTS).map(|_| source.text(24, 24).to_owned()).collect();
        let [a, b, c, d, e, f, g, h, i, j] = districts.as_slice() else { continue };
        insert.execute(params![warehouse, item, quantity, a, b, c, d, e, f, g, h, i, j, source.data()])?;
    }
    Ok(())
}

fn district(
    db: &Connection,
    workload: &TpccWorkload,
    (warehouse, district): (u32, u32),
    source: &mut Source,
) -> Result<()> {
    let (name, tax) = (source.text(6, 10).to_owned(), f64::from(source.uniform(0, 2000)) / 10_000.0);
    let (street_1, street_2, city, state) = address(source);
    let sql = "INSERT INTO district VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 30000, ?10)";
    let next = workload.customers() + 1;
    db.execute(sql, params![warehouse, district, name, street_1, street_2, city, state, zip(source), tax, next])
        .map(drop)
}

fn customers(
    db: &Connection,
    workload: &TpccWorkload,
    (warehouse, district): (u32, u32),
    source: &mut Source,
) -> Result<()> {
    let sql = "INSERT INTO customer VALUES (?1, ?2, ?3, ?4, 'OE', ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 50000, ?14, \
               -10, 10, 1, 0, ?15)";
    let mut insert = db.prepare(sql)?;
    let mut history = db.prepare("INSERT INTO history VALUES (?1, ?2, ?3, ?2, ?3, ?4, 10, ?5)")?;
    let names = workload.names();
    for customer in 1..=workload.customers() {
        let name = match customer <= names {
            true => customer - 1,
            false => source.uneven(Uneven::LastName, 0, names - 1),
        };
        let first = source.text(8, 16).to_owned();
        let (street_1, street_2, city, state) = address(source);
        let (zip, phone) = (zip(source), format!("{:016}", source.uniform(0, 999_999_999)));
        let credit = if source.happens(10) { "BC" } else { "GC" };
        let discount = f64::from(source.uniform(0, 5000)) / 10_000.0;
        let data = source.text(300, 500).to_owned();
        insert.execute(params![
            warehouse,
            district,
            customer,
            first,
            last_name(name),
            street_1,
            street_2,
            city,
            state,
            zip,
            phone,
            AT_LOAD,
            credit,
            discount,
            data
        ])?;
        history.execute(params![customer, district, warehouse, AT_LOAD, source.text(12, 24)])?;
    }
    Ok(())
}

/// As many orders as customers, one each in random order; the last 30 % of them are not delivered.
fn orders(
    db: &Connection,
    workload: &TpccWorkload,
    (warehouse, district): (u32, u32),
    source: &mut Source,
) -> Result<()> {
    let mut order = db.prepare("INSERT INTO orders VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1)")?;
    let mut waiting = db.prepare("INSERT INTO new_order VALUES (?1, ?2, ?3)")?;
    let mut line = db.prepare("INSERT INTO order_line VALUES (?1, ?2, ?3, ?4, ?5, ?1, ?6, 5, ?7, ?8)")?;
    let undelivered_from = workload.customers() - workload.customers() * 3 / 10 + 1;
    for (number, customer) in (1..).zip(source.permutation(workload.customers())) {
        let is_delivered = number < undelivered_from;
        let (carrier, lines) = (is_delivered.then(|| source.uniform(1, 10)), source.uniform(5, 15));
        order.execute(params![warehouse, district, number, customer, AT_LOAD, carrier, lines])?;
        if !is_delivered {
            waiting.execute(params![warehouse, district, number])?;
        }
        for position in 1..=lines {
            let item = source.uniform(1, workload.items());
            let amount = if is_delivered { 0.0 } else { f64::from(source.uniform(1, 999_999)) / 100.0 };
            let delivered = is_delivered.then_some(AT_LOAD);
            let info = source.text(24, 24);
            line.execute(params![warehouse, district, number, position, item, delivered, amount, info])?;
        }
    }
    Ok(())
}
