//! Random overwrites until the steady state, and what is moved in it.

use flashwise_block::{ByteSize, Operation, Progress};
use flashwise_profile::Figure;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::LearnError;
use crate::draft::{Because, Key, ProfileDraft};
use crate::prober::Prober;
use crate::stats::graded::widened;
use crate::stats::steady::{Settled, level, settled};
use crate::verdict::{Doubt, Wording, applying, doubt};

use crate::probes::windows::{Mark, Window, join, programmed};

pub(super) const BLOCK: ByteSize = ByteSize::kib(4);
/// Requests in flight of the overwrites.
pub(super) const DEPTH: u32 = 256;
/// Windows of one overwrite of the whole drive until the onset.
pub(super) const ONSET_WINDOWS: u64 = 400;
/// Rounds that make up what is written to, for the steady state, and windows of one round.
pub(super) const A_PASS_ROUNDS: u64 = 8;
pub(super) const A_ROUND_WINDOWS: u64 = 8;
/// Rounds before which the drive is not asked whether it is steady: what was written last must have replaced what was
/// there before. Coming from a fill, and coming from a steady state of another kind.
pub(super) const ROUNDS_MIN: (usize, usize) = (22, 14);
/// Times that a drive has programmed what is written to, from which on half as many rounds do: then what it moved has
/// mixed what was there before, not the writes alone.
pub(super) const TURNED_OVER_TIMES: f64 = 7.0;
/// Share of itself within which the mean is known of a drive that is steady.
const KNOWN_SHARE: f64 = 0.04;
/// Overwrites after which a drive that is not steady is given up: so many, on large drives fewer.
const OVERWRITES_MAX: u64 = 12;
const OVERWRITES_MIN: u64 = 4;
/// What they may come to on drives in between.
const OVERWRITTEN_MAX: ByteSize = ByteSize::gib(16);
/// What a drive may program from the fill on, where it tells, and how often what is written to where that is more: a
/// map that does not fit its memory can make it program hundreds of times what is written, more and more of it, and
/// each time costs it a part of its life.
pub(super) const PROGRAMMED_MAX: ByteSize = ByteSize::gib(96);
pub(super) const TURNOVERS_MAX: u64 = 8;
/// Where the first overwrites are given up so, what follows is of no steady state either, and gets this part of what
/// the fill left to them.
pub(super) const HOPELESS: u64 = 4;

pub(super) const UNIFORM: &str = "uniform random 4 KiB writes over the whole filled drive, until steady";
pub(super) const SKEWED: &str = "random 4 KiB writes, 80 % of them to the first 20 % of the drive, until steady";
/// The stage of the uniform ones, and their curve.
pub(super) const OVERWRITES: &str = "random overwrites";

/// Offsets of which four in five are in the first fifth.
pub(super) fn eighty_twenty(capacity: ByteSize) -> impl FnMut(&mut Pcg64Mcg) -> ByteSize {
    let blocks = capacity / BLOCK;
    let hot = blocks / 5;
    move |random| {
        let n =
            if random.random_range(0..5) < 4 { random.random_range(0..hot) } else { random.random_range(hot..blocks) };
        BLOCK * n
    }
}

/// Random overwrites until the steady state.
pub(super) struct Overwritten {
    pub(super) all: Vec<Window>,
    /// Windows that make up what was written to.
    pub(super) a_pass: u64,
    /// The windows joined.
    pub(super) rounds: Vec<Window>,
    pub(super) is_steady: bool,
    /// Whether they ended because the drive programmed too much.
    pub(super) is_given_up: bool,
}

/// Whether the drive counted what it programmed in all windows.
pub(super) fn counts(windows: &[Window]) -> bool {
    windows.iter().all(|window| window.amplification.is_some())
}

/// What is written over and over.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) bytes: ByteSize,
    /// Windows that make up that.
    pub(super) windows: u64,
    /// Rounds before which nobody asks.
    pub(super) rounds_min: usize,
    /// What the drive may program meanwhile.
    pub(super) wears: ByteSize,
}

/// What decides whether a drive is steady: flash bytes for each host byte where it tells, else time.
pub(super) fn response(window: &Window) -> f64 {
    window.amplification.unwrap_or(1e9 / window.rate)
}

impl Overwritten {
    fn responses(&self) -> Vec<f64> {
        self.rounds.iter().map(response).collect()
    }

    /// Whether what was written to `bytes` replaced what was there before.
    fn has_replaced(&self, bytes: ByteSize, rounds_min: usize) -> bool {
        let programmed: Option<f64> = self.rounds.iter().map(programmed).sum();
        let rounds_min = match programmed {
            Some(programmed) if programmed >= TURNED_OVER_TIMES * bytes.bytes() as f64 => rounds_min / 2,
            _ => rounds_min,
        };
        self.rounds.len() >= rounds_min
    }

    /// Whether both the response and the pace are steady: where small writes waste much, what is moved is a small part
    /// of what is programmed.
    fn has_settled(&self) -> bool {
        let paces: Vec<f64> = self.rounds.iter().map(|round| 1e9 / round.rate).collect();
        settled(&self.responses(), KNOWN_SHARE).is_some() && settled(&paces, KNOWN_SHARE).is_some()
    }

    /// Level of the response over the later half.
    pub(super) fn level(&self) -> Settled {
        level(&self.responses())
    }

    /// Whether the drive counts what it programs.
    pub(super) fn is_counted(&self) -> bool {
        counts(&self.all)
    }
}

/// Random writes until they are steady.
pub(super) fn until_steady(
    prober: &mut Prober<'_>,
    Load { bytes, windows, rounds_min, wears }: Load,
    stage: &str,
    place: &mut dyn FnMut(&mut Pcg64Mcg) -> ByteSize,
    progress: &mut dyn Progress,
) -> Result<Overwritten, LearnError> {
    let a_window = (bytes / BLOCK / windows).max(1);
    let a_round = (windows / A_PASS_ROUNDS) as usize;
    let depth = DEPTH.min(prober.queue_depth().max(1)) as usize;
    let (all, rounds) = (Vec::new(), Vec::new());
    let mut seen = Overwritten { all, a_pass: windows, rounds, is_steady: false, is_given_up: false };
    let mut in_rounds = 0;
    let overwrites = (OVERWRITTEN_MAX / bytes).clamp(OVERWRITES_MIN, OVERWRITES_MAX);
    let most = windows * overwrites;
    let began = Mark::now(prober);
    while (seen.all.len() as u64) < most && !seen.is_steady && !seen.is_given_up {
        prober.advance(progress, stage, seen.all.len() as f64 / most as f64)?;
        let mark = Mark::now(prober);
        prober.keep_in_flight(Operation::Write, BLOCK, depth, a_window as usize, place)?;
        seen.all.push(mark.window(prober, a_window, BLOCK));
        seen.is_given_up = began.programmed(prober) > wears;
        let round = join(&seen.all[in_rounds..]);
        if seen.all.len() - in_rounds == a_round || programmed(&round) >= Some(bytes.bytes() as f64) {
            in_rounds = seen.all.len();
            seen.rounds.push(round);
            seen.is_steady = seen.has_replaced(bytes, rounds_min) && seen.has_settled();
        }
    }
    while prober.wait()?.is_some() {}
    seen.is_given_up &= !seen.is_steady;
    Ok(seen)
}

/// Write amplification below which nothing is moved: pages of a map and what windows do not share evenly come to
/// less.
pub(super) const NOTHING_MOVED_WA: f64 = 1.02;

/// Why a write amplification may be inconclusive.
const AMPLIFICATION_DOUBTS: [Doubt<Overwritten>; 1] = [doubt(
    "not steady",
    Wording::InsteadOf(|seen| format!("not steady after {} overwrites", seen.all.len() as u64 / seen.a_pass)),
    |seen| !seen.is_steady,
)];

/// Sets a write amplification.
pub(super) fn report_amplification(key: Key<f64>, seen: &Overwritten, recipe: &str, draft: &mut ProfileDraft) {
    let Settled { mean, low, high } = seen.level();
    let (low, high) = widened(mean, low, high);
    let doubts = applying(&AMPLIFICATION_DOUBTS, seen);
    let (figure, reason) = match seen.rounds.iter().all(|round| round.amplification.is_some()) {
        true => (
            of_one_past(doubts.judge(Figure::certain(mean, low, high))),
            doubts.reason("steady: no trend in the second half"),
        ),
        false => (Figure::unknown(), "the drive does not report what it programs".to_owned()),
    };
    draft.settle(key, figure, Because { recipe, reason, curve: None });
}

/// A speed while garbage is collected, or what is moved, with an interval that holds for other pasts of the drive too:
/// what was written before decides which of its units collect at the same time, and where what is seldom written lies.
pub(super) fn of_one_past(figure: Figure<f64>) -> Figure<f64> {
    let Figure { value: Some(value), low: Some(low), high: Some(high), .. } = figure else { return figure };
    Figure { low: Some(low - OTHER_PASTS_SHARE * value), high: Some(high + OTHER_PASTS_SHARE * value), ..figure }
}

/// Share by which speeds of simulated drives with two pasts were seen to differ, beyond what all intervals allow for,
/// where they did not differ so much that there was nothing to report.
const OTHER_PASTS_SHARE: f64 = 0.04;

#[cfg(test)]
mod tests {
    use flashwise_block::Silent;
    use flashwise_ssd::SimulatedSsd;

    use super::super::passes::pass_in_order;
    use super::super::tests::small;
    use super::*;
    use crate::LearnOptions;
    use crate::prober::anywhere;

    #[test]
    fn a_drive_that_programs_too_much_until_it_is_steady_is_given_up() {
        let config = small();
        let overwritten = |wears: ByteSize| {
            let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
            let capacity = ByteSize(config.capacity_bytes);
            let options = LearnOptions { region: capacity, ..LearnOptions::complete("small") };
            let mut prober = Prober::new(&mut drive, capacity, &options);
            pass_in_order(&mut prober, 8, "fill", &mut Silent, &mut |_| true).unwrap();
            let load = Load { bytes: capacity, windows: 64, rounds_min: ROUNDS_MIN.0, wears };
            let mut place = anywhere(capacity, BLOCK);
            let before = Mark::now(&prober);
            let seen = until_steady(&mut prober, load, "overwrites", &mut place, &mut Silent).unwrap();
            (seen, before.programmed(&prober))
        };
        let (steady, programmed) = overwritten(ByteSize::gib(64));
        assert!(steady.is_steady && !steady.is_given_up && programmed > ByteSize::gib(1), "{programmed}");
        let (given_up, programmed) = overwritten(ByteSize::mib(512));
        assert!(given_up.is_given_up && !given_up.is_steady);
        assert!(programmed > ByteSize::mib(512) && programmed < ByteSize::mib(640), "{programmed}");
    }
}
