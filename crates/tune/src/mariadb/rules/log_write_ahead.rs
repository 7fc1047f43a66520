//! `innodb_log_write_ahead_size`: to which length a write of the redo log is filled up.
//!
//! ```text
//!   innodb_log_write_ahead_size = the flash page, from 512 bytes to 16 KiB
//! ```
//!
//! A write that ends within what the drive reads as one makes it, or the page cache, read the rest before. Filled up,
//! it does not. A drive that reads no more than it is asked for needs nothing of it.
//!
//! Source: MariaDB documentation, "InnoDB System Variables".

use super::super::settings::Variable;
use super::{Facts, Ruling};
use crate::servers::figures::certain;
use crate::servers::{Change, UNKNOWN};

const POSSIBLE: std::ops::RangeInclusive<f64> = 512.0..=16_384.0;

pub(super) fn judge(facts: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    let present: f64 = now.value.parse().map_err(|_| format!("{} is no number", now.value))?;
    let figure = &facts.profile.parameters.page_bytes;
    if figure.verdict == flashwise_profile::Verdict::Absent {
        return Ok(Ruling::Fits(
            "the drive reads no more than it is asked for, so that nothing is to be filled up".to_owned(),
        ));
    }
    let page = certain(figure, "flash page")?;
    let reason = format!("a read of the drive cannot split {} bytes ({} to {})", page.value, page.low, page.high);
    let is_possible = POSSIBLE.contains(&page.value) && (page.value as u64).is_power_of_two();
    match (is_possible, present >= page.value) {
        (false, _) => Err(format!("{reason}, which is no length that the server takes")),
        (true, true) => Ok(Ruling::Fits(format!("{reason}, and no write of the log ends within them"))),
        (true, false) => Ok(Ruling::Change(Change {
            value: page.value.to_string(),
            reason: format!("{reason}; a write of the log that ends within them makes it read the rest before"),
            evidence: vec![page.evidence("page_bytes", "bytes")],
            expected: None,
            expected_gain: UNKNOWN.to_owned(),
        })),
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
            assert!(untold(bench.judge(judge, "innodb_log_write_ahead_size")).contains("no length"), "{bytes}");
        }
        bench.profile.parameters.page_bytes = Figure::absent();
        fits(bench.judge(judge, "innodb_log_write_ahead_size"));
    }
}
