//! A drive of some gigabytes in place of one of terabytes: the same geometry, times, over-provisioning and rules, fewer
//! blocks.
//!
//! Drives whose map is cached are cut further, with the cache in proportion, because each of their requests costs a few. For
//! what is asked of a region alone they are not, and have all of their cache: it is the region that fits in it or does not.
//!
//! The onset of collection grows with the capacity. What collection costs depends on the number of blocks as well, since
//! some are open and some kept free: with fifty of them in a unit in place of two hundred, write amplification came out a
//! tenth off. So drives are simulated as they are as far as that takes seconds.

use crate::DeviceConfig;
use crate::config::Mapping;

/// Drives up to here are simulated as they are.
const LARGEST: u64 = 10 << 30;
/// What a larger one is cut to, about.
const TARGET: u64 = 4 << 30;
/// And one with a cached map.
const TARGET_CACHED: u64 = 1 << 30;
/// Superblocks of a unit that are left at least.
const SUPERBLOCKS_MIN: u64 = 96;

/// The drive that is simulated, and by how much the real one is larger.
pub(super) fn scaled(config: &DeviceConfig) -> (DeviceConfig, f64) {
    let largest_and_target = match config.ftl.mapping_cache {
        Some(_) => (TARGET_CACHED * 5 / 4, TARGET_CACHED),
        None => (LARGEST, TARGET),
    };
    cut(config, largest_and_target)
}

/// The drive that is simulated for what is asked of a region of it.
pub(super) fn around_region(config: &DeviceConfig) -> DeviceConfig {
    let (mut small, _) = cut(config, (LARGEST, TARGET));
    if let (Some(cache), Some(whole)) = (&mut small.ftl.mapping_cache, &config.ftl.mapping_cache) {
        cache.capacity_bytes = whole.capacity_bytes;
    }
    match small.check(&small.name) {
        Ok(()) => small,
        Err(_) => config.clone(),
    }
}

fn cut(config: &DeviceConfig, (largest, target): (u64, u64)) -> (DeviceConfig, f64) {
    if config.capacity_bytes <= largest {
        return (config.clone(), 1.0);
    }
    let mut small = config.clone();
    match config.ftl.mapping {
        Mapping::Page => shrink(config, &mut small, target),
        _ => small.capacity_bytes = target,
    }
    match small.check(&small.name) {
        Ok(()) => {
            let factor = config.capacity_bytes as f64 / small.capacity_bytes as f64;
            (small, factor)
        }
        Err(_) => (config.clone(), 1.0),
    }
}

/// Fewer pages in a block first, where few superblocks are left otherwise.
fn shrink(config: &DeviceConfig, small: &mut DeviceConfig, target: u64) {
    let share = super::reclaiming::over_provisioning(config);
    let row = config.units() * config.superpage_bytes();
    let raw = (target as f64 * (1.0 + share)) as u64;
    let pages = (raw / row / SUPERBLOCKS_MIN).clamp(32, u64::from(config.flash.pages_per_block));
    let superblock = row * pages;
    let kept = config.superblocks_kept() + 2;
    let least = (kept as f64 * (1.0 + share) / share.max(0.01)) as u64;
    let data = (raw / superblock).max(SUPERBLOCKS_MIN).max(least);
    small.flash.pages_per_block = pages as u32;
    small.flash.blocks_per_plane = data as u32 + config.gc_threshold();
    small.flash.blocks_per_plane += small.factory_bad_superblocks();
    let page = config.ftl.logical_page_bytes;
    let capacity = (data * superblock) as f64 / (1.0 + share);
    small.capacity_bytes = capacity as u64 / page * page;
    let part = small.capacity_bytes as f64 / config.capacity_bytes as f64;
    if let Some(cache) = &mut small.ftl.mapping_cache {
        cache.capacity_bytes = (cache.capacity_bytes as f64 * part) as u64;
    }
}
