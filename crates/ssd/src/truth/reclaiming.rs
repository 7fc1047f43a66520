//! What garbage collection has to work with, when it starts and what it costs.
//!
//! Flash for data is all of it but what collection keeps free, what is bad from the factory and what the map takes.
//! Write amplification and speed are those of the steady state: the drive starts in the one that theory computes, where
//! theory covers it, and is written until two successive windows of half a capacity agree within a hundredth.

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_profile::{Figure, Parameters};

use super::bench::{Bench, Past, Rate, Span};
use super::{DEPENDS_ON_PAST, Reasons, exactly, is_near};
use crate::DeviceConfig;
use crate::config::Mapping;
use crate::simulation::SimulationError;

/// Random writes are of 4 KiB.
const LENGTH: u64 = 4096;
/// Two windows agree within this share.
const SETTLED: f64 = 0.01;
/// Windows of half a capacity, at least and at most.
const WINDOWS: (usize, usize) = (3, 24);
/// Of a drive that starts from a fill, or whose load changes.
const WINDOWS_FROM_FILL: usize = 6;
/// Writes between two looks at the counters.
const LOOK_EVERY: u64 = 32;
/// Seeds over which the onset is the middle one.
const ONSETS: u64 = 3;
/// Trim changes write amplification by this share at least, or not at all.
const TRIM_CHANGES: f64 = 0.02;
/// Length and depth of sustained writes.
const SEQUENTIAL: (u64, usize) = (1 << 20, 32);

/// A drive in its steady state.
pub(super) struct Steady {
    pub(super) bench: Bench,
    /// Saturated 4 KiB writes a second.
    pub(super) iops: f64,
    /// Requests in flight that saturate it.
    pub(super) depth: usize,
    /// With another past it is faster or slower.
    pub(super) depends_on_past: bool,
}

/// Flash for data ÷ addressable bytes − 1.
pub(super) fn over_provisioning(config: &DeviceConfig) -> f64 {
    data_bytes(config) as f64 / config.capacity_bytes as f64 - 1.0
}

/// Flash that the host's data can lie on when collection starts.
fn data_bytes(config: &DeviceConfig) -> u64 {
    let beside = config.gc_threshold() + config.factory_bad_superblocks() + config.dedicated_superblocks();
    let superblocks = config.flash.blocks_per_plane - beside;
    let superblock = config.superpage_bytes() * u64::from(config.flash.pages_per_block);
    config.units() * u64::from(superblocks) * superblock
        - u64::from(config.translation_pages()) * config.ftl.logical_page_bytes
}

/// Bytes that a filled drive can program before collection starts.
pub(super) fn room_bytes(config: &DeviceConfig) -> u64 {
    data_bytes(config).saturating_sub(config.capacity_bytes)
}

/// The figures that need no simulation.
pub(super) fn read_off(config: &DeviceConfig, parameters: &mut Parameters) {
    let p = parameters;
    if config.ftl.mapping == Mapping::Page {
        p.over_provisioning = exactly(over_provisioning(config));
        return;
    }
    // Nothing is ever collected, and each byte that is written is programmed once.
    p.over_provisioning = Figure::absent();
    (p.collection_onset_bytes, p.collection_cost) = (Figure::absent(), Figure::absent());
    (p.write_amplification_uniform, p.write_amplification_skewed) = (exactly(1.0), exactly(1.0));
    p.trim_gain = Figure::absent();
}

/// Simulates the rest; gives the drive in its steady state, where it has one. `factor` is by how much the drive is larger
/// than the one simulated, `fresh` its saturated writes a second before collection.
pub(super) fn fill_in(
    config: &DeviceConfig,
    factor: f64,
    fresh: f64,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<Option<Steady>, SimulationError> {
    let p = parameters;
    p.sustained_write_bytes_per_s = exactly(sustained(config)?.round() as u64);
    if config.ftl.mapping != Mapping::Page {
        return Ok(None);
    }
    let onset = onset(config)? as f64;
    p.collection_onset_bytes = exactly((onset * factor).round() as u64);
    // What each unit keeps free depends on where its collection stands, so the room is what can be written before it.
    p.over_provisioning = exactly(onset / config.capacity_bytes as f64);
    let depth = 256.min(config.host.queue_depth as usize);
    let (bench, uniform) = steady(config, Past::None, depth)?;
    let depends_on_past =
        Past::may_matter(config) && !is_near(steady(config, Past::Lively, depth)?.1.per_s, uniform.per_s);
    p.write_amplification_uniform = exactly(uniform.amplification);
    p.collection_cost = match depends_on_past {
        true => reasons.unknown("collection_cost", DEPENDS_ON_PAST),
        false => exactly(fresh / uniform.per_s),
    };
    p.write_amplification_skewed = exactly(skewed(config, depth)?);
    let gain = uniform.amplification / half_trimmed(config, depth)?;
    p.trim_gain = if (gain - 1.0).abs() < TRIM_CHANGES { Figure::absent() } else { exactly(gain) };
    Ok(Some(Steady { bench, iops: uniform.per_s, depth, depends_on_past }))
}

/// A drive with a past in the steady state of uniform writes, and what it does there.
fn steady(config: &DeviceConfig, past: Past, depth: usize) -> Result<(Bench, Rate), SimulationError> {
    let (mut bench, computed) = Bench::steady(config, past, 1)?;
    let all = bench.everywhere();
    let least = if computed { WINDOWS.0 } else { WINDOWS_FROM_FILL };
    let rate = settle(&mut bench, least, |bench, count| bench.write(all, LENGTH, depth, count))?;
    Ok((bench, rate))
}

/// Runs windows of half a capacity until two agree; gives the mean of the last two.
fn settle(
    bench: &mut Bench,
    least: usize,
    mut window: impl FnMut(&mut Bench, u64) -> Result<Rate, SimulationError>,
) -> Result<Rate, SimulationError> {
    let count = bench.drive.config().logical_pages() / 2;
    let mut last = window(bench, count)?;
    for n in 2..=WINDOWS.1 {
        let next = window(bench, count)?;
        let agree = |a: f64, b: f64| (a / b - 1.0).abs() < SETTLED;
        // Where small writes waste much, what is moved is a small part of what is programmed, and the pace tells more.
        let is_settled = agree(last.amplification, next.amplification) && agree(last.per_s, next.per_s);
        let before = std::mem::replace(&mut last, next);
        if n >= least && is_settled || n == WINDOWS.1 {
            last.amplification = (before.amplification + last.amplification) / 2.0;
            last.per_s = 2.0 / (1.0 / before.per_s + 1.0 / last.per_s);
            break;
        }
    }
    Ok(last)
}

/// 80 % of the writes go to the first 20 % of the addresses.
fn skewed(config: &DeviceConfig, depth: usize) -> Result<f64, SimulationError> {
    let (mut bench, _) = Bench::steady(config, Past::None, 2)?;
    let edge = config.capacity_bytes / 5 / LENGTH * LENGTH;
    let hot = Span { start: 0, bytes: edge };
    let cold = Span { start: edge, bytes: config.capacity_bytes - edge };
    let request = |bench: &mut Bench| {
        let span = if bench.chance(0.8) { hot } else { cold };
        Request::write(bench.place(span, LENGTH), ByteSize(LENGTH))
    };
    let rate = settle(&mut bench, 2 * WINDOWS_FROM_FILL, |bench, count| bench.run(depth, count, request))?;
    Ok(rate.amplification)
}

/// Write amplification of uniform writes to the lower half of the addresses, the upper half being trimmed.
fn half_trimmed(config: &DeviceConfig, depth: usize) -> Result<f64, SimulationError> {
    let (mut bench, _) = Bench::steady(config, Past::None, 3)?;
    let length = config.host.max_transfer_bytes / config.ftl.logical_page_bytes * config.ftl.logical_page_bytes;
    let half = config.capacity_bytes / 2 / config.ftl.logical_page_bytes * config.ftl.logical_page_bytes;
    bench.trim(Span { start: half, bytes: config.capacity_bytes - half }, length)?;
    let lower = Span { start: 0, bytes: half };
    let rate = settle(&mut bench, WINDOWS_FROM_FILL, |bench, count| bench.write(lower, LENGTH, depth, count))?;
    Ok(rate.amplification)
}

/// Bytes overwritten at random after a fill until a superblock is collected, the middle of some tries.
fn onset(config: &DeviceConfig) -> Result<u64, SimulationError> {
    let mut onsets = Vec::new();
    for seed in 1..=ONSETS {
        let mut bench = Bench::filled(config, seed)?;
        let (all, depth) = (bench.everywhere(), 32.min(config.host.queue_depth as usize));
        // A fill that could not be laid out at once has counted.
        let (before, collections) = (bench.drive.counters().host_bytes_written.0, bench.collections());
        while bench.collections() == collections {
            bench.write(all, LENGTH, depth, LOOK_EVERY)?;
        }
        onsets.push(bench.drive.counters().host_bytes_written.0 - before);
    }
    onsets.sort_unstable();
    Ok(onsets[onsets.len() / 2])
}

/// Bytes a second of sequential writes, round and round a drive that was filled, when every cache is full and
/// collection goes on.
fn sustained(config: &DeviceConfig) -> Result<f64, SimulationError> {
    let mut bench = Bench::filled(config, 1)?;
    let all = bench.everywhere();
    let length = SEQUENTIAL.0.min(config.host.max_transfer_bytes);
    let bytes = if config.ftl.mapping == Mapping::Page { config.capacity_bytes } else { 512 << 20 };
    let depth = SEQUENTIAL.1.min(config.host.queue_depth as usize);
    // Whole rounds: what begins again in the middle of one is out of order for a while.
    let whole = all.bytes / length * length;
    let rounds = (bytes + room_of(config)).div_ceil(whole);
    bench.write_in_order(all, length, depth, rounds * whole)?;
    Ok(bench.write_in_order(all, length, depth, bytes)?.per_s * length as f64)
}

fn room_of(config: &DeviceConfig) -> u64 {
    if config.ftl.mapping == Mapping::Page { room_bytes(config) } else { 0 }
}
