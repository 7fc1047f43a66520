//! The five transactions, statement by statement as sysbench-tpcc sends them, each prepared once a session.

use std::collections::HashMap;

use postgres::types::ToSql;
use postgres::{Client, Error, Row, Statement};

use super::PostgresTpcc;
use crate::tpcc::{DISTRICTS, Source, TpccTransaction, Uneven, last_name};

/// A session.
pub(super) struct Terminal {
    client: Client,
    tables: PostgresTpcc,
    statements: HashMap<String, Statement>,
}

/// A customer by warehouse, district and number.
type Customer = (u32, u32, i32);

type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What the server takes for a number.
fn number(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// Numbers as parameters.
macro_rules! values {
    ($($value:expr),*) => { &[$(&$value as &(dyn ToSql + Sync)),*] };
}

impl Terminal {
    pub(super) fn new(client: Client, tables: PostgresTpcc) -> Self {
        Self { client, tables, statements: HashMap::new() }
    }

    /// Ends what could not go on.
    pub(super) fn undo(&mut self) -> Result<(), Error> {
        self.client.batch_execute("ROLLBACK")
    }

    pub(super) fn transact(&mut self, what: TpccTransaction, source: &mut Source) -> Result<(), Error> {
        self.client.batch_execute("BEGIN")?;
        let is_done = match what {
            TpccTransaction::NewOrder => self.new_order(source)?,
            TpccTransaction::Payment => self.payment(source).map(|()| true)?,
            TpccTransaction::OrderStatus => self.order_status(source).map(|()| true)?,
            TpccTransaction::Delivery => self.delivery(source).map(|()| true)?,
            TpccTransaction::StockLevel => self.stock_level(source).map(|()| true)?,
        };
        self.client.batch_execute(if is_done { "COMMIT" } else { "ROLLBACK" })
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement, Error> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn change(&mut self, sql: &str, values: Values<'_>) -> Result<u64, Error> {
        let statement = self.prepared(sql)?;
        self.client.execute(&statement, values)
    }

    fn rows(&mut self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql)?;
        self.client.query(&statement, values)
    }

    fn one(&mut self, sql: &str, values: Values<'_>) -> Result<Row, Error> {
        let statement = self.prepared(sql)?;
        self.client.query_one(&statement, values)
    }

    fn place(&self, source: &mut Source) -> (i32, i32) {
        (number(source.uniform(1, self.tables.warehouses)), number(source.uniform(1, DISTRICTS)))
    }

    /// Another warehouse, or the same where there is no other.
    fn other_warehouse(&self, source: &mut Source, home: i32) -> i32 {
        match self.tables.warehouses {
            1 => home,
            count => number((home.unsigned_abs() - 1 + source.uniform(1, count - 1)) % count + 1),
        }
    }

    /// A customer, 60 times of a hundred by last name: then the middle one of all that have it, by first name.
    fn customer(&mut self, source: &mut Source, (warehouse, district): (i32, i32)) -> Result<i32, Error> {
        if !source.happens(60) {
            return Ok(number(source.uneven(Uneven::Customer, 1, self.tables.customers)));
        }
        let name = last_name(source.uneven(Uneven::LastName, 0, self.tables.names() - 1));
        let by_name = "FROM customer WHERE c_w_id = $1::int AND c_d_id = $2::int AND c_last = $3::text";
        let values = values![warehouse, district, name];
        self.one(&format!("SELECT count(c_id) {by_name}"), values)?;
        let found = self.rows(&format!("SELECT c_id {by_name} ORDER BY c_first"), values)?;
        Ok(found.get(found.len() / 2).map_or(1, |row| row.get(0)))
    }

    /// Whether it is to be kept: one of a hundred names an item that there is not.
    fn new_order(&mut self, source: &mut Source) -> Result<bool, Error> {
        let (warehouse, district) = self.place(source);
        let customer = number(source.uneven(Uneven::Customer, 1, self.tables.customers));
        let (lines, is_undone) = (number(source.uniform(5, 15)), source.happens(1));
        let choose = |_| (number(source.uneven(Uneven::Item, 1, self.tables.items)), source.happens(1));
        let mut items: Vec<(i32, bool)> = (0..lines).map(choose).collect();
        if let Some(last) = items.last_mut().filter(|_| is_undone) {
            last.0 = -1;
        }
        let is_local = items.iter().all(|&(_, is_remote)| !is_remote);
        let sql = "SELECT c_discount::float8, c_last, c_credit, w_tax::float8 FROM customer, warehouse \
                   WHERE w_id = $1::int AND c_w_id = w_id AND c_d_id = $2::int AND c_id = $3::int";
        let row = self.one(sql, values![warehouse, district, customer])?;
        let (discount, warehouse_tax): (f64, f64) = (row.get(0), row.get(3));
        let sql =
            "SELECT d_next_o_id, d_tax::float8 FROM district WHERE d_w_id = $1::int AND d_id = $2::int FOR UPDATE";
        let row = self.one(sql, values![warehouse, district])?;
        let (order, tax): (i32, f64) = (row.get(0), row.get(1));
        let sql = "UPDATE district SET d_next_o_id = $1::int WHERE d_id = $2::int AND d_w_id = $3::int";
        self.change(sql, values![order + 1, district, warehouse])?;
        let sql = "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                   VALUES ($1::int, $2::int, $3::int, $4::int, now(), $5::int, $6::int)";
        self.change(sql, values![order, district, warehouse, customer, lines, i32::from(is_local)])?;
        let sql = "INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES ($1::int, $2::int, $3::int)";
        self.change(sql, values![order, district, warehouse])?;
        let price = (1.0 + warehouse_tax + tax) * (1.0 - discount);
        for (line, (item, is_remote)) in (1..).zip(items) {
            let supplier = if is_remote { self.other_warehouse(source, warehouse) } else { warehouse };
            let wanted = number(source.uniform(1, 10));
            if !self.order_line((warehouse, district, order), line, (item, supplier, wanted), price)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether there is such an item.
    fn order_line(
        &mut self,
        (warehouse, district, order): (i32, i32, i32),
        line: i32,
        (item, supplier, wanted): (i32, i32, i32),
        factor: f64,
    ) -> Result<bool, Error> {
        let sql = "SELECT i_price::float8, i_name, i_data FROM item WHERE i_id = $1::int";
        let Some(price) = self.rows(sql, values![item])?.first().map(|row| row.get::<_, f64>(0)) else {
            return Ok(false);
        };
        let sql = format!(
            "SELECT s_quantity::int, s_data, s_dist_{district:02} FROM stock \
             WHERE s_i_id = $1::int AND s_w_id = $2::int FOR UPDATE"
        );
        let row = self.one(&sql, values![item, supplier])?;
        let (there, info): (i32, String) = (row.get(0), row.get(2));
        let left = if there > wanted { there - wanted } else { there - wanted + 91 };
        let sql = "UPDATE stock SET s_quantity = $1::int WHERE s_i_id = $2::int AND s_w_id = $3::int";
        self.change(sql, values![left, item, supplier])?;
        let amount = f64::from(wanted) * price * factor;
        let sql = "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                   ol_amount, ol_dist_info) VALUES ($1::int, $2::int, $3::int, $4::int, $5::int, $6::int, $7::int, \
                   $8::float8, $9::text)";
        self.change(sql, values![order, district, warehouse, line, item, supplier, wanted, amount, info])?;
        Ok(true)
    }

    fn payment(&mut self, source: &mut Source) -> Result<(), Error> {
        let (warehouse, district) = self.place(source);
        let amount = f64::from(source.uniform(1, 5_000));
        let (of_warehouse, of_district) = match source.happens(85) {
            true => (warehouse, district),
            false => (self.other_warehouse(source, warehouse), number(source.uniform(1, DISTRICTS))),
        };
        let sql = "UPDATE warehouse SET w_ytd = w_ytd + $1::float8::numeric WHERE w_id = $2::int";
        self.change(sql, values![amount, warehouse])?;
        let sql = "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = $1::int";
        let home: String = self.one(sql, values![warehouse])?.get(5);
        let sql = "UPDATE district SET d_ytd = d_ytd + $1::float8::numeric WHERE d_w_id = $2::int AND d_id = $3::int";
        self.change(sql, values![amount, warehouse, district])?;
        let sql = "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district \
                   WHERE d_w_id = $1::int AND d_id = $2::int";
        let place: String = self.one(sql, values![warehouse, district])?.get(5);
        let customer = self.customer(source, (of_warehouse, of_district))?;
        self.pay((of_warehouse.unsigned_abs(), of_district.unsigned_abs(), customer), amount, (warehouse, district))?;
        let sql = "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES \
                   ($1::int, $2::int, $3::int, $4::int, $5::int, now(), $6::float8, $7::text)";
        let words: String = format!("{home:>10} {place:>10}    ").chars().take(24).collect();
        self.change(sql, values![of_district, of_warehouse, customer, district, warehouse, amount, words])?;
        Ok(())
    }

    fn pay(&mut self, (warehouse, district, customer): Customer, amount: f64, at: (i32, i32)) -> Result<(), Error> {
        let key = values![number(warehouse), number(district), customer];
        let sql = "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, \
                   c_credit_lim, c_discount::float8, c_balance::float8, c_ytd_payment::float8, c_since FROM customer \
                   WHERE c_w_id = $1::int AND c_d_id = $2::int AND c_id = $3::int FOR UPDATE";
        let row = self.one(sql, key)?;
        let (credit, balance, paid): (String, f64, f64) = (row.get(9), row.get(12), row.get(13));
        let (balance, paid) = (balance - amount, paid + amount);
        let data = match credit.as_str() {
            "BC" => {
                let sql = "SELECT c_data FROM customer WHERE c_w_id = $1::int AND c_d_id = $2::int AND c_id = $3::int";
                let data: String = self.one(sql, key)?.get(0);
                let more =
                    format!("| {customer:4} {district:2} {warehouse:4} {:2} {:4} ${amount:7.2} {data}", at.1, at.0);
                Some(more.chars().take(500).collect::<String>())
            }
            _ => None,
        };
        let (w, d) = (number(warehouse), number(district));
        let set = "UPDATE customer SET c_balance = $4::float8, c_ytd_payment = $5::float8";
        let of = "WHERE c_w_id = $1::int AND c_d_id = $2::int AND c_id = $3::int";
        match data {
            Some(data) => {
                let sql = format!("{set}, c_data = $6::text {of}");
                self.change(&sql, values![w, d, customer, balance, paid, data])?;
            }
            None => {
                self.change(&format!("{set} {of}"), values![w, d, customer, balance, paid])?;
            }
        }
        Ok(())
    }

    fn order_status(&mut self, source: &mut Source) -> Result<(), Error> {
        let (warehouse, district) = self.place(source);
        let customer = self.customer(source, (warehouse, district))?;
        let sql = "SELECT c_balance::float8, c_first, c_middle, c_last FROM customer \
                   WHERE c_w_id = $1::int AND c_d_id = $2::int AND c_id = $3::int";
        self.one(sql, values![warehouse, district, customer])?;
        let sql = "SELECT o_id, o_carrier_id, o_entry_d FROM orders \
                   WHERE o_w_id = $1::int AND o_d_id = $2::int AND o_c_id = $3::int ORDER BY o_id DESC LIMIT 1";
        let last = self.rows(sql, values![warehouse, district, customer])?;
        let Some(order) = last.first().map(|row| row.get::<_, i32>(0)) else { return Ok(()) };
        let sql = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::float8, ol_delivery_d FROM order_line \
                   WHERE ol_w_id = $1::int AND ol_d_id = $2::int AND ol_o_id = $3::int";
        self.rows(sql, values![warehouse, district, order]).map(drop)
    }

    /// The oldest order that waits in each district of a warehouse.
    fn delivery(&mut self, source: &mut Source) -> Result<(), Error> {
        let (warehouse, _) = self.place(source);
        let carrier = number(source.uniform(1, 10));
        for district in 1..=number(DISTRICTS) {
            let sql = "SELECT no_o_id FROM new_orders WHERE no_d_id = $1::int AND no_w_id = $2::int \
                       ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE";
            let oldest = self.rows(sql, values![district, warehouse])?;
            if let Some(order) = oldest.first().map(|row| row.get::<_, i32>(0)) {
                self.deliver((warehouse, district, order), carrier)?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, (warehouse, district, order): (i32, i32, i32), carrier: i32) -> Result<(), Error> {
        let key = values![order, district, warehouse];
        let sql = "DELETE FROM new_orders WHERE no_o_id = $1::int AND no_d_id = $2::int AND no_w_id = $3::int";
        self.change(sql, key)?;
        let sql = "SELECT o_c_id FROM orders WHERE o_id = $1::int AND o_d_id = $2::int AND o_w_id = $3::int";
        let customer: i32 = self.one(sql, key)?.get(0);
        let sql =
            "UPDATE orders SET o_carrier_id = $4::int WHERE o_id = $1::int AND o_d_id = $2::int AND o_w_id = $3::int";
        self.change(sql, values![order, district, warehouse, carrier])?;
        let sql = "UPDATE order_line SET ol_delivery_d = now() \
                   WHERE ol_o_id = $1::int AND ol_d_id = $2::int AND ol_w_id = $3::int";
        self.change(sql, key)?;
        let sql = "SELECT coalesce(sum(ol_amount), 0)::float8 FROM order_line \
                   WHERE ol_o_id = $1::int AND ol_d_id = $2::int AND ol_w_id = $3::int";
        let amount: f64 = self.one(sql, key)?.get(0);
        let sql = "UPDATE customer SET c_balance = c_balance + $1::float8::numeric, c_delivery_cnt = c_delivery_cnt + 1 \
                   WHERE c_id = $2::int AND c_d_id = $3::int AND c_w_id = $4::int";
        self.change(sql, values![amount, customer, district, warehouse]).map(drop)
    }

    /// Of the items of a district's last 20 orders, those of which few are left.
    fn stock_level(&mut self, source: &mut Source) -> Result<(), Error> {
        let (warehouse, district) = self.place(source);
        let least = number(source.uniform(10, 20));
        let sql = "SELECT d_next_o_id FROM district WHERE d_id = $1::int AND d_w_id = $2::int";
        let next: i32 = self.one(sql, values![district, warehouse])?.get(0);
        let sql = "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = $1::int AND ol_d_id = $2::int \
                   AND ol_o_id < $3::int AND ol_o_id >= $4::int AND s_w_id = $1::int AND s_i_id = ol_i_id \
                   AND s_quantity < $5::int";
        self.one(sql, values![warehouse, district, next, next - 20, least]).map(drop)
    }
}
