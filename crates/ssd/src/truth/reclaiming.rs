//! What garbage collection has to work with, when it starts and what it costs.
//!
//! Flash for data is all of it but what collection keeps free, what is bad from the factory and what the map takes.
//! Write amplification and speed are those of the steady state: the drive starts in the one that theory computes, where
//! theory covers it, and is written until two successive windows of half a capacity agree within a hundredth.

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_profile::{Figure, Parameters};

use super::bench::{Bench, Past, Rate, Span};
use super::{DEPENDS_ON_PAST, Reasons, exactly, of_both, scale};
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
/// Trim changes write amplification by the second share at least, or by less than the first: not at all.
const TRIM_CHANGES: (f64, f64) = (0.02, 0.05);
/// Why there is no truth where two pasts lead to two speeds of passes in order.
const IN_STEP: &str = "which units erase at the same time in passes in order depends on what was written before";
/// Length and depth of sustained writes.
const SEQUENTIAL: (u64, usize) = (1 << 20, 32);

/// A drive in its steady state, which it came to from two pasts.
pub(super) struct Steady {
    /// The drive, and its saturated 4 KiB writes a second.
    pub(super) pasts: [(Bench, f64); 2],
    /// Requests in flight that saturate it.
    pub(super) depth: usize,
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

/// Simulates the rest; gives the drive in its steady state, where it has one. `whole` is the drive that `config` stands in
/// for, `fresh` its saturated writes a second before collection, if its past does not matter for them.
pub(super) fn fill_in(
    config: &DeviceConfig,
    whole: &DeviceConfig,
    fresh: Option<f64>,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<Option<Steady>, SimulationError> {
    let p = parameters;
    p.sustained_write_bytes_per_s = match sustained(config)? {
        Some(bytes_per_s) => exactly(bytes_per_s.round() as u64),
        None => reasons.unknown("sustained_write_bytes_per_s", IN_STEP),
    };
    if config.ftl.mapping != Mapping::Page {
        return Ok(None);
    }
    // A drive of few superblocks keeps a larger share of them free.
    let large = scale::for_region(whole);
    let room = onset(&large)? as f64 / large.capacity_bytes as f64;
    p.collection_onset_bytes = exactly((room * whole.capacity_bytes as f64).round() as u64);
    // What each unit keeps free depends on where its collection stands, so the room is what can be written before it.
    p.over_provisioning = exactly(room);
    let depth = 256.min(config.host.queue_depth as usize);
    let [first, second] = [Past::None, Past::Lively].map(|past| steady(config, past, depth));
    let ((first, uniform), (second, lively)) = (first?, second?);
    let amplification = of_both(uniform.amplification, lively.amplification);
    p.write_amplification_uniform = match amplification {
        Some(amplification) => exactly(amplification),
        None => reasons.unknown("write_amplification_uniform", DEPENDS_ON_PAST),
    };
    p.collection_cost = match fresh.zip(of_both(uniform.per_s, lively.per_s)) {
        Some((fresh, per_s)) => exactly(fresh / per_s),
        None => reasons.unknown("collection_cost", DEPENDS_ON_PAST),
    };
    let [skewed, lively_skewed] = [Past::None, Past::Lively].map(|past| skewed(config, past, depth));
    p.write_amplification_skewed = match of_both(skewed?, lively_skewed?) {
        Some(amplification) => exactly(amplification),
        None => reasons.unknown("write_amplification_skewed", DEPENDS_ON_PAST),
    };
    let trimmed = half_trimmed(config, depth)?;
    p.trim_gain = match amplification.map(|amplification| amplification / trimmed) {
        Some(gain) if (gain - 1.0).abs() < TRIM_CHANGES.0 => Figure::absent(),
        Some(gain) if (gain - 1.0).abs() < TRIM_CHANGES.1 => reasons.unknown("trim_gain", "it is hardly any"),
        Some(gain) => exactly(gain),
        None => reasons.unknown("trim_gain", DEPENDS_ON_PAST),
    };
    Ok(Some(Steady { pasts: [(first, uniform.per_s), (second, lively.per_s)], depth }))
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
fn skewed(config: &DeviceConfig, past: Past, depth: usize) -> Result<f64, SimulationError> {
    let (mut bench, _) = Bench::steady(config, past, 2)?;
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

/// Bytes a second of sequential writes, round and round a drive, when every cache is full and collection goes on; `None` where
/// that depends on what was written before: units whose erases fall together then do so round after round.
fn sustained(config: &DeviceConfig) -> Result<Option<f64>, SimulationError> {
    let mut in_order = Bench::filled(config, 1)?;
    if config.ftl.mapping != Mapping::Page {
        return Ok(Some(round_in_order(&mut in_order, IN_PLACE)?));
    }
    let mut scattered = Bench::filled(config, 1)?;
    let all = scattered.everywhere();
    scattered.write(all, LENGTH, SEQUENTIAL.1, config.capacity_bytes / LENGTH)?;
    let rates = (rounds_in_order(&mut in_order)?, rounds_in_order(&mut scattered)?);
    Ok(of_both(rates.0, rates.1))
}

/// Bytes that tell the speed of what is written in place.
const IN_PLACE: u64 = 512 << 20;
/// Rounds in order, at least and at most; of two that agree the later one counts.
const ROUNDS: (usize, usize) = (3, 8);
/// Two rounds agree within this share.
const ROUNDS_AGREE: f64 = 0.02;

fn rounds_in_order(bench: &mut Bench) -> Result<f64, SimulationError> {
    let capacity = bench.drive.config().capacity_bytes;
    let mut last = round_in_order(bench, capacity)?;
    for n in 2..=ROUNDS.1 {
        let next = round_in_order(bench, capacity)?;
        let agree = (next / last - 1.0).abs() < ROUNDS_AGREE;
        last = next;
        if n >= ROUNDS.0 && agree {
            break;
        }
    }
    Ok(last)
}

/// Bytes a second of as many bytes from the start on, in whole writes.
fn round_in_order(bench: &mut Bench, bytes: u64) -> Result<f64, SimulationError> {
    let host = &bench.drive.config().host;
    let (length, depth) = (SEQUENTIAL.0.min(host.max_transfer_bytes), SEQUENTIAL.1.min(host.queue_depth as usize));
    let span = bench.first(bytes);
    bench.pass_in_order(span, length, depth)
}
