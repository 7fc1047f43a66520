//! Buffer pools in words and numbers.

use flashwise_bufferpool::simulate::{BestPool, PoolMeasure, PoolReport, PoolResult};

use super::numbers::{bytes, grouped, percentage, significant, time, two_decimals};

/// A column of the table.
pub(crate) struct PoolColumn {
    pub(crate) title: &'static str,
    /// Whether it is a number.
    pub(crate) is_number: bool,
    pub(crate) cell: fn(&PoolResult) -> String,
}

pub(crate) fn columns(report: &PoolReport) -> Vec<PoolColumn> {
    let right = |title, cell| PoolColumn { title, is_number: true, cell };
    let left = |title, cell| PoolColumn { title, is_number: false, cell };
    let mut columns = vec![left("policy", |result: &PoolResult| result.policy.clone())];
    if report.results.iter().any(|result| result.ace) {
        columns.push(left("write-back", |result| result.variant.clone().unwrap_or_else(|| "classic".to_owned())));
    }
    columns.push(right("frames", |result| grouped(result.frames)));
    let has_costs = report.model.is_some() || report.drive.is_some();
    // With all of it a line is longer than a terminal is wide.
    if columns.len() < 3 || !has_costs {
        columns.push(right("misses", |result| grouped(result.misses)));
        columns.push(right("", |result| percentage(result.miss_ratio)));
    } else {
        columns.push(right("misses", |result| percentage(result.miss_ratio)));
    }
    if report.writes > 0 {
        columns.push(right("batches", |result| grouped(result.write_back_operations)));
        columns.push(right("written", |result| grouped(result.pages_written)));
    }
    if report.model.is_some() {
        columns.push(right("cost", |result| {
            result.model_cost.map_or_else(|| "–".to_owned(), |cost| significant(cost.total_reads))
        }));
    }
    if report.drive.is_some() {
        columns.push(right("on drive", |result| {
            result.drive_cost.as_ref().map_or_else(|| "–".to_owned(), |cost| time(cost.elapsed_ns))
        }));
    }
    columns
}

/// All pools: by size, then those with the lowest time, cost or misses first.
pub(crate) fn sorted(report: &PoolReport) -> Vec<&PoolResult> {
    let key = |result: &PoolResult| {
        let time = result.drive_cost.as_ref().map(|cost| cost.elapsed_ns as f64);
        let cost = result.model_cost.as_ref().map(|cost| cost.total_reads);
        time.or(cost).unwrap_or(result.misses as f64)
    };
    let mut sorted: Vec<&PoolResult> = report.results.iter().collect();
    let order = |a: &PoolResult, b: &PoolResult| {
        let same_size = key(a).total_cmp(&key(b)).then(a.misses.cmp(&b.misses));
        a.frames.cmp(&b.frames).then(same_size)
    };
    sorted.sort_by(|a, b| order(a, b));
    sorted
}

/// The best pools, a sentence for each size; none where there is nothing to compare.
pub(crate) fn verdicts(report: &PoolReport) -> Vec<String> {
    let mut sizes: Vec<u64> = report.best.iter().map(|best| best.frames).collect();
    sizes.dedup();
    let of_size = |frames: u64| {
        // Pages written are a stand-in for flash bytes, which only a drive shows.
        let has_flash = report.best.iter().any(|best| best.by == PoolMeasure::FlashBytes);
        let is_reported = |best: &&BestPool| !(has_flash && best.by == PoolMeasure::PagesWritten);
        let of_size = report.best.iter().filter(|best| best.frames == frames).filter(is_reported);
        let words: Vec<String> = of_size.map(best_in_words).collect();
        format!("With {} frames: {}.", grouped(frames), words.join("; "))
    };
    sizes.into_iter().map(of_size).collect()
}

/// `fewest misses arc (1,234; at most 5,678)`.
fn best_in_words(best: &BestPool) -> String {
    let what = match best.by {
        PoolMeasure::Misses => "fewest misses",
        PoolMeasure::DriveTime => "least time on the drive",
        PoolMeasure::ModelCost => "lowest cost",
        PoolMeasure::FlashBytes => "fewest flash bytes",
        PoolMeasure::PagesWritten => "fewest pages written",
    };
    let words = |value: f64| match best.by {
        PoolMeasure::Misses | PoolMeasure::PagesWritten => grouped(value as u64),
        PoolMeasure::DriveTime => time(value as u64),
        PoolMeasure::ModelCost => significant(value),
        PoolMeasure::FlashBytes => bytes(value as u64),
    };
    let variant = best.variant.as_ref().map_or_else(String::new, |variant| format!(", {variant}"));
    let others = if best.is_shared { " and others" } else { "" };
    format!("{what} {}{variant}{others} ({}, worst {})", best.policy, words(best.value), words(best.worst))
}

pub(crate) fn counts(report: &PoolReport) -> String {
    let writes = match report.writes {
        0 => "all reads".to_owned(),
        writes => format!("{} writes", grouped(writes)),
    };
    format!("{} accesses to {} pages, {writes}.", grouped(report.accesses), grouped(report.pages))
}

pub(crate) fn explanation(report: &PoolReport) -> String {
    let mut text = match report.writes {
        0 => "The trace has no writes, so no page is written back.".to_owned(),
        _ => "batches: write-back operations, each of one or more dirty pages; written: pages written back.".to_owned(),
    };
    if let Some(model) = &report.model {
        text += &format!(
            " cost: modelled time in units of one page read; a write costs {}, up to {} reads and {} writes run \
             concurrently.",
            two_decimals(model.asymmetry),
            model.read_concurrency,
            model.write_concurrency
        );
    }
    if let Some(drive) = &report.drive {
        text += &format!(" on drive: simulated time on {drive}, filled before the run.");
    }
    text
}
