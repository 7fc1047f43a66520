//! What garbage collection has to work with, when it starts and what it costs.
//!
//! Flash for data is all of it but what collection keeps free, what is bad from the factory and what the map takes.
//! Write amplification and speed are those of the steady state: the drive starts in the one that theory computes, where
//! theory covers it, and is written until two successive windows of half a capacity agree within a hundredth.

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_profile::{Figure, Parameters};

use super::bench::{Bench, Past, Rate, Span};
use super::{DEPENDS_ON_PAST, Reasons, exactly, of_both, scale};
use flashwise_sim::SimulationError;
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::Mapping;

/// Random writes are of 4 KiB.
const LENGTH: u64 = 4096;
/// Two windows agree within this share.
const SETTLED: f64 = 0.01;
/// Windows of half a capacity, at least and at most.
const WINDOWS: (usize, usize) = (3, 24);
/// Parts of a window between which it is asked whether a drive is to be given up.
const PARTS: u64 = 16;
/// Of a drive that starts from a fill, or whose load changes.
const WINDOWS_FROM_FILL: usize = 6;
/// Writes between two looks at the counters.
const LOOK_EVERY: u64 = 32;
/// Seeds over which the onset is the middle one.
const ONSETS: u64 = 3;
/// Trim changes write amplification by the second share at least, or by less than the first: not at all.
const TRIM_CHANGES: (f64, f64) = (0.02, 0.05);
/// Times what it holds that a drive may program without becoming steady, before it is said that it has no steady state
/// to speak of. Where the part of the map that is in memory decides how much is moved, hundreds of bytes can be
/// programmed for one of the host's, and more and more for as long as anybody looks.
const TURNOVERS_MAX: u64 = 100;
/// Why there is none for a drive that does not.
const NOT_STEADY: &str = "the drive is not steady after programming a hundred times its capacity";
/// Why there is no truth where two pasts lead to two speeds of passes in order.
const IN_STEP: &str = "which units erase at the same time during sequential passes depends on earlier writes";
/// Length and depth of sustained writes.
const SEQUENTIAL: (u64, usize) = (1 << 20, 32);

/// What a drive does when it is written over and over.
pub(super) enum Overwritten {
    /// It collects nothing.
    CollectsNothing,
    /// It has no steady state that could be told, for this reason.
    Unknown(&'static str),
    /// It comes to one.
    Steady(Box<Steady>),
}

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

/// Flash that the host's data can are on when collection starts.
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

/// Simulates the rest; gives what the drive does in its steady state. `whole` is the drive that `config` is in for,
/// `fresh` its saturated writes a second before collection, if its past does not matter for them, `untold` why there is
/// no need to look for a steady state.
pub(super) fn fill_in(
    config: &DeviceConfig,
    whole: &DeviceConfig,
    fresh: Option<f64>,
    untold: Option<&'static str>,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<Overwritten, SimulationError> {
    let p = &mut *parameters;
    p.sustained_write_bytes_per_s = match sustained(config)? {
        Some(bytes_per_s) => exactly(bytes_per_s.round() as u64),
        None => reasons.unknown("sustained_write_bytes_per_s", IN_STEP),
    };
    if config.ftl.mapping != Mapping::Page {
        return Ok(Overwritten::CollectsNothing);
    }
    // A drive of few superblocks keeps a larger share of them free.
    let large = scale::for_region(whole);
    let room = onset(&large)? as f64 / large.capacity_bytes as f64;
    p.collection_onset_bytes = exactly((room * whole.capacity_bytes as f64).round() as u64);
    // What each unit keeps free depends on where its collection stands, so the space is what can be written before it.
    p.over_provisioning = exactly(room);
    let depth = 256.min(config.host.queue_depth as usize);
    let why = match untold {
        None => match in_steady_state(config, fresh, depth, parameters, reasons)? {
            Some(steady) => return Ok(Overwritten::Steady(Box::new(steady))),
            None => NOT_STEADY,
        },
        Some(why) => why,
    };
    let p = parameters;
    p.write_amplification_uniform = reasons.unknown("write_amplification_uniform", why);
    p.write_amplification_skewed = reasons.unknown("write_amplification_skewed", why);
    p.collection_cost = reasons.unknown("collection_cost", why);
    p.trim_gain = reasons.unknown("trim_gain", why);
    Ok(Overwritten::Unknown(why))
}

/// The figures of the steady state, and the drive in it; `None` where it does not come to one.
fn in_steady_state(
    config: &DeviceConfig,
    fresh: Option<f64>,
    depth: usize,
    p: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<Option<Steady>, SimulationError> {
    let Some((first, uniform)) = steady(config, Past::None, depth)? else { return Ok(None) };
    let Some((second, lively)) = steady(config, Past::Lively, depth)? else { return Ok(None) };
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
    p.write_amplification_skewed = match skewed?.zip(lively_skewed?) {
        None => reasons.unknown("write_amplification_skewed", NOT_STEADY),
        Some((skewed, lively)) => match of_both(skewed, lively) {
            Some(amplification) => exactly(amplification),
            None => reasons.unknown("write_amplification_skewed", DEPENDS_ON_PAST),
        },
    };
    p.trim_gain = match (half_trimmed(config, depth)?, amplification) {
        (None, _) => reasons.unknown("trim_gain", NOT_STEADY),
        (_, None) => reasons.unknown("trim_gain", DEPENDS_ON_PAST),
        (Some(trimmed), Some(amplification)) => match amplification / trimmed {
            gain if (gain - 1.0).abs() < TRIM_CHANGES.0 => Figure::absent(),
            gain if (gain - 1.0).abs() < TRIM_CHANGES.1 => reasons.unknown("trim_gain", "the effect is too small"),
            gain => exactly(gain),
        },
    };
    Ok(Some(Steady { pasts: [(first, uniform.per_s), (second, lively.per_s)], depth }))
}

/// A drive with a past in the steady state of uniform writes, and what it does there.
fn steady(config: &DeviceConfig, past: Past, depth: usize) -> Result<Option<(Bench, Rate)>, SimulationError> {
    let (mut bench, computed) = Bench::steady(config, past, 1)?;
    let all = bench.everywhere();
    let least = if computed { WINDOWS.0 } else { WINDOWS_FROM_FILL };
    let rate = settle(&mut bench, least, |bench, count| bench.write(all, LENGTH, depth, count))?;
    Ok(rate.map(|rate| (bench, rate)))
}

/// Runs windows of half a capacity until two agree; gives the mean of the last two. `None` where the drive programs so
/// much that it is given up.
fn settle(
    bench: &mut Bench,
    least: usize,
    window: impl FnMut(&mut Bench, u64) -> Result<Rate, SimulationError>,
) -> Result<Option<Rate>, SimulationError> {
    settle_within(bench, least, TURNOVERS_MAX, window)
}

/// The same for so many turnovers at most.
fn settle_within(
    bench: &mut Bench,
    least: usize,
    turnovers: u64,
    mut window: impl FnMut(&mut Bench, u64) -> Result<Rate, SimulationError>,
) -> Result<Option<Rate>, SimulationError> {
    let count = bench.drive.config().logical_pages() / 2;
    let most = bench.programmed() + turnovers * bench.drive.config().capacity_bytes;
    // In parts, so that a drive that programs hundreds of times what is written is not waited for.
    let mut window = |bench: &mut Bench| {
        let (mut pages, mut seconds, mut programmed) = (0, 0.0, 0.0);
        while pages < count && bench.programmed() < most {
            let part = (count - pages).min(count.div_ceil(PARTS));
            let rate = window(bench, part)?;
            pages += part;
            seconds += part as f64 / rate.per_s;
            programmed += part as f64 * rate.amplification;
        }
        let whole = Rate { per_s: count as f64 / seconds, amplification: programmed / count as f64 };
        Ok::<_, SimulationError>((pages == count).then_some(whole))
    };
    let Some(mut last) = window(bench)? else { return Ok(None) };
    for n in 2..=WINDOWS.1 {
        let Some(next) = window(bench)? else { return Ok(None) };
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
    Ok(Some(last))
}

/// 80 % of the writes go to the first 20 % of the addresses.
fn skewed(config: &DeviceConfig, past: Past, depth: usize) -> Result<Option<f64>, SimulationError> {
    let (mut bench, _) = Bench::steady(config, past, 2)?;
    let edge = config.capacity_bytes / 5 / LENGTH * LENGTH;
    let hot = Span { start: 0, bytes: edge };
    let cold = Span { start: edge, bytes: config.capacity_bytes - edge };
    let request = |bench: &mut Bench| {
        let span = if bench.chance(0.8) { hot } else { cold };
        Request::write(bench.place(span, LENGTH), ByteSize(LENGTH))
    };
    let rate = settle(&mut bench, 2 * WINDOWS_FROM_FILL, |bench, count| bench.run(depth, count, request))?;
    Ok(rate.map(|rate| rate.amplification))
}

/// Write amplification of uniform writes to the lower half of the addresses, the upper half being trimmed.
fn half_trimmed(config: &DeviceConfig, depth: usize) -> Result<Option<f64>, SimulationError> {
    let (mut bench, _) = Bench::steady(config, Past::None, 3)?;
    let length = config.host.max_transfer_bytes / config.ftl.logical_page_bytes * config.ftl.logical_page_bytes;
    let half = config.capacity_bytes / 2 / config.ftl.logical_page_bytes * config.ftl.logical_page_bytes;
    bench.trim(Span { start: half, bytes: config.capacity_bytes - half }, length)?;
    let lower = Span { start: 0, bytes: half };
    let rate = settle(&mut bench, WINDOWS_FROM_FILL, |bench, count| bench.write(lower, LENGTH, depth, count))?;
    Ok(rate.map(|rate| rate.amplification))
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

/// Bytes a second of sequential writes, round and round a drive, when every cache is full and collection continues;
/// `None` where that depends on what was written before: units whose erases fall together then do so round after round.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_programs_too_much_until_it_is_steady_has_no_steady_state() {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.flash.channels, config.flash.chips_per_channel, config.flash.dies_per_chip) = (4, 1, 1);
        (config.flash.blocks_per_plane, config.flash.pages_per_block) = (32, 64);
        config.ftl.gc.free_superblocks = Some(3);
        config.capacity_bytes = 200 << 20;
        config.check("small").unwrap();
        let settled = |turnovers| {
            let mut bench = Bench::filled(&config, 1).unwrap();
            let (all, before) = (bench.everywhere(), bench.programmed());
            let window = |bench: &mut Bench, count| bench.write(all, LENGTH, 32, count);
            let rate = settle_within(&mut bench, WINDOWS_FROM_FILL, turnovers, window).unwrap();
            (rate.map(|rate| rate.amplification), bench.programmed() - before)
        };
        let (amplification, programmed) = settled(TURNOVERS_MAX);
        let needed = programmed / config.capacity_bytes;
        assert!(amplification.unwrap() > 1.1 && needed > 3, "{amplification:?}, {needed} turnovers");
        let (given_up, programmed) = settled(needed - 1);
        assert_eq!(given_up, None);
        let part = (needed - 1) * config.capacity_bytes..needed * config.capacity_bytes;
        assert!(part.contains(&programmed), "{programmed} bytes, and not a window more");
    }
}
