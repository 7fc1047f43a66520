//! A trace in words.

use flashwise_trace::{TraceClock, TraceSummary};

pub(crate) use super::findings::sentence;
use super::numbers::{bytes, grouped, significant, time};
use crate::trace::{TraceConversion, TraceOrigin, TraceReplayed, TraceTpcc};

/// Files that are named.
const NAMED: usize = 8;

/// The format that was recognised, and why.
pub(crate) fn origin_sentence(origin: &TraceOrigin) -> String {
    let packed =
        if origin.compression == "none" { String::new() } else { format!(", compressed with {}", origin.compression) };
    format!("Format: {} ({}): {}{packed}.", origin.format.name(), origin.format_reason, origin.format.title())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Its requests in numbers.
pub(crate) fn rows(summary: &TraceSummary) -> Vec<(&'static str, String)> {
    let s = summary;
    let with_share = |count: u64| format!("{} ({})", grouped(count), percent(count as f64 / s.requests.max(1) as f64));
    let mut rows = vec![
        ("requests", grouped(s.requests)),
        ("reads", format!("{}, {}", with_share(s.reads), bytes(s.bytes_read))),
        ("writes", format!("{}, {}", with_share(s.writes), bytes(s.bytes_written))),
    ];
    let others =
        [("trims", s.trims), ("zero writes", s.zero_writes), ("flushes", s.flushes), ("FUA writes", s.fua_writes)];
    rows.extend(others.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name, with_share(count))));
    rows.push(("duration", duration(s)));
    if let Some(addresses) = s.addresses {
        rows.push(("addresses", format!("byte {} to {}", grouped(addresses.first_byte), grouped(addresses.end_byte))));
    }
    rows.push(("footprint", format!("about {} in 4 KiB pages", bytes(s.footprint_bytes))));
    rows.push(("sequential", percent(s.sequential_share)));
    rows.push(("aligned to 4 KiB", percent(s.aligned_share)));
    if let Some(latency) = s.latency {
        let [median, p99, p999, max] = [latency.p50_ns, latency.p99_ns, latency.p999_ns, latency.max_ns].map(time);
        rows.push(("latency", format!("{median} median, {p99} p99, {p999} p99.9, {max} max")));
    }
    if let Some(depth) = s.mean_queue_depth {
        rows.push(("requests in flight", format!("{} on average", significant(depth))));
    }
    let numbers = [("devices", s.devices), ("processes", s.processes)];
    rows.extend(numbers.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name, grouped(count))));
    if let Some(share) = s.duplicate_share {
        rows.push(("duplicate content", format!("about {} of the requests", percent(share))));
    }
    rows
}

fn duration(summary: &TraceSummary) -> String {
    let rate = summary.requests as f64 / (summary.duration_ns as f64 / 1e9);
    let rate = if rate.is_finite() { format!(", {} requests/s", significant(rate)) } else { String::new() };
    let order = if summary.is_in_order { "" } else { "; not in time order" };
    format!("{}{rate}{order}", time(summary.duration_ns))
}

/// The most frequent lengths and their shares.
pub(crate) fn length_rows(summary: &TraceSummary) -> Vec<[String; 2]> {
    summary.lengths.iter().map(|length| [bytes(length.bytes), percent(length.share)]).collect()
}

/// Files or disks by name.
pub(crate) fn files_sentence(files: &[String]) -> String {
    let named = files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let rest = files.len().saturating_sub(NAMED);
    let rest = if rest > 0 { format!(" and {rest} others") } else { String::new() };
    format!("Files and devices: {named}{rest}.")
}

/// Remarks for the reader.
pub(crate) fn remarks(origin: &TraceOrigin) -> Vec<String> {
    let mut remarks: Vec<String> = origin.remarks.iter().map(|remark| sentence(remark)).collect();
    if origin.skipped_lines > 0 {
        remarks.push(format!("{} malformed lines were skipped.", grouped(origin.skipped_lines)));
    }
    if origin.clock == TraceClock::Unknown {
        remarks.push("Its times have an unknown origin: the first request is taken as time 0.".to_owned());
    }
    remarks
}

/// What was written.
pub(crate) fn conversion_sentence(conversion: &TraceConversion) -> String {
    let (written, format) = (grouped(conversion.written), conversion.output_format);
    format!("{}: {written} requests written as {} ({}).", conversion.output, format.name(), format.title())
}

/// What the format could not hold.
pub(crate) fn losses(conversion: &TraceConversion) -> Vec<String> {
    let (losses, name) = (conversion.losses, conversion.output_format.name());
    let told = [
        (losses.trims_left_out, format!("trims and zero writes were left out: {name} has none.")),
        (losses.flushes_left_out, format!("flushes were left out: {name} has none.")),
        (losses.empty_left_out, "requests of 0 bytes were left out.".to_owned()),
        (losses.widened, format!("requests were widened to whole sectors, the unit of {name}.")),
        (losses.files_as_devices, format!("files were written as numbered devices: {name} has no files.")),
        (losses.merged, format!("devices or files were merged into one address space: {name} has none.")),
        (conversion.early, "requests were earlier than the first one: times count from the earliest.".to_owned()),
    ];
    told.into_iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{} {text}", grouped(count))).collect()
}

/// The transactions that were run.
pub(crate) fn tpcc_sentence(told: &TraceTpcc) -> String {
    use flashwise_tune::sqlite::TpccTransaction::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
    let count = |what| grouped(told.transactions.get(&what).copied().unwrap_or_default());
    format!(
        "{} New-Order ({} rolled back), {} Payment, {} Order-Status, {} Delivery, {} Stock-Level, on {} pages of 4 \
         KiB.",
        count(NewOrder),
        grouped(told.undone),
        count(Payment),
        count(OrderStatus),
        count(Delivery),
        count(StockLevel),
        grouped(told.pages)
    )
}

/// Tables and indexes with their pages, and how many of these were read and written.
pub(crate) fn tpcc_rows(told: &TraceTpcc) -> Vec<[String; 4]> {
    let row = |table: &flashwise_tune::sqlite::TableTraffic| {
        [table.table.clone(), grouped(table.pages), grouped(table.reads), grouped(table.writes)]
    };
    told.tables.iter().map(row).collect()
}

/// Whether requests were submitted on time.
pub(crate) fn fidelity_sentence(replay: &TraceReplayed) -> String {
    match replay.report.issue_error {
        None => {
            format!("Closed loop with {} in flight: the trace's times were not used.", replay.queue_depth.unwrap_or(1))
        }
        Some(error) if error.max_ns == 0 => "Every request was submitted exactly on time.".to_owned(),
        Some(error) => {
            let [median, p99, max] = [error.p50_ns, error.p99_ns, error.max_ns].map(time);
            format!("Requests were submitted late by {median} (median), {p99} (p99), {max} (maximum).")
        }
    }
}

/// The requests sent to the drive and their latency.
pub(crate) fn replay_rows(replay: &TraceReplayed) -> Vec<(&'static str, String)> {
    let report = &replay.report;
    let rate = report.requests as f64 / (report.elapsed_ns as f64 / 1e9);
    let [median, p99, max] = [report.latency.p50_ns, report.latency.p99_ns, report.latency.max_ns].map(time);
    let mut rows = vec![
        ("requests", format!("{}, {}", grouped(report.requests), bytes(report.bytes))),
        ("time", format!("{}, {} requests/s", time(report.elapsed_ns), significant(rate))),
        ("latency", format!("{median} median, {p99} p99, {max} max")),
    ];
    if report.failed > 0 {
        rows.push(("failed", grouped(report.failed)));
    }
    rows
}
