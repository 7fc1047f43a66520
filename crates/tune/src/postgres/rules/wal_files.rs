//! `wal_init_zero` and `wal_recycle`: whether a new file of the log is filled with zeros, and an old one recycled.
//!
//! Both reserve space in place. On a drive that compresses, zeros take no flash, so writing them reserves nothing; and
//! an old file keeps 16 MiB of old data on flash until it is overwritten, while a deleted one can be trimmed.
//!
//! Source: PostgreSQL documentation, "Write Ahead Log": both can be disabled for copy-on-write file systems; the
//! argument for compressing drives is ours, from the behaviour of such a drive.

use flashwise_profile::Verdict;

use super::super::settings::Setting;
use super::{Change, Facts, Ruling};
use crate::servers::figures::{Measure, why_not};

pub(super) fn zeros(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    off_where_compressed(facts, now, "zeros take no flash on it, so writing them reserves no space")
}

pub(super) fn recycled(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    off_where_compressed(facts, now, "a recycled file keeps its old data on flash; a deleted one can be trimmed")
}

fn off_where_compressed(facts: &Facts<'_>, now: &Setting, why: &str) -> Result<Ruling, String> {
    let figure = &facts.profile.parameters.compression_gain;
    if now.value == "off" {
        return Ok(Ruling::Fits("it is off".to_owned()));
    }
    if figure.verdict == Verdict::Absent {
        return Ok(Ruling::Fits("the drive does not compress".to_owned()));
    }
    let Some(value) = figure.known() else { return Err(why_not(figure, "gain by compression")) };
    let gain = Measure { value, low: figure.low.unwrap_or(value), high: figure.high.unwrap_or(value) };
    Ok(Ruling::Change(Change::unmeasured(
        "off".to_owned(),
        format!(
            "the drive compresses (zeros are written {:.2} times as fast, {:.2} to {:.2}); {why}",
            gain.value, gain.low, gain.high
        ),
        vec![gain.evidence("compression_gain", "ratio")],
    )))
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn only_a_drive_that_compresses_for_certain_has_them_off() {
        let mut bench = Bench::new();
        for (name, judge) in [("wal_init_zero", zeros as fn(&Facts<'_>, &Setting) -> _), ("wal_recycle", recycled)] {
            bench.profile.parameters.compression_gain = Figure::absent();
            assert!(fits(judge(&bench.facts(), bench.setting(name))).contains("does not compress"));
            bench.profile.parameters.compression_gain = Figure::unknown();
            assert!(untold(judge(&bench.facts(), bench.setting(name))).contains("no gain by compression"));
            bench.profile.parameters.compression_gain = Figure::certain(3.0, 2.9, 3.1);
            assert_eq!(changed(judge(&bench.facts(), bench.setting(name))).value, "off");
            bench.set(name, "off");
            assert!(fits(judge(&bench.facts(), bench.setting(name))).contains("off"));
        }
    }
}
