//! `innodb_read_io_threads` and `innodb_write_io_threads`: requests that InnoDB keeps in flight in the background.
//!
//! ```text
//!   with native AIO      threads · 256 requests: k_r ÷ 256 and k_w ÷ 256 threads, never fewer than there are
//!   without              a thread is a request: k_r and k_w, 64 at most
//! ```
//!
//! Source: MariaDB documentation, "InnoDB System Variables": up to 256 requests of a thread with native AIO; 2 to 64
//! threads of reads, and of writes.

use flashwise_block::Operation;
use flashwise_profile::Figure;

use super::super::settings::Variable;
use super::{Facts, Ruling};
use crate::servers::Change;
use crate::servers::figures::{certain, reach};

/// Requests of a thread with native AIO.
const OF_A_THREAD: f64 = 256.0;
const FEWEST: f64 = 2.0;
const MOST: f64 = 64.0;

pub(super) fn of_reads(facts: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    let figure = &facts.profile.parameters.read_concurrency_8k;
    judge(facts, now, figure, ("reads", "k_r", "read_concurrency_8k"))
}

pub(super) fn of_writes(facts: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    let figure = &facts.profile.parameters.write_concurrency_8k;
    judge(facts, now, figure, ("writes", "k_w", "write_concurrency_8k"))
}

fn judge(
    facts: &Facts<'_>,
    now: &Variable,
    figure: &Figure<u64>,
    (what, name, key): (&str, &str, &str),
) -> Result<Ruling, String> {
    let k = certain(figure, &format!("{name} at 8 KiB"))?;
    let native = facts.variables.get("innodb_use_native_aio").ok_or("this server has no innodb_use_native_aio")?;
    let (each, how) = match native.value.as_str() {
        "ON" => (OF_A_THREAD, "with native AIO, a thread keeps 256 in flight"),
        _ => (1.0, "without native AIO, a thread keeps one in flight"),
    };
    let present: f64 = now.value.parse().map_err(|_| format!("{} is not a number", now.value))?;
    let threads = |count: f64| (count / each).ceil().clamp(FEWEST, MOST);
    let operation = if what == "writes" { Operation::Write } else { Operation::Read };
    let depths = [present, threads(k.value)].map(|threads| threads * each);
    let reach = reach(facts.profile, operation, 8192, &depths).map_or_else(String::new, |words| format!("; {words}"));
    let reason =
        format!("the drive serves {name} = {} {what} concurrently ({} to {}); {how}{reach}", k.value, k.low, k.high);
    if present >= threads(k.low) {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(
        threads(k.value).to_string(),
        reason,
        vec![k.evidence(key, &format!("{what} in flight"))],
    )))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn with_native_aio_few_threads_are_enough() {
        let bench = Bench::new();
        assert!(fits(bench.judge(of_reads, "innodb_read_io_threads")).contains("k_r = 16 reads"));
        fits(bench.judge(of_writes, "innodb_write_io_threads"));
    }

    #[test]
    fn without_it_each_request_takes_a_thread() {
        let mut bench = Bench::new();
        bench.set("innodb_use_native_aio", "OFF");
        bench.profile.curves = crate::servers::tests::profile().curves;
        let change = changed(bench.judge(of_reads, "innodb_read_io_threads"));
        assert_eq!(change.value, "16");
        assert!(change.reason.contains("depth 4 reaches 25 % of the drive's random reads"), "{}", change.reason);
        assert!(fits(bench.judge(of_writes, "innodb_write_io_threads")).contains("k_w = 2"));
        bench.set("innodb_read_io_threads", "15");
        fits(bench.judge(of_reads, "innodb_read_io_threads"));
    }

    #[test]
    fn a_doubtful_figure_changes_nothing() {
        let mut bench = Bench::new();
        bench.profile.parameters.doubt("read_concurrency_8k");
        assert!(untold(bench.judge(of_reads, "innodb_read_io_threads")).contains("k_r"));
    }
}
