//! `io_combine_limit` (from 17 on) and `io_max_combine_limit` (from 18 on): the longest read of neighbouring pages.
//!
//! ```text
//!   bytes a second = reads of that length a second, with effective_io_concurrency of them in flight · length
//! ```
//!
//! A longer read is proposed where the profile shows more bytes a second with it: 128 KiB beside 8 KiB. Nothing is
//! proposed beyond what was measured.
//!
//! Source: PostgreSQL documentation, "Asynchronous Behavior": at most 256 KiB in 17, 1 MiB from 18 on, and never more
//! than `io_max_combine_limit`.

use flashwise_block::{ByteSize, Operation};

use super::super::settings::{PAGE, Setting};
use super::io_workers::Workers;
use super::{Change, Facts, Ruling};
use crate::servers::WORTH_IT;
use crate::servers::figures::{Measure, iops};

/// The longest read that is measured for every profile.
const MEASURED: u64 = 128 << 10;

pub(super) fn judge(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let length = bytes_of(now)?;
    let ahead = facts.settings.number("effective_io_concurrency").unwrap_or(1.0);
    let depth = Workers::of(facts.settings).map_or(ahead, |workers| ahead.min(workers.now)).max(1.0);
    let rate = |bytes: u64| {
        let rate = iops(facts.profile, Operation::Read, bytes, depth).map(|rate| rate.times(bytes as f64 / 1e6));
        rate.ok_or_else(|| format!("the profile has no reads of {} with {depth} in flight", ByteSize(bytes)))
    };
    let long = rate(MEASURED)?;
    if length >= MEASURED {
        return Ok(Ruling::Fits(format!(
            "reads of 128 KiB, {depth} in flight, bring {:.0} MB/s of the drive",
            long.value
        )));
    }
    let short: Measure = rate(PAGE)?;
    let ratio = long.over(short);
    let reason = format!(
        "with {depth} in flight the drive reads {:.0} MB/s in reads of 8 KiB and {:.0} MB/s in reads of 128 KiB",
        short.value, long.value
    );
    if ratio.low < WORTH_IT {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(
        (MEASURED / PAGE).to_string(),
        reason,
        vec![long.evidence("reads of 128 KiB", "MB/s"), short.evidence("reads of 8 KiB", "MB/s")],
    )))
}

/// For the limit of the limit.
pub(super) fn most(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let limited = facts.settings.get("io_combine_limit").ok_or("this server has no io_combine_limit")?;
    match bytes_of(now)? >= bytes_of(limited)? {
        true => Ok(Ruling::Fits(format!("it does not shorten io_combine_limit = {}", limited.shown()))),
        false => Ok(Ruling::Change(Change::unmeasured(
            limited.value.clone(),
            format!("io_combine_limit = {} is cut to {}", limited.shown(), now.shown()),
            Vec::new(),
        ))),
    }
}

fn bytes_of(setting: &Setting) -> Result<u64, String> {
    setting.value.parse::<u64>().map(|pages| pages * PAGE).map_err(|_| format!("{} is not a number", setting.value))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn longer_reads_are_proposed_where_the_drive_reads_more_with_them() {
        let mut bench = Bench::of(17);
        let judged = |bench: &Bench| judge(&bench.facts(), bench.setting("io_combine_limit"));
        assert!(fits(judged(&bench)).contains("590 MB/s"));
        bench.set("io_combine_limit", "1");
        let change = changed(judged(&bench));
        assert_eq!(change.value, "16");
        assert!(change.reason.contains("98 MB/s in reads of 8 KiB and 590 MB/s"), "{}", change.reason);
        bench.profile.curves.throughput.retain(|curve| curve.request_bytes == 8192);
        assert!(untold(judged(&bench)).contains("no reads of 128 KiB"));
    }

    #[test]
    fn a_limit_below_the_other_one_is_raised() {
        let mut bench = Bench::of(18);
        let judged = |bench: &Bench| most(&bench.facts(), bench.setting("io_max_combine_limit"));
        assert!(fits(judged(&bench)).contains("128kB"));
        bench.set("io_max_combine_limit", "4");
        let change = changed(judged(&bench));
        assert_eq!((change.value.as_str(), change.reason.contains("cut to 32kB")), ("16", true));
    }
}
