//! The location profile: how the place where a read starts decides how long it takes.
//!
//! **Chunk and hot locations.** Reads of one length start at `base + o`, with random aligned bases and `o` moved in
//! small steps. Where a drive puts contiguous chunks on single channels, the curve over `o` repeats with the chunk, and
//! its minimum is where reads are shared best: the hot location. Steps of 4 KiB are tried first, with reads of 4 to
//! 128 KiB; where they show nothing, the same reads by where they began on the drive (`turns.rs`), and steps of one block
//! with reads of 4 KiB. Pages of several speeds make curves of their own: reads of single blocks show them, and what they
//! cost is taken off where the period shows better without.
//!
//! Source: Kakaraparthy et al., PVLDB 13(4), 2019, location profile. Added: all of the inference; there a person reads the
//! plot.

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::{Figure, HotLocation, LocationCurve, MedianNs, ProbeCurve, ProbePoint, Verdict};
use rand_pcg::Pcg64Mcg;

use super::sweep::{
    Effect, Level, MORE_READS, OF_PAGES, PAGES_DIFFER, Sweep, Swept, ends, lead, measure, scatter, usual_deviation,
};
use super::{channels, turns};
use crate::findings::{Because, Findings};
use crate::prober::{Origin, Prober};
use crate::stats::{Samples, best_period, explained, figure, fold, line_through, median};
use crate::{Effort, LearnError};

/// A location is hot if it is faster than the slowest by this share at least.
const HOT_SHARE: f64 = 0.005;
/// Read lengths of the coarse sweeps.
const COARSE_READS: [ByteSize; 6] =
    [ByteSize::kib(4), ByteSize::kib(8), ByteSize::kib(16), ByteSize::kib(32), ByteSize::kib(64), ByteSize::kib(128)];

/// The longest of them.
const LONGEST_READ: ByteSize = COARSE_READS[COARSE_READS.len() - 1];

const fn coarse(read: ByteSize) -> Sweep {
    let window = ByteSize::mib(1);
    Sweep { read, step: ByteSize::kib(4), window, turn: window, reads_a_start: 40, smallest_effect: 0.02 }
}

/// The same for chunks that need not repeat in a mebibyte.
fn coarse_of_chunk(chunk: ByteSize, read: ByteSize) -> Sweep {
    let sweep = coarse(read);
    Sweep { turn: turns::of_period(chunk, sweep.window), ..sweep }
}

fn fine(logical_block: ByteSize) -> Sweep {
    let (read, window) = (ByteSize::kib(4).max(logical_block), logical_block * 128);
    Sweep { read, step: logical_block, window, turn: window, reads_a_start: 100, smallest_effect: 0.005 }
}

/// Measures the location profiles and reads chunk and hot locations from the one that shows most.
pub(crate) fn probe_locations(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    prober.fill_region(progress)?;
    let mut sweeps: Vec<Swept> = Vec::new();
    for read in COARSE_READS {
        let stage = format!("location profile, {read}");
        sweeps.push(measure(prober, coarse(read), sweeps.first(), &stage, progress)?);
    }
    let mut effects: Vec<Option<Effect>> = sweeps.iter().map(|swept| swept.effect(&mut prober.random)).collect();
    if prober.effort == Effort::Thorough {
        look_closer(&mut sweeps, &mut effects, prober, progress)?;
    }
    let coarse_would_show = sweeps.iter().all(Swept::would_show);
    let mut shortest = telling_chunk(&sweeps, &effects);
    if let Some((turned, of_turned, i)) = chunk_by_turns(&sweeps, shortest, &mut prober.random) {
        (sweeps, effects, shortest) = (turned, of_turned, Some(i));
    }
    let mut has_a_rival = false;
    if let Some(found) = shortest {
        let longer = chunk_that_stands_out(&sweeps, &effects, found);
        let rival = if longer.is_some() {
            valley_of(&sweeps, &effects, found)
        } else {
            longer_that_saves_more(&sweeps, &effects, found)
        };
        has_a_rival = rival.is_some();
        let may_be_one = |i: &usize| {
            let period = period_of(&sweeps[*i]);
            !channels::lies_on_several(&sweeps, period)
                && channels::share_saved(&sweeps, period).is_none_or(|saved| saved >= channels::SAVES_ENOUGH)
        };
        shortest = rival.filter(may_be_one).or(longer).or(shortest);
    }
    let mut telling = shortest.map(|i| clearest(&sweeps, &effects, i));
    let mut would_show = true;
    let of_more_than_chunks =
        !has_a_rival && shortest.is_some_and(|i| is_of_more_than_chunks(&sweeps, i) && !grows(&sweeps, i));
    if telling.is_none() || of_more_than_chunks {
        let (swept, effect) = block_by_block(prober, progress)?;
        would_show = coarse_would_show
            && swept.would_show()
            && !of_more_than_chunks
            && !show_in_places(&sweeps)
            && !comes_from_a_cache(&swept, &sweeps[0]);
        sweeps.push(swept);
        effects.push(effect);
        telling = effect.map(|_| sweeps.len() - 1);
    }
    let p = &mut findings.parameters;
    let mut reason = "no curve repeats".to_owned();
    match telling.and_then(|i| effects[i].map(|effect| (i, effect))) {
        Some((i, effect)) => {
            p.chunk_bytes = read_off_chunk(&sweeps[i], prober);
            if p.chunk_bytes.known().is_none() && prober.effort == Effort::Thorough {
                sweeps[i] = sweeps[i].with_more_reads(MORE_READS, prober, single_of(&sweeps, i), progress)?;
                p.chunk_bytes = read_off_chunk(&sweeps[i], prober);
            }
            if has_a_rival {
                p.chunk_bytes.doubt();
            }
            match chunk_of_fastest_border(&sweeps, p.chunk_bytes) {
                // Of pages of several speeds, one border lies between slow ones and another between fast ones.
                Some(_) if sweeps[0].has_several_speeds() => p.chunk_bytes.doubt(),
                Some(longer) => {
                    let longer = Some(longer);
                    p.chunk_bytes = Figure { value: longer, low: longer, high: longer, ..p.chunk_bytes };
                }
                None => {}
            }
            // Reads as long as a chunk tell the hot location; shorter ones where the chunk is a few blocks.
            let coarse = sweeps[i].sweep.step >= ByteSize::kib(4);
            let long = if coarse { chunk_long_sweep(p.chunk_bytes, &mut sweeps, prober, progress)? } else { Some(i) };
            (p.hot_location, reason) = match long {
                Some(long) if sweeps[long].effect_from(HOT_SHARE, &mut prober.random).is_some() => {
                    (read_off_hot(&sweeps[long], p.chunk_bytes, prober), reason_of(effect))
                }
                Some(long) if sweeps[long].would_show() && p.chunk_bytes.known().is_some() => {
                    (Figure::absent(), "reads as long as a chunk take the same wherever they start".to_owned())
                }
                Some(_) => (Figure::unknown(), "reads as long as a chunk could not be told apart".to_owned()),
                None => (read_off_hot(&sweeps[i], p.chunk_bytes, prober), reason_of(effect)),
            };
            if let (Some(long), Verdict::Inconclusive, Effort::Thorough) = (long, p.hot_location.verdict, prober.effort)
            {
                sweeps[long] = sweeps[long].with_more_reads(MORE_READS, prober, single_of(&sweeps, long), progress)?;
                if sweeps[long].effect_from(HOT_SHARE, &mut prober.random).is_some() {
                    p.hot_location = read_off_hot(&sweeps[long], p.chunk_bytes, prober);
                }
            }
            if long.zip(p.hot_location.value).is_some_and(|(i, hot)| leads_as_one_die(&sweeps[i], hot)) {
                p.doubt("hot_location");
                reason.push_str(", no more than the later of two dies does");
            }
            let leads = long.zip(p.hot_location.value).map(|(i, hot)| sweeps[i].leads_of(hot));
            findings.hot_leads = leads.unwrap_or_default();
            let shown = long.and_then(|i| sweeps[i].effect(&mut prober.random)).unwrap_or(effect);
            findings.location_effect = Some(shown.share);
            findings.present_unless_chance("chunk_bytes", effect.p);
        }
        None if would_show => (p.chunk_bytes, p.hot_location) = (Figure::absent(), Figure::absent()),
        None => (p.chunk_bytes, p.hot_location) = (Figure::unknown(), Figure::unknown()),
    }
    findings.curves.location = sweeps.iter().map(Swept::curve).collect();
    let recipe = "reads of 4 to 128 KiB, start moved in steps of 4 KiB (or one block) from random aligned bases, in \
                  random order";
    let mut chunk_reason = telling.and_then(|i| effects[i]).map_or_else(|| reason.clone(), reason_of);
    if has_a_rival {
        chunk_reason.push_str(RIVAL);
    }
    let what_else = telling.and_then(|i| what_else(&sweeps, i, findings.parameters.chunk_bytes, coarse_would_show));
    if let Some(what_else) = what_else {
        findings.parameters.doubt("chunk_bytes");
        if findings.parameters.hot_location.verdict == Verdict::Absent {
            // Reads as long as what may be no chunk were alike.
            findings.parameters.hot_location = Figure::unknown();
        }
        findings.parameters.doubt("hot_location");
        for reason in [&mut chunk_reason, &mut reason] {
            reason.push_str(what_else);
        }
    }
    findings.because("chunk_bytes", Because { recipe, reason: chunk_reason, curve: None });
    if *prober.origin() != Origin::Drive && findings.parameters.hot_location.value.is_some() {
        reason = format!("{reason}; {}", prober.origin());
    }
    if let Origin::File(_) = prober.origin() {
        // The period is the drive's; where it begins is not known.
        findings.parameters.doubt("hot_location");
    }
    findings.because("hot_location", Because { recipe, reason, curve: None });
    Ok(())
}

/// The sweeps by turns, their effects, and which of them tells the chunk, where they tell one that the window does not. A chunk
/// of 24 KiB shows in the window too, as a weaker one of 8; what shows by turns in longer reads alone than those that show
/// something in the window is a row or a superpage of chunks.
fn chunk_by_turns(
    sweeps: &[Swept],
    in_window: Option<usize>,
    random: &mut Pcg64Mcg,
) -> Option<(Vec<Swept>, Vec<Option<Effect>>, usize)> {
    let (turned, of_turned) = turns::show_more(sweeps, random)?;
    let i = telling_chunk(&turned, &of_turned)?;
    in_window.is_none_or(|in_window| i <= in_window).then_some((turned, of_turned, i))
}

/// Takes the sweeps anew, with more reads, that show nothing and are too noisy to say that nothing is there.
fn look_closer(
    sweeps: &mut [Swept],
    effects: &mut [Option<Effect>],
    prober: &mut Prober<'_>,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    for i in 0..sweeps.len() {
        if effects[i].is_none() && !sweeps[i].would_show() {
            sweeps[i] = sweeps[i].with_more_reads(MORE_READS, prober, single_of(sweeps, i), progress)?;
            effects[i] = sweeps[i].effect(&mut prober.random);
        }
    }
    Ok(())
}

/// The sweep by single blocks, and its effect if it is of a short period: longer ones are of pages, and chunks of that
/// length show in longer reads.
fn block_by_block(prober: &mut Prober<'_>, progress: &mut dyn Progress) -> Result<(Swept, Option<Effect>), LearnError> {
    let mut swept = measure(prober, fine(prober.logical_block()), None, "location profile, block by block", progress)?;
    let mut effect = swept.effect(&mut prober.random);
    if effect.is_none() && !swept.would_show() && prober.effort == Effort::Thorough {
        swept = swept.with_more_reads(MORE_READS, prober, None, progress)?;
        effect = swept.effect(&mut prober.random);
    }
    let is_short = best_period(&swept.levels()).0 < (ByteSize::kib(8) / swept.sweep.step) as usize;
    Ok((swept, effect.filter(|_| is_short)))
}

/// Whether reads as long as those of another sweep take much less than the fastest of these: by now a cache holds what is read, and
/// answers alike wherever it lies.
fn comes_from_a_cache(swept: &Swept, earlier: &Swept) -> bool {
    let medians = |swept: &Swept| swept.points.iter().map(Samples::median).collect::<Vec<f64>>();
    let fastest = medians(earlier).into_iter().fold(f64::INFINITY, f64::min);
    swept.sweep.read == earlier.sweep.read && median(medians(swept)) < FROM_A_CACHE * fastest
}

/// Share of the time of the fastest page that is read from flash.
const FROM_A_CACHE: f64 = 0.9;

/// Whether a period is of stripes or rows of chunks: the place of reads that are half as long as it makes no difference,
/// though some of them cross the border of a chunk that long, and others do not. Half as much that is shared saves half as
/// much.
fn is_of_more_than_chunks(sweeps: &[Swept], telling: usize) -> bool {
    let Sweep { step, read, .. } = sweeps[telling].sweep;
    let levels = sweeps[telling].levels();
    let period = best_period(&levels).0;
    let (low, high) = ends(&fold(&levels, period));
    let shorter = sweeps.iter().filter(|swept| {
        let sweep = swept.sweep;
        sweep.step == step && sweep.read > step && sweep.read < read && sweep.read * 2 <= step * period as u64
    });
    // The longest of them shows most.
    shorter.max_by_key(|swept| swept.sweep.read).is_some_and(|swept| {
        let (least, most) = ends(&fold(&swept.levels(), period));
        most - least < FLAT * (high - low) * swept.sweep.read.bytes() as f64 / read.bytes() as f64
    })
}

/// Whether reads of several times the length save as many times as much, at the same place: of a row of chunks one place is
/// better than others by the same, however much is read.
fn grows(sweeps: &[Swept], telling: usize) -> bool {
    let (Sweep { step, read, .. }, period) = (sweeps[telling].sweep, period_of(&sweeps[telling]));
    let longer = sweeps.iter().filter(|swept| {
        let sweep = swept.sweep;
        sweep.step == step && sweep.read >= read * GROWN && sweep.read <= period && period_of(swept) == period
    });
    longer.max_by_key(|swept| swept.sweep.read).is_some_and(|swept| {
        let times = swept.sweep.read.bytes() as f64 / read.bytes() as f64;
        has_a_valley(swept) && saved_by(swept) >= AS_MANY * times * saved_by(&sweeps[telling])
    })
}

/// How many times as long they are at least, and the share of so many times as much.
const GROWN: u64 = 4;
const AS_MANY: f64 = 0.7;

/// The chunk of which what was found is but a part. Reads across a border between pages, dies or planes of one channel are
/// the faster ones too, but those across the border between two channels are faster still, because both move data: where
/// of all borders one in a few stands out as the fastest, and it is the one at the begin, chunks lie between those.
fn chunk_of_fastest_border(sweeps: &[Swept], found: Figure<u64>) -> Option<u64> {
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

/// By which share of the latency the border at the begin of so many periods is faster than those between them, where it
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
        let stands_out = lead >= swept.sweep.smallest_effect.max(BORDER_ERRORS * noise);
        (stands_out && last - next <= next - first).then_some((lead, periods))
    };
    let seen_twice = |periods: &usize| 2 * period * periods <= levels.len();
    (1..=5).map(|n| 1 << n).take_while(seen_twice).filter_map(lead).collect()
}

/// Standard errors by which the fastest border must lead.
const BORDER_ERRORS: f64 = 5.0;

/// Share of what the place would make of a difference, below which it makes none.
const FLAT: f64 = 0.35;

/// The sweep of single blocks that one of longer reads is held against.
fn single_of(sweeps: &[Swept], i: usize) -> Option<&Swept> {
    sweeps.first().filter(|single| i > 0 && single.sweep.step == sweeps[i].sweep.step)
}

/// The sweep that tells the chunk: of the reads that are longer than a step the shortest for which the place matters.
/// Longer reads also show what several chunks have in common, a stripe or a superpage. From the start of a chunk a read
/// meets as few channels as it can, and reads that are shared by two are the faster ones; where those across a border are
/// slower, it may be one of pages on one channel, so these come second, and where what is across the border is read when
/// the rest has been, it is such pages.
fn telling_chunk(sweeps: &[Swept], effects: &[Option<Effect>]) -> Option<usize> {
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
        high - low < ONE_BY_ONE * alone
    };
    let found = (0..sweeps.len()).filter(shows).find(shares);
    found.or_else(|| (0..sweeps.len()).filter(shows).find(at_once))
}

/// The sweep of reads as long as a chunk of which what was found is but a part: pages and dies on one channel show in short
/// reads. Reads as long as a chunk save nearly half where two channels share them, and longer ones nothing, so that they stand
/// out.
fn chunk_that_stands_out(sweeps: &[Swept], effects: &[Option<Effect>], found: usize) -> Option<usize> {
    let share = |i: usize| effects[i].map_or(0.0, |effect| effect.share);
    let period = |i: usize| period_of(&sweeps[i]);
    let part = period(found);
    let is_chunk_long = |i: &usize| sweeps[*i].sweep.read == period(*i) && period(*i) > part;
    let parts = (0..sweeps.len()).filter(|&i| period(i) == part).map(share).fold(0.0, f64::max);
    let longer = (0..sweeps.len()).filter(is_chunk_long).filter(|&i| falls_to_its_lowest(&sweeps[i]));
    let longer = longer.max_by(|&a, &b| share(a).total_cmp(&share(b)))?;
    (share(longer) >= STANDS_OUT.0 && share(longer) >= STANDS_OUT.1 * parts).then_some(longer)
}

/// The reads as long as the chunk that was found first, where their best place is in its middle, as that of any chunk is: then it
/// is none of pages and dies on one channel, although longer reads stand out.
fn valley_of(sweeps: &[Swept], effects: &[Option<Effect>], found: usize) -> Option<usize> {
    let part = period_of(&sweeps[found]);
    let as_long = (0..sweeps.len()).filter(|&i| effects[i].is_some() && sweeps[i].sweep.read == part);
    as_long.filter(|&i| period_of(&sweeps[i]) == part).find(|&i| has_a_valley(&sweeps[i]))
}

/// Whether a curve falls to its lowest from both sides.
fn has_a_valley(swept: &Swept) -> bool {
    let levels = swept.levels();
    let folded = fold(&levels, best_period(&levels).0);
    folded.len() >= 4 && falls(&folded, VALLEY_SHARE)
}

/// The longer reads that save most, at best those as long as what they tell, where they save more time at one place in several
/// of the chunks found than shorter ones do at each: reads longer than a chunk lie on the same channels wherever they start.
fn longer_that_saves_more(sweeps: &[Swept], effects: &[Option<Effect>], found: usize) -> Option<usize> {
    let part = period_of(&sweeps[found]);
    let saves = |i: usize| saved_by(&sweeps[i]);
    let shown = || (0..sweeps.len()).filter(|&i| effects[i].is_some());
    let part_saves = shown().filter(|&i| period_of(&sweeps[i]) == part).map(saves).fold(0.0, f64::max);
    let is_longer = |i: &usize| {
        let period = period_of(&sweeps[*i]);
        period > part && period.is_multiple_of(part) && has_a_valley(&sweeps[*i])
    };
    let longer = || shown().filter(is_longer).filter(|&i| saves(i) >= SAVES_MORE * part_saves);
    let most = |of: &mut dyn Iterator<Item = usize>| of.max_by(|&a, &b| saves(a).total_cmp(&saves(b)));
    let is_as_long = |i: &usize| sweeps[*i].sweep.read == period_of(&sweeps[*i]);
    most(&mut longer().filter(is_as_long)).or_else(|| most(&mut longer()))
}

/// Why a chunk of which there are two lengths is not certain.
const RIVAL: &str = "; reads of another length repeat with another one, and which of the two is the chunk is not known";

/// Share of the difference that the neighbours of the best of four places may keep: half, and some noise.
const VALLEY_SHARE: f64 = 0.65;
/// How many times as much longer reads must save.
const SAVES_MORE: f64 = 1.5;

/// What the best place of a sweep saves, beside the worst.
fn saved_by(swept: &Swept) -> f64 {
    let levels = swept.levels();
    let (low, high) = ends(&fold(&levels, best_period(&levels).0));
    high - low
}

/// The period of a sweep.
fn period_of(swept: &Swept) -> ByteSize {
    swept.sweep.step * best_period(&swept.levels()).0 as u64
}

/// What else may be what was found.
fn what_else(sweeps: &[Swept], telling: usize, chunk: Figure<u64>, coarse_would_show: bool) -> Option<&'static str> {
    let is_of_blocks = sweeps[telling].sweep.step < SHORTEST_STEP;
    if is_of_blocks && !coarse_would_show {
        return Some("; chunks of more blocks would not have shown");
    }
    if is_of_blocks && channels::moves_one_by_one(&sweeps[telling]) {
        return Some("; so may pages on one channel");
    }
    let chunk_bytes = ByteSize(chunk.value.unwrap_or(0));
    if channels::lies_on_several(sweeps, chunk_bytes) {
        return Some("; but reads within such a chunk move their data as several channels do");
    }
    if channels::share_saved(sweeps, chunk_bytes).is_some_and(|saved| saved < channels::SAVES_LITTLE) {
        return Some("; but the best place saves much less than two channels that share a read would");
    }
    // Pages of several speeds repeat as well, with rows of them.
    let single = sweeps.first()?;
    let is_long = chunk.value.is_some_and(|chunk| ByteSize(chunk) >= LONGEST_READ);
    let by_turns = single.sweep.turn != single.sweep.window;
    let of_rows = (is_long || by_turns) && single.has_several_speeds();
    (of_rows || spares_little(sweeps, telling) || is_of_pages(sweeps, telling))
        .then_some("; so may rows of pages of several speeds")
}

/// Steps of the sweeps that show chunks of several blocks.
const SHORTEST_STEP: ByteSize = ByteSize::kib(4);

/// Whether some places of a sweep are odd, though all pages are alike: what is there shows in a part of what was read only.
fn show_in_places(sweeps: &[Swept]) -> bool {
    let are_odd = |swept: &Swept| {
        let levels = swept.levels();
        let usual = median(levels.clone());
        let odd = levels.iter().filter(|&&level| (level / usual - 1.0).abs() > ODD).count();
        odd as f64 >= ODD_MIN * levels.len() as f64
    };
    sweeps.first().is_some_and(|single| !single.has_several_speeds()) && sweeps.iter().any(are_odd)
}

/// A place is odd that takes longer or less by this share than the usual one, and some are where so many are.
const ODD: f64 = 0.1;
const ODD_MIN: f64 = 0.03;

/// Whether reads of single blocks repeat with the period that was found: they lie on one channel each, and what repeats are pages
/// that are faster than others. Nothing is known of it where what pages cost was taken off.
fn is_of_pages(sweeps: &[Swept], telling: usize) -> bool {
    let (single, swept) = (&sweeps[0], &sweeps[telling]);
    if telling == 0 || single.sweep.step != swept.sweep.step || swept.own.iter().any(|&own| own != 0.0) {
        return false;
    }
    let (levels, period) = (single.levels(), best_period(&swept.levels()).0);
    if period > levels.len() / 2 {
        return false;
    }
    let (low, high) = ends(&fold(&levels, period));
    high >= low * (1.0 + PAGES_DIFFER) && explained(&levels, period) >= OF_PAGES
}

/// Whether the best place spares a read so little of what its length takes that no second channel moves a part of it, and not
/// many times as much as pages differ by among themselves.
fn spares_little(sweeps: &[Swept], i: usize) -> bool {
    let Some(single) = single_of(sweeps, i) else { return false };
    let levels = sweeps[i].levels();
    let (low, high) = ends(&fold(&levels, best_period(&levels).0));
    let spread = |samples: &Samples| samples.quantile(0.9) - samples.quantile(0.1);
    let pages_differ = median(single.points.iter().map(spread).collect());
    let moved = median(levels) - median(single.levels());
    high - low < (SPARED_MIN * moved).min(OF_PAGES_MAX * pages_differ)
}

/// A read that two channels share evenly is moved in half of the time, unless the host interface is the slower one.
const SPARED_MIN: f64 = 0.125;
/// A read in order meets a slow page at its begin, and at its end, and each may hold others up.
const OF_PAGES_MAX: f64 = 4.0;

/// Whether reads that begin next to the fastest place are faster than most too, as they are where two channels share them
/// less evenly: what is fast at one place alone is one die less.
fn falls_to_its_lowest(swept: &Swept) -> bool {
    let levels = swept.levels();
    falls(&fold(&levels, best_period(&levels).0), 0.5)
}

/// Whether the neighbours of the lowest phase keep at most so much of the difference.
fn falls(folded: &[f64], share: f64) -> bool {
    let ((low, high), n) = (ends(folded), folded.len());
    let lowest = lowest_phase(folded, 0.0);
    [lowest + 1, lowest + n - 1].iter().all(|at| folded[at % n] <= low + share * (high - low))
}

/// The share of its latency by which the place of a read must matter to stand out, and how many times what it matters for
/// reads that show a part.
const STANDS_OUT: (f64, f64) = (0.25, 2.0);

/// Of the sweeps that repeat as a given one does, the one of which the period explains most.
fn clearest(sweeps: &[Swept], effects: &[Option<Effect>], telling: usize) -> usize {
    let periods: Vec<(usize, f64)> = sweeps.iter().map(|swept| best_period(&swept.levels())).collect();
    let step = sweeps[telling].sweep.step;
    let alike = (0..sweeps.len())
        .filter(|&i| effects[i].is_some() && sweeps[i].sweep.step == step && periods[i].0 == periods[telling].0);
    alike.max_by(|&a, &b| periods[a].1.total_cmp(&periods[b].1)).unwrap_or(telling)
}

/// What takes this share of the shortest read longer across a border is read one after the other.
const ONE_BY_ONE: f64 = 0.3;

fn reason_of(effect: Effect) -> String {
    format!("the curve repeats, and its phases differ by {:.1} %", effect.share * 100.0)
}

/// Whether the hot locations are still there after everything was overwritten in blocks in random order.
pub(crate) fn probe_survival(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let recipe = "the region is overwritten in 4 KiB writes in random order, then the location profile of the chunk is \
                  taken again";
    let p = &findings.parameters;
    let (chunk, hot, verdict) = (p.chunk_bytes.value, p.hot_location.value, p.hot_location.verdict);
    let (figure, reason) = match (chunk, hot) {
        _ if verdict == Verdict::Absent => (Figure::absent(), "there are no hot locations".to_owned()),
        (Some(chunk), Some(hot)) => {
            prober.scatter_region(progress)?;
            let (figure, reason) = survives(prober, findings, chunk, hot, progress)?;
            // Of a place that is not certain nothing is.
            let weaker = if verdict == Verdict::Certain { figure.verdict } else { Verdict::Inconclusive };
            (Figure { verdict: weaker, ..figure }, reason)
        }
        _ => (Figure::unknown(), "the hot locations are not known".to_owned()),
    };
    findings.parameters.hot_location_survives_writes = figure;
    findings.because("hot_location_survives_writes", Because { recipe, reason, curve: Some(AFTER_WRITES) });
    Ok(())
}

const AFTER_WRITES: &str = "location profile after writes";

/// Takes the profile again with the reads that showed the hot location.
fn survives(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    chunk: u64,
    hot: HotLocation,
    progress: &mut dyn Progress,
) -> Result<(Figure<bool>, String), LearnError> {
    let long = || coarse_of_chunk(ByteSize(chunk), ByteSize(chunk).min(prober.longest()));
    let sweep = if chunk >= 4096 * 2 { long() } else { fine(prober.logical_block()) };
    let mut swept = measure(prober, sweep, None, AFTER_WRITES, progress)?;
    let period = (chunk / sweep.step.bytes()) as usize;
    let phase = (hot.offset_bytes / sweep.step.bytes()) as usize;
    // A run that goes on from an earlier one has the medians of its curve alone.
    let by_medians = || {
        let same =
            |curve: &&LocationCurve| (curve.read_bytes, curve.step_bytes) == (sweep.read.bytes(), sweep.step.bytes());
        let curve = findings.curves.location.iter().find(same)?;
        let medians: Vec<f64> = curve.latency_ns.iter().map(|point| point.median as f64).collect();
        Some((lead(&medians, period, phase), Level::Median))
    };
    let before =
        if findings.hot_leads.is_empty() { by_medians().into_iter().collect() } else { findings.hot_leads.clone() };
    let mut stays = stays_ahead(&swept, &before, (period, phase), prober);
    if stays.as_ref().is_some_and(|stays| stays.0.verdict != Verdict::Certain) && prober.effort == Effort::Thorough {
        swept = swept.with_more_reads(MORE_READS, prober, None, progress)?;
        stays = stays_ahead(&swept, &before, (period, phase), prober);
    }
    let kib = |i: usize| (sweep.step * i as u64).bytes() as f64 / 1024.0;
    let point = |(i, samples): (usize, &Samples)| {
        let MedianNs { median, low, high } = samples.interval();
        ProbePoint { x: kib(i), y: median as f64, low: low as f64, high: high as f64 }
    };
    findings.keep(ProbeCurve {
        name: AFTER_WRITES.to_owned(),
        x: "start of the read, KiB".to_owned(),
        y: "latency, ns".to_owned(),
        points: swept.points.iter().enumerate().map(point).collect(),
        fit: Vec::new(),
    });
    let Some((figure, before, now)) = stays else {
        return Ok((Figure::unknown(), "the location profile of before is not there".to_owned()));
    };
    let percent = |lead: f64| 100.0 * lead;
    let reason = format!(
        "the hot locations were {:.1} % faster than the mean before, and are {:.1} % faster after",
        percent(before),
        percent(now)
    );
    Ok((figure, reason))
}

/// Of a lead less than this, half comes and goes with the pages that a read happens to meet.
const LEAD_MIN: f64 = 0.02;

/// Whether a phase still has half of its lead, with the lead before and now: by the first level that tells for certain,
/// else by the first; not certain where another level tells the contrary for certain, nor of a small lead. `None` where
/// nothing is known of before.
fn stays_ahead(
    swept: &Swept,
    before: &[(f64, Level)],
    (period, phase): (usize, usize),
    prober: &mut Prober<'_>,
) -> Option<(Figure<bool>, f64, f64)> {
    let by_level = before.iter().filter(|(before, _)| *before > 0.0).map(|&(before, level)| {
        let stays = figure(&swept.points, &mut prober.random, true, |points| {
            Some(u64::from(lead(&level.of_all(points), period, phase) >= before / 2.0))
        });
        let is = |value: Option<u64>| value.map(|stays| stays == 1);
        let figure =
            Figure { value: is(stays.value), low: is(stays.low), high: is(stays.high), verdict: stays.verdict };
        (figure, before, lead(&level.of_all(&swept.points), period, phase))
    });
    let all: Vec<_> = by_level.collect();
    let first = *all.first()?;
    let certain = || all.iter().filter(|(figure, ..)| figure.verdict == Verdict::Certain);
    let (figure, before, now) = certain().next().copied().unwrap_or(first);
    let contradicted = certain().any(|(other, ..)| other.value != figure.value);
    let verdict = if contradicted || before < LEAD_MIN { Verdict::Inconclusive } else { figure.verdict };
    Some((Figure { verdict, ..figure }, before, now))
}

/// The sweep of reads as long as a chunk, which tell the hot location; measured if there is none yet. `None` where the
/// chunk is longer than a request may be.
fn chunk_long_sweep(
    chunk: Figure<u64>,
    sweeps: &mut Vec<Swept>,
    prober: &mut Prober<'_>,
    progress: &mut dyn Progress,
) -> Result<Option<usize>, LearnError> {
    let Some(read) = chunk.value.map(ByteSize).filter(|&read| read <= prober.longest()) else { return Ok(None) };
    let known = sweeps.iter().position(|swept| swept.sweep.read == read);
    let i = match known {
        Some(i) => i,
        None => {
            let stage = format!("location profile, {read}");
            let sweep = coarse_of_chunk(read, read);
            sweeps.push(measure(prober, sweep, sweeps.first(), &stage, progress)?);
            sweeps.len() - 1
        }
    };
    Ok(Some(i))
}

/// Period of a curve that has been found to repeat.
fn read_off_chunk(swept: &Swept, prober: &mut Prober<'_>) -> Figure<u64> {
    let step = swept.sweep.step.bytes();
    figure(&swept.points, &mut prober.random, true, |points| {
        Some(best_period(&swept.levels_of(points)).0 as u64 * step)
    })
}

/// Where a curve that repeats with the chunk is lowest.
fn read_off_hot(swept: &Swept, chunk: Figure<u64>, prober: &mut Prober<'_>) -> Figure<HotLocation> {
    let step = swept.sweep.step.bytes();
    let Some(period_bytes) = chunk.value else { return Figure::unknown() };
    let period = (period_bytes / step) as usize;
    let levels = swept.levels();
    let cycles = (levels.len() / period).max(1) as f64;
    let as_low = (2.0 * scatter(&levels, period) / cycles.sqrt()).min(AS_LOW);
    let offset = figure(&swept.points, &mut prober.random, true, |points| {
        let folded = fold(&swept.levels_of(points), period);
        Some(valley(&folded).unwrap_or_else(|| lowest_phase(&folded, as_low)) as u64 * step)
    });
    let hot = |offset_bytes| HotLocation { period_bytes, offset_bytes };
    let (value, low, high) = (offset.value.map(hot), offset.low.map(hot), offset.high.map(hot));
    let verdict = if chunk.known().is_some() { offset.verdict } else { chunk.verdict };
    Figure { value, low, high, verdict }
}

/// Phases within this share of the lowest, or what noise makes of them where that is less, are as low.
const AS_LOW: f64 = 0.002;

/// The bottom of a valley of two straight sides: where they meet, which noise moves less than the lowest of its points.
/// `None` where the curve is none, or too short to tell.
fn valley(folded: &[f64]) -> Option<usize> {
    let n = folded.len();
    if n < VALLEY_MIN {
        return None;
    }
    let lowest = lowest_phase(folded, 0.0);
    let side = n / 4;
    let at = |steps: isize| folded[(lowest as isize + steps).rem_euclid(n as isize) as usize];
    // The points next to the lowest belong now to one side and now to the other.
    let line = |sign: isize| {
        let points: Vec<(f64, f64)> = (2..=side as isize).map(|k| ((sign * k) as f64, at(sign * k))).collect();
        line_through(&points)
    };
    let ((left, left_at), (right, right_at)) = (line(-1)?, line(1)?);
    let meets = (right_at - left_at) / (left - right);
    let bottom = left_at + left * meets;
    let rise = left.abs().min(right.abs());
    // A flat bottom lies above where the sides meet.
    let is_sharp = (bottom - at(0)).abs() <= rise && left < 0.0 && right > 0.0;
    let is_even = left.abs().max(right.abs()) <= 1.5 * rise;
    (is_sharp && is_even && meets.abs() <= 2.0)
        .then(|| (lowest as isize + meets.round() as isize).rem_euclid(n as isize) as usize)
}

/// Phases of a period from which on a valley is looked for.
const VALLEY_MIN: usize = 24;

/// The first of the lowest phases.
fn lowest_phase(folded: &[f64], as_low: f64) -> usize {
    let lowest = folded.iter().copied().fold(f64::MAX, f64::min);
    folded.iter().position(|&y| y <= lowest * (1.0 + as_low)).unwrap_or(0)
}

/// Whether the lead of a place within a block of 4 KiB may be that of one die over the later of two: from elsewhere a read
/// of a block touches two of them.
fn leads_as_one_die(swept: &Swept, hot: HotLocation) -> bool {
    let step = swept.sweep.step.bytes();
    let (period, phase) = ((hot.period_bytes / step) as usize, (hot.offset_bytes / step) as usize);
    if hot.period_bytes > SHORTEST_CHUNK || !(2..=swept.points.len()).contains(&period) || phase >= period {
        return false;
    }
    let mut others = fold(&swept.levels(), period);
    let hot = others.remove(phase);
    median(others) - hot < usual_deviation(swept)
}

/// Chunks this long show in reads of whole blocks of 4 KiB.
pub(super) const SHORTEST_CHUNK: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(read_kib: u64, latency: impl Fn(u64) -> u64, single: Option<&Swept>) -> Swept {
        let sweep = coarse(ByteSize::kib(read_kib));
        let samples = (0..sweep.places() as u64).map(|n| vec![latency(n); 9]).collect();
        Swept::of_starts(sweep, samples, single)
    }

    /// Reads of 16 KiB on a drive with chunks of 16 KiB: the middle is shared best.
    fn shared(n: u64) -> u64 {
        [90_000, 82_000, 75_000, 82_000][(n % 4) as usize]
    }

    #[test]
    fn slow_pages_in_one_half_of_the_window_do_not_hide_a_chunk() {
        let slow = |n: u64| if n >= 128 { 24_000 } else { 0 };
        let single = swept(4, |n| 60_000 + slow(n), None);
        let whole = |n: u64| shared(n) + slow((n + 3).min(255));
        let levels = swept(16, whole, Some(&single)).levels();
        assert_eq!(best_period(&levels).0, 4);
    }

    #[test]
    fn reads_that_are_faster_than_the_fastest_page_was_come_from_a_cache() {
        let pages = swept(4, |n| if n % 2 == 0 { 60_000 } else { 90_000 }, None);
        assert!(comes_from_a_cache(&swept(4, |n| if n % 8 == 0 { 60_000 } else { 5_000 }, None), &pages));
        assert!(!comes_from_a_cache(&swept(4, |_| 60_000, None), &pages), "of fast pages");
        assert!(!comes_from_a_cache(&swept(8, |_| 5_000, None), &pages), "another length");
    }

    #[test]
    fn a_border_behind_which_one_read_begins_when_the_other_ends_is_no_chunk() {
        let effect = Some(Effect { share: 0.1, p: 0.001 });
        let border = |cost: u64| move |n: u64| 120_000 + if n % 2 == 1 { cost } else { 0 };
        let told = |cost: u64| {
            let sweeps = [swept(4, |_| 100_000, None), swept(8, border(cost), None)];
            telling_chunk(&sweeps, &[None, effect])
        };
        assert_eq!(told(60_000), None);
        assert_eq!(told(5_000), Some(1));
    }

    #[test]
    fn the_bottom_of_a_valley_is_where_its_sides_meet() {
        let noise = |i: usize| [0.0, 0.8, -0.7, 0.4, -1.0][i % 5];
        let sharp: Vec<f64> = (0..64).map(|i: usize| 300.0 + i.abs_diff(32) as f64 + noise(i)).collect();
        assert_eq!(valley(&sharp), Some(32));
        let flat: Vec<f64> = (0..64).map(|i: usize| 300.0 + i.abs_diff(32).max(12) as f64).collect();
        assert_eq!(valley(&flat), None);
        assert_eq!(valley(&[3.0, 2.0, 1.0, 2.0]), None, "too short");
    }

    #[test]
    fn the_fastest_of_all_borders_is_that_of_the_chunk() {
        // Reads of 8 KiB over pages of 16 KiB: across the border of two on one die they wait, across that of two dies not,
        // and across that of two channels each moves half.
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
    fn a_place_in_a_block_is_doubted_where_the_later_of_two_dies_makes_the_difference() {
        let sweep = fine(ByteSize(512));
        let aligned_saves = |by: u64| {
            let values =
                |first: bool| (0..60).map(|n| 90_000 + 50 * n - if first { by } else { 0 }).collect::<Vec<u64>>();
            Swept::of_starts(sweep, (0..128).map(|n| values(n % 8 == 0)).collect(), None)
        };
        let hot = |period_bytes| HotLocation { period_bytes, offset_bytes: 0 };
        assert!(leads_as_one_die(&aligned_saves(500), hot(4096)));
        assert!(!leads_as_one_die(&aligned_saves(5_000), hot(4096)));
        assert!(!leads_as_one_die(&aligned_saves(500), hot(8192)), "of longer chunks reads are longer");
    }

    #[test]
    fn a_superpage_of_three_channels_that_shows_by_turns_in_long_reads_alone_is_no_chunk() {
        use rand::SeedableRng;
        let noise = |n: u64| n * 7 % 5 * 100;
        let in_pairs = |n: u64| if n.is_multiple_of(2) { 84_500 } else { 78_000 };
        let by_superpages = |n: u64| if n.is_multiple_of(24) { 78_000 } else { 85_500 };
        let found = |short: &dyn Fn(u64) -> u64| {
            let sweeps = [
                swept(4, |n| 76_900 + noise(n), None),
                swept(8, |n| short(n) + noise(n), None),
                swept(16, |n| by_superpages(n) + noise(n), None),
            ];
            let mut random = Pcg64Mcg::seed_from_u64(1);
            let effects: Vec<Option<Effect>> = sweeps.iter().map(|swept| swept.effect(&mut random)).collect();
            let in_window = telling_chunk(&sweeps, &effects);
            chunk_by_turns(&sweeps, in_window, &mut random).map(|(turned, _, i)| best_period(&turned[i].levels()).0)
        };
        assert_eq!(found(&in_pairs), None);
        assert_eq!(found(&|n| if n % 24 == 23 { 70_000 } else { 79_000 }), Some(24), "short reads show it as well");
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
        assert!(what_else(&sweeps, 1, chunk, false).is_some());
        assert!(what_else(&sweeps, 1, chunk, true).is_none());
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

    #[test]
    fn the_fastest_phase_is_the_hot_one() {
        assert_eq!(lowest_phase(&[3.0, 1.0, 2.0], 0.0), 1);
        assert_eq!(lowest_phase(&[3.0, 1.001, 1.0], 0.002), 1);
    }
}
