//! What stands between the host and the flash: buffers and caches, and what it takes to be sure that data is through.
//!
//! A write buffer is what the host may have acknowledged before it is on flash: the buffer itself and the write cache
//! in front of it, unless that sends everything on at once. What the flash takes as fast as the interface brings it
//! never fills, and its size shows nowhere. Flushes and durable writes are timed one at a time on a drive
//! that has nothing else to do and nothing else in its buffer.

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use flashwise_profile::{Figure, Parameters};

use super::bench::{Bench, median};
use super::throughput::REGION;
use super::{Reasons, TWO_MEDIANS, exactly, has_two_medians};
use flashwise_sim::SimulationError;
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{CacheFlush, Mapping, WritePolicy};

/// Samples of each time.
const SAMPLES: usize = 120;
/// Between two samples.
const PAUSE: Nanos = Nanos::millis(50);
/// Writes into an idle drive that show whether its buffer fills: their length, and how many are in flight.
const BURST: (u64, usize) = (16_384, 16);
/// It does where the flash takes less than this share of what the interface brings.
const FILLS_SHARE: f64 = 0.9;
/// What is less than this is no time at all, ns.
const NOTHING_NS: f64 = 1_000.0;

pub(super) fn fill_in(config: &DeviceConfig, parameters: &mut Parameters) {
    let controller = &config.controller;
    let durable_at_once = is_durable_at_once(config);
    parameters.write_buffer_bytes = match acknowledged_bytes(config) {
        0 => Figure::absent(),
        bytes => exactly(bytes),
    };
    parameters.power_loss_protected = exactly(durable_at_once);
    parameters.read_cache_bytes = controller.read_cache.as_ref().map_or(Figure::absent(), |c| exactly(c.bytes));
    parameters.read_ahead_bytes = controller
        .read_ahead
        .as_ref()
        .map_or(Figure::absent(), |ahead| exactly(u64::from(ahead.pages) * config.ftl.logical_page_bytes));
}

/// Whether what is acknowledged survives a power cut.
fn is_durable_at_once(config: &DeviceConfig) -> bool {
    let controller = &config.controller;
    let through = controller.write_policy == WritePolicy::Through || config.ftl.mapping == Mapping::InPlace;
    controller.power_loss_protection || through
}

/// Bytes that are acknowledged before they are on flash, at most.
pub(super) fn acknowledged_bytes(config: &DeviceConfig) -> u64 {
    let controller = &config.controller;
    if config.ftl.mapping == Mapping::InPlace || controller.write_policy == WritePolicy::Through {
        return 0;
    }
    let page = config.ftl.logical_page_bytes;
    let cache = controller.write_cache.as_ref().filter(|cache| cache.flush != CacheFlush::Immediate);
    controller.write_buffer_bytes / page * page + cache.map_or(0, |cache| cache.bytes)
}

/// Times flushes and durable writes.
pub(super) fn measure(
    config: &DeviceConfig,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<(), SimulationError> {
    if parameters.write_buffer_bytes.value.is_some() && !fills(config)? {
        parameters.write_buffer_bytes =
            reasons.unknown("write_buffer_bytes", "the flash is as fast as the interface, so the buffer never fills");
    }
    if is_durable_at_once(config) {
        (parameters.flush_ns, parameters.durable_write_ns) = (Figure::absent(), Figure::absent());
        return Ok(());
    }
    if has_two_medians(config, &config.flash.program_ns_by_page_type) {
        parameters.flush_ns = reasons.unknown("flush_ns", TWO_MEDIANS);
        parameters.durable_write_ns = reasons.unknown("durable_write_ns", TWO_MEDIANS);
        return Ok(());
    }
    let filled = || {
        let mut bench = Bench::filled(config, 1)?;
        if config.ftl.mapping_cache.is_some() {
            let region = bench.first(REGION);
            bench.read_in_order(region)?;
        }
        Ok::<Bench, SimulationError>(bench)
    };
    let mut bench = filled()?;
    let mut samples: [Vec<u64>; 4] = Default::default();
    for _ in 0..SAMPLES {
        // Padding fills the drive: a new one before its collection starts.
        if bench.programmed() > super::reclaiming::room_bytes(config) / 2 {
            bench = filled()?;
        }
        one_of_each(&mut bench, &mut samples)?;
    }
    let [write, flush, nothing, durable] = samples.map(median);
    let beyond = |time_ns: f64, without_ns: f64| match time_ns - without_ns {
        more if more < NOTHING_NS => Figure::absent(),
        more => exactly(more.round() as u64),
    };
    parameters.flush_ns = beyond(flush, nothing);
    parameters.durable_write_ns = beyond(durable, write);
    Ok(())
}

/// Whether writes in order are slower in the long run than at the start.
fn fills(config: &DeviceConfig) -> Result<bool, SimulationError> {
    let (length, depth) = BURST;
    let mut bench = Bench::empty(config, 1)?;
    let span = bench.everywhere();
    let held = acknowledged_bytes(config);
    let start = bench.write_in_order(span, length, depth, (held / 2).max(32 * length))?;
    bench.write_in_order(span, length, depth, 8 * held)?;
    let run = bench.write_in_order(span, length, depth, (4 * held).max(1024 * length))?;
    Ok(run.per_s < FILLS_SHARE * start.per_s)
}

/// A write, its flush, a flush of nothing, and a durable write, each on an idle drive.
fn one_of_each(bench: &mut Bench, samples: &mut [Vec<u64>; 4]) -> Result<(), SimulationError> {
    let length = 4096;
    let span = bench.first(REGION);
    let request = |bench: &mut Bench| Request::write(bench.place(span, length), ByteSize(length));
    let [write, flush, nothing, durable] = samples;
    bench.drive.pause(PAUSE)?;
    let first = request(bench);
    write.push(bench.alone(first)?);
    flush.push(bench.alone(Request::flush())?);
    bench.drive.pause(PAUSE)?;
    nothing.push(bench.alone(Request::flush())?);
    bench.drive.pause(PAUSE)?;
    let second = request(bench).with_fua();
    durable.push(bench.alone(second)?);
    Ok(())
}
