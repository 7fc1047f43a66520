//! The live counters of an attached drive, in words.

use flashwise_attach::{DeviceStat, FaultState, LatencySpike, PowerCut, ReadOnlyCause};
use flashwise_block::DeviceCounters;

use super::attach::{pacing_remark, pacing_rows};
use super::numbers::{bytes, grouped, significant, time};
use super::simulation::busy;

/// Names of the columns of [`latency_rows`].
pub(crate) const LATENCY_COLUMNS: [&str; 7] = ["latency", "requests", "median", "90 %", "99 %", "99.9 %", "longest"];

/// The drive's name and its clock.
pub(crate) fn title(stat: &DeviceStat) -> String {
    format!("{} after {} of simulated time", stat.device, time(stat.simulated_ns))
}

/// Its counters, and the rates since an earlier sample.
pub(crate) fn rows(stat: &DeviceStat, before: Option<&DeviceStat>) -> Vec<(&'static str, String)> {
    let counters = &stat.counters;
    let mut rows = vec![
        ("state", state(stat)),
        ("in flight", requests(stat.in_flight)),
        ("read by the host", bytes(counters.host_bytes_read.0)),
        ("written by the host", bytes(counters.host_bytes_written.0)),
    ];
    rows.extend(before.map(|before| ("since the last sample", rates(stat, before))));
    rows.extend(flash_rows(counters));
    if let Some(space) = stat.space {
        let (logical, physical) = (bytes(space.logical_bytes), bytes(space.physical_bytes));
        let room = bytes(space.physical_capacity_bytes);
        rows.push(("on the drive", format!("{logical} logical, {physical} physical of {room}")));
    }
    let busy_parts = [
        ("channels busy", &stat.utilisation.channels),
        ("chips busy", &stat.utilisation.chips),
        ("dies busy", &stat.utilisation.dies),
        ("planes busy", &stat.utilisation.planes),
    ];
    rows.extend(busy_parts.into_iter().filter(|(_, parts)| !parts.each.is_empty()).map(|(name, p)| (name, busy(p))));
    if stat.power_cuts > 0 {
        rows.push(("power cuts", grouped(stat.power_cuts)));
    }
    if stat.failed > 0 {
        rows.push(("failed requests", grouped(stat.failed)));
    }
    rows.extend(stat.pacing.iter().flat_map(pacing_rows));
    rows
}

fn flash_rows(counters: &DeviceCounters) -> Vec<(&'static str, String)> {
    let Some(flash) = counters.flash else { return Vec::new() };
    let moved = match flash.gc_pages_moved {
        0 => String::new(),
        pages => format!(", {} pages moved", grouped(pages)),
    };
    vec![
        ("flash programmed", bytes(flash.bytes_programmed.0)),
        ("garbage collections", format!("{}{moved}", grouped(flash.gc_runs))),
    ]
}

fn requests(count: u64) -> String {
    match count {
        0 => "nothing".to_owned(),
        1 => "1 request".to_owned(),
        more => format!("{} requests", grouped(more)),
    }
}

fn state(stat: &DeviceStat) -> String {
    match (stat.state.read_only, stat.state.end_of_life) {
        (Some(ReadOnlyCause::EndOfLife), Some(end)) => {
            format!("read-only: its blocks wore out after {} written", bytes(end.host_bytes_written))
        }
        (Some(ReadOnlyCause::EndOfLife), None) => "read-only: no spare blocks left".to_owned(),
        (Some(ReadOnlyCause::Fault), _) => "read-only: injected fault".to_owned(),
        (None, _) => "reads and writes".to_owned(),
    }
}

/// Rates between two samples, in simulated time.
fn rates(now: &DeviceStat, before: &DeviceStat) -> String {
    let passed_s = now.simulated_ns.saturating_sub(before.simulated_ns) as f64 / 1e9;
    let (now, before) = (&now.counters, &before.counters);
    if passed_s <= 0.0 {
        return "no simulated time has passed".to_owned();
    }
    let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / passed_s;
    let told = |verb, requests: f64, of_bytes: f64| {
        format!("{} {verb}/s ({}/s)", significant(requests), bytes(of_bytes.round() as u64))
    };
    let reads =
        told("reads", per_s(now.host_reads, before.host_reads), per_s(now.host_bytes_read.0, before.host_bytes_read.0));
    let writes = told(
        "writes",
        per_s(now.host_writes, before.host_writes),
        per_s(now.host_bytes_written.0, before.host_bytes_written.0),
    );
    format!("{reads}, {writes}")
}

/// Latency by kind; kinds without requests are left out.
pub(crate) fn latency_rows(stat: &DeviceStat) -> Vec<[String; 7]> {
    let times = &stat.latency;
    let kinds = [("reads", times.reads), ("writes", times.writes), ("flushes", times.flushes), ("trims", times.trims)];
    let came = kinds.into_iter().filter(|(_, latency)| latency.requests > 0);
    came.map(|(kind, l)| {
        let [median, p90, p99, p99_9, longest] = [l.p50_ns, l.p90_ns, l.p99_ns, l.p99_9_ns, l.max_ns].map(time);
        [kind.to_owned(), grouped(l.requests), median, p90, p99, p99_9, longest]
    })
    .collect()
}

/// Remarks for the reader.
pub(crate) fn remarks(stat: &DeviceStat) -> Vec<String> {
    let mut remarks = fault_sentences(&stat.faults);
    match &stat.pacing {
        None => remarks.push(
            "Requests complete at once (--time none): client measurements show this machine, not the drive.".to_owned(),
        ),
        Some(pacing) => remarks.extend(pacing_remark(pacing, "cannot")),
    }
    remarks
}

/// The effect of a power cut.
pub(crate) fn cut_sentence(cut: &PowerCut) -> String {
    let lost = match cut.lost_requests {
        0 => "No request was in flight".to_owned(),
        1 => "1 request in flight failed with an I/O error".to_owned(),
        more => format!("{} requests in flight failed with I/O errors", grouped(more)),
    };
    format!("The power was cut after {} of simulated time. {lost}.", time(cut.at_ns))
}

/// The faults that are injected.
pub(crate) fn fault_sentences(faults: &FaultState) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(LatencySpike { extra_ns, for_ns, requests: left }) = faults.latency_spike {
        let end = match (for_ns, left) {
            (Some(ns), _) => format!("for {} more of simulated time", time(ns)),
            (None, Some(left)) => format!("for {} more", requests(left)),
            (None, None) => "until the fault is cleared".to_owned(),
        };
        sentences.push(format!("Every request takes {} longer, {end}.", time(extra_ns)));
    }
    if faults.unreadable_bytes > 0 {
        let what = bytes(faults.unreadable_bytes);
        sentences.push(format!("{what} cannot be read until written again."));
    }
    if faults.read_only {
        sentences.push("Writes fail until the fault is cleared.".to_owned());
    }
    sentences
}
