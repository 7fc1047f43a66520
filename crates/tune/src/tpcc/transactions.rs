//! The five transactions (clauses 2.4 to 2.8), each in one transaction of the database.

use super::deck::TpccTransaction;
use super::random::{Source, Uneven};
use super::scale::{DISTRICTS, Scale};
use super::sql::{Sql, Statements};
use super::values::{Columns, Value, Values};

/// A session that runs transactions, one after the other.
pub(crate) struct Terminal<S> {
    pub(crate) sql: S,
    statements: Statements,
    scale: Scale,
    values: Values,
}

impl<S: Sql> Terminal<S> {
    pub(crate) fn new(sql: S, scale: Scale) -> Self {
        Self { sql, statements: Statements::parse(S::STATEMENTS), scale, values: Values::default() }
    }

    /// The run's date, for a database whose statements do not take the clock's.
    pub(crate) fn set_date(&mut self, date: i64) {
        self.values.set("date", date);
    }

    /// Gives whether it was committed: one of a hundred New-Orders names an item that there is not, and is undone.
    ///
    /// # Errors
    /// When a statement fails; the transaction is still open then.
    pub(crate) fn transact(&mut self, what: TpccTransaction, source: &mut Source) -> Result<bool, S::Error> {
        self.sql.begin(what.is_writing())?;
        let is_kept = match what {
            TpccTransaction::NewOrder => self.new_order(source)?,
            TpccTransaction::Payment => self.payment(source).map(|()| true)?,
            TpccTransaction::OrderStatus => self.order_status(source).map(|()| true)?,
            TpccTransaction::Delivery => self.delivery(source).map(|()| true)?,
            TpccTransaction::StockLevel => self.stock_level(source).map(|()| true)?,
        };
        if is_kept { self.sql.commit() } else { self.sql.rollback() }?;
        Ok(is_kept)
    }

    /// Runs a part's statements; the columns found by their queries are known afterwards.
    fn run(&mut self, part: &str) -> Result<(), S::Error> {
        for sql in self.statements.of(part) {
            let columns = self.sql.execute(sql, &self.values)?;
            self.values.extend(columns);
        }
        Ok(())
    }

    /// Runs a part's queries, which may find nothing, or much; gives the rows of the last one.
    fn rows(&mut self, part: &str) -> Result<Vec<Columns>, S::Error> {
        let mut rows = Vec::new();
        for sql in self.statements.of(part) {
            rows = self.sql.query(sql, &self.values)?;
        }
        Ok(rows)
    }

    /// Runs a query whose row need not be there; gives whether it is, with a value in a column.
    fn find(&mut self, part: &str, column: &str) -> Result<bool, S::Error> {
        let row = self.rows(part)?.into_iter().next().unwrap_or_default();
        let is_found = row.iter().any(|(name, value)| name == column && *value != Value::Null);
        self.values.extend(row);
        Ok(is_found)
    }

    fn set(&mut self, values: &[(&str, u32)]) {
        values.iter().for_each(|&(name, value)| self.values.set(name, value));
    }

    /// Chooses the home warehouse and its district.
    fn home(&mut self, source: &mut Source) -> (u32, u32) {
        let (warehouse, district) = (source.uniform(1, self.scale.warehouses), source.uniform(1, DISTRICTS));
        self.set(&[("w", warehouse), ("d", district)]);
        (warehouse, district)
    }

    /// A customer of a district, 60 times of a hundred by last name: then the middle one of all that have it, by first
    /// name.
    fn customer(&mut self, source: &mut Source, (warehouse, district): (u32, u32)) -> Result<(), S::Error> {
        self.set(&[("c_w", warehouse), ("c_d", district)]);
        if !source.happens(60) {
            self.values.set("c", source.uneven(Uneven::Customer, 1, self.scale.customers));
            return Ok(());
        }
        self.values.set("name", self.scale.random_name(source));
        let found = self.rows("customers_by_name")?;
        let middle = found.get(S::VARIANT.middle(found.len())).and_then(|columns| columns.first());
        self.values.set("c", middle.map_or(Value::Integer(1), |(_, number)| number.clone()));
        Ok(())
    }

    /// Clause 2.4. Gives whether it is to be kept.
    fn new_order(&mut self, source: &mut Source) -> Result<bool, S::Error> {
        let (warehouse, district) = self.home(source);
        let customer = source.uneven(Uneven::Customer, 1, self.scale.customers);
        let (count, is_undone) = (source.uniform(5, 15), source.happens(1));
        let lines = S::VARIANT.lines(source, &self.scale, warehouse, count, is_undone);
        let is_local = lines.iter().all(|line| line.supplier == warehouse);
        self.set(&[("c", customer), ("lines", count), ("is_local", is_local.into())]);
        self.run("new_order")?;
        let stock = self.statements.of("stock").concat().replace("NN", &format!("{district:02}"));
        for (number, line) in (1..).zip(lines) {
            let is_remote = line.supplier != warehouse;
            self.values.set("item", line.item);
            self.set(&[("line", number), ("supplier", line.supplier), ("is_remote", is_remote.into())]);
            if !self.order_line(line.wanted, &stock)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether there is such an item.
    fn order_line(&mut self, wanted: u32, stock: &str) -> Result<bool, S::Error> {
        if !self.find("item", "i_price")? {
            return Ok(false);
        }
        let columns = self.sql.execute(stock, &self.values)?;
        self.values.extend(columns);
        let left = S::VARIANT.left(self.values.integer("s_quantity"), wanted.into());
        let amount = f64::from(wanted) * self.values.real("i_price") * S::VARIANT.price_factor(&self.values);
        self.values.set("wanted", wanted);
        self.values.set("left", left);
        self.values.set("amount", amount);
        self.run("order_line")?;
        Ok(true)
    }

    /// Clause 2.5: 85 times of a hundred by a customer of the home district.
    fn payment(&mut self, source: &mut Source) -> Result<(), S::Error> {
        let home = self.home(source);
        let (amount, payers_district) = S::VARIANT.payment(source, &self.scale, home);
        self.values.set("amount", amount);
        self.run("payment")?;
        self.customer(source, payers_district)?;
        self.run("payer")?;
        match self.values.text("c_credit") {
            "BC" => {
                self.run("credit_data")?;
                let data = S::VARIANT.credit_data(&self.values);
                self.values.set("data", data);
                self.run("bad_credit")?;
            }
            _ => self.run("good_credit")?,
        }
        let data = S::VARIANT.history_data(self.values.text("w_name"), self.values.text("d_name"));
        self.values.set("data", data);
        self.run("history")
    }

    /// Clause 2.6: the last order of a customer.
    fn order_status(&mut self, source: &mut Source) -> Result<(), S::Error> {
        let home = self.home(source);
        self.customer(source, home)?;
        self.run("balance")?;
        if self.find("last_order", "o")? {
            self.rows("order_status")?;
        }
        Ok(())
    }

    /// Clause 2.7: the oldest order that waits in each district of a warehouse.
    fn delivery(&mut self, source: &mut Source) -> Result<(), S::Error> {
        let (warehouse, carrier) = S::VARIANT.delivery(source, &self.scale);
        self.set(&[("w", warehouse), ("carrier", carrier)]);
        for district in 1..=DISTRICTS {
            self.values.set("d", district);
            if self.find("oldest", "o")? {
                self.run("deliver")?;
            }
        }
        Ok(())
    }

    /// Clause 2.8: the items of a district's last 20 orders with a low stock.
    fn stock_level(&mut self, source: &mut Source) -> Result<(), S::Error> {
        self.home(source);
        self.values.set("least", source.uniform(10, 20));
        self.run("stock_level")
    }
}
