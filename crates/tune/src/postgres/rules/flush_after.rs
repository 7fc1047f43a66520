//! `bgwriter_flush_after`, `checkpoint_flush_after`, `backend_flush_after`: how much is written before the kernel is
//! told to start write-back.
//!
//! ```text
//!   least    k_w pages of 8 KiB, rounded up to whole stripes (write units if there is no stripe)
//!   value    max(present, least), rounded up to whole stripes, at most 2 MiB
//! ```
//!
//! Scattered pages need k_w of them at once to keep the drive busy; adjacent ones become large writes, which waste
//! nothing if they are whole stripes. A present value of 0 is kept: that of the first two was disabled on purpose. That
//! of backends is 0 by default, and no figure of a drive shows whether another one pays.
//!
//! On a volume with a limit of writes:
//!
//! ```text
//!   checkpoint_flush_after    32 pages, its default, where it is 0 and a checkpoint's pages at once would be a storm;
//!                             at least the unit that a request is charged by
//!   bgwriter_, backend_…      0 where most of their pages are written again within the time that the kernel keeps them
//! ```
//!
//! Without the first, the kernel keeps a checkpoint's pages until it is synced, and all of them then wait in the
//! volume's queue before any read: for pages ÷ limit seconds. A checkpoint writes each page once, so that a flush costs
//! no request more. The other two write a page as often as it is evicted, and each time is charged. The kernel alone
//! would write it once in the time that it keeps pages. Where more pages are evicted in that time than the databases
//! have, at least the excess is written again.
//!
//! Source: PostgreSQL documentation, "Background Writer", "Checkpoints", "Asynchronous Behavior": 0 to 2 MB, in pages.
//! Of `backend_flush_after` it says that performance can degrade if the work fits the system's page cache but not
//! `shared_buffers`. Linux documentation, `vm.dirty_expire_centisecs`: 30 s by default.

use flashwise_block::Operation;

use super::super::settings::{PAGE, Setting};
use super::{Change, Facts, Ruling};
use crate::servers::figures::{Measure, certain, counted};
use crate::servers::granted::{Granted, granted};

/// 2 MiB, in pages.
const MOST: u64 = 256;
/// `checkpoint_flush_after` by default, in pages.
const OF_CHECKPOINTS: u64 = 32;
/// A checkpoint's pages wait in a volume's queue for so long, s, where that is a storm: a second is the window in which
/// rule 17 of the audit counts reads that a checkpoint keeps waiting.
const STORM_S: f64 = 1.0;
/// How long the kernel keeps a changed page before it writes it by itself, s.
const KEPT_S: f64 = 30.0;
/// Share of pages that must be written again so that nothing is gained by writing them at once: then the kernel's own
/// writing takes at most half of the requests, even if all its pages come at once.
const AGAIN_SHARE: f64 = 0.5;

/// Whose pages are flushed, in words, and pages a second.
type Written<'a> = (&'a str, Option<f64>);

pub(super) fn of_checkpoints(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    match granted(facts.profile, Operation::Write, PAGE)? {
        Some(volume) => checkpoint_on_volume(facts, &volume, now),
        None if now.value == "0" => Ok(Ruling::Fits("it is disabled".to_owned())),
        None => proposal(facts, now),
    }
}

pub(super) fn of_background_writer(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    if now.value == "0" {
        return Ok(Ruling::Fits("it is disabled".to_owned()));
    }
    let written = facts.activity.and_then(|activity| per_second(activity.by_background_writer, activity.seconds[0]));
    evicted(facts, now, ("the background writer", written))
}

pub(super) fn of_backends(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    if now.value == "0" {
        return Err(
            "it is off by default, and a loss if the data fits the system's page cache but not shared_buffers: \
                    change it only if your own measurement shows a gain"
                .to_owned(),
        );
    }
    let written = facts.activity.and_then(|activity| per_second(activity.by_backends, activity.seconds[1]));
    evicted(facts, now, ("backends", written))
}

fn per_second(pages: u64, seconds: Option<f64>) -> Option<f64> {
    seconds.filter(|&seconds| seconds > 0.0).map(|seconds| pages as f64 / seconds)
}

/// Pages of a checkpoint on a volume with a limit.
fn checkpoint_on_volume(facts: &Facts<'_>, volume: &Granted, now: &Setting) -> Result<Ruling, String> {
    let present = pages_of(now)?;
    let unit = facts.profile.limits.request_unit_bytes.known().unwrap_or(0).div_ceil(PAGE).min(MOST);
    let wanted = present.max(unit);
    if present > 0 {
        let reason = format!("a request of up to {} KiB is charged once", unit * PAGE / 1024);
        return Ok(match wanted > present {
            true => Ruling::Change(Change::unmeasured(wanted.to_string(), reason, unit_of(facts))),
            false => Ruling::Fits("a checkpoint's pages are written as it goes, each of them once".to_owned()),
        });
    }
    let activity = facts.activity.ok_or("without a server, what its checkpoints write is unknown")?;
    let count = activity.checkpoints.timed + activity.checkpoints.requested;
    let each = activity.checkpoints.pages as f64 / count.max(1) as f64;
    let storm_s = each / volume.rate.value;
    let reason = format!(
        "{count} checkpoints wrote {each:.0} pages each; all at once they keep the volume, which grants {:.0} in the long \
         run, busy for {storm_s:.1} s",
        volume.rate.value
    );
    if storm_s < STORM_S {
        return Ok(Ruling::Fits(reason));
    }
    let evidence = vec![volume.evidence.clone(), counted("pages of a checkpoint", each, "pages")];
    Ok(Ruling::Change(Change {
        value: wanted.max(OF_CHECKPOINTS).to_string(),
        reason,
        evidence,
        expected: None,
        expected_gain: format!(
            "unknown; requests no longer wait for up to {storm_s:.1} s behind a checkpoint's pages, and none of these is \
             written more often"
        ),
    }))
}

fn unit_of(facts: &Facts<'_>) -> Vec<crate::servers::EvidenceFigure> {
    let unit = certain(&facts.profile.limits.request_unit_bytes, "request unit");
    unit.into_iter().map(|unit| unit.evidence("request_unit_bytes", "bytes")).collect()
}

/// Pages that are written when they are evicted: on a volume each time is charged.
fn evicted(facts: &Facts<'_>, now: &Setting, (who, written): Written<'_>) -> Result<Ruling, String> {
    let Some(volume) = granted(facts.profile, Operation::Write, PAGE)? else { return proposal(facts, now) };
    let written = written.ok_or_else(|| format!("without a server, how much {who} write is unknown"))?;
    let data = facts.activity.and_then(|activity| activity.data_pages);
    let data = data.ok_or("the size of a database is unknown: connect as a member of pg_read_all_stats")? as f64;
    let kept = written * KEPT_S;
    let again = 1.0 - data / kept.max(data).max(1.0);
    let reason = format!(
        "of the {kept:.0} pages that {who} write in {KEPT_S:.0} s, at least {:.0} % are written again, for the databases \
         have {data:.0}; the kernel would keep them for that time, and the volume charges each write",
        again * 100.0
    );
    if again < AGAIN_SHARE {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change {
        value: "0".to_owned(),
        reason,
        evidence: vec![
            volume.evidence,
            counted("pages written when evicted", written, "per second"),
            counted("pages of all databases", data, "pages"),
        ],
        expected: None,
        expected_gain: format!(
            "at least {:.0} page writes per second less, of {:.0} that the volume grants",
            written * again,
            volume.rate.value
        ),
    }))
}

fn pages_of(now: &Setting) -> Result<u64, String> {
    now.value.parse::<u64>().map_err(|_| format!("{} is not a number", now.value))
}

fn proposal(facts: &Facts<'_>, now: &Setting) -> Result<Ruling, String> {
    let drive = &facts.profile.parameters;
    let k = certain(&drive.write_concurrency_8k, "k_w at 8 KiB")?;
    let (key, name, unit) = match (drive.stripe_bytes.known(), drive.write_unit_bytes.known()) {
        (Some(_), _) => ("stripe_bytes", "stripe", certain(&drive.stripe_bytes, "stripe")?),
        (None, Some(_)) => ("write_unit_bytes", "write unit", certain(&drive.write_unit_bytes, "write unit")?),
        (None, None) => return Err("the profile has neither a certain stripe nor a certain write unit".to_owned()),
    };
    let present = pages_of(now)?;
    let wanted = pages(present, k.value as u64, unit.value as u64).ok_or_else(|| too_long(name, unit))?;
    let reason = format!(
        "k_w = {} ({} to {}) concurrent writes of 8 KiB keep the drive busy; writes of whole multiples of its {name}, \
         {} KiB, waste nothing",
        k.value,
        k.low,
        k.high,
        unit.value / 1024.0
    );
    if wanted == present {
        return Ok(Ruling::Fits(reason));
    }
    Ok(Ruling::Change(Change::unmeasured(
        wanted.to_string(),
        reason,
        vec![k.evidence("write_concurrency_8k", "writes in flight"), unit.evidence(key, "bytes")],
    )))
}

/// Pages to write before a flush; `None` where a unit is longer than may be set.
fn pages(present: u64, k: u64, unit_bytes: u64) -> Option<u64> {
    let step = unit_bytes.div_ceil(PAGE).max(1);
    let wanted = present.max(k).max(1).next_multiple_of(step);
    let most = MOST / step * step;
    (most > 0).then(|| wanted.min(most))
}

fn too_long(name: &str, unit: Measure) -> String {
    format!("the {name} of {} KiB is longer than the limit of the setting, 2 MiB", unit.value / 1024.0)
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Figure;

    use super::super::super::server::{Activity, CheckpointCounters};
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    #[test]
    fn it_is_whole_stripes_of_at_least_k_w_pages() {
        assert_eq!(pages(0, 1, 65536), Some(8), "one stripe holds 8 pages");
        assert_eq!(pages(0, 9, 65536), Some(16));
        assert_eq!(pages(64, 2, 65536), Some(64), "whole stripes already");
        assert_eq!(pages(32, 2, 3 * 32768), Some(36), "three times 32 KiB are 12 pages");
        assert_eq!(pages(0, 300, 8192), Some(256));
        assert_eq!(pages(0, 300, 3 * 32768), Some(252), "whole stripes below 2 MiB");
        assert_eq!(pages(5, 2, 512), Some(5), "a page is several units");
        assert_eq!(pages(0, 1, 4 << 20), None);
    }

    #[test]
    fn what_is_off_stays_off() {
        let mut bench = Bench::new();
        let name = "bgwriter_flush_after";
        assert!(fits(of_background_writer(&bench.facts(), bench.setting(name))).contains("64 KiB"));
        bench.set(name, "0");
        assert!(fits(of_background_writer(&bench.facts(), bench.setting(name))).contains("disabled"));
        bench.set("checkpoint_flush_after", "0");
        assert!(fits(of_checkpoints(&bench.facts(), bench.setting("checkpoint_flush_after"))).contains("disabled"));
        let left = untold(of_backends(&bench.facts(), bench.setting("backend_flush_after")));
        assert!(left.contains("a loss"), "{left}");
        bench.set("backend_flush_after", "3");
        let change = changed(of_backends(&bench.facts(), bench.setting("backend_flush_after")));
        assert_eq!((change.value.as_str(), change.evidence[1].figure.as_str()), ("8", "stripe_bytes"));
    }

    #[test]
    fn the_write_unit_stands_in_for_a_stripe() {
        let mut bench = Bench::new();
        bench.profile.parameters.stripe_bytes = flashwise_profile::Figure::absent();
        bench.set("backend_flush_after", "3");
        assert_eq!(changed(of_backends(&bench.facts(), bench.setting("backend_flush_after"))).value, "4");
        bench.profile.parameters.doubt("write_unit_bytes");
        assert!(untold(of_backends(&bench.facts(), bench.setting("backend_flush_after"))).contains("neither"));
    }

    /// A volume that grants 3,000 writes, and was learned with its limits alone.
    fn volume() -> Bench {
        let mut bench = Bench::new();
        bench.profile.parameters = flashwise_profile::Parameters::default();
        bench.profile.limits.write_iops_limit = Figure::certain(3000, 3000, 3000);
        bench
    }

    #[test]
    fn a_checkpoint_that_would_be_a_storm_on_a_volume_is_written_as_it_goes() {
        let mut bench = volume();
        let name = "checkpoint_flush_after";
        assert!(fits(of_checkpoints(&bench.facts(), bench.setting(name))).contains("each of them once"));
        bench.set(name, "0");
        assert!(untold(of_checkpoints(&bench.facts(), bench.setting(name))).contains("without a server"));
        let wrote = |pages: u64| {
            let checkpoints = CheckpointCounters { timed: 8, requested: 2, pages, seconds: Some(3000.0) };
            Activity { checkpoints, ..Activity::default() }
        };
        let (storm, few) = (wrote(300_000), wrote(20_000));
        let facts = Facts { activity: Some(&few), ..bench.facts() };
        assert!(fits(of_checkpoints(&facts, bench.setting(name))).contains("busy for 0.7 s"));
        let facts = Facts { activity: Some(&storm), ..bench.facts() };
        let change = changed(of_checkpoints(&facts, bench.setting(name)));
        assert_eq!((change.value.as_str(), change.evidence[0].figure.as_str()), ("32", "write_iops_limit"));
        assert!(change.expected_gain.contains("for up to 10.0 s"), "{}", change.expected_gain);
    }

    #[test]
    fn a_checkpoint_s_writes_are_whole_units_of_a_volume() {
        let mut bench = volume();
        bench.profile.limits.request_unit_bytes = Figure::certain(1 << 20, 1 << 20, 1 << 20);
        let change = changed(of_checkpoints(&bench.facts(), bench.setting("checkpoint_flush_after")));
        assert_eq!((change.value.as_str(), change.evidence[0].figure.as_str()), ("128", "request_unit_bytes"));
        bench.profile.limits.request_unit_bytes = Figure::certain(16 << 10, 16 << 10, 16 << 10);
        let fitting = fits(of_checkpoints(&bench.facts(), bench.setting("checkpoint_flush_after")));
        assert!(fitting.contains("each of them once"), "{fitting}");
    }

    #[test]
    fn what_is_evicted_again_and_again_is_left_to_the_kernel_on_a_volume_only() {
        let mut bench = volume();
        bench.set("backend_flush_after", "8");
        let wrote = |data_pages| Activity {
            by_background_writer: 10_000,
            by_backends: 200_000,
            seconds: [Some(100.0); 2],
            data_pages,
            ..Activity::default()
        };
        // 2,000 a second are 60,000 in the time that the kernel keeps them: twice the data.
        let small = wrote(Some(30_000));
        let facts = Facts { activity: Some(&small), ..bench.facts() };
        let change = changed(of_backends(&facts, bench.setting("backend_flush_after")));
        assert_eq!((change.value.as_str(), change.evidence[2].value), ("0", 30_000.0));
        assert!(change.expected_gain.starts_with("at least 1000 page writes"), "{}", change.expected_gain);
        assert!(fits(of_background_writer(&facts, bench.setting("bgwriter_flush_after"))).contains("at least 0 %"));
        let large = wrote(Some(50_000));
        let facts = Facts { activity: Some(&large), ..bench.facts() };
        assert!(fits(of_backends(&facts, bench.setting("backend_flush_after"))).contains("at least 17 %"));
        let unseen = wrote(None);
        let facts = Facts { activity: Some(&unseen), ..bench.facts() };
        assert!(untold(of_backends(&facts, bench.setting("backend_flush_after"))).contains("pg_read_all_stats"));
        let mut drive = Bench::new();
        drive.set("backend_flush_after", "8");
        let facts = Facts { activity: Some(&small), ..drive.facts() };
        assert!(fits(of_backends(&facts, drive.setting("backend_flush_after"))).contains("64 KiB"));
    }
}
