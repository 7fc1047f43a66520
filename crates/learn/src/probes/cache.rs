//! What a drive still has at hand: the read cache, and what it reads ahead of a sequential reader.
//!
//! A block is *at hand* if reading it takes clearly less time than reading any other. Both are told from single reads:
//!
//! - **Read cache.** A number of blocks, far from each other, is read once, then again in the same order. With a cache
//!   that drops the oldest or the least used, all of them are at hand up to its size, and none beyond. The number is
//!   doubled until none is, then halved in between. A block brings its neighbours along where the drive caches larger
//!   pieces than 4 KiB; how much is found first, by asking for blocks before the one that was read.
//! - **Read-ahead.** After a few reads in order and a pause, the block at a distance is at hand if the drive has read
//!   so far ahead. The distance is searched in the same way; each try uses a place of its own.
//!
//! Before each try other blocks are read, more than the last try left behind, and that they did push it out is checked.

use flashwise_block::{ByteSize, Nanos, Progress};
use flashwise_profile::{Figure, ProbeCurve, ProbePoint, Verdict};

use crate::draft::{Because, ProfileDraft, key};
use crate::evidence::{Evidence, not_absent};
use crate::prober::{Prober, anywhere};
use crate::stats::graded::{point, widened};
use crate::stats::{median, rank};
use crate::step::Step;
use crate::verdict::{Doubt, Wording, applying, doubt};
use crate::{Effort, LearnError};

pub(crate) const CACHES: Step = Step::new("caches", &["read_cache_bytes", "read_ahead_bytes"]).reads_alone();

const BLOCK: ByteSize = ByteSize::kib(4);
/// Reads that tell what a read from flash takes.
const REFERENCE: usize = 400;
/// Cliff's δ, the difference of the shares of pairs, from which on reads are faster than reads from flash in nearly
/// all pairs.
const CLEARLY_DELTA: f64 = 0.8;
/// Share of the latency of a read from flash below which a block is at hand: the link and the command still take some
/// of it.
const FASTER_SHARE: f64 = 0.9;
/// Share of single reads that are at hand from which on they mostly are.
const MOST_SHARE: f64 = 0.5;
/// Share of single reads that are at hand from which on it is more than chance leaves in a cache.
const SOME_SHARE: f64 = 0.2;
/// Blocks that are read again first: few enough for the smallest cache, enough for a test.
const FEWEST: u64 = 8;
/// Reads in order before the pause, and what they start at a multiple of: pages of all speeds are to are behind them.
const RUN: u64 = 16;
const RUNS: ByteSize = ByteSize::kib(64);
/// Time for a drive to read ahead.
const PAUSE: Nanos = Nanos(20_000_000);
/// Tries of one distance.
const TRIES: usize = 15;
/// Longest read-ahead that is looked for.
const AHEAD_MAX: ByteSize = ByteSize::mib(2);

/// The drive's own times for reads of a length from flash, to hold others against.
struct FromFlash {
    length: ByteSize,
    latencies: Vec<f64>,
}

impl FromFlash {
    fn measure(prober: &mut Prober<'_>, length: ByteSize) -> Result<Self, LearnError> {
        let mut latencies = Vec::with_capacity(REFERENCE);
        for _ in 0..REFERENCE {
            let offset = prober.random_offset(length);
            latencies.push(prober.read(offset, length)?.0 as f64);
        }
        Ok(Self { length, latencies })
    }

    /// Whether reads that took `latencies` did not go to flash.
    fn none_of(&self, latencies: &[f64]) -> bool {
        median(latencies.to_vec()) < FASTER_SHARE * median(self.latencies.clone()) && self.are_slower_than(latencies)
    }

    /// The share of reads that were faster than nearly all from flash.
    fn share_at_hand(&self, latencies: &[f64]) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let fast = FASTER_SHARE * sorted.get(sorted.len() / 10).copied().unwrap_or(0.0);
        latencies.iter().filter(|&&latency| latency < fast).count() as f64 / latencies.len().max(1) as f64
    }

    fn are_slower_than(&self, latencies: &[f64]) -> bool {
        let test = rank::compare(&self.latencies, latencies);
        test.delta >= CLEARLY_DELTA && test.p_greater < rank::CHANCE_PROBABILITY
    }
}

/// Measures read cache and read-ahead.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<ReadCache, LearnError> {
    prober.fill_region(progress)?;
    prober.rest(PAUSE)?;
    let flash = FromFlash::measure(prober, BLOCK)?;
    let cache = read_cache(prober, draft, &flash, progress)?;
    draft.set(key!(read_cache_bytes), cache);
    let ahead = read_ahead(prober, draft, &flash, progress)?;
    draft.set(key!(read_ahead_bytes), ahead);
    Ok(ReadCache(cache))
}

/// Evidence of the read cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadCache(Figure<u64>);

impl Evidence for ReadCache {
    fn recorded(draft: &ProfileDraft) -> Self {
        Self(draft.recorded(key!(read_cache_bytes)))
    }

    fn of_reads_alone(self) -> Self {
        Self(not_absent(self.0))
    }
}

impl ReadCache {
    /// Whether there is none for certain.
    pub(crate) fn is_absent(self) -> bool {
        self.0.verdict == Verdict::Absent
    }
}

/// How many blocks, each `spacing` from the next, are read again from memory after `count` of them were read.
fn again_at_hand(
    prober: &mut Prober<'_>,
    flash: &FromFlash,
    spacing: ByteSize,
    count: u64,
) -> Result<(bool, Vec<f64>), LearnError> {
    let places = prober.region() / spacing;
    let chosen = prober.shuffled(0..places);
    let offsets: Vec<ByteSize> = chosen.into_iter().take(count as usize).map(|place| spacing * place).collect();
    for &offset in &offsets {
        prober.read(offset, flash.length)?;
    }
    let mut latencies = Vec::with_capacity(offsets.len());
    for &offset in &offsets {
        let latency = prober.read(offset, flash.length)?.0 as f64;
        prober.sample("read again", count as f64, latency);
        latencies.push(latency);
    }
    // Reading them a second time hides blocks that one read has moved in; the first half tells of the older ones.
    let older = &latencies[..latencies.len().div_ceil(2)];
    Ok((flash.none_of(older), latencies))
}

fn read_cache(
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    flash: &FromFlash,
    progress: &mut dyn Progress,
) -> Result<Figure<u64>, LearnError> {
    const NAME: &str = "reading again";
    let recipe = "4 KiB reads of n scattered blocks, one at a time, then of the same blocks again; bisection over n";
    let mut seen = 0;
    for _ in 0..4 {
        seen += u32::from(again_at_hand(prober, flash, BLOCK * 64, FEWEST)?.0);
    }
    if seen < 3 {
        let reason = "blocks just read take as long as others".to_owned();
        draft.because("read_cache_bytes", Because { recipe, reason, curve: None });
        return Ok(Figure::absent());
    }
    let granule = granule(prober, flash)?;
    let mut curve = Vec::new();
    let mut found = size(prober, flash, granule.max(BLOCK), &mut curve, progress)?;
    // A cache may keep room for a whole page where only a block of it was read.
    if granule < PIECE {
        let pieces = FromFlash::measure(prober, PIECE)?;
        let whole = size(prober, &pieces, PIECE, &mut curve, progress)?;
        if whole.bytes() > found.bytes() {
            found = whole;
        }
    }
    let Found { spacing, search, most } = found;
    curve.sort_by(|a, b| a.x.total_cmp(&b.x));
    draft.keep(ProbeCurve {
        name: NAME.to_owned(),
        x: "read so far, MiB".to_owned(),
        y: "latency of the second read, ns".to_owned(),
        points: curve,
        fit: Vec::new(),
    });
    let bytes = (spacing * search.low).bytes();
    let reason = format!("{} blocks of {spacing} are cached, {} are not", search.low, search.high);
    draft.because("read_cache_bytes", Because { recipe, reason, curve: Some(NAME) });
    let evidence = Searched { found: &search, most, is_at_hand_at_times: false };
    Ok(if !applying(&Searched::SEARCH_DOUBTS, &evidence).is_empty() {
        Figure::inconclusive(bytes, bytes, prober.region().bytes())
    } else {
        let (low, high) = widened(bytes as f64, bytes as f64, (spacing * search.high).bytes() as f64);
        // Other memory of the drive, such as a buffer for the data that GC moves, serves reads too.
        Figure::certain(bytes, (low - BESIDE_SHARE * bytes as f64) as u64, high as u64)
    })
}

/// The result of a search by bisection.
struct Searched<'a> {
    found: &'a Search,
    /// The largest number that was tried.
    most: u64,
    /// Whether blocks that were mostly not cached were so at times.
    is_at_hand_at_times: bool,
}

impl Searched<'_> {
    /// Why a read cache and a read-ahead may be inconclusive.
    const SEARCH_DOUBTS: [Doubt<Self>; 2] = [
        doubt("as large as the probe can see", Wording::Nothing, |searched| searched.found.high == searched.most),
        doubt("cached at times", Wording::Then(", though not always"), |searched| searched.is_at_hand_at_times),
    ];
}

/// Share of what is at hand that may are elsewhere than in the cache: simulated drives answered from up to a twentieth
/// more.
const BESIDE_SHARE: f64 = 0.03;

/// Reads that hold all of a page.
const PIECE: ByteSize = ByteSize::kib(16);

/// How many reads a cache answers for.
struct Found {
    spacing: ByteSize,
    search: Search,
    most: u64,
}

impl Found {
    fn bytes(&self) -> u64 {
        (self.spacing * self.search.low).bytes()
    }
}

/// Searches for the largest number of reads that are all at hand afterwards.
fn size(
    prober: &mut Prober<'_>,
    flash: &FromFlash,
    spacing: ByteSize,
    curve: &mut Vec<ProbePoint>,
    progress: &mut dyn Progress,
) -> Result<Found, LearnError> {
    let most = prober.region() / spacing / 2;
    let mut search = Search::new(FEWEST, most);
    while let Some(count) = search.next() {
        prober.advance(progress, "read cache", count as f64 / most as f64)?;
        let (at_hand, latencies) = again_at_hand(prober, flash, spacing, count)?;
        if flash.length == BLOCK {
            curve.push(point((spacing * count).bytes() as f64 / f64::from(1 << 20), &latencies));
        }
        search.answered(at_hand);
    }
    Ok(Found { spacing, search, most })
}

/// How much comes along with one block: the largest power of two up to 64 KiB whose first block is at hand after its
/// last one was read.
fn granule(prober: &mut Prober<'_>, flash: &FromFlash) -> Result<ByteSize, LearnError> {
    let mut found = BLOCK;
    for shift in 1..=4 {
        let piece = BLOCK * (1 << shift);
        let mut latencies = Vec::new();
        for _ in 0..TRIES {
            let base = prober.random_offset(piece);
            prober.read(base + piece - BLOCK, BLOCK)?;
            latencies.push(prober.read(base, BLOCK)?.0 as f64);
        }
        if !flash.none_of(&latencies) {
            break;
        }
        found = piece;
    }
    Ok(found)
}

/// Reads where those behind a run are, with no run before them: of pages of several speeds, those there may all be of
/// the fastest.
fn with_nothing_before(prober: &mut Prober<'_>, tries: usize) -> Result<FromFlash, LearnError> {
    // Each in the half of a section that no run reaches, and none twice: the drive may keep what was read.
    let section = AHEAD_MAX * 2;
    let sections = prober.shuffled(0..prober.region() / section);
    let mut latencies = Vec::with_capacity(tries);
    for n in sections.into_iter().take(tries) {
        prober.rest(PAUSE)?;
        let base = section * n + AHEAD_MAX + anywhere(ByteSize(AHEAD_MAX.bytes() / 2), RUNS)(&mut prober.random);
        let latency = prober.read(base + BLOCK * RUN, BLOCK)?.0 as f64;
        prober.sample("read with nothing before", 0.0, latency);
        latencies.push(latency);
    }
    Ok(FromFlash { length: BLOCK, latencies })
}

fn read_ahead(
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    flash: &FromFlash,
    progress: &mut dyn Progress,
) -> Result<Figure<u64>, LearnError> {
    const NAME: &str = "reading ahead";
    let recipe = "16 sequential 4 KiB reads, a pause, then one read at a distance; compared with a read without \
                  predecessors; bisection over the distance";
    let tries = if prober.effort == Effort::Quick { TRIES / 2 } else { TRIES };
    // One after the other: where a run was not long ago, it is in the cache, and nothing is read ahead.
    let section = AHEAD_MAX * 2;
    let mut sections = prober.shuffled(0..prober.region() / section).into_iter().cycle();
    let mut at_distance = |prober: &mut Prober<'_>, blocks: u64| -> Result<(bool, Vec<f64>), LearnError> {
        let mut latencies = Vec::with_capacity(tries);
        for _ in 0..tries {
            let base = section * sections.next().unwrap_or(0)
                + anywhere(ByteSize(AHEAD_MAX.bytes() / 2), RUNS)(&mut prober.random);
            for n in 0..RUN {
                prober.read(base + BLOCK * n, BLOCK)?;
            }
            prober.rest(PAUSE)?;
            let latency = prober.read(base + BLOCK * (RUN + blocks), BLOCK)?.0 as f64;
            prober.sample("read ahead", blocks as f64, latency);
            latencies.push(latency);
        }
        // A drive that looks up only a part of its map does not read ahead where it would have to read that first.
        let most = flash.share_at_hand(&latencies) > MOST_SHARE;
        Ok((most || flash.none_of(&latencies), latencies))
    };
    // The run ends where any piece of up to 64 KiB does: the next block does not come along with the last one.
    let (mut next, latencies) = at_distance(prober, 0)?;
    if next {
        next = with_nothing_before(prober, tries)?.are_slower_than(&latencies);
    }
    if !next && flash.share_at_hand(&latencies) >= SOME_SHARE {
        let reason = "the next block is read ahead at times, but mostly not".to_owned();
        draft.because("read_ahead_bytes", Because { recipe, reason, curve: None });
        return Ok(Figure::unknown());
    }
    if !next {
        let reason = "the next block takes as long as any other".to_owned();
        draft.because("read_ahead_bytes", Because { recipe, reason, curve: None });
        return Ok(Figure::absent());
    }
    let most = AHEAD_MAX / BLOCK;
    let mut curve = Vec::new();
    let mut search = Search::new(1, most);
    let mut at_times = false;
    while let Some(count) = search.next() {
        prober.advance(progress, "read-ahead", count as f64 / most as f64)?;
        let (at_hand, latencies) = at_distance(prober, count - 1)?;
        at_times |= !at_hand && flash.share_at_hand(&latencies) >= SOME_SHARE;
        curve.push(point((BLOCK * count).bytes() as f64 / 1024.0, &latencies));
        search.answered(at_hand);
    }
    curve.sort_by(|a, b| a.x.total_cmp(&b.x));
    draft.keep(ProbeCurve {
        name: NAME.to_owned(),
        x: "distance, KiB".to_owned(),
        y: "latency, ns".to_owned(),
        points: curve,
        fit: Vec::new(),
    });
    let bytes = (BLOCK * search.low).bytes();
    let evidence = Searched { found: &search, most, is_at_hand_at_times: at_times };
    let doubts = applying(&Searched::SEARCH_DOUBTS, &evidence);
    let plain = format!("{} are read ahead after the last read, {} are not", BLOCK * search.low, BLOCK * search.high);
    draft.because("read_ahead_bytes", Because { recipe, reason: doubts.reason(plain), curve: Some(NAME) });
    Ok(if !doubts.is_empty() {
        Figure::inconclusive(bytes, bytes, AHEAD_MAX.bytes())
    } else {
        Figure::certain(bytes, bytes, bytes)
    })
}

/// The largest number for which something holds, where it holds up to there and not beyond: doubling, then bisection.
struct Search {
    /// It holds here.
    low: u64,
    /// It does not hold here, or nobody asks further.
    high: u64,
    /// Asked now.
    asked: u64,
    doubling: bool,
}

impl Search {
    /// Looks between `low`, where it holds, and `most`.
    fn new(low: u64, most: u64) -> Self {
        Self { low, high: most, asked: low, doubling: true }
    }

    fn next(&mut self) -> Option<u64> {
        let twice = self.low * 2;
        self.doubling &= twice < self.high;
        self.asked = if self.doubling { twice } else { self.low.midpoint(self.high) };
        (self.asked > self.low && self.asked < self.high).then_some(self.asked)
    }

    fn answered(&mut self, holds: bool) {
        if holds {
            self.low = self.asked;
        } else {
            self.high = self.asked;
            self.doubling = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_search_ends_at_the_last_number_for_which_it_holds(limit in 8_u64..5000) {
            let mut search = Search::new(8, 10_000);
            let mut asked = 0;
            while let Some(count) = search.next() {
                search.answered(count <= limit);
                asked += 1;
            }
            prop_assert_eq!((search.low, search.high), (limit, limit + 1));
            prop_assert!(asked <= 30);
        }
    }
}
