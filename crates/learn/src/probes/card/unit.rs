//! Where units end.
//!
//! A pair of writes, the second further on: it is slow if a unit ends between them, and if that unit was closed. Pairs
//! three quarters in front of and one quarter behind odd multiples of a length show whether units are that long:
//!
//! ```text
//!   |··········x|···y········|   units as long as the distance, or shorter: the second is slow at each place
//!   |···················x···y|   at least twice as long: at none
//!   |····x···y····|·····x·|·y|   three quarters, or half as much again: at some
//! ```
//!
//! The size is the one candidate that explains all pairs but one in twenty. On a card that copies what is in front of a
//! write, a whole merge is needed to call one slow, and before each pair all open units are closed by others that are
//! written near their start, so that closing them takes as long as it can.

use flashwise_block::ByteSize;
use flashwise_profile::Figure;

use super::open::{Order, count_at, middle};
use super::{NO_UNITS_FROM, Probe};
use crate::LearnError;

/// Lengths that are tried, as powers of two, from the largest: half of the largest unit that there is, 64 MiB.
const LONGEST: u32 = 25;
const SHORTEST: u32 = 17;
/// Pairs of each length: two of each remainder by three, in which units of 3·2ⁿ differ.
const PAIRS: u64 = 6;
/// Lengths without a slow pair, one after the other, after which no shorter one is tried.
const QUIET: usize = 2;
/// Pairs that a size may fail to explain, as one in so many; and by how many more the next best must fail.
const UNEXPLAINED: usize = 20;
const NEXT_BEST: usize = 2;
/// Bytes between the pairs, so that they do not fill one unit's log.
const BETWEEN: ByteSize = ByteSize::mib(7);
/// Blocks by which a pair is moved on.
const INSIDE: u64 = 3;
/// Where units are that are written to close others: multiples of nearly all sizes.
const CLOSERS: ByteSize = ByteSize::mib(48);

/// A pair and what came of it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    first: ByteSize,
    second: ByteSize,
    is_slow: bool,
}

/// What is known of the size.
#[derive(Clone, Debug)]
pub(super) enum Unit {
    /// It explains the pairs.
    Known { size: ByteSize, pairs: usize },
    /// No write was slow, and so much was written.
    NoneSeen(ByteSize),
    /// And why.
    Unclear(String),
}

impl Unit {
    /// Without a slow write.
    pub(super) fn none(area: ByteSize) -> Self {
        Self::NoneSeen(area)
    }

    pub(super) fn size(&self) -> Option<ByteSize> {
        match self {
            Self::Known { size, .. } => Some(*size),
            _ => None,
        }
    }

    /// The figure and why.
    pub(super) fn figure(&self) -> (Figure<u64>, String) {
        match self {
            Self::Known { size, pairs } => {
                let reason = format!("of {pairs} pairs, those with the end of such a unit between them are slow");
                (Figure::certain(size.0, size.0, size.0), reason)
            }
            Self::NoneSeen(area) if *area >= NO_UNITS_FROM => {
                (Figure::absent(), format!("no place in {area} is slower than another"))
            }
            Self::NoneSeen(area) => {
                (Figure::unknown(), format!("no place in {area} is slower than another; more units may stay open"))
            }
            Self::Unclear(why) => (Figure::unknown(), why.clone()),
        }
    }
}

/// Sizes that a unit may have: powers of two, and three times one.
fn candidates() -> impl Iterator<Item = ByteSize> {
    (SHORTEST..=LONGEST + 1).flat_map(|n| [ByteSize(1 << n), ByteSize(3 << (n - 1))])
}

/// The size that explains the pairs.
fn explained(pairs: &[Pair]) -> Unit {
    let fails = |size: ByteSize| pairs.iter().filter(|p| (p.first / size != p.second / size) != p.is_slow).count();
    let mut by_fails: Vec<(usize, ByteSize)> = candidates().map(|size| (fails(size), size)).collect();
    by_fails.sort_unstable();
    match by_fails[..] {
        [(fails, size), (next, _), ..] if fails <= pairs.len() / UNEXPLAINED && next >= fails + NEXT_BEST => {
            Unit::Known { size, pairs: pairs.len() }
        }
        [(fails, size), (_, other), ..] if fails <= pairs.len() / UNEXPLAINED => {
            Unit::Unclear(format!("units of {size} and of {other} explain the pairs alike"))
        }
        [(fails, size), ..] => {
            Unit::Unclear(format!("units of {size} explain the pairs best, but not {fails} of {}", pairs.len()))
        }
        [] => Unit::Unclear("no pair was written".to_owned()),
    }
}

/// Measures pairs.
pub(super) fn measure(probe: &mut Probe<'_, '_>) -> Result<Unit, LearnError> {
    if let Some(why) = &probe.area.why_unplaced {
        return Ok(Unit::Unclear(format!("units count from the start of the card, but {why}")));
    }
    let closers = if takes_any_order(probe)? { 0 } else { closers(probe)? };
    let Some(closers) = (closers < probe.area.count_of(CLOSERS)).then_some(closers) else {
        return Ok(Unit::Unclear("more units stay open than fit the area far apart".to_owned()));
    };
    let mut pairs = Vec::new();
    let (mut cursor, mut quiet) = (probe.area.first(), 0);
    for length in (SHORTEST..=LONGEST).rev().map(|n| ByteSize(1 << n)) {
        let mut slow = 0;
        for n in 0..PAIRS {
            probe.prober.advance(probe.progress, "ends of units", (LONGEST - length.0.ilog2()) as f64 / 9.0)?;
            let Some((first, second)) = place(probe, length, n % 3, &mut cursor) else { continue };
            let pair = measure_pair(probe, first, second, closers)?;
            slow += usize::from(pair.is_slow);
            pairs.push(pair);
        }
        quiet = if slow == 0 { quiet + 1 } else { 0 };
        if quiet == QUIET && pairs.iter().any(|pair| pair.is_slow) {
            break;
        }
    }
    Ok(explained(&pairs))
}

/// The next pair of a length behind the cursor: its odd multiple leaves a remainder by three.
fn place(
    probe: &Probe<'_, '_>,
    length: ByteSize,
    remainder: u64,
    cursor: &mut ByteSize,
) -> Option<(ByteSize, ByteSize)> {
    for from in [*cursor, probe.area.first()] {
        let least = (from + length).0.div_ceil(2 * length.0);
        let nth = (least..).find(|nth| nth % 3 == remainder)?;
        let middle = length * (2 * nth + 1);
        // Not at the start of a unit, where it would go on in order.
        let inside = probe.block * INSIDE;
        let second = middle + ByteSize(length.0 / 4) + inside;
        if second + probe.block <= probe.area.end() {
            *cursor = second + BETWEEN;
            return Some((ByteSize(middle.0 - length.0 / 4 * 3) + inside, second));
        }
    }
    None
}

fn measure_pair(
    probe: &mut Probe<'_, '_>,
    first: ByteSize,
    second: ByteSize,
    closers: u64,
) -> Result<Pair, LearnError> {
    for n in 0..closers {
        probe.write(probe.area.start_of(CLOSERS, n) + probe.block)?;
    }
    probe.write(first)?;
    let time = probe.write(second)?;
    let is_slow = if closers > 0 { probe.slow.is_whole_merge(time) } else { probe.slow.is_merge(time) };
    Ok(Pair { first, second, is_slow })
}

/// Places where it is tried whether a write backwards is slow.
const BACKWARDS: u64 = 5;

/// Whether a unit takes a write in front of its last one without a merge.
fn takes_any_order(probe: &mut Probe<'_, '_>) -> Result<bool, LearnError> {
    let distance = ByteSize::mib(16);
    let places = probe.area.count_of(distance).min(BACKWARDS);
    let mut quick = 0;
    for n in 0..places {
        let start = probe.area.start_of(distance, n);
        probe.write(start + probe.block * 4)?;
        probe.write(start + probe.block * 6)?;
        let time = probe.write(start + probe.block * 2)?;
        quick += u64::from(!probe.slow.is_merge(time));
    }
    Ok(2 * quick > places)
}

/// How many units have to be written so that all others are closed.
fn closers(probe: &mut Probe<'_, '_>) -> Result<u64, LearnError> {
    let most = probe.area.count_of(CLOSERS);
    let mut places =
        |probe: &Probe<'_, '_>, units: u64| ((0..units).map(|n| probe.area.start_of(CLOSERS, n)).collect(), CLOSERS);
    let open = count_at(probe, most, &mut places, Order::Linear)?;
    // At the starts of units nothing is copied in front: what is slow is a whole merge.
    if !open.merges.is_empty() {
        probe.slow.merge_ns = middle(&open.merges).0;
    }
    Ok(open.exactly().map_or(u64::MAX, |units| units + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs on an ideal card.
    fn pairs(size: ByteSize) -> Vec<Pair> {
        let of = |length: ByteSize, n: u64| {
            let middle = length * (2 * n + 1) + length * 6;
            let (first, second) = (ByteSize(middle.0 - length.0 / 4 * 3), middle + ByteSize(length.0 / 4));
            Pair { first, second, is_slow: first / size != second / size }
        };
        (SHORTEST..=LONGEST).flat_map(|n| (0..PAIRS).map(move |m| of(ByteSize(1 << n), m))).collect()
    }

    #[test]
    fn each_size_explains_its_own_pairs_and_no_other_does() {
        for size in candidates().filter(|size| (256 << 10..=48 << 20).contains(&size.0)) {
            assert_eq!(explained(&pairs(size)).size(), Some(size));
        }
    }

    #[test]
    fn pairs_that_no_size_explains_leave_it_open() {
        let mut pairs = pairs(ByteSize::mib(4));
        pairs.iter_mut().step_by(4).for_each(|pair| pair.is_slow = !pair.is_slow);
        assert!(matches!(explained(&pairs), Unit::Unclear(_)));
    }
}
