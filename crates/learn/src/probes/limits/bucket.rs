//! Refill and size of a bucket that was seen to run dry.
//!
//! An empty bucket is left alone for a known time, and what a burst then gets beyond the long-run rate is what was
//! refilled in that time. After a longer time it is the bucket's size, if it is less than what the refill would have
//! made of it.
//!
//! Reads and writes that do not share a budget have a bucket each, and each load shows its own.

use flashwise_block::Nanos;
use flashwise_profile::Figure;

use super::caps::{Cap, Nature, surplus_floor};
use super::hold::Hold;
use super::load::Until;
use super::shared::Together;
use super::{Kind, Probe};
use crate::LearnError;
use crate::draft::{Because, Key, ProfileDraft, limit};

/// A bucket is full where a burst gets less than this share of what the idle time would have refilled: with a refill
/// that was measured, and with one that is taken to be the long-run rate.
const FULL_SHARE: f64 = 0.95;
const FULL_SHARE_OF_RATE: f64 = 0.9;
/// Each idle time is so many times the one before, until a refill is known.
const IDLE_GROWTH: f64 = 3.0;
/// The same from then on: no longer than needed to see a full bucket as such, as the idle times are most of the time.
const FILLING_GROWTH: f64 = 2.0;
/// The second look at a bucket that seemed full: one that still fills has half as much again.
const CONFIRMING_GROWTH: f64 = 1.5;
/// A bucket that was full at first is full again after this many times what its content takes to come back, and then
/// shows less than [`FULL_SHARE`] of the refill.
const FILLING_FACTOR: f64 = 1.3;
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
    together: &Together,
    hold: Hold,
    draft: &mut ProfileDraft,
) -> Result<(), LearnError> {
    let groups = [
        (
            [Kind::Reads, Kind::Writes],
            Keys { size: limit!(burst_operations), refill: limit!(burst_operations_refill) },
            Keys { size: limit!(write_burst_operations), refill: limit!(write_burst_operations_refill) },
        ),
        (
            [Kind::LargeReads, Kind::LargeWrites],
            Keys { size: limit!(burst_bytes), refill: limit!(burst_bytes_refill) },
            Keys { size: limit!(write_burst_bytes), refill: limit!(write_burst_bytes_refill) },
        ),
    ];
    let mut buckets = Vec::new();
    for (kinds, of_reads, of_writes) in groups {
        let [reads, writes] = kinds.map(|kind| caps.iter().find(|cap| cap.kind == kind && cap.is_limit()));
        if together.covers(kinds[0]) {
            let bursting = [reads, writes].into_iter().flatten().find(|cap| has_bucket(cap));
            let owner = bursting.or(reads).or(writes);
            buckets.push(Owned { owner, keys: of_reads, is_doubtful: false });
            // What both share is known to be a bucket only when it was seen at its end: before, it may be a cap above
            // two buckets.
            let is_one = [reads, writes].into_iter().flatten().any(|cap| cap.is_shared);
            let (figure, reason) = match is_one {
                true => (Figure::absent(), "writes draw from the bucket of reads"),
                false => (Figure::unknown(), "no bucket of both was seen to run dry"),
            };
            of_writes.settle(figure, reason, draft);
        } else {
            buckets.push(Owned { owner: reads, keys: of_reads, is_doubtful: false });
            // Unless each has its own limit, the bucket may be that of reads; and a drive's write cache looks the same.
            let is_doubtful =
                !together.is_separate(kinds[1]) || writes.is_some_and(|cap| cap.nature != Nature::Limiter);
            buckets.push(Owned { owner: writes, keys: of_writes, is_doubtful });
        }
    }
    let mut rest = buckets.iter().filter(|bucket| bucket.owner.is_some_and(has_bucket)).count() as u64;
    for Owned { owner, keys, is_doubtful } in buckets {
        match owner {
            Some(cap) if has_bucket(cap) => {
                let time = Nanos(probe.left().0 / rest);
                rest -= 1;
                measure(probe, (cap, time), hold, (keys, is_doubtful), draft)?;
            }
            Some(cap) => {
                let reason = format!("nothing was granted beyond {:.0} a second while it was measured", cap.rate);
                keys.settle(Figure::unknown(), &reason, draft);
            }
            None => keys.settle(Figure::unknown(), "no limit was found", draft),
        }
    }
    Ok(())
}

/// The figures of one bucket.
#[derive(Clone, Copy)]
struct Keys {
    size: Key<u64>,
    refill: Key<u64>,
}

/// A bucket with the load that shows it.
struct Owned<'a> {
    owner: Option<&'a Cap>,
    keys: Keys,
    /// Whether it may be another's.
    is_doubtful: bool,
}

impl Keys {
    /// The same figure for both.
    fn settle(self, figure: Figure<u64>, reason: &str, draft: &mut ProfileDraft) {
        for key in [self.size, self.refill] {
            draft.settle(key, figure, Because { recipe: RECIPE, reason: reason.to_owned(), curve: None });
        }
    }
}

/// Whether anything was granted beyond the rate.
fn has_bucket(cap: &Cap) -> bool {
    cap.burst.is_some() || cap.has_surplus
}

const RECIPE: &str = "the load again after known times without any";

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
    (cap, time): (&Cap, Nanos),
    hold: Hold,
    (keys, is_doubtful): (Keys, bool),
    draft: &mut ProfileDraft,
) -> Result<(), LearnError> {
    let scale = if cap.kind.is_large() { cap.stream.length.bytes() as f64 } else { 1.0 };
    let because = |reason: String| Because { recipe: RECIPE, reason, curve: None };
    let travel = cap.latency + hold.map_or(0.0, |hold| hold[0] / 1e9);
    let ends = Nanos(probe.prober.now().0.saturating_add(time.0));
    let found = refills(probe, cap, travel, ends)?;
    // A rate that may be a burst may be that of a larger bucket, which was not seen to run dry.
    let is_doubtful = is_doubtful || !cap.is_certain();
    let figure = |(value, error): (f64, f64)| {
        let ends = [value, value * (1.0 - error), value * (1.0 + error)].map(|x| (x.max(0.0) * scale).round() as u64);
        open_if(is_doubtful || cap.is_of_bytes || error > ERROR_SHARE_MAX, Figure::certain(ends[0], ends[1], ends[2]))
    };
    let (most, idle) = (found.most.0.max(cap.surplus).max(0.0), found.most.1);
    match found.refill {
        Some(refill) => {
            let reason = format!("after longer times without load a burst gets {:.0} a second more", refill.0);
            draft.settle(keys.refill, figure(refill), because(reason));
        }
        None => {
            let reason = "nothing that came back within the time, or the bucket is full again before a request is back";
            draft.settle(keys.refill, Figure::unknown(), because(reason.to_owned()));
        }
    }
    match found.size {
        Some(size) => {
            let reason = format!("{:.0} after {idle} without load, in which more would have been refilled", size.0);
            draft.settle(keys.size, figure(size), because(reason));
        }
        None => {
            let reason = format!(
                "spent {most:.0} of at least as many: the bucket was not seen full, the longest time without load was {idle}"
            );
            let mut figure = open_if(true, figure((most, ERROR_SHARE)));
            figure.high = None;
            draft.settle(keys.size, figure, because(reason));
        }
    }
    Ok(())
}

/// Leaves the bucket alone for longer and longer times, until it is full or the time is up.
fn refills(probe: &mut Probe<'_, '_>, cap: &Cap, travel: f64, ends: Nanos) -> Result<Refills, LearnError> {
    let floor = surplus_floor(cap.stream, cap.rate, cap.latency);
    let mut found = Refills { refill: None, size: None, most: (0.0, Nanos(0)) };
    // What remains of the last load may still be in the bucket, and what came back while its last requests were waited
    // for is there after each load.
    burst_after(probe, cap, Nanos(0))?;
    let Some(at_once) = burst_after(probe, cap, Nanos(0))? else { return Ok(found) };
    let mut idle = Nanos(((4.0 * floor).max(cap.surplus / 4.0) / cap.rate * 1e9) as u64);
    let mut full_at_most: Option<f64> = None;
    for _ in 0..ROUNDS {
        if Nanos((idle.0 as f64 * cap.spending_factor()) as u64) > ends.since(probe.prober.now()) {
            break;
        }
        let Some(got) = burst_after(probe, cap, idle)? else { break };
        let gained = got - at_once;
        let seconds = idle.as_secs_f64();
        let error = |value: f64| (floor / 3.0 / value.max(1.0)).max(ERROR_SHARE);
        let expected = found.refill.map_or(FULL_SHARE_OF_RATE * cap.rate, |(refill, _)| FULL_SHARE * refill) * seconds;
        let is_full = gained < expected && gained < (1.0 + ERROR_SHARE_MAX) * full_at_most.unwrap_or(gained);
        found.most = if got > found.most.0 { (got, idle) } else { found.most };
        // The same after two times, of which one is longer by half; or as much as a bucket that nobody had used had.
        let is_as_at_first = found.refill.is_some() && (got - cap.surplus).abs() <= ERROR_SHARE * cap.surplus;
        if is_full && (full_at_most.is_some() || got < floor || is_as_at_first) {
            found.size = (got > floor).then(|| (got, error(got)));
            found.most.1 = idle;
            return Ok(found);
        }
        full_at_most = is_full.then_some(gained);
        // A bucket that was full shortly before the end of the time shows a little less than its refill.
        let is_better = found.refill.is_none_or(|(refill, error)| error > ERROR_SHARE || gained / seconds > refill);
        if !is_full && is_better && seconds > TRAVELS * travel && gained > floor {
            found.refill = Some((gained / seconds, error(gained)));
        }
        let growth = match (full_at_most, found.refill) {
            (Some(_), _) => CONFIRMING_GROWTH,
            (None, Some((refill, _))) => {
                let to_first = FILLING_FACTOR * cap.surplus / refill / seconds;
                if to_first > 1.0 { to_first } else { FILLING_GROWTH }
            }
            (None, None) => IDLE_GROWTH,
        };
        idle = Nanos((idle.0 as f64 * growth) as u64);
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
    let run = probe.run(&[cap.stream], until, "burst after a pause", &mut |run| cap.is_dry(run, 0))?;
    let granted = run.total() as f64 - cap.rate * (run.seconds() - cap.latency);
    Ok(cap.is_dry(&run, 0).then_some(granted))
}
