//! An array of drives in sentences and rows.

use flashwise_array::{
    Accesses, ArrayActivity, ControllerLimit, Level, MemberActivity, PlaceState, Rebuild, RebuildEnd,
};
use flashwise_sim::Simulation;

use super::numbers::{bytes, grouped, significant, time, two_decimals};

/// Shown where there is no value.
const NOTHING: &str = "–";

/// The level, as people write it.
fn level_name(level: Level) -> &'static str {
    match level {
        Level::Raid0 => "RAID-0",
        Level::Raid1 => "RAID-1",
        Level::Raid10 => "RAID-10",
        Level::Raid5 => "RAID-5",
        Level::Raid6 => "RAID-6",
    }
}

/// The array's geometry in a sentence.
pub(crate) fn sentence(s: &Simulation, it: &ArrayActivity) -> String {
    let drive = s.device.as_ref().map_or("", |device| &device.name);
    let (level, members) = (level_name(it.level), it.members.len());
    format!("{level} over {members} × {drive}, {} chunks, {} stripes.", bytes(it.chunk_bytes), bytes(it.row_bytes))
}

/// The array's counters, name and value.
pub(crate) fn rows(it: &ArrayActivity) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(factor) = it.member_bytes_per_host_byte {
        rows.push(("written to members", format!("{} bytes per byte written by the host", two_decimals(factor))));
    }
    rows.push(("data", reads_and_writes(it.accesses.data_reads, it.accesses.data_writes)));
    if it.accesses.parity_reads.count + it.accesses.parity_writes.count > 0 {
        rows.push(("parity", reads_and_writes(it.accesses.parity_reads, it.accesses.parity_writes)));
    }
    if let Some(words) = row_writes(it) {
        rows.push(("stripe writes", words));
    }
    rows.push(("controller", controller(it)));
    if let Some(held) = it.controller.cached_bytes {
        let waits = match it.controller.cache_waits {
            0 => String::new(),
            n => format!(", {} writes waited for free space", grouped(n)),
        };
        rows.push(("write cache", format!("{} held at the end{waits}", bytes(held))));
    }
    rows.extend(failures(it).map(|words| ("failed", words)));
    rows.extend(it.rebuilds.iter().map(|rebuild| ("rebuilding", rebuilding(rebuild))));
    rows
}

fn reads_and_writes(reads: Accesses, writes: Accesses) -> String {
    let said = |of: Accesses| format!("{} ({})", grouped(of.count), bytes(of.bytes));
    format!("{} reads, {} writes", said(reads), said(writes))
}

/// How rows with parity were written; `None` where none was.
fn row_writes(it: &ArrayActivity) -> Option<String> {
    let it = it.row_writes;
    let kinds = [
        (it.full_stripe, "full-stripe"),
        (it.read_modify_write, "read-modify-write"),
        (it.reconstruct_write, "reconstruct-write"),
        (it.restore_write, "rebuilt from the remaining members"),
        (it.without_parity, "without parity"),
    ];
    let told: Vec<_> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{} {words}", grouped(*n))).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn controller(it: &ArrayActivity) -> String {
    let (controller, limits) = (it.controller, &it.config.controller);
    let percent = |share: f64| format!("{:.1} % busy", 100.0 * share);
    let mut parts = Vec::new();
    if let Some(busy) = controller.processor_busy {
        parts.push(format!("processor {}", percent(busy)));
    }
    if let Some(busy) = controller.bus_busy {
        parts.push(format!("host bus {}", percent(busy)));
    }
    match controller.limit_reached {
        Some(ControllerLimit::Iops) => {
            parts.push(format!("its limit of {} commands a second was reached", grouped(limits.iops_max)));
        }
        Some(ControllerLimit::Bandwidth) => {
            parts.push(format!("its limit of {} a second was reached", bytes(limits.bandwidth_bytes_per_s)));
        }
        None if parts.is_empty() => parts.push("no limits".to_owned()),
        None => {}
    }
    parts.join(", ")
}

/// Drives that failed, and those that were to fail after the run's end.
fn failures(it: &ArrayActivity) -> Option<String> {
    let mut said: Vec<_> =
        it.failures.iter().map(|failure| format!("member {} after {}", failure.member, time(failure.at_ns))).collect();
    let happened = |member: u32| it.failures.iter().any(|failure| failure.member == member);
    let later = it.config.failures.iter().filter(|failure| !happened(failure.member));
    said.extend(later.map(|failure| {
        format!("member {} would have failed after {}, but the run had ended", failure.member, time(failure.at_ns))
    }));
    (!said.is_empty()).then(|| said.join(", "))
}

fn rebuilding(it: &Rebuild) -> String {
    let rows = format!("{} of {} stripes", grouped(it.rows_done), grouped(it.rows));
    let end = match (it.end, it.ended_ns) {
        (Some(RebuildEnd::Whole), Some(ended_ns)) => format!("done after {}", time(ended_ns)),
        (Some(RebuildEnd::Failed), Some(ended_ns)) => format!("failed after {} with {rows} done", time(ended_ns)),
        _ => format!("{rows} done when the run ended"),
    };
    format!("member {}, started after {}: {end}", it.member, time(it.began_ns))
}

/// Names of the columns of [`member_rows`].
pub(crate) const MEMBER_COLUMNS: [&str; 7] = ["member", "read", "written", "programmed", "WA", "GC runs", "P/E"];

/// Counters of the drive in each slot.
pub(crate) fn member_rows(it: &ArrayActivity) -> Vec<[String; 7]> {
    let row = |(number, member): (usize, &MemberActivity)| {
        let name = match member.state {
            PlaceState::Whole => number.to_string(),
            PlaceState::Failed => format!("{number}, failed"),
            PlaceState::Rebuilding => format!("{number}, rebuilding"),
        };
        [
            name,
            bytes(member.bytes_read),
            bytes(member.bytes_written),
            bytes(member.flash_bytes_programmed),
            member.write_amplification.map_or_else(|| NOTHING.to_owned(), two_decimals),
            grouped(member.gc_executions),
            member.pe_cycles_mean.map_or_else(|| NOTHING.to_owned(), significant),
        ]
    };
    it.members.iter().enumerate().map(row).collect()
}
