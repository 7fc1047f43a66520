//! Passes in order over the whole drive, and trims of it.

use std::ops::Range;

use flashwise_block::{ByteSize, Progress, Request};
use flashwise_profile::Figure;

use crate::LearnError;
use crate::draft::{Because, ProfileDraft, key};
use crate::prober::Prober;
use crate::stats::graded::{INTERVAL_SHARE_MAX, measured, median_interval, whole};
use crate::verdict::{Doubt, Wording, applying, doubt};

use super::overwrites::of_one_past;
use crate::probes::windows::{Mark, Window, join};

/// Large writes in flight in passes in order.
const PASS_DEPTH: usize = 32;
/// Writes of a window of a pass at least: they end in bursts.
const WINDOW_WRITES: u64 = 8;

/// Large writes in order.
#[derive(Clone)]
pub(super) struct Pass {
    /// Of all that make up the drive, by number.
    pub(super) writes: Range<u64>,
    /// Writes of a window.
    pub(super) a_window: u64,
    pub(super) stage: &'static str,
}

impl Pass {
    /// The whole drive, in so many windows or fewer.
    pub(super) fn whole(prober: &Prober<'_>, windows: u64, stage: &'static str) -> Self {
        let writes = prober.capacity() / prober.longest();
        let a_window = (writes / windows).max(WINDOW_WRITES.min(writes / 8)).max(1);
        Self { writes: 0..writes, a_window, stage }
    }
}

/// Writes the whole drive once in order; `watch` is called after every completion, and says whether to continue.
pub(super) fn pass_in_order(
    prober: &mut Prober<'_>,
    windows: u64,
    stage: &'static str,
    progress: &mut dyn Progress,
    watch: &mut dyn FnMut(&Prober<'_>) -> bool,
) -> Result<Vec<Window>, LearnError> {
    in_order(prober, Pass::whole(prober, windows, stage), progress, watch)
}

/// The same of a part of it.
pub(super) fn in_order(
    prober: &mut Prober<'_>,
    Pass { writes, a_window, stage }: Pass,
    progress: &mut dyn Progress,
    watch: &mut dyn FnMut(&Prober<'_>) -> bool,
) -> Result<Vec<Window>, LearnError> {
    let length = prober.longest();
    let (first, count) = (writes.start, writes.end.saturating_sub(writes.start));
    let (mut submitted, mut done, mut seen) = (0, 0, Vec::new());
    let mut mark = Mark::now(prober);
    while done < count {
        while prober.in_flight() < PASS_DEPTH && submitted < count {
            prober.submit(Request::write(length * (first + submitted), length))?;
            submitted += 1;
        }
        if prober.wait()?.is_none() {
            break;
        }
        done += 1;
        let goes_on = watch(prober);
        if done % a_window == 0 {
            prober.advance(progress, stage, done as f64 / count as f64)?;
            seen.push(mark.window(prober, a_window, length));
            mark = Mark::now(prober);
        }
        if !goes_on {
            // The last window is as long as it came to be.
            let of_last = done % a_window;
            seen.extend((of_last > 0).then(|| mark.window(prober, of_last, length)));
            break;
        }
    }
    prober.flush()?;
    Ok(seen)
}

/// Trims the whole drive, where it can.
pub(crate) fn trim_all(prober: &mut Prober<'_>) -> Result<(), LearnError> {
    prober.flush()?;
    let (capacity, part) = (prober.capacity(), ByteSize::mib(64));
    for n in 0..capacity.bytes().div_ceil(part.bytes()) {
        let start = part * n;
        if !prober.trim(start, part.min(capacity - start))? {
            break;
        }
    }
    Ok(())
}

/// What the sustained speed rests on, beside the intervals of the last passes.
struct Passes {
    /// Whether the last one ended before the drive did.
    is_cut: bool,
}

/// Why a sustained speed may be inconclusive, beside an interval wider than twice [`INTERVAL_SHARE_MAX`].
const SUSTAINED_DOUBTS: [Doubt<Passes>; 1] =
    [doubt("the last pass did not finish", Wording::Nothing, |passes| passes.is_cut)];

/// Speed of the latest pass in order; its interval holds that of the pass before, of which what was written at random
/// before may have been in the way. Of one that did not come to its end it is not certain.
pub(super) fn sustained(prober: &Prober<'_>, passes: &[Vec<Window>], is_cut: bool, draft: &mut ProfileDraft) {
    let Some((last, before)) = passes.split_last() else { return };
    let per_byte = prober.longest().bytes() as f64;
    let rates: Vec<f64> = last.iter().map(|window| window.rate * per_byte).collect();
    let (low, high) = median_interval(&rates);
    let pass = |windows: &[Window]| join(windows).rate * per_byte;
    let ends = before.last().map(|windows| pass(windows)).into_iter().chain([low, high]).collect();
    let figure: Figure<f64> = of_one_past(measured(pass(last), ends, 2.0 * INTERVAL_SHARE_MAX));
    let figure = whole(applying(&SUSTAINED_DOUBTS, &Passes { is_cut }).judge(figure));
    let recipe = "the drive is written sequentially with large writes, 32 in flight, several times; the last pass \
                  counts";
    let reason = "mean speed of the pass".to_owned();
    draft.settle(key!(sustained_write_bytes_per_s), figure, Because { recipe, reason, curve: None });
}
