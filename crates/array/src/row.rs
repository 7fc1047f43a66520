//! Work on a row that has parity, or from which something is missing: what is read first, and what is written then.

use std::ops::Range;

use flashwise_block::Operation;

use super::SimulatedArray;
use super::galois::add_multiple;
use super::parity::{Row, parity_of, restore, weight};
use super::stripes::Piece;
use super::work::{Extents, Job, MemberRequest, Method, Parent, Place, RowWork, Work};

/// What is read of a row.
struct RowPlan {
    /// The bytes of its chunks that are concerned.
    from: u64,
    to: u64,
    method: Method,
    reads: Extents,
}

/// A way to find the parity that goes with a write: how many bytes it reads, and the reads.
type Way = (u64, Method, Extents);

impl SimulatedArray {
    /// The reads of a job on a row; `None` where too little of the row is left.
    pub(super) fn plan_row_reads(&mut self, id: u64) -> Option<Vec<MemberRequest>> {
        let job = self.jobs.get(&id)?;
        let (start, end, avoid, carries_bytes) = (job.start, job.end, job.avoid, job.carries_bytes);
        let whole = (0, self.stripes.chunk_bytes);
        let pieces = || self.stripes.pieces(start, end).collect::<Vec<_>>();
        let plan = match &job.work {
            Work::ReadRow(work) => self.plan_restore(work.row, hull(&pieces()), avoid)?,
            Work::WriteRow(work) => self.plan_way(work.row, &pieces(), avoid)?,
            Work::Rebuild(work, _) if self.stripes.parities == 0 => {
                self.plan_copy(work.row, job.work.slot(self)?, avoid)?
            }
            Work::Rebuild(work, _) => self.plan_restore(work.row, whole, avoid)?,
            Work::Check(work) => self.plan_all(work.row),
            Work::Read | Work::Write | Work::Flush => return None,
        };
        let RowPlan { from, to, method, reads } = plan;
        if let Some(work) = self.jobs.get_mut(&id)?.work.row_mut() {
            *work = RowWork { row: work.row, from, to, read: Row::new(), method };
        }
        Some(self.reads(reads, carries_bytes))
    }

    /// Reads of all columns that are left and of as many parities as columns are missing.
    fn plan_restore(&self, row: u64, (from, to): (u64, u64), avoid: u64) -> Option<RowPlan> {
        let mut reads = self.extents(Operation::Read);
        let mut missing = 0;
        for slot in 0..self.stripes.slots() {
            let member = self.stripes.member(row, self.stripes.role(slot), 0);
            let is_column = slot < self.stripes.columns;
            match self.is_readable(row, member, avoid) {
                true if is_column || missing > 0 => {
                    reads.add(member, self.on_member(row, from), Place::Slot(slot, 0), to - from);
                    missing -= usize::from(!is_column);
                }
                false if is_column => missing += 1,
                _ => {}
            }
        }
        (missing == 0).then_some(RowPlan { from, to, method: Method::Restore, reads })
    }

    /// The read of a copy of a column.
    fn plan_copy(&self, row: u64, slot: usize, avoid: u64) -> Option<RowPlan> {
        let mut reads = self.extents(Operation::Read);
        let mut holders = self.stripes.holders(row, slot);
        let member = holders.find(|&member| self.is_readable(row, member, avoid))?;
        reads.add(member, self.on_member(row, 0), Place::Slot(slot, 0), self.stripes.chunk_bytes);
        Some(RowPlan { from: 0, to: self.stripes.chunk_bytes, method: Method::None, reads })
    }

    /// Reads of all that is held of a row, by member.
    fn plan_all(&self, row: u64) -> RowPlan {
        let mut reads = self.extents(Operation::Read);
        for member in (0..self.members.len()).filter(|&member| self.members.get(member).holds(row)) {
            reads.add(member, self.on_member(row, 0), Place::Slot(member, 0), self.stripes.chunk_bytes);
        }
        RowPlan { from: 0, to: self.stripes.chunk_bytes, method: Method::None, reads }
    }

    /// The reads before a write: of the ways that are possible, those that read least, the first at a tie.
    fn plan_way(&self, row: u64, pieces: &[Piece], avoid: u64) -> Option<RowPlan> {
        if !self.survives(row, 0) {
            return None;
        }
        let (from, to) = hull(pieces);
        if (0..self.stripes.parities).all(|parity| self.parity_holder(row, parity).is_none()) {
            return Some(RowPlan { from, to, method: Method::None, reads: self.extents(Operation::Read) });
        }
        let modify = self.plan_modify(row, pieces, avoid);
        let reconstruct = self.plan_reconstruct(row, pieces, avoid);
        let restore = || {
            let plan = self.plan_restore(row, (from, to), avoid)?;
            Some((u64::MAX, plan.method, plan.reads))
        };
        let ways = [modify, reconstruct].into_iter().flatten();
        let (_, method, reads) = ways.min_by_key(|&(bytes, ..)| bytes).or_else(restore)?;
        Some(RowPlan { from, to, method, reads })
    }

    /// Reads of what is overwritten and of the parity.
    fn plan_modify(&self, row: u64, pieces: &[Piece], avoid: u64) -> Option<Way> {
        let (from, to) = hull(pieces);
        let (mut reads, mut bytes) = (self.extents(Operation::Read), 0);
        for piece in pieces {
            let member = self.holders(row, piece.column).find(|&member| self.is_readable(row, member, avoid))?;
            let place = Place::Slot(piece.column, piece.from - from);
            reads.add(member, self.on_member(row, piece.from), place, piece.length);
            bytes += piece.length;
        }
        for parity in 0..self.stripes.parities {
            let Some(member) = self.parity_holder(row, parity) else { continue };
            if !self.is_readable(row, member, avoid) {
                return None;
            }
            let place = Place::Slot(self.stripes.columns + parity, 0);
            reads.add(member, self.on_member(row, from), place, to - from);
            bytes += to - from;
        }
        Some((bytes, Method::Modify, reads))
    }

    /// Reads of what is not overwritten.
    fn plan_reconstruct(&self, row: u64, pieces: &[Piece], avoid: u64) -> Option<Way> {
        let (from, to) = hull(pieces);
        let (mut reads, mut bytes) = (self.extents(Operation::Read), 0);
        for column in 0..self.stripes.columns {
            let piece = pieces.iter().find(|piece| piece.column == column);
            // What stays of the column before and behind what is overwritten.
            let (stays_to, stays_from) = piece.map_or((to, to), |piece| (piece.from, piece.from + piece.length));
            for (a, b) in [(from, stays_to), (stays_from, to)] {
                if a < b {
                    let mut holders = self.stripes.holders(row, column);
                    let member = holders.find(|&member| self.is_readable(row, member, avoid))?;
                    reads.add(member, self.on_member(row, a), Place::Slot(column, a - from), b - a);
                    bytes += b - a;
                }
            }
        }
        Some((bytes, Method::Reconstruct, reads))
    }

    /// The writes of a job on a row, whose reads are done; `None` where what it should write cannot be known.
    pub(super) fn plan_row_writes(&mut self, id: u64) -> Option<Vec<MemberRequest>> {
        self.compute_row(id)?;
        let job = self.jobs.get(&id)?;
        Some(match &job.work {
            Work::WriteRow(work) => self.row_writes(job, work),
            Work::Rebuild(work, member) => self.rebuilt_write(job, work, *member),
            _ => return None,
        })
    }

    /// Puts into the row of a job whose requests carry bytes what it will write beside what it was given.
    fn compute_row(&mut self, id: u64) -> Option<()> {
        let job = self.jobs.get_mut(&id)?;
        if !job.carries_bytes {
            return Some(());
        }
        let (parent, range) = (job.parent, (job.start, job.end));
        let is_rebuild = matches!(job.work, Work::Rebuild(..));
        let mut work = std::mem::take(job.work.row_mut()?);
        let is_known = match is_rebuild {
            true => self.compute_rebuilt(&mut work),
            false => self.compute_parity(&mut work, parent, range),
        };
        *self.jobs.get_mut(&id)?.work.row_mut()? = work;
        is_known.then_some(())
    }

    /// The write of what a member that is rebuilt should hold.
    fn rebuilt_write(&self, job: &Job, work: &RowWork, member: usize) -> Vec<MemberRequest> {
        let mut extents = self.extents(Operation::Write);
        let place = Place::Slot(self.stripes.slot_of(work.row, member), 0);
        extents.add(member, self.on_member(work.row, work.from), place, work.to - work.from);
        self.writes(Operation::Write, extents, job)
    }

    /// The writes of a part of a row: the data where it belongs, then the parity over its hull.
    fn row_writes(&self, job: &Job, work: &RowWork) -> Vec<MemberRequest> {
        let RowWork { row, from, to, .. } = *work;
        let operation = self.operation_of(job.parent);
        let (mut data, mut parity) = (self.extents(operation), self.extents(Operation::Write));
        for piece in self.stripes.pieces(job.start, job.end) {
            for member in self.holders(row, piece.column) {
                data.add(member, self.on_member(row, piece.from), Place::Array(piece.at), piece.length);
            }
        }
        for number in 0..self.stripes.parities {
            if let Some(member) = self.parity_holder(row, number) {
                let place = Place::Slot(self.stripes.columns + number, 0);
                parity.add(member, self.on_member(row, from), place, to - from);
            }
        }
        let mut requests = self.writes(operation, data, job);
        requests.extend(self.writes(Operation::Write, parity, job));
        requests
    }

    /// Puts into the row what a member that is rebuilt should hold.
    fn compute_rebuilt(&self, work: &mut RowWork) -> bool {
        if self.stripes.parities == 0 {
            return true;
        }
        let (columns, length) = (self.stripes.columns, (work.to - work.from) as usize);
        work.read.resize(self.stripes.slots(), None);
        if !restore(&mut work.read, columns, length) {
            return false;
        }
        self.compute_parity_anew(work);
        true
    }

    /// Puts the new parity of what a parent writes into the row; `false` where what is left of the row does not tell
    /// it.
    fn compute_parity(&self, work: &mut RowWork, parent: Parent, range: (u64, u64)) -> bool {
        if work.method == Method::None {
            return true;
        }
        if !self.fill_columns(work) {
            return false;
        }
        self.overwrite_columns(work, parent, range);
        if work.method != Method::Modify {
            self.compute_parity_anew(work);
        }
        true
    }

    /// Makes room in the row for what it lacks: what can be restored from the others, and what is about to be written.
    fn fill_columns(&self, work: &mut RowWork) -> bool {
        let (columns, length) = (self.stripes.columns, (work.to - work.from) as usize);
        work.read.resize(self.stripes.slots(), None);
        match work.method {
            Method::None | Method::Modify => true,
            Method::Restore => restore(&mut work.read, columns, length),
            Method::Reconstruct => {
                work.read[..columns].iter_mut().for_each(|column| _ = column.get_or_insert_with(|| vec![0; length]));
                true
            }
        }
    }

    /// Puts what a parent writes into the columns of the row; to change the parity by the difference, into that too.
    fn overwrite_columns(&self, work: &mut RowWork, parent: Parent, (start, end): (u64, u64)) {
        let zeros = vec![0; self.stripes.chunk_bytes as usize];
        for piece in self.stripes.pieces(start, end) {
            let new = self.source(parent, piece.at, piece.length).unwrap_or(&zeros[..piece.length as usize]);
            let place = (piece.from - work.from) as usize..(piece.from - work.from + piece.length) as usize;
            let Some(old) = &mut work.read[piece.column] else { continue };
            let mut difference = old[place.clone()].to_vec();
            old[place.clone()].copy_from_slice(new);
            if work.method == Method::Modify {
                add_multiple(&mut difference, new, 1);
                self.add_to_parities(&mut work.read, piece.column, place, &difference);
            }
        }
    }

    /// Adds the difference between a column's new and old bytes to the parities.
    fn add_to_parities(&self, row: &mut Row, column: usize, place: Range<usize>, difference: &[u8]) {
        for parity in 0..self.stripes.parities {
            if let Some(sum) = &mut row[self.stripes.columns + parity] {
                add_multiple(&mut sum[place.clone()], difference, weight(parity, column));
            }
        }
    }

    /// Computes every parity from the columns, which are all there.
    fn compute_parity_anew(&self, work: &mut RowWork) {
        let (columns, length) = (self.stripes.columns, (work.to - work.from) as usize);
        for parity in 0..self.stripes.parities {
            work.read[columns + parity] = Some(parity_of(&work.read, columns, parity, length));
        }
    }

    /// The reads of a job on a row are done, and nothing is to be written.
    pub(super) fn row_is_read(&mut self, id: u64) {
        let (columns, slots) = (self.stripes.columns, self.stripes.slots());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if !job.carries_bytes {
            return;
        }
        match &mut job.work {
            Work::Check(work) => {
                let work = std::mem::take(work);
                self.checked = self.compare(&work);
            }
            Work::ReadRow(work) => {
                work.read.resize(slots, None);
                if !restore(&mut work.read, columns, (work.to - work.from) as usize) {
                    job.is_broken = true;
                    return;
                }
                let Parent::Host(host) = job.parent else { return };
                let Some(request) = self.hosts.get_mut(&host).map(|host| &mut host.request) else { return };
                for piece in self.stripes.pieces(job.start, job.end) {
                    let from = (piece.from - work.from) as usize;
                    let into = (piece.at - request.offset.bytes()) as usize;
                    let length = piece.length as usize;
                    if let (Some(into_buffer), Some(bytes)) = (&mut request.buffer, &work.read[piece.column]) {
                        into_buffer[into..into + length].copy_from_slice(&bytes[from..from + length]);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Work {
    /// The slot that a member that is rebuilt holds in the row.
    fn slot(&self, array: &SimulatedArray) -> Option<usize> {
        match self {
            Self::Rebuild(work, member) => Some(array.stripes.slot_of(work.row, *member)),
            _ => None,
        }
    }
}

/// From the first byte of a chunk that is concerned to the last.
fn hull(pieces: &[Piece]) -> (u64, u64) {
    let from = pieces.iter().map(|piece| piece.from).min().unwrap_or(0);
    (from, pieces.iter().map(|piece| piece.from + piece.length).max().unwrap_or(from))
}
