//! Internal volumes: parts of a drive that writes reach by their address alone.
//!
//! One bit of the address of random writes is held at 0 or 1. Where the bit selects a volume, only half of them work, and
//! saturated throughput halves; where it does not, nothing changes. The bits and one run without any bit held come in
//! random order, several times over.
//!
//! Where the host interface is the bottleneck, half of the drive may be as fast as all of it. So the bits are also told by
//! reads of data that was written in random order: two blocks whose addresses differ in a volume's bit alone never wait
//! for each other, while of any two blocks every n-th pair does. A bit that either shows is a volume's; throughput is
//! only asked where the pairs could not be told apart.
//!
//! Source: Kim et al., "SSDcheck", MICRO 2018, allocation-volume bits. Added: the rank test against runs without a bit,
//! instead of a person with a plot.

use flashwise_block::{ByteSize, Operation, Progress};
use flashwise_profile::{Figure, ProbeCurve};

use rand::RngExt;

use crate::LearnError;
use crate::findings::{Because, Findings, point};
use crate::prober::{Origin, Prober};
use crate::stats::{median, rank};

use super::far;
use super::throughput::settling;
use super::units::{AFTERMATH, Conflicts};

const BLOCK: ByteSize = ByteSize::kib(4);
/// Writes in flight.
const DEPTH: usize = 64;
/// Writes of one run after the buffer is full.
const WRITES: usize = 2048;
/// Runs of each bit.
const RUNS: usize = 5;
/// A bit selects a volume if throughput falls to at most this share: half, and something for what limits it besides.
const HALVED_SHARE: f64 = 0.75;
const NAME: &str = "writes with one bit held";

/// Measures the bits of the region's addresses, and those beyond it that part the drive.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    count(prober, findings, progress)?;
    if let Some(conflicts) = findings.conflicts.filter(|conflicts| conflicts.share >= SHARE_MIN) {
        far::probe(prober, findings, conflicts, progress)?;
    }
    let told = findings.parameters.internal_volume_bits.value.is_some();
    if told && *prober.origin() != Origin::Drive {
        // The bits of places in a file are not those of the drive below.
        findings.parameters.doubt("internal_volume_bits");
    }
    Ok(())
}

fn count(prober: &mut Prober<'_>, findings: &mut Findings, progress: &mut dyn Progress) -> Result<(), LearnError> {
    let lowest = BLOCK.bytes().trailing_zeros();
    let bits: Vec<u32> = (lowest..prober.region().bytes().ilog2()).collect();
    if let Some(conflicts) = findings.conflicts.filter(|conflicts| (SHARE_MIN..0.9).contains(&conflicts.share)) {
        let selects = by_pairs(prober, findings, &bits, conflicts, progress)?;
        // Where the number of units is no power of two, blocks that lie a power of two apart may never meet, whichever.
        let units = findings.parameters.parallel_units.value;
        let may_never_meet = !selects.is_empty() && units.is_some_and(|units| !units.is_power_of_two());
        if 1.0 / conflicts.share * MORE_THAN_UNITS >= (1_u64 << selects.len()) as f64 && !may_never_meet {
            return Ok(());
        }
        by_throughput(prober, findings, &bits, progress)?;
        let p = &mut findings.parameters;
        if p.internal_volumes.value.is_none() {
            // Of as many bits as that some may select, and something else limits writes.
            (p.internal_volumes, p.internal_volume_bits) = (Figure::unknown(), Figure::unknown());
        }
        return Ok(());
    }
    by_throughput(prober, findings, &bits, progress)
}

/// There cannot be more volumes than units; the share of pairs tells these to within this factor.
const MORE_THAN_UNITS: f64 = 1.5;

/// Writes with each bit held.
fn by_throughput(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    bits: &[u32],
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    prober.fill_region(progress)?;
    let settle = (settling(prober.effort, findings.parameters.write_buffer_bytes.known()) / BLOCK) as usize;
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
    findings.keep(ProbeCurve { name: NAME.to_owned(), x, y, points, fit: Vec::new() });
    let recipe = "random 4 KiB writes, 64 in flight, with one address bit held; throughput in the long run";
    let falls =
        || format!("with any of bits {selects:?} held, throughput falls to at most {:.0} %", 100.0 * HALVED_SHARE);
    let reason = if selects.is_empty() { "no bit changes throughput".to_owned() } else { falls() };
    let is_hidden = selects.is_empty() && something_else_sets_the_pace(findings, median(free));
    tell(findings, &selects, (recipe, reason, NAME));
    if is_hidden {
        let p = &mut findings.parameters;
        (p.internal_volumes, p.internal_volume_bits) = (Figure::unknown(), Figure::unknown());
        for key in ["internal_volumes", "internal_volume_bits"] {
            let reason =
                "no bit changes throughput, but half of the flash may be as fast as the host interface".to_owned();
            findings.because(key, Because { recipe, reason, curve: Some(NAME) });
        }
    }
    if !stand_apart(bits, &rates, &selects) {
        let p = &mut findings.parameters;
        p.internal_volumes.doubt();
        p.internal_volume_bits.doubt();
        let reason = format!("of all bits, {selects:?} change throughput most, and others nearly as much");
        for key in ["internal_volumes", "internal_volume_bits"] {
            findings.because(key, Because { recipe, reason: reason.clone(), curve: Some(NAME) });
        }
    }
    Ok(())
}

/// Pairs for each bit, in multiples of the number among which one is expected to wait: if none does, chance is e⁻²⁰.
const PAIRS: f64 = 20.0;
/// Share of pairs that may wait beyond that by chance.
const BY_CHANCE: f64 = 0.05;
/// Where fewer pairs wait than this, too many would be needed.
const SHARE_MIN: f64 = 0.002;
/// Pairs that differ in a bit of a volume wait so much more seldom than others: of 20 expected, chance leaves so few of one bit
/// in ten thousand.
const SELDOM: f64 = 0.25;
const PAIRS_NAME: &str = "pairs that differ in one bit";

/// Reads pairs of blocks whose addresses differ in one bit, for each bit.
fn by_pairs(
    prober: &mut Prober<'_>,
    findings: &mut Findings,
    bits: &[u32],
    Conflicts { pairs: reading, border, share, .. }: Conflicts,
    progress: &mut dyn Progress,
) -> Result<Vec<u32>, LearnError> {
    prober.scatter_region(progress)?;
    prober.rest(AFTERMATH)?;
    let pairs = (PAIRS / share).ceil() as usize;
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
    // One late read in many pairs is no conflict: of PAIRS expected, a quarter would be many.
    let parts = |slow: usize| (slow as f64) < PAIRS / 8.0;
    // Blocks on one channel wait for each other a little, and may seem to wait as those of one unit do.
    let usual = median(waiting.iter().map(|&slow| slow as f64 / pairs as f64).collect());
    let may_part = |slow: usize| slow as f64 / pairs as f64 <= SELDOM * usual && usual >= share;
    let selects: Vec<u32> = std::iter::zip(bits, &waiting)
        .filter(|&(_, &slow)| parts(slow) || may_part(slow))
        .map(|(&bit, _)| bit)
        .collect();
    let all_part = std::iter::zip(bits, &waiting).all(|(bit, &slow)| parts(slow) || !selects.contains(bit));
    let points = std::iter::zip(bits, &waiting)
        .map(|(&bit, &slow)| point(f64::from(bit), &[100.0 * slow as f64 / pairs as f64]))
        .collect();
    let (x, y) = ("bit of the byte address".to_owned(), "pairs that wait, %".to_owned());
    findings.keep(ProbeCurve { name: PAIRS_NAME.to_owned(), x, y, points, fit: Vec::new() });
    let recipe =
        "pairs of 4 KiB reads, both at once, of blocks written in random order whose addresses differ in one bit";
    let none = format!("of pairs that differ in any one bit about {:.1} % wait for each other", 100.0 * share);
    let some = format!("pairs that differ in any of bits {selects:?} never wait for each other");
    // Within a volume more pairs wait than anywhere; without volumes, they are held back by something else than units.
    if selects.is_empty() && usual > MORE_THAN_UNITS * share + BY_CHANCE {
        let p = &mut findings.parameters;
        (p.internal_volumes, p.internal_volume_bits) = (Figure::unknown(), Figure::unknown());
        for key in ["internal_volumes", "internal_volume_bits"] {
            let reason = format!("{:.0} % of pairs wait, more than meet in one unit", 100.0 * usual);
            findings.because(key, Because { recipe, reason, curve: Some(PAIRS_NAME) });
        }
        return Ok(Vec::new());
    }
    let reason = if selects.is_empty() { none } else { some };
    tell(findings, &selects, (recipe, reason, PAIRS_NAME));
    if !all_part {
        findings.parameters.internal_volumes.doubt();
        findings.parameters.internal_volume_bits.doubt();
    }
    Ok(selects)
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

/// Whether writes are about as fast as reads: then commands or the link may set the pace of both, and half of the flash be
/// fast enough for it.
fn something_else_sets_the_pace(findings: &Findings, writes_per_s: f64) -> bool {
    let reads = findings.reads.iter().find(|reads| reads.length == BLOCK);
    reads.is_some_and(|reads| writes_per_s >= HALVED_SHARE * reads.throughput.plateau())
}

fn halves(held: &[f64], free: &[f64]) -> bool {
    let test = rank::compare(free, held);
    test.delta >= 0.9 && median(held.to_vec()) <= HALVED_SHARE * median(free.to_vec())
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

fn tell(findings: &mut Findings, selects: &[u32], (recipe, reason, curve): (&str, String, &str)) {
    let p = &mut findings.parameters;
    (p.internal_volumes, p.internal_volume_bits) = if selects.is_empty() {
        (Figure::absent(), Figure::absent())
    } else {
        let mask = selects.iter().fold(0, |mask, bit| mask | 1 << bit);
        let count = 1 << selects.len();
        (Figure::certain(count, count, count), Figure::certain(mask, mask, mask))
    };
    for key in ["internal_volumes", "internal_volume_bits"] {
        findings.because(key, Because { recipe, reason: reason.clone(), curve: Some(curve) });
    }
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
