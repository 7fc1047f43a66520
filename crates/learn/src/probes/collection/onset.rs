//! When collection sets in, read off overwrites of a filled drive.
//!
//! Before the onset the flash programs what the host writes, with what small writes waste; from then on more. The first
//! lasting rise of write amplification, or fall of throughput where the drive does not tell what it programs, is told
//! by ranks. Where a drive counts what it programs and erases, [`super::superblock`] knows better.

use flashwise_block::ByteSize;
use flashwise_profile::{Figure, ProbeCurve, ProbePoint};

use crate::draft::{Because, ProfileDraft, key};
use crate::evidence::Evidence;
use crate::probes::buffer::WriteBuffer;
use crate::probes::windows::Window;
use crate::stats::graded::widened;
use crate::stats::{median, rank};
use crate::verdict::{Doubt, Wording, applying, doubt};

use super::overwrites::{NOTHING_MOVED_WA, ONSET_WINDOWS, OVERWRITES, Overwritten, UNIFORM, counts, response};

/// Evidence of the onset of garbage collection, and of the over-provisioning that it shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Onset {
    /// Bytes that random overwrites of the filled drive come to before garbage collection runs.
    pub(crate) bytes: Figure<u64>,
    /// The same as a share of what the drive offers.
    pub(crate) share: Figure<f64>,
}

impl Evidence for Onset {
    fn recorded(draft: &ProfileDraft) -> Self {
        Self { bytes: draft.recorded(key!(collection_onset_bytes)), share: draft.recorded(key!(over_provisioning)) }
    }
}

/// The figures of [`Onset`].
pub(super) const ONSET_FIGURES: [&str; 2] = ["over_provisioning", "collection_onset_bytes"];

/// Why an onset that a rise shows may be inconclusive; what bytes programmed and erases show has doubts in
/// `superblock.rs`.
const RISE_DOUBTS: [Doubt<Figure<u64>>; 1] = [doubt("a wide interval", Wording::Nothing, |bytes| {
    let width = bytes.low.zip(bytes.high).map_or(0, |(low, high)| high - low);
    width > bytes.value.unwrap_or(0) / 5
})];

impl Onset {
    /// Read off the overwrites.
    pub(super) fn read_off(
        capacity: ByteSize,
        overwritten: &Overwritten,
        buffer: WriteBuffer,
        draft: &mut ProfileDraft,
    ) -> Self {
        let windows = &overwritten.all;
        keep_overwrites(capacity, windows, draft);
        let first = &windows[..windows.len().min(ONSET_WINDOWS as usize)];
        let (onset, reason) = match Rise::of(first, buffer.bytes()).first() {
            Some(cut) => {
                let onset = Self::at(cut, windows, capacity);
                (onset, format!("the first lasting slowdown comes after {}", ByteSize(onset.bytes.value.unwrap_or(0))))
            }
            None => (Self::recorded(draft), "no lasting slowdown within one overwrite of the drive".to_owned()),
        };
        onset.set(draft);
        for key in ONSET_FIGURES {
            draft.because(key, Because { recipe: UNIFORM, reason: reason.clone(), curve: Some(OVERWRITES) });
        }
        onset.unless_nothing_is_moved(overwritten, draft)
    }

    /// Before a window.
    fn at(cut: usize, windows: &[Window], capacity: ByteSize) -> Self {
        let sum = |n: usize| windows[..n].iter().map(|window| window.bytes).sum::<u64>();
        let value = sum(cut);
        // Data in open superblocks from before the fill took space that a new drive has free.
        let kept = LIFE_BEFORE_SHARE * value as f64;
        let (low, high) = widened(value as f64, sum(cut.max(1) - 1) as f64, sum(cut + 1) as f64 + kept);
        let bytes = Figure::certain(value, low as u64, high as u64);
        let bytes = applying(&RISE_DOUBTS, &bytes).judge(bytes);
        Self { bytes, share: bytes.map(|bytes| bytes as f64 / capacity.bytes() as f64) }
    }

    /// Absent of a drive that comes to its steady state without ever moving anything.
    fn unless_nothing_is_moved(self, overwritten: &Overwritten, draft: &mut ProfileDraft) -> Self {
        let is_told = self.bytes.value.is_none() && overwritten.is_counted() && overwritten.is_steady;
        if !is_told || overwritten.level().mean >= NOTHING_MOVED_WA {
            return self;
        }
        let absent = Self { bytes: Figure::absent(), share: Figure::absent() };
        absent.set(draft);
        draft.set(key!(collection_cost), Figure::absent());
        for key in ["collection_onset_bytes", "over_provisioning", "collection_cost"] {
            let reason = "garbage collection never moves data".to_owned();
            draft.because(key, Because { recipe: UNIFORM, reason, curve: None });
        }
        absent
    }

    /// Sets both figures.
    pub(super) fn set(self, draft: &mut ProfileDraft) {
        draft.set(key!(collection_onset_bytes), self.bytes);
        draft.set(key!(over_provisioning), self.share);
    }
}

/// Keeps the curve of random overwrites; its name.
pub(super) fn keep_overwrites(capacity: ByteSize, windows: &[Window], draft: &mut ProfileDraft) -> &'static str {
    let mut at = 0;
    let points = windows.iter().step_by(4).map(|window| {
        at += 4 * window.bytes;
        let y = window.amplification.unwrap_or(window.rate);
        ProbePoint { x: at as f64 / capacity.bytes() as f64, y, low: y, high: y }
    });
    draft.keep(ProbeCurve {
        name: OVERWRITES.to_owned(),
        x: "overwritten, times the drive".to_owned(),
        y: if counts(windows) { "write amplification" } else { "writes a second" }.to_owned(),
        points: points.collect(),
        fit: Vec::new(),
    });
    OVERWRITES
}

/// A search for the first lasting rise of the response in successive windows.
struct Rise {
    series: Vec<f64>,
    /// Windows left out at the start: what the write buffer takes is faster than all that comes after.
    behind: usize,
    /// What the response cannot fall below in the long run: a flash byte for each host byte.
    floor: f64,
}

impl Rise {
    fn of(windows: &[Window], buffer: u64) -> Self {
        let told = counts(windows);
        let a_window = windows.first().map_or(1, |window| window.bytes.max(1));
        let behind = if told { 0 } else { (2 * buffer / a_window) as usize };
        let series: Vec<f64> = windows.iter().skip(behind).map(response).collect();
        Self { series, behind, floor: if told { 1.0 } else { 0.0 } }
    }

    fn first(&self) -> Option<usize> {
        Some(first_rise(&self.series, self.floor)? + self.behind)
    }
}

/// Share of the onset by which collection can start earlier on a drive that was in use before it was trimmed and
/// filled.
pub(super) const LIFE_BEFORE_SHARE: f64 = 0.06;
/// Factor on the flash bytes of a drive that collects nothing, from which on collection may be at work from the first
/// window on.
const AT_WORK_FACTOR: f64 = 1.2;
/// Windows by which that is judged, but for the first, and how far they may be apart where nothing is collected.
const AT_FIRST: usize = 8;
/// Share of the usual window within which the first windows lie where nothing is collected: what small writes waste
/// is always the same.
const EVEN_SHARE: f64 = 0.06;

fn is_even(values: &[f64]) -> bool {
    let usual = median(values.to_vec());
    values.iter().skip(1).all(|value| (value / usual - 1.0).abs() <= EVEN_SHARE)
}

/// Factor of a rise of what is programmed, at least: flash bytes are counted.
const RISE_COUNTED: f64 = 1.02;
/// Factor of a rise of the time that writes take, at least: time is measured.
const RISE_TIMED: f64 = 1.1;
/// Cliff's δ, the difference of the shares of pairs, from which on windows are lastingly higher than those before.
const LASTING_DELTA: f64 = 0.5;
/// Windows that a rise must last, and windows before it that it is compared with.
const LASTING: usize = 10;
const BEFORE: usize = 40;

/// The first window from which on the response is lastingly higher than before: by ranks, and by a
/// tenth, or by a fiftieth where flash bytes are counted.
///
/// Collection may come in bursts with nothing in between, so the mean of what follows counts, beside the ranks.
///
/// `floor` is what the response cannot fall below in the long run: a flash byte for each host byte.
fn first_rise(series: &[f64], floor: f64) -> Option<usize> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    // Flash bytes are counted, time is measured.
    let rise = if floor > 0.0 { RISE_COUNTED } else { RISE_TIMED };
    let rises = |cut: usize| {
        let (before, after) = (&series[cut.saturating_sub(BEFORE)..cut], &series[cut..cut + LASTING]);
        let test = rank::compare(after, before);
        // What is still in the write buffer makes the first windows look better than they are.
        let usual = median(before.to_vec());
        mean(after) > rise * usual.max(floor)
            && (test.p_greater < rank::CHANCE_PROBABILITY && test.delta >= LASTING_DELTA)
    };
    // A collector that takes what is valid while there is something better is at work from the first window on, now
    // more and now less; what is programmed beside the data of each write is always the same.
    let begin: Vec<f64> = series.iter().take(AT_FIRST).copied().collect();
    if floor > 0.0 && median(begin.clone()) > AT_WORK_FACTOR * floor && !is_even(&begin) {
        return None;
    }
    let cut = (4..series.len().saturating_sub(2 * LASTING)).find(|&cut| rises(cut))?;
    // It is seen coming as soon as most of what follows is higher; it starts where a quarter of it is reached.
    let usual = median(series[..cut].to_vec()).max(floor);
    let risen = mean(&series[cut + LASTING..(cut + 2 * LASTING).min(series.len())]);
    let reached = usual + (risen - usual) / 4.0;
    // Where it rises slowly, in the middle of what was seen coming.
    (cut..cut + LASTING).find(|&i| series[i] > reached).or(Some(cut + LASTING / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waste_that_is_always_the_same_is_no_collection_and_a_rise_above_it_is() {
        let wasteful =
            |rises_at: usize| (0..100).map(move |n| if n < rises_at { 8.0 } else { 14.0 }).collect::<Vec<f64>>();
        assert_eq!(first_rise(&wasteful(40), 1.0), Some(40));
        // Now more and now less from the start on: collection is at work already.
        let at_work: Vec<f64> = (0..100).map(|n| 8.0 + f64::from(n % 5)).collect();
        assert_eq!(first_rise(&at_work, 1.0), None);
    }
}
