//! The flash page: what a read cannot split.
//!
//! Two blocks are read, the start moved block by block. Where a drive reads whole pages, the one start in each page
//! from which two pages are touched stands out.
//!
//! Source: the push-read of Queenie (SYSTOR 2022), a published description. Added: all of the inference.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::Figure;

use super::location::{Layout, Locations};
use super::sweep::{Level, SHORTEST_CHUNK, Sweep, Swept, measure, usual_deviation};
use crate::draft::{Because, ProfileDraft, key};
use crate::prober::Prober;
use crate::stats::{figure, fold, median, rank};
use crate::step::Step;
use crate::verdict::{Doubt, Wording, applying, doubt};
use crate::{Effort, LearnError};

pub(crate) const PAGES: Step = Step::new("pages", &["page_bytes"]).layout().reads_alone();

fn straddling(logical_block: ByteSize) -> Sweep {
    let (read, window) = (logical_block * 2, logical_block * 256);
    Sweep { read, step: logical_block, window, turn: window, reads_a_start: 100, smallest_effect: 0.005 }
}

/// What the verdict of the page rests on, beside the same estimate on resampled reads.
struct PageEvidence<'a> {
    swept: &'a Swept,
    level: Level,
    page: Option<u64>,
    chunk: Figure<u64>,
}

impl PageEvidence<'_> {
    /// Why a page may be inconclusive.
    const PAGE_DOUBTS: [Doubt<Self>; 3] = [
        doubt("dies", Wording::Then(", by no more than waiting for the slower of two dies explains"), |evidence| {
            let period = evidence.page.map(|page| (page / evidence.swept.sweep.step.bytes()) as usize);
            period.is_some_and(|period| may_be_of_dies(evidence.swept, evidence.level, period))
        }),
        doubt("as long as a chunk that is not certain, and may be that chunk", Wording::Nothing, |evidence| {
            evidence.chunk.known().is_none() && evidence.chunk.value == evidence.page
        }),
        doubt("longer than the chunk", Wording::Then(CHUNK_WITHIN_PAGE), is_longer_than_the_chunk),
    ];
}

impl PageEvidence<'_> {
    /// Why a chunk and its hot location may be inconclusive beside a page; the doubts of chunks by themselves are in
    /// `chunk.rs`.
    const CHUNK_BESIDE_PAGE_DOUBTS: [Doubt<Self>; 1] =
        [doubt("a page is longer", Wording::Then(CHUNK_WITHIN_PAGE), is_longer_than_the_chunk)];
}

const CHUNK_WITHIN_PAGE: &str = "; but a chunk holds whole pages, and the chunk found is shorter than the page found";

/// Chunks hold whole pages: where a page is longer than the chunk, one of the two is something else, and which one is
/// not known.
fn is_longer_than_the_chunk(evidence: &PageEvidence<'_>) -> bool {
    evidence.chunk.value.zip(evidence.page).is_some_and(|(chunk, page)| chunk < page)
}

/// Measures reads that touch one page or two.
pub(crate) fn probe_page(
    prober: &mut Prober<'_>,
    locations: Locations,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Layout, LearnError> {
    prober.fill_region(progress)?;
    let (swept, level, page) = read_off_page(prober, progress)?;
    if page.value.is_some() {
        draft.present_unless_chance("page_bytes", PAGE_BY_CHANCE_PROBABILITY);
    }
    let locations = without_a_chunk_of_pages(locations, page.value, draft);
    let evidence = PageEvidence { swept: &swept, level, page: page.value, chunk: locations.chunk };
    let doubts = applying(&PageEvidence::PAGE_DOUBTS, &evidence);
    let recipe = "reads of two blocks in random order, start offset block by block from random aligned bases";
    let reason = match page.value {
        Some(_) => doubts.reason("the one start in each page from which a read crosses into the next page is slower"),
        None => "no start offset is slower".to_owned(),
    };
    draft.settle(key!(page_bytes), doubts.judge(page), Because { recipe, reason, curve: None });
    draft.curves.location.push(swept.curve());
    let doubts = applying(&PageEvidence::CHUNK_BESIDE_PAGE_DOUBTS, &evidence);
    let (chunk, hot) = (doubts.judge(locations.chunk), doubts.judge(locations.hot));
    if !doubts.is_empty() {
        draft.set(key!(chunk_bytes), chunk);
        draft.set(key!(hot_location), hot);
        ["chunk_bytes", "hot_location"].into_iter().for_each(|key| draft.append_to_reason(key, &doubts.reason("")));
    }
    Ok(Layout(Locations { chunk, hot, ..locations }))
}

/// Measures the sweep, and reads the smallest page off the level that shows it.
fn read_off_page(
    prober: &mut Prober<'_>,
    progress: &mut dyn Progress,
) -> Result<(Swept, Level, Figure<u64>), LearnError> {
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
    Ok((swept, level, page))
}

/// Whether a period may be of dies. Of two that sense at once the later one counts, which is by 0.56 standard
/// deviations later than one; a border between them comes after a block of 4 KiB or more, which is in one place.
fn may_be_of_dies(swept: &Swept, level: Level, period: usize) -> bool {
    let bytes = swept.sweep.step * period as u64;
    let most = match ByteSize(SHORTEST_CHUNK) {
        block if bytes < block => return false,
        block if bytes == block => LATER_OF_TWO_DEVIATIONS * 4.0 / 3.0,
        // Their levels are of fewer borders.
        _ => LATER_OF_TWO_DEVIATIONS * 16.0 / 9.0,
    };
    let folded = fold(&level.of_all(&swept.points), period);
    let (others, last) = folded.split_at(period - 1);
    median(last.to_vec()) - median(others.to_vec()) < most * usual_deviation(swept)
}

/// Standard deviations by which the later of two is later than one: 1/√π.
const LATER_OF_TWO_DEVIATIONS: f64 = 0.5642;

/// A chunk holds pages; where reads block by block showed nothing but the period of these, what they showed is the
/// pages.
fn without_a_chunk_of_pages(locations: Locations, page: Option<u64>, draft: &mut ProfileDraft) -> Locations {
    let chunk = locations.chunk.value;
    if chunk.is_none() || chunk != page || chunk >= Some(SHORTEST_CHUNK) {
        return locations;
    }
    let unknown = Locations { chunk: Figure::unknown(), hot: Figure::unknown(), leads: Vec::new() };
    draft.set(key!(chunk_bytes), unknown.chunk);
    draft.set(key!(hot_location), unknown.hot);
    let recipe = "reads of single blocks, start offset block by block, compared with reads of two blocks";
    for key in ["chunk_bytes", "hot_location"] {
        let reason = "pages repeat; chunks of that length could not be distinguished from them".to_owned();
        draft.because(key, Because { recipe, reason, curve: None });
    }
    unknown
}

/// Probability that chance sets the last starts apart, below which a period counts as a page: several hundred periods
/// are tried.
const PAGE_BY_CHANCE_PROBABILITY: f64 = 0.001;

/// Cliff's δ, the difference of the shares of pairs that are slower and faster, from which on the last starts of
/// pages are slower than the others in nearly all pairs.
const APART_DELTA: f64 = 0.8;

/// Pages that a sweep must hold.
const PAGES_MIN: usize = 4;

/// The smallest period of which the last start, from which the next page is touched, is the slow one. Longer ones may
/// be there as well: pages are transferred in parts, and parallel units hold several pages. Where pages differ in speed
/// by more than that start costs, it is compared with the others of its own page.
fn smallest_page(levels: &[f64], smallest_effect: f64) -> Option<usize> {
    let effect = smallest_effect * median(levels.to_vec());
    (2..=levels.len() / PAGES_MIN)
        .find(|&period| last_stands_out(levels, period, effect) || stands_out_in_pages(levels, period, effect))
}

/// Whether the last start of so many takes longer than the others, by so much at least.
fn last_stands_out(levels: &[f64], period: usize, effect: f64) -> bool {
    let (last, others) = last_and_others(levels, period);
    let test = rank::compare(&last, &others);
    // The one before it is within the page: in the slowest of several pages it would take as long.
    let before = levels.iter().skip(period - 2).step_by(period).copied().collect();
    let least = median(others).max(median(before)) + effect;
    test.delta >= APART_DELTA && test.p_greater < PAGE_BY_CHANCE_PROBABILITY && median(last) >= least
}

/// The levels of the last start of so many, and of the others.
fn last_and_others(levels: &[f64], period: usize) -> (Vec<f64>, Vec<f64>) {
    let (last, others): (Vec<_>, Vec<_>) = levels.iter().enumerate().partition(|(i, _)| i % period == period - 1);
    let values = |part: Vec<(usize, &f64)>| part.into_iter().map(|(_, &level)| level).collect::<Vec<f64>>();
    (values(last), values(others))
}

/// The same, compared with the others of its own page, which are alike: nine in ten last starts take longer by half as
/// much again as nineteen in twenty others differ.
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
    last[last.len() / 10] > IN_PAGES_FACTOR * differ[differ.len() * 19 / 20] && last_stands_out(&more, period, effect)
}

/// Factor by which nine in ten last starts are further from their page than nineteen in twenty others.
const IN_PAGES_FACTOR: f64 = 1.5;

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
        // Not where the page is started late.
        assert_eq!(smallest_page(&curve(&|i| if i % 8 == 3 { 3.0 } else { 0.0 }), 0.005), None);
        // Parts of pages are told, also where what is behind a page takes much longer.
        assert_eq!(smallest_page(&curve(&|i| every(2, 3.0)(i) + every(16, 60.0)(i)), 0.005), Some(2));
    }

    #[test]
    fn a_chunk_that_is_shorter_than_a_page_is_doubted_and_so_is_the_page() {
        let sweep = straddling(ByteSize(512));
        let swept =
            Swept::of_starts(sweep, (0..256).map(|n| vec![if n % 64 == 63 { 90 } else { 60 }; 9]).collect(), None);
        let judged = |chunk: Figure<u64>, page: u64| {
            let evidence = PageEvidence { swept: &swept, level: Level::Median, page: Some(page), chunk };
            let page = applying(&PageEvidence::PAGE_DOUBTS, &evidence).judge(Figure::certain(page, page, page));
            (
                applying(&PageEvidence::CHUNK_BESIDE_PAGE_DOUBTS, &evidence).judge(chunk).known().is_none(),
                page.known().is_none(),
            )
        };
        let certain = |chunk| Figure::certain(chunk, chunk, chunk);
        assert_eq!(judged(certain(8192), 32768), (true, true));
        assert_eq!(judged(certain(32768), 8192), (false, false));
        assert_eq!(judged(certain(8192), 8192), (false, false));
        assert!(judged(Figure::inconclusive(8192, 8192, 8192), 8192).1, "it may be the chunk");
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
