//! `innodb_flush_neighbors`: whether dirty neighbours of a written page are written with it.
//!
//! ```text
//!   0 if the drive's random writes are faster than any hard disk's
//! ```
//!
//! Neighbours save seeks. Without seeks, they are pages written too early, some of them again later: more wear for no
//! gain. The throughput of random writes shows whether there are seeks.
//!
//! Source: MariaDB documentation, "InnoDB Page Flushing": 0 for SSD. Servers from 10.6 on use what Linux reports of the
//! drive, if it does (MDEV-17380).

use super::super::settings::Variable;
use super::{Facts, Ruling, random_writes};
use crate::servers::Change;

/// Random writes a second of the fastest disk with an arm: 15,000 revolutions a minute, a head that has not far to go,
/// and a queue that is sorted.
const FASTEST_ARM: f64 = 1_000.0;

pub(super) fn judge(facts: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    let (bytes, writes) = random_writes(facts)?;
    let reason = format!(
        "{:.0} random writes of {bytes} bytes per second ({:.0} to {:.0}): the drive has no seeks that flushing \
         neighbours would save",
        writes.value, writes.low, writes.high
    );
    match (writes.low > FASTEST_ARM, now.value.as_str()) {
        (true, "0") => Ok(Ruling::Fits(reason)),
        (true, _) => Ok(Ruling::Change(Change {
            value: "0".to_owned(),
            reason,
            evidence: vec![writes.evidence(format!("saturated writes of {bytes} bytes"), "1/s")],
            expected: None,
            expected_gain: "fewer pages written; how many depends on the workload".to_owned(),
        })),
        (false, _) if writes.high <= FASTEST_ARM => Ok(Ruling::Fits(format!(
            "{:.0} random writes of {bytes} bytes per second: on such a drive, flushing neighbours may save time",
            writes.value
        ))),
        (false, _) => Err("random writes are about as slow as on a hard disk".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn neighbours_are_left_alone_on_a_drive_without_seeks() {
        let mut bench = Bench::new();
        let change = changed(bench.judge(judge, "innodb_flush_neighbors"));
        assert_eq!((change.value.as_str(), change.evidence[0].value), ("0", 50_000.0));
        bench.set("innodb_flush_neighbors", "0");
        fits(bench.judge(judge, "innodb_flush_neighbors"));
    }

    #[test]
    fn a_slow_drive_keeps_them_and_one_in_between_does_not_tell() {
        let mut bench = Bench::new();
        bench.writes(150.0);
        assert!(fits(bench.judge(judge, "innodb_flush_neighbors")).contains("150 random writes"));
        bench.writes(1_000.0);
        untold(bench.judge(judge, "innodb_flush_neighbors"));
    }
}
