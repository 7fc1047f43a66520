//! Rewrites of a window that fix violations; each models the effect of a remedy on the requests.
//!
//! All of them are pure: steps in, steps out, in the order of the window. A step whose request breaks the rule is
//! marked; the others stay unmodified unless a rewrite says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use flashwise_block::Operation;
use flashwise_trace::FileRole;

use crate::play::Step;
use crate::request::Space;

/// New addresses of relocated data, by old address.
#[derive(Default)]
struct Moves {
    places: BTreeMap<(Space, u64), (u64, u64)>,
    next: BTreeMap<Space, u64>,
}

impl Moves {
    /// The new place of a write; the same for a later write to the same place.
    fn place(&mut self, step: &Step, unit: u64, taken: u64) -> u64 {
        let next = self.next.entry(step.space).or_default();
        let (length, place) = self.places.entry((step.space, step.offset)).or_insert((0, *next));
        if *place == *next || *length < taken {
            *place = *next;
            *next += taken.div_ceil(unit).max(1) * unit;
        }
        *length = (*length).max(taken);
        *place
    }

    /// Where a byte was moved to, if it was.
    fn find(&self, step: &Step) -> Option<u64> {
        let (&(_, from), &(length, place)) =
            self.places.range((step.space, 0)..=(step.space, step.offset)).next_back()?;
        (step.offset < from + length).then(|| place + (step.offset - from))
    }
}

/// Each broken write starts at the next free multiple of `unit`, in the order of the writes; what reads it follows.
/// With `pads` its length becomes a multiple of `unit` too.
pub(crate) fn relocate(steps: &[Step], unit: u64, pads: bool) -> Vec<Step> {
    let mut moves = Moves::default();
    let moved = |step: &Step| {
        if step.is_flush() {
            return *step;
        }
        if step.is_write() && step.is_broken {
            let length = if pads { step.length.div_ceil(unit) * unit } else { step.length };
            let offset = moves.place(step, unit, length);
            return Step { is_moved: true, offset, length, ..*step };
        }
        moves.find(step).map_or(*step, |offset| Step { is_moved: true, offset, ..*step })
    };
    steps.iter().map(moved).collect()
}

/// Broken writes of a space are gathered until they make a whole unit, and written as such; flushes that would close
/// less than a unit wait until one is full, and the last of them comes at the end.
pub(crate) fn gather(steps: &[Step], unit: u64) -> Vec<Step> {
    let mut waiting: BTreeMap<Space, (u64, Step)> = BTreeMap::new();
    let mut cursors: BTreeMap<Space, u64> = BTreeMap::new();
    let mut fixed = Vec::with_capacity(steps.len());
    let mut flush = None;
    for step in steps {
        if step.is_flush() {
            flush = Some(*step);
            if waiting.values().all(|(bytes, _)| *bytes == 0) {
                fixed.extend(flush.take());
            }
        } else if step.is_write() && step.is_broken {
            let (bytes, last) = waiting.entry(step.space).or_insert((0, *step));
            (*bytes, *last) = (*bytes + step.length, *step);
            let whole = *bytes / unit * unit;
            if whole > 0 {
                *bytes -= whole;
                let cursor = cursors.entry(step.space).or_default();
                fixed.push(Step { is_moved: true, offset: *cursor, length: whole, ..*step });
                *cursor += whole;
                fixed.extend(flush.take());
            }
        } else {
            fixed.push(*step);
        }
    }
    for (space, (bytes, last)) in waiting.into_iter().filter(|(_, (bytes, _))| *bytes > 0) {
        let offset = cursors.get(&space).copied().unwrap_or_default();
        fixed.push(Step { is_moved: true, offset, length: bytes.div_ceil(unit) * unit, ..last });
    }
    fixed.extend(flush);
    fixed
}

/// Shorter pieces than a logical page gain nothing on any drive.
const PIECE_MIN: u64 = 4096;

/// Broken requests become several of at most `piece` bytes.
pub(crate) fn split(steps: &[Step], piece: u64) -> Vec<Step> {
    let piece = piece.max(PIECE_MIN);
    let mut fixed = Vec::with_capacity(steps.len());
    for step in steps {
        if !step.is_broken || step.length <= piece {
            fixed.push(*step);
            continue;
        }
        let starts = (step.offset..step.end()).step_by(piece as usize);
        fixed.extend(starts.map(|offset| Step { offset, length: piece.min(step.end() - offset), ..*step }));
    }
    fixed
}

/// The database starts `shift` bytes later, so that its chunks are at hot locations, and is read and written in chunks;
/// a chunk is written in pieces, so that it does not become cold. What an earlier request since the last flush has
/// written already is not written again.
pub(crate) fn place_at(steps: &[Step], chunk: u64, shift: u64, piece: u64) -> Vec<Step> {
    let large = enlarge(steps, chunk);
    let shifted = large.into_iter().map(|step| match step.is_of_database() && !step.is_flush() {
        true => Step { offset: step.offset + shift, is_broken: step.is_write(), ..step },
        false => step,
    });
    split(&shifted.collect::<Vec<_>>(), piece)
}

/// Requests of the database become whole pages of `page` bytes. A page that was written since the last flush is not
/// written again, and one that was just read is not read again.
pub(crate) fn enlarge(steps: &[Step], page: u64) -> Vec<Step> {
    let mut written: BTreeSet<(Space, u64, u64)> = BTreeSet::new();
    let mut read = None;
    let mut fixed = Vec::with_capacity(steps.len());
    for step in steps {
        if step.is_flush() {
            written.clear();
        }
        if step.is_flush() || !step.is_of_database() || step.length == 0 {
            fixed.push(*step);
            continue;
        }
        let offset = step.offset / page * page;
        let length = step.end().div_ceil(page) * page - offset;
        let whole = Step { offset, length, ..*step };
        let key = (step.space, offset, length);
        let is_new = match step.operation {
            Operation::Write => written.insert(key),
            Operation::Read => read.replace(key) != Some(key),
            _ => true,
        };
        if is_new {
            fixed.push(whole);
        }
    }
    fixed
}

/// Broken requests are left out.
pub(crate) fn drop_broken(steps: &[Step]) -> Vec<Step> {
    steps.iter().filter(|step| !step.is_broken).copied().collect()
}

/// Broken requests may have `depth` in flight.
pub(crate) fn deepen(steps: &[Step], depth: u32) -> Vec<Step> {
    steps.iter().map(|step| Step { depth: if step.is_broken { depth } else { step.depth }, ..*step }).collect()
}

/// A flush waits until at least `unit` bytes were written since the one before it; the last one stays.
pub(crate) fn flush_by(steps: &[Step], unit: u64) -> Vec<Step> {
    let last = steps.iter().rposition(|step| step.is_flush() || step.fua);
    let mut written = 0_u64;
    let mut fixed = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        written = written.saturating_add(if step.is_write() { step.length } else { 0 });
        let is_due = written >= unit || Some(index) == last;
        match step.is_flush() {
            true if is_due => {
                written = 0;
                fixed.push(*step);
            }
            true => {}
            false => {
                let fua = step.fua && is_due;
                written = if fua { 0 } else { written };
                fixed.push(Step { fua, ..*step });
            }
        }
    }
    fixed
}

/// Broken reads and writes that continue the request of their kind before them are made with it, up to `unit` bytes.
pub(crate) fn join(steps: &[Step], unit: u64) -> Vec<Step> {
    let mut fixed: Vec<Step> = Vec::with_capacity(steps.len());
    // Where the last read and the last write are.
    let mut last: [Option<usize>; 2] = [None; 2];
    for step in steps {
        if step.is_flush() {
            last[1] = None;
        }
        let kind = usize::from(step.is_write());
        let earlier = last[kind].and_then(|index| fixed.get_mut(index)).filter(|earlier| {
            let continues = earlier.space == step.space && earlier.end() == step.offset;
            step.is_broken && continues && earlier.length + step.length <= unit
        });
        match earlier {
            Some(earlier) => {
                earlier.length += step.length;
                earlier.fua |= step.fua;
            }
            None => {
                if step.is_write() || step.operation == Operation::Read {
                    last[kind] = Some(fixed.len());
                }
                fixed.push(*step);
            }
        }
    }
    fixed
}

/// A journal or log that restarts from its start is trimmed before.
pub(crate) fn trim_before_reuse(steps: &[Step]) -> Vec<Step> {
    let mut ends: BTreeMap<Space, u64> = BTreeMap::new();
    let mut fixed = Vec::with_capacity(steps.len());
    for step in steps {
        let dies = matches!(step.role, FileRole::Journal | FileRole::WriteAheadLog | FileRole::Temporary);
        if step.is_write() && dies {
            let end = ends.entry(step.space).or_default();
            let whole = *end / 4096 * 4096;
            if step.offset == 0 && whole > 0 {
                let trim = Step { operation: Operation::Trim, length: whole, fua: false, ..*step };
                fixed.push(trim);
                *end = 0;
            }
            *end = (*end).max(step.end());
        }
        fixed.push(*step);
    }
    fixed
}

/// All addresses minus `by` bytes.
pub(crate) fn shift_down(steps: &[Step], by: u64) -> Vec<Step> {
    let shifted = |step: &Step| match step.is_flush() {
        true => *step,
        false => Step { offset: step.offset.saturating_sub(by), ..*step },
    };
    steps.iter().map(shifted).collect()
}

/// What does not stay is written in a stream of its own, also where that breaks no rule: a page that is now in one
/// stream and now in the other would be apart from nothing.
pub(crate) fn keep_apart_what_stays(steps: &[Step]) -> Vec<Step> {
    steps.iter().map(|step| Step { stream: u16::from(step.is_write() && !step.stays), ..*step }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_trace::FileRole;

    fn write(offset: u64, length: u64, is_broken: bool) -> Step {
        Step {
            at: flashwise_block::Nanos(0),
            operation: Operation::Write,
            space: Space::Role(FileRole::Database),
            is_moved: false,
            offset,
            length,
            fua: false,
            depth: 1,
            role: FileRole::Database,
            stream: 0,
            stays: false,
            is_broken,
        }
    }

    fn read(offset: u64, length: u64) -> Step {
        Step { operation: Operation::Read, ..write(offset, length, false) }
    }

    fn flush() -> Step {
        Step { operation: Operation::Flush, ..write(0, 0, false) }
    }

    fn extents(steps: &[Step]) -> Vec<(u64, u64)> {
        steps.iter().map(|step| (step.offset, step.length)).collect()
    }

    #[test]
    fn a_relocated_write_starts_on_the_unit_and_its_reads_follow_it() {
        let steps = [write(100, 50, true), write(1000, 90, true), read(1010, 20), write(100, 50, true), read(5, 5)];
        let fixed = relocate(&steps, 64, false);
        assert_eq!(extents(&fixed), [(0, 50), (64, 90), (74, 20), (0, 50), (5, 5)]);
        assert_eq!(fixed.iter().map(|s| s.is_moved).collect::<Vec<_>>(), [true, true, true, true, false]);
        assert_eq!(extents(&relocate(&steps[..1], 64, true)), [(0, 64)]);
    }

    #[test]
    fn gathered_writes_are_whole_units_and_their_flush_waits_for_them() {
        let steps = [write(0, 40, true), flush(), write(40, 40, true), flush(), flush()];
        let fixed = gather(&steps, 64);
        assert_eq!(extents(&fixed), [(0, 64), (0, 0), (64, 64), (0, 0)]);
        assert!(fixed[1].is_flush() && fixed[3].is_flush());
    }

    #[test]
    fn a_flush_is_kept_once_a_unit_was_written_and_at_the_end() {
        let steps = [write(0, 40, false), flush(), write(0, 40, false), flush(), write(0, 1, false), flush(), flush()];
        let kept = flush_by(&steps, 64).iter().map(|step| step.is_flush()).collect::<Vec<_>>();
        assert_eq!(kept, [false, false, true, false, true]);
    }

    #[test]
    fn a_page_is_enlarged_once_between_two_flushes() {
        let steps = [write(0, 4, false), write(8, 4, false), flush(), write(8, 4, false), read(60, 8)];
        assert_eq!(extents(&enlarge(&steps, 64)), [(0, 64), (0, 0), (0, 64), (0, 128)]);
    }

    #[test]
    fn all_writes_but_those_that_stay_go_to_the_other_stream() {
        let steps = [write(0, 4, false), Step { stays: true, ..write(4, 4, false) }, read(9, 9), flush()];
        let fixed = keep_apart_what_stays(&steps);
        assert_eq!(fixed.iter().map(|step| step.stream).collect::<Vec<_>>(), [1, 0, 0, 0]);
        assert_eq!(extents(&fixed), extents(&steps));
    }

    #[test]
    fn a_log_that_begins_again_is_trimmed_first() {
        let log = |offset| Step { role: FileRole::WriteAheadLog, ..write(offset, 4096, true) };
        let fixed = trim_before_reuse(&[log(0), log(4096), log(0)]);
        assert_eq!(extents(&fixed), [(0, 4096), (4096, 4096), (0, 8192), (0, 4096)]);
        assert_eq!(fixed[2].operation, Operation::Trim);
    }
}
