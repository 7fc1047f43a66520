//! Parallel units, superblocks, superpages and slots: how the FTL counts the flash.
//!
//! ```text
//!   parallel unit   some planes of some dies (ways) of each channel in a group; programs and erases as one
//!     superblock    the same block of all its planes; erased as one
//!       superpage   the same page of all its planes; programmed as one (row of a superblock)
//!         slot      room for one logical page, or where pages are compressed, for a granule of one
//!
//!   slot number = ((unit · superblocks + superblock) · rows + row) · slots + slot
//! ```
//!
//! Inside a superpage the pages are filled one after the other: channel by channel, then way by way, then plane by
//! plane. The last flash pages of a superpage may hold parity, and no slots.

use super::superblock::CellMode;
use crate::config::DeviceConfig;
use crate::flash::FlashAddress;
use crate::reciprocal::Divisor;

/// The counts that turn a slot number into a place in the flash.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    /// Parallel units.
    pub(crate) units: u32,
    /// Parallel units in a channel group.
    pub(crate) units_per_group: u32,
    /// Channels in a group.
    channels_per_unit: u32,
    /// Dies of a channel.
    ways: u32,
    /// Planes of a die that belong to one unit.
    pub(crate) planes_per_unit: u32,
    /// Dies of a unit.
    pub(crate) dies_per_unit: u32,
    /// Superblocks of a unit.
    pub(crate) superblocks: u32,
    /// Superpages of a superblock.
    pub(crate) rows: u32,
    /// Of these, those that are used while its cells hold one bit each.
    pub(crate) slc_rows: u32,
    /// Slots of a superpage.
    pub(crate) slots: u32,
    /// Logical pages that a superpage has space for as they come; as many as slots, unless pages are compressed.
    pub(crate) pages: u32,
    /// Bytes that one die programs for a superpage.
    pub(crate) program_bytes_per_die: u32,
    by: Divisors,
    /// The dies of every unit, unit by unit.
    dies_of_units: Box<[DieOfUnit]>,
}

/// One die of a unit: its number, and the first of its planes that belong to the unit.
#[derive(Clone, Copy, Debug)]
struct DieOfUnit {
    die: u32,
    plane: u8,
}

/// What slot numbers are divided by, on the path of every command.
#[derive(Clone, Copy, Debug)]
struct Divisors {
    slots: Divisor,
    /// Slots of a page.
    slots_per_page: Divisor,
    rows: Divisor,
    superblocks: Divisor,
    dies_per_unit: Divisor,
    /// Units that share the same dies, on other planes.
    plane_groups: Divisor,
    units: Divisor,
    /// Slots of a unit.
    slots_per_unit: Divisor,
}

impl Geometry {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let flash = &config.flash;
        let slots_per_page = (flash.page_bytes / config.slot_bytes()) as u32;
        let planes_per_unit = config.superpage_planes();
        let plane_groups = flash.planes_per_die / planes_per_unit;
        let channels_per_unit = config.ftl.superpage_channels;
        let (ways, dies_per_unit) = (config.ways(), channels_per_unit * config.ftl.superpage_ways);
        let units_per_group = ways / config.ftl.superpage_ways * plane_groups;
        // The last pages of a superpage are those of parity.
        let slots = (dies_per_unit * planes_per_unit - config.ftl.parity_pages) * slots_per_page;
        Self {
            units: flash.channels / channels_per_unit * units_per_group,
            units_per_group,
            channels_per_unit,
            ways,
            planes_per_unit,
            dies_per_unit,
            superblocks: flash.blocks_per_plane,
            rows: flash.pages_per_block,
            slc_rows: config.slc_pages_per_block(),
            slots,
            pages: (config.superpage_bytes() / config.ftl.logical_page_bytes) as u32,
            program_bytes_per_die: planes_per_unit * flash.page_bytes as u32,
            by: Divisors {
                slots: Divisor::new(slots),
                slots_per_page: Divisor::new(slots_per_page),
                rows: Divisor::new(flash.pages_per_block),
                superblocks: Divisor::new(flash.blocks_per_plane),
                dies_per_unit: Divisor::new(dies_per_unit),
                plane_groups: Divisor::new(plane_groups),
                units: Divisor::new(flash.channels / channels_per_unit * units_per_group),
                slots_per_unit: Divisor::new(
                    flash.blocks_per_plane.wrapping_mul(flash.pages_per_block).wrapping_mul(slots).max(1),
                ),
            },
            dies_of_units: Box::default(),
        }
        .with_dies()
    }

    /// The geometry of a drive that has none: one unit of one slot.
    pub(crate) fn trivial() -> Self {
        let one = Divisor::new(1);
        Self {
            units: 1,
            units_per_group: 1,
            channels_per_unit: 1,
            ways: 1,
            planes_per_unit: 1,
            dies_per_unit: 1,
            superblocks: 1,
            rows: 1,
            slc_rows: 1,
            slots: 1,
            pages: 1,
            program_bytes_per_die: 0,
            by: Divisors {
                slots: one,
                slots_per_page: one,
                rows: one,
                superblocks: one,
                dies_per_unit: one,
                plane_groups: one,
                units: one,
                slots_per_unit: one,
            },
            dies_of_units: Box::default(),
        }
        .with_dies()
    }

    /// Units of one plane and blocks of pages that hold one slot each.
    #[cfg(test)]
    pub(crate) fn pages(units: u32, superblocks: u32, rows: u32) -> Self {
        let trivial = Self::trivial();
        let by = Divisors {
            rows: Divisor::new(rows),
            superblocks: Divisor::new(superblocks),
            units: Divisor::new(units),
            slots_per_unit: Divisor::new(superblocks * rows),
            ..trivial.by
        };
        Self { units, units_per_group: units, superblocks, rows, slc_rows: rows, by, ..trivial }.with_dies()
    }

    /// Dies of the drive.
    pub(crate) fn dies(&self) -> u32 {
        self.units / self.by.plane_groups.value() * self.dies_per_unit
    }

    /// The units that share a unit's dies, itself among them.
    pub(crate) fn siblings(&self, unit: u32) -> std::ops::Range<u32> {
        let (_, nth) = self.by.plane_groups.divide(unit);
        unit - nth..unit - nth + self.by.plane_groups.value()
    }

    /// Channel groups.
    pub(crate) fn groups(&self) -> u32 {
        self.units / self.units_per_group
    }

    /// Rows of a superblock in a mode.
    #[inline(always)]
    pub(crate) fn rows_in(&self, mode: CellMode) -> u32 {
        match mode {
            CellMode::AllBits => self.rows,
            CellMode::Slc => self.slc_rows,
        }
    }

    /// Bytes that a superpage programs, parity among them.
    pub(crate) fn program_bytes(&self) -> u64 {
        u64::from(self.dies_per_unit) * u64::from(self.program_bytes_per_die)
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
    #[inline]
    pub(crate) fn block_and_row(&self, slot: u32) -> (u32, u32) {
        self.by.rows.divide(self.by.slots.quotient(slot))
    }

    /// The unit of a superblock, which is counted over the whole drive.
    #[inline]
    pub(crate) fn unit_of(&self, block: u32) -> u32 {
        self.by.superblocks.quotient(block)
    }

    /// The slot that a logical page has on a drive that is filled in order: in `unit`, or where no unit is given, in
    /// the one that is due.
    pub(crate) fn nominal_slot(&self, logical_page: u32, unit: Option<u32>) -> u32 {
        let unit = unit.unwrap_or_else(|| self.by.units.divide(self.by.slots.quotient(logical_page)).1);
        let (_, in_unit) = self.by.slots_per_unit.divide(self.by.units.quotient(logical_page));
        unit * self.by.slots_per_unit.value() + in_unit
    }

    /// The unit of a superblock, and its number there.
    #[inline]
    pub(crate) fn unit_and_index(&self, block: u32) -> (u32, u32) {
        self.by.superblocks.divide(block)
    }

    /// Where a slot is.
    #[inline(always)]
    pub(crate) fn address_of(&self, slot: u32) -> FlashAddress {
        let (block, row) = self.block_and_row(slot);
        self.address(block, row, self.die_index(slot))
    }

    /// The runs of some successive slots that are on one flash page each: the first slot, and how many.
    pub(crate) fn runs(&self, first: u32, slots: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (by, end) = (self.by.slots_per_page, first + slots);
        let mut next = first;
        std::iter::from_fn(move || {
            let run = next;
            let of_page = by.value() - by.divide(run).1;
            next = end.min(run + of_page);
            (run < end).then_some((run, next - run))
        })
    }

    /// Which slot of its flash page a slot is.
    pub(crate) fn slot_in_page(&self, slot: u32) -> u32 {
        self.by.slots_per_page.divide(slot).1
    }

    /// Which of its unit's dies a slot is on.
    #[inline]
    pub(crate) fn die_index(&self, slot: u32) -> u32 {
        if self.dies_per_unit == 1 {
            return 0;
        }
        let in_superpage = self.by.slots.divide(slot).1;
        self.by.dies_per_unit.divide(self.by.slots_per_page.quotient(in_superpage)).1
    }

    /// Flash pages of a superpage, those of parity among them.
    pub(crate) fn pages_per_superpage(&self) -> u32 {
        self.dies_per_unit * self.planes_per_unit
    }

    /// Which flash page of its superpage a slot is in.
    #[inline]
    pub(crate) fn page_in_superpage(&self, slot: u32) -> u32 {
        self.by.slots_per_page.quotient(self.by.slots.divide(slot).1)
    }

    /// The one plane that a command to the `n`th flash page of a superpage names.
    pub(crate) fn address_of_page(&self, block: u32, row: u32, n: u32) -> FlashAddress {
        let (plane, die) = self.by.dies_per_unit.divide(n);
        let at = self.address(block, row, die);
        FlashAddress { plane: at.plane + plane as u8, planes: 1, ..at }
    }

    /// Notes where the dies of every unit are, so that a command's address needs no division.
    fn with_dies(mut self) -> Self {
        let all = (0..self.units).flat_map(|unit| (0..self.dies_per_unit).map(move |n| (unit, n)));
        self.dies_of_units = all.map(|(unit, n)| self.find_die(unit, n)).collect();
        self
    }

    fn find_die(&self, unit: u32, n: u32) -> DieOfUnit {
        let (group, unit_in_group) = (unit / self.units_per_group, unit % self.units_per_group);
        let (way, channel_in_group) = (n / self.channels_per_unit, n % self.channels_per_unit);
        let channel = group * self.channels_per_unit + channel_in_group;
        let ways_per_unit = self.dies_per_unit / self.channels_per_unit;
        let plane_group = self.by.plane_groups.quotient(unit_in_group);
        let plane = self.by.plane_groups.divide(unit).1 * self.planes_per_unit;
        DieOfUnit { die: channel * self.ways + plane_group * ways_per_unit + way, plane: plane as u8 }
    }

    #[inline]
    fn die_of_unit(&self, unit: u32, n: u32) -> DieOfUnit {
        self.dies_of_units[(unit * self.dies_per_unit + n) as usize]
    }

    /// A unit's `n`th die: channel by channel, then way by way.
    #[inline]
    pub(crate) fn die_in_unit(&self, unit: u32, n: u32) -> u32 {
        self.die_of_unit(unit, n).die
    }

    /// The planes that a command to a unit's `n`th die names, in a row of a superblock (counted over the drive).
    #[inline]
    pub(crate) fn address(&self, block: u32, row: u32, n: u32) -> FlashAddress {
        let DieOfUnit { die, plane } = self.die_of_unit(self.unit_of(block), n);
        FlashAddress { die, plane, planes: self.planes_per_unit as u8, row: row as u16, block }
    }
}
