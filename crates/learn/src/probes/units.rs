//! Places that serve reads independently of each other.
//!
//! Two reads that are submitted together are done at once where they meet in different units (flash dies), and one
//! after the other where they meet in one. What the second of two reads adds to the time of the first, as a share of
//! what it takes alone, falls into two heaps over random pairs, and of n units every n-th pair is in the upper one.
//!
//! That share alone tells n to within a few percent. To have it exactly, blocks are sorted into classes: two blocks are
//! of one class if reading them together is slow. Each new block is compared with one block of each class known; if
//! none fits, it opens a class. When many blocks in a row have opened none, the classes are the units.
//!
//! A read cache would answer for the flash where blocks are read again. On a drive that has one the share decides
//! alone: all blocks are read in random order before any is read again, first each alone and then in pairs, and more
//! pairs are added until the share's interval holds one number.
//!
//! Source: the idea of telling units by conflicts is old (Chen, Lee, Zhang, HPCA 2011, and the stride-read of Queenie,
//! SYSTOR 2022, a published description); the sequential sorting into classes is our own.

use flashwise_block::{ByteSize, Nanos, Progress};
use flashwise_profile::{Figure, ProbeCurve};

use crate::draft::{Because, ProfileDraft, key};
use crate::evidence::{Evidence, not_absent};
use crate::prober::{Prober, anywhere};
use crate::stats::graded::{point, power_of_two_within};
use crate::stats::median;
use crate::step::Step;
use crate::verdict::{Doubt, Doubts, Wording, applying, doubt};
use crate::{Effort, LearnError};

use super::cache::ReadCache;
use super::small_writes::Padding;

pub(crate) const PARALLEL_UNITS: Step = Step::new("parallel units", &["parallel_units"]).reads_alone();

const BLOCK: ByteSize = ByteSize::kib(4);
/// Random pairs that show the heaps.
const fn pairs(effort: Effort) -> usize {
    match effort {
        Effort::Thorough => 20_000,
        Effort::Quick => 3_000,
    }
}
/// Reads that tell the usual latency.
const SINGLES: usize = 200;
/// Blocks in a row that open no class, in multiples of the classes known: with one class of n missing, a random block
/// misses it with probability 1 − 1/n, so after 12·n blocks the chance of having missed it is e⁻¹².
const CONTENT_AFTER: usize = 12;
/// No more classes than this are looked for.
const CLASSES_MAX: usize = 512;
/// Times that a block is compared with all classes before it opens one.
const TRIES: usize = 3;
/// Members of a class that are kept to be read in turn.
const MEMBERS: usize = 64;
/// Share of a read by which the upper heap is above the lower one.
const APART_SHARE: f64 = 0.15;
/// Share of itself that every second read adds, from which on all wait for each other: beside the command, most of a
/// read is done after the other.
const ONE_BY_ONE_SHARE: f64 = 0.5;
/// Share of itself that a second read adds from which on something else held it up: both reads and half of one more.
const HELD_UP_SHARE: f64 = 1.5;
/// Half of the width of a valley between the heaps, in shares of a read.
const VALLEY_HALF_SHARE: f64 = 0.04;
/// Share of pairs that must wait for the upper heap to be one: that of 600 units.
const WAITING_SHARE_MIN: f64 = 0.0015;
/// Share of the usual time below which a buffer answered a read.
const IN_A_BUFFER_SHARE: f64 = 0.7;
const NAME: &str = "pairs of reads";
/// Write amplification of single blocks on a fresh drive from which on they lie where the padding leaves them.
const PADDED_WA: f64 = 1.5;
const RECIPE: &str = "pairs of 4 KiB reads of blocks written in random order (or sequentially if single blocks are \
                      padded), each alone and both at once; the time that the second adds, as a share of its own";
/// Time in which a drive ends what it does in the background.
pub(crate) const AFTERMATH: Nanos = Nanos(500_000_000);

/// Where the two heaps part, in shares of a read.
#[derive(Clone, Copy)]
struct Border(f64);

/// A block and what reading it takes, ns.
#[derive(Clone, Copy)]
struct Block {
    at: ByteSize,
    alone_ns: f64,
}

/// How blocks are read in pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pairs {
    /// The usual latency, ns, on a drive with a read cache, where a block cannot be read alone first.
    cached_ns: Option<f64>,
}

impl Pairs {
    /// Whether what is read again may come from a cache.
    pub(crate) fn may_be_cached(self) -> bool {
        self.cached_ns.is_some()
    }

    /// A block, read alone where that is possible.
    fn block(self, prober: &mut Prober<'_>, at: ByteSize) -> Result<Block, LearnError> {
        let alone_ns = match self.cached_ns {
            Some(usual) => usual,
            // One of the two may be late.
            None => prober.read(at, BLOCK)?.min(prober.read(at, BLOCK)?).0 as f64,
        };
        Ok(Block { at, alone_ns })
    }

    /// What the second of two reads adds to the first, as a share of what it takes alone.
    fn added(self, prober: &mut Prober<'_>, a: Block, b: Block) -> Result<f64, LearnError> {
        let both = prober.read_pair([a.at, b.at], BLOCK)?.0 as f64;
        Ok((both - a.alone_ns.max(b.alone_ns)) / a.alone_ns.min(b.alone_ns).max(1.0))
    }

    /// The same for two places.
    pub(crate) fn added_at(self, prober: &mut Prober<'_>, [a, b]: [ByteSize; 2]) -> Result<f64, LearnError> {
        let (a, b) = (self.block(prober, a)?, self.block(prober, b)?);
        self.added(prober, a, b)
    }
}

/// What pairs of reads have shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflicts {
    /// How to read pairs.
    pub(crate) pairs: Pairs,
    /// Where pairs that wait part from others, in shares of a read.
    pub(crate) border: f64,
    /// Share of random pairs that wait.
    pub(crate) share: f64,
    /// What takes less comes from a buffer.
    on_flash_ns: f64,
}

impl Conflicts {
    /// Whether two blocks wait for each other; `None` where a buffer answers for one of them.
    pub(crate) fn waits(&self, prober: &mut Prober<'_>, [a, b]: [ByteSize; 2]) -> Result<Option<bool>, LearnError> {
        let (a, b) = (self.pairs.block(prober, a)?, self.pairs.block(prober, b)?);
        if a.alone_ns.min(b.alone_ns) < self.on_flash_ns {
            return Ok(None);
        }
        Ok(Some(self.pairs.added(prober, a, b)? > self.border))
    }
}

/// Some bytes in a row of which blocks are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) from: ByteSize,
    pub(crate) bytes: ByteSize,
}

impl Places {
    /// A block of them.
    pub(crate) fn random(self, prober: &mut Prober<'_>) -> ByteSize {
        self.from + anywhere(self.bytes, BLOCK)(&mut prober.random)
    }
}

/// Evidence of parallel units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub(crate) count: Figure<u64>,
    /// What pairs of reads have shown last, of the drive as later probes find it; nothing where an earlier run read
    /// them.
    pub(crate) conflicts: Option<Conflicts>,
}

impl Evidence for Units {
    fn recorded(draft: &ProfileDraft) -> Self {
        Self { count: draft.recorded(key!(parallel_units)), conflicts: None }
    }

    fn of_reads_alone(self) -> Self {
        Self { count: not_absent(self.count), ..self }
    }
}

/// Measures the number of parallel units.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    (padding, cache): (Padding, ReadCache),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Units, LearnError> {
    // What was written in order may are on some of the units only, and so may single blocks where each is programmed
    // with padding: then of both the one that shows more of them. The last is what later probes find on the drive.
    let in_order = match padding.0 {
        Some(padding) if padding >= PADDED_WA => {
            prober.fill_region(progress)?;
            Some(count(prober, cache, draft, progress)?)
        }
        _ => None,
    };
    prober.scatter_region(progress)?;
    let scattered = count(prober, cache, draft, progress)?;
    let conflicts = scattered.conflicts;
    let counted = match in_order {
        Some(in_order) if in_order.units.known() > scattered.units.known() => in_order,
        _ => scattered,
    };
    let because = Because { recipe: RECIPE, reason: counted.reason, curve: Some(NAME) };
    draft.settle(key!(parallel_units), counted.units, because);
    Ok(Units { count: counted.units, conflicts })
}

/// One count of the units.
struct Counted {
    units: Figure<u64>,
    reason: String,
    conflicts: Option<Conflicts>,
}

/// Counts the units that hold the region as it is.
fn count(
    prober: &mut Prober<'_>,
    cache: ReadCache,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Counted, LearnError> {
    prober.rest(AFTERMATH)?;
    let cached = !cache.is_absent();
    let mut single = Vec::with_capacity(SINGLES);
    for _ in 0..SINGLES {
        let offset = prober.random_offset(BLOCK);
        // As blocks are read below: of a map that is cached in part, the second read finds its entry.
        single.push(match cached {
            true => prober.read(offset, BLOCK)?.0 as f64,
            false => Pairs { cached_ns: None }.block(prober, offset)?.alone_ns,
        });
    }
    let usual = median(single);
    let reading = Pairs { cached_ns: cached.then_some(usual) };
    let on_flash_ns = IN_A_BUFFER_SHARE * usual;
    let n = pairs(prober.effort);
    let alone = if cached { Some(Alone::measure(prober, progress)?) } else { None };
    let mut added = Vec::with_capacity(n);
    match &alone {
        Some(alone) => {
            let order = &alone.order[..(2 * n).min(alone.order.len())];
            added = alone.added(prober, order, (reading, on_flash_ns))?.into_iter().map(|(_, added)| added).collect();
        }
        None => {
            for i in 0..n {
                if i.is_multiple_of(200) {
                    prober.advance(progress, "pairs of reads", i as f64 / n as f64)?;
                }
                let pair = [prober.random_offset(BLOCK), prober.random_offset(BLOCK)];
                added.push(reading.added_at(prober, pair)?);
            }
        }
    }
    for (i, &share) in added.iter().enumerate() {
        prober.sample(NAME, i as f64, share);
    }
    draft.keep(curve(&added));
    let found = border(&added);
    let conflicts = found.map(|(border, share)| Conflicts { pairs: reading, border: border.0, share, on_flash_ns });
    let (units, reason) = match found {
        Some((border, _)) if let Some(alone) = &alone => {
            share(prober, alone, (reading, on_flash_ns), border, progress)?
        }
        Some((border, share)) => {
            let about = (1.0 / share).round().max(1.0);
            let region = Places { from: ByteSize(0), bytes: prober.region() };
            classes(prober, region, (reading, border), (about as usize, on_flash_ns), progress)?
        }
        None => (Figure::unknown(), "the times of pairs do not form two groups".to_owned()),
    };
    Ok(Counted { units, reason, conflicts })
}

/// Where the heaps part and which share is in the upper one; all pairs are where each takes about as long as both
/// reads, and more than what the host's commands have to wait for each other.
fn border(added: &[f64]) -> Option<(Border, f64)> {
    let mut sorted = added.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.truncate(sorted.partition_point(|&share| share < HELD_UP_SHARE));
    let usual = median(sorted.clone());
    let lowest = *sorted.get(sorted.len() / 20)?;
    if lowest > ONE_BY_ONE_SHARE {
        return Some((Border(lowest / 2.0), 1.0));
    }
    let above = |limit: f64| sorted.len() - sorted.partition_point(|&share| share < limit);
    let enough = (WAITING_SHARE_MIN * sorted.len() as f64).max(3.0) as usize;
    // Late answers lie anywhere: a valley need not be empty. Blocks on one channel may wait for each other too, but
    // less than those in one unit: of valleys the last.
    let is_valley = |limit: f64| {
        let upper = above(limit + VALLEY_HALF_SHARE);
        upper >= enough && above(limit - VALLEY_HALF_SHARE) - upper <= upper / 10
    };
    let lowest_limit = usual + 2.0 * VALLEY_HALF_SHARE;
    let limits = || {
        (0..)
            .map(|n| HELD_UP_SHARE - VALLEY_HALF_SHARE - 0.01 * f64::from(n))
            .take_while(|&limit| limit >= lowest_limit)
    };
    let last = limits().find(|&limit| is_valley(limit))?;
    let first = limits().skip_while(|&limit| limit > last).take_while(|&limit| is_valley(limit)).last()?;
    let border = (first + last) / 2.0;
    let upper = &sorted[sorted.len() - above(border)..];
    (median(upper.to_vec()) > usual + APART_SHARE).then_some((Border(border), upper.len() as f64 / sorted.len() as f64))
}

/// Pairs after which the share is what it is.
const PAIRS_MAX: usize = 600_000;

/// What each block of the region takes alone, ns, with the order in which they were read: whoever reads them in the
/// same order again finds none of them in a cache that is smaller than the region.
struct Alone {
    order: Vec<u64>,
    ns: Vec<u32>,
}

impl Alone {
    fn measure(prober: &mut Prober<'_>, progress: &mut dyn Progress) -> Result<Self, LearnError> {
        let order = prober.shuffled(0..prober.region() / BLOCK);
        let mut ns = vec![0; order.len()];
        for (n, &block) in order.iter().enumerate() {
            if n.is_multiple_of(1000) {
                prober.advance(progress, "blocks read alone", n as f64 / order.len() as f64)?;
            }
            ns[block as usize] = prober.read(BLOCK * block, BLOCK)?.0.try_into().unwrap_or(u32::MAX);
        }
        Ok(Self { order, ns })
    }

    /// A block that the flash answered for.
    fn block(&self, n: u64, on_flash_ns: f64) -> Option<Block> {
        let alone_ns = f64::from(self.ns[n as usize]);
        (alone_ns >= on_flash_ns).then_some(Block { at: BLOCK * n, alone_ns })
    }

    /// What the second of each pair adds, over all blocks in an order; pairs with a block that a buffer answered for
    /// are left out.
    fn added(
        &self,
        prober: &mut Prober<'_>,
        order: &[u64],
        (reading, on_flash_ns): (Pairs, f64),
    ) -> Result<Vec<([u64; 2], f64)>, LearnError> {
        let mut all = Vec::with_capacity(order.len() / 2);
        for pair in order.chunks_exact(2) {
            let pair = [pair[0], pair[1]];
            if let [Some(a), Some(b)] = pair.map(|n| self.block(n, on_flash_ns)) {
                all.push((pair, reading.added(prober, a, b)?));
            }
        }
        Ok(all)
    }
}

/// How often each block was read in a pair, and how often it waited.
struct Waits(Vec<(u32, u32)>);

impl Waits {
    fn none(blocks: usize) -> Self {
        Self(vec![(0, 0); blocks])
    }

    fn add(&mut self, pair: [u64; 2], waits: bool) {
        for block in pair {
            let (asked, slow) = &mut self.0[block as usize];
            (*asked, *slow) = (*asked + 1, *slow + u32::from(waits));
        }
    }

    /// By how much units differ in what they hold: the variance of their shares of the blocks, in squares of the mean
    /// one. A block in a unit that holds more waits more often, so that counts of single blocks scatter more than
    /// chance makes them. What chance alone may come to is the second.
    fn unevenness(&self, waiting: f64) -> (f64, f64) {
        let (mut squares, mut by_chance, mut again) = (0.0, 0.0, 0.0);
        for &(asked, slow) in &self.0 {
            let (asked, slow) = (f64::from(asked), f64::from(slow));
            squares += (slow - asked * waiting).powi(2);
            by_chance += asked * waiting * (1.0 - waiting);
            again += asked * (asked - 1.0) * waiting * waiting;
        }
        // Both blocks of a pair wait: half as many counts are independent.
        let noise = SCATTER_STANDARD_ERRORS * by_chance * (4.0 / self.0.len().max(1) as f64).sqrt();
        ((squares - by_chance) / again.max(1.0), noise / again.max(1.0))
    }
}

/// Standard errors by which counts must scatter more than chance makes them.
const SCATTER_STANDARD_ERRORS: f64 = 4.0;
/// Variance of the units' shares, in squares of the mean one, that would have shown, before a number is certain.
const UNEVENNESS_MAX: f64 = 0.1;

/// Counts slow pairs of blocks that were not read for long, until the interval of 1 ÷ share holds one number.
fn share(
    prober: &mut Prober<'_>,
    alone: &Alone,
    (reading, on_flash_ns): (Pairs, f64),
    border: Border,
    progress: &mut dyn Progress,
) -> Result<(Figure<u64>, String), LearnError> {
    let most = if prober.effort == Effort::Quick { PAIRS_MAX / 100 } else { PAIRS_MAX };
    let (mut asked, mut slow) = (0_usize, 0_usize);
    let mut waits = Waits::none(alone.ns.len());
    loop {
        let order = prober.shuffled(0..prober.region() / BLOCK);
        let added = alone.added(prober, &order, (reading, on_flash_ns))?;
        added.iter().for_each(|&(pair, added)| waits.add(pair, added > border.0));
        slow += added.iter().filter(|&&(_, added)| added > border.0).count();
        asked += added.len().max(1);
        prober.advance(progress, "parallel units", asked as f64 / most as f64)?;
        let evidence = SharedUnits::of(slow, asked, &waits);
        let (figure, doubts) = evidence.units();
        if doubts.is_empty() || asked >= most {
            return Ok((figure, doubts.reason(format!("{slow} of {asked} pairs wait for each other"))));
        }
    }
}

/// What the number of units rests on where the share of pairs that wait decides.
struct SharedUnits {
    /// Share of pairs that wait.
    waiting: f64,
    /// The least and the most of 1 ÷ share, by chance.
    low: f64,
    high: f64,
    /// By how much units differ in what they hold, and what chance alone may come to.
    uneven: f64,
    noise: f64,
}

/// Why a number of units that the share of waiting pairs shows may be inconclusive.
const SHARE_DOUBTS: [Doubt<SharedUnits>; 3] = [
    doubt(
        "units differ in size",
        Wording::Then(", some blocks more often than others: units hold unequal amounts of data"),
        SharedUnits::is_uneven,
    ),
    doubt("units that differ in size would not show", Wording::Nothing, |of| of.noise >= UNEVENNESS_MAX),
    doubt("several numbers fit", Wording::Nothing, |of| {
        let (first, last) = of.range();
        first != last || last != of.number() as f64
    }),
];

impl SharedUnits {
    fn of(slow: usize, asked: usize, waits: &Waits) -> Self {
        let waiting = slow as f64 / asked as f64;
        let error = CHANCE_STANDARD_ERRORS * (waiting * (1.0 - waiting) / asked as f64).sqrt() + UNEVEN_SHARE * waiting;
        let (low, high) = (1.0 / (waiting + error), 1.0 / (waiting - error).max(1e-6));
        let (uneven, noise) = waits.unevenness(waiting);
        Self { waiting, low, high, uneven, noise }
    }

    fn is_uneven(&self) -> bool {
        self.uneven > self.noise && self.uneven > UNEVEN_SHARE
    }

    /// What 1 ÷ share is multiplied by for the number of units, and at most: of n units whose shares vary by v, 1 in
    /// n ÷ (1 + v) pairs meets in one.
    fn factors(&self) -> (f64, f64) {
        if self.is_uneven() { (1.0 + self.uneven, 1.0 + 2.0 * self.uneven) } else { (1.0, 1.0) }
    }

    /// The numbers that fit.
    fn range(&self) -> (f64, f64) {
        (self.low.ceil().max(1.0), (self.high * self.factors().1).floor())
    }

    fn number(&self) -> u64 {
        let (about, most_uneven) = self.factors();
        // Dies come in such numbers.
        let power = power_of_two_within(self.low, self.high * most_uneven);
        power.unwrap_or_else(|| (about / self.waiting.max(1e-6)).round() as u64)
    }

    fn units(&self) -> (Figure<u64>, Doubts) {
        let (units, (first, last)) = (self.number(), self.range());
        let doubts = applying(&SHARE_DOUBTS, self);
        let (low, high) = match doubts.is_empty() {
            true => (units, units),
            false => ((first as u64).min(units), (last as u64).max(units)),
        };
        (doubts.judge(Figure::certain(units, low, high)), doubts)
    }
}

/// Standard errors within which a share of pairs lies, in 99 of 100 cases.
const CHANCE_STANDARD_ERRORS: f64 = 2.6;

/// Share by which the conflicts of pairs can be off because a cache answered, or units hold uneven parts of the data.
const UNEVEN_SHARE: f64 = 0.02;

/// Blocks that a buffer answered for, after which no more are looked for.
const BUFFERED_MAX: usize = 100_000;

/// Counts the units of some bytes that lie where no random pair was asked about; the classes alone tell.
pub(crate) fn count_at(
    prober: &mut Prober<'_>,
    conflicts: Conflicts,
    places: Places,
    progress: &mut dyn Progress,
) -> Result<Figure<u64>, LearnError> {
    let (mut waiting, mut pairs) = (0, 0);
    for _ in 0..(WAITING_PAIRS / conflicts.share).ceil() as usize {
        let pair = [places.random(prober), places.random(prober)];
        if let Some(waits) = conflicts.waits(prober, pair)? {
            (waiting, pairs) = (waiting + usize::from(waits), pairs + 1);
        }
    }
    if waiting == 0 {
        return Ok(Figure::unknown());
    }
    let about = (f64::from(pairs) / waiting as f64).round() as usize;
    let how = (conflicts.pairs, Border(conflicts.border));
    Ok(classes(prober, places, how, (about, conflicts.on_flash_ns), progress)?.0)
}

/// Pairs that wait, if there are as many units as elsewhere; their share is known to a tenth of itself.
const WAITING_PAIRS: f64 = 200.0;

/// Sorts blocks into classes.
fn classes(
    prober: &mut Prober<'_>,
    places: Places,
    (reading, border): (Pairs, Border),
    (about, on_flash_ns): (usize, f64),
    progress: &mut dyn Progress,
) -> Result<(Figure<u64>, String), LearnError> {
    let mut classes: Vec<Vec<Block>> = Vec::new();
    let (mut in_a_row, mut turn, mut asked, mut buffered) = (0, 0_usize, 0_usize, 0_usize);
    let patience = |known: usize| CONTENT_AFTER * known.max(about).max(4);
    while in_a_row < patience(classes.len()) && classes.len() < CLASSES_MAX {
        if asked.is_multiple_of(50) {
            prober.advance(progress, "parallel units", in_a_row as f64 / patience(classes.len()) as f64)?;
        }
        asked += 1;
        let at = places.random(prober);
        let block = reading.block(prober, at)?;
        // What is still in a buffer waits for nothing.
        if block.alone_ns < on_flash_ns {
            buffered += 1;
            if buffered > BUFFERED_MAX {
                return Ok((Figure::unknown(), "a buffer serves the reads, not the flash".to_owned()));
            }
            continue;
        }
        let mut found = None;
        // A late or an early completion must not open a class.
        for _ in 0..TRIES {
            if found.is_none() {
                found = class_of(prober, &classes, block, (reading, border), &mut turn)?;
            }
        }
        match found {
            Some(class) => {
                in_a_row += 1;
                let members = &mut classes[class];
                if members.len() < MEMBERS {
                    members.push(block);
                } else {
                    members[asked % MEMBERS] = block;
                }
            }
            None => {
                in_a_row = 0;
                classes.push(vec![block]);
            }
        }
    }
    let units = classes.len() as u64;
    if classes.len() >= CLASSES_MAX {
        return Ok((Figure::inconclusive(units, units, units), format!("{CLASSES_MAX} or more units were found")));
    }
    let reason =
        format!("blocks form {units} classes that wait for each other; the last {in_a_row} blocks opened no new class");
    let doubts = applying(&CLASSES_DOUBTS, &Classes { units, about: about as u64 });
    let (low, high) = match doubts.is_empty() {
        true => (units, units),
        false => (units.min(about as u64), units.max(about as u64)),
    };
    Ok((doubts.judge(Figure::certain(units, low, high)), reason))
}

/// What the number of units rests on where blocks were sorted into classes.
struct Classes {
    units: u64,
    /// 1 ÷ the share of random pairs that wait.
    about: u64,
}

/// Why a number of units that classes show may be inconclusive, beside [`CLASSES_MAX`] of them. The share of pairs that
/// wait must say the same, or the classes are something else.
const CLASSES_DOUBTS: [Doubt<Classes>; 1] =
    [doubt("the share of pairs shows another number", Wording::Nothing, |classes| {
        (classes.units as f64 / classes.about as f64 - 1.0).abs() > AGREEING_SHARE
    })];

/// Share of their number by which the two counts of units may differ.
const AGREEING_SHARE: f64 = 0.2;

/// The class whose members wait for `block`; each answer is the middle of three pairs where the first says yes.
fn class_of(
    prober: &mut Prober<'_>,
    classes: &[Vec<Block>],
    block: Block,
    (reading, border): (Pairs, Border),
    turn: &mut usize,
) -> Result<Option<usize>, LearnError> {
    for (class, members) in classes.iter().enumerate() {
        let mut slow = |prober: &mut Prober<'_>| -> Result<bool, LearnError> {
            *turn += 1;
            let other = members[*turn % members.len()];
            Ok(reading.added(prober, block, other)? > border.0)
        };
        if slow(prober)? && (slow(prober)? || slow(prober)?) {
            return Ok(Some(class));
        }
    }
    Ok(None)
}

/// Quantiles of what the second read adds.
fn curve(added: &[f64]) -> ProbeCurve {
    let mut sorted = added.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |percent: usize| sorted[(sorted.len() - 1) * percent / 200];
    ProbeCurve {
        name: NAME.to_owned(),
        x: "share of pairs, %".to_owned(),
        y: "added by the second, share of a read".to_owned(),
        points: (0..=200).map(|half| point(half as f64 / 2.0, &[at(half)])).collect(),
        fit: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    fn drawn(units: f64, added: f64) -> Vec<f64> {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let wait = |slow: bool| if slow { added } else { 0.0 };
        (0..20_000).map(|_| random.random_range(0.0..0.06) + wait(random.random_range(0.0..units) < 1.0)).collect()
    }

    #[test]
    fn the_share_of_slow_pairs_is_one_in_so_many_units() {
        for units in [2.0, 8.0, 16.0, 64.0] {
            let (_, share) = border(&drawn(units, 0.65)).unwrap();
            assert!((share * units - 1.0).abs() < 0.15, "{share} of {units}");
        }
    }

    /// How uneven units are that hold so much each, by counts over passes of random pairs.
    fn unevenness_of(holds: &[usize], passes: usize) -> (f64, f64) {
        let mut random = Pcg64Mcg::seed_from_u64(3);
        let unit_of: Vec<usize> =
            holds.iter().enumerate().flat_map(|(unit, &n)| std::iter::repeat_n(unit, n)).collect();
        let mut waits = Waits::none(unit_of.len());
        let (mut asked, mut slow) = (0.0, 0.0);
        for _ in 0..passes {
            let mut order: Vec<u64> = (0..unit_of.len() as u64).collect();
            rand::seq::SliceRandom::shuffle(&mut order[..], &mut random);
            for pair in order.chunks_exact(2) {
                let meets = unit_of[pair[0] as usize] == unit_of[pair[1] as usize];
                waits.add([pair[0], pair[1]], meets);
                (asked, slow) = (asked + 1.0, slow + f64::from(u8::from(meets)));
            }
        }
        waits.unevenness(slow / asked)
    }

    #[test]
    fn units_that_hold_unequal_shares_show_in_how_often_single_blocks_wait() {
        let (even, noise) = unevenness_of(&[1_000; 16], 20);
        assert!(even.abs() < noise && noise < UNEVENNESS_MAX, "{even} {noise}");
        // The squares of 1.5 and of 0.5, in equal numbers of units: a variance of a quarter.
        let holds: Vec<usize> = (0..16_usize).map(|unit| if unit.is_multiple_of(2) { 1_500 } else { 500 }).collect();
        let (uneven, noise) = unevenness_of(&holds, 20);
        assert!(uneven > noise && (0.1..0.4).contains(&uneven), "{uneven} {noise}");
    }

    #[test]
    fn late_answers_are_no_border() {
        let mut random = Pcg64Mcg::seed_from_u64(2);
        let mut added = drawn(8.0, 0.9);
        for late in added.iter_mut().step_by(100) {
            *late += random.random_range(0.0..8.0);
        }
        let (_, share) = border(&added).unwrap();
        assert!((share * 8.0 - 1.0).abs() < 0.15, "{share}");
    }

    #[test]
    fn one_heap_has_no_border_unless_every_pair_waits() {
        assert!(border(&drawn(1e9, 0.65)).is_none());
        assert_eq!(border(&drawn(1.0, 0.65)).unwrap().1, 1.0);
    }
}
