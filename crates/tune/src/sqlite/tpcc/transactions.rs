//! The five transactions of TPC-C (clauses 2.4 to 2.8), each in one SQLite transaction.

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::TpccWorkload;
use crate::tpcc::{DISTRICTS, Source, Uneven, last_name};

/// What a transaction needs to know.
pub(super) struct Terminal<'a> {
    pub(super) db: &'a Connection,
    pub(super) workload: &'a TpccWorkload,
    pub(super) source: &'a mut Source,
    /// The run's date: the number of the transaction.
    pub(super) date: i64,
}

/// A customer by warehouse, district and number.
type Customer = (u32, u32, u32);

impl Terminal<'_> {
    /// One change of one or more rows.
    fn change(&self, sql: &str, values: impl rusqlite::Params) -> Result<()> {
        self.db.prepare_cached(sql)?.execute(values).map(drop)
    }

    /// The first column of one row.
    fn value<T: rusqlite::types::FromSql>(&self, sql: &str, values: impl rusqlite::Params) -> Result<T> {
        self.db.prepare_cached(sql)?.query_row(values, |row| row.get(0))
    }

    fn warehouse(&mut self) -> u32 {
        self.source.uniform(1, self.workload.warehouses)
    }

    fn district(&mut self) -> u32 {
        self.source.uniform(1, DISTRICTS)
    }

    /// Another warehouse, or the same where there is no other.
    fn other_warehouse(&mut self, home: u32) -> u32 {
        match self.workload.warehouses {
            1 => home,
            count => (home - 1 + self.source.uniform(1, count - 1)) % count + 1,
        }
    }

    fn customer_number(&mut self) -> u32 {
        self.source.uneven(Uneven::Customer, 1, self.workload.customers())
    }

    /// A customer, 60 times of a hundred by last name: then the middle one of all that have it, by first name.
    fn customer(&mut self, warehouse: u32, district: u32) -> Result<Customer> {
        if !self.source.happens(60) {
            return Ok((warehouse, district, self.customer_number()));
        }
        let name = last_name(self.source.uneven(Uneven::LastName, 0, self.workload.names() - 1));
        let sql = "SELECT c_id FROM customer WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_last = ?3 ORDER BY c_first";
        let mut query = self.db.prepare_cached(sql)?;
        let numbers = query.query_map(params![warehouse, district, name], |row| row.get(0))?;
        let numbers: Vec<u32> = numbers.collect::<Result<_>>()?;
        let middle = numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or(1);
        Ok((warehouse, district, middle))
    }

    /// Clause 2.4. Gives whether it was committed: one of a hundred names an item that there is not, and is undone.
    pub(super) fn new_order(&mut self) -> Result<bool> {
        let (warehouse, district, customer) = (self.warehouse(), self.district(), self.customer_number());
        let lines = self.source.uniform(5, 15);
        let is_undone = self.source.happens(1);
        self.change("BEGIN IMMEDIATE", ())?;
        let _: f64 = self.value("SELECT w_tax FROM warehouse WHERE w_id = ?1", params![warehouse])?;
        let key = params![warehouse, district];
        let order: u32 = self.value("SELECT d_next_o_id FROM district WHERE d_w_id = ?1 AND d_id = ?2", key)?;
        self.change("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ?1 AND d_id = ?2", key)?;
        let sql = "SELECT c_discount FROM customer WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3";
        let _: f64 = self.value(sql, params![warehouse, district, customer])?;
        let suppliers: Vec<u32> = (0..lines).map(|_| self.supplier(warehouse)).collect();
        let is_local = suppliers.iter().all(|&supplier| supplier == warehouse);
        let sql = "INSERT INTO orders VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6, ?7)";
        self.change(sql, params![warehouse, district, order, customer, self.date, lines, is_local])?;
        self.change("INSERT INTO new_order VALUES (?1, ?2, ?3)", params![warehouse, district, order])?;
        for (line, supplier) in (1..).zip(suppliers) {
            let item = match is_undone && line == lines {
                true => self.workload.items() + 1,
                false => self.source.uneven(Uneven::Item, 1, self.workload.items()),
            };
            if !self.order_line((warehouse, district, order), line, item, supplier)? {
                self.change("ROLLBACK", ())?;
                return Ok(false);
            }
        }
        self.change("COMMIT", ())?;
        Ok(true)
    }

    /// One line of a hundred is delivered from another warehouse.
    fn supplier(&mut self, home: u32) -> u32 {
        if self.source.happens(1) { self.other_warehouse(home) } else { home }
    }

    /// Whether there is such an item.
    fn order_line(
        &mut self,
        (warehouse, district, order): (u32, u32, u32),
        line: u32,
        item: u32,
        supplier: u32,
    ) -> Result<bool> {
        let price = "SELECT i_price FROM item WHERE i_id = ?1";
        let price: Option<f64> = self.db.prepare_cached(price)?.query_row([item], |row| row.get(0)).optional()?;
        let Some(price) = price else { return Ok(false) };
        let wanted = self.source.uniform(1, 10);
        let sql = format!("SELECT s_quantity, s_dist_{district:02} FROM stock WHERE s_w_id = ?1 AND s_i_id = ?2");
        let (there, info): (u32, String) =
            self.db.prepare_cached(&sql)?.query_row([supplier, item], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let left = if there >= wanted + 10 { there - wanted } else { there + 91 - wanted };
        let sql = "UPDATE stock SET s_quantity = ?3, s_ytd = s_ytd + ?4, s_order_cnt = s_order_cnt + 1, \
                   s_remote_cnt = s_remote_cnt + ?5 WHERE s_w_id = ?1 AND s_i_id = ?2";
        self.change(sql, params![supplier, item, left, wanted, supplier != warehouse])?;
        let amount = f64::from(wanted) * price;
        let sql = "INSERT INTO order_line VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, ?7, ?8, ?9)";
        self.change(sql, params![warehouse, district, order, line, item, supplier, wanted, amount, info])?;
        Ok(true)
    }

    /// Clause 2.5: 85 times of a hundred by a customer of the home district.
    pub(super) fn payment(&mut self) -> Result<()> {
        let (warehouse, district) = (self.warehouse(), self.district());
        let (of_warehouse, of_district) = match self.source.happens(85) {
            true => (warehouse, district),
            false => (self.other_warehouse(warehouse), self.district()),
        };
        let amount = f64::from(self.source.uniform(100, 500_000)) / 100.0;
        self.change("BEGIN IMMEDIATE", ())?;
        self.change("UPDATE warehouse SET w_ytd = w_ytd + ?2 WHERE w_id = ?1", params![warehouse, amount])?;
        let home: String = self.value("SELECT w_name FROM warehouse WHERE w_id = ?1", [warehouse])?;
        let sql = "UPDATE district SET d_ytd = d_ytd + ?3 WHERE d_w_id = ?1 AND d_id = ?2";
        self.change(sql, params![warehouse, district, amount])?;
        let sql = "SELECT d_name FROM district WHERE d_w_id = ?1 AND d_id = ?2";
        let place: String = self.value(sql, [warehouse, district])?;
        let customer = self.customer(of_warehouse, of_district)?;
        self.pay(customer, amount, (warehouse, district))?;
        let sql = "INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let (c_w, c_d, c_id) = customer;
        let words = format!("{home}    {place}");
        self.change(sql, params![c_id, c_d, c_w, district, warehouse, self.date, amount, words])?;
        self.change("COMMIT", ())
    }

    fn pay(&self, (warehouse, district, customer): Customer, amount: f64, at: (u32, u32)) -> Result<()> {
        let sql = "SELECT c_credit FROM customer WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3";
        let credit: String = self.value(sql, [warehouse, district, customer])?;
        let sql = "UPDATE customer SET c_balance = c_balance - ?4, c_ytd_payment = c_ytd_payment + ?4, \
                   c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3";
        self.change(sql, params![warehouse, district, customer, amount])?;
        if credit == "BC" {
            let words = format!("{customer} {district} {warehouse} {} {} {amount}|", at.1, at.0);
            let sql = "UPDATE customer SET c_data = substr(?4 || c_data, 1, 500) \
                       WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3";
            self.change(sql, params![warehouse, district, customer, words])?;
        }
        Ok(())
    }

    /// Clause 2.6: the last order of a customer.
    pub(super) fn order_status(&mut self) -> Result<()> {
        let (warehouse, district) = (self.warehouse(), self.district());
        self.change("BEGIN", ())?;
        let (_, _, customer) = self.customer(warehouse, district)?;
        let sql = "SELECT c_balance FROM customer WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3";
        let _: f64 = self.value(sql, [warehouse, district, customer])?;
        let sql = "SELECT max(o_id) FROM orders WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_c_id = ?3";
        let order: Option<u32> = self.value(sql, [warehouse, district, customer])?;
        if let Some(order) = order {
            let sql = "SELECT o_carrier_id FROM orders WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = ?3";
            let _: Option<u32> = self.value(sql, [warehouse, district, order])?;
            let sql = "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3";
            let _: Option<f64> = self.value(sql, [warehouse, district, order])?;
        }
        self.change("COMMIT", ())
    }

    /// Clause 2.7: the oldest order that waits in each district of a warehouse.
    pub(super) fn delivery(&mut self) -> Result<()> {
        let (warehouse, carrier) = (self.warehouse(), self.source.uniform(1, 10));
        self.change("BEGIN IMMEDIATE", ())?;
        for district in 1..=DISTRICTS {
            let sql = "SELECT min(no_o_id) FROM new_order WHERE no_w_id = ?1 AND no_d_id = ?2";
            let oldest: Option<u32> = self.value(sql, [warehouse, district])?;
            if let Some(order) = oldest {
                self.deliver((warehouse, district, order), carrier)?;
            }
        }
        self.change("COMMIT", ())
    }

    fn deliver(&self, (warehouse, district, order): (u32, u32, u32), carrier: u32) -> Result<()> {
        let key = [warehouse, district, order];
        self.change("DELETE FROM new_order WHERE no_w_id = ?1 AND no_d_id = ?2 AND no_o_id = ?3", key)?;
        let sql = "SELECT o_c_id FROM orders WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = ?3";
        let customer: u32 = self.value(sql, key)?;
        let sql = "UPDATE orders SET o_carrier_id = ?4 WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = ?3";
        self.change(sql, [warehouse, district, order, carrier])?;
        let sql = "UPDATE order_line SET ol_delivery_d = ?4 WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3";
        self.change(sql, params![warehouse, district, order, self.date])?;
        let sql = "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3";
        let amount: f64 = self.value(sql, key)?;
        let sql = "UPDATE customer SET c_balance = c_balance + ?4, c_delivery_cnt = c_delivery_cnt + 1 \
                   WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3";
        self.change(sql, params![warehouse, district, customer, amount])
    }

    /// Clause 2.8: of the items of a district's last 20 orders, those of which few are left.
    pub(super) fn stock_level(&mut self) -> Result<()> {
        let (warehouse, district, least) = (self.warehouse(), self.district(), self.source.uniform(10, 20));
        self.change("BEGIN", ())?;
        let sql = "SELECT d_next_o_id FROM district WHERE d_w_id = ?1 AND d_id = ?2";
        let next: u32 = self.value(sql, [warehouse, district])?;
        let sql = "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ?1 AND s_i_id = ol_i_id \
                   WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id >= ?3 AND ol_o_id < ?4 AND s_quantity < ?5";
        let _: u32 = self.value(sql, [warehouse, district, next.saturating_sub(20), next, least])?;
        self.change("COMMIT", ())
    }
}
