//! The cache of cells that are written with one bit: what it holds, where a host can tell.
//!
//! The size is read off the configuration: the dedicated superblocks of all units, and the dynamic ones as far as that
//! many can be free on an empty drive; of a cache that has to be emptied before the host continues all but the last of
//! each unit, with which that starts. Whether writes get slower behind it is measured on an empty drive that is written
//! in order: where the interface or the channels are slower than both kinds of cells, or where the drive ends before
//! the cache does, there is a cache that no host can tell.

use flashwise_profile::{Figure, Parameters};

use super::bench::{Bench, Span};
use super::{Reasons, exactly};
use flashwise_sim::SimulationError;
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{Mapping, SlcCacheFull};

/// Length and depth of writes in order.
const SEQUENTIAL: (u64, usize) = (1 << 20, 32);
/// Speeds are taken over this share of the cache before its end, and over so many times the cache behind it: one that
/// is emptied as a whole takes all that it holds at once each time.
const BEFORE: f64 = 0.4;
const BEHIND: f64 = 2.0;
/// Writes behind the cache are slower by this share at least, or not at all; in between nothing is said.
const SLOWER: f64 = 0.25;
const SAME: f64 = 0.05;
/// A cache below this share of the drive, or of its fill, is one that no curve over the fill shows.
const SHOWS: f64 = 0.02;

/// Of a drive without a cache.
pub(super) fn read_off(config: &DeviceConfig, parameters: &mut Parameters) {
    if config.ftl.slc_cache.is_none() {
        parameters.slc_cache_bytes = Figure::absent();
    }
}

/// Of a drive with one.
pub(super) fn measure(
    config: &DeviceConfig,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<(), SimulationError> {
    const KEY: &str = "slc_cache_bytes";
    let Some(size) = size_bytes(config) else { return Ok(()) };
    let drive = config.capacity_bytes as f64;
    if !(SHOWS * drive..(1.0 - 2.0 * SHOWS) * drive).contains(&(size as f64)) {
        parameters.slc_cache_bytes = reasons.unknown(KEY, "one fill of the drive does not show where the cache ends");
        return Ok(());
    }
    let behind = behind_cache(config, size)?;
    parameters.slc_cache_bytes = match behind {
        _ if behind <= 1.0 - SLOWER => exactly(size),
        _ if behind >= 1.0 - SAME => Figure::absent(),
        _ => reasons.unknown(KEY, "writes past the cache are only a little slower"),
    };
    Ok(())
}

/// What the cache takes on an empty drive; `None` without one.
fn size_bytes(config: &DeviceConfig) -> Option<u64> {
    let cache = config.ftl.slc_cache.filter(|_| config.ftl.mapping == Mapping::Page)?;
    let superblock = u64::from(config.slc_pages_per_block()) * config.superpage_bytes();
    let free = u64::from(config.flash.blocks_per_plane).saturating_sub(config.superblocks_kept());
    let of_unit = u64::from(config.dedicated_superblocks()) + u64::from(cache.dynamic_superblocks).min(free);
    let last = u64::from(cache.when_full == SlcCacheFull::Fold);
    Some(config.units() * of_unit.saturating_sub(last) * superblock)
}

/// Speed of writes in order behind the cache ÷ that of those which it takes.
fn behind_cache(config: &DeviceConfig, size: u64) -> Result<f64, SimulationError> {
    let mut bench = Bench::empty(config, 1)?;
    let all = bench.everywhere();
    let length = SEQUENTIAL.0.min(config.host.max_transfer_bytes);
    let depth = SEQUENTIAL.1.min(config.host.queue_depth as usize);
    let part = |share: f64| (size as f64 * share) as u64 / length * length;
    let room = (all.bytes - size) as f64 / size as f64;
    let mut at = 0;
    let mut write = |bench: &mut Bench, bytes: u64| {
        let span = Span { start: at, bytes: all.bytes - at };
        at += bytes;
        bench.write_in_order(span, length, depth, bytes)
    };
    write(&mut bench, part(0.9 - BEFORE))?;
    let inside = write(&mut bench, part(BEFORE))?.per_s;
    // What is in flight and in buffers at its end is part of it.
    write(&mut bench, part(0.2_f64.min(room / 3.0 + 0.1)))?;
    let behind = write(&mut bench, part(BEHIND.min(room / 2.0)).max(length))?.per_s;
    Ok(behind / inside)
}
