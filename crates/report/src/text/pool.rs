//! Buffer pools in words and numbers.

use flashwise_bufferpool::simulate::{PoolReport, PoolResult};

use super::numbers::{grouped, percentage, significant, time, two_decimals};

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
