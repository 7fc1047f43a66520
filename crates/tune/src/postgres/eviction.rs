//! What writing pages back before they are evicted can bring at most, from what a server has counted.
//!
//! ```text
//!   s               time that backends spent on writes of pages ÷ time of their statements
//!   gain at most    s ÷ (1 − s): the rest of the work takes 1 − s of the time
//!   and past the page cache no more than (1 − u) ÷ u: the drive is busy for u of the time already
//! ```
//!
//! Both times are those of `pg_stat_database`, which are reset together (`blk_write_time`; `active_time`, from 14 on).
//! Processes without a database, such as the workers of `flashwise_ace`, are not counted there: with 15.18 and a
//! pool of 4 MB, `pgbench -c 4 -T 8` at scale 5 gave s = 3.2 % without workers and 0.1 % with four. Writes of
//! autovacuum and of bulk loading are counted, which no background process saves; so the bound is rather too high
//! than too low.
//!
//! A saturated drive only moves the waiting from writes to reads. How busy it is ([`super::utilisation`]) is a mean, so
//! it only rules a gain out; through the kernel's page cache it is a bound itself, and rules out nothing.
//!
//! Source: PostgreSQL documentation, "The Cumulative Statistics System"; T. I. Papon, M. Athanassoulis: *ACEing the
//! Bufferpool Management Paradigm for Modern Storage Devices*. ICDE 2023.

use super::rules::background_writer;
use super::utilisation::Utilisation;
use crate::EvictionBound;
use crate::servers::WORTH_IT;

/// From this share on a drive is called saturated: writes and reads then mostly wait for each other. It is the guide's
/// bound for `iostat`, too ("ACE in your PostgreSQL: does it pay?").
const SATURATED: f64 = 0.9;

/// Times of all backends since the statistics were reset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BackendTime {
    /// In statements, ms.
    pub(super) active_ms: f64,
    /// Of that, writing pages, ms; `None` if the server does not take the time of I/O.
    pub(super) write_ms: Option<f64>,
    /// Whether pages are written past the kernel's page cache.
    pub(super) is_direct: bool,
}

/// The most that it can bring; `None` where the server has not counted it.
pub(super) fn bound(time: BackendTime, drive: Option<Utilisation>) -> Option<EvictionBound> {
    let write_share = (time.write_ms? / time.active_ms).min(1.0);
    let drive_busy = drive.map(|drive| drive.busy);
    // The share of the time, or of the drive, that would still be taken.
    let rest = (1.0 - write_share).max(drive_busy.filter(|_| time.is_direct).unwrap_or(0.0).min(1.0));
    (time.active_ms > 0.0).then(|| EvictionBound {
        write_share,
        ratio_at_most: (rest > 0.0).then(|| 1.0 / rest),
        drive_busy,
        is_direct: time.is_direct,
        is_worth_it: rest * WORTH_IT <= 1.0 && !(time.is_direct && drive.is_some_and(is_saturated)),
    })
}

fn is_saturated(drive: Utilisation) -> bool {
    drive.busy >= SATURATED
}

/// How busy the drive is, in a sentence with a space before it.
fn busy(drive: Option<Utilisation>, is_direct: bool) -> String {
    let Some(drive) = drive else {
        return " How busy the drive is does not show: compare iostat -x with the profile.".to_owned();
    };
    let Utilisation { reads_per_s, writes_per_s, busy } = drive;
    let at_most = if is_direct { "" } else { "at most " };
    let saturated = match is_saturated(drive) {
        true if is_direct => ": it is saturated, and the waiting would only move to reads",
        true => ", if the kernel's page cache answers none of it: see iostat -x whether it is saturated",
        false => "",
    };
    format!(
        " On average {reads_per_s:.0} reads and {writes_per_s:.0} writes a second keep the drive {at_most}{} \
         busy{saturated}.",
        percent(busy.min(1.0))
    )
}

/// The advice, as a note; `None` where no statement has run. `together` is k_w of the drive at the server's page size.
pub(super) fn advice(
    time: BackendTime,
    drive: Option<Utilisation>,
    together: Option<u64>,
    version: u32,
) -> Option<String> {
    if time.write_ms.is_none() {
        return Some(
            "How long backends wait for writes of evicted pages is unknown: track_io_timing is off. Turn it on, reset \
             the statistics with SELECT pg_stat_reset(), and run this again after some minutes of your usual load."
                .to_owned(),
        );
    }
    let bound = bound(time, drive)?;
    let share = bound.write_share;
    let spent = format!(
        "Backends spent {} of the time of their statements on writes of pages (of {:.0} s since the statistics were \
         reset, if track_io_timing was on all the time).{}",
        percent(share),
        time.active_ms / 1000.0,
        busy(drive, time.is_direct)
    );
    let most = match bound.ratio_at_most {
        Some(ratio) => format!("brings at most {}", percent(ratio - 1.0)),
        None => "has no upper bound by these counters".to_owned(),
    };
    if !bound.is_worth_it {
        return Some(format!("{spent} Writing pages before they are evicted {most}: there is nothing to change."));
    }
    let first = match time.is_direct {
        true => {
            "The background writer comes first: its settings are proposed, and --measure measures them on a private \
             server."
                .to_owned()
        }
        false => format!(
            "The server writes to the kernel's page cache: only where that is short of memory do these writes wait for \
             the drive. There, try the background writer first, and ALTER SYSTEM RESET if it brings nothing: \
             {}",
            background_writer::by_hand()
        ),
    };
    let extension = match (version, together) {
        (..15, _) => String::new(),
        (_, None) => " If backends still write, the extension flashwise_ace writes several pages at once.".to_owned(),
        (_, Some(together)) => format!(
            " If backends still write, the extension flashwise_ace with flashwise_ace.workers = {together} (k_w) writes \
             as many at once as the drive serves together."
        ),
    };
    Some(format!("{spent} Writing pages before they are evicted {most}. {first}{extension}"))
}

/// Two digits below 10 %, whole numbers above.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advised(write_ms: f64, together: Option<u64>, version: u32) -> String {
        let time = BackendTime { active_ms: 240_000.0, write_ms: Some(write_ms), is_direct: true };
        advice(time, None, together, version).unwrap()
    }

    fn busy_drive(busy: f64) -> Option<Utilisation> {
        Some(Utilisation { reads_per_s: 1200.0, writes_per_s: 800.0, busy })
    }

    #[test]
    fn a_drive_that_is_busy_has_no_more_to_give_than_the_rest_of_its_time() {
        let direct = BackendTime { active_ms: 240_000.0, write_ms: Some(48_000.0), is_direct: true };
        let ratio = |time, busy| bound(time, busy_drive(busy)).unwrap().ratio_at_most.unwrap();
        assert_eq!((ratio(direct, 0.5), ratio(direct, 0.8), ratio(direct, 2.0)), (1.25, 1.25, 1.0));
        assert!((ratio(direct, 0.95) - 1.0 / 0.95).abs() < 1e-9);
        for busy in [0.9, 0.95, 2.0] {
            let saturated = advice(direct, busy_drive(busy), Some(4), 18).unwrap();
            assert!(saturated.contains("1200 reads and 800 writes a second keep the drive"), "{saturated}");
            assert!(saturated.contains("% busy: it is saturated"), "{saturated}");
            assert!(saturated.ends_with("there is nothing to change.") && !saturated.contains("first"), "{saturated}");
        }
        let half = advice(direct, busy_drive(0.5), Some(4), 18).unwrap();
        assert!(half.contains("keep the drive 50 % busy.") && half.contains("flashwise_ace.workers = 4"), "{half}");
    }

    #[test]
    fn through_the_page_cache_a_busy_drive_rules_nothing_out() {
        let buffered = BackendTime { active_ms: 240_000.0, write_ms: Some(48_000.0), is_direct: false };
        let found = bound(buffered, busy_drive(1.4)).unwrap();
        assert_eq!((found.ratio_at_most, found.drive_busy), (Some(1.25), Some(1.4)));
        let text = advice(buffered, busy_drive(1.4), None, 18).unwrap();
        assert!(text.contains("at most 100 % busy, if the kernel's page cache answers none of it"), "{text}");
    }

    #[test]
    fn the_bound_is_the_share_of_writes_to_the_rest() {
        let text = advised(48_000.0, Some(4), 18);
        assert!(text.starts_with("Backends spent 20 % of the time of their statements"), "{text}");
        assert!(text.contains("brings at most 25 %.") && text.contains("of 240 s since"), "{text}");
        let background_writer = text.find("The background writer comes first").unwrap();
        assert!(background_writer < text.find("flashwise_ace.workers = 4").unwrap(), "it is tried first: {text}");
        assert!(!advised(48_000.0, Some(4), 14).contains("flashwise_ace"), "the extension is for 15 and later");
        assert!(advised(48_000.0, None, 15).contains("several pages at once"));
    }

    #[test]
    fn a_gain_that_no_measurement_would_show_is_no_reason_to_change_anything() {
        let text = advised(2_300.0, Some(4), 18);
        assert!(text.contains("at most 1.0 %: there is nothing to change."), "{text}");
        assert!(!text.contains("background writer"), "{text}");
        assert!(advised(2_500.0, Some(4), 18).contains("background writer comes first"));
    }

    #[test]
    fn the_bound_is_in_the_document_too() {
        let time = BackendTime { active_ms: 240_000.0, write_ms: Some(48_000.0), is_direct: true };
        let found = bound(time, None).unwrap();
        assert_eq!((found.write_share, found.ratio_at_most, found.is_worth_it), (0.2, Some(1.25), true));
        let all = bound(BackendTime { write_ms: Some(250_000.0), ..time }, None).unwrap();
        assert_eq!((all.write_share, all.ratio_at_most), (1.0, None));
        assert_eq!(bound(BackendTime { write_ms: None, ..time }, None), None);
        assert!(!bound(BackendTime { write_ms: Some(100.0), ..time }, None).unwrap().is_worth_it);
    }

    #[test]
    fn writes_to_the_page_cache_are_named_as_such() {
        assert!(!advised(48_000.0, None, 18).contains("page cache"));
        let buffered = BackendTime { active_ms: 100.0, write_ms: Some(50.0), is_direct: false };
        let text = advice(buffered, None, None, 18).unwrap();
        assert!(
            text.contains(
                "brings at most 100 %. The server writes to the kernel's page cache: only where that is short"
            ) && text.contains("ALTER SYSTEM SET bgwriter_lru_maxpages"),
            "{text}"
        );
    }

    #[test]
    fn what_was_not_counted_is_unknown() {
        let untimed = BackendTime { active_ms: 240_000.0, write_ms: None, is_direct: false };
        assert!(advice(untimed, None, None, 18).unwrap().contains("track_io_timing is off"));
        assert_eq!(advice(BackendTime { active_ms: 0.0, write_ms: Some(0.0), ..untimed }, None, None, 18), None);
        assert!(advised(250_000.0, None, 18).contains("has no upper bound"), "autovacuum writes, too");
    }
}
