//! The superblock, and the room that a drive has: what its counts of bytes programmed and of erases say together.
//!
//! ```text
//!   passes in order ──▶ (programmed, erases) at each erase ──▶ slope: the superblock ──▶ programmed − erases · superblock
//!                                                         └──▶ period: how many units take turns           = what flash holds
//! ```
//!
//! Passes in order leave nothing to move: each superblock is erased when the next is opened. The slope of bytes programmed
//! over erases is its size, rounded to the unit in which the counter of programmed bytes moves. Only for drives that count
//! erases.
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
use crate::stats::median;

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

/// Passes in order, and the slope of bytes programmed over erases in the last of them.
pub(super) fn probe(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let recipe = "the drive is written in order several times; bytes programmed at each erase that the drive counts";
    let counts = prober.counters().flash.is_some();
    let mut seen: Vec<Worn> = Vec::new();
    let mut steps = 0_u64;
    for pass in 0..3 {
        seen.clear();
        let mut last = None;
        let windows = pass_in_order(prober, 16, "passes in order", progress, &mut |prober| {
            let Some(now) = Worn::now(prober) else { return };
            if let Some(Worn { programmed, erases }) = last.replace(now) {
                steps = gcd(steps, now.programmed - programmed);
                if pass == 2 && now.erases > erases {
                    seen.push(now);
                }
            }
        })?;
        sustained(prober, findings, &windows);
    }
    if !counts {
        let reason = "the drive does not count what it programs and erases".to_owned();
        findings.because("superblock_bytes", Because { recipe, reason, curve: None });
        return Ok(());
    }
    let (figure, reason) = match slope(&seen) {
        Some(slope) if steps > 0 => {
            let unit = steps as f64;
            let size = ((slope / unit).round() * unit) as u64;
            let off = (slope / size.max(1) as f64 - 1.0).abs();
            let reason = format!("{} an erase, in steps of {}", ByteSize(slope.round() as u64), ByteSize(steps));
            let erases = seen.last().map_or(0, |worn| worn.erases) - seen.first().map_or(0, |worn| worn.erases);
            // Ends of the pass lie anywhere within a superblock; a rest beyond that says that erases are not what was
            // opened.
            let unambiguous = (slope - size as f64).abs() <= unit / 4.0 && slope / erases as f64 <= unit;
            let sure = erases >= 8 && size > 0 && (unambiguous || off <= 0.5 / erases as f64);
            let (low, high) = (slope * (1.0 - 1.0 / erases as f64), slope * (1.0 + 1.0 / erases as f64));
            let figure = if sure {
                Figure::certain(size, size, size)
            } else {
                Figure::inconclusive(size, low as u64, high as u64)
            };
            (figure, reason)
        }
        _ if seen.is_empty() => (Figure::absent(), "the drive is written in order and never erases".to_owned()),
        _ => (Figure::unknown(), "too few erases in a pass over the drive".to_owned()),
    };
    findings.parameters.superblock_bytes = figure;
    findings.because("superblock_bytes", Because { recipe, reason, curve: None });
    match findings.parameters.superblock_bytes.known() {
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

/// Bytes programmed an erase.
///
/// Units take turns, so neighbouring erases come at uneven distances; but after as many erases as there are units, or a
/// multiple, everything repeats. Of all lags about half as long as the series, the one whose distances spread least is
/// such a multiple, and the median distance at it, divided by the lag, is free of what happens in between.
fn slope(seen: &[Worn]) -> Option<f64> {
    if seen.len() < 8 {
        return None;
    }
    let distances = |lag: usize| -> Vec<f64> {
        let pairs = std::iter::zip(seen, &seen[lag..]);
        pairs.map(|(a, b)| (b.programmed - a.programmed) as f64 / (b.erases - a.erases) as f64).collect()
    };
    let spread = |lag: &usize| {
        let distances = distances(*lag);
        let middle = median(distances.clone());
        median(distances.iter().map(|d| (d - middle).abs()).collect())
    };
    let longest = seen.len() / 2;
    let lags = (longest - longest / 2).max(1)..=longest;
    let best = lags.min_by(|a, b| spread(a).total_cmp(&spread(b)))?;
    Some(median(distances(best)))
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
    if occupied <= capacity || p.collection_onset_bytes.verdict == Verdict::Absent {
        return Ok(());
    }
    // What small writes waste counts as well; what meets in the write buffer, and is programmed once, does not.
    let padding = findings.padding.unwrap_or(1.0).max(1.0);
    let onset = (occupied - capacity) as f64 / padding;
    let bytes = [1.0, 1.0 - ROOM_SPREAD, 1.0 + ROOM_SPREAD].map(|share| (share * onset) as u64);
    let share = bytes.map(|bytes| bytes as f64 / capacity as f64);
    // Without the number of units what is open is not known, and on a drive that had erased before anybody asked not what
    // small writes waste.
    let known = units.is_some() && findings.padding.is_some();
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

/// Share by which the onset of random overwrites may come before the room is full, or after: they fill one part of the
/// drive before the others, and the parts are filled by superblocks.
const ROOM_SPREAD: f64 = 0.10;
const ROOM: &str = "the drive is overwritten until it collects all the time; what it says it has programmed, less what it \
                    says it has erased, is what its flash holds";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_programmed_bytes_over_erases_is_the_superblock() {
        let seen: Vec<Worn> = (0..50).map(|n| Worn { programmed: 1000 + n * 4096, erases: 7 + n }).collect();
        assert!((slope(&seen).unwrap() - 4096.0).abs() < 1e-6);
        assert!(slope(&seen[..3]).is_none());
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
