//! Cells of a random drive that are written with one bit first.
//!
//! Most drives of cells with three or four bits have such a cache, in blocks of its own, in free ones, or in both (the
//! makers' data sheets say that there is one, and seldom more). Here it is 3 to 35 % of the blocks, so that the fill of
//! a drive shows it. Sensing and programming take the part of the full cells' times that data sheets of cells with one
//! bit and with more have between them.

use super::draw::{Draws, rounded};
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{CellType, GcMode, GcTrigger, SlcCacheConfig, SlcCacheFull, SlcModeConfig};

/// Share of drives with two and with more bits a cell that have the cache, where their collection allows one.
pub(super) const SLC_CACHE: (f64, f64) = (0.10, 0.35);

/// Gives a drive its cache, of which the dynamic part is still to be sized; `superblocks` is about how many a unit has.
pub(super) fn give(draws: &Draws, config: &mut DeviceConfig, superblocks: u64) {
    let gc = &config.ftl.gc;
    let fits = gc.mode == GcMode::Background && gc.trigger == GcTrigger::Low && gc.separate_open_block;
    let share = match config.flash.cell {
        Some(CellType::Mlc) => SLC_CACHE.0,
        Some(CellType::Tlc | CellType::Qlc) => SLC_CACHE.1,
        _ => 0.0,
    };
    if !fits || config.ftl.mapping_cache.is_some() || !draws.chance("ftl.slc_cache", share) {
        return;
    }
    let part = |time_ns: u64, divisor: f64| rounded((time_ns as f64 / divisor) as u64).max(1_000);
    config.flash.slc_mode = Some(SlcModeConfig {
        read_ns: part(config.flash.read_ns, draws.share("flash.slc_mode.read", 1.2, 3.0)),
        program_ns: part(config.flash.program_ns, draws.share("flash.slc_mode.program", 2.5, 7.0)),
        erase_ns: None,
        pe_cycles: None,
        rber_factor: None,
    });
    let of_its_own = draws.share("ftl.slc_cache.dedicated", 0.03, 0.12) * superblocks as f64;
    let kind = kind(draws);
    config.ftl.slc_cache = Some(SlcCacheConfig {
        dedicated_superblocks: if kind == Kind::Dynamic { 0 } else { (of_its_own as u32).max(1) },
        dynamic_superblocks: 0,
        when_full: draws.weighted("ftl.slc_cache.when_full", &[(SlcCacheFull::Bypass, 60), (SlcCacheFull::Fold, 40)]),
        idle_ns: draws.between("ftl.slc_cache.idle_ns", 5_000_000, 500_000_000),
    });
}

/// The part of the cache that is taken from free superblocks, once the drive has its size.
pub(super) fn size_dynamic(draws: &Draws, config: &mut DeviceConfig) {
    let superblocks = f64::from(config.flash.blocks_per_plane);
    let Some(cache) = &mut config.ftl.slc_cache else { return };
    if kind(draws) != Kind::Dedicated {
        let share = draws.share("ftl.slc_cache.dynamic", 0.08, 0.35);
        cache.dynamic_superblocks = ((share * superblocks) as u32).max(1);
    }
}

/// Where the cache lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dedicated,
    Dynamic,
    Both,
}

fn kind(draws: &Draws) -> Kind {
    draws.weighted("ftl.slc_cache.kind", &[(Kind::Dedicated, 40), (Kind::Dynamic, 30), (Kind::Both, 30)])
}
