//! `innodb_page_size`: at least as large as a flash page.
//!
//! ```text
//!   innodb_page_size = the flash page if that is larger, 64 KiB at most
//! ```
//!
//! A page that is a part of a flash page is read with all of it. Larger pages cost more per row, so the size is
//! increased only if needed. The size is chosen when an instance is initialised and cannot be changed.
//!
//! Source: MariaDB documentation, "InnoDB System Variables": 4k, 8k, 16k, 32k or 64k; "this cannot be changed after the
//! instance was initialised".

use super::super::settings::Variable;
use super::{Facts, Ruling};
use crate::servers::Change;
use crate::servers::figures::certain;

const LARGEST: u64 = 65_536;

pub(super) fn judge(facts: &Facts<'_>, _: &Variable) -> Result<Ruling, String> {
    let page = facts.variables.number("innodb_page_size")? as u64;
    let figure = &facts.profile.parameters.page_bytes;
    if figure.verdict == flashwise_profile::Verdict::Absent {
        return Ok(Ruling::Fits("the drive reads no more than the requested bytes, with any page size".to_owned()));
    }
    let flash = certain(figure, "flash page")?;
    let wanted = (flash.value as u64).next_power_of_two().min(LARGEST);
    let reason =
        format!("the drive reads whole flash pages of {} bytes ({} to {})", flash.value, flash.low, flash.high);
    if wanted <= page {
        return Ok(Ruling::Fits(format!("{reason}, and a database page is at least one")));
    }
    Ok(Ruling::Change(Change {
        value: wanted.to_string(),
        reason: format!("{reason}, and a database page is only a part of one"),
        evidence: vec![flash.evidence("page_bytes", "bytes")],
        expected: None,
        expected_gain: "unknown; compare instances with each page size".to_owned(),
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
        assert!(fits(bench.judge(judge, "innodb_page_size")).contains("no more than the requested bytes"));
        bench.profile.parameters.page_bytes = Figure::unknown();
        assert!(untold(bench.judge(judge, "innodb_page_size")).contains("no flash page"));
    }
}
