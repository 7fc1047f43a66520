//! A memory card: in which units its controller works, and how many of them it keeps open.
//!
//! ```text
//!   write ─▶ its allocation unit is open?  ─ yes ─▶ programmed there
//!                                          ─ no ──▶ an open unit is merged first (`merge_ns`), whatever the write's length
//! ```
//!
//! SD cards, eMMC and USB sticks that map whole units work like that; a card that maps pages everywhere has none of
//! these figures.

use crate::parameters::figures;

figures! {
    /// The figures of a memory card. One that was not probed is inconclusive and has no value.
    pub struct Card;
    /// Unit in which the card maps what is written, counted from the start of the card; absent where no write is slow
    /// for the place that it goes to.
    allocation_unit_bytes: u64, Bytes, "allocation unit";
    /// Units that stay open while each is written in order.
    open_units_linear: u64, Count, "open units, in order";
    /// Units that stay open while each is written in any order; absent where any write out of order merges its unit.
    open_units_random: u64, Count, "open units, random";
    /// Time of a short durable write to a unit that is not open.
    merge_ns: u64, Nanos, "merge";
    /// Whether the first unit of the card stays open beside the others.
    special_first_unit: bool, Flag, "special first unit";
}

impl Card {
    /// Whether no probe found anything: for `skip_serializing_if`, so that the profile of a drive has no such section.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Units that stay open while they are written in any order, of a card that is known to have units: none where any
    /// write out of order merges. `None` where it is not certain.
    pub fn random_units(&self) -> Option<u64> {
        match self.open_units_random.verdict {
            crate::Verdict::Absent => Some(0),
            _ => self.open_units_random.known(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figure, Quantity};

    #[test]
    fn a_card_that_was_not_probed_leaves_no_trace_in_a_profile() {
        assert!(Card::default().is_unknown());
        let card = Card { allocation_unit_bytes: Figure::certain(6 << 20, 6 << 20, 6 << 20), ..Card::default() };
        assert!(!card.is_unknown());
        let text = toml::to_string(&card).unwrap();
        assert_eq!(toml::from_str::<Card>(&text).unwrap(), card);
        assert_eq!(card.entries()[0].figure.value, Some(Quantity::Bytes(6 << 20)));
    }

    #[test]
    fn a_card_that_merges_for_any_write_out_of_order_keeps_none_open() {
        let card = |figure| Card { open_units_random: figure, ..Card::default() }.random_units();
        assert_eq!([card(Figure::absent()), card(Figure::certain(3, 3, 3))], [Some(0), Some(3)]);
        assert_eq!(card(Figure::inconclusive(3, 0, 3)), None);
    }
}
