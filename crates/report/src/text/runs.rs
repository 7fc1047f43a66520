//! Before and after: one row a quantity, one column a run.

use flashwise_tune::{Comparison, Gain, Rate, RunMeasurement};

use super::gains::find_gain;
use super::numbers::{bytes, change, change_interval, significant, time};

/// One run's value with its interval, where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunCell {
    pub(crate) value: String,
    pub(crate) interval: Option<String>,
}

/// What became of it from `before` to `after`.
pub(crate) struct Change {
    pub(crate) text: String,
    pub(crate) interval: Option<String>,
    /// `None` where it is no difference, or no matter of better and worse.
    pub(crate) better: Option<bool>,
}

/// One quantity of all three runs.
pub(crate) struct RunRow {
    pub(crate) name: &'static str,
    /// Default, before, after.
    pub(crate) cells: [RunCell; 3],
    pub(crate) change: Change,
}

/// Shown where a run has no value of a quantity.
pub(crate) const NOT_TOLD: &str = "–";

/// How much a quotient without an interval must differ from 1 to be called better or worse.
const TELLING: f64 = 0.01;

/// What more of a quantity means.
#[derive(Clone, Copy, PartialEq)]
enum More {
    Better,
    Worse,
    Neither,
}

/// The three runs in the order of the columns.
pub(crate) fn runs(comparison: &Comparison) -> [&RunMeasurement; 3] {
    [&comparison.default_page_size, &comparison.before, &comparison.after]
}

/// All quantities of a comparison.
pub(crate) fn run_rows(c: &Comparison) -> Vec<RunRow> {
    let t = |ns: u64| time(ns);
    vec![
        rate_row(c, "SELECT/s", "select_per_s", |r| r.select_rate),
        rate_row(c, "INSERT/s", "insert_per_s", |r| r.insert_rate),
        row(c, "SELECT p50", "select_latency_p50", More::Worse, |r| Some(r.select_latency.p50_ns), t),
        row(c, "SELECT p99", "select_latency_p99", More::Worse, |r| Some(r.select_latency.p99_ns), t),
        row(c, "transaction p50", "transaction_latency_p50", More::Worse, |r| Some(r.transaction_latency.p50_ns), t),
        row(c, "transaction p99", "transaction_latency_p99", More::Worse, |r| Some(r.transaction_latency.p99_ns), t),
        row(c, "host wrote", "host_bytes_written", More::Worse, |r| Some(r.host_bytes_written), bytes),
        row(c, "flash programmed", "flash_bytes_programmed", More::Worse, |r| r.flash_bytes_programmed, bytes),
        row(c, "write amplification", "write_amplification", More::Worse, |r| r.write_amplification, significant),
        row(c, "drive time", "drive_time_ns", More::Worse, |r| Some(r.drive_time_ns), t),
        row(c, "SQLite CPU time ¹", "cpu_time_ns", More::Worse, |r| Some(r.cpu_time_ns), t),
        row(c, "database size", "database_bytes", More::Neither, |r| Some(r.database_bytes), bytes),
        integrity_row(c),
    ]
}

/// The footnotes that belong to the table.
pub(crate) const FOOTNOTE: &str = "Below each rate: the 95 % interval of its median over the rounds. ¹ Measured \
                                   separately: SQLite's CPU time is part of neither the drive time nor the rates on a \
                                   simulated drive.";

fn rate_row(c: &Comparison, name: &'static str, metric: &str, rate: impl Fn(&RunMeasurement) -> Rate) -> RunRow {
    let cells = runs(c).map(|run| {
        let Rate { per_s, low, high } = rate(run);
        let interval = match low < high {
            true => format!("{}…{}", significant(low), significant(high)),
            // One round has no interval: resampling it gives the same round.
            false => "one round".to_owned(),
        };
        let interval = Some(interval);
        RunCell { value: significant(per_s), interval }
    });
    let quotient = quotient(rate(&c.before).per_s, rate(&c.after).per_s);
    RunRow { name, cells, change: change_of(find_gain(c, metric, "before", "after"), quotient, More::Better) }
}

fn row<T: Number>(
    c: &Comparison,
    name: &'static str,
    metric: &str,
    more: More,
    value: impl Fn(&RunMeasurement) -> Option<T>,
    show: impl Fn(T) -> String,
) -> RunRow {
    let cell = |run| RunCell { value: value(run).map_or_else(|| NOT_TOLD.to_owned(), &show), interval: None };
    let quotient = match (value(&c.before), value(&c.after)) {
        (Some(before), Some(after)) => quotient(before.as_f64(), after.as_f64()),
        _ => None,
    };
    let change = change_of(find_gain(c, metric, "before", "after"), quotient, more);
    RunRow { name, cells: runs(c).map(cell), change }
}

fn integrity_row(c: &Comparison) -> RunRow {
    let cell = |run: &RunMeasurement| RunCell { value: run.integrity_check.clone(), interval: None };
    let sound = runs(c).iter().all(|run| run.integrity_check == "ok");
    let text = if sound { String::new() } else { "not ok".to_owned() };
    let change = Change { text, interval: None, better: (!sound).then_some(false) };
    RunRow { name: "integrity_check", cells: runs(c).map(cell), change }
}

fn change_of(gain: Option<&Gain>, quotient: Option<f64>, more: More) -> Change {
    let Some(ratio) = gain.map(|g| g.ratio).or(quotient) else {
        return Change { text: NOT_TOLD.to_owned(), interval: None, better: None };
    };
    let differs = match gain {
        Some(gain) => gain.low > 1.0 || gain.high < 1.0,
        None => (ratio - 1.0).abs() >= TELLING,
    };
    Change {
        text: change(ratio),
        interval: gain.map(|g| change_interval(g.low, g.high)),
        better: (differs && more != More::Neither).then_some((ratio > 1.0) == (more == More::Better)),
    }
}

fn quotient(before: f64, after: f64) -> Option<f64> {
    (before > 0.0).then(|| after / before)
}

/// What a row can hold.
trait Number: Copy {
    fn as_f64(self) -> f64;
}

impl Number for u64 {
    fn as_f64(self) -> f64 {
        self as f64
    }
}

impl Number for f64 {
    fn as_f64(self) -> f64 {
        self
    }
}
