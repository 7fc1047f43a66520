//! What studies, models and tests of a drive see of its inside: where data lies. Nothing here changes the drive.

use flashwise_block::ByteSize;

use super::SimulatedSsd;
use crate::config::DeviceConfig;
use crate::ftl::geometry::Geometry;
use crate::ftl::superblock::{BlockState, Superblock};
use crate::ftl::wear::InPlaceWear;
use crate::ftl::{AnyFtl, StepFtl};

/// What a superblock has gone through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockWear {
    /// P/E cycles; those with one bit a cell count as what they wear.
    pub cycles: f64,
    /// Whether it is bad.
    pub is_bad: bool,
    /// Whether it is only ever written in SLC mode.
    pub is_slc: bool,
}

impl SimulatedSsd {
    /// The channel that a byte is on; `None` where none of it is on flash.
    pub fn channel_of(&self, byte: ByteSize) -> Option<u32> {
        let slot = self.slot_of(self.page.of_byte(byte.0))?;
        Some(self.address_of(slot).die / self.config.ways())
    }

    /// The wear of each superblock, or block of an FTL that maps blocks.
    pub fn block_wear(&self) -> Vec<BlockWear> {
        if let Some(ftl) = self.step_ftl() {
            let worn = |erases| BlockWear { cycles: f64::from(erases), is_bad: false, is_slc: false };
            return ftl.erase_counts().into_iter().map(worn).collect();
        }
        let pages = &self.ftl.pages;
        let worn = |(n, block): (u32, &Superblock)| BlockWear {
            cycles: pages.worn_cycles(n),
            is_bad: block.state == BlockState::Bad,
            is_slc: pages.is_dedicated(n),
        };
        (0..).zip(pages.superblocks.blocks.iter()).map(worn).collect()
    }

    /// The parallel unit that a superblock is of, and how many units there are.
    pub fn unit_of_superblock(&self, superblock: u32) -> (u32, u32) {
        let geometry = &self.ftl.pages.geometry;
        (geometry.unit_of(superblock), geometry.units)
    }

    /// Superblocks of a unit that may die before the drive does.
    pub fn spare_superblocks(&self) -> u32 {
        self.step_ftl().map_or_else(|| self.ftl.pages.spare_superblocks(&self.config), |ftl| ftl.spare_blocks())
    }

    /// The FTL that maps blocks; `None` for other drives.
    fn step_ftl(&self) -> Option<&dyn StepFtl> {
        match &self.ftl.kind {
            AnyFtl::Steps(ftl) => Some(&**ftl),
            _ => None,
        }
    }

    /// How often a superblock that is written in SLC mode has to be erased for what it holds otherwise.
    pub fn rows_per_slc_row(&self) -> f64 {
        let geometry = &self.ftl.pages.geometry;
        f64::from(geometry.rows) / f64::from(geometry.slc_rows)
    }

    /// What the pages of a medium that is written in place have gone through; `None` where nothing is, or wears out.
    pub fn in_place_wear(&self) -> Option<&InPlaceWear> {
        self.collector.in_place_wear.as_deref()
    }
}

impl DeviceConfig {
    /// The first die of each parallel unit, counted over the drive: die `d` is on channel `d / ways`.
    pub fn first_dies_of_units(&self) -> Vec<u32> {
        let geometry = Geometry::new(self);
        (0..geometry.units).map(|unit| geometry.die_in_unit(unit, 0)).collect()
    }

    /// Slots of a superblock: logical pages, or granules of them, that it holds.
    pub fn slots_per_superblock(&self) -> u32 {
        Geometry::new(self).slots_per_superblock()
    }

    /// Parallel units of a group of channels.
    pub fn units_per_group(&self) -> u32 {
        Geometry::new(self).units_per_group
    }
}
