//! Cells that can hold several bits, written with one: keys of `[flash.slc_mode]`, and of `[ftl.slc_cache]`, which says
//! for what the drive uses it; without the tables, every cell holds all the bits that it can.
//!
//! A block in SLC mode has a page for each word line, not one for each bit of a cell, so that it holds 1 ÷ *bits* of
//! what it can otherwise; its pages are sensed and programmed faster, and its cells endure more cycles. Drives write
//! what comes from the host to such blocks first and move it later: FlexFS (Lee et al., "FlexFS: A Flexible Flash File
//! System for MLC NAND Flash Memory", USENIX ATC 2009) in a file system, ComboFTL (Im and Shin, "ComboFTL: Improving
//! performance and lifespan of MLC flash memory using SLC flash buffer", Journal of Systems Architecture 56(12), 2010)
//! in an FTL.
//!
//! # Adding what happens when the cache is full
//!
//! A name in the list of [`SlcCacheFull`], and what it means in `ftl/slc_cache.rs` (`has_room_beside_slc_cache`,
//! `wants_folding`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::choices::choices;
use super::{CellType, DeviceConfig, GcMode, GcTrigger, Mapping, UnwrittenReads};
use crate::error::SsdError;

/// Properties of blocks written with one bit per cell (SLC mode).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcModeConfig {
    /// Sensing one page (all planes at once), ns.
    pub read_ns: u64,
    /// Programming one page (all planes at once), ns.
    pub program_ns: u64,
    /// Erasing one block (all planes at once), ns; default: `flash.erase_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase_ns: Option<u64>,
    /// P/E cycles that a block endures if it is only written in this mode; default: the figure of `flash.endurance` for
    /// SLC cells. Required if the cells wear out and there is no such figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pe_cycles: Option<u32>,
    /// Factor on the raw bit error rate of full cells at the same wear and age; default 0.01 \[fit\], because a single
    /// threshold has the whole voltage range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rber_factor: Option<f64>,
}

impl SlcModeConfig {
    /// `rber_factor`, or its default.
    pub fn rber_factor(&self) -> f64 {
        self.rber_factor.unwrap_or(0.01)
    }
}

choices! {
    /// What becomes of the host's writes while the cache has no space.
    #[derive(Default)]
    pub enum SlcCacheFull {
        /// They go to blocks with all bits per cell; the cache is folded when the drive is idle.
        #[default]
        Bypass = "bypass",
        /// They wait until a superblock of the cache is folded.
        Fold = "fold",
    }
}

/// An SLC cache: superblocks of each unit that take the host's writes in SLC mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlcCacheConfig {
    /// Superblocks of each unit that are only written in SLC mode. They are over-provisioning: no data stays there.
    pub dedicated_superblocks: u32,
    /// Maximum number of free superblocks of each unit in SLC mode at a time, as long as more are free than GC keeps.
    /// If too few are free, cached superblocks are folded first.
    pub dynamic_superblocks: u32,
    /// What happens to writes while the cache is full.
    pub when_full: SlcCacheFull,
    /// The cache is folded when the drive has been idle for this long, ns; default 100 ms.
    pub idle_ns: u64,
}

impl Default for SlcCacheConfig {
    fn default() -> Self {
        Self { dedicated_superblocks: 0, dynamic_superblocks: 0, when_full: SlcCacheFull::Bypass, idle_ns: 100_000_000 }
    }
}

impl SlcCacheConfig {
    fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let most = config.flash.blocks_per_plane;
        let sum = self.dedicated_superblocks.checked_add(self.dynamic_superblocks);
        let reason = format!("dedicated and dynamic superblocks must be between 1 and {most} in total");
        let possible = sum.is_some_and(|sum| (1..=most).contains(&sum));
        checker.require("ftl.slc_cache.dedicated_superblocks", self.dedicated_superblocks, possible, reason)?;
        checker.time("ftl.slc_cache.idle_ns", self.idle_ns)?;
        let reason = "requires flash.slc_mode";
        checker.require("ftl.slc_cache", "present", config.flash.slc_mode.is_some(), reason)?;
        let reason = "requires mapping = \"page\"";
        checker.require("ftl.mapping", "not page", config.ftl.mapping == Mapping::Page, reason)?;
        let gc = &config.ftl.gc;
        let collects = gc.mode == GcMode::Background && gc.trigger == GcTrigger::Low && gc.separate_open_block;
        let reason = "an SLC cache requires mode = \"background\", trigger = \"low\" and separate_open_block = true";
        checker.require("ftl.gc", format!("{:?}, {:?}", gc.mode, gc.trigger), collects, reason)?;
        let reason = "not supported with an SLC cache";
        let placed = config.controller.unwritten_reads == UnwrittenReads::Allocate;
        checker.require("controller.unwritten_reads", "allocate", !placed, reason)
    }
}

impl DeviceConfig {
    /// P/E cycles that a block endures, as a mean where blocks differ, if it is only ever written in SLC mode; `None`
    /// where nothing wears out or no block is written so.
    pub fn slc_pe_cycles_limit(&self) -> Option<u32> {
        let mode = self.flash.slc_mode?;
        self.pe_cycles_limit()?;
        let figures = self.flash.endurance.and_then(|endurance| endurance.figures);
        mode.pe_cycles.or_else(|| figures?.pe_cycles(CellType::Slc))
    }

    /// What a cycle in SLC mode does to a block, in cycles in which its cells hold all bits: the ratio of the two
    /// limits, and 1 where nothing wears out. Damage is taken to add up, whatever its order (Miner, "Cumulative Damage
    /// in Fatigue", Journal of Applied Mechanics 12, 1945, of other materials); we know of no measurement of blocks in
    /// mixed use.
    pub fn wear_of_slc_cycle(&self) -> f64 {
        let limits = self.pe_cycles_limit().zip(self.slc_pe_cycles_limit());
        limits.map_or(1.0, |(all_bits, slc)| f64::from(all_bits) / f64::from(slc))
    }

    /// Pages of a block in SLC mode; without that mode, of any block.
    pub fn slc_pages_per_block(&self) -> u32 {
        let bits = self.flash.slc_mode.and(self.flash.cell).map_or(1, CellType::bits);
        self.flash.pages_per_block / bits
    }

    /// Bytes that the SLC cache holds at most; 0 without one.
    pub fn slc_cache_bytes(&self) -> u64 {
        let superblock = u64::from(self.slc_pages_per_block()) * self.superpage_bytes();
        let of_unit =
            |cache: SlcCacheConfig| u64::from(cache.dedicated_superblocks) + u64::from(cache.dynamic_superblocks);
        self.ftl.slc_cache.map_or(0, |cache| self.units() * of_unit(cache) * superblock)
    }

    /// Superblocks of a unit that are only ever written in SLC mode.
    pub fn dedicated_superblocks(&self) -> u32 {
        self.ftl.slc_cache.map_or(0, |cache| cache.dedicated_superblocks)
    }

    pub(super) fn check_slc_mode(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let Some(mode) = self.flash.slc_mode else {
            return self.ftl.slc_cache.map_or(Ok(()), |cache| cache.check(self, checker));
        };
        let several = self.flash.cell.is_some_and(|cell| cell.bits() > 1);
        let reason = "requires a flash.cell with more than one bit";
        checker.require("flash.slc_mode", "present", several, reason)?;
        checker.time("flash.slc_mode.read_ns", mode.read_ns)?;
        checker.time("flash.slc_mode.program_ns", mode.program_ns)?;
        checker.time("flash.slc_mode.erase_ns", mode.erase_ns.unwrap_or(0))?;
        checker.count(
            "flash.slc_mode.pe_cycles",
            mode.pe_cycles.unwrap_or(1),
            1 << 30,
            "must be between 1 and 2^30",
        )?;
        checker.share("flash.slc_mode.rber_factor", mode.rber_factor(), 0.0, 1.0)?;
        let known = self.pe_cycles_limit().is_none() || self.slc_pe_cycles_limit().is_some();
        let reason = "set the P/E cycles of this mode";
        checker.require("flash.slc_mode.pe_cycles", "absent", known, reason)?;
        let pages = self.slc_pages_per_block();
        let reason = "leaves no page of a block in SLC mode";
        checker.require("flash.pages_per_block", self.flash.pages_per_block, pages >= 1, reason)?;
        let reason = "is not used without ftl.slc_cache";
        checker.require("flash.slc_mode", "present", self.ftl.slc_cache.is_some(), reason)?;
        self.ftl.slc_cache.map_or(Ok(()), |cache| cache.check(self, checker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EnduranceConfig, EnduranceFigures};

    fn cached(change: impl FnOnce(&mut DeviceConfig)) -> Result<DeviceConfig, String> {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        config.flash.cell = Some(CellType::Tlc);
        config.flash.slc_mode = Some(SlcModeConfig {
            read_ns: 20_000,
            program_ns: 200_000,
            erase_ns: None,
            pe_cycles: None,
            rber_factor: None,
        });
        config.ftl.slc_cache = Some(SlcCacheConfig { dedicated_superblocks: 4, ..SlcCacheConfig::default() });
        change(&mut config);
        config.check("mine.toml").map(|()| config).map_err(|error| error.to_string())
    }

    #[test]
    fn the_keys_are_read_back_as_they_were_written() {
        let config = cached(|c| c.ftl.slc_cache.as_mut().unwrap().when_full = SlcCacheFull::Fold).unwrap();
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("when_full = \"fold\""), "{text}");
        assert_eq!(DeviceConfig::from_toml(&text, "written").unwrap(), config);
    }

    #[test]
    fn a_block_in_slc_mode_has_a_page_for_each_word_line() {
        let config = cached(|c| c.flash.pages_per_block = 800).unwrap();
        assert_eq!(config.slc_pages_per_block(), 266);
        let preset = DeviceConfig::preset("samsung-960-evo").unwrap();
        assert_eq!(preset.slc_pages_per_block(), preset.flash.pages_per_block);
    }

    #[test]
    fn a_mode_that_the_cells_do_not_have_or_that_nothing_uses_is_refused() {
        let refused = |change: fn(&mut DeviceConfig)| cached(change).unwrap_err();
        assert!(refused(|c| c.flash.cell = None).contains("flash.slc_mode"));
        assert!(refused(|c| c.flash.cell = Some(CellType::Slc)).contains("more than one bit"));
        assert!(refused(|c| c.flash.slc_mode = None).contains("requires flash.slc_mode"));
        assert!(refused(|c| c.ftl.slc_cache = None).contains("not used without ftl.slc_cache"));
        assert!(refused(|c| c.ftl.slc_cache = Some(SlcCacheConfig::default())).contains("in total"));
        assert!(refused(|c| c.ftl.gc.mode = GcMode::Foreground).contains("background"));
        assert!(refused(|c| c.ftl.gc.separate_open_block = false).contains("separate_open_block"));
    }

    #[test]
    fn dedicated_superblocks_are_no_room_for_data() {
        let too_many = cached(|c| {
            let blocks = c.flash.blocks_per_plane;
            c.ftl.slc_cache.as_mut().unwrap().dedicated_superblocks = blocks / 2;
        });
        let told = too_many.unwrap_err();
        assert!(told.contains("capacity_bytes") && told.contains("garbage collection needs"), "{told}");
    }

    #[test]
    fn cycles_in_slc_mode_come_from_the_figures_or_are_a_number_of_ones_own() {
        let figures = |c: &mut DeviceConfig, figures| {
            c.flash.endurance = Some(EnduranceConfig { figures, ..EnduranceConfig::default() });
        };
        let today = cached(|c| figures(c, Some(EnduranceFigures::Today))).unwrap();
        assert_eq!((today.pe_cycles_limit(), today.slc_pe_cycles_limit()), (Some(800), Some(30_000)));
        let own = cached(|c| {
            figures(c, Some(EnduranceFigures::Today));
            c.flash.slc_mode.as_mut().unwrap().pe_cycles = Some(40_000);
        });
        assert_eq!(own.unwrap().slc_pe_cycles_limit(), Some(40_000));
        let unknown = cached(|c| {
            figures(c, None);
            c.flash.endurance.as_mut().unwrap().pe_cycles = Some(700);
        });
        assert!(unknown.unwrap_err().contains("flash.slc_mode.pe_cycles"));
        assert_eq!(cached(|_| {}).unwrap().slc_pe_cycles_limit(), None);
    }
}
