//! Garbage collection as work: what is in progress in each unit, and what the drive has left of its life.
//!
//! One [`UnitCollector`] a parallel unit empties superblocks: for space, to level wear, because they are retired
//! ([`unsaved`]), or because they hold the SLC cache ([`folding`]). Which superblock is next is the FTL's decision
//! ([`crate::ftl::gc`]); what happens step by step is in [`crate::controller`].

mod end_of_life;
mod folding;
mod pace;
mod unit;
mod unprogrammed;
mod unsaved;
mod victim;

pub use end_of_life::EndOfLife;
pub(crate) use folding::Folding;
pub use folding::{SlcCacheCounters, SlcCacheUse};
pub(crate) use pace::Pace;
pub(crate) use unit::{Collection, Emptied, Erasing, Row, UnitCollector};
pub(crate) use unsaved::Unsaved;

use crate::config::{DeviceConfig, GcConfig, GcMode, GcReads, SlcCacheConfig, WritePath};
use crate::ftl::geometry::Geometry;
use crate::ftl::wear::InPlaceWear;
use crate::list::Fifo;

/// What a drive's description says of its collection.
pub(crate) struct Rules {
    pub(crate) gc: GcConfig,
    pub(crate) slc_cache: Option<SlcCacheConfig>,
    /// The host waits for units that are low, each page mapped by itself.
    pub(crate) in_foreground: bool,
    /// The write buffer is as good as flash.
    pub(crate) is_protected: bool,
    pub(crate) page_bytes: u32,
}

impl Rules {
    fn new(config: &DeviceConfig) -> Self {
        let by_page = config.ftl.mapping.write_path() == WritePath::Buffer;
        Self {
            gc: config.ftl.gc.clone(),
            slc_cache: config.ftl.slc_cache,
            in_foreground: config.ftl.gc.mode == GcMode::Foreground && by_page,
            is_protected: config.controller.power_loss_protection,
            page_bytes: config.ftl.logical_page_bytes as u32,
        }
    }
}

/// Garbage collection of a drive, and what ends its life.
pub(crate) struct Collector {
    pub(crate) rules: Rules,
    pub(crate) units: Vec<UnitCollector>,
    /// Flash commands of the host that wait until their unit is clean, unit by unit.
    pub(crate) held: Vec<Fifo>,
    /// Superblocks that were chosen to be emptied since the host has nothing outstanding and nothing left the buffer.
    pub(crate) idle_collections: u32,
    /// Victims that wait for credit: the host has not written enough for them to go on ([`Pace`]).
    pub(crate) waiting_for_credit: u32,
    pub(crate) folding: Folding,
    pub(crate) slc_counters: SlcCacheCounters,
    /// The drive has run out of spare superblocks.
    pub(crate) read_only: bool,
    pub(crate) end_of_life: Option<EndOfLife>,
    /// Wear of a medium that is written in place, where it has a limit.
    pub(crate) in_place_wear: Option<Box<InPlaceWear>>,
    /// Scratch space: what is valid in a row, read by read.
    pub(crate) bytes_of_read: Vec<u32>,
}

impl Collector {
    /// Nothing is collected yet.
    pub(crate) fn new(config: &DeviceConfig, geometry: &Geometry) -> Self {
        let units = geometry.units as usize;
        let reads = match config.ftl.gc.reads {
            GcReads::Die => geometry.dies_per_unit,
            GcReads::Page => geometry.pages_per_superpage(),
        };
        Self {
            rules: Rules::new(config),
            units: vec![UnitCollector::default(); units],
            held: vec![Fifo::default(); units],
            idle_collections: 0,
            waiting_for_credit: 0,
            folding: Folding::default(),
            slc_counters: SlcCacheCounters::default(),
            read_only: false,
            end_of_life: None,
            in_place_wear: InPlaceWear::new(config).map(Box::new),
            bytes_of_read: vec![0; reads as usize],
        }
    }
}
