//! The superblock, and over-provisioning: what its counts of bytes programmed and of erases say together.
//!
//! ```text
//!   passes in order ──▶ (programmed, erases) at each erase ──▶ slope: the superblock ──▶ programmed − erases · superblock
//!                                                         └──▶ period: how many units take turns           = what flash holds
//! ```
//!
//! Passes in order leave nothing to move: each superblock is erased when the next is opened. The superblock is the
//! multiple of the unit in which the counter of programmed bytes moves that keeps these and the erases in step. Only
//! for drives that count erases.
//!
//! Flash that was programmed has been erased since, or holds data or garbage. So what a drive has programmed in its
//! life, less what it has erased, is what its flash holds; when it keeps no more free than it must, that less what it
//! offers is the over-provisioning that data has to move in. It holds whatever the drive was used for before, and
//! however it chooses what it collects.

use flashwise_block::{ByteSize, Nanos, Progress};
use flashwise_profile::{Figure, Verdict};

use crate::LearnError;
use crate::draft::{Because, ProfileDraft, key};
use crate::prober::Prober;
use crate::probes::buffer::WriteBuffer;
use crate::probes::small_writes::Padding;
use crate::probes::units::Units;
use crate::stats::{line_through, median};
use crate::verdict::{Doubt, Wording, applying, doubt};

use super::onset::{ONSET_FIGURES, Onset};
use super::overwrites::{BLOCK, OVERWRITES};
use super::passes::{pass_in_order, sustained};

/// Time in which a drive ends what it does in the background.
const AFTERMATH: Nanos = Nanos(1_000_000_000);

/// Bytes programmed and erases so far.
#[derive(Clone, Copy)]
struct Worn {
    programmed: u64,
    erases: u64,
}

impl Worn {
    /// `None` where the drive does not count.
    fn now(prober: &Prober<'_>) -> Option<Self> {
        let flash = prober.counters().flash?;
        Some(Self { programmed: flash.bytes_programmed.bytes(), erases: flash.erases })
    }
}

/// Passes in order, of a drive that programs little more than that.
const PASSES: usize = 3;

/// Passes in order, and the slope of bytes programmed over erases in the last of them. A drive that moves much even
/// then, as one may that collects what is chosen at random, and programs more than `wears` in one pass, is left alone.
pub(super) fn probe(
    prober: &mut Prober<'_>,
    (fresh, onset): (Fresh, Onset),
    wears: ByteSize,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Onset, LearnError> {
    let recipe = "the drive is written sequentially several times; bytes programmed per erase, as the drive counts \
                  them";
    let counts = prober.counters().flash.is_some();
    let mut seen: Vec<Worn> = Vec::new();
    let (mut steps, mut passes, mut is_worn) = (0_u64, Vec::new(), false);
    while passes.len() < PASSES && !is_worn {
        seen.clear();
        let (first, mut last) = (Worn::now(prober), None);
        passes.push(pass_in_order(prober, 16, "passes in order", progress, &mut |prober| {
            let Some(now) = Worn::now(prober) else { return true };
            if let Some(Worn { programmed, erases }) = last.replace(now) {
                steps = gcd(steps, now.programmed - programmed);
                if now.erases > erases {
                    seen.push(now);
                }
            }
            is_worn = first.is_some_and(|first| now.programmed - first.programmed > wears.bytes());
            !is_worn
        })?);
        sustained(prober, &passes, is_worn, draft);
    }
    if !counts {
        let reason = "the drive does not report what it programs and erases".to_owned();
        draft.because("superblock_bytes", Because { recipe, reason, curve: None });
        return Ok(onset);
    }
    let (figure, reason) = match size_of_superblock(&seen, steps) {
        Some(figure) => {
            let size = figure.value.unwrap_or(0);
            (figure, format!("{} programmed per erase, in steps of {}", ByteSize(size), ByteSize(steps)))
        }
        _ if seen.is_empty() => (Figure::absent(), "the drive never erases during sequential writes".to_owned()),
        _ => (Figure::unknown(), "too few erases in one pass over the drive".to_owned()),
    };
    draft.settle(key!(superblock_bytes), figure, Because { recipe, reason, curve: None });
    let found = match figure.value {
        Some(_) if onset.bytes.verdict != Verdict::Absent => OverProvisioning::of(prober, fresh, figure, &seen)?,
        _ => None,
    };
    Ok(found.map_or(onset, |found| found.settle(prober.capacity().bytes(), draft)))
}

/// What earlier probes have shown that over-provisioning rests on.
#[derive(Clone, Copy)]
pub(super) struct Fresh {
    pub(super) buffer: WriteBuffer,
    pub(super) padding: Padding,
    pub(super) units: Units,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// After how many erases everything repeats in a pass in order: units take turns, so there are as many. `None` where no
/// such number stands out.
fn turns(seen: &[Worn]) -> Option<u64> {
    let erases = |lag: usize| -> Vec<f64> {
        std::iter::zip(seen, seen.get(lag..).unwrap_or_default()).map(|(a, b)| (b.erases - a.erases) as f64).collect()
    };
    let spread = |lag: usize| {
        let each: Vec<f64> = std::iter::zip(seen, &seen[lag..])
            .map(|(a, b)| (b.programmed - a.programmed) as f64 / (b.erases - a.erases).max(1) as f64)
            .collect();
        let middle = median(each.clone());
        median(each.iter().map(|one| (one - middle).abs()).collect()) * lag as f64
    };
    let spreads: Vec<f64> = (1..=(seen.len() / CYCLES_MIN).min(TURNS_MAX)).map(spread).collect();
    let best = spreads.iter().copied().min_by(f64::total_cmp)?;
    let usual = median(spreads.clone());
    let lag = 1 + spreads.iter().position(|&spread| spread <= (2.0 * best).min(usual / 2.0))?;
    (usual > 0.0).then(|| median(erases(lag)).round() as u64)
}

/// Turns that a pass must hold, and the longest that are looked for, in erases.
const CYCLES_MIN: usize = 4;
const TURNS_MAX: usize = 512;

/// Bytes programmed an erase, a multiple of the step in which they are counted. `None` of too few erases.
///
/// Units take turns, so neighbouring erases come at uneven distances; what is programmed is counted when it is done, an
/// erase maybe when it starts; and a pass starts with what the one before has left. So what is told is the multiple for
/// which what is between the counts, programmed − erases · size, stays the same for longest: of which the shortest
/// interval that holds half of them is the shortest (the shorth; Andrews et al., *Robust Estimates of Location*, 1972).
/// The pass as a whole knows it better, its later half is freer of what was left.
fn size_of_superblock(seen: &[Worn], step: u64) -> Option<Figure<u64>> {
    let whole = Candidate::best(seen, step)?;
    let (told, other) = match Candidate::best(&seen[seen.len() / 2..], step) {
        Some(later) if later.stands_out_at < whole.stands_out_at => (later, whole),
        Some(later) => (whole, later),
        None => (whole, whole),
    };
    let size = told.size;
    let doubts = applying(&SUPERBLOCK_DOUBTS, &Candidates { told, other, step });
    let (low, high) = if doubts.is_empty() { (size, size) } else { (size.saturating_sub(step), size + step) };
    Some(doubts.judge(Figure::certain(size, low, high)))
}

/// The best sizes by the later half of a pass and by all of it.
struct Candidates {
    told: Candidate,
    other: Candidate,
    /// The step in which the drive counts what it programs, bytes.
    step: u64,
}

/// Why a superblock may be inconclusive, beside what an SLC cache hides (`slc_cache.rs`).
const SUPERBLOCK_DOUBTS: [Doubt<Candidates>; 3] = [
    doubt("another size fits nearly as well", Wording::Nothing, |of| of.told.stands_out_at > STANDS_OUT_SHARE),
    doubt("the whole pass and its half differ", Wording::Nothing, |of| {
        of.told.size != of.other.size && of.other.stands_out_at <= SAYS_NOTHING_SHARE
    }),
    doubt("an odd number of pages", Wording::Nothing, |of| {
        let steps = of.told.size / of.step;
        steps >= STEPS_OF_PAGES && !steps.is_multiple_of(PAGES_OF_BLOCKS)
    }),
];

/// A size of the superblock.
#[derive(Clone, Copy)]
struct Candidate {
    size: u64,
    /// How much less spreads with it than with the next best, as a share; 0 where there is no other.
    stands_out_at: f64,
}

impl Candidate {
    /// The best of all near the slope.
    fn best(seen: &[Worn], step: u64) -> Option<Self> {
        if seen.len() < ERASES_MIN || step == 0 {
            return None;
        }
        let slope = slope(seen)? / step as f64;
        let candidates =
            (slope * (1.0 - AROUND_SHARE)).max(1.0).floor() as u64..=(slope * (1.0 + AROUND_SHARE)).ceil() as u64;
        let spread = |n: u64| (shorth(seen, n * step), n * step);
        let mut spreads: Vec<(f64, u64)> = candidates.take(CANDIDATES_MAX).map(spread).collect();
        spreads.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (best, size) = *spreads.first()?;
        let stands_out_at = spreads.get(1).map_or(0.0, |&(second, _)| best / second.max(1.0));
        Some(Self { size, stands_out_at })
    }
}

/// Erases that tell a size, at least.
const ERASES_MIN: usize = 8;
/// Share around the slope of bytes programmed over erases in which sizes are tried.
const AROUND_SHARE: f64 = 0.03;
const CANDIDATES_MAX: usize = 100_000;
/// Spread of what is between the counts with a certain size, as a share of the spread with the next best, at most.
const STANDS_OUT_SHARE: f64 = 0.8;
/// The same share from which on a part of a pass says nothing, and does not contradict the other.
const SAYS_NOTHING_SHARE: f64 = 0.9;

/// Blocks are made of rows of cells that hold several pages, so that they have no odd number of these; from so many
/// steps on a superblock is counted in pages.
const PAGES_OF_BLOCKS: u64 = 4;
const STEPS_OF_PAGES: u64 = 64;

/// Least-squares slope of bytes programmed over erases.
fn slope(seen: &[Worn]) -> Option<f64> {
    let from = *seen.first()?;
    let points: Vec<(f64, f64)> =
        seen.iter().map(|w| ((w.erases - from.erases) as f64, (w.programmed - from.programmed) as f64)).collect();
    line_through(&points).map(|(slope, _)| slope)
}

/// The shortest interval that holds half of what is programmed less what is erased, bytes.
fn shorth(seen: &[Worn], size: u64) -> f64 {
    let from = seen[0];
    let between = |w: &Worn| (w.programmed - from.programmed) as f64 - ((w.erases - from.erases) * size) as f64;
    let mut values: Vec<f64> = seen.iter().map(between).collect();
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    std::iter::zip(&values, &values[half..]).map(|(low, high)| high - low).fold(f64::MAX, f64::min)
}

/// The over-provisioning by what a drive has programmed and erased in its life: flash that was programmed is erased, or
/// holds data or garbage, and when a drive keeps no more free than it must, that is all there is, but for what is open.
struct OverProvisioning {
    /// What its life came to.
    last: Worn,
    superblock: Figure<u64>,
    /// Bytes that its flash holds beyond what it offers.
    beyond: u64,
    /// Flash bytes for each host byte of small writes; at least 1.
    padding: f64,
    is_padding_known: bool,
    /// Units that take turns.
    units: Option<u64>,
    /// Bytes of small writes that fill it.
    onset: f64,
    /// Share by which that may be off, and by which the first of the units is full before.
    spread: f64,
    first: f64,
}

/// Why an onset and an over-provisioning that bytes programmed and erases show may be inconclusive, beside what an SLC
/// cache hides (`slc_cache.rs`).
const OVER_PROVISIONING_DOUBTS: [Doubt<OverProvisioning>; 5] = [
    doubt("open superblocks are unknown without the number of units", Wording::Nothing, |life| life.units.is_none()),
    doubt("superblocks are large compared with it", Wording::Nothing, |life| life.spread > ONSET_SPREAD_SHARE),
    doubt("the first unit is full much earlier", Wording::Nothing, |life| life.first > FIRST_SHARE_MAX),
    // On a drive that had erased before.
    doubt("the padding of small writes is unknown", Wording::Nothing, |life| !life.is_padding_known),
    doubt("the superblock is not certain", Wording::Nothing, |life| life.superblock.known().is_none()),
];

impl OverProvisioning {
    /// `None` where the counts make no over-provisioning that can be.
    fn of(
        prober: &mut Prober<'_>,
        fresh: Fresh,
        superblock: Figure<u64>,
        seen: &[Worn],
    ) -> Result<Option<Self>, LearnError> {
        let capacity = prober.capacity().bytes();
        prober.rest(AFTERMATH)?;
        let Some((last, size)) = Worn::now(prober).zip(superblock.value) else { return Ok(None) };
        // Of more turns than there are units, with some planes for themselves, nothing is known.
        let units_max = fresh.units.count.value.map_or(u64::MAX, |units| 2 * units);
        let units = turns(seen).filter(|&units| units <= units_max);
        let open = (units.unwrap_or(0) * size) as f64;
        let held = |worn: &Worn| worn.programmed as f64 - worn.erases as f64 * size as f64;
        // In each unit the host and collection fill a superblock, which on average is half empty. Under way a victim
        // may still wait for its erase; at rest more may be free than must be.
        let under_way = seen.iter().map(held).sum::<f64>() / seen.len().max(1) as f64 + open / 2.0;
        let at_rest = held(&last) + open;
        let occupied = ((under_way + at_rest) / 2.0).max(0.0) as u64;
        // Of a superblock that is a little off, the erases of a life make an over-provisioning that cannot be.
        if !(capacity..=2 * capacity).contains(&occupied) {
            return Ok(None);
        }
        let beyond = occupied - capacity;
        // What small writes waste counts as well; what meets in the write buffer, and is programmed once, does not.
        let padding = fresh.padding.0.unwrap_or(1.0).max(1.0);
        // What the buffer holds is written and not yet on flash.
        let onset = beyond as f64 / padding + fresh.buffer.bytes() as f64;
        // Each unit may keep one superblock more, or less, than was taken for open.
        let most = units.unwrap_or(0).max(fresh.units.count.value.unwrap_or(0)) * size;
        let spread = (most as f64 / onset).max(ONSET_SPREAD_SHARE);
        // The part that random writes fill first.
        let first = first_of(units.unwrap_or(0), onset / padding / BLOCK.bytes() as f64);
        let is_padding_known = fresh.padding.0.is_some();
        Ok(Some(Self { last, superblock, beyond, padding, is_padding_known, units, onset, spread, first }))
    }

    fn settle(&self, capacity: u64, draft: &mut ProfileDraft) -> Onset {
        let doubts = applying(&OVER_PROVISIONING_DOUBTS, self);
        let [value, low, high] =
            [1.0, 1.0 - self.spread - self.first, 1.0 + self.spread].map(|share| (share * self.onset).max(0.0) as u64);
        let bytes = doubts.judge(Figure::certain(value, low, high));
        let onset = Onset { bytes, share: bytes.map(|bytes| bytes as f64 / capacity as f64) };
        onset.set(draft);
        let padding = self.padding;
        let reason = format!(
            "{} programmed minus {} erases of {} leave {} more in use than the capacity; small writes program \
             {padding:.2} times their bytes",
            ByteSize(self.last.programmed),
            self.last.erases,
            ByteSize(self.superblock.value.unwrap_or(0)),
            ByteSize(self.beyond),
        );
        for key in ONSET_FIGURES {
            draft.because(key, Because { recipe: LIFE_RECIPE, reason: reason.clone(), curve: Some(OVERWRITES) });
        }
        onset
    }
}

/// By which share of what falls to each of some units that are chosen at random the fullest is ahead of the mean one,
/// at most in the mean: the largest of n normal deviates (√(2 ln n), Gumbel, *Statistics of Extremes*, 1958) in
/// standard deviations of Poisson counts.
fn first_of(units: u64, writes: f64) -> f64 {
    let units = units.max(1) as f64;
    (2.0 * units.ln()).sqrt() * (units / writes.max(1.0)).sqrt()
}

/// Share of the onset by which the first unit may collect earlier than all do, for the onset to be certain.
const FIRST_SHARE_MAX: f64 = 0.03;

/// Share by which the onset of random overwrites may come before the over-provisioning is full, or after: they fill
/// one part of the drive before the others, and the parts are filled by superblocks.
const ONSET_SPREAD_SHARE: f64 = 0.10;
const LIFE_RECIPE: &str = "the drive is overwritten until garbage collection runs all the time; bytes programmed \
                           minus bytes erased, as the drive counts them, are what its flash holds";

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(erases: u64, size: u64, between: impl Fn(u64) -> u64) -> Vec<Worn> {
        (0..erases).map(|n| Worn { programmed: (1 << 30) + n * size + between(n), erases: 7 + n }).collect()
    }

    #[test]
    fn the_fullest_of_many_units_with_few_writes_is_well_ahead() {
        use rand::{RngExt, SeedableRng};
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let (units, writes) = (32, 40_000);
        let mut ahead = || {
            let mut counts = vec![0_u32; units];
            (0..writes).for_each(|_| counts[random.random_range(0..units)] += 1);
            f64::from(*counts.iter().max().unwrap()) * units as f64 / f64::from(writes) - 1.0
        };
        let mean = (0..40).map(|_| ahead()).sum::<f64>() / 40.0;
        let most = first_of(units as u64, f64::from(writes));
        assert!((0.7 * most..most).contains(&mean), "{mean} {most}");
        assert!(most > FIRST_SHARE_MAX && first_of(8, 400_000.0) < FIRST_SHARE_MAX);
        assert_eq!(first_of(1, 1e6), 0.0);
    }

    #[test]
    fn a_block_of_an_odd_number_of_pages_is_not_certain() {
        let seen =
            |pages: u64| (0..40).map(|n| Worn { programmed: n * pages * 16_384, erases: n }).collect::<Vec<Worn>>();
        assert_eq!(size_of_superblock(&seen(192), 16_384).unwrap().known(), Some(192 * 16_384));
        let odd = size_of_superblock(&seen(193), 16_384).unwrap();
        assert_eq!((odd.value, odd.known()), (Some(193 * 16_384), None));
    }

    #[test]
    fn the_superblock_is_what_is_programmed_an_erase() {
        assert_eq!(
            size_of_superblock(&counted(50, 9 << 12, |_| 0), 4096),
            Some(Figure::certain(9 << 12, 9 << 12, 9 << 12))
        );
        assert_eq!(size_of_superblock(&counted(3, 4096, |_| 0), 4096), None);
    }

    #[test]
    fn what_is_counted_late_and_what_a_pass_begins_with_do_not_move_it() {
        let size = 1 << 20;
        let turns = |n: u64| [0, 900_000, 200_000, 1_200_000, 500_000, 100_000, 700_000, 300_000][(n % 8) as usize];
        let moving = |n: u64| if n < 150 { n * 30_000 } else { 150 * 30_000 };
        let figure = size_of_superblock(&counted(400, size, |n| turns(n) + moving(n)), 4096);
        assert_eq!(figure, Some(Figure::certain(size, size, size)));
    }

    #[test]
    fn units_that_take_turns_at_uneven_distances_are_counted() {
        // Eight units; what is programmed between two erases depends on whose turn it is.
        let distances = [3_u64, 40, 11, 2, 90, 17, 60, 33];
        let mut programmed = 0;
        let seen: Vec<Worn> = (0..400_u64)
            .map(|n| {
                programmed += distances[(n % 8) as usize];
                Worn { programmed, erases: n }
            })
            .collect();
        assert_eq!(turns(&seen), Some(8));
        // Where all distances are alike, nobody can tell.
        let even: Vec<Worn> = (0..400).map(|n| Worn { programmed: n * 7, erases: n }).collect();
        assert_eq!(turns(&even), None);
    }
}
