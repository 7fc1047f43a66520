//! Simulated drives that write with one bit a cell first, learned from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

mod support;

use flashwise_block::{ByteSize, Silent};
use flashwise_learn::{Effort, LearnOptions, learn};
use flashwise_profile::{Quantity, Verdict};
use flashwise_ssd::config::{CellType, SlcCacheConfig, SlcModeConfig};
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

#[test]
fn the_size_of_an_slc_cache_is_found_and_its_absence_told() {
    // Of more than a hundred windows, a first one that is fast because of the write buffer alone is told from a cache.
    for (superblocks, factor) in [(0, 16), (12, 8), (30, 8)] {
        let cache = SlcCacheConfig { dedicated_superblocks: superblocks, ..SlcCacheConfig::default() };
        let config = cached((superblocks > 0).then_some(cache), factor);
        let size = config.slc_cache_bytes();
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        let options = LearnOptions { effort: Effort::Thorough, ..complete() };
        let profile = learn(&mut drive, &options, &mut Silent).unwrap();
        let (figure, why) = (entry(&profile, "slc_cache_bytes").figure, reason(&profile, "slc_cache_bytes"));
        if superblocks == 0 {
            assert_eq!(figure.verdict, Verdict::Absent, "{why:?}");
            continue;
        }
        let (Some(Quantity::Bytes(low)), Some(Quantity::Bytes(high))) = (figure.low, figure.high) else {
            panic!("{figure:?}, {why:?}")
        };
        assert!((low..=high).contains(&size), "{size} is not between {low} and {high}: {why:?}");
    }
}
