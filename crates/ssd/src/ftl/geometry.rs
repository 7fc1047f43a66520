//! Parallel units, superblocks, superpages and slots: how the FTL counts the flash.
//!
//! ```text
//!   parallel unit   some planes of some dies (ways) of each channel in a group; programs and erases as one
//!     superblock    the same block of all its planes; erased as one
//!       superpage   the same page of all its planes; programmed as one (row of a superblock)
//!         slot      room for one logical page
//!
//!   slot number = ((unit · superblocks + superblock) · rows + row) · slots + slot
//! ```
//!
//! Inside a superpage the pages are filled one after the other: channel by channel, then way by way, then plane by
//! plane.

use crate::config::DeviceConfig;
use crate::flash::FlashAddress;

/// The counts that turn a slot number into a place in the flash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Parallel units.
    pub(crate) units: u32,
    /// Parallel units in a channel group.
    pub(crate) units_per_group: u32,
    /// Channels in a group.
    channels_per_unit: u32,
    /// Dies of a channel.
    ways: u32,
    /// Units that share the same dies, on other planes.
    plane_groups: u32,
    /// Planes of a die that belong to one unit.
    pub(crate) planes_per_unit: u32,
    /// Dies of a unit.
    pub(crate) dies_per_unit: u32,
    /// Superblocks of a unit.
    pub(crate) superblocks: u32,
    /// Superpages of a superblock.
    pub(crate) rows: u32,
    /// Slots of a superpage.
    pub(crate) slots: u32,
    /// Slots of a page.
    pub(crate) slots_per_page: u32,
    /// Bytes that one die programs for a superpage.
    pub(crate) program_bytes_per_die: u32,
}

impl Geometry {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let flash = &config.flash;
        let slots_per_page = (flash.page_bytes / config.ftl.logical_page_bytes) as u32;
        let planes_per_unit = config.superpage_planes();
        let plane_groups = flash.planes_per_die / planes_per_unit;
        let channels_per_unit = config.ftl.superpage_channels;
        let (ways, dies_per_unit) = (config.ways(), channels_per_unit * config.ftl.superpage_ways);
        let units_per_group = ways / config.ftl.superpage_ways * plane_groups;
        Self {
            units: flash.channels / channels_per_unit * units_per_group,
            units_per_group,
            channels_per_unit,
            ways,
            plane_groups,
            planes_per_unit,
            dies_per_unit,
            superblocks: flash.blocks_per_plane,
            rows: flash.pages_per_block,
            slots: dies_per_unit * planes_per_unit * slots_per_page,
            slots_per_page,
            program_bytes_per_die: planes_per_unit * flash.page_bytes as u32,
        }
    }

    /// The geometry of a drive that has none: one unit of one slot.
    pub(crate) fn trivial() -> Self {
        Self {
            units: 1,
            units_per_group: 1,
            channels_per_unit: 1,
            ways: 1,
            plane_groups: 1,
            planes_per_unit: 1,
            dies_per_unit: 1,
            superblocks: 1,
            rows: 1,
            slots: 1,
            slots_per_page: 1,
            program_bytes_per_die: 0,
        }
    }

    /// Units of one plane and blocks of pages that hold one slot each.
    #[cfg(test)]
    pub(crate) fn pages(units: u32, superblocks: u32, rows: u32) -> Self {
        Self { units, units_per_group: units, superblocks, rows, ..Self::trivial() }
    }

    /// Dies of the drive.
    pub(crate) fn dies(&self) -> u32 {
        self.units / self.plane_groups * self.dies_per_unit
    }

    /// The units that share a unit's dies, itself among them.
    pub(crate) fn siblings(&self, unit: u32) -> std::ops::Range<u32> {
        let first = unit - unit % self.plane_groups;
        first..first + self.plane_groups
    }

    /// Channel groups.
    pub(crate) fn groups(&self) -> u32 {
        self.units / self.units_per_group
    }

    /// Slots of the whole drive.
    pub(crate) fn total_slots(&self) -> u64 {
        u64::from(self.units) * u64::from(self.superblocks) * u64::from(self.slots_per_superblock())
    }

    /// Slots of a superblock.
    pub(crate) fn slots_per_superblock(&self) -> u32 {
        self.rows * self.slots
    }

    /// First slot of a superpage; `block` counts superblocks over the whole drive.
    pub(crate) fn first_slot(&self, block: u32, row: u32) -> u32 {
        (block * self.rows + row) * self.slots
    }

    /// Superblock (counted over the whole drive) and row of a slot.
    pub(crate) fn block_and_row(&self, slot: u32) -> (u32, u32) {
        let superpage = slot / self.slots;
        (superpage / self.rows, superpage % self.rows)
    }

    /// Where a slot is.
    pub(crate) fn address_of(&self, slot: u32) -> FlashAddress {
        let (block, row) = self.block_and_row(slot);
        self.address(block, row, self.die_index(slot))
    }

    /// Which of its unit's dies a slot is on.
    pub(crate) fn die_index(&self, slot: u32) -> u32 {
        slot % self.slots / self.slots_per_page % self.dies_per_unit
    }

    /// A unit's `n`th die: channel by channel, then way by way.
    pub(crate) fn die_in_unit(&self, unit: u32, n: u32) -> u32 {
        let (group, unit_in_group) = (unit / self.units_per_group, unit % self.units_per_group);
        let channel = group * self.channels_per_unit + n % self.channels_per_unit;
        let ways_per_unit = self.dies_per_unit / self.channels_per_unit;
        channel * self.ways + unit_in_group / self.plane_groups * ways_per_unit + n / self.channels_per_unit
    }

    /// The first of a unit's planes.
    pub(crate) fn first_plane(&self, unit: u32) -> u32 {
        unit % self.plane_groups * self.planes_per_unit
    }

    /// The planes that a command to a unit's `n`th die names, in a row of a superblock (counted over the drive).
    pub(crate) fn address(&self, block: u32, row: u32, n: u32) -> FlashAddress {
        let unit = block / self.superblocks;
        let (plane, planes) = (self.first_plane(unit) as u8, self.planes_per_unit as u8);
        FlashAddress { die: self.die_in_unit(unit, n), plane, planes, row: row as u16, block }
    }
}
