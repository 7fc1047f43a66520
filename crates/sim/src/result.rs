//! From what was recorded to the document.

use std::time::Duration;

use flashwise_block::{DeviceCounters, FlashCounters};
use flashwise_trace::workload::Workload;

use super::activity::Before;
use super::document::*;
use super::recorder::{EndedFlow, Record, ResponseRecord};
use super::target::Target;
use super::{Preconditioned, SimulationError, invariants, process};

/// Where a distribution is told, percent.
const DISTRIBUTION: [f64; 32] = [
    0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0,
    80.0, 85.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999, 100.0,
];

/// Makes the document of a run, and checks it.
pub(super) fn collect(
    drive: &impl Target,
    workload: &Workload,
    record: Record,
    precondition: Preconditioned,
    before: &Before,
    wall: Duration,
) -> Result<Simulation, SimulationError> {
    let counters = drive.counters().since(&before.counters);
    let reduction = before.reduction(drive);
    let array = drive.array_activity(record.end_ns - record.origin_ns);
    let written = (&counters, before.given_bytes(drive));
    let invariants = invariants::check(drive, &record, written, reduction.as_ref(), array.as_ref())?;
    let flash = counters.flash.unwrap_or_default();
    let total = total(&record);
    Ok(Simulation {
        schema: SIMULATION_SCHEMA.to_owned(),
        schema_version: SIMULATION_SCHEMA_VERSION,
        flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
        device: drive.drive_config().cloned(),
        array,
        volume: drive.volume_activity(),
        workload: workload.clone(),
        seed: workload.seed,
        precondition,
        elapsed_ns: record.end_ns - record.origin_ns,
        process: process(total.requests, wall),
        total,
        flows: record
            .flows
            .iter()
            .zip(&workload.flows)
            .map(|(ended, flow)| flow_result(ended, flow.priority, record.origin_ns))
            .collect(),
        host: HostActivity {
            bytes_read: counters.host_bytes_read.0,
            bytes_written: counters.host_bytes_written.0,
            bytes_absorbed: flash.absorbed_bytes.0,
        },
        flash: before.flash_activity(drive, &flash),
        utilisation: before.utilisation(drive, record.end_ns - record.origin_ns),
        flash_commands: before.command_times(drive),
        flash_energy_mj: before.energy_mj(drive),
        gc: GarbageCollection {
            executions: flash.gc_runs,
            pages_moved: flash.gc_pages_moved,
            superblocks_erased: flash.erases,
            wear_levelling_executions: flash.wear_levelling_runs,
            superblocks_retired: flash.retired_superblocks,
        },
        write_amplification: counters.write_amplification(),
        write_amplification_by_cause: write_causes(&counters, &flash),
        reduction,
        slc_cache: before.slc_cache(drive, &flash),
        erase_counts: erase_counts(drive),
        life: drive.life(record.life.as_ref()),
        unwritten_pages_read: flash.unwritten_pages_read,
        time_series: record.time_series,
        invariants,
    })
}

fn total(record: &Record) -> Responses {
    let elapsed_ns = record.end_ns - record.origin_ns;
    if let [only] = &record.flows[..] {
        return responses(&only.all, elapsed_ns);
    }
    let mut all = ResponseRecord::default();
    record.flows.iter().for_each(|flow| all.merge(&flow.all));
    responses(&all, elapsed_ns)
}

fn flow_result(flow: &EndedFlow, priority: flashwise_trace::workload::Priority, origin_ns: u64) -> FlowResult {
    let elapsed_ns = flow.elapsed_ns();
    let count = flow.all.count();
    let mean = |sum_ns: u128| (count > 0).then(|| sum_ns as f64 / count as f64);
    let all = responses(&flow.all, elapsed_ns);
    let split = |record: &ResponseRecord| match record.count() {
        0 => None,
        // All there are.
        of_kind if of_kind == count => Some(all.clone()),
        _ => Some(responses(record, elapsed_ns)),
    };
    let (read, write) = (split(&flow.reads), split(&flow.writes));
    FlowResult {
        name: flow.name.clone(),
        priority,
        start_ns: flow.start_ns - origin_ns,
        elapsed_ns,
        reads: flow.reads.count(),
        writes: flow.writes.count(),
        trims: flow.trims,
        refused: flow.refused.count(),
        flushes: flow.flushes,
        mean_queueing_ns: mean(flow.waiting_ns),
        mean_service_ns: mean(flow.all.sum_ns - flow.waiting_ns),
        all,
        read,
        write,
        notes: flow.notes.clone(),
    }
}

fn responses(record: &ResponseRecord, elapsed_ns: u64) -> Responses {
    let requests = record.count();
    let per_s = |count: u64| if elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / elapsed_ns as f64 };
    let any = requests > 0;
    let points = || {
        let times = DISTRIBUTION.into_iter().zip(record.percentiles(DISTRIBUTION));
        times.map(|(percent, response_ns)| DistributionPoint { percent, response_ns }).collect()
    };
    Responses {
        requests,
        iops: per_s(requests),
        bytes: record.bytes,
        bytes_per_s: per_s(record.bytes),
        mean_response_ns: any.then(|| record.sum_ns as f64 / requests as f64),
        min_response_ns: any.then_some(record.min_ns),
        max_response_ns: any.then_some(record.max_ns),
        percentiles_ns: any.then(|| percentiles(record)),
        distribution: if any { points() } else { Vec::new() },
    }
}

fn percentiles(record: &ResponseRecord) -> Percentiles {
    let [p50, p90, p95, p99, p99_9, p99_99, p99_999] =
        record.percentiles([50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999]);
    Percentiles { p50, p90, p95, p99, p99_9, p99_99, p99_999 }
}

impl WriteCauses {
    /// Of what a drive counted; `None` where the host wrote nothing, or the drive tells nothing of its flash.
    pub fn of(counters: &DeviceCounters) -> Option<Self> {
        write_causes(counters, counters.flash.as_ref()?)
    }
}

pub(crate) fn write_causes(counters: &DeviceCounters, flash: &FlashCounters) -> Option<WriteCauses> {
    let written = counters.host_bytes_written.0;
    let share = |bytes: u64| bytes as f64 / written as f64;
    let moved = flash.gc_bytes_moved.0 + flash.wear_levelling_bytes_moved.0 + flash.retirement_bytes_moved.0;
    let moved = moved + flash.folding_bytes_moved.0;
    let others = moved + flash.mapping_bytes.0 + flash.padding_bytes.0;
    (written > 0).then(|| WriteCauses {
        host: share(flash.bytes_programmed.0.saturating_sub(others)),
        gc: share(flash.gc_bytes_moved.0),
        wear_levelling: share(flash.wear_levelling_bytes_moved.0),
        retirement: share(flash.retirement_bytes_moved.0),
        folding: share(flash.folding_bytes_moved.0),
        mapping: share(flash.mapping_bytes.0),
        padding: share(flash.padding_bytes.0),
    })
}

fn erase_counts(drive: &impl Target) -> Option<EraseCounts> {
    let histogram = drive.erase_histogram();
    let (min, max) = (*histogram.keys().next()?, *histogram.keys().next_back()?);
    let superblocks: u64 = histogram.values().sum();
    let erases: u64 = histogram.iter().map(|(&erases, &superblocks)| u64::from(erases) * superblocks).sum();
    let distribution = histogram.into_iter().map(|(erases, superblocks)| EraseCount { erases, superblocks }).collect();
    Some(EraseCounts { min, mean: erases as f64 / superblocks as f64, max, distribution })
}

fn process(requests: u64, wall: Duration) -> Process {
    let wall_s = wall.as_secs_f64();
    let requests_per_s = if wall_s > 0.0 { requests as f64 / wall_s } else { 0.0 };
    Process { wall_s, requests_per_s, peak_memory_bytes: process::peak_memory_bytes() }
}
