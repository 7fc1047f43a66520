//! Static placement: the unit follows from the logical address, level by level ([`StaticUnits`]).

use super::{Phase, PlacementPolicy};
use crate::config::{DeviceConfig, StaticUnits};
use crate::ftl::geometry::Geometry;

/// One of the 24 static orders, in each of the drive's domains.
pub(crate) struct Static {
    units: StaticUnits,
}

impl Static {
    pub(super) fn new(config: &DeviceConfig, _: &Geometry) -> Self {
        Self { units: StaticUnits::new(config) }
    }
}

impl PlacementPolicy for Static {
    #[inline]
    fn unit(&self, logical_page: u32, attempt: u32, _: &[u32]) -> Option<u32> {
        (attempt == 0).then(|| self.set_of_units(logical_page))
    }

    /// One unit alone.
    #[inline]
    fn set_of_units(&self, logical_page: u32) -> u32 {
        self.units.unit_of(logical_page)
    }

    fn attempt(&self, _: u32) -> u32 {
        0
    }

    fn phase(&self, logical_page: u32) -> Phase {
        let ([domain, place], until) = self.units.place_of(logical_page);
        Phase { state: [domain, place, 0], until }
    }

    fn placed(&mut self, _: u32, _: u32, _: u32) {}

    fn bound_unit(&self, logical_page: u32) -> Option<u32> {
        Some(self.set_of_units(logical_page))
    }
}

crate::state::state! { Static { built { units } } }
