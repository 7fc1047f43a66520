//! A drive of some gigabytes in place of one of terabytes: the same geometry, times, over-provisioning and rules, fewer
//! blocks.
//!
//! Drives whose map is cached are cut further, with the cache in proportion, because each of their requests costs a
//! few. Blocks of fewer pages take so much less time to erase, since writes pay for their share of an erase.
//!
//! What is asked of a region of a fresh drive is asked of the drive itself up to the same size, and of one with as long
//! blocks and all of its map's cache beyond. On a drive that holds the region a few times only, superblocks are
//! collected before all that they held is overwritten (by four times, a twentieth of it is left), and blocks cut in
//! half made writes of 634, a random drive, 7 % slower.
//!
//! The onset of collection grows with the capacity. What collection costs depends on the number of blocks as well,
//! since some are open and some kept free: with fifty of them in a unit in place of two hundred, write amplification
//! came out a tenth off. So drives are simulated as they are as far as that takes seconds.

use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::Mapping;

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

/// The drive that is simulated for what is done to a region of a fresh one.
pub(super) fn for_region(config: &DeviceConfig) -> DeviceConfig {
    if config.capacity_bytes <= LARGEST {
        return config.clone();
    }
    let mut small = config.clone();
    match config.ftl.mapping {
        Mapping::Page => cut(config, &mut small, raw_bytes(config, TARGET) / row_bytes(config)),
        _ => small.capacity_bytes = TARGET,
    }
    match small.capacity_bytes < config.capacity_bytes && small.check(&small.name).is_ok() {
        true => small,
        false => config.clone(),
    }
}

/// Fewer pages in a block first, where few superblocks are left otherwise.
fn shrink(config: &DeviceConfig, small: &mut DeviceConfig, target: u64) {
    let whole = u64::from(config.flash.pages_per_block);
    let rows = raw_bytes(config, target) / row_bytes(config);
    let pages = (rows / SUPERBLOCKS_MIN).clamp(32, whole);
    small.flash.pages_per_block = pages as u32;
    small.flash.erase_ns = config.flash.erase_ns * pages / whole;
    cut(config, small, rows.max(SUPERBLOCKS_MIN * pages));
    let part = small.capacity_bytes as f64 / config.capacity_bytes as f64;
    if let Some(cache) = &mut small.ftl.mapping_cache {
        cache.capacity_bytes = (cache.capacity_bytes as f64 * part) as u64;
    }
}

/// Flash of a drive of that capacity with the same room to spare.
fn raw_bytes(config: &DeviceConfig, capacity: u64) -> u64 {
    (capacity as f64 * (1.0 + super::reclaiming::over_provisioning(config))) as u64
}

/// Bytes of one superpage of each unit.
fn row_bytes(config: &DeviceConfig) -> u64 {
    config.units() * config.superpage_bytes()
}

/// As many blocks of the small drive's length as hold so many rows, and the capacity that leaves the same room to
/// spare.
fn cut(config: &DeviceConfig, small: &mut DeviceConfig, rows: u64) {
    let share = super::reclaiming::over_provisioning(config);
    let pages = u64::from(small.flash.pages_per_block);
    let kept = config.superblocks_kept() + 2;
    let least = (kept as f64 * (1.0 + share) / share.max(0.01)) as u64;
    let data = (rows / pages).max(least);
    small.flash.blocks_per_plane = data as u32 + config.gc_threshold();
    small.flash.blocks_per_plane += small.factory_bad_superblocks();
    let page = config.ftl.logical_page_bytes;
    let capacity = (data * pages * row_bytes(config)) as f64 / (1.0 + share);
    small.capacity_bytes = capacity as u64 / page * page;
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_ssd::config::MappingCacheConfig;

    /// Long blocks, and a cached map.
    fn large() -> DeviceConfig {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        let cache: MappingCacheConfig = toml::from_str("capacity_bytes = 1048576").unwrap();
        config.ftl.mapping_cache = Some(cache);
        config
    }

    #[test]
    fn a_region_finds_as_much_of_the_map_cached_and_blocks_as_long_as_on_the_large_drive() {
        let config = large();
        let of_region = for_region(&config);
        assert_eq!(of_region.ftl.mapping_cache, config.ftl.mapping_cache);
        assert_eq!(of_region.flash.pages_per_block, config.flash.pages_per_block);
        assert_eq!(of_region.flash.erase_ns, config.flash.erase_ns);
        assert!(of_region.capacity_bytes >= TARGET / 2 && of_region.capacity_bytes < config.capacity_bytes / 2);
    }

    #[test]
    fn a_region_of_a_small_drive_is_asked_of_the_drive_itself() {
        let mut config = large();
        config.capacity_bytes = LARGEST;
        assert_eq!(for_region(&config), config);
    }

    #[test]
    fn shorter_blocks_are_erased_in_their_share_of_the_time() {
        let config = large();
        let (small, factor) = scaled(&config);
        assert!(factor > 2.0);
        let time_of_a_page = |config: &DeviceConfig| config.flash.erase_ns / u64::from(config.flash.pages_per_block);
        assert!(small.flash.pages_per_block < config.flash.pages_per_block);
        assert!(time_of_a_page(&small).abs_diff(time_of_a_page(&config)) <= 1);
        let cache = |config: &DeviceConfig| config.ftl.mapping_cache.as_ref().unwrap().capacity_bytes as f64;
        assert!((cache(&config) / cache(&small) / factor - 1.0).abs() < 0.01, "the map's cache in proportion");
    }
}
