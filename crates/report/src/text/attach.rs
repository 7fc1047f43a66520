//! An attached drive in words.

use flashwise_attach::{AttachReport, Captured, KernelTimes, Pacing};
use flashwise_block::Percentiles;

use super::numbers::{bytes, grouped, significant, time};

/// Its counters.
pub(crate) fn rows(report: &AttachReport) -> Vec<(&'static str, String)> {
    let counters = &report.counters;
    let mut rows = vec![
        ("simulated time", time(report.simulated_ns)),
        ("read", bytes(counters.host_bytes_read.0)),
        ("written", bytes(counters.host_bytes_written.0)),
    ];
    if let Some(amplification) = report.write_amplification {
        rows.push(("write amplification", significant(amplification)));
    }
    if let Some(space) = report.space {
        let (logical, physical) = (bytes(space.logical_bytes), bytes(space.physical_bytes));
        let room = bytes(space.physical_capacity_bytes);
        rows.push(("on the drive", format!("{logical} logical, {physical} physical of {room}")));
    }
    if report.failed > 0 {
        rows.push(("failed requests", grouped(report.failed)));
    }
    rows.extend(report.pacing.iter().flat_map(pacing_rows));
    rows.extend(report.kernel.iter().map(|kernel| {
        let (seen, drive) = (time(kernel.mean_ns), time(kernel.drive_mean_ns));
        ("programs waited", format!("{seen} mean, {drive} of it the drive's ({} requests)", grouped(kernel.requests)))
    }));
    rows
}

/// How far client measurements are from the drive.
pub(crate) fn pacing_rows(pacing: &Pacing) -> impl Iterator<Item = (&'static str, String)> {
    let of = |times: &Percentiles| format!("{} median, {} p99", time(times.p50_ns), time(times.p99_ns));
    let late = ("completions late by", of(&pacing.error));
    let again = (pacing.at_once.count > 0).then(|| ("time to next request", of(&pacing.at_once)));
    std::iter::once(late).chain(again)
}

/// A warning when that is too far, with the time scale that is near enough.
pub(crate) fn pacing_remark(pacing: &Pacing, could_not: &str) -> Option<String> {
    let help = help(pacing.enough_time_scale);
    let way = time(pacing.round_trip_ns);
    pacing.spoils_the_result.then(|| {
        format!(
            "This machine {could_not} keep up with the simulated drive, so client measurements do not show the drive: \
             {help}, or send fewer requests at a time. The round trip to the client alone takes {way}."
        )
    })
}

/// A warning when programs on a mounted drive waited for the machine.
fn kernel_remark(kernel: &KernelTimes) -> Option<String> {
    let (seen, drive) = (time(kernel.mean_ns), time(kernel.drive_mean_ns));
    let help = help(kernel.enough_time_scale);
    kernel.spoils_the_result.then(|| {
        format!(
            "Programs waited {seen} for a request on average, and the drive took {drive}: the rest is the kernel's way to \
             it, such as threads of the loop driver that got no processor. Client measurements do not show the drive: \
             {help}, or leave processors free."
        )
    })
}

fn help(enough_time_scale: Option<f64>) -> String {
    enough_time_scale.map_or_else(
        || "slow the drive down (--time-scale)".to_owned(),
        |scale| format!("slow the drive down (--time-scale {scale})"),
    )
}

/// Latency by kind: count, median, p99, maximum; kinds without requests are left out.
pub(crate) fn latency_rows(report: &AttachReport) -> Vec<[String; 5]> {
    let times = &report.latency;
    let kinds = [("reads", times.reads), ("writes", times.writes), ("flushes", times.flushes), ("trims", times.trims)];
    let came = kinds.into_iter().filter(|(_, percentiles)| percentiles.count > 0);
    came.map(|(kind, p)| [kind.to_owned(), grouped(p.count), time(p.p50_ns), time(p.p99_ns), time(p.max_ns)]).collect()
}

/// Remarks for the reader.
pub(crate) fn remarks(report: &AttachReport) -> Vec<String> {
    let mut remarks = Vec::new();
    match &report.pacing {
        None => remarks.push(
            "Requests completed at once (--time none): client measurements show this machine, not the drive."
                .to_owned(),
        ),
        Some(pacing) => remarks.extend(pacing_remark(pacing, "could not")),
    }
    remarks.extend(report.kernel.as_ref().and_then(kernel_remark));
    let unwritten = report.counters.flash.map_or(0, |flash| flash.unwritten_pages_read);
    if unwritten > 0 {
        remarks.push(format!(
            "{} of the logical pages read had never been written: such reads do not reach the flash, and are faster. \
             --precondition fill writes every page first.",
            grouped(unwritten)
        ));
    }
    remarks.extend(report.capture.as_ref().map(captured_sentence));
    remarks
}

fn captured_sentence(captured: &Captured) -> String {
    let Captured { trace, requests, losses } = captured;
    let lost = losses.trims_left_out + losses.flushes_left_out + losses.empty_left_out;
    let lost =
        if lost > 0 { format!(", {} left out that its format cannot hold", grouped(lost)) } else { String::new() };
    format!("{trace}: {} requests{lost}.", grouped(*requests))
}
