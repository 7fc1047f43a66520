//! Refill and size of a bucket that was seen to run dry.
//!
//! An empty bucket is left alone for a known time, and what a burst then gets beyond the long-run rate is what was
//! refilled in that time. After a longer time it is the bucket's size, if it is less than what the refill would have
//! made of it.

use flashwise_block::Nanos;
use flashwise_profile::Figure;

use super::caps::{Cap, surplus_floor};
use super::hold::Hold;
use super::load::Until;
use super::{Kind, Probe};
use crate::LearnError;
use crate::draft::{Because, Key, ProfileDraft, limit};

/// A bucket is full where a burst gets less than this share of what the idle time would have refilled.
const FULL_SHARE: f64 = 0.9;
/// Each idle time is so many times the one before.
const IDLE_GROWTH: u64 = 3;
/// Rounds at most: from milliseconds to months.
const ROUNDS: usize = 24;
/// A refill is measured in a time that is so many times what a request takes that is held, or travels.
const TRAVELS: f64 = 20.0;
/// Half of an interval, as a share of the value, at least.
const ERROR_SHARE: f64 = 0.03;
/// Measures refill and size of the buckets of operations and of bytes, and sets their figures.
pub(super) fn settle(
    probe: &mut Probe<'_, '_>,
    caps: &[Cap],
    hold: Hold,
    draft: &mut ProfileDraft,
) -> Result<(), LearnError> {
    let groups = [
        ([Kind::Reads, Kind::Writes], limit!(burst_operations), limit!(burst_operations_refill)),
        ([Kind::LargeReads, Kind::LargeWrites], limit!(burst_bytes), limit!(burst_bytes_refill)),
    ];
    for (kinds, size, refill) in groups {
        let limits: Vec<&Cap> =
            kinds.iter().filter_map(|kind| caps.iter().find(|c| c.kind == *kind && c.is_limit())).collect();
        let Some(&any) = limits.first() else {
            let because = || Because { recipe: RECIPE, reason: "no limit was found".to_owned(), curve: None };
            draft.settle(size, Figure::unknown(), because());
            draft.settle(refill, Figure::unknown(), because());
            continue;
        };
        let bursting = limits.iter().copied().find(|cap| cap.burst.is_some() || cap.has_surplus);
        match bursting {
            Some(cap) => {
                let cap = cap.clone();
                measure(probe, &cap, hold, (size, refill), draft)?;
            }
            None => settle_none(any, (size, refill), draft),
        }
    }
    Ok(())
}

const RECIPE: &str = "the load again after known times without any";

/// Nothing was granted beyond the rate.
fn settle_none(cap: &Cap, (size, refill): (Key<u64>, Key<u64>), draft: &mut ProfileDraft) {
    let reason = format!("nothing was granted beyond {:.0} a second while it was measured", cap.rate);
    let because = || Because { recipe: RECIPE, reason: reason.clone(), curve: None };
    draft.settle(size, Figure::unknown(), because());
    draft.settle(refill, Figure::unknown(), because());
}

/// A bucket that was left alone, and what a burst then got.
struct Refills {
    /// Requests a second, and half of the interval as a share of it.
    refill: Option<(f64, f64)>,
    /// Requests, and the same.
    size: Option<(f64, f64)>,
    /// Most that was got, and after which time without load.
    most: (f64, Nanos),
}

fn measure(
    probe: &mut Probe<'_, '_>,
    cap: &Cap,
    hold: Hold,
    (size_key, refill_key): (Key<u64>, Key<u64>),
    draft: &mut ProfileDraft,
) -> Result<(), LearnError> {
    let scale = if cap.kind.is_large() { cap.stream.length.bytes() as f64 } else { 1.0 };
    let because = |reason: String| Because { recipe: RECIPE, reason, curve: None };
    let travel = cap.latency + hold.map_or(0.0, |hold| hold[0] / 1e9);
    let found = refills(probe, cap, travel)?;
    let figure = |(value, error): (f64, f64)| {
        let ends = [value, value * (1.0 - error), value * (1.0 + error)].map(|x| (x.max(0.0) * scale).round() as u64);
        open_if(error > ERROR_SHARE_MAX, Figure::certain(ends[0], ends[1], ends[2]))
    };
    let (most, idle) = (found.most.0.max(cap.surplus).max(0.0), found.most.1);
    match found.refill {
        Some(refill) => {
            let reason = format!("after longer times without load a burst gets {:.0} a second more", refill.0);
            draft.settle(refill_key, figure(refill), because(reason));
        }
        None => {
            let reason = "nothing that came back within the time, or the bucket is full again before a request is back";
            draft.settle(refill_key, Figure::unknown(), because(reason.to_owned()));
        }
    }
    match found.size {
        Some(size) => {
            let reason = format!("{:.0} after {idle} without load, in which more would have been refilled", size.0);
            draft.settle(size_key, figure(size), because(reason));
        }
        None => {
            let reason = format!(
                "spent {most:.0} of at least as many: the bucket was not seen full, the longest time without load was {idle}"
            );
            let mut figure = open_if(true, figure((most, 0.0)));
            figure.high = None;
            draft.settle(size_key, figure, because(reason));
        }
    }
    Ok(())
}

/// Leaves the bucket alone for longer and longer times, until it is full or the time is up.
fn refills(probe: &mut Probe<'_, '_>, cap: &Cap, travel: f64) -> Result<Refills, LearnError> {
    let floor = surplus_floor(cap.stream, cap.rate, cap.latency);
    let mut found = Refills { refill: None, size: None, most: (0.0, Nanos(0)) };
    // What remains of the last load may still be in the bucket, and what came back while its last requests were waited
    // for is there after each load.
    burst_after(probe, cap, Nanos(0))?;
    let Some(at_once) = burst_after(probe, cap, Nanos(0))? else { return Ok(found) };
    let mut idle = Nanos(((4.0 * floor).max(cap.surplus / 4.0) / cap.rate * 1e9) as u64);
    let mut full_at_most: Option<f64> = None;
    for _ in 0..ROUNDS {
        // What came back has to be spent, at a rate that need not be much higher.
        if idle.0 > probe.left().0 / 2 {
            break;
        }
        let Some(got) = burst_after(probe, cap, idle)? else { break };
        let gained = got - at_once;
        let seconds = idle.as_secs_f64();
        let error = |value: f64| (floor / 3.0 / value.max(1.0)).max(ERROR_SHARE);
        let expected = found.refill.map_or(cap.rate, |(refill, _)| refill) * seconds;
        let is_full =
            gained < FULL_SHARE * expected && gained < (1.0 + ERROR_SHARE_MAX) * full_at_most.unwrap_or(gained);
        found.most = if got > found.most.0 { (got, idle) } else { found.most };
        if is_full && (full_at_most.is_some() || got < floor) {
            // The same after two times, one of them several times the other.
            found.size = (got > floor).then(|| (got, error(got)));
            found.most.1 = idle;
            return Ok(found);
        }
        if is_full {
            full_at_most = Some(gained);
        } else if seconds > TRAVELS * travel && gained > floor {
            found.refill = Some((gained / seconds, error(gained)));
        }
        idle = idle * IDLE_GROWTH;
    }
    Ok(found)
}

/// An interval that is wider than this share of the value on one side leaves it a best guess.
const ERROR_SHARE_MAX: f64 = 0.1;

fn open_if(is_open: bool, figure: Figure<u64>) -> Figure<u64> {
    let mut figure = figure;
    if is_open {
        figure.doubt();
    }
    figure
}

/// Requests beyond the long-run rate that a load gets after an idle time; `None` where it did not come down to the
/// rate.
fn burst_after(probe: &mut Probe<'_, '_>, cap: &Cap, idle: Nanos) -> Result<Option<f64>, LearnError> {
    probe.prober.pause(idle)?;
    let until = Until { time: probe.left(), requests: u64::MAX, keep: 0 };
    let run = probe.run(&[cap.stream], until, "burst after a pause", &mut |run| cap.is_dry(run))?;
    let granted = run.total() as f64 - cap.rate * (run.seconds() - cap.latency);
    Ok(cap.is_dry(&run).then_some(granted))
}
