//! `innodb_page_size`: no smaller than what a read of the drive cannot split.
//!
//! ```text
//!   innodb_page_size = the flash page where that is larger, 64 KiB at most
//! ```
//!
//! A page that is part of a flash page is read with all of it. Larger ones than that cost more for a row, so nothing is
//! made larger without need. The size is chosen when an instance is initialised and never again.
//!
//! Source: MariaDB documentation, "InnoDB System Variables": 4k, 8k, 16k, 32k or 64k; "this cannot be changed after the
//! instance was initialised".

use super::super::settings::Variable;
use super::{Facts, Ruling};
use crate::servers::figures::certain;
use crate::servers::{Change, UNKNOWN};

const LARGEST: u64 = 65_536;

pub(super) fn judge(facts: &Facts<'_>, _: &Variable) -> Result<Ruling, String> {
    let page = facts.variables.number("innodb_page_size")? as u64;
    let figure = &facts.profile.parameters.page_bytes;
    if figure.verdict == flashwise_profile::Verdict::Absent {
        return Ok(Ruling::Fits("the drive reads no more than it is asked for, whatever the page".to_owned()));
    }
    let flash = certain(figure, "flash page")?;
    let wanted = (flash.value as u64).next_power_of_two().min(LARGEST);
    let reason = format!("a read of the drive cannot split {} bytes ({} to {})", flash.value, flash.low, flash.high);
    if wanted <= page {
        return Ok(Ruling::Fits(format!("{reason}, and a page is no part of that")));
    }
    Ok(Ruling::Change(Change {
        value: wanted.to_string(),
        reason: format!("{reason}, of which a page is only a part"),
        evidence: vec![flash.evidence("page_bytes", "bytes")],
        expected: None,
        expected_gain: UNKNOWN.replace("--measure tells", "an instance with each size would tell"),
    }))
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn a_page_is_no_part_of_what_the_drive_reads() {
        let mut bench = Bench::new();
        assert!(fits(bench.judge(judge, "innodb_page_size")).contains("4096 bytes (4096 to 4096)"));
        bench.profile.parameters.page_bytes = Figure::certain(32_768, 32_768, 32_768);
        assert_eq!(changed(bench.judge(judge, "innodb_page_size")).value, "32768");
        bench.profile.parameters.page_bytes = Figure::certain(262_144, 262_144, 262_144);
        assert_eq!(changed(bench.judge(judge, "innodb_page_size")).value, "65536");
    }

    #[test]
    fn a_drive_without_a_page_fits_and_a_doubtful_one_does_not_tell() {
        let mut bench = Bench::new();
        bench.profile.parameters.page_bytes = Figure::absent();
        assert!(fits(bench.judge(judge, "innodb_page_size")).contains("no more than it is asked for"));
        bench.profile.parameters.page_bytes = Figure::unknown();
        assert!(untold(bench.judge(judge, "innodb_page_size")).contains("no flash page"));
    }
}
