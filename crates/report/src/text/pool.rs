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
        0 => "none of them a write".to_owned(),
        writes => format!("{} of them writes", grouped(writes)),
    };
    format!("{} accesses to {} pages, {writes}.", grouped(report.accesses), grouped(report.pages))
}

pub(crate) fn explanation(report: &PoolReport) -> String {
    let mut text = match report.writes {
        0 => "Nothing is written in this trace, so nothing is written back.".to_owned(),
        _ => "Batches are write-backs of dirty pages, one or several at once; written, the pages in them.".to_owned(),
    };
    if let Some(model) = &report.model {
        text += &format!(
            " Cost in reads of a page: a write takes {}, up to {} reads and {} writes go on at once.",
            two_decimals(model.asymmetry),
            model.read_concurrency,
            model.write_concurrency
        );
    }
    if let Some(drive) = &report.drive {
        text += &format!(" On the simulated drive {drive}, which was full before, in its own time.");
    }
    text
}
