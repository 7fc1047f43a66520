//! FIFO: the superblock that was sealed first, whatever is valid in it; the drive is written round like a log.
//!
//! Source: Desnoyers, "Analytic Models of SSD Write Performance", ACM TOS 10(2), 2014, section 4 (there LRU cleaning).

use super::order::Order;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;

/// The FIFO policy.
pub(crate) struct OldestFirst {
    order: Order,
    superblocks: u32,
}

impl OldestFirst {
    pub(super) fn new(_: &GcConfig, shape: Shape) -> Self {
        Self { order: Order::new(shape.units, shape.units * shape.superblocks), superblocks: shape.superblocks }
    }
}

impl VictimPolicy for OldestFirst {
    fn candidates(&self) -> Vec<Candidate> {
        self.order.members().into_iter().map(|(_, block)| block.into()).collect()
    }

    fn sealed(&mut self, block: u32, _: u32, _: Origin, _: u64) {
        self.order.append(block / self.superblocks, block);
    }

    fn invalidated(&mut self, _: u32, _: u32, _: u64) {}

    fn removed(&mut self, block: u32) {
        self.order.remove(block / self.superblocks, block);
    }

    fn take_victim(&mut self, unit: u32, _: &mut Context<'_>) -> Option<Choice> {
        let block = self.order.first(unit)?;
        self.order.remove(unit, block);
        Some(block.into())
    }
}

crate::state::state! { OldestFirst { saved { order } built { superblocks } } }

#[cfg(test)]
mod tests {
    use super::super::naive::{agrees, steps};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    proptest! {
        #[test]
        fn superblocks_go_in_the_order_in_which_they_were_sealed(steps in steps()) {
            agrees(OldestFirst::new(&GcConfig::default(), SHAPE), SHAPE, &steps, |sealed, _| {
                sealed.iter().min_by_key(|s| s.sealed_step).map(|s| s.block)
            })?;
        }
    }
}
