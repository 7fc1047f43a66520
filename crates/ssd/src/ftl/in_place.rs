//! Media that are written in place: each logical page has its slot for ever, the one of its own number.
//!
//! Logical pages go round the channels, then round the ways. Nothing is mapped, so nothing is saved; what each page has
//! worn is counted apart ([`crate::ftl::wear::InPlaceWear`]).

use std::collections::BTreeMap;

use super::geometry::Geometry;
use super::{Ftl, KeptAs};
use crate::config::DeviceConfig;
use crate::flash::FlashAddress;
use crate::state::{Carried, Carrier, Layout, State};

/// Where pages stand that never move.
pub(crate) struct InPlace {
    channels: u32,
    ways: u32,
}

impl InPlace {
    /// The place of a logical page; what stands for its block is the page itself, because no two pages are sensed
    /// together.
    pub(crate) fn address(&self, logical_page: u32) -> FlashAddress {
        let Self { channels, ways } = self;
        let die = logical_page % channels * ways + logical_page / channels % ways;
        FlashAddress { die, plane: 0, planes: 1, row: 0, block: logical_page }
    }
}

impl Ftl for InPlace {
    fn build(config: &DeviceConfig, _: &Geometry, _: u64) -> Self {
        Self { channels: config.flash.channels, ways: config.ways() }
    }

    fn describe(_: &mut Layout) {}

    fn slot_of(&self, logical_page: u32) -> Option<u32> {
        Some(logical_page)
    }

    fn address_of(&self, slot: u32, _: &Geometry) -> FlashAddress {
        self.address(slot)
    }

    fn forget(&mut self, logical_page: u32) -> Option<u32> {
        Some(logical_page)
    }

    /// The medium has nothing to fill: it can be put into any state at any time.
    fn is_empty(&self) -> bool {
        true
    }

    fn fill_in_order(&mut self, _: u32, _: KeptAs) {}

    fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        BTreeMap::new()
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl State for InPlace {
    fn layout(_: &mut Layout) {}

    fn carry(&mut self, _: &mut Carrier<'_>) -> Carried {
        Ok(())
    }
}
