//! The flash page: what a read cannot split.
//!
//! Two blocks are read, the start moved block by block. Where a drive reads whole pages, the one start in each page from
//! which two pages are touched stands out.
//!
//! Source: the push-read of Queenie (SYSTOR 2022), a published description. Added: all of the inference.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::Figure;

use super::location::SHORTEST_CHUNK;
use super::sweep::{Level, Sweep, Swept, measure, usual_deviation};
use crate::findings::{Because, Findings};
use crate::prober::Prober;
use crate::stats::{figure, fold, median, rank};
use crate::{Effort, LearnError};

fn straddling(logical_block: ByteSize) -> Sweep {
    let (read, window) = (logical_block * 2, logical_block * 256);
    Sweep { read, step: logical_block, window, turn: window, reads_a_start: 100, smallest_effect: 0.005 }
}

/// Measures reads that touch one page or two.
pub(crate) fn probe_page(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    prober.fill_region(progress)?;
    let mut sweep = straddling(prober.logical_block());
    let mut swept = measure(prober, sweep, None, "page boundaries", progress)?;
    let step = sweep.step.bytes();
    let told_by = |swept: &Swept, level: Level| smallest_page(&level.of_all(&swept.points), sweep.smallest_effect);
    let finest = |swept: &Swept| {
        let found = Level::ALL.into_iter().filter_map(|level| Some((told_by(swept, level)?, level)));
        found.min_by_key(|&(period, _)| period).map(|(_, level)| level)
    };
    if finest(&swept).is_none() && !swept.would_show() && prober.effort == Effort::Thorough {
        sweep.reads_a_start *= 4;
        swept = measure(prober, sweep, None, "page boundaries, more reads", progress)?;
    }
    let would_be_seen = swept.would_show();
    let level = finest(&swept).unwrap_or(Level::Midmean);
    let page = figure(&swept.points, &mut prober.random, would_be_seen, |points| {
        smallest_page(&level.of_all(points), sweep.smallest_effect).map(|period| period as u64 * step)
    });
    if page.value.is_some() {
        findings.present_unless_chance("page_bytes", CHANCE_OF_A_PAGE);
    }
    let by_dies = page.value.is_some_and(|page| may_be_of_dies(&swept, level, (page / step) as usize));
    findings.parameters.page_bytes = page;
    if by_dies {
        findings.parameters.doubt("page_bytes");
    }
    doubt_a_chunk_of_pages(findings);
    let is_shorter = doubt_a_chunk_within_a_page(findings);
    findings.curves.location.push(swept.curve());
    let recipe = "reads of two blocks, start moved block by block from random aligned bases, in random order";
    let reason = match page.value {
        Some(_) if by_dies => "the one start in each page from which two are touched stands out, by no more than the \
                               later of two dies does"
            .to_owned(),
        Some(_) => "the one start in each page from which two are touched stands out".to_owned(),
        None => "no start stands out".to_owned(),
    };
    findings.because("page_bytes", Because { recipe, reason, curve: None });
    if is_shorter {
        for key in ["page_bytes", "chunk_bytes", "hot_location"] {
            findings.add_to_reason(key, "but a chunk holds whole pages, and that chunk is shorter than this page");
        }
    }
    Ok(())
}

/// Whether a period may be of dies. Of two that sense at once the later one counts, which is by 0.56 standard deviations
/// later than one; a border between them comes after a block of 4 KiB or more, which lies in one place.
fn may_be_of_dies(swept: &Swept, level: Level, period: usize) -> bool {
    let bytes = swept.sweep.step * period as u64;
    let most = match ByteSize(SHORTEST_CHUNK) {
        block if bytes < block => return false,
        block if bytes == block => LATER_OF_TWO * 4.0 / 3.0,
        // Their levels are of fewer borders.
        _ => LATER_OF_TWO * 16.0 / 9.0,
    };
    let folded = fold(&level.of_all(&swept.points), period);
    let (others, last) = folded.split_at(period - 1);
    median(last.to_vec()) - median(others.to_vec()) < most * usual_deviation(swept)
}

/// Standard deviations by which the later of two is later than one: 1/√π.
const LATER_OF_TWO: f64 = 0.5642;

/// A chunk holds pages; where reads block by block showed nothing but the period of these, what they showed is the pages.
fn doubt_a_chunk_of_pages(findings: &mut Findings) {
    let p = &mut findings.parameters;
    let is_a_page = p.chunk_bytes.value.is_some() && p.chunk_bytes.value == p.page_bytes.value;
    if !is_a_page || p.chunk_bytes.value >= Some(SHORTEST_CHUNK) {
        return;
    }
    (p.chunk_bytes, p.hot_location) = (Figure::unknown(), Figure::unknown());
    findings.hot_leads.clear();
    let recipe = "reads of single blocks, start moved block by block, beside reads of two blocks";
    for key in ["chunk_bytes", "hot_location"] {
        let reason = "what repeats are pages; chunks of them could not be told apart".to_owned();
        findings.because(key, Because { recipe, reason, curve: None });
    }
}

/// Chunks hold whole pages: where a page is longer than the chunk, one of the two is something else, and which one is not known. As
/// long as a chunk that is not certain, what was found may be that chunk.
fn doubt_a_chunk_within_a_page(findings: &mut Findings) -> bool {
    let p = &mut findings.parameters;
    if p.chunk_bytes.known().is_none() && p.chunk_bytes.value == p.page_bytes.value {
        p.doubt("page_bytes");
    }
    let is_shorter = p.chunk_bytes.value.zip(p.page_bytes.value).is_some_and(|(chunk, page)| chunk < page);
    if is_shorter {
        ["page_bytes", "chunk_bytes", "hot_location"].into_iter().for_each(|key| p.doubt(key));
    }
    is_shorter
}

/// Probability at which a period counts as a page.
const CHANCE_OF_A_PAGE: f64 = 0.001;

/// The last starts of pages must be slower than the others in nearly all pairs (Cliff's δ).
const APART: f64 = 0.8;

/// Pages that a sweep must hold.
const PAGES_MIN: usize = 4;

/// The smallest period of which the last start, from which the next page is touched, is the slow one. Longer ones may be
/// there as well: pages are transferred in parts, and parallel units hold several pages. Where pages differ in speed by more than
/// that start costs, it is held against the others of its own page.
fn smallest_page(levels: &[f64], smallest_effect: f64) -> Option<usize> {
    let effect = smallest_effect * median(levels.to_vec());
    (2..=levels.len() / PAGES_MIN)
        .find(|&period| last_stands_out(levels, period, effect) || stands_out_in_pages(levels, period, effect))
}

/// Whether the last start of so many takes longer than the others, by so much at least.
fn last_stands_out(levels: &[f64], period: usize, effect: f64) -> bool {
    let (last, others) = last_and_others(levels, period);
    let test = rank::compare(&last, &others);
    // The one before it lies within the page: in the slowest of several pages it would take as long.
    let before = levels.iter().skip(period - 2).step_by(period).copied().collect();
    let least = median(others).max(median(before)) + effect;
    test.delta >= APART && test.p_greater < CHANCE_OF_A_PAGE && median(last) >= least
}

/// The levels of the last start of so many, and of the others.
fn last_and_others(levels: &[f64], period: usize) -> (Vec<f64>, Vec<f64>) {
    let (last, others): (Vec<_>, Vec<_>) = levels.iter().enumerate().partition(|(i, _)| i % period == period - 1);
    let values = |part: Vec<(usize, &f64)>| part.into_iter().map(|(_, &level)| level).collect::<Vec<f64>>();
    (values(last), values(others))
}

/// The same, held against the others of its own page, which are alike: nine in ten last starts take longer by half as much again
/// as nineteen in twenty others differ.
fn stands_out_in_pages(levels: &[f64], period: usize, effect: f64) -> bool {
    let page = |starts: &[f64]| {
        let own = median(starts[..(period - 1).min(starts.len())].to_vec());
        starts.iter().map(|level| level - own).collect::<Vec<f64>>()
    };
    let more: Vec<f64> = levels.chunks(period).flat_map(page).collect();
    let (mut last, others) = last_and_others(&more, period);
    let mut differ: Vec<f64> = others.into_iter().map(f64::abs).collect();
    last.sort_unstable_by(f64::total_cmp);
    differ.sort_unstable_by(f64::total_cmp);
    last[last.len() / 10] > 1.5 * differ[differ.len() * 19 / 20] && last_stands_out(&more, period, effect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_told_by_the_one_start_that_touches_the_next_page() {
        let curve =
            |slow: &dyn Fn(usize) -> f64| (0..256).map(|i| 70.0 + 0.1 * (i % 3) as f64 + slow(i)).collect::<Vec<_>>();
        let every = |n: usize, by: f64| move |i: usize| if i % n == n - 1 { by } else { 0.0 };
        assert_eq!(smallest_page(&curve(&every(8, 3.0)), 0.005), Some(8));
        assert_eq!(smallest_page(&curve(&|_| 0.0), 0.005), None);
        // Pages of three speeds.
        let speeds = |i: usize| [0.0, 25.0, 70.0][i / 8 % 3] + if i % 8 == 7 { 4.0 } else { 0.0 };
        assert_eq!(smallest_page(&curve(&speeds), 0.005), Some(8));
        assert_eq!(smallest_page(&curve(&|i| [0.0, 25.0, 70.0][i / 8 % 3]), 0.005), None);
        // Not where the page is begun late.
        assert_eq!(smallest_page(&curve(&|i| if i % 8 == 3 { 3.0 } else { 0.0 }), 0.005), None);
        // Parts of pages are told, also where what lies behind a page takes much longer.
        assert_eq!(smallest_page(&curve(&|i| every(2, 3.0)(i) + every(16, 60.0)(i)), 0.005), Some(2));
    }

    #[test]
    fn a_chunk_that_is_shorter_than_a_page_is_doubted_and_so_is_the_page() {
        let found = |chunk: u64, page: u64| {
            let mut findings = Findings::default();
            findings.parameters.chunk_bytes = Figure::certain(chunk, chunk, chunk);
            findings.parameters.page_bytes = Figure::certain(page, page, page);
            let doubted = doubt_a_chunk_within_a_page(&mut findings);
            let p = &findings.parameters;
            let is_open = |figure: &Figure<u64>| figure.known().is_none();
            assert_eq!((is_open(&p.chunk_bytes), is_open(&p.page_bytes)), (doubted, doubted));
            doubted
        };
        assert!(found(8192, 32768));
        assert!(!found(32768, 8192) && !found(8192, 8192));
        let mut findings = Findings::default();
        findings.parameters.chunk_bytes = Figure::inconclusive(8192, 8192, 8192);
        findings.parameters.page_bytes = Figure::certain(8192, 8192, 8192);
        doubt_a_chunk_within_a_page(&mut findings);
        assert_eq!(findings.parameters.page_bytes.known(), None, "it may be the chunk");
    }

    #[test]
    fn a_page_is_doubted_where_the_later_of_two_dies_makes_the_difference() {
        let sweep = straddling(ByteSize(512));
        let noisy = |by: u64| {
            let values =
                |last: bool| (0..60).map(|n| 90_000 + 250 * n + if last { by } else { 0 }).collect::<Vec<u64>>();
            Swept::of_starts(sweep, (0..256).map(|n| values(n % 32 == 31)).collect(), None)
        };
        assert!(may_be_of_dies(&noisy(3_000), Level::Median, 32));
        assert!(!may_be_of_dies(&noisy(9_000), Level::Median, 32));
        assert!(!may_be_of_dies(&noisy(3_000), Level::Median, 4), "within a block of 4 KiB there are no dies");
    }
}
