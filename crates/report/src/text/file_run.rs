//! A job on a file, in words.

use flashwise_kernel::PAGE;
use flashwise_kernel::job::FileRun;

use super::numbers::{bytes, grouped, significant, time};

fn per_s(bytes_moved: u64, run: &FileRun) -> u64 {
    (bytes_moved as f64 / (run.elapsed_ns.max(1) as f64 / 1e9)) as u64
}

/// The rate, and how much of what was read the drive saw.
pub(crate) fn headline(run: &FileRun) -> String {
    let moved = run.bytes_read + run.bytes_written;
    let rate = format!("{} calls a second, {}/s", grouped(run.calls_per_s() as u64), bytes(per_s(moved, run)));
    let (hits, looks) = (run.kernel.hits, run.kernel.hits + run.kernel.misses);
    match looks {
        0 => format!("{rate}."),
        looks => {
            format!("{rate}; {:.1} % of the pages were found in the page cache.", 100.0 * hits as f64 / looks as f64)
        }
    }
}

/// The simulated machine.
pub(crate) fn machine(run: &FileRun) -> String {
    let around = if run.direct { ", read and written around the page cache (O_DIRECT)" } else { "" };
    format!(
        "A file of {} on {}, under a page cache of {} that was empty at first{around}; one call at a time.",
        bytes(run.file_bytes),
        run.file_system,
        bytes(run.memory_bytes)
    )
}

/// Latency by kind of call; kinds that were not made are left out.
pub(crate) fn latency_rows(run: &FileRun) -> Vec<[String; 5]> {
    let kinds = [("read", run.reads), ("write", run.writes), ("sync", run.syncs)];
    let made = kinds.into_iter().filter(|(_, percentiles)| percentiles.count > 0);
    made.map(|(kind, p)| [kind.to_owned(), grouped(p.count), time(p.p50_ns), time(p.p99_ns), time(p.max_ns)]).collect()
}

/// What the kernel did.
pub(crate) fn kernel_rows(run: &FileRun) -> Vec<(&'static str, String)> {
    let kernel = &run.kernel;
    let pages = |count: u64| format!("{} pages, {}", grouped(count), bytes(count.saturating_mul(PAGE)));
    let mut rows = vec![
        ("found in the cache", pages(kernel.hits)),
        ("not found", pages(kernel.misses)),
        ("read with read-ahead", pages(kernel.pages_read)),
        ("written back", pages(kernel.pages_written)),
        ("evicted", pages(kernel.evicted)),
        ("journal commits", grouped(kernel.commits)),
    ];
    if kernel.fast_commits > 0 {
        rows.push(("fast commits", grouped(kernel.fast_commits)));
    }
    if kernel.throttled.0 > 0 {
        rows.push(("writers throttled", time(kernel.throttled.0)));
    }
    rows
}

/// What the drive got.
pub(crate) fn drive_rows(run: &FileRun) -> Vec<(&'static str, String)> {
    let drive = &run.drive;
    let requests = |count: u64, moved: u64| format!("{} requests, {}", grouped(count), bytes(moved));
    let mut rows = vec![
        ("reads", requests(drive.host_reads, drive.host_bytes_read.0)),
        ("writes", requests(drive.host_writes, drive.host_bytes_written.0)),
        ("flushes", grouped(drive.flushes)),
    ];
    if drive.trims > 0 {
        rows.push(("trims", grouped(drive.trims)));
    }
    if run.bytes_written > 0 && drive.host_bytes_written.0 > 0 {
        let factor = drive.host_bytes_written.0 as f64 / run.bytes_written as f64;
        rows.push(("written to the drive", format!("{} times what the program wrote", significant(factor))));
    }
    if let Some(amplification) = drive.write_amplification() {
        rows.push(("write amplification", significant(amplification)));
    }
    rows
}
