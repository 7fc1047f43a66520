//! 2R: greedy in [two regions](super::regions).
//!
//! Source: Haas et al., "SSD-iq: Uncovering the Hidden Side of SSD Performance", PVLDB 18(11), 2025, in its greedy
//! form.

use super::regions::Regions;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;
use crate::state::{Carried, Carrier, Layout, State};

/// The 2R policy.
pub(crate) struct TwoR(Regions);

impl TwoR {
    pub(super) fn new(_: &GcConfig, shape: Shape) -> Self {
        Self(Regions::new(shape))
    }
}

impl VictimPolicy for TwoR {
    fn candidates(&self) -> Vec<Candidate> {
        self.0.candidates()
    }

    fn sealed(&mut self, block: u32, valid: u32, origin: Origin, _: u64) {
        self.0.sealed(block, valid, origin);
    }

    #[inline]
    fn invalidated(&mut self, block: u32, _: u32, _: u64) {
        self.0.invalidated(block);
    }

    fn removed(&mut self, block: u32) {
        self.0.remove(block);
    }

    fn take_victim(&mut self, unit: u32, _: &mut Context<'_>) -> Option<Choice> {
        let (group, _) = self.0.group_to_clean(unit);
        let block = self.0.emptiest(group)?;
        self.0.take(unit, block);
        Some(block.into())
    }
}

impl State for TwoR {
    fn layout(layout: &mut Layout) {
        Regions::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        self.0.carry(carrier)
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{Bench, steps};
    use super::super::regions::by_scan;
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    #[test]
    fn it_stays_in_a_region_until_a_superblock_is_gained() {
        let mut bench = Bench::new(TwoR::new(&GcConfig::default(), SHAPE), SHAPE);
        for (block, valid, origin) in
            [(0, 2, Origin::Host), (1, 4, Origin::Host), (2, 3, Origin::Moved), (3, 3, Origin::Moved)]
        {
            bench.seal_as(block, valid, origin);
        }
        let order: Vec<_> = std::iter::from_fn(|| bench.take(0)).collect();
        assert_eq!(order, [0, 1, 2, 3]);
    }

    proptest! {
        #[test]
        fn it_takes_the_emptiest_of_the_region_that_a_scan_chooses(steps in steps()) {
            let mut bench = Bench::new(TwoR::new(&GcConfig::default(), SHAPE), SHAPE);
            let mut regions = by_scan::Regions::new(SHAPE.pages);
            for &step in &steps {
                let before = bench.sealed.clone();
                let Some(choice) = bench.play(step, SHAPE.pages) else { continue };
                regions.region_to_clean(&before);
                prop_assert_eq!(choice, regions.take(regions.emptiest(&before)));
            }
        }
    }
}
