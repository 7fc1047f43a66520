//! `random_page_cost`: the cost of a random page read, relative to a page in a scan.
//!
//! ```text
//!   time of a page of 8 KiB, random      1 / IOPS of 8 KiB reads at depth d
//!   time of a page of 8 KiB, in a scan   1 / (16 · IOPS of 128 KiB reads at depth d)
//!   random_page_cost                     seq_page_cost · the first ÷ the second
//! ```
//!
//! A sequential scan reaches the drive in units of the kernel's read-ahead, 128 KiB by default (`read_ahead_kb`): 16
//! pages per request. The depth is that of the workload: `--iodepth`, or by default k_r. α is not used: it compares
//! reads with writes.
//!
//! Source: PostgreSQL documentation, "Planner Cost Constants": the costs are relative to `seq_page_cost`; one below it
//! is "not physically sensible".

use flashwise_block::Operation;

use super::super::settings::{PAGE, Setting};
use super::{Change, Facts, Ruling};
use crate::servers::figures::{Measure, certain, iops, single_reads};

/// Default read-ahead of Linux.
const READ_AHEAD: u64 = 128 << 10;

pub(super) fn judge(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let sequential_cost = facts.settings.number("seq_page_cost").ok_or("the server reports no seq_page_cost")?;
    let depth = match facts.depth {
        Some(depth) => f64::from(depth),
        None => certain(&facts.profile.parameters.read_concurrency_8k, "k_r at 8 KiB")?.value,
    };
    let (random, scan) = rates(facts, depth)?;
    let ratio = at_least_one(scan.over(random));
    let present = now.value.parse::<f64>().map_err(|_| format!("{} is not a number", now.value))?;
    let told = format!("{:.2} times ({:.2} to {:.2})", ratio.value, ratio.low, ratio.high);
    let reads = reads_in_flight(depth);
    let context = format!("with {reads}, a random page read takes {told} as long as a page in a scan");
    let wanted = (ratio.value * sequential_cost * 10.0).round() / 10.0;
    if ratio.contains(present / sequential_cost) || present == wanted {
        return Ok(Ruling::Fits(context));
    }
    let alone = rates(facts, 1.0).map(|(random, scan)| at_least_one(scan.over(random)).value).ok();
    let alone = alone.filter(|_| depth > 1.0).map(|ratio| format!("; with 1 read in flight, {ratio:.2} times"));
    Ok(Ruling::Change(Change {
        value: wanted.to_string(),
        reason: format!("{context}{}", alone.unwrap_or_default()),
        evidence: vec![
            random.evidence(format!("8 KiB, {reads}"), "per second"),
            scan.evidence(format!("pages of 8 KiB by 128 KiB, {reads}"), "per second"),
            ratio.evidence("time of a random page ÷ time of a page in a scan", "ratio"),
        ],
        expected: None,
        expected_gain: "unknown: it changes which plans are chosen, not how fast a plan runs".to_owned(),
    }))
}

/// Random pages a second, and pages a second in scans.
fn rates(facts: &Facts<'_>, depth: f64) -> Result<(Measure, Measure), String> {
    let pages = (READ_AHEAD / PAGE) as f64;
    let random = iops(facts.profile, Operation::Read, PAGE, depth)
        .ok_or_else(|| format!("the profile has no 8 KiB reads, {}", reads_in_flight(depth)))?;
    let scan = iops(facts.profile, Operation::Read, READ_AHEAD, depth);
    let scan = scan.or_else(|| single_reads(facts.profile, READ_AHEAD).filter(|_| depth == 1.0));
    let scan = scan.ok_or_else(|| {
        format!(
            "the profile has no reads of 128 KiB, {}; measure them with `flashwise learn --request-size 128k`, or give \
             --iodepth 1",
            reads_in_flight(depth)
        )
    })?;
    Ok((random, scan.times(pages)))
}

fn reads_in_flight(depth: f64) -> String {
    if depth == 1.0 { "1 read in flight".to_owned() } else { format!("{depth} reads in flight") }
}

fn at_least_one(ratio: Measure) -> Measure {
    Measure { value: ratio.value.max(1.0), low: ratio.low.max(1.0), high: ratio.high.max(1.0) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn it_is_the_ratio_at_the_working_depth() {
        let bench = Bench::new();
        // 8 KiB at 16: 128,000; 128 KiB at 16: 20,000, which are 320,000 pages.
        let change = changed(judge(&bench.facts(), bench.setting("random_page_cost")));
        assert_eq!(change.value, "2.5");
        assert!(change.reason.starts_with("with 16 reads in flight") && change.reason.contains("2.50 times"));
        // One at a time: 12,000 and 4,500 · 16 = 72,000.
        assert!(change.reason.ends_with("with 1 read in flight, 6.00 times"), "{}", change.reason);
        let alone = Facts { depth: Some(1), ..bench.facts() };
        assert_eq!(changed(judge(&alone, bench.setting("random_page_cost"))).value, "6");
    }

    #[test]
    fn what_is_within_the_interval_stays_and_the_cost_of_scans_counts() {
        let mut bench = Bench::new();
        bench.set("random_page_cost", "2.52");
        assert!(fits(judge(&bench.facts(), bench.setting("random_page_cost"))).contains("16 reads"));
        let mut bench = Bench::new();
        bench.set("seq_page_cost", "0.1");
        assert_eq!(changed(judge(&bench.facts(), bench.setting("random_page_cost"))).value, "0.3");
    }

    #[test]
    fn a_value_that_only_differs_by_rounding_stays() {
        let mut bench = Bench::new();
        for point in bench.profile.curves.throughput.iter_mut().flat_map(|curve| &mut curve.points) {
            (point.low, point.high) = (point.iops, point.iops);
        }
        // 20,320 · 16 ÷ 128,000 is 2.54, and nothing else.
        let scan = &mut bench.profile.curves.throughput[2].points[1];
        (scan.low, scan.iops, scan.high) = (20_320.0, 20_320.0, 20_320.0);
        assert_eq!(changed(judge(&bench.facts(), bench.setting("random_page_cost"))).value, "2.5");
        bench.set("random_page_cost", "2.5");
        fits(judge(&bench.facts(), bench.setting("random_page_cost")));
    }

    #[test]
    fn without_long_reads_or_k_r_nothing_is_told() {
        let mut bench = Bench::new();
        bench.profile.curves.throughput.retain(|curve| curve.request_bytes != READ_AHEAD);
        assert!(untold(judge(&bench.facts(), bench.setting("random_page_cost"))).contains("--request-size 128k"));
        let mut bench = Bench::new();
        bench.profile.parameters.doubt("read_concurrency_8k");
        assert!(untold(judge(&bench.facts(), bench.setting("random_page_cost"))).contains("no certain k_r"));
    }

    #[test]
    fn a_random_page_never_costs_less_than_one_in_a_scan() {
        let mut bench = Bench::new();
        bench.profile.curves.throughput.iter_mut().filter(|curve| curve.request_bytes == READ_AHEAD).for_each(
            |curve| {
                curve.points.iter_mut().for_each(|point| (point.iops, point.low, point.high) = (100.0, 99.0, 101.0));
            },
        );
        assert_eq!(changed(judge(&bench.facts(), bench.setting("random_page_cost"))).value, "1");
    }
}
