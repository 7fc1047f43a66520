//! Simulated drives that write with one bit a cell first, learned from outside.

use crate::support;
use flashwise_block::{ByteSize, Silent};
use flashwise_learn::{Effort, LearnOptions, learn};
use flashwise_profile::{DeviceProfile, Quantity, Verdict};
use flashwise_ssd::config::{CellType, SlcCacheConfig, SlcCacheFull, SlcModeConfig};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use support::{complete, entry, reason, small_config};

/// The small drive made large enough to show a cache, of TLC cells.
fn cached(cache: Option<SlcCacheConfig>, factor: u32) -> DeviceConfig {
    let mut config = DeviceConfig { name: "cached".to_owned(), ..small_config() };
    config.capacity_bytes = ByteSize::mib(64).bytes() * u64::from(factor);
    config.flash.blocks_per_plane *= factor;
    config.controller.write_buffer_bytes = ByteSize::mib(3).bytes();
    config.flash.cell = Some(CellType::Tlc);
    let (read_ns, program_ns) = (config.flash.read_ns / 2, config.flash.program_ns / 6);
    config.flash.slc_mode =
        cache.map(|_| SlcModeConfig { read_ns, program_ns, erase_ns: None, pe_cycles: None, rber_factor: None });
    config.ftl.slc_cache = cache;
    config.check("cached").unwrap();
    config
}

/// What is learned of a drive's cache, and what it holds.
fn assert_found(cache: SlcCacheConfig, factor: u32) {
    let config = cached(Some(cache), factor);
    // With the last superblock of each unit, a cache that must be emptied first starts to be.
    let last = if cache.when_full == SlcCacheFull::Fold { config.slc_cache_bytes() / superblocks(cache) } else { 0 };
    let size = config.slc_cache_bytes() - last;
    let profile = learned(config);
    let (figure, why) = (entry(&profile, "slc_cache_bytes").figure, reason(&profile, "slc_cache_bytes"));
    let (Some(Quantity::Bytes(low)), Some(Quantity::Bytes(high))) = (figure.low, figure.high) else {
        panic!("{cache:?}: {figure:?}, {why:?}")
    };
    assert!((low..=high).contains(&size), "{cache:?}: {size} is not between {low} and {high}: {why:?}");
    assert_ne!(entry(&profile, "superblock_bytes").figure.verdict, Verdict::Certain, "those of the cache hold less");
}

fn superblocks(cache: SlcCacheConfig) -> u64 {
    u64::from(cache.dedicated_superblocks + cache.dynamic_superblocks)
}

fn learned(config: DeviceConfig) -> DeviceProfile {
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    let options = LearnOptions { effort: Effort::Thorough, ..complete() };
    learn(&mut drive, &options, &mut Silent).unwrap()
}

#[test]
fn the_size_of_an_slc_cache_is_found() {
    for dedicated_superblocks in [12, 30] {
        assert_found(SlcCacheConfig { dedicated_superblocks, ..SlcCacheConfig::default() }, 8);
    }
}

#[test]
fn the_size_of_a_cache_is_found_that_must_be_emptied_before_the_host_goes_on() {
    let cache = SlcCacheConfig { dedicated_superblocks: 30, ..SlcCacheConfig::default() };
    assert_found(SlcCacheConfig { when_full: SlcCacheFull::Fold, ..cache }, 8);
}

#[test]
fn a_drive_without_an_slc_cache_is_told_to_have_none() {
    // Of more than a hundred windows, a first one that is fast because of the write buffer alone is told from a cache.
    let profile = learned(cached(None, 16));
    let why = reason(&profile, "slc_cache_bytes");
    assert_eq!(entry(&profile, "slc_cache_bytes").figure.verdict, Verdict::Absent, "{why:?}");
}
