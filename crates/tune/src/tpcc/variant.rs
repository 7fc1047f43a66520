//! The variants of TPC-C: that of the specification, and sysbench-tpcc's. All differences except statements and schemas
//! are here.
//!
//! If both draw the same values in another order, each keeps its own: a seed always gives the same run.
//!
//! Sources: TPC Benchmark C, revision 5.11; Percona's sysbench-tpcc, whose strings are one repeated letter, which
//! compresses better than the specification's.

use super::random::{Source, Uneven};
use super::scale::{DISTRICTS, Scale};
use super::values::{Value, Values};

/// Whose TPC-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    Specification,
    Sysbench,
}
use Variant::{Specification, Sysbench};

/// The content of one order line.
pub(crate) struct Line {
    pub(super) item: i64,
    pub(super) supplier: u32,
    pub(super) wanted: u32,
}

/// The transactions.
impl Variant {
    /// The lines of an order. One of a hundred is delivered from another warehouse; the last item of an order that is
    /// to be undone is none that there is.
    pub(super) fn lines(self, source: &mut Source, scale: &Scale, home: u32, count: u32, is_undone: bool) -> Vec<Line> {
        let item = |source: &mut Source| i64::from(source.uneven(Uneven::Item, 1, scale.items));
        let is_missing = |line: u32| is_undone && line == count;
        match self {
            Specification => {
                let supplier = |source: &mut Source| match source.happens(1) {
                    true => scale.other_warehouse(source, home),
                    false => home,
                };
                let suppliers: Vec<u32> = (0..count).map(|_| supplier(source)).collect();
                let line = |(line, supplier)| match is_missing(line) {
                    true => Line { item: i64::from(scale.items) + 1, supplier, wanted: 0 },
                    false => Line { item: item(source), supplier, wanted: source.uniform(1, 10) },
                };
                (1..).zip(suppliers).map(line).collect()
            }
            Sysbench => {
                let items: Vec<(i64, bool)> = (0..count).map(|_| (item(source), source.happens(1))).collect();
                let line = |(line, (item, is_remote))| Line {
                    item: if is_missing(line) { -1 } else { item },
                    supplier: if is_remote { scale.other_warehouse(source, home) } else { home },
                    wanted: source.uniform(1, 10),
                };
                (1..).zip(items).map(line).collect()
            }
        }
    }

    /// The remaining stock; it is refilled in time.
    pub(super) fn left(self, there: i64, wanted: i64) -> i64 {
        let least = if self == Specification { wanted + 10 } else { wanted + 1 };
        if there >= least { there - wanted } else { there + 91 - wanted }
    }

    /// Factor of prices.
    pub(super) fn price_factor(self, values: &Values) -> f64 {
        match self {
            Specification => 1.0,
            Sysbench => (1.0 + values.real("w_tax") + values.real("d_tax")) * (1.0 - values.real("c_discount")),
        }
    }

    /// The amount of a payment, and the warehouse and district of the customer.
    pub(super) fn payment(self, source: &mut Source, scale: &Scale, home: (u32, u32)) -> (f64, (u32, u32)) {
        let district = |source: &mut Source| match source.happens(85) {
            true => home,
            false => (scale.other_warehouse(source, home.0), source.uniform(1, DISTRICTS)),
        };
        match self {
            Specification => {
                let district = district(source);
                (f64::from(source.uniform(100, 500_000)) / 100.0, district)
            }
            Sysbench => (f64::from(source.uniform(1, 5_000)), district(source)),
        }
    }

    /// The middle one of a number.
    pub(super) fn middle(self, count: usize) -> usize {
        match self {
            Specification => count.saturating_sub(1) / 2,
            Sysbench => count / 2,
        }
    }

    /// The data recorded for a customer with bad credit. The specification's is put before the old text by the
    /// statement.
    pub(super) fn credit_data(self, values: &Values) -> String {
        let [customer, district, warehouse] = ["c", "c_d", "c_w"].map(|name| values.integer(name));
        let [of_district, of_warehouse] = ["d", "w"].map(|name| values.integer(name));
        let (amount, data) = (values.real("amount"), values.text("c_data"));
        match self {
            Specification => format!("{customer} {district} {warehouse} {of_district} {of_warehouse} {amount}|"),
            Sysbench => {
                let of = format!("{customer:4} {district:2} {warehouse:4} {of_district:2} {of_warehouse:4}");
                format!("| {of} ${amount:7.2} {data}").chars().take(500).collect()
            }
        }
    }

    /// The text of a row of HISTORY.
    pub(super) fn history_data(self, warehouse: &str, district: &str) -> String {
        match self {
            Specification => format!("{warehouse}    {district}"),
            Sysbench => format!("{warehouse:>10} {district:>10}    ").chars().take(24).collect(),
        }
    }

    /// Whose orders are delivered, and by which carrier.
    pub(super) fn delivery(self, source: &mut Source, scale: &Scale) -> (u32, u32) {
        let warehouse = source.uniform(1, scale.warehouses);
        if self == Sysbench {
            // A district is chosen and not used.
            source.uniform(1, DISTRICTS);
        }
        (warehouse, source.uniform(1, 10))
    }
}

/// The rows before the first transaction.
impl Variant {
    /// The date of loaded rows: steps of the run, or the clock's.
    pub(super) fn at_load(self) -> Value {
        if self == Specification { Value::Integer(0) } else { "now".into() }
    }

    /// A text that is never read.
    pub(super) fn filler(self, source: &mut Source, shortest: u32, longest: u32) -> String {
        match self {
            Specification => source.text(shortest, longest).to_owned(),
            Sysbench => {
                let count = source.uniform(shortest, longest) as usize;
                source.text(1, 1).repeat(count)
            }
        }
    }

    /// A text that contains a word, or is random.
    fn name(self, source: &mut Source, before: &str, letters: u32, (shortest, longest): (u32, u32)) -> String {
        match self {
            Specification => source.text(shortest, longest).to_owned(),
            Sysbench => format!("{before}{}", source.text(letters, letters)),
        }
    }

    /// Image, price, name and text of an item.
    pub(super) fn item(self, source: &mut Source) -> (u32, f64, String, String) {
        let dearest = if self == Specification { 10_000 } else { 10_099 };
        let (image, price) = (source.uniform(1, 10_000), f64::from(source.uniform(100, dearest)) / 100.0);
        let letters = |source: &mut Source| source.text(5, 5).to_owned();
        match self {
            Specification => (image, price, source.text(14, 24).to_owned(), source.data()),
            Sysbench => {
                let name: String = format!("item-{image}-{price:.6}-{}", letters(source)).chars().take(24).collect();
                let data = format!("data-{name}-{}", letters(source)).chars().take(50).collect();
                (image, price, name, data)
            }
        }
    }

    pub(super) fn stock_data(self, source: &mut Source) -> String {
        if self == Specification { source.data() } else { self.filler(source, 26, 50) }
    }

    /// Two streets, city, state and ZIP code.
    pub(super) fn address(self, source: &mut Source) -> [String; 5] {
        let [street_1, street_2, city] =
            ["street1-", "street2-", "city-"].map(|before| self.name(source, before, 10, (10, 20)));
        let state = source.text(2, 2).to_owned();
        let zip = match self {
            Specification => format!("{:04}11111", source.uniform(0, 9999)),
            Sysbench => format!("zip-{:05}", source.uniform(0, 99_999)),
        };
        [street_1, street_2, city, state, zip]
    }

    /// Name, address and tax of a warehouse or a district.
    pub(super) fn place(self, source: &mut Source) -> (String, [String; 5], f64) {
        let name = self.name(source, "name-", 5, (6, 10));
        let tax = |source: &mut Source| f64::from(source.uniform(0, 2_000)) / 10_000.0;
        match self {
            Specification => {
                let tax = tax(source);
                (name, self.address(source), tax)
            }
            Sysbench => (name, self.address(source), tax(source)),
        }
    }

    pub(super) fn first_name(self, source: &mut Source) -> String {
        let letters = if self == Sysbench { source.uniform(2, 10) } else { 0 };
        self.name(source, "first-", letters, (8, 16))
    }

    pub(super) fn phone(self, source: &mut Source) -> String {
        match self {
            Specification => format!("{:016}", source.uniform(0, 999_999_999)),
            Sysbench => format!("{:08}{:08}", source.uniform(0, 99_999_999), source.uniform(0, 99_999_999)),
        }
    }

    /// Amount and text of a line; delivered lines are paid.
    pub(super) fn order_line(self, source: &mut Source, is_delivered: bool) -> (f64, String) {
        let amount = |source: &mut Source| match is_delivered {
            true => 0.0,
            false => f64::from(source.uniform(1, 999_999)) / 100.0,
        };
        match self {
            Specification => (amount(source), self.filler(source, 24, 24)),
            Sysbench => {
                let info = self.filler(source, 24, 24);
                (amount(source), info)
            }
        }
    }
}
