//! Small writes on a fresh drive: what they program where garbage collection does not run.

use flashwise_block::{ByteSize, Operation, Progress};

use crate::LearnError;
use crate::draft::ProfileDraft;
use crate::evidence::Evidence;
use crate::prober::{Prober, anywhere};
use crate::step::Step;

use super::windows::Mark;

pub(crate) const SMALL_WRITES: Step = Step { overwrites: super::collection::PASSES, ..Step::new("small writes", &[]) };

const BLOCK: ByteSize = ByteSize::kib(4);
/// Requests in flight.
const DEPTH: u32 = 256;
/// Writes in all, and between two looks at what the drive counts.
const WRITES: usize = 16_384;
const WRITES_A_BATCH: usize = 512;

/// Evidence of what small writes waste: flash bytes that the drive programs for each host byte of random 4 KiB writes
/// when garbage collection does not run; nothing where the drive does not count, has erased before, or an earlier run
/// measured it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Padding(pub(crate) Option<f64>);

impl Evidence for Padding {
    fn recorded(_: &ProfileDraft) -> Self {
        Self(None)
    }
}

/// Measures small writes of a drive on which garbage collection never ran: one that has never erased. On one that was
/// in use they cannot be told from what it moves.
pub(crate) fn probe(prober: &mut Prober<'_>, progress: &mut dyn Progress) -> Result<Padding, LearnError> {
    let mut padding = Padding(None);
    if !prober.never_erased() {
        return Ok(padding);
    }
    prober.advance(progress, SMALL_WRITES.name, 0.0)?;
    prober.flush()?;
    let depth = DEPTH.min(prober.queue_depth().max(1)) as usize;
    let mut place = anywhere(prober.region(), BLOCK);
    let (begin, mut under_way) = (Mark::now(prober), None);
    for n in 1..=WRITES / WRITES_A_BATCH {
        prober.keep_in_flight(Operation::Write, BLOCK, depth, WRITES_A_BATCH, &mut place)?;
        if !prober.never_erased() {
            return Ok(padding);
        }
        // A drive that wastes much erases before the end: then what counts is what it programmed in between.
        let (first, mark) = under_way.get_or_insert_with(|| (n, Mark::now(prober)));
        if n > *first {
            padding.0 = mark.window(prober, ((n - *first) * WRITES_A_BATCH) as u64, BLOCK).amplification;
        }
    }
    let in_flight = prober.in_flight();
    prober.flush()?;
    if prober.never_erased() {
        padding.0 = begin.window(prober, (WRITES + in_flight) as u64, BLOCK).amplification;
    }
    Ok(padding)
}
