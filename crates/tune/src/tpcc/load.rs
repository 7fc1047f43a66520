//! The rows that TPC-C wants before the first transaction (clause 4.3.3), table by table.

use super::random::{Source, last_name};
use super::scale::{DISTRICTS, Scale};
use super::values::Value;
use super::variant::Variant;

/// A table with its columns in the order in which rows are given.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static str,
}

pub(crate) const ITEM: Table = Table { name: "item", columns: "i_id, i_im_id, i_name, i_price, i_data" };
pub(crate) const WAREHOUSE: Table =
    Table { name: "warehouse", columns: "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd" };
pub(crate) const DISTRICT: Table = Table {
    name: "district",
    columns: "d_w_id, d_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, d_next_o_id",
};
pub(crate) const CUSTOMER: Table = Table {
    name: "customer",
    columns: "c_w_id, c_d_id, c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
              c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, \
              c_data",
};
pub(crate) const HISTORY: Table =
    Table { name: "history", columns: "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data" };
pub(crate) const STOCK: Table = Table {
    name: "stock",
    columns: "s_w_id, s_i_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, \
              s_dist_08, s_dist_09, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt, s_data",
};
pub(crate) const ORDERS: Table =
    Table { name: "orders", columns: "o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local" };
/// sysbench-tpcc calls it `new_orders`.
pub(crate) const NEW_ORDER: Table = Table { name: "new_order", columns: "no_w_id, no_d_id, no_o_id" };
pub(crate) const ORDER_LINE: Table = Table {
    name: "order_line",
    columns: "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, \
              ol_dist_info",
};

type Row = Vec<Value>;
/// Warehouse, district and number of a customer or an order.
type Key = (u32, u32, u32);

/// One row of values.
macro_rules! row {
    ($($value:expr),*) => { vec![$(Value::from($value)),*] };
}

/// Generates the rows, in any order.
pub(crate) struct RowSource<'a> {
    pub(crate) scale: Scale,
    pub(crate) variant: Variant,
    pub(crate) source: &'a mut Source,
}

impl RowSource<'_> {
    pub(crate) fn item(&mut self, item: u32) -> Row {
        let (image, price, name, data) = self.variant.item(self.source);
        row![item, image, name, price, data]
    }

    pub(crate) fn warehouse(&mut self, warehouse: u32) -> Row {
        let (name, [street_1, street_2, city, state, zip], tax) = self.variant.place(self.source);
        row![warehouse, name, street_1, street_2, city, state, zip, tax, 300_000]
    }

    pub(crate) fn district(&mut self, (warehouse, district): (u32, u32)) -> Row {
        let (name, [street_1, street_2, city, state, zip], tax) = self.variant.place(self.source);
        let next = self.scale.customers + 1;
        row![warehouse, district, name, street_1, street_2, city, state, zip, tax, 30_000, next]
    }

    pub(crate) fn customer(&mut self, (warehouse, district, customer): Key) -> Row {
        let Self { scale, variant, ref mut source } = *self;
        let last = match customer <= scale.names() {
            true => last_name(customer - 1),
            false => scale.random_name(source),
        };
        let first = variant.first_name(source);
        let [street_1, street_2, city, state, zip] = variant.address(source);
        let phone = variant.phone(source);
        let credit = if source.happens(10) { "BC" } else { "GC" };
        let discount = f64::from(source.uniform(0, 5_000)) / 10_000.0;
        let data = variant.filler(source, 300, 500);
        let since = variant.at_load();
        row![
            warehouse, district, customer, first, "OE", last, street_1, street_2, city, state, zip, phone, since,
            credit, 50_000, discount, -10, 10, 1, 0, data
        ]
    }

    pub(crate) fn history(&mut self, (warehouse, district, customer): Key) -> Row {
        let data = self.variant.filler(self.source, 12, 24);
        row![customer, district, warehouse, district, warehouse, self.variant.at_load(), 10, data]
    }

    pub(crate) fn stock(&mut self, (warehouse, item): (u32, u32)) -> Row {
        let mut row = row![warehouse, item, self.source.uniform(10, 100)];
        row.extend((0..DISTRICTS).map(|_| Value::Text(self.variant.filler(self.source, 24, 24))));
        row.extend(row![0, 0, 0, self.variant.stock_data(self.source)]);
        row
    }

    /// An order of a customer, with that many lines; drawn, and returned too, if not known before.
    pub(crate) fn order(&mut self, key: Key, customer: u32, lines: Option<u32>) -> (Row, u32) {
        let (warehouse, district, order) = key;
        let carrier = self.scale.is_delivered(order).then(|| self.source.uniform(1, 10));
        let lines = lines.unwrap_or_else(|| self.source.uniform(5, 15));
        (row![warehouse, district, order, customer, self.variant.at_load(), carrier, lines, 1], lines)
    }

    pub(crate) fn order_line(&mut self, (warehouse, district, order): Key, line: u32) -> Row {
        let is_delivered = self.scale.is_delivered(order);
        let item = self.source.uniform(1, self.scale.items);
        let (amount, info) = self.variant.order_line(self.source, is_delivered);
        let delivered = is_delivered.then(|| self.variant.at_load());
        row![warehouse, district, order, line, item, warehouse, delivered, 5, amount, info]
    }
}
