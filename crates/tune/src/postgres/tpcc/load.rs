//! Rows, copied into tables within the transaction that makes them.

use std::fmt::Write as _;
use std::io::Write as _;

use postgres::{Client, Error, Transaction};

use super::PostgresTpcc;
use crate::tpcc::{DISTRICTS, Source, Uneven, last_name};

/// Bytes that are handed over at once.
const PIECE: usize = 1 << 16;

pub(super) fn load(client: &mut Client, tables: &PostgresTpcc, source: &mut Source) -> Result<(), Error> {
    let mut work = client.transaction()?;
    let fill = format!("WITH (fillfactor = {})", tables.fill_factor);
    work.batch_execute(&include_str!("schema.sql").replace("FILL;", &format!("{fill};")))?;
    let mut fill = |table: &str, rows: &mut dyn FnMut(&mut Rows)| copy(&mut work, table, rows);
    fill("item", &mut |rows| items(rows, tables, source))?;
    fill("warehouse", &mut |rows| warehouses(rows, tables, source))?;
    fill("district", &mut |rows| districts(rows, tables, source))?;
    fill("customer", &mut |rows| customers(rows, tables, source))?;
    fill("history", &mut |rows| history(rows, tables, source))?;
    fill("stock", &mut |rows| stock(rows, tables, source))?;
    // Both tables have to agree on how many lines an order has.
    let lines: Vec<u32> = (0..tables.orders()).map(|_| source.uniform(5, 15)).collect();
    fill("orders", &mut |rows| orders(rows, tables, source, &lines))?;
    fill("new_orders", &mut |rows| new_orders(rows, tables))?;
    fill("order_line", &mut |rows| order_lines(rows, tables, source, &lines))?;
    work.batch_execute(include_str!("indexes.sql"))?;
    work.commit()?;
    client.batch_execute("ANALYZE")
}

impl PostgresTpcc {
    /// Of all districts.
    fn orders(&self) -> u32 {
        self.warehouses * DISTRICTS * self.customers
    }

    /// Warehouse, district and number of every customer or order.
    fn keys(&self) -> impl Iterator<Item = (u32, u32, u32)> + use<> {
        let (warehouses, customers) = (self.warehouses, self.customers);
        let of = move |warehouse| (1..=DISTRICTS).map(move |district| (warehouse, district));
        let districts = (1..=warehouses).flat_map(of);
        districts
            .flat_map(move |(warehouse, district)| (1..=customers).map(move |number| (warehouse, district, number)))
    }

    /// Whether an order was delivered before the first transaction: all but the last 30 %.
    fn is_delivered(&self, order: u32) -> bool {
        order <= self.customers - self.customers * 3 / 10
    }
}

/// Lines of `COPY`'s text format, handed over in pieces.
struct Rows<'a, 'b> {
    text: String,
    to: &'a mut postgres::CopyInWriter<'b>,
    failed: Option<std::io::Error>,
}

impl Rows<'_, '_> {
    fn row(&mut self, row: std::fmt::Arguments<'_>) {
        // A String takes all that is written to it.
        let _ = self.text.write_fmt(row);
        self.text.push('\n');
        if self.text.len() >= PIECE {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if self.failed.is_none() {
            self.failed = self.to.write_all(self.text.as_bytes()).err();
        }
        self.text.clear();
    }
}

/// `FREEZE`: no later reader has to mark the rows as old, which would write every page once more.
fn copy(work: &mut Transaction<'_>, table: &str, rows: &mut dyn FnMut(&mut Rows<'_, '_>)) -> Result<(), Error> {
    let mut to = work.copy_in(&format!("COPY {table} FROM STDIN WITH (FREEZE)"))?;
    let mut writer = Rows { text: String::with_capacity(2 * PIECE), to: &mut to, failed: None };
    rows(&mut writer);
    writer.hand_over();
    // Where the server has refused, it tells why when it is asked for the end.
    to.finish().map(drop)
}

/// One letter, again and again, as sysbench-tpcc fills columns that nobody reads.
fn same(source: &mut Source, shortest: u32, longest: u32) -> String {
    let count = source.uniform(shortest, longest) as usize;
    source.text(1, 1).repeat(count)
}

fn mixed(source: &mut Source, before: &str, count: u32) -> String {
    format!("{before}{}", source.text(count, count))
}

fn address(source: &mut Source) -> String {
    let street_1 = mixed(source, "street1-", 10);
    let street_2 = mixed(source, "street2-", 10);
    let city = mixed(source, "city-", 10);
    let state = source.text(2, 2).to_owned();
    format!("{street_1}\t{street_2}\t{city}\t{state}\tzip-{:05}", source.uniform(0, 99_999))
}

fn share(source: &mut Source, most: u32) -> f64 {
    f64::from(source.uniform(0, most * 100)) / 10_000.0
}

fn items(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc, source: &mut Source) {
    for item in 1..=tables.items {
        let (image, price) = (source.uniform(1, 10_000), f64::from(source.uniform(100, 10_099)) / 100.0);
        let name: String = format!("item-{image}-{price:.6}-{}", source.text(5, 5)).chars().take(24).collect();
        let data: String = format!("data-{name}-{}", source.text(5, 5)).chars().take(50).collect();
        // The column has five digits, two of them behind the point.
        rows.row(format_args!("{item}\t{image}\t{name}\t{price:.2}\t{data}"));
    }
}

fn warehouses(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc, source: &mut Source) {
    for warehouse in 1..=tables.warehouses {
        let (name, address, tax) = (mixed(source, "name-", 5), address(source), share(source, 20));
        rows.row(format_args!("{warehouse}\t{name}\t{address}\t{tax:.2}\t300000"));
    }
}

fn districts(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc, source: &mut Source) {
    let next = tables.customers + 1;
    for (warehouse, district) in (1..=tables.warehouses).flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d))) {
        let (name, address, tax) = (mixed(source, "name-", 5), address(source), share(source, 20));
        rows.row(format_args!("{district}\t{warehouse}\t{name}\t{address}\t{tax:.2}\t30000\t{next}"));
    }
}

fn customers(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc, source: &mut Source) {
    let names = tables.names();
    for (warehouse, district, customer) in tables.keys() {
        let name = match customer <= names {
            true => customer - 1,
            false => source.uneven(Uneven::LastName, 0, names - 1),
        };
        let letters = source.uniform(2, 10);
        let (first, last, address) = (mixed(source, "first-", letters), last_name(name), address(source));
        let phone = format!("{:08}{:08}", source.uniform(0, 99_999_999), source.uniform(0, 99_999_999));
        let credit = if source.happens(10) { "BC" } else { "GC" };
        let (discount, data) = (share(source, 50), same(source, 300, 500));
        rows.row(format_args!(
            "{customer}\t{district}\t{warehouse}\t{first}\tOE\t{last}\t{address}\t{phone}\tnow\t{credit}\t50000\t\
             {discount:.2}\t-10\t10\t1\t0\t{data}"
        ));
    }
}

fn history(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc, source: &mut Source) {
    for (warehouse, district, customer) in tables.keys() {
        let data = same(source, 12, 24);
        rows.row(format_args!("{customer}\t{district}\t{warehouse}\t{district}\t{warehouse}\tnow\t10\t{data}"));
    }
}

fn stock(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc, source: &mut Source) {
    for (warehouse, item) in (1..=tables.warehouses).flat_map(|w| (1..=tables.items).map(move |item| (w, item))) {
        let quantity = source.uniform(10, 100);
        let districts: Vec<String> = (0..DISTRICTS).map(|_| same(source, 24, 24)).collect();
        let (districts, data) = (districts.join("\t"), same(source, 26, 50));
        rows.row(format_args!("{item}\t{warehouse}\t{quantity}\t{districts}\t0\t0\t0\t{data}"));
    }
}

/// As many as customers, one each in random order.
fn orders(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc, source: &mut Source, lines: &[u32]) {
    let mut customers = Vec::new();
    for ((warehouse, district, order), lines) in tables.keys().zip(lines) {
        if order == 1 {
            customers = source.permutation(tables.customers);
        }
        let customer = customers.pop().unwrap_or(order);
        let carrier = match tables.is_delivered(order) {
            true => source.uniform(1, 10).to_string(),
            false => "\\N".to_owned(),
        };
        rows.row(format_args!("{order}\t{district}\t{warehouse}\t{customer}\tnow\t{carrier}\t{lines}\t1"));
    }
}

fn new_orders(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc) {
    for (warehouse, district, order) in tables.keys().filter(|key| !tables.is_delivered(key.2)) {
        rows.row(format_args!("{order}\t{district}\t{warehouse}"));
    }
}

fn order_lines(rows: &mut Rows<'_, '_>, tables: &PostgresTpcc, source: &mut Source, lines: &[u32]) {
    for ((warehouse, district, order), &lines) in tables.keys().zip(lines) {
        for line in 1..=lines {
            let (item, info) = (source.uniform(1, tables.items), same(source, 24, 24));
            let (delivered, amount) = match tables.is_delivered(order) {
                true => ("now", 0.0),
                false => ("\\N", f64::from(source.uniform(1, 999_999)) / 100.0),
            };
            rows.row(format_args!(
                "{order}\t{district}\t{warehouse}\t{line}\t{item}\t{warehouse}\t{delivered}\t5\t{amount:.2}\t{info}"
            ));
        }
    }
}
