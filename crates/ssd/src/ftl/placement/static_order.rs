//! Static placement: the unit follows from the logical address, level by level.
//!
//! With the order CWDP, successive logical pages go over the channels, then over the ways (chips) of a channel, then
//! over the dies of a chip, then over the planes of a die. Where planes program together (`superpage_planes`), pages
//! that share a superpage count as one.
//!
//! Source: Tavakkol et al., ACM TOMPECS 1(2), 2016, section 3: the 24 static schemes; Hu et al., "Exploring and
//! Exploiting the Multilevel Parallelism Inside SSDs", IEEE TC 62(6), 2013.

use super::PlacementPolicy;
use crate::config::{DeviceConfig, Level};
use crate::ftl::reciprocal::Divisor;

/// One of the 24 static orders.
pub(crate) struct Static {
    /// The unit of each address modulo the number of units.
    units: Vec<u32>,
    by_units: Divisor,
    by_slots: Divisor,
}

impl Static {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let flash = &config.flash;
        let plane_groups = flash.planes_per_die / config.superpage_planes();
        let count = |level| match level {
            Level::Channel => flash.channels,
            Level::Way => flash.chips_per_channel,
            Level::Die => flash.dies_per_chip,
            Level::Plane => plane_groups,
        };
        // What one step on each level adds to a unit's number.
        let step = |level| match level {
            Level::Channel => flash.chips_per_channel * flash.dies_per_chip * plane_groups,
            Level::Way => flash.dies_per_chip * plane_groups,
            Level::Die => plane_groups,
            Level::Plane => 1,
        };
        let unit_of = |mut address: u32| {
            config.ftl.static_order.0.iter().fold(0, |unit, &level| {
                let position = address % count(level);
                address /= count(level);
                unit + position * step(level)
            })
        };
        let slots = (config.superpage_bytes() / config.ftl.logical_page_bytes) as u32;
        let units: Vec<u32> = (0..config.units() as u32).map(unit_of).collect();
        Self { by_units: Divisor::new(units.len() as u32), units, by_slots: Divisor::new(slots) }
    }

    /// The unit of each address modulo their number.
    pub(super) fn into_units(self) -> Vec<u32> {
        self.units
    }
}

impl PlacementPolicy for Static {
    #[inline]
    fn unit(&self, logical_page: u32, attempt: u32, _: &[u32]) -> Option<u32> {
        let (_, nth) = self.by_units.divide(self.by_slots.quotient(logical_page));
        (attempt == 0).then(|| self.units[nth as usize])
    }

    fn attempt(&self, _: u32) -> u32 {
        0
    }

    fn placed(&mut self, _: u32, _: u32, _: u32) {}

    fn bound_unit(&self, logical_page: u32) -> Option<u32> {
        self.unit(logical_page, 0, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StaticOrder;

    fn device(order: &str) -> DeviceConfig {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.flash.channels, config.flash.chips_per_channel) = (3, 2);
        (config.flash.dies_per_chip, config.flash.planes_per_die) = (2, 2);
        config.ftl.superpage_planes = Some(1);
        config.ftl.logical_page_bytes = config.flash.page_bytes;
        config.ftl.static_order = StaticOrder::try_from(order.to_owned()).unwrap();
        config
    }

    #[test]
    fn the_first_letter_changes_fastest() {
        let units = |order: &str| -> Vec<u32> {
            let policy = Static::new(&device(order));
            (0..8).map(|page| policy.unit(page, 0, &[]).unwrap()).collect()
        };
        assert_eq!(units("CWDP"), [0, 8, 16, 4, 12, 20, 2, 10]);
        assert_eq!(units("PDWC"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(units("WCPD"), [0, 4, 8, 12, 16, 20, 1, 5]);
    }

    #[test]
    fn every_order_reaches_every_unit_once_a_round() {
        for order in StaticOrder::all() {
            let mut units = Static::new(&device(&order.to_string())).units;
            units.sort_unstable();
            assert_eq!(units, (0..24).collect::<Vec<_>>(), "{order}");
        }
    }
}
