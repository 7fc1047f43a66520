//! Internal volumes: parts of a drive that writes reach by their address alone.
//!
//! One bit of the address of random writes is held at 0 or 1. Where the bit selects a volume, only half of them work,
//! and saturated throughput halves; where it does not, nothing changes. The bits and one run without any bit held come
//! in random order, several times over.
//!
//! Where the host interface is the bottleneck, half of the drive may be as fast as all of it. So the bits are also told
//! by reads of data that was written in random order: two blocks whose addresses differ in a volume's bit alone never
//! wait for each other, while of any two blocks every n-th pair does. A bit that either shows is a volume's; throughput
//! is only asked where the pairs could not be told apart.
//!
//! Source: Kim et al., "SSDcheck", MICRO 2018, allocation-volume bits. Added: the rank test against runs without a bit,
//! instead of a person with a plot.

use flashwise_block::{ByteSize, Operation, Progress};
use flashwise_profile::{Figure, ProbeCurve};

use rand::RngExt;

use crate::LearnError;
use crate::draft::{Because, ProfileDraft, key};
use crate::prober::{Origin, Prober};
use crate::stats::graded::point;
use crate::stats::{median, rank};
use crate::step::Step;
use crate::verdict::{Doubt, Doubts, Wording, applying, doubt, doubt_of_either};

use super::buffer::WriteBuffer;
use super::far;
use super::throughput::Reads;
use super::units::{AFTERMATH, Conflicts, Units};

pub(crate) const INTERNAL_VOLUMES: Step = Step::new("internal volumes", &["internal_volumes", "internal_volume_bits"]);

const BLOCK: ByteSize = ByteSize::kib(4);
/// Writes in flight.
const DEPTH: usize = 64;
/// Writes of one run after the buffer is full.
const WRITES: usize = 2048;
/// Runs of each bit.
const RUNS: usize = 5;
/// Share of the free throughput to which it falls at most where a bit selects a volume: half, and something for what
/// limits it besides.
const HALVED_SHARE: f64 = 0.75;
const NAME: &str = "writes with one bit held";

/// Volumes, with the address bits that select them, as far as one way to measure them shows.
pub(super) struct Volumes {
    pub(super) count: Figure<u64>,
    pub(super) bits: Figure<u64>,
}

impl Volumes {
    /// Of the bits that select them; absent where there is none.
    fn of(selects: &[u32], doubts: &Doubts) -> Self {
        let mask = selects.iter().fold(0, |mask, bit| mask | 1 << bit);
        let count = 1 << selects.len();
        let (count, bits) = match selects.is_empty() {
            true => (Figure::absent(), Figure::absent()),
            false => (Figure::certain(count, count, count), Figure::certain(mask, mask, mask)),
        };
        Self { count: doubts.judge(count), bits: doubts.judge(bits) }
    }

    pub(super) fn set(&self, draft: &mut ProfileDraft) {
        draft.set(key!(internal_volumes), self.count);
        draft.set(key!(internal_volume_bits), self.bits);
    }

    fn settle(&self, (recipe, reason, curve): (&str, String, &str), draft: &mut ProfileDraft) {
        self.set(draft);
        for key in ["internal_volumes", "internal_volume_bits"] {
            draft.because(key, Because { recipe, reason: reason.clone(), curve: Some(curve) });
        }
    }
}

/// Why the bits of volumes may be inconclusive, beside whatever makes the number of volumes inconclusive: the bits of
/// places in a file are not those of the drive below.
const BITS_DOUBTS: [Doubt<Origin>; 1] = [doubt("a file", Wording::Nothing, |origin| *origin != Origin::Drive)];

/// Measures the bits of the region's addresses, and those beyond it that part the drive; hands on the units, with those
/// beyond the region.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    (reads, buffer, units): (&Reads, WriteBuffer, Units),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Units, LearnError> {
    let mut found = (count(prober, (reads, buffer, units), draft, progress)?, units);
    if let Some(conflicts) = units.conflicts.filter(|conflicts| conflicts.share >= WAITING_SHARE_MIN) {
        found = far::probe(prober, found, conflicts, draft, progress)?;
    }
    let (volumes, units) = found;
    draft.set(key!(internal_volume_bits), applying(&BITS_DOUBTS, prober.origin()).judge(volumes.bits));
    Ok(units)
}

/// Counts the volumes of the region, by pairs of reads where these can be told apart.
fn count(
    prober: &mut Prober<'_>,
    (reads, buffer, units): (&Reads, WriteBuffer, Units),
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Volumes, LearnError> {
    let lowest = BLOCK.bytes().trailing_zeros();
    let bits: Vec<u32> = (lowest..prober.region().bytes().ilog2()).collect();
    let Some(conflicts) = units.conflicts.filter(|conflicts| (WAITING_SHARE_MIN..0.9).contains(&conflicts.share))
    else {
        return by_throughput(prober, (reads, buffer), &bits, draft, progress);
    };
    let (volumes, selects) = by_pairs(prober, &bits, conflicts, draft, progress)?;
    // Where the number of units is no power of two, blocks that lie a power of two apart may never meet, whichever.
    let may_never_meet = !selects.is_empty() && units.count.value.is_some_and(|units| !units.is_power_of_two());
    if 1.0 / conflicts.share * UNITS_FACTOR >= (1_u64 << selects.len()) as f64 && !may_never_meet {
        return Ok(volumes);
    }
    let volumes = by_throughput(prober, (reads, buffer), &bits, draft, progress)?;
    if volumes.count.value.is_some() {
        return Ok(volumes);
    }
    // Of as many bits as that some may select, and something else limits writes.
    let unknown = Volumes { count: Figure::unknown(), bits: Figure::unknown() };
    unknown.set(draft);
    Ok(unknown)
}

/// Factor within which the share of pairs shows the number of units; there cannot be more volumes than units.
const UNITS_FACTOR: f64 = 1.5;

/// Writes with each bit held.
fn by_throughput(
    prober: &mut Prober<'_>,
    (reads, buffer): (&Reads, WriteBuffer),
    bits: &[u32],
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<Volumes, LearnError> {
    prober.fill_region(progress)?;
    let settle = (buffer.settling(prober.effort) / BLOCK) as usize;
    let visits = prober.shuffled((0..=bits.len()).flat_map(|i| std::iter::repeat_n(i, RUNS)));
    let mut rates = vec![Vec::with_capacity(RUNS); bits.len() + 1];
    for (n, &i) in visits.iter().enumerate() {
        prober.advance(progress, "internal volumes", n as f64 / visits.len() as f64)?;
        let held = bits.get(i).map(|&bit| (bit, (rates[i].len() % 2) as u64));
        let rate = run(prober, held, settle)?;
        prober.sample(NAME, bits.get(i).map_or(0.0, |&bit| f64::from(bit)), rate);
        rates[i].push(rate);
    }
    prober.flush()?;
    let free = rates.pop().unwrap_or_default();
    let selects: Vec<u32> =
        std::iter::zip(bits, &rates).filter(|(_, held)| halves(held, &free)).map(|(&bit, _)| bit).collect();
    let points = std::iter::zip(bits, &rates).map(|(&bit, rates)| point(f64::from(bit), rates)).collect();
    let (x, y) = ("bit of the byte address".to_owned(), "writes a second".to_owned());
    draft.keep(ProbeCurve { name: NAME.to_owned(), x, y, points, fit: Vec::new() });
    let recipe = "random 4 KiB writes, 64 in flight, with one address bit held constant; long-run throughput";
    let falls = || {
        format!(
            "with any of the bits {selects:?} held constant, throughput drops to at most {:.0} %",
            100.0 * HALVED_SHARE
        )
    };
    let reason = if selects.is_empty() { "no address bit changes throughput".to_owned() } else { falls() };
    let evidence = Held { reads, bits, rates: &rates, free: median(free), selects: &selects };
    let doubts = applying(&Held::THROUGHPUT_DOUBTS, &evidence);
    let volumes = Volumes::of(&selects, &doubts);
    volumes.settle((recipe, doubts.reason(reason), NAME), draft);
    Ok(volumes)
}

/// What volumes rest on where throughput with a bit held shows them.
struct Held<'a> {
    reads: &'a Reads,
    bits: &'a [u32],
    /// Requests a second with each bit held, and with none.
    rates: &'a [Vec<f64>],
    free: f64,
    selects: &'a [u32],
}

impl Held<'_> {
    /// Why volumes that throughput shows, or their absence, may be inconclusive.
    const THROUGHPUT_DOUBTS: [Doubt<Self>; 2] = [
        doubt_of_either(
            "the host interface limits writes",
            Wording::Instead(
                "no address bit changes throughput, but half of the flash may be as fast as the host interface",
            ),
            |held| held.selects.is_empty() && something_else_sets_the_pace(held.reads, held.free),
        ),
        doubt(
            "other bits change throughput nearly as much",
            Wording::InsteadOf(|held| {
                format!("the bits {:?} change throughput most, but others nearly as much", held.selects)
            }),
            |held| !stand_apart(held.bits, held.rates, held.selects),
        ),
    ];
}

/// Pairs of which one is expected to wait, times this number, are read for each bit: if none does, chance is e⁻²⁰.
const WAITING_PAIRS: f64 = 20.0;
/// Share of pairs that may wait beyond those that meet in one unit, by chance.
const BY_CHANCE_SHARE: f64 = 0.05;
/// Share of random pairs that wait below which too many pairs would be needed.
const WAITING_SHARE_MIN: f64 = 0.002;
/// Share of the usual number of waiting pairs that differ in a bit of a volume, at most: of 20 expected, chance
/// leaves so few of one bit in ten thousand.
const SELDOM_SHARE: f64 = 0.25;
/// Share of [`WAITING_PAIRS`] that wait, below which a bit selects a volume: one late read in many pairs is no
/// conflict.
const PARTS_SHARE: f64 = 0.125;
const PAIRS_NAME: &str = "pairs that differ in one bit";

/// Reads pairs of blocks whose addresses differ in one bit, for each bit.
fn by_pairs(
    prober: &mut Prober<'_>,
    bits: &[u32],
    Conflicts { pairs: reading, border, share, .. }: Conflicts,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(Volumes, Vec<u32>), LearnError> {
    prober.scatter_region(progress)?;
    prober.rest(AFTERMATH)?;
    let pairs = (WAITING_PAIRS / share).ceil() as usize;
    let places = 1 << (prober.region().bytes().ilog2() - BLOCK.bytes().trailing_zeros());
    let mut waiting = Vec::with_capacity(bits.len());
    for (n, &bit) in bits.iter().enumerate() {
        prober.advance(progress, "internal volumes", n as f64 / bits.len() as f64)?;
        let mut slow = 0;
        for _ in 0..pairs {
            let block = BLOCK * prober.random.random_range(0..places);
            let other = ByteSize(block.bytes() ^ 1 << bit);
            slow += usize::from(reading.added_at(prober, [block, other])? > border);
        }
        prober.sample(PAIRS_NAME, f64::from(bit), slow as f64 / pairs as f64);
        waiting.push(slow);
    }
    // One late read in many pairs is no conflict: of WAITING_PAIRS expected, a quarter would be many.
    let parts = |slow: usize| (slow as f64) < WAITING_PAIRS * PARTS_SHARE;
    // Blocks on one channel wait for each other a little, and may seem to wait as those of one unit do.
    let usual = median(waiting.iter().map(|&slow| slow as f64 / pairs as f64).collect());
    let may_part = |slow: usize| slow as f64 / pairs as f64 <= SELDOM_SHARE * usual && usual >= share;
    let selects: Vec<u32> = std::iter::zip(bits, &waiting)
        .filter(|&(_, &slow)| parts(slow) || may_part(slow))
        .map(|(&bit, _)| bit)
        .collect();
    let all_part = std::iter::zip(bits, &waiting).all(|(bit, &slow)| parts(slow) || !selects.contains(bit));
    let points = std::iter::zip(bits, &waiting)
        .map(|(&bit, &slow)| point(f64::from(bit), &[100.0 * slow as f64 / pairs as f64]))
        .collect();
    let (x, y) = ("bit of the byte address".to_owned(), "pairs that wait, %".to_owned());
    draft.keep(ProbeCurve { name: PAIRS_NAME.to_owned(), x, y, points, fit: Vec::new() });
    let recipe = "pairs of concurrent 4 KiB reads of blocks written in random order whose addresses differ in one bit";
    let none =
        format!("about {:.1} % of the pairs that differ in one bit wait for each other, whichever bit", 100.0 * share);
    let some = format!("pairs that differ in any of the bits {selects:?} never wait for each other");
    let reason = if selects.is_empty() { none } else { some };
    let evidence = PairsByBit { selects: &selects, all_part, usual, share };
    let doubts = applying(&PairsByBit::PAIRS_DOUBTS, &evidence);
    let volumes = Volumes::of(&selects, &doubts);
    volumes.settle((recipe, doubts.reason(reason), PAIRS_NAME), draft);
    Ok((volumes, selects))
}

/// What volumes rest on where pairs of reads show them.
struct PairsByBit<'a> {
    selects: &'a [u32],
    /// Whether hardly any pair waits whose blocks differ in a bit that selects.
    all_part: bool,
    /// Share of pairs that wait, of the usual bit and of random pairs.
    usual: f64,
    share: f64,
}

impl PairsByBit<'_> {
    /// Why volumes that pairs of reads show, or their absence, may be inconclusive.
    const PAIRS_DOUBTS: [Doubt<Self>; 2] = [
        // Within a volume more pairs wait than anywhere; without volumes, they are held back by something else than
        // units.
        doubt_of_either(
            "more pairs wait than one unit explains",
            Wording::InsteadOf(|pairs| {
                format!("{:.0} % of pairs wait, more than one unit explains", 100.0 * pairs.usual)
            }),
            |pairs| pairs.selects.is_empty() && pairs.usual > UNITS_FACTOR * pairs.share + BY_CHANCE_SHARE,
        ),
        doubt("some pairs wait that differ in a bit that selects", Wording::Nothing, |pairs| !pairs.all_part),
    ];
}

/// Requests a second of random writes with a bit held.
fn run(prober: &mut Prober<'_>, held: Option<(u32, u64)>, settle: usize) -> Result<f64, LearnError> {
    let mut anywhere = crate::prober::anywhere(ByteSize(1 << prober.region().bytes().ilog2()), BLOCK);
    let mut place = |random: &mut rand_pcg::Pcg64Mcg| {
        let offset = anywhere(random).bytes();
        ByteSize(held.map_or(offset, |(bit, value)| offset & !(1 << bit) | value << bit))
    };
    while prober.wait()?.is_some() {}
    prober.keep_in_flight(Operation::Write, BLOCK, DEPTH, settle, &mut place)?;
    prober.rate(Operation::Write, BLOCK, DEPTH, WRITES, &mut place)
}

/// Whether writes are about as fast as reads: then commands or the link may set the pace of both, and half of the flash
/// be fast enough for it.
fn something_else_sets_the_pace(reads: &Reads, writes_per_s: f64) -> bool {
    reads.of(BLOCK).is_some_and(|reads| writes_per_s >= HALVED_SHARE * reads.throughput.plateau())
}

/// Cliff's δ, the difference of the shares of pairs, from which on runs with a bit held are slower than free ones in
/// nearly all pairs.
const HALVED_DELTA: f64 = 0.9;

fn halves(held: &[f64], free: &[f64]) -> bool {
    let test = rank::compare(free, held);
    test.delta >= HALVED_DELTA && median(held.to_vec()) <= HALVED_SHARE * median(free.to_vec())
}

/// Whether throughput falls clearly more with the bits that select than with any that do not.
fn stand_apart(bits: &[u32], rates: &[Vec<f64>], selects: &[u32]) -> bool {
    let level = |of: bool| {
        let sorted_out = std::iter::zip(bits, rates).filter(move |(bit, _)| selects.contains(bit) == of);
        sorted_out.map(|(_, rates)| median(rates.clone()))
    };
    let (slowest_other, fastest) = (level(false).fold(f64::MAX, f64::min), level(true).fold(0.0, f64::max));
    fastest <= HALVED_SHARE * slowest_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_select_only_where_all_others_leave_throughput_alone() {
        let rates = |levels: [f64; 4]| levels.map(|level| vec![level; 5]).to_vec();
        let bits = [12, 13, 14, 15];
        assert!(stand_apart(&bits, &rates([100.0, 52.0, 98.0, 50.0]), &[13, 15]));
        assert!(!stand_apart(&bits, &rates([60.0, 52.0, 98.0, 100.0]), &[13]), "the next one is nearly as slow");
        assert!(stand_apart(&bits, &rates([100.0; 4]), &[]));
    }
}
