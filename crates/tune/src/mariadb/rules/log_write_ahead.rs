//! `innodb_log_write_ahead_size`: the length to which a write of the redo log is padded.
//!
//! ```text
//!   innodb_log_write_ahead_size = the flash page, from 512 bytes to 16 KiB
//! ```
//!
//! A write that ends within a flash page makes the drive, or the page cache, read the rest first. A padded write does
//! not. A drive that reads no more than the requested bytes needs no padding.
//!
//! Source: MariaDB documentation, "InnoDB System Variables".

use super::super::settings::Variable;
use super::{Facts, Ruling};
use crate::servers::Change;
use crate::servers::figures::certain;

const POSSIBLE: std::ops::RangeInclusive<f64> = 512.0..=16_384.0;

pub(super) fn judge(facts: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    let present: f64 = now.value.parse().map_err(|_| format!("{} is not a number", now.value))?;
    let figure = &facts.profile.parameters.page_bytes;
    if figure.verdict == flashwise_profile::Verdict::Absent {
        return Ok(Ruling::Fits(
            "the drive reads no more than the requested bytes, so log writes need no padding".to_owned(),
        ));
    }
    let page = certain(figure, "flash page")?;
    let reason = format!("the drive reads whole flash pages of {} bytes ({} to {})", page.value, page.low, page.high);
    let is_possible = POSSIBLE.contains(&page.value) && (page.value as u64).is_power_of_two();
    match (is_possible, present >= page.value) {
        (false, _) => Err(format!("{reason}, a size that the server does not accept")),
        (true, true) => Ok(Ruling::Fits(format!("{reason}, and no log write ends within one"))),
        (true, false) => Ok(Ruling::Change(Change::unmeasured(
            page.value.to_string(),
            format!("{reason}; a log write that ends within one makes the drive read the rest first"),
            vec![page.evidence("page_bytes", "bytes")],
        ))),
    }
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn the_log_is_filled_up_to_what_the_drive_reads_as_one() {
        let mut bench = Bench::new();
        assert_eq!(changed(bench.judge(judge, "innodb_log_write_ahead_size")).value, "4096");
        bench.set("innodb_log_write_ahead_size", "4096");
        fits(bench.judge(judge, "innodb_log_write_ahead_size"));
    }

    #[test]
    fn lengths_that_the_server_does_not_take_are_not_proposed() {
        let mut bench = Bench::new();
        for bytes in [32_768, 3_072] {
            bench.profile.parameters.page_bytes = Figure::certain(bytes, bytes, bytes);
            assert!(untold(bench.judge(judge, "innodb_log_write_ahead_size")).contains("does not accept"), "{bytes}");
        }
        bench.profile.parameters.page_bytes = Figure::absent();
        fits(bench.judge(judge, "innodb_log_write_ahead_size"));
    }
}
