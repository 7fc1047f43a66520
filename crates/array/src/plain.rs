//! Reads of bytes where they are, writes that need no reads, flushes.

use flashwise_block::{ByteSize, IoBuffer, Operation};

use super::SimulatedArray;
use super::galois::add_multiple;
use super::parity::weight;
use super::work::{Child, Extent, Extents, Job, MemberRequest, Parent, Place, RowWork, Work};

impl SimulatedArray {
    /// Requests to members in the making.
    pub(super) fn extents(&self, operation: Operation) -> Extents {
        Extents::new(self.members.len(), operation, ByteSize(self.member_config.host.max_transfer_bytes))
    }

    /// Whether a member can give what it holds in a row.
    pub(super) fn is_readable(&self, row: u64, member: usize, avoid: u64) -> bool {
        avoid & 1 << member == 0 && self.members.get(member).holds(row)
    }

    /// Whether a column of a row can be read where it is.
    pub(super) fn can_read(&self, row: u64, column: usize, avoid: u64) -> bool {
        self.stripes.holders(row, column).any(|member| self.is_readable(row, member, avoid))
    }

    /// The member that a column is read from: of copies, the one with the fewest requests on their way; where that
    /// leaves a choice, rows take turns.
    fn reader(&self, row: u64, column: usize, avoid: u64) -> Option<usize> {
        let copies = self.stripes.copies as u64;
        let holders = self.stripes.holders(row, column).enumerate();
        let readable = holders.filter(|&(_, member)| self.is_readable(row, member, avoid));
        let turn = |copy: usize| (copy as u64 + row) % copies;
        readable.min_by_key(|&(copy, member)| (self.members.get(member).busy, turn(copy))).map(|(_, member)| member)
    }

    /// The reads of a range where it is; `None` where some of it is nowhere.
    pub(super) fn plan_read(&self, job: &Job) -> Option<Vec<MemberRequest>> {
        let mut extents = self.extents(Operation::Read);
        let mut chosen = vec![None; self.stripes.columns];
        for piece in self.stripes.pieces(job.start, job.end) {
            // One copy serves a request for as long as it can, so that what is together is read together.
            let is_possible = |member| {
                let mut holders = self.stripes.holders(piece.row, piece.column);
                holders.any(|holder| holder == member) && self.is_readable(piece.row, member, job.avoid)
            };
            let same = chosen[piece.column].filter(|&member| is_possible(member));
            let member = same.or_else(|| self.reader(piece.row, piece.column, job.avoid))?;
            chosen[piece.column] = Some(member);
            extents.add(member, self.on_member(piece.row, piece.from), Place::Array(piece.at), piece.length);
        }
        Some(self.reads(extents, job.carries_bytes))
    }

    /// The requests of reads.
    pub(super) fn reads(&self, extents: Extents, carries_bytes: bool) -> Vec<MemberRequest> {
        let request = |extent: Extent| MemberRequest {
            operation: Operation::Read,
            buffer: carries_bytes.then(|| IoBuffer::zeroed(extent.length as usize)),
            extent,
        };
        extents.into_list().into_iter().map(request).collect()
    }

    /// Where a byte of a chunk is on a member.
    pub(super) fn on_member(&self, row: u64, in_chunk: u64) -> u64 {
        row * self.stripes.chunk_bytes + in_chunk
    }

    /// What a parent asks to be done to the bytes that it writes.
    pub(super) fn operation_of(&self, parent: Parent) -> Operation {
        match parent {
            Parent::Host(host) => self.hosts.get(&host).map_or(Operation::Write, |host| host.request.operation),
            _ => Operation::Write,
        }
    }

    /// The bytes that a parent writes at a place of the array; `None` where they are zeros.
    pub(super) fn source(&self, parent: Parent, at: u64, length: u64) -> Option<&[u8]> {
        let (buffer, start) = match parent {
            Parent::Host(host) => {
                let request = &self.hosts.get(&host)?.request;
                let buffer = request.buffer.as_deref().filter(|_| request.operation == Operation::Write)?;
                (buffer, request.offset.bytes())
            }
            Parent::Destage(number) => {
                let (bytes, row) = self.cache.as_ref()?.leaving_row(number)?;
                (bytes, row * self.stripes.row_bytes())
            }
            Parent::Rebuild(..) | Parent::Check => return None,
        };
        let from = (at - start) as usize;
        buffer.get(from..from + length as usize)
    }

    /// The writes of a range and of the parity of its rows, which are whole where there is parity; `None` where a piece
    /// of it has nowhere to go.
    pub(super) fn plan_write(&self, job: &Job) -> Option<Vec<MemberRequest>> {
        let operation = self.operation_of(job.parent);
        let mut extents = self.extents(operation);
        for piece in self.stripes.pieces(job.start, job.end) {
            let row = piece.row;
            if !self.survives(row, piece.column) {
                return None;
            }
            self.holders(row, piece.column).for_each(|member| {
                extents.add(member, self.on_member(row, piece.from), Place::Array(piece.at), piece.length);
            });
            let behind = if piece.column + 1 == self.stripes.columns { self.stripes.parities } else { 0 };
            for (parity, member) in (0..behind).filter_map(|parity| Some((parity, self.parity_holder(row, parity)?))) {
                let place = Place::Parity(row, parity, 0);
                extents.add(member, self.on_member(row, 0), place, self.stripes.chunk_bytes);
            }
        }
        Some(self.writes(operation, extents, job))
    }

    /// The members that hold a column of a row.
    pub(super) fn holders(&self, row: u64, column: usize) -> impl Iterator<Item = usize> {
        self.stripes.holders(row, column).filter(move |&member| self.members.get(member).holds(row))
    }

    /// The member that holds a parity of a row.
    pub(super) fn parity_holder(&self, row: u64, parity: usize) -> Option<usize> {
        let member = self.stripes.member(row, self.stripes.role(self.stripes.columns + parity), 0);
        Some(member).filter(|&member| self.members.get(member).holds(row))
    }

    /// The requests of writes, with their bytes where they carry any.
    pub(super) fn writes(&self, operation: Operation, extents: Extents, job: &Job) -> Vec<MemberRequest> {
        let carries_bytes = job.carries_bytes && operation == Operation::Write;
        let buffer = |extent: &Extent| {
            let mut buffer = IoBuffer::zeroed(extent.length as usize);
            let mut rest: &mut [u8] = &mut buffer;
            for span in &extent.spans {
                let (into, behind) = std::mem::take(&mut rest).split_at_mut(span.length as usize);
                self.bring(job, span.place, into);
                rest = behind;
            }
            buffer
        };
        let request = |extent| MemberRequest { operation, buffer: carries_bytes.then(|| buffer(&extent)), extent };
        extents.into_list().into_iter().map(request).collect()
    }

    /// Brings the bytes of a place to be written.
    fn bring(&self, job: &Job, place: Place, into: &mut [u8]) {
        let length = into.len() as u64;
        match place {
            Place::Array(at) => {
                if let Some(bytes) = self.source(job.parent, at, length) {
                    into.copy_from_slice(bytes);
                }
            }
            Place::Slot(slot, from) => {
                let (Work::WriteRow(work) | Work::Rebuild(work, _)) = &job.work else { return };
                if let Some(bytes) = work.read.get(slot).and_then(Option::as_ref) {
                    into.copy_from_slice(&bytes[from as usize..(from + length) as usize]);
                }
            }
            Place::Parity(row, parity, from) => {
                for column in 0..self.stripes.columns {
                    let at = row * self.stripes.row_bytes() + column as u64 * self.stripes.chunk_bytes + from;
                    if let Some(bytes) = self.source(job.parent, at, length) {
                        add_multiple(into, bytes, weight(parity, column));
                    }
                }
            }
        }
    }

    /// Whether what is written to a row, or to a column where there is no parity, can be read again.
    pub(super) fn survives(&self, row: u64, column: usize) -> bool {
        let holds = |member: usize| self.members.get(member).holds(row);
        if self.stripes.parities == 0 {
            return self.holders(row, column).next().is_some();
        }
        (0..self.members.len()).filter(|&member| !holds(member)).count() <= self.stripes.parities
    }

    /// Whether what a job has written can be read again although members failed meanwhile.
    pub(super) fn is_kept(&self, id: u64) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        self.stripes.pieces(job.start, job.end).all(|piece| self.survives(piece.row, piece.column))
    }

    /// A flush of every member that is there.
    pub(super) fn plan_flush(&self) -> Vec<MemberRequest> {
        let present = (0..self.members.len()).filter(|&member| self.members.get(member).drive.is_some());
        let extent = |member| Extent { member, offset: 0, length: 0, spans: Vec::new() };
        let flush = |member| MemberRequest { operation: Operation::Flush, extent: extent(member), buffer: None };
        present.map(flush).collect()
    }

    /// A member has given what was asked of it.
    pub(super) fn take_in(&mut self, child: &Child, buffer: Option<IoBuffer>) {
        let Some(buffer) = buffer else { return };
        let Some(job) = self.jobs.get_mut(&child.job) else { return };
        let mut rest: &[u8] = &buffer;
        for span in &child.spans {
            let (bytes, behind) = rest.split_at(span.length as usize);
            rest = behind;
            match (span.place, &mut job.work, job.parent) {
                (Place::Array(at), _, Parent::Host(host)) => {
                    let Some(host) = self.hosts.get_mut(&host) else { continue };
                    let from = (at - host.request.offset.bytes()) as usize;
                    if let Some(into) = &mut host.request.buffer {
                        into[from..from + bytes.len()].copy_from_slice(bytes);
                    }
                }
                (
                    Place::Slot(slot, from),
                    Work::ReadRow(work) | Work::WriteRow(work) | Work::Rebuild(work, _) | Work::Check(work),
                    _,
                ) => work.take_in(slot, from, bytes),
                _ => {}
            }
        }
    }
}

impl RowWork {
    /// Bytes of a slot, from a byte of the range on.
    fn take_in(&mut self, slot: usize, from: u64, bytes: &[u8]) {
        let length = (self.to - self.from) as usize;
        if self.read.len() <= slot {
            self.read.resize(slot + 1, None);
        }
        let into = self.read[slot].get_or_insert_with(|| vec![0; length]);
        into[from as usize..from as usize + bytes.len()].copy_from_slice(bytes);
    }
}
