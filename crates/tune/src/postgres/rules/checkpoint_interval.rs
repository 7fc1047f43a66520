//! `checkpoint_timeout` and `max_wal_size`: how often all changed pages are written to a volume with a limit of writes.
//!
//! ```text
//!   rate       pages of a checkpoint ÷ (interval × checkpoint_completion_target)
//!   allowed    a quarter of a budget that reads share, half of one that they do not
//!   interval   shared_buffers ÷ (allowed × checkpoint_completion_target), where the rate is above what is allowed
//!   log        bytes of the log in that interval × (1 + checkpoint_completion_target)
//! ```
//!
//! A page that changes all the time is written once per checkpoint, and once more to the log after it
//! (`full_page_writes`). A checkpoint writes no more than all of `shared_buffers`, so beyond this interval it stays
//! below what is allowed whatever the work is, and no page is written more often than before. The price is paid after a
//! crash, when the log of one interval is read again: the interval is as long as the volume reads that log in five
//! minutes, at most.
//!
//! Source: PostgreSQL documentation, "WAL Configuration": a checkpoint starts every `checkpoint_timeout`, or before the
//! log exceeds `max_wal_size`, whichever comes first; "if full_page_writes is set … there is another factor to
//! consider"; "the amount of WAL generated per checkpoint cycle" is that share of `max_wal_size` because the log of the
//! checkpoint before is kept until the next one is done.

use flashwise_block::Operation;

use super::super::settings::{PAGE, Setting};
use super::{Change, Facts, Ruling};
use crate::servers::figures::counted;
use crate::servers::granted::{Granted, WRITE_SHARE, granted};

/// What checkpoints take of a budget of writes alone at most, as MariaDB's `innodb_io_capacity` does: the other half is
/// for commits and for pages that are evicted.
const SHARE_ALONE: f64 = 0.5;
/// Of fewer checkpoints, one by hand or at a start decides the mean.
const CHECKPOINTS_LEAST: u64 = 5;
/// Time to read the log again after a crash, s, at most: the default of `checkpoint_timeout`.
const RECOVERY_S: f64 = 300.0;
/// The longest interval where that time is unknown, s: what a crash costs grows with it.
const LONGEST_S: f64 = 1800.0;
/// Bytes of the reads of a recovery: the kernel reads ahead of the log, which is read in order.
const LOG_READ: u64 = 128 << 10;
/// Unit of `max_wal_size`.
const MIB: f64 = 1_048_576.0;

pub(super) fn timeout(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let checkpoints = Checkpoints::of(facts)?;
    let Some(wanted) = checkpoints.wanted() else { return Ok(Ruling::Fits(checkpoints.reason())) };
    let (minutes, present) = ((wanted / 60.0).ceil() * 60.0, number(now)?);
    if minutes <= present {
        return Ok(Ruling::Fits(checkpoints.reason()));
    }
    let gain = format!(
        "unknown; at most {:.0} page writes per second less, where the same pages change all the time; after a crash \
         up to {:.1} times as much of the log is read again",
        checkpoints.per_second() * (1.0 - checkpoints.interval_s / minutes),
        minutes / checkpoints.interval_s
    );
    Ok(checkpoints.change(format!("{minutes:.0}"), checkpoints.reason(), gain))
}

pub(super) fn log(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let checkpoints = Checkpoints::of(facts)?;
    let Some(wanted) = checkpoints.wanted() else { return Ok(Ruling::Fits(checkpoints.reason())) };
    let written = checkpoints.log_per_s.ok_or("the server counts the bytes of its log from version 14 on")?;
    let minutes = (wanted / 60.0).ceil() * 60.0;
    let bytes = written * minutes * (1.0 + checkpoints.target);
    let (wanted, present) = ((bytes / MIB).ceil(), number(now)?);
    let reason = format!(
        "{}; a log of {:.1} MiB/s for {:.0} minutes, and for the part of them that the checkpoint before takes, is \
         {wanted:.0} MiB",
        checkpoints.reason(),
        written / MIB,
        minutes / 60.0
    );
    if wanted <= present {
        return Ok(Ruling::Fits(reason));
    }
    let gain = format!(
        "unknown; without it checkpoint_timeout has no effect, for the log starts checkpoints before; the log takes up \
         to {:.0} MiB more of the disk",
        wanted - present
    );
    Ok(checkpoints.change(format!("{wanted:.0}"), reason, gain))
}

/// How often a server writes its pages, and what the volume grants.
struct Checkpoints {
    granted: Granted,
    /// Pages of one, in the mean.
    pages: f64,
    interval_s: f64,
    target: f64,
    /// Pages of `shared_buffers`.
    buffers: f64,
    /// Bytes of the log; `None` where the server does not count them.
    log_per_s: Option<f64>,
    /// Bytes that the volume reads in the long run, where that is known.
    read_per_s: Option<f64>,
    count: u64,
    requested: u64,
}

impl Checkpoints {
    fn of(facts: &Facts<'_>) -> Result<Self, String> {
        let granted =
            granted(facts.profile, Operation::Write, PAGE)?.ok_or("the profile has no limit of a volume's writes")?;
        let activity = facts.activity.ok_or("without a server, what its checkpoints write is unknown")?;
        let (timed, requested) = (activity.checkpoints.timed, activity.checkpoints.requested);
        let count = timed + requested;
        let seconds = activity.checkpoints.seconds.filter(|&seconds| seconds > 0.0);
        let seconds = seconds.filter(|_| count >= CHECKPOINTS_LEAST).ok_or_else(|| {
            format!("the server has counted {count} checkpoints, and {CHECKPOINTS_LEAST} are needed for a mean")
        })?;
        let setting = |name: &str| facts.settings.number(name).ok_or_else(|| format!("the server reports no {name}"));
        Ok(Self {
            granted,
            pages: activity.checkpoints.pages as f64 / count as f64,
            // The time in which the server was down is in it.
            interval_s: (seconds / count as f64).min(setting("checkpoint_timeout")?),
            target: setting("checkpoint_completion_target")?.max(f64::MIN_POSITIVE),
            buffers: setting("shared_buffers")?,
            log_per_s: activity.log_per_s,
            read_per_s: granted_reads(facts),
            count,
            requested,
        })
    }

    /// Pages a second in the mean.
    fn per_second(&self) -> f64 {
        self.pages / self.interval_s
    }

    /// Pages a second while a checkpoint is written.
    fn rate(&self) -> f64 {
        self.per_second() / self.target
    }

    fn allowed(&self) -> f64 {
        self.granted.rate.low * if self.granted.is_shared { WRITE_SHARE } else { SHARE_ALONE }
    }

    /// The interval at which no checkpoint takes more than is allowed, s; `None` where none does.
    fn wanted(&self) -> Option<f64> {
        if self.rate() <= self.allowed() {
            return None;
        }
        let longest = match (self.log_per_s, self.read_per_s) {
            (Some(written), Some(read)) if written > 0.0 => RECOVERY_S * read / written,
            _ => LONGEST_S,
        };
        let wanted = (self.buffers / (self.allowed() * self.target)).min(longest);
        (wanted > self.interval_s).then_some(wanted)
    }

    fn reason(&self) -> String {
        format!(
            "{} checkpoints, {} of them because the log was full, wrote {:.0} pages each in {:.0} % of {:.0} s: {:.0} \
             per second, of which the volume grants {:.0} in the long run, and {:.0} leave {} their part",
            self.count,
            self.requested,
            self.pages,
            self.target * 100.0,
            self.interval_s,
            self.rate(),
            self.granted.rate.value,
            self.allowed(),
            if self.granted.is_shared { "reads" } else { "commits" }
        )
    }

    fn change(&self, value: String, reason: String, expected_gain: String) -> Ruling {
        let evidence = vec![
            self.granted.evidence.clone(),
            counted("pages of a checkpoint", self.pages, "pages"),
            counted("time between checkpoints", self.interval_s, "s"),
        ];
        Ruling::Change(Change { value, reason, evidence, expected: None, expected_gain })
    }
}

/// Bytes of the log that a recovery reads a second; `None` where the profile has no certain limit of reads.
fn granted_reads(facts: &Facts<'_>) -> Option<f64> {
    let reads = granted(facts.profile, Operation::Read, LOG_READ).ok()??;
    Some(reads.rate.low * LOG_READ as f64)
}

fn number(now: &Setting) -> Result<f64, String> {
    now.value.parse().map_err(|_| format!("{} is not a number", now.value))
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::super::super::server::{Activity, CheckpointCounters};
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    /// A server that wrote pages in as many checkpoints of five minutes, on a volume of 3,000 writes and reads.
    fn busy(pages: u64, checkpoints: u64) -> (Bench, Activity) {
        let mut bench = Bench::new();
        bench.profile.limits.shared_iops_limit = Figure::certain(3000, 3000, 3000);
        bench.profile.limits.shared_write_cost = Figure::certain(1.0, 1.0, 1.0);
        bench.set("shared_buffers", "1048576");
        let seconds = Some(300.0 * checkpoints as f64);
        let checkpoints = CheckpointCounters { timed: checkpoints, requested: 0, pages: pages * checkpoints, seconds };
        let activity = Activity { checkpoints, log_per_s: Some(2.0 * MIB), ..Activity::default() };
        (bench, activity)
    }

    #[test]
    fn checkpoints_that_take_more_than_their_part_of_a_shared_budget_come_less_often() {
        // 270,000 pages in 0.9 × 300 s are 1,000 a second, and a quarter of 3,000 is 750; all of 8 GiB takes 1,554 s.
        let (bench, activity) = busy(270_000, 10);
        let facts = Facts { activity: Some(&activity), ..bench.facts() };
        let change = changed(timeout(&facts, bench.setting("checkpoint_timeout")));
        assert_eq!((change.value.as_str(), change.evidence[0].figure.as_str()), ("1560", "shared_iops_limit"));
        assert!(change.expected_gain.contains("at most 727 page writes"), "{}", change.expected_gain);
        // 26 minutes of 2 MiB/s, and nine tenths of them again.
        let change = changed(log(&facts, bench.setting("max_wal_size")));
        assert_eq!(change.value, "5928");
        assert!(change.expected_gain.contains("4904 MiB more of the disk"), "{}", change.expected_gain);
    }

    #[test]
    fn checkpoints_below_their_part_stay_as_they_are() {
        let (mut bench, activity) = busy(200_000, 10);
        let facts = Facts { activity: Some(&activity), ..bench.facts() };
        assert!(fits(timeout(&facts, bench.setting("checkpoint_timeout"))).contains("741 per second"));
        assert!(fits(log(&facts, bench.setting("max_wal_size"))).contains("741 per second"));
        // The same pages, where writes have a budget of their own.
        let (_, activity) = busy(270_000, 10);
        bench.profile.limits = Default::default();
        bench.profile.limits.write_iops_limit = Figure::certain(3000, 3000, 3000);
        let facts = Facts { activity: Some(&activity), ..bench.facts() };
        assert!(fits(timeout(&facts, bench.setting("checkpoint_timeout"))).contains("1500 leave commits"));
    }

    #[test]
    fn the_log_of_an_interval_is_read_again_in_five_minutes_at_most() {
        let (bench, mut activity) = busy(270_000, 10);
        // 128 KiB × 3,000 are 375 MiB/s: in five minutes 112,500 MiB, which 200 MiB/s write in 562 s.
        activity.log_per_s = Some(200.0 * MIB);
        let facts = Facts { activity: Some(&activity), ..bench.facts() };
        assert_eq!(changed(timeout(&facts, bench.setting("checkpoint_timeout"))).value, "600");
        activity.log_per_s = None;
        let facts = Facts { activity: Some(&activity), ..bench.facts() };
        assert_eq!(changed(timeout(&facts, bench.setting("checkpoint_timeout"))).value, "1560");
        assert!(untold(log(&facts, bench.setting("max_wal_size"))).contains("from version 14 on"));
    }

    #[test]
    fn a_longer_interval_than_is_needed_is_kept() {
        let (mut bench, activity) = busy(270_000, 10);
        bench.set("checkpoint_timeout", "3600");
        bench.set("max_wal_size", "65536");
        let facts = Facts { activity: Some(&activity), ..bench.facts() };
        assert!(fits(timeout(&facts, bench.setting("checkpoint_timeout"))).contains("1000 per second"));
        assert!(fits(log(&facts, bench.setting("max_wal_size"))).contains("1000 per second"));
    }

    #[test]
    fn without_counters_or_limits_nothing_is_decided() {
        let (bench, _) = busy(270_000, 10);
        let name = "checkpoint_timeout";
        assert!(untold(timeout(&bench.facts(), bench.setting(name))).contains("without a server"));
        let (_, few) = busy(270_000, 4);
        let facts = Facts { activity: Some(&few), ..bench.facts() };
        assert!(untold(timeout(&facts, bench.setting(name))).contains("4 checkpoints"));
        let drive = Bench::new();
        let facts = Facts { activity: Some(&few), ..drive.facts() };
        assert!(untold(timeout(&facts, drive.setting(name))).contains("no limit"));
    }
}
