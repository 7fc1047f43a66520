//! The superblock, and the room that a drive has: what its counts of bytes programmed and of erases say together.
//!
//! ```text
//!   passes in order ──▶ (programmed, erases) at each erase ──▶ slope: the superblock ──▶ programmed − erases · superblock
//!                                                         └──▶ period: how many units take turns           = what flash holds
//! ```
//!
//! Passes in order leave nothing to move: each superblock is erased when the next is opened. The superblock
//! is the multiple of the unit in which the counter of programmed bytes moves that keeps these and the erases in step. Only
//! for drives that count erases.
//!
//! Flash that was programmed has been erased since, or holds data or garbage. So what a drive has programmed in its life,
//! less what it has erased, is what its flash holds; when it keeps no more free than it must, that less what it offers is
//! the room that data has to move in. It holds whatever the drive was used for before, and however it chooses what it
//! collects.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::{Figure, Verdict};

use crate::LearnError;
use crate::findings::{Because, Findings};
use crate::prober::Prober;
use crate::stats::{line_through, median};

use super::onset::OVERWRITES;
use super::{AFTERMATH, ROOM_FIGURES, pass_in_order, sustained};

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

/// Passes in order, and the slope of bytes programmed over erases in the last of them. A drive that moves much even then, as
/// one may that collects what is chosen at random, and programs more than `wears` in one pass, is left alone.
pub(super) fn probe(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    wears: ByteSize,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let recipe = "the drive is written in order several times; bytes programmed at each erase that the drive counts";
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
        sustained(prober, findings, &passes, is_worn);
    }
    if !counts {
        let reason = "the drive does not count what it programs and erases".to_owned();
        findings.because("superblock_bytes", Because { recipe, reason, curve: None });
        return Ok(());
    }
    let (figure, reason) = match size_of_superblock(&seen, steps) {
        Some(figure) => {
            let size = figure.value.unwrap_or(0);
            (figure, format!("{} an erase, in steps of {}", ByteSize(size), ByteSize(steps)))
        }
        _ if seen.is_empty() => (Figure::absent(), "the drive is written in order and never erases".to_owned()),
        _ => (Figure::unknown(), "too few erases in a pass over the drive".to_owned()),
    };
    findings.parameters.superblock_bytes = figure;
    findings.because("superblock_bytes", Because { recipe, reason, curve: None });
    match findings.parameters.superblock_bytes.value {
        Some(superblock) => room(prober, findings, superblock, &seen),
        None => Ok(()),
    }
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
/// erase maybe when it begins; and a pass begins with what the one before has left. So what is told is the multiple for
/// which what lies between the counts, programmed − erases · size, stays the same for longest: of which the shortest
/// interval that holds half of them is the shortest (the shorth; Andrews et al., *Robust Estimates of Location*, 1972). The
/// pass as a whole knows it better, its later half is freer of what was left.
fn size_of_superblock(seen: &[Worn], step: u64) -> Option<Figure<u64>> {
    let whole = Candidate::best(seen, step)?;
    let (told, other) = match Candidate::best(&seen[seen.len() / 2..], step) {
        Some(later) if later.stands_out_at < whole.stands_out_at => (later, whole),
        Some(later) => (whole, later),
        None => (whole, whole),
    };
    let size = told.size;
    let agree = size == other.size || other.stands_out_at > TELLS_NOTHING;
    let steps = size / step;
    let is_block = steps < STEPS_OF_PAGES || steps.is_multiple_of(PAGES_OF_BLOCKS);
    let sure = told.stands_out_at <= STANDS_OUT && agree && is_block;
    Some(if sure {
        Figure::certain(size, size, size)
    } else {
        Figure::inconclusive(size, size.saturating_sub(step), size + step)
    })
}

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
        let candidates = (slope * (1.0 - AROUND)).max(1.0).floor() as u64..=(slope * (1.0 + AROUND)).ceil() as u64;
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
/// Sizes that are looked at, as a share around the slope, and at most so many.
const AROUND: f64 = 0.03;
const CANDIDATES_MAX: usize = 100_000;
/// A size is certain if what lies between the counts spreads so much less than with any other, and a part of a pass with
/// which it does not does not contradict.
const STANDS_OUT: f64 = 0.8;
const TELLS_NOTHING: f64 = 0.9;

/// Blocks are made of rows of cells that hold several pages, so that they have no odd number of these; from so many steps on a
/// superblock is counted in pages.
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

/// Tells the spare room from what a drive has programmed and erased in its life: flash that was programmed is erased, or
/// holds data or garbage, and when a drive keeps no more free than it must, that is all there is, but for what is open.
fn room(prober: &mut Prober<'_>, findings: &mut Findings, superblock: u64, seen: &[Worn]) -> Result<(), LearnError> {
    let capacity = prober.capacity().bytes();
    prober.rest(AFTERMATH)?;
    let Some(last) = Worn::now(prober) else { return Ok(()) };
    // Of more turns than there are units, with some planes for themselves, nothing is known.
    let units_max = findings.parameters.parallel_units.value.map_or(u64::MAX, |units| 2 * units);
    let units = turns(seen).filter(|&units| units <= units_max);
    let open = (units.unwrap_or(0) * superblock) as f64;
    let held = |worn: &Worn| worn.programmed as f64 - worn.erases as f64 * superblock as f64;
    // In each unit the host and collection fill a superblock, which on average is half empty. Under way a victim may still
    // wait for its erase; at rest more may be free than must be.
    let under_way = seen.iter().map(held).sum::<f64>() / seen.len().max(1) as f64 + open / 2.0;
    let at_rest = held(&last) + open;
    let occupied = ((under_way + at_rest) / 2.0).max(0.0) as u64;
    let p = &mut findings.parameters;
    // Of a superblock that is a little off, the erases of a life make a room that cannot be.
    let is_possible = (capacity..=2 * capacity).contains(&occupied);
    if !is_possible || p.collection_onset_bytes.verdict == Verdict::Absent {
        return Ok(());
    }
    // What small writes waste counts as well; what meets in the write buffer, and is programmed once, does not.
    let padding = findings.padding.unwrap_or(1.0).max(1.0);
    // What the buffer holds is written and not yet on flash.
    let onset = (occupied - capacity) as f64 / padding + p.write_buffer_bytes.value.unwrap_or(0) as f64;
    // Each unit may keep one superblock more, or less, than was taken for open.
    let most = units.unwrap_or(0).max(p.parallel_units.value.unwrap_or(0)) * superblock;
    let spread = (most as f64 / onset).max(ROOM_SPREAD);
    // The part that random writes fill first.
    let first = first_of(units.unwrap_or(0), onset / padding / super::BLOCK.bytes() as f64);
    let bytes = [1.0, 1.0 - spread - first, 1.0 + spread].map(|share| (share * onset).max(0.0) as u64);
    let share = bytes.map(|bytes| bytes as f64 / capacity as f64);
    // Without a certain superblock nothing is, without the number of units what is open is not known, and on a drive that
    // had erased before anybody asked not what small writes waste.
    let is_narrow = spread <= ROOM_SPREAD && first <= FIRST_MAX;
    let known = units.is_some() && is_narrow && findings.padding.is_some() && p.superblock_bytes.known().is_some();
    let verdict = if known { Verdict::Certain } else { Verdict::Inconclusive };
    p.collection_onset_bytes = Figure { verdict, ..Figure::certain(bytes[0], bytes[1], bytes[2]) };
    p.over_provisioning = Figure { verdict, ..Figure::certain(share[0], share[1], share[2]) };
    let reason = format!(
        "{} are programmed and {} erasures of {} done in all, so {} more than the drive offers are in use; small writes \
         program {padding:.2} times what they write",
        ByteSize(last.programmed),
        last.erases,
        ByteSize(superblock),
        ByteSize(occupied - capacity),
    );
    for key in ROOM_FIGURES {
        findings.because(key, Because { recipe: ROOM, reason: reason.clone(), curve: Some(OVERWRITES) });
    }
    Ok(())
}

/// By which share of what falls to each of some units that are chosen at random the fullest is ahead of the mean one, at most
/// in the mean: the largest of n normal deviates (√(2 ln n), Gumbel, *Statistics of Extremes*, 1958) in standard deviations
/// of Poisson counts.
fn first_of(units: u64, writes: f64) -> f64 {
    let units = units.max(1) as f64;
    (2.0 * units.ln()).sqrt() * (units / writes.max(1.0)).sqrt()
}

/// How much earlier the first unit may collect than all do, for the onset to be certain.
const FIRST_MAX: f64 = 0.03;

/// Share by which the onset of random overwrites may come before the room is full, or after: they fill one part of the
/// drive before the others, and the parts are filled by superblocks.
const ROOM_SPREAD: f64 = 0.10;
const ROOM: &str = "the drive is overwritten until it collects all the time; what it says it has programmed, less what it \
                    says it has erased, is what its flash holds";

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
        assert!(most > FIRST_MAX && first_of(8, 400_000.0) < FIRST_MAX);
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
