//! The mix: a deck of 23 cards, shuffled, again and again (clause 5.2.4.2).

use serde::Serialize;

use super::random::Source;

/// Cards of the deck.
pub(crate) const DECK: u64 = 23;

/// One of the five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TpccTransaction {
    /// An order of 5 to 15 items.
    NewOrder,
    /// Money from a customer.
    Payment,
    /// A customer's last order.
    OrderStatus,
    /// The oldest orders of ten districts.
    Delivery,
    /// Items that run short.
    StockLevel,
}

impl TpccTransaction {
    /// Whether it changes anything.
    pub(crate) fn is_writing(self) -> bool {
        !matches!(self, Self::OrderStatus | Self::StockLevel)
    }
}

/// The remaining cards.
#[derive(Debug, Default)]
pub(crate) struct Deck(Vec<TpccTransaction>);

impl Deck {
    /// The next card; an empty deck is refilled.
    pub(crate) fn draw(&mut self, source: &mut Source) -> TpccTransaction {
        use TpccTransaction::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
        if let Some(card) = self.0.pop() {
            return card;
        }
        self.0 = [vec![NewOrder; 10], vec![Payment; 10], vec![OrderStatus, Delivery, StockLevel]].concat();
        source.shuffle(&mut self.0);
        self.0.pop().unwrap_or(NewOrder)
    }
}
