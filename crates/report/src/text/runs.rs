//! SQLite with its defaults, with what everybody recommends, and with what was found: one row a quantity.

use flashwise_tune::sqlite::Objective;
use flashwise_tune::{Comparison, Rate, RunMeasurement};

use super::gains::{find_gain, objective};
use super::numbers::{bytes, change, ratio_interval, significant, time};

/// One run's value with its interval, where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunCell {
    pub(crate) value: String,
    pub(crate) interval: Option<String>,
}

/// What became of it from `default` to `best`.
pub(crate) struct Change {
    pub(crate) text: String,
    /// `None` where it is no difference, or no matter of better and worse.
    pub(crate) better: Option<bool>,
}

/// One quantity of all three runs.
pub(crate) struct RunRow {
    pub(crate) name: &'static str,
    /// Default, checklist, best.
    pub(crate) cells: [RunCell; 3],
    pub(crate) change: Change,
    /// Whether a short report has it.
    pub(crate) is_short: bool,
}

/// Shown where a run has no value of a quantity.
pub(crate) const NOT_TOLD: &str = "–";

/// How much a quotient without an interval must differ from 1 to be called better or worse.
const TELLING: f64 = 0.01;

/// From this rate on an operation needs no time of the drive, and counts as a nanosecond.
const NO_DRIVE_TIME_PER_S: f64 = 1e8;

/// What more of a quantity means.
#[derive(Clone, Copy, PartialEq)]
enum More {
    Better,
    Worse,
    Neither,
}

/// The three runs in the order of the columns.
pub(crate) fn runs(comparison: &Comparison) -> [&RunMeasurement; 3] {
    [&comparison.default, &comparison.checklist, &comparison.best]
}

/// All quantities of a comparison that its workload has.
pub(crate) fn run_rows(c: &Comparison) -> Vec<RunRow> {
    let t = |ns: u64| time(ns);
    let selects = |run: &RunMeasurement| run.select_latency.count > 0;
    let writes = |run: &RunMeasurement| run.transaction_latency.count > 0;
    let (reads, commits) = (selects(&c.default), writes(&c.default));
    let mut rows = vec![confirmed_row(c)];
    if reads {
        rows.push(rate_row(c, "SELECT/s", |r| r.select_rate));
    }
    if commits {
        rows.push(rate_row(c, "INSERT/s", |r| r.insert_rate));
        rows.push(transaction_row(c));
    }
    if reads {
        rows.push(row(c, "SELECT p50", More::Worse, |r| Some(r.select_latency.p50_ns), t).only_in_full());
        rows.push(row(c, "SELECT p99", More::Worse, |r| Some(r.select_latency.p99_ns), t));
    }
    if commits {
        rows.push(row(c, "transaction p50", More::Worse, |r| Some(r.transaction_latency.p50_ns), t).only_in_full());
        rows.push(row(c, "transaction p99", More::Worse, |r| Some(r.transaction_latency.p99_ns), t));
    }
    rows.extend([
        row(c, "host wrote", More::Worse, |r| Some(r.host_bytes_written), bytes).only_in_full(),
        row(c, "flash programmed", More::Worse, |r| r.flash_bytes_programmed, bytes).only_in_full(),
        row(c, "write amplification", More::Worse, |r| r.write_amplification, significant).only_in_full(),
        row(c, "drive time", More::Worse, |r| Some(r.drive_time_ns), t).only_in_full(),
        row(c, "SQLite CPU time ¹", More::Worse, |r| Some(r.cpu_time_ns), t).only_in_full(),
        row(c, "database size", More::Neither, |r| Some(r.database_bytes), bytes).only_in_full(),
        integrity_row(c).only_in_full(),
    ]);
    rows
}

/// The footnotes that belong to the table.
pub(crate) const FOOTNOTE: &str = "The first row is confirmed, with its interval; the others are of one run, with the 95 \
                                   % interval of the median over its rounds below each rate. ¹ Measured separately: \
                                   SQLite's CPU time is part of neither the drive time nor the rates on a simulated \
                                   drive.";

/// The deciding objective, as a multiple of the default.
fn confirmed_row(c: &Comparison) -> RunRow {
    let objective = objective(c);
    let name = match objective {
        Objective::Throughput => "statements/s",
        Objective::P99 => "1 / p99 latency",
        Objective::FlashBytes => "1 / flash bytes",
    };
    let of = |to: &str| {
        let gain = find_gain(c, objective.metric(), "default", to);
        gain.map_or_else(
            || RunCell { value: "×1".to_owned(), interval: None },
            |gain| RunCell {
                value: format!("×{}", significant(gain.ratio)),
                interval: Some(format!("{}…{}", significant(gain.low), significant(gain.high))),
            },
        )
    };
    let best = if c.best.label == c.checklist.label { of("checklist") } else { of("best") };
    let default = RunCell { value: "×1".to_owned(), interval: None };
    let text = c.gain.as_ref().map_or_else(|| "–".to_owned(), |gain| change(gain.ratio));
    let better = c.gain.as_ref().map(|_| true);
    let best = if c.gain.is_some() { best } else { default.clone() };
    RunRow { name, cells: [default, of("checklist"), best], change: Change { text, better }, is_short: true }
}

/// What a transaction costs the drive: bytes that its flash programs, or where a drive does not report them, bytes that
/// it is sent.
fn transaction_row(c: &Comparison) -> RunRow {
    let is_reported = runs(c).iter().all(|run| run.flash_bytes_programmed.is_some());
    let name = if is_reported { "flash/transaction" } else { "host/transaction" };
    let written = |run: &RunMeasurement| run.flash_bytes_programmed.filter(|_| is_reported);
    let each = |run: &RunMeasurement| {
        written(run).unwrap_or(run.host_bytes_written).checked_div(run.transaction_latency.count)
    };
    row(c, name, More::Worse, each, bytes)
}

fn rate_row(c: &Comparison, name: &'static str, rate: impl Fn(&RunMeasurement) -> Rate) -> RunRow {
    let cells = runs(c).map(|run| {
        let Rate { per_s, low, high } = rate(run);
        if per_s >= NO_DRIVE_TIME_PER_S {
            return RunCell { value: "in cache".to_owned(), interval: None };
        }
        let interval = match low < high {
            true => format!("{}…{}", significant(low), significant(high)),
            // One round has no interval: resampling it gives the same round.
            false => "one round".to_owned(),
        };
        let interval = Some(interval);
        RunCell { value: significant(per_s), interval }
    });
    let best = rate(&c.best).per_s;
    let quotient = quotient(rate(&c.default).per_s, best).filter(|_| best < NO_DRIVE_TIME_PER_S);
    RunRow { name, cells, change: change_of(quotient, More::Better), is_short: true }
}

fn row<T: Number>(
    c: &Comparison,
    name: &'static str,
    more: More,
    value: impl Fn(&RunMeasurement) -> Option<T>,
    show: impl Fn(T) -> String,
) -> RunRow {
    let cell = |run| RunCell { value: value(run).map_or_else(|| NOT_TOLD.to_owned(), &show), interval: None };
    let quotient = match (value(&c.default), value(&c.best)) {
        (Some(before), Some(after)) => quotient(before.as_f64(), after.as_f64()),
        _ => None,
    };
    RunRow { name, cells: runs(c).map(cell), change: change_of(quotient, more), is_short: true }
}

fn integrity_row(c: &Comparison) -> RunRow {
    let cell = |run: &RunMeasurement| RunCell { value: run.integrity_check.clone(), interval: None };
    let sound = runs(c).iter().all(|run| run.integrity_check == "ok");
    let text = if sound { String::new() } else { "not ok".to_owned() };
    let change = Change { text, better: (!sound).then_some(false) };
    RunRow { name: "integrity_check", cells: runs(c).map(cell), change, is_short: true }
}

impl RunRow {
    /// A row for long reports.
    fn only_in_full(self) -> Self {
        Self { is_short: false, ..self }
    }
}

fn change_of(quotient: Option<f64>, more: More) -> Change {
    let Some(ratio) = quotient else { return Change { text: NOT_TOLD.to_owned(), better: None } };
    let differs = (ratio - 1.0).abs() >= TELLING;
    Change {
        text: change(ratio),
        better: (differs && more != More::Neither).then_some((ratio > 1.0) == (more == More::Better)),
    }
}

fn quotient(before: f64, after: f64) -> Option<f64> {
    (before > 0.0).then(|| after / before)
}

/// The interval of a confirmed gain, for a tile of a page.
pub(crate) fn confirmed_interval(c: &Comparison, from: &str, to: &str) -> Option<(String, String)> {
    let gain = find_gain(c, objective(c).metric(), from, to)?;
    Some((format!("×{}", significant(gain.ratio)), ratio_interval(gain.low, gain.high)))
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
