//! A drive of some gigabytes in place of one of terabytes: the same geometry, times, over-provisioning and rules, fewer
//! blocks.
//!
//! Drives whose map is cached are cut further, with the cache in proportion, because each of their requests costs a few. For
//! what is asked of a region alone they have all of their cache: it is the region that fits in it or does not.
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
    let (largest, target) = match config.ftl.mapping_cache {
        Some(_) => (TARGET_CACHED * 5 / 4, TARGET_CACHED),
        None => (LARGEST, TARGET),
    };
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

/// The small drive with as much of the map cached as on the real one: for what is done to a region of a fixed size, of which as
/// much of the map has to be at hand.
pub(super) fn with_cache_of(config: &DeviceConfig, small: &DeviceConfig) -> DeviceConfig {
    let mut small = small.clone();
    small.ftl.mapping_cache.clone_from(&config.ftl.mapping_cache);
    small
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MappingCacheConfig;

    #[test]
    fn a_region_finds_as_much_of_the_map_cached_as_on_the_large_drive() {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        let cache: MappingCacheConfig = toml::from_str("capacity_bytes = 1048576").unwrap();
        config.ftl.mapping_cache = Some(cache.clone());
        let (small, factor) = scaled(&config);
        assert!(factor > 2.0 && small.ftl.mapping_cache.as_ref().unwrap().capacity_bytes < cache.capacity_bytes / 2);
        let of_region = with_cache_of(&config, &small);
        assert_eq!(of_region.ftl.mapping_cache, Some(cache));
        assert_eq!(of_region.capacity_bytes, small.capacity_bytes);
    }
}
