//! A simulation in sentences and rows.

use flashwise_sim::{Busy, CommandTimes, DataReduction, FlowResult, Responses, Simulation, SlcCache, WriteCauses};
use flashwise_sim::{Precondition, Preconditioned};

use super::numbers::{bytes, grouped, significant, time, two_decimals};

/// Shown where there is no value.
const NOTHING: &str = "–";

/// Names of the columns of [`flow_rows`].
pub(crate) const FLOW_COLUMNS: [&str; 8] = ["flow", "requests", "IOPS", "MiB/s", "mean", "50 %", "99 %", "99.9 %"];

/// One row of requests.
pub(crate) struct FlowRow {
    pub(crate) name: String,
    /// A part of the row above it.
    pub(crate) is_part: bool,
    pub(crate) cells: [String; 7],
}

impl FlowRow {
    fn new(name: &str, is_part: bool, responses: &Responses) -> Self {
        let p = responses.percentiles_ns;
        let percentile = |value: Option<u64>| value.map_or_else(|| NOTHING.to_owned(), time);
        let cells = [
            grouped(responses.requests),
            significant(responses.iops),
            significant(responses.bytes_per_s / f64::from(1 << 20)),
            mean(responses.mean_response_ns),
            percentile(p.map(|p| p.p50)),
            percentile(p.map(|p| p.p99)),
            percentile(p.map(|p| p.p99_9)),
        ];
        Self { name: name.to_owned(), is_part, cells }
    }
}

fn mean(mean_ns: Option<f64>) -> String {
    mean_ns.map_or_else(|| NOTHING.to_owned(), |ns| time(ns.round() as u64))
}

/// The result in a sentence.
pub(crate) fn headline(s: &Simulation) -> String {
    let requests = grouped(s.total.requests);
    let (iops, rate) = (significant(s.total.iops), bytes(s.total.bytes_per_s.round() as u64));
    let response = mean(s.total.mean_response_ns);
    format!(
        "{iops} IOPS, {rate}/s, mean response time {response} ({requests} requests in {} of simulated time).",
        time(s.elapsed_ns)
    )
}

/// The drive's state at the start, and what it means for the figures.
pub(crate) fn state_sentence(s: &Simulation) -> String {
    let mut told = match s.device {
        Some(_) => precondition_words(&s.precondition, s.array.is_some()),
        None => "The volume was new.".to_owned(),
    };
    if s.unwritten_pages_read > 0 {
        told += &format!(
            " {} of the logical pages read had never been written: such reads do not reach the flash.",
            grouped(s.unwritten_pages_read)
        );
    }
    for flow in &s.flows {
        let whose = if s.flows.len() > 1 { format!("{}: ", flow.name) } else { String::new() };
        flow.notes.iter().for_each(|note| told += &format!(" {whose}{}", super::trace::sentence(note)));
    }
    told
}

fn precondition_words(done: &Preconditioned, is_array: bool) -> String {
    // Holds for each drive of an array.
    let drive = if is_array { "Every drive" } else { "The drive" };
    let written = bytes(done.host_bytes_written);
    let together = if is_array { " in all" } else { "" };
    let settled = match (done.is_settled, done.write_amplification.last()) {
        (Some(true), Some(wa)) => format!(" until write amplification was steady at {}", two_decimals(*wa)),
        (Some(false), Some(wa)) => format!("; write amplification was NOT steady, last {}", two_decimals(*wa)),
        _ => String::new(),
    };
    match done.state {
        Precondition::Empty => format!("{drive} started empty."),
        Precondition::Fill => format!("{drive} started full: every logical page written once, in order."),
        Precondition::Steady => {
            format!("{drive} started full; then {written}{together} were written at random{settled}.")
        }
        Precondition::Analytic => {
            let promise = done.write_amplification.first().map_or_else(String::new, |wa| {
                format!(
                    "; the analytic model predicts a write amplification of {} for random writes",
                    two_decimals(*wa)
                )
            });
            format!("{drive} started in its computed steady state{promise}.")
        }
    }
}

/// Every flow, its reads and writes where it has both, and all flows together.
pub(crate) fn flow_rows(s: &Simulation) -> Vec<FlowRow> {
    let mut rows: Vec<_> = s.flows.iter().flat_map(one_flow).collect();
    if s.flows.len() > 1 {
        rows.push(FlowRow::new("all flows", false, &s.total));
    }
    rows
}

fn one_flow(flow: &FlowResult) -> Vec<FlowRow> {
    let mut rows = vec![FlowRow::new(&flow.name, false, &flow.all)];
    if let (Some(read), Some(write)) = (&flow.read, &flow.write) {
        rows.push(FlowRow::new("reads", true, read));
        rows.push(FlowRow::new("writes", true, write));
    }
    rows
}

/// Write amplification and its parts: cause, factor, share; empty where nothing was written.
pub(crate) fn amplification_rows(s: &Simulation) -> Vec<[String; 3]> {
    match (s.write_amplification, s.write_amplification_by_cause) {
        (Some(whole), Some(parts)) => {
            let host = if s.array.is_some() { "host, incl. copies and parity" } else { "host" };
            amplification_parts(whole, &parts, host)
        }
        _ => Vec::new(),
    }
}

/// The same with another name for the first cause.
pub(crate) fn amplification_parts(whole: f64, parts: &WriteCauses, host: &'static str) -> Vec<[String; 3]> {
    let part = |(name, factor): (&str, f64)| {
        let percent = if whole > 0.0 { format!("{:.1} %", 100.0 * factor / whole) } else { NOTHING.to_owned() };
        [name.to_owned(), two_decimals(factor), percent]
    };
    let causes = [
        (host, parts.host),
        ("garbage collection", parts.gc),
        ("wear levelling", parts.wear_levelling),
        ("retired blocks", parts.retirement),
        ("SLC cache", parts.folding),
        ("mapping tables", parts.mapping),
        ("padding", parts.padding),
    ];
    let told = causes.into_iter().filter(|(name, factor)| *name == host || *factor > 0.0);
    told.chain([("all", whole)]).map(part).collect()
}

/// Heading of the section about the drive, or about all drives of an array.
pub(crate) fn drive_heading(s: &Simulation) -> &'static str {
    match (&s.array, &s.device) {
        (Some(_), _) => "All drives together",
        (None, Some(_)) => "The drive",
        (None, None) => "The medium",
    }
}

/// The drive's counters, name and value.
pub(crate) fn device_rows(s: &Simulation) -> Vec<(&'static str, String)> {
    let mut rows = vec![("read by the host", bytes(s.host.bytes_read)), ("written by the host", host_writes(s))];
    if s.device.is_none() {
        return rows;
    }
    rows.extend([
        ("flash pages read", grouped(s.flash.reads)),
        ("flash pages programmed", grouped(s.flash.programs)),
        ("blocks erased", grouped(s.flash.erases)),
        ("garbage collections", collections(s)),
    ]);
    rows.extend(s.reduction.iter().flat_map(reduction_rows));
    rows.extend(s.slc_cache.iter().map(slc_cache_row));
    rows.push(("channels busy", busy(&s.utilisation.channels)));
    let parts = [
        ("chips busy", &s.utilisation.chips),
        ("dies busy", &s.utilisation.dies),
        ("planes busy", &s.utilisation.planes),
    ];
    // A document of an older version has no chips and no planes.
    rows.extend(parts.iter().filter(|(_, parts)| !parts.each.is_empty()).map(|(name, parts)| (*name, busy(parts))));
    if let Some(millijoules) = s.flash_energy_mj {
        rows.push(("energy of the flash", format!("{} mJ", significant(millijoules))));
    }
    if let Some(wear) = &s.erase_counts {
        rows.push(("P/E cycles", format!("{} to {}, mean {}", wear.min, wear.max, significant(wear.mean))));
    }
    rows
}

/// Bytes written to the SLC cache, past it, and folded from it.
fn slc_cache_row(it: &SlcCache) -> (&'static str, String) {
    let (cached, past) = (bytes(it.bytes_cached), bytes(it.bytes_bypassed));
    let (folded, holds, room) = (bytes(it.bytes_folded), bytes(it.valid_bytes), bytes(it.capacity_bytes));
    ("SLC cache", format!("{cached} cached, {past} bypassed, {folded} folded; holds {holds} of {room}"))
}

/// Data reduction of the pages written, and the space in use.
fn reduction_rows(it: &DataReduction) -> Vec<(&'static str, String)> {
    let percent = |part: u64, whole: u64| match whole {
        0 => NOTHING.to_owned(),
        whole => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    };
    let mut parts = Vec::new();
    if it.bytes_of_zeros > 0 {
        parts.push(format!("{} zeros", percent(it.bytes_of_zeros, it.bytes_written)));
    }
    if it.lookups > 0 {
        parts.push(format!("{} duplicates", percent(it.bytes_duplicate, it.bytes_written)));
    }
    let (rest, stored) = (percent(it.bytes_unique, it.bytes_written), percent(it.bytes_stored, it.bytes_unique));
    parts.push(format!("{rest} stored, compressed to {stored}"));
    if it.bytes_merged > 0 {
        parts.push(format!("{} merged in background", bytes(it.bytes_merged)));
    }
    let (logical, physical) = (it.logical_bytes, it.physical_bytes);
    let room = bytes(it.physical_capacity_bytes);
    vec![
        ("pages written", parts.join(", ")),
        ("on the drive", format!("{} logical, {} physical of {room}", bytes(logical), bytes(physical))),
    ]
}

/// How busy parts of one kind were: mean, least, most.
pub(crate) fn busy(busy: &Busy) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    format!("{} % ({} to {} %)", percent(busy.mean), percent(busy.min), percent(busy.max))
}

/// Names of the columns of [`command_rows`].
pub(crate) const COMMAND_COLUMNS: [&str; 4] = ["flash commands", "count", "waiting", "service"];

/// How long flash commands waited for their die and were served, by class.
pub(crate) fn command_rows(s: &Simulation) -> Vec<[String; 4]> {
    let row = |times: &CommandTimes| {
        let [waiting, service] = [times.mean_waiting_ns, times.mean_service_ns].map(|ns| time(ns.round() as u64));
        [times.class.clone(), grouped(times.commands), waiting, service]
    };
    s.flash_commands.iter().map(row).collect()
}

fn host_writes(s: &Simulation) -> String {
    match s.host.bytes_absorbed {
        0 => bytes(s.host.bytes_written),
        absorbed => format!("{}, {} of it absorbed by the write buffer", bytes(s.host.bytes_written), bytes(absorbed)),
    }
}

fn collections(s: &Simulation) -> String {
    match s.gc.executions {
        0 => "none".to_owned(),
        n => format!("{}, {} pages moved", grouped(n), grouped(s.gc.pages_moved)),
    }
}

/// What the simulation itself took.
pub(crate) fn process_sentence(s: &Simulation) -> String {
    let wall = time((s.process.wall_s * 1e9).round() as u64);
    let memory = s.process.peak_memory_bytes.map_or_else(String::new, |peak| format!(", {} of memory", bytes(peak)));
    format!("The simulation took {wall}: {} requests/s{memory}.", significant(s.process.requests_per_s))
}

/// How many invariants were checked; each of them held, or there would be no result.
pub(crate) fn invariants_sentence(s: &Simulation) -> String {
    format!("All {} invariants checked hold.", s.invariants.len())
}
