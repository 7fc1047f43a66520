//! How many units stay open: a block of each of so many in rotation. Where one more than stay open are written, the
//! unit that was not written for longest is closed each time, and that is the next one: all writes are slow. On a card
//! that keeps more units open in order than in any order, those that were closed go on out of order and close each
//! other, and the others stay. So a number stays open where no unit is slow in each rotation; now and then any may be,
//! where its log is full.

use flashwise_block::{ByteSize, Nanos};
use flashwise_profile::Figure;

use super::Probe;
use super::writes::rotations;
use crate::LearnError;
use crate::stats::median;

/// Distance of two writes to a unit out of order, in blocks, backwards.
const BACK: u64 = 2;
/// Most units that are tried: twice what class A1 has to keep open.
const UNITS_MAX: u64 = 128;

/// In which order a unit is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// From its start on, block by block.
    Linear,
    /// Backwards, with gaps.
    Random,
}

/// Bytes of a write in order: whole pages, on a card with pages longer than a timed write too.
const IN_ORDER: ByteSize = ByteSize::kib(64);

impl Order {
    /// Bytes of a write.
    fn bytes(self, block: ByteSize) -> ByteSize {
        match self {
            Self::Linear => IN_ORDER.max(block),
            Self::Random => block,
        }
    }

    /// Which block of a unit of so many is written in a rotation.
    fn block(self, rotation: u64, blocks: u64) -> u64 {
        match self {
            Self::Linear => rotation,
            Self::Random => (blocks - 1).saturating_sub(1 + BACK * rotation % (blocks - 1).max(1)),
        }
    }
}

/// How many units stay open.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// The most of which all stayed open, and the fewest of which none did.
    stayed: Option<u64>,
    closed: Option<u64>,
    /// Times of the fewest of which none stayed.
    pub(super) merges: Vec<Nanos>,
    /// Median latencies by number of units.
    pub(super) times: Vec<(u64, Nanos)>,
}

impl Open {
    /// Nothing was tried.
    pub(super) fn unknown() -> Self {
        Self { stayed: None, closed: None, merges: Vec::new(), times: Vec::new() }
    }

    /// The number, where it is sure.
    pub(super) fn exactly(&self) -> Option<u64> {
        self.stayed.filter(|stayed| self.closed == Some(stayed + 1))
    }

    /// The figure and why.
    pub(super) fn figure(&self) -> (Figure<u64>, String) {
        match (self.exactly(), self.stayed, self.closed) {
            (Some(0), ..) => (Figure::absent(), "each write is slow, also to one unit alone".to_owned()),
            (Some(n), ..) => {
                let reason = format!("of {n} all stay open, of {} not", n + 1);
                (Figure::certain(n, n, n), reason)
            }
            (None, Some(n), _) => {
                (Figure::inconclusive(n, n, u64::MAX), format!("all {n} that fit the area stay open"))
            }
            _ => (Figure::unknown(), "the size of a unit is not known".to_owned()),
        }
    }
}

/// Counts the units that stay open in an order.
pub(super) fn count(probe: &mut Probe<'_, '_>, size: ByteSize, order: Order) -> Result<Open, LearnError> {
    let most = probe.area.count_of(size).min(UNITS_MAX);
    let mut next = 0;
    count_at(
        probe,
        most,
        &mut |probe, units| {
            // Others than before, as long as there are.
            if next + units > probe.area.count_of(size) {
                next = 0;
            }
            let starts = (next..next + units).map(|n| probe.area.start_of(size, n)).collect();
            next += units;
            (starts, size)
        },
        order,
    )
}

/// Starts of units, and the bytes of each.
pub(super) type Units = (Vec<ByteSize>, ByteSize);

/// The same of units that start at given places, and have so many bytes.
pub(super) fn count_at(
    probe: &mut Probe<'_, '_>,
    most: u64,
    places: &mut dyn FnMut(&Probe<'_, '_>, u64) -> Units,
    order: Order,
) -> Result<Open, LearnError> {
    let mut open = Open { stayed: Some(0), closed: None, merges: Vec::new(), times: Vec::new() };
    loop {
        let units = match (open.stayed.unwrap_or(0), open.closed) {
            (low, Some(high)) if high <= low + 1 => return Ok(open),
            (low, Some(high)) => low.midpoint(high),
            (low, None) if low >= most => return Ok(open),
            (low, None) => (low * 2).clamp(1, most),
        };
        let (starts, size) = places(probe, units);
        let rotated = rotate(probe, &starts, size, order)?;
        open.times.push((units, middle(&rotated.times)));
        if rotated.all_stay {
            open.stayed = Some(units);
        } else {
            (open.closed, open.merges) = (Some(units), rotated.times);
        }
    }
}

/// The median of some times.
pub(super) fn middle(times: &[Nanos]) -> Nanos {
    Nanos(median(times.iter().map(|time| time.0 as f64).collect()) as u64)
}

/// What came of writes to units in rotation.
struct Rotated {
    /// Whether no unit was slow each time.
    all_stay: bool,
    times: Vec<Nanos>,
}

/// Writes to units in rotation; the first rotation opens them and does not count.
fn rotate(probe: &mut Probe<'_, '_>, starts: &[ByteSize], size: ByteSize, order: Order) -> Result<Rotated, LearnError> {
    let bytes = order.bytes(probe.block);
    let blocks = size / bytes;
    let mut times = Vec::new();
    let mut quick = vec![false; starts.len()];
    let most = rotations(starts.len() as u64).min(blocks);
    for rotation in 0..most {
        probe.prober.advance(probe.progress, "open units", rotation as f64 / most as f64)?;
        for (&start, quick) in starts.iter().zip(&mut quick) {
            let time = probe.write_bytes(start + bytes * order.block(rotation, blocks), bytes)?;
            if rotation > 0 {
                *quick |= !probe.slow.is_merge(time);
                times.push(time);
            }
        }
    }
    Ok(Rotated { all_stay: quick.iter().all(|&quick| quick), times })
}

/// Whether the first unit of the card stays open beside as many others as there may be.
pub(super) fn is_first_beside(
    probe: &mut Probe<'_, '_>,
    size: ByteSize,
    units: u64,
) -> Result<Option<bool>, LearnError> {
    if !probe.area.has_start() || units > probe.area.count_of(size) {
        return Ok(None);
    }
    let last = probe.area.count_of(size);
    let others = (last - units..last).map(|n| probe.area.start_of(size, n));
    let starts: Vec<ByteSize> = std::iter::once(ByteSize(0)).chain(others).collect();
    Ok(Some(rotate(probe, &starts, size, Order::Linear)?.all_stay))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_profile::Verdict;

    fn open(stayed: u64, closed: Option<u64>) -> Open {
        Open { stayed: Some(stayed), closed, merges: Vec::new(), times: Vec::new() }
    }

    #[test]
    fn a_number_is_certain_where_one_more_is_slow() {
        assert_eq!(open(3, Some(4)).figure().0.known(), Some(3));
        assert_eq!(open(0, Some(1)).figure().0.verdict, Verdict::Absent);
        assert_eq!(open(16, None).figure().0, Figure::inconclusive(16, 16, u64::MAX));
        assert_eq!(Open::unknown().figure().0, Figure::unknown());
    }

    #[test]
    fn no_two_rotations_out_of_order_write_neighbours() {
        for blocks in [8, 256] {
            let written: Vec<u64> = (0..5).map(|rotation| Order::Random.block(rotation, blocks)).collect();
            assert!(written.windows(2).all(|pair| pair[1] != pair[0] + 1), "{written:?}");
            assert!(written.iter().all(|&block| block < blocks));
        }
    }
}
