//! Whether the content of a write changes what it costs: compression and deduplication.
//!
//! Dose and response. Blocks are written with none to all of their bytes zero (the rest random), or with none to all of
//! the blocks of a run equal to blocks written before (each by itself random). A drive that compresses or deduplicates
//! is the faster, and programs the less, the higher the dose; one that does not takes no notice. Doses come in random
//! order, several times over, and the highest is compared with the lowest by a rank test.
//!
//! Where the drive tells what it programs, and that is the same at every dose, noise of throughput does not matter, and
//! two runs of each dose are enough to see it. So many are enough of the doses in between in any case: they show the
//! curve.

use flashwise_block::{ByteSize, IoBuffer, Progress};
use flashwise_profile::{Figure, ProbeCurve};
use rand::{Rng, RngExt};

use crate::draft::{Because, Key, ProfileDraft, key};
use crate::prober::Prober;
use crate::stats::graded::{INTERVAL_SHARE_MAX, measured, point};
use crate::stats::{median, rank};
use crate::step::Step;
use crate::verdict::{Doubt, Doubts, Wording, applying, doubt, doubt_of_either};
use crate::{Effort, LearnError};

use super::buffer::WriteBuffer;

pub(crate) const CONTENT: Step = Step::new("content", &["compression_gain", "deduplication_gain"]);

const BLOCK: ByteSize = ByteSize::kib(4);
/// Percent of zeros in a block, or of repeated blocks in a run.
const DOSES: [u32; 5] = [0, 25, 50, 75, 100];
/// Bytes of a block that are never zero: two blocks of zeros would be one to a drive that deduplicates.
const DISTINCT_BYTES: usize = 16;
/// Writes in flight.
const DEPTH: usize = 32;
/// Bytes of the region that these writes go to: a simulated drive keeps their content in memory.
const AREA: ByteSize = ByteSize::mib(32);
/// Blocks that repeated ones are equal to.
const ORIGINALS: usize = 16;
/// Resampled ratios.
const RESAMPLES: usize = 200;
/// Share by which the highest dose must change speed or bytes programmed; less is noise of runs.
const CHANGES_SHARE: f64 = 0.05;

/// Times [`CHANGES_SHARE`] below which the interval ends where a gain would have shown.
const WOULD_SHOW_TIMES: f64 = 3.0;

/// Runs of the lowest and of the highest dose, which are compared with each other.
const fn runs(effort: Effort) -> usize {
    match effort {
        Effort::Thorough => 6,
        Effort::Quick => 3,
    }
}

/// Runs of each dose before it is asked whether they can differ; of those in between there are no more.
const RUNS_FIRST: usize = 2;

/// So many times as many are added where the runs of the two overlap, and their middles differ all the same.
const RUNS_MORE: usize = 3;

/// What is varied.
#[derive(Clone, Copy)]
enum Content {
    Zeros,
    Repeats,
}

impl Content {
    /// The figure, its curve, and what is varied in it.
    fn figure(self) -> (Key<f64>, &'static str, &'static str) {
        match self {
            Self::Zeros => (key!(compression_gain), "writes by zeros", "zeros in a block, %"),
            Self::Repeats => (key!(deduplication_gain), "writes by repeats", "repeated blocks, %"),
        }
    }
}

/// Measures both.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    buffer: WriteBuffer,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    gain(prober, buffer, Content::Zeros, draft, progress)?;
    gain(prober, buffer, Content::Repeats, draft, progress)?;
    // The content is not needed any more, and a drive that keeps it has better uses for the space.
    prober.flush()?;
    prober.trim(ByteSize(0), AREA.min(prober.region()))?;
    Ok(())
}

/// What the verdict of a gain rests on.
struct Gain {
    /// How many times as fast writes are at the highest dose as at none, with the interval of resampled runs.
    times: Figure<f64>,
    ratio: f64,
    /// Probability that chance makes runs of the highest dose as fast.
    by_chance: f64,
    /// What the flash programs at the highest dose, times what it programs at none, where the drive counts.
    programs: Option<f64>,
}

/// Why a gain may be inconclusive, beside an interval wider than [`INTERVAL_SHARE_MAX`].
const GAIN_DOUBTS: [Doubt<Gain>; 2] = [
    // What is repeated may be read to be compared.
    doubt(
        "less is programmed, and it takes as long",
        Wording::InsteadOf(|gain| {
            let programs = gain.programs.map(programs_reason).unwrap_or_default();
            format!("{programs}, and writes are {:.2} times as fast", gain.ratio)
        }),
        |gain| gain.is_no_faster() && gain.programs.is_some(),
    ),
    doubt("the interval includes no gain", Wording::Nothing, |gain| gain.times.low.is_some_and(|low| low <= 1.0)),
];

/// Why it may be inconclusive that there is no gain.
const NO_GAIN_DOUBTS: [Doubt<Gain>; 1] = [doubt_of_either("a gain would not have shown", Wording::Nothing, |gain| {
    !gain.times.high.is_some_and(|high| high < 1.0 + WOULD_SHOW_TIMES * CHANGES_SHARE)
})];

fn programs_reason(less: f64) -> String {
    format!("at the highest dose the flash programs {less:.3} times as much as at dose 0")
}

impl Gain {
    fn is_no_faster(&self) -> bool {
        self.ratio < 1.0 + CHANGES_SHARE || self.by_chance >= rank::CHANCE_PROBABILITY
    }

    /// The figure with its reason, and the doubts of a gain, where there is one.
    fn verdict(&self) -> (Figure<f64>, String, Option<Doubts>) {
        if let Some(less) = self.programs.filter(|less| (1.0 / less) < 1.0 + CHANGES_SHARE) {
            return (Figure::absent(), programs_reason(less), None);
        }
        let faster = format!("at the highest dose writes are {:.2} times as fast as at dose 0", self.ratio);
        if self.is_no_faster() && self.programs.is_none() {
            let doubts = applying(&NO_GAIN_DOUBTS, self);
            return (doubts.judge(Figure::absent()), doubts.reason(faster), None);
        }
        let doubts = applying(&GAIN_DOUBTS, self);
        (doubts.judge(self.times), doubts.reason(faster), Some(doubts))
    }
}

fn gain(
    prober: &mut Prober<'_>,
    buffer: WriteBuffer,
    content: Content,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let (key, name, x) = content.figure();
    let originals: Vec<IoBuffer> = (0..ORIGINALS).map(|_| noise(&mut prober.random)).collect();
    let mut responses = vec![Vec::new(); DOSES.len()];
    // Flash bytes for each host byte of the runs of each dose, where the drive tells.
    let mut told: Vec<Vec<f64>> = vec![Vec::new(); DOSES.len()];
    let ends = [0, DOSES.len() - 1];
    let runs = runs(prober.effort);
    let rounds: [(Vec<usize>, usize); 3] = [
        ((0..DOSES.len()).collect(), RUNS_FIRST),
        (ends.to_vec(), runs - RUNS_FIRST),
        (ends.to_vec(), runs * RUNS_MORE),
    ];
    for (round, (doses, runs)) in rounds.into_iter().enumerate() {
        if round == 2 && !is_open(&told) {
            break;
        }
        let visits = prober.shuffled(doses.into_iter().flat_map(|i| std::iter::repeat_n(i, runs)));
        for (n, &i) in visits.iter().enumerate() {
            prober.advance(progress, name, n as f64 / visits.len() as f64)?;
            let before = prober.counters();
            let response = run(prober, buffer, content, DOSES[i], &originals)?;
            told[i].extend(prober.counters().since(&before).write_amplification());
            prober.sample(name, f64::from(DOSES[i]), response);
            responses[i].push(response);
        }
        if programs_the_same(&told) {
            break;
        }
    }
    let points = std::iter::zip(DOSES, &responses).map(|(dose, response)| point(f64::from(dose), response));
    let y = "MiB a second".to_owned();
    draft.keep(ProbeCurve { name: name.to_owned(), x: x.to_owned(), y, points: points.collect(), fit: Vec::new() });
    let (none, all) = (&responses[0], &responses[DOSES.len() - 1]);
    let ratio = median(all.clone()) / median(none.clone());
    let test = rank::compare(all, none);
    let recipe = "4 KiB writes in random order, 32 in flight, content by dose in random order";
    let random = &mut prober.random;
    let draw = |values: &[f64], random: &mut rand_pcg::Pcg64Mcg| {
        median((0..values.len()).map(|_| values[random.random_range(0..values.len())]).collect())
    };
    let again = (0..RESAMPLES).map(|_| draw(all, random) / draw(none, random)).collect();
    let times = measured(ratio, again, INTERVAL_SHARE_MAX);
    let gain = Gain { times, ratio, by_chance: test.p_greater, programs: programs_less(&told) };
    let (figure, reason, doubts) = gain.verdict();
    draft.settle(key, figure, Because { recipe, reason, curve: Some(name) });
    if doubts.is_some_and(|doubts| doubts.is_empty()) {
        draft.present_unless_chance(key.name, test.p_greater);
    }
    Ok(())
}

/// Whether the drive tells that no run of the highest dose programs less than any of none.
fn programs_the_same(told: &[Vec<f64>]) -> bool {
    let (Some(none), Some(all)) = (told.first(), told.last()) else { return false };
    let least = all.iter().copied().fold(f64::MAX, f64::min);
    let most = none.iter().copied().fold(0.0, f64::max);
    !none.is_empty() && !all.is_empty() && most < least * (1.0 + CHANGES_SHARE)
}

/// Whether less is programmed at the highest dose than at none in the middle of the runs, and not in each of them:
/// where a drive moves data meanwhile, there is now more of that and now less.
fn is_open(told: &[Vec<f64>]) -> bool {
    let (Some(none), Some(all)) = (told.first(), told.last()) else { return false };
    let least = none.iter().copied().fold(f64::MAX, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    most >= least && programs_less(told).is_some_and(|less| 1.0 / less >= 1.0 + CHANGES_SHARE)
}

/// What the flash programs at the highest dose, times what it programs at none, where the drive tells.
fn programs_less(told: &[Vec<f64>]) -> Option<f64> {
    let (none, all) = (told.first()?, told.last()?);
    let known = !none.is_empty() && !all.is_empty();
    known.then(|| median(all.clone()) / median(none.clone()).max(1e-9))
}

/// MiB a second in the long run at one dose.
fn run(
    prober: &mut Prober<'_>,
    buffer: WriteBuffer,
    content: Content,
    dose: u32,
    originals: &[IoBuffer],
) -> Result<f64, LearnError> {
    // Each run starts with an empty buffer, and is in the long run once that is full.
    let held = ByteSize(buffer.0.known().unwrap_or(0) / 4 * 5);
    let settle = (WriteBuffer::settling_at_least(prober.effort).max(held).min(AREA) / BLOCK) as usize;
    let measured = (settle / 4).max(1024);
    let mut place = crate::prober::anywhere(AREA.min(prober.region()), BLOCK);
    let mut started = prober.now();
    for n in 0..settle + measured {
        if n == settle {
            started = prober.now();
        }
        while prober.in_flight() < DEPTH {
            let offset = place(&mut prober.random);
            let block = block(content, dose, originals, &mut prober.random);
            prober.submit_content(offset, block)?;
        }
        prober.wait()?;
    }
    let seconds = prober.now().since(started).as_secs_f64();
    prober.flush()?;
    Ok((BLOCK * measured as u64).bytes() as f64 / f64::from(1 << 20) / seconds.max(1e-9))
}

fn noise(random: &mut rand_pcg::Pcg64Mcg) -> IoBuffer {
    let mut block = IoBuffer::zeroed(BLOCK.bytes() as usize);
    random.fill_bytes(&mut block);
    block
}

/// The content of one block.
fn block(content: Content, dose: u32, originals: &[IoBuffer], random: &mut rand_pcg::Pcg64Mcg) -> IoBuffer {
    match content {
        Content::Zeros => {
            let mut block = noise(random);
            let zeros = (block.len() * dose as usize / 100).min(block.len() - DISTINCT_BYTES);
            block[..zeros].fill(0);
            block
        }
        Content::Repeats if random.random_range(0..100) < dose => {
            IoBuffer::copy_of(&originals[random.random_range(0..originals.len())])
        }
        Content::Repeats => noise(random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_overlap_though_their_middles_differ_are_asked_for_more() {
        let told = |none: &[f64], all: &[f64]| vec![none.to_vec(), Vec::new(), all.to_vec()];
        assert!(is_open(&told(&[1.40, 1.39, 1.30, 1.27], &[1.17, 1.26, 1.23, 1.31])));
        assert!(!is_open(&told(&[1.40, 1.39, 1.30, 1.27], &[0.70, 0.71, 0.69, 0.70])), "less in each run");
        assert!(!is_open(&told(&[1.30, 1.29, 1.31, 1.30], &[1.29, 1.30, 1.30, 1.31])), "the same");
        assert!(!is_open(&told(&[], &[])), "the drive does not tell");
    }

    #[test]
    fn a_drive_that_programs_the_same_at_every_dose_is_told_by_its_counters() {
        let told = |none: [f64; 2], all: [f64; 2]| [none.to_vec(), vec![1.0, 1.0], all.to_vec()];
        assert!(programs_the_same(&told([1.01, 1.02], [1.0, 1.03])));
        assert!(!programs_the_same(&told([1.01, 1.02], [1.0, 0.6])), "one run of the highest dose programs less");
        assert!(!programs_the_same(&[Vec::new(), Vec::new()]), "a drive that does not count tells nothing");
    }
}
