//! `innodb_io_capacity` and `innodb_io_capacity_max`: pages that InnoDB writes back per second in the background.
//!
//! ```text
//!   innodb_io_capacity_max   the drive's random writes per second in the steady state
//!   innodb_io_capacity       half of it
//! ```
//!
//! In the steady state, garbage collection always runs: saturated writes ÷ the cost of garbage collection. A page
//! counts as one write. Half leaves the other half to queries; the maximum is for times when they would have to wait
//! otherwise. If the profile has only writes smaller than a page, their bytes count, not their number. Both values are
//! rounded to two digits, their precision.
//!
//! On a volume with limits, the rate is what it grants in the long run, whatever its burst is, unless the drive behind
//! is slower. Where reads and writes share the budget, writes get a quarter of it, and up to half.
//!
//! Source: MariaDB documentation, "InnoDB Page Flushing": "the I/O capacity of the storage"; 100 at least.

use flashwise_block::Operation;

use super::super::settings::Variable;
use super::{Facts, Ruling, random_writes};
use crate::servers::figures::{Measure, why_not};
use crate::servers::granted::{WRITE_SHARE, granted};
use crate::servers::{Change, EvidenceFigure};

const LEAST: f64 = 100.0;

pub(super) fn most(facts: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    share(facts, now, 1.0, "all")
}

pub(super) fn usual(facts: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    share(facts, now, 0.5, "half")
}

fn share(facts: &Facts<'_>, now: &Variable, share: f64, words: &str) -> Result<Ruling, String> {
    let page = facts.variables.number("innodb_page_size")?;
    let (sustained, reason, evidence) =
        match (granted(facts.profile, Operation::Write, page as u64)?, of_drive(facts, page)) {
            (Some(volume), drive) if drive.as_ref().map_or(true, |(rate, _)| volume.rate.value <= rate.value) => {
                let (share, words) = match volume.is_shared {
                    true => (share * 2.0 * WRITE_SHARE, if share < 1.0 { "a quarter" } else { "half" }),
                    false => (share, words),
                };
                let budget = if volume.is_shared { " and reads share" } else { "" };
                let reason = reason(words, volume.rate, &format!("the volume grants in the long run{budget}"));
                (volume.rate.times(share), reason, vec![volume.evidence])
            }
            (_, drive) => {
                let (rate, evidence) = drive?;
                (rate.times(share), reason(words, rate, "the drive sustains during garbage collection"), evidence)
            }
        };
    let present: f64 = now.value.parse().map_err(|_| format!("{} is not a number", now.value))?;
    let value = two_digits(sustained.value.max(LEAST));
    if sustained.contains(present) || present == value {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(format!("{value:.0}"), reason, evidence)))
}

fn reason(words: &str, rate: Measure, whose: &str) -> String {
    let Measure { value, low, high } = rate;
    format!("{words} of the {value:.0} random page writes per second ({low:.0} to {high:.0}) that {whose}")
}

/// The drive's random page writes in the steady state.
fn of_drive(facts: &Facts<'_>, page: f64) -> Result<(Measure, Vec<EvidenceFigure>), String> {
    let (bytes, fresh) = random_writes(facts)?;
    let figure = &facts.profile.parameters.collection_cost;
    let cost = figure.known().ok_or_else(|| {
        format!(
            "{}; `flashwise learn` measures it on a drive that it may fill",
            why_not(figure, "cost of garbage collection")
        )
    })?;
    let cost = Measure { value: cost, low: figure.low.unwrap_or(cost), high: figure.high.unwrap_or(cost) };
    let evidence = vec![
        fresh.evidence(format!("saturated writes of {bytes} bytes"), "1/s"),
        cost.evidence("collection_cost", "times"),
    ];
    Ok((fresh.times(bytes as f64 / page).over(cost), evidence))
}

fn two_digits(value: f64) -> f64 {
    let unit = 10_f64.powi(value.log10().floor() as i32 - 1);
    (value / unit).floor() * unit
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn half_and_all_of_the_steady_state_are_proposed_with_two_digits() {
        let bench = Bench::new();
        // 50,000 writes of 16 KiB, two and a half times slower while garbage is collected.
        assert_eq!(changed(bench.judge(most, "innodb_io_capacity_max")).value, "20000");
        let half = changed(bench.judge(usual, "innodb_io_capacity"));
        assert_eq!((half.value.as_str(), half.evidence.len()), ("10000", 2));
        assert!(half.reason.contains("half of the 20000 random page writes"), "{}", half.reason);
    }

    #[test]
    fn smaller_writes_count_by_their_bytes() {
        let mut bench = Bench::new();
        bench.profile.curves.throughput.iter_mut().for_each(|curve| curve.request_bytes = 8192);
        assert_eq!(changed(bench.judge(most, "innodb_io_capacity_max")).value, "10000");
    }

    #[test]
    fn what_is_within_the_interval_is_kept() {
        let mut bench = Bench::new();
        bench.set("innodb_io_capacity_max", "19900");
        fits(bench.judge(most, "innodb_io_capacity_max"));
    }

    #[test]
    fn a_volume_counts_with_what_it_grants_in_the_long_run() {
        let mut bench = Bench::new();
        bench.profile.limits.write_iops_limit = Figure::certain(3_000, 2_990, 3_010);
        assert_eq!(changed(bench.judge(most, "innodb_io_capacity_max")).value, "3000");
        let half = changed(bench.judge(usual, "innodb_io_capacity"));
        assert_eq!((half.value.as_str(), half.evidence[0].figure.as_str()), ("1500", "write_iops_limit"));
        // Without a drive that may be filled, as in a cloud.
        bench.profile.parameters.collection_cost = Figure::unknown();
        assert_eq!(changed(bench.judge(usual, "innodb_io_capacity")).value, "1500");
        // A budget that reads share.
        bench.profile.limits.shared_iops_limit = Figure::certain(4_000, 4_000, 4_000);
        bench.profile.limits.shared_write_cost = Figure::certain(2.0, 2.0, 2.0);
        assert_eq!(changed(bench.judge(most, "innodb_io_capacity_max")).value, "1000");
        assert_eq!(changed(bench.judge(usual, "innodb_io_capacity")).value, "500");
    }

    #[test]
    fn a_burst_is_never_the_capacity() {
        let mut bench = Bench::new();
        bench.profile.limits.write_iops_limit = Figure::inconclusive(3_000, 0, 3_000);
        assert!(untold(bench.judge(most, "innodb_io_capacity_max")).contains("may be a burst"));
    }

    #[test]
    fn without_the_cost_of_collection_nothing_is_told() {
        let mut bench = Bench::new();
        bench.profile.parameters.collection_cost = Figure::unknown();
        assert!(untold(bench.judge(usual, "innodb_io_capacity")).contains("no cost of garbage collection"));
    }

    #[test]
    fn slow_drives_get_what_the_server_takes_at_least() {
        let mut bench = Bench::new();
        bench.writes(100.0);
        assert_eq!(changed(bench.judge(usual, "innodb_io_capacity")).value, "100");
        assert_eq!([two_digits(20_480.0), two_digits(199.0), two_digits(100.0)], [20_000.0, 190.0, 100.0]);
    }
}
