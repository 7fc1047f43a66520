//! Which of the sweeps of `location.rs` tells the chunk, and what else its period may be.
//!
//! The shortest reads for which the place matters tell it. Longer ones that save more, or reads whose places make no
//! difference where some cross what would be a border, say that it is another one; pages of several speeds and rows of
//! chunks repeat too.
//!
//! Source: the definition of the chunk is that of Kakaraparthy et al., PVLDB 13(4), 2019; the rules are our own.

use flashwise_block::ByteSize;
use flashwise_profile::Figure;

use super::channels;
use super::sweep::{Effect, OF_PAGES_SHARE, PAGES_DIFFER_SHARE, Sweep, Swept, ends, scatter};
use crate::stats::{Samples, best_period, explained, fold, median};
use crate::verdict::{Doubt, Wording, doubt};

/// The longest read of the coarse sweeps.
pub(super) const LONGEST_READ: ByteSize = ByteSize::kib(128);

/// Whether a period is of stripes or rows of chunks: the place of reads that are half as long as it makes no
/// difference, though some of them cross the border of a chunk that long, and others do not. Half as much that is
/// shared saves half as much.
pub(super) fn is_of_more_than_chunks(sweeps: &[Swept], shown_by: usize) -> bool {
    let Sweep { step, read, .. } = sweeps[shown_by].sweep;
    let levels = sweeps[shown_by].levels();
    let period = best_period(&levels).0;
    let (low, high) = ends(&fold(&levels, period));
    let shorter = sweeps.iter().filter(|swept| {
        let sweep = swept.sweep;
        sweep.step == step && sweep.read > step && sweep.read < read && sweep.read * 2 <= step * period as u64
    });
    // The longest of them shows most.
    shorter.max_by_key(|swept| swept.sweep.read).is_some_and(|swept| {
        let (least, most) = ends(&fold(&swept.levels(), period));
        most - least < FLAT_SHARE * (high - low) * swept.sweep.read.bytes() as f64 / read.bytes() as f64
    })
}

/// Whether reads of several times the length save as many times as much, at the same place: of a row of chunks one
/// place is better than others by the same, however much is read.
pub(super) fn grows(sweeps: &[Swept], shown_by: usize) -> bool {
    let (Sweep { step, read, .. }, period) = (sweeps[shown_by].sweep, period_of(&sweeps[shown_by]));
    let longer = sweeps.iter().filter(|swept| {
        let sweep = swept.sweep;
        sweep.step == step && sweep.read >= read * GROWN && sweep.read <= period && period_of(swept) == period
    });
    longer.max_by_key(|swept| swept.sweep.read).is_some_and(|swept| {
        let times = swept.sweep.read.bytes() as f64 / read.bytes() as f64;
        has_a_valley(swept) && saved_by(swept) >= AS_MANY_SHARE * times * saved_by(&sweeps[shown_by])
    })
}

/// How many times as long they are at least, and the share of so many times as much.
const GROWN: u64 = 4;
/// Share of so many times as much that they save, at least; the rest is noise.
const AS_MANY_SHARE: f64 = 0.7;

/// The chunk of which what was found is but a part. Reads across a border between pages, dies or planes of one channel
/// are the faster ones too, but those across the border between two channels are faster still, because both move data:
/// where of all borders one in a few stands out as the fastest, and it is the one at the start, chunks are between
/// those.
pub(super) fn chunk_of_fastest_border(sweeps: &[Swept], found: Figure<u64>) -> Option<u64> {
    let part = ByteSize(found.value?);
    let single = sweeps.first()?;
    let step = single.sweep.step;
    if part < step || !part.is_multiple_of(step) {
        return None;
    }
    let crosses = |swept: &&Swept| swept.sweep.step == step && swept.sweep.read > step && swept.sweep.read <= part;
    let leads = sweeps.iter().filter(crosses).flat_map(|swept| leads_of_borders(swept, (part / step) as usize));
    let (_, periods) = leads.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(part.bytes() * periods as u64)
}

/// By which share of the latency the border at the start of so many periods is faster than those between them, where it
/// stands out.
fn leads_of_borders(swept: &Swept, period: usize) -> Vec<(f64, usize)> {
    let levels = swept.levels();
    let across = (swept.sweep.read / swept.sweep.step) as usize;
    let lead = |periods: usize| {
        let (whole, n) = (period * periods, levels.len());
        let folded = fold(&levels, whole);
        // Starts from which the border is crossed.
        let crossing = |border: usize| (1..across).map(move |back| (border * period + whole - back) % whole);
        let cost = |border| crossing(border).map(|start| folded[start]).sum::<f64>() / (across - 1) as f64;
        let (first, mut others) = (cost(0), (1..periods).map(cost).collect::<Vec<f64>>());
        others.sort_unstable_by(f64::total_cmp);
        let (next, last) = (others[0], others[others.len() - 1]);
        let level = median(levels.clone()).max(1.0);
        let noise = scatter(&levels, whole) / ((n / whole * (across - 1)) as f64).sqrt();
        let lead = (next - first) / level;
        let stands_out = lead >= swept.sweep.smallest_effect.max(BORDER_STANDARD_ERRORS * noise);
        (stands_out && last - next <= next - first).then_some((lead, periods))
    };
    let seen_twice = |periods: &usize| 2 * period * periods <= levels.len();
    (1..=5).map(|n| 1 << n).take_while(seen_twice).filter_map(lead).collect()
}

/// Standard errors of a mean level by which the fastest border must lead.
const BORDER_STANDARD_ERRORS: f64 = 5.0;

/// Share of the difference that the place would make of reads that cross borders of chunks, below which it makes
/// none.
const FLAT_SHARE: f64 = 0.35;

/// The sweep of single blocks that one of longer reads is compared with.
pub(super) fn single_of(sweeps: &[Swept], i: usize) -> Option<&Swept> {
    sweeps.first().filter(|single| i > 0 && single.sweep.step == sweeps[i].sweep.step)
}

/// The sweep that tells the chunk: of the reads that are longer than a step the shortest for which the place matters.
/// Longer reads also show what several chunks have in common, a stripe or a superpage. From the start of a chunk a read
/// meets as few channels as it can, and reads that are shared by two are the faster ones; where those across a border
/// are slower, it may be one of pages on one channel, so these come second, and where what is across the border is read
/// when the rest has been, it is such pages.
pub(super) fn sweep_of_chunk(sweeps: &[Swept], effects: &[Option<Effect>]) -> Option<usize> {
    let shows = |i: &usize| effects[*i].is_some() && sweeps[*i].sweep.read > sweeps[*i].sweep.step;
    let folded = |i: usize| {
        let levels = sweeps[i].levels();
        fold(&levels, best_period(&levels).0)
    };
    let shares = |i: &usize| {
        let folded = folded(*i);
        folded[0] >= folded.iter().sum::<f64>() / folded.len() as f64
    };
    let alone = sweeps.first().map_or(0.0, |shortest| median(shortest.levels()));
    let at_once = |i: &usize| {
        let (low, high) = ends(&folded(*i));
        high - low < ONE_BY_ONE_SHARE * alone
    };
    let found = (0..sweeps.len()).filter(shows).find(shares);
    found.or_else(|| (0..sweeps.len()).filter(shows).find(at_once))
}

/// The sweep of reads as long as a chunk of which what was found is but a part: pages and dies on one channel show in
/// short reads. Reads as long as a chunk save nearly half where two channels share them, and longer ones nothing, so
/// that they stand out.
pub(super) fn chunk_that_stands_out(sweeps: &[Swept], effects: &[Option<Effect>], found: usize) -> Option<usize> {
    let share = |i: usize| effects[i].map_or(0.0, |effect| effect.share);
    let period = |i: usize| period_of(&sweeps[i]);
    let part = period(found);
    let is_chunk_long = |i: &usize| sweeps[*i].sweep.read == period(*i) && period(*i) > part;
    let parts = (0..sweeps.len()).filter(|&i| period(i) == part).map(share).fold(0.0, f64::max);
    let longer = (0..sweeps.len()).filter(is_chunk_long).filter(|&i| falls_to_its_lowest(&sweeps[i]));
    let longer = longer.max_by(|&a, &b| share(a).total_cmp(&share(b)))?;
    (share(longer) >= STANDS_OUT_SHARE_MIN && share(longer) >= STANDS_OUT_FACTOR_MIN * parts).then_some(longer)
}

/// The reads as long as the chunk that was found first, where their best place is in its middle, as that of any chunk
/// is: then it is none of pages and dies on one channel, although longer reads stand out.
pub(super) fn valley_of(sweeps: &[Swept], effects: &[Option<Effect>], found: usize) -> Option<usize> {
    let part = period_of(&sweeps[found]);
    let as_long = (0..sweeps.len()).filter(|&i| effects[i].is_some() && sweeps[i].sweep.read == part);
    as_long.filter(|&i| period_of(&sweeps[i]) == part).find(|&i| has_a_valley(&sweeps[i]))
}

/// Whether a curve falls to its lowest from both sides.
fn has_a_valley(swept: &Swept) -> bool {
    let levels = swept.levels();
    let folded = fold(&levels, best_period(&levels).0);
    folded.len() >= 4 && falls(&folded, VALLEY_SHARE_MAX)
}

/// The longer reads that save most, at best those as long as what they tell, where they save more time at one place in
/// several of the chunks found than shorter ones do at each: reads longer than a chunk are on the same channels
/// wherever they start.
pub(super) fn longer_that_saves_more(sweeps: &[Swept], effects: &[Option<Effect>], found: usize) -> Option<usize> {
    let part = period_of(&sweeps[found]);
    let saves = |i: usize| saved_by(&sweeps[i]);
    let shown = || (0..sweeps.len()).filter(|&i| effects[i].is_some());
    let part_saves = shown().filter(|&i| period_of(&sweeps[i]) == part).map(saves).fold(0.0, f64::max);
    let is_longer = |i: &usize| {
        let period = period_of(&sweeps[*i]);
        period > part && period.is_multiple_of(part) && has_a_valley(&sweeps[*i])
    };
    let longer = || shown().filter(is_longer).filter(|&i| saves(i) >= SAVES_MORE_FACTOR * part_saves);
    let most = |of: &mut dyn Iterator<Item = usize>| of.max_by(|&a, &b| saves(a).total_cmp(&saves(b)));
    let is_as_long = |i: &usize| sweeps[*i].sweep.read == period_of(&sweeps[*i]);
    most(&mut longer().filter(is_as_long)).or_else(|| most(&mut longer()))
}

/// Share of the difference that the neighbours of the best of four places may keep: half, and some noise.
const VALLEY_SHARE_MAX: f64 = 0.65;
/// Factor by which longer reads must save more time than shorter ones to be a rival.
const SAVES_MORE_FACTOR: f64 = 1.5;

/// What the best place of a sweep saves, beside the worst.
fn saved_by(swept: &Swept) -> f64 {
    let levels = swept.levels();
    let (low, high) = ends(&fold(&levels, best_period(&levels).0));
    high - low
}

/// The period of a sweep.
pub(super) fn period_of(swept: &Swept) -> ByteSize {
    swept.sweep.step * best_period(&swept.levels()).0 as u64
}

/// What a chunk was read off.
pub(super) struct ReadOff<'a> {
    pub(super) sweeps: &'a [Swept],
    /// Whether reads of another length repeat with another chunk.
    pub(super) has_a_rival: bool,
    /// The chunk of which what was read off is but a part, as the fastest of all borders says.
    pub(super) longer: Option<u64>,
}

impl ReadOff<'_> {
    pub(super) fn has_pages_of_several_speeds(&self) -> bool {
        self.sweeps[0].has_several_speeds()
    }
}

impl ReadOff<'_> {
    /// Why a chunk may be inconclusive, beside the same estimate on resampled reads, by how it was read off. Those of
    /// [`ChunkEvidence::OTHER_EXPLANATION_DOUBTS`] follow, and in `page.rs` those of a page that is longer.
    pub(super) const READ_OFF_DOUBTS: [Doubt<Self>; 2] = [
        doubt(
            "reads of another length",
            Wording::Then(
                "; reads of another length repeat with another period, and it is unknown which of the two is the chunk",
            ),
            |read_off| read_off.has_a_rival,
        ),
        // Of pages of several speeds, one border is between slow ones and another between fast ones.
        doubt("a boundary of pages of several speeds", Wording::Nothing, |read_off| {
            read_off.longer.is_some() && read_off.has_pages_of_several_speeds()
        }),
    ];
}

/// What may be a chunk, with the sweeps that show it.
pub(super) struct ChunkEvidence<'a> {
    pub(super) sweeps: &'a [Swept],
    /// The sweep that shows it.
    pub(super) shown_by: usize,
    pub(super) chunk: Figure<u64>,
    /// Whether the sweeps of several blocks would have shown the smallest effect that counts.
    pub(super) coarse_would_show: bool,
}

impl ChunkEvidence<'_> {
    /// Why a chunk and its hot location may be inconclusive, by what else repeats as they do. The first that applies is
    /// enough.
    pub(super) const OTHER_EXPLANATION_DOUBTS: [Doubt<Self>; 7] = [
        doubt("a chunk of more blocks", Wording::Then("; longer chunks would not have been detected"), |evidence| {
            evidence.is_of_blocks() && !evidence.coarse_would_show
        }),
        doubt("pages on one channel", Wording::Then("; pages on one channel could show the same"), |evidence| {
            evidence.is_of_blocks() && channels::moves_one_by_one(&evidence.sweeps[evidence.shown_by])
        }),
        doubt(
            "a row of chunks",
            Wording::Then("; but reads within such a chunk are transferred as by several channels"),
            |evidence| channels::lies_on_several(evidence.sweeps, evidence.bytes()),
        ),
        doubt(
            "little is saved",
            Wording::Then("; but the best start saves much less than sharing a read between two channels would"),
            |evidence| {
                let saved = channels::share_saved(evidence.sweeps, evidence.bytes());
                saved.is_some_and(|saved| saved < channels::SAVES_LITTLE_SHARE)
            },
        ),
        doubt("rows of pages", Wording::Then(ROWS_OF_PAGES), |evidence| {
            let is_long = evidence.chunk.value.is_some_and(|chunk| ByteSize(chunk) >= LONGEST_READ);
            evidence.sweeps.first().is_some_and(|single| {
                (is_long || single.sweep.turn != single.sweep.window) && single.has_several_speeds()
            })
        }),
        doubt("little of a long read is saved", Wording::Then(ROWS_OF_PAGES), |evidence| {
            spares_little(evidence.sweeps, evidence.shown_by)
        }),
        doubt("single blocks repeat alike", Wording::Then(ROWS_OF_PAGES), |evidence| {
            is_of_pages(evidence.sweeps, evidence.shown_by)
        }),
    ];
}

/// Rows of pages of several speeds repeat as well.
const ROWS_OF_PAGES: &str = "; rows of pages of several speeds could show the same";

impl ChunkEvidence<'_> {
    fn bytes(&self) -> ByteSize {
        ByteSize(self.chunk.value.unwrap_or(0))
    }

    /// Whether single blocks showed it.
    fn is_of_blocks(&self) -> bool {
        self.sweeps[self.shown_by].sweep.step < SHORTEST_STEP
    }
}

/// Steps of the sweeps that show chunks of several blocks.
const SHORTEST_STEP: ByteSize = ByteSize::kib(4);

/// Whether some places of a sweep are odd, though all pages are alike: what is there shows in a part of what was read
/// only.
pub(super) fn show_in_places(sweeps: &[Swept]) -> bool {
    let are_odd = |swept: &Swept| {
        let levels = swept.levels();
        let usual = median(levels.clone());
        let odd = levels.iter().filter(|&&level| (level / usual - 1.0).abs() > ODD_SHARE).count();
        odd as f64 >= ODD_PLACES_SHARE_MIN * levels.len() as f64
    };
    sweeps.first().is_some_and(|single| !single.has_several_speeds()) && sweeps.iter().any(are_odd)
}

/// Share of the usual latency by which a place that is odd takes longer or less.
const ODD_SHARE: f64 = 0.1;
/// Share of the places that are odd from which on it is not chance.
const ODD_PLACES_SHARE_MIN: f64 = 0.03;

/// Whether reads of single blocks repeat with the period that was found: they are on one channel each, and what repeats
/// are pages that are faster than others. Nothing is known of it where what pages cost was taken off.
fn is_of_pages(sweeps: &[Swept], shown_by: usize) -> bool {
    let (single, swept) = (&sweeps[0], &sweeps[shown_by]);
    if shown_by == 0 || single.sweep.step != swept.sweep.step || swept.own.iter().any(|&own| own != 0.0) {
        return false;
    }
    let (levels, period) = (single.levels(), best_period(&swept.levels()).0);
    if period > levels.len() / 2 {
        return false;
    }
    let (low, high) = ends(&fold(&levels, period));
    high >= low * (1.0 + PAGES_DIFFER_SHARE) && explained(&levels, period) >= OF_PAGES_SHARE
}

/// Whether the best place spares a read so little of what its length takes that no second channel moves a part of it,
/// and not many times as much as pages differ by among themselves.
fn spares_little(sweeps: &[Swept], i: usize) -> bool {
    let Some(single) = single_of(sweeps, i) else { return false };
    let levels = sweeps[i].levels();
    let (low, high) = ends(&fold(&levels, best_period(&levels).0));
    let spread = |samples: &Samples| samples.quantile(0.9) - samples.quantile(0.1);
    let pages_differ = median(single.points.iter().map(spread).collect());
    let moved = median(levels) - median(single.levels());
    high - low < (SPARED_SHARE_MIN * moved).min(PAGES_SPREADS_MAX * pages_differ)
}

/// Share of the time to move a read that a second channel spares at the best place, at least: half where two share it
/// evenly, unless the host interface is the slower one.
const SPARED_SHARE_MIN: f64 = 0.125;
/// Spreads of the latency of single pages that a place of fast pages spares, at most: a read in order meets a slow page
/// at its start, and at its end, and each may hold others up.
const PAGES_SPREADS_MAX: f64 = 4.0;

/// Whether reads that start next to the fastest place are faster than most too, as they are where two channels share
/// them less evenly: what is fast at one place alone is one die less.
fn falls_to_its_lowest(swept: &Swept) -> bool {
    let levels = swept.levels();
    falls(&fold(&levels, best_period(&levels).0), NEIGHBOURS_SHARE_MAX)
}

/// Share of the difference between the fastest and the slowest place that the neighbours of the fastest keep, at most,
/// where a curve falls to it from both sides.
const NEIGHBOURS_SHARE_MAX: f64 = 0.5;

/// Whether the neighbours of the lowest phase keep at most so much of the difference.
fn falls(folded: &[f64], share: f64) -> bool {
    let ((low, high), n) = (ends(folded), folded.len());
    let lowest = lowest_phase(folded, 0.0);
    [lowest + 1, lowest + n - 1].iter().all(|at| folded[at % n] <= low + share * (high - low))
}

/// Share of its latency by which the place of a read matters, at least, where it stands out: reads as long as a chunk
/// save nearly half of what is moved.
const STANDS_OUT_SHARE_MIN: f64 = 0.25;
/// Factor on what it matters for reads that show a part of the chunk, at least.
const STANDS_OUT_FACTOR_MIN: f64 = 2.0;

/// Of the sweeps that repeat as a given one does, the one of which the period explains most.
pub(super) fn clearest(sweeps: &[Swept], effects: &[Option<Effect>], shown_by: usize) -> usize {
    let periods: Vec<(usize, f64)> = sweeps.iter().map(|swept| best_period(&swept.levels())).collect();
    let step = sweeps[shown_by].sweep.step;
    let alike = (0..sweeps.len())
        .filter(|&i| effects[i].is_some() && sweeps[i].sweep.step == step && periods[i].0 == periods[shown_by].0);
    alike.max_by(|&a, &b| periods[a].1.total_cmp(&periods[b].1)).unwrap_or(shown_by)
}

/// Share of the time of the shortest read that reads across a border take longer where both sides are read one after
/// the other.
const ONE_BY_ONE_SHARE: f64 = 0.3;

/// The first of the lowest phases.
pub(super) fn lowest_phase(folded: &[f64], as_low: f64) -> usize {
    let lowest = folded.iter().copied().fold(f64::MAX, f64::min);
    folded.iter().position(|&y| y <= lowest * (1.0 + as_low)).unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::sweep::{coarse, fine};
    use super::*;
    use crate::verdict::first_applying;

    pub(in crate::probes) fn swept(read_kib: u64, latency: impl Fn(u64) -> u64, single: Option<&Swept>) -> Swept {
        let sweep = coarse(ByteSize::kib(read_kib));
        let samples = (0..sweep.places() as u64).map(|n| vec![latency(n); 9]).collect();
        Swept::of_starts(sweep, samples, single)
    }

    /// Reads of 16 KiB on a drive with chunks of 16 KiB: the middle is shared best.
    pub(in crate::probes) fn shared(n: u64) -> u64 {
        [90_000, 82_000, 75_000, 82_000][(n % 4) as usize]
    }

    #[test]
    fn a_border_behind_which_one_read_begins_when_the_other_ends_is_no_chunk() {
        let effect = Some(Effect { share: 0.1, p: 0.001 });
        let border = |cost: u64| move |n: u64| 120_000 + if n % 2 == 1 { cost } else { 0 };
        let told = |cost: u64| {
            let sweeps = [swept(4, |_| 100_000, None), swept(8, border(cost), None)];
            sweep_of_chunk(&sweeps, &[None, effect])
        };
        assert_eq!(told(60_000), None);
        assert_eq!(told(5_000), Some(1));
    }

    #[test]
    fn the_fastest_of_all_borders_is_that_of_the_chunk() {
        // Reads of 8 KiB over pages of 16 KiB: across the border of two on one die they wait, across that of two dies
        // not, and across that of two channels each moves half.
        let across = |n: u64| match n % 16 {
            3 | 11 => 110_000,
            7 => 63_000,
            15 => 59_000,
            _ => 62_000,
        };
        let sweeps = [swept(4, |_| 58_000, None), swept(8, across, None)];
        let found = |kib: u64| Figure::certain(kib << 10, kib << 10, kib << 10);
        assert_eq!(chunk_of_fastest_border(&sweeps, found(32)), Some(64 << 10));
        assert_eq!(chunk_of_fastest_border(&sweeps, found(64)), None, "all its borders are alike");
        let alike = [swept(4, |_| 58_000, None), swept(16, shared, None)];
        assert_eq!(chunk_of_fastest_border(&alike, found(16)), None);
    }

    #[test]
    fn a_place_that_spares_little_of_a_long_read_may_be_one_of_fast_pages() {
        let sweep = coarse(ByteSize::kib(4));
        let singles = |differ: u64| {
            let of_start = |_| (0..8).map(|page| 228_000 + page % 2 * differ).collect();
            Swept::of_starts(sweep, (0..256).map(of_start).collect(), None)
        };
        let of = |spared: u64| swept(64, move |n| 1_800_000 - if n % 16 == 4 { spared } else { 0 }, None);
        assert!(spares_little(&[singles(22_000), of(45_000)], 1));
        assert!(!spares_little(&[singles(22_000), of(600_000)], 1), "half of what it takes to be moved");
        assert!(!spares_little(&[singles(1_000), of(45_000)], 1), "pages are alike");
    }

    #[test]
    fn places_that_are_slow_in_a_part_of_the_window_leave_open_whether_there_are_chunks() {
        let in_first = |n: u64| 190_000 + if n < 32 && n % 2 == 1 { 60_000 } else { 0 };
        let alike = swept(4, |_| 130_000, None);
        assert!(show_in_places(&[alike, swept(128, in_first, None)]));
        assert!(!show_in_places(&[swept(4, |_| 130_000, None), swept(128, |_| 190_000, None)]));
        let pages = swept(4, |n| 130_000 + n / 128 * 30_000, None);
        assert!(!show_in_places(&[pages, swept(128, in_first, None)]), "pages of several speeds do that");
    }

    #[test]
    fn a_short_chunk_is_doubted_where_longer_ones_would_not_have_shown() {
        let blocks = Swept::of_starts(fine(ByteSize(512)), (0..128).map(|n| vec![90_000 + n % 8; 9]).collect(), None);
        let chunk = Figure::certain(4096, 4096, 4096);
        let sweeps = [swept(4, |_| 90_000, None), blocks];
        let is_doubted = |coarse_would_show| {
            let evidence = ChunkEvidence { sweeps: &sweeps, shown_by: 1, chunk, coarse_would_show };
            !first_applying(&ChunkEvidence::OTHER_EXPLANATION_DOUBTS, &evidence).is_empty()
        };
        assert!(is_doubted(false));
        assert!(!is_doubted(true));
    }

    /// Reads of so many blocks of a drive whose chunks are so many blocks long, each two of them on another channel.
    fn in_chunks(blocks: u64, chunk: u64) -> impl Fn(u64) -> u64 {
        move |n| {
            let to_border = chunk - n % chunk;
            let on_first = to_border.min(blocks);
            70_000 + 5_000 * on_first.max(blocks - on_first)
        }
    }

    #[test]
    fn longer_reads_that_save_more_leave_open_whether_short_ones_show_chunks() {
        // Two planes share the sense of every other pair of blocks, and chunks are eight blocks long.
        let pairs = |n: u64| if n.is_multiple_of(2) { 97_000 } else { 93_000 };
        let sweeps = [swept(4, |_| 86_000, None), swept(8, pairs, None), swept(32, in_chunks(8, 8), None)];
        let effects = [None, Some(Effect { share: 0.04, p: 0.001 }), Some(Effect { share: 0.2, p: 0.001 })];
        assert_eq!(longer_that_saves_more(&sweeps, &effects, 1), Some(2));
        assert_eq!(longer_that_saves_more(&sweeps, &effects, 2), None, "nothing is longer");
        let alike = [swept(4, |_| 86_000, None), swept(8, pairs, None), swept(32, |n| 4 * pairs(n), None)];
        assert_eq!(longer_that_saves_more(&alike, &effects, 1), None);
    }

    #[test]
    fn reads_as_long_as_a_chunk_have_their_best_place_in_its_middle() {
        let effects = [None, Some(Effect { share: 0.15, p: 0.001 })];
        let chunks = [swept(4, |_| 100_000, None), swept(16, in_chunks(4, 4), None)];
        assert_eq!(valley_of(&chunks, &effects, 1), Some(1));
        let dies = |n: u64| if n % 4 == 2 { 137_000 } else { 224_000 };
        let dies = [swept(4, |_| 121_000, None), swept(16, dies, None)];
        assert_eq!(valley_of(&dies, &effects, 1), None, "a die that senses meanwhile helps at one place alone");
    }

    #[test]
    fn what_reads_save_grows_with_their_length_up_to_that_of_a_chunk() {
        let of_chunks =
            [swept(4, |_| 75_000, None), swept(16, in_chunks(4, 32), None), swept(64, in_chunks(16, 32), None)];
        assert!(grows(&of_chunks, 1));
        let same = |n: u64| if n % 32 == 30 { 80_000 } else { 90_000 };
        let of_rows = [swept(4, |_| 75_000, None), swept(16, same, None), swept(64, same, None)];
        assert!(!grows(&of_rows, 1));
    }

    #[test]
    fn a_period_that_single_blocks_have_as_well_is_of_pages() {
        let fast_and_slow = |n: u64| 70_000 + n / 8 % 2 * 25_000;
        let pages = swept(4, fast_and_slow, None);
        let long = |n: u64| fast_and_slow(n) + fast_and_slow(n + 1);
        assert!(is_of_pages(&[pages, swept(8, long, None)], 1));
        assert!(!is_of_pages(&[swept(4, |_| 70_000, None), swept(16, shared, None)], 1));
    }
}
