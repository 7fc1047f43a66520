//! How large TPC-C's tables are.

use super::random::{Source, Uneven, last_name};

/// Districts of a warehouse.
pub(crate) const DISTRICTS: u32 = 10;

/// How many rows the tables have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) warehouses: u32,
    /// Items, and rows of STOCK a warehouse.
    pub(crate) items: u32,
    /// Customers and orders of a district.
    pub(crate) customers: u32,
}

impl Scale {
    /// Last names that some customer of each district has.
    pub(super) fn names(&self) -> u32 {
        self.customers.min(1_000)
    }

    /// Whether an order was delivered before the first transaction: all but the last 30 %.
    pub(crate) fn is_delivered(&self, order: u32) -> bool {
        order <= self.customers - self.customers * 3 / 10
    }

    /// Another warehouse, or the same where there is no other.
    pub(super) fn other_warehouse(&self, source: &mut Source, home: u32) -> u32 {
        match self.warehouses {
            1 => home,
            count => (home - 1 + source.uniform(1, count - 1)) % count + 1,
        }
    }

    /// A customer's last name, by a number that is chosen as unevenly as the specification wants it.
    pub(super) fn random_name(&self, source: &mut Source) -> String {
        last_name(source.uneven(Uneven::LastName, 0, self.names() - 1))
    }
}
