//! Buffer pools on many traces on a terminal: a line a policy and size, over all traces.

use flashwise_bufferpool::traces::{PoolSummary, PoolTracesReport};

use super::Style;
use super::layout::{Align, Screen, Text};
use crate::printed::Printed;
use crate::text::numbers::{bytes, grouped, percentage, time, two_decimals};

/// Buffer pools over many traces.
pub fn render_pool_traces(report: &PoolTracesReport, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("Buffer pools on {} traces", grouped(report.traces.len() as u64)));
    let verdicts: Vec<String> = (0..report.sizes.len()).filter_map(|size| verdict(report, size)).collect();
    verdicts.iter().for_each(|verdict| screen.strong_paragraph(verdict));
    screen.gap();
    table(&mut screen, report);
    screen.gap();
    screen.paragraph(&explanation(report));
    screen.finish()
}

/// The pools of a size, best first.
fn of_size(report: &PoolTracesReport, size: usize) -> impl Iterator<Item = &PoolSummary> {
    report.summary.iter().filter(move |summary| summary.size == size)
}

fn name(summary: &PoolSummary) -> String {
    let variant = summary.variant.as_ref().map_or_else(String::new, |variant| format!(", {variant}"));
    format!("{}{variant}", summary.policy)
}

fn verdict(report: &PoolTracesReport, size: usize) -> Option<String> {
    let best = of_size(report, size).next()?;
    let beside = match best.misses {
        Some(misses) if best.policy != report.baseline || best.variant.is_some() => {
            format!("{} times those of {} in the mean, ", two_decimals(misses.mean), report.baseline)
        }
        _ => String::new(),
    };
    let (on, of) = (grouped(best.best_on as u64), grouped(best.traces as u64));
    let mut words = format!(
        "Pools of {}: fewest misses {} ({beside}the fewest on {on} of {of} traces)",
        report.sizes[size],
        name(best)
    );
    if let Some((fastest, ns)) = least(report, size, |summary| summary.drive_ns.map(|ns| ns as f64)) {
        words += &format!("; least time on the drive {} ({})", name(fastest), time(ns as u64));
    }
    if let Some((least, flash)) = least(report, size, |summary| summary.flash_bytes) {
        words += &format!("; fewest flash bytes {} ({})", name(least), bytes(flash as u64));
    }
    Some(words + ".")
}

fn least(
    report: &PoolTracesReport,
    size: usize,
    get: impl Fn(&PoolSummary) -> Option<f64>,
) -> Option<(&PoolSummary, f64)> {
    let valued = of_size(report, size).filter_map(|summary| Some((summary, get(summary)?)));
    valued.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn table(screen: &mut Screen, report: &PoolTracesReport) {
    let mut header = vec!["policy", "size", "misses", "mean", "p10", "p90", "best on", "written"];
    if report.drive.is_some() {
        header.push("on drive");
    }
    let share = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), two_decimals);
    let row = |summary: &PoolSummary| {
        let mut cells = vec![
            name(summary),
            short(&report.sizes[summary.size]).to_owned(),
            percentage(summary.mean_miss_ratio),
            share(summary.misses.map(|misses| misses.mean)),
            share(summary.misses.map(|misses| misses.p10)),
            share(summary.misses.map(|misses| misses.p90)),
            grouped(summary.best_on as u64),
            grouped(summary.pages_written),
        ];
        if report.drive.is_some() {
            cells.push(summary.drive_ns.map_or_else(|| "–".to_owned(), time));
        }
        cells.iter().map(Text::plain).collect()
    };
    let align: Vec<Align> = (0..header.len()).map(|n| if n == 0 { Align::Left } else { Align::Right }).collect();
    screen.table(&header, &align, report.summary.iter().map(row).collect());
}

/// A size as it stands in a column.
fn short(size: &str) -> &str {
    size.trim_end_matches(" frames").trim_end_matches(" of the pages")
}

fn explanation(report: &PoolTracesReport) -> String {
    let mut text = format!(
        "misses: of all accesses, mean of the traces; mean, p10, p90: misses ÷ those of {} on the same trace, their \
         geometric mean and percentiles over the traces; best on: traces on which no pool of the size has fewer; \
         written: pages written back on all traces.",
        report.baseline
    );
    if let Some(drive) = &report.drive {
        text += &format!(" on drive: simulated time on {drive}, filled before each run, all traces together.");
    }
    match report.unread.len() {
        0 => {}
        1 => text += " One file is left out: it is no trace.",
        files => text += &format!(" {files} files are left out: they are no traces."),
    }
    text
}
