//! The life of a request of the host's: through the controller, into jobs, and back.

use flashwise_block::{BlockError, Completion, Nanos, Operation, Request};

use super::SimulatedArray;
use super::controller::Timer;
use super::work::{Parent, RowWork, Work};

/// A request of the host's that is not completed.
pub(super) struct HostRequest {
    pub(super) request: Request,
    submitted_ns: u64,
    taken_ns: u64,
    /// Jobs that are not done, and one for the request itself while they are made.
    pub(super) pending: u32,
    /// A job of it could not be done.
    pub(super) is_broken: bool,
}

impl HostRequest {
    /// What its requests to members take over: force unit access, the queue, the stream.
    pub(super) fn marks(&self) -> (bool, u16, u16) {
        (self.request.fua, self.request.queue, self.request.stream)
    }
}

impl SimulatedArray {
    /// Takes a request that is right.
    pub(super) fn accept(&mut self, request: Request) {
        let id = self.number();
        let now_ns = self.now_ns;
        let host = HostRequest { request, submitted_ns: now_ns, taken_ns: now_ns, pending: 0, is_broken: false };
        self.hosts.insert(id, host);
        self.outstanding += 1;
        let taken_ns = self.controller.taken_ns(now_ns);
        if taken_ns > now_ns {
            self.controller.set(taken_ns, Timer::Taken(id));
        } else {
            self.taken(id);
        }
    }

    /// The controller's processor has handled a request; a write's data comes over the bus.
    pub(super) fn taken(&mut self, id: u64) {
        let now_ns = self.now_ns;
        let Some(host) = self.hosts.get_mut(&id) else { return };
        host.taken_ns = now_ns;
        let bytes = if host.request.operation == Operation::Write { host.request.length.bytes() } else { 0 };
        let ready_ns = self.controller.moved_ns(now_ns, bytes);
        if ready_ns > now_ns {
            self.controller.set(ready_ns, Timer::Begin(id));
        } else {
            self.begin(id);
        }
    }

    /// A request reaches the members, or the cache.
    pub(super) fn begin(&mut self, id: u64) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        host.pending = 1;
        let Request { operation, offset, length, ref buffer, .. } = host.request;
        self.has_bytes |= operation == Operation::Write && buffer.is_some();
        let (start, end, parent) = (offset.bytes(), offset.bytes() + length.bytes(), Parent::Host(id));
        match operation {
            Operation::Flush => self.add_job(parent, (0, 0), 0, Work::Flush),
            Operation::Read if self.cache.is_some() => self.read_through_cache(id, start, end),
            Operation::Read => self.split_read(parent, start, end, 0),
            Operation::Write if self.cache.is_some() => return self.write_to_cache(id),
            Operation::Write => self.split_write(parent, start, end),
            Operation::Trim | Operation::WriteZeroes => {
                self.drop_from_cache(start, end);
                self.split_write(parent, start, end);
            }
        }
        self.part_done(id, false);
    }

    /// Whether the requests of a job carry bytes to and from the members. Where any have been written, those of all
    /// writes do, so that parity is right.
    pub(super) fn carries_bytes(&self, parent: Parent, work: &Work) -> bool {
        match (work, parent) {
            (Work::Check(_), _) => true,
            (Work::Read | Work::ReadRow(_), Parent::Host(host)) => {
                self.hosts.get(&host).is_some_and(|host| host.request.buffer.is_some())
            }
            _ => self.has_bytes,
        }
    }

    /// Makes jobs of a read: what is where it belongs in one, and each row of which something is missing in another.
    pub(super) fn split_read(&mut self, parent: Parent, start: u64, end: u64, avoid: u64) {
        let is_whole = avoid == 0 && self.members.iter().all(|member| member.holds(self.stripes.rows));
        if self.stripes.parities == 0 || is_whole {
            return self.add_job(parent, (start, end), avoid, Work::Read);
        }
        let row_bytes = self.stripes.row_bytes();
        let (mut at, mut plain_from) = (start, start);
        while at < end {
            let row = at / row_bytes;
            let row_end = end.min((row + 1) * row_bytes);
            let mut pieces = self.stripes.pieces(at, row_end);
            if !pieces.all(|piece| self.can_read(row, piece.column, avoid)) {
                if plain_from < at {
                    self.add_job(parent, (plain_from, at), avoid, Work::Read);
                }
                self.add_job(parent, (at, row_end), avoid, Work::ReadRow(RowWork { row, ..RowWork::default() }));
                plain_from = row_end;
            }
            at = row_end;
        }
        if plain_from < end {
            self.add_job(parent, (plain_from, end), avoid, Work::Read);
        }
    }

    /// Makes jobs of a write: whole rows in one, the parts of rows before and behind them in one each.
    pub(super) fn split_write(&mut self, parent: Parent, start: u64, end: u64) {
        if self.stripes.parities == 0 {
            return self.add_job(parent, (start, end), 0, Work::Write);
        }
        let row_bytes = self.stripes.row_bytes();
        let (whole_from, whole_to) = (start.div_ceil(row_bytes) * row_bytes, end / row_bytes * row_bytes);
        let mut part = |from: u64, to: u64| {
            let row = from / row_bytes;
            self.add_job(parent, (from, to), 0, Work::WriteRow(RowWork { row, ..RowWork::default() }));
        };
        if whole_from > whole_to {
            return part(start, end);
        }
        if start < whole_from {
            part(start, whole_from);
        }
        if whole_to < end {
            part(whole_to, end);
        }
        if whole_from < whole_to {
            self.add_job(parent, (whole_from, whole_to), 0, Work::Write);
        }
    }

    /// Part of a request is done, or cannot be.
    pub(super) fn part_done(&mut self, id: u64, is_broken: bool) {
        let now_ns = self.now_ns;
        let Some(host) = self.hosts.get_mut(&id) else { return };
        host.is_broken |= is_broken;
        host.pending -= 1;
        if host.pending > 0 {
            return;
        }
        let sends = host.request.operation == Operation::Read && !host.is_broken;
        let bytes = if sends { host.request.length.bytes() } else { 0 };
        let done_ns = self.controller.moved_ns(now_ns, bytes);
        if done_ns > now_ns {
            self.controller.set(done_ns, Timer::Complete(id));
        } else {
            self.complete(id);
        }
    }

    /// Completes the request to the host.
    pub(super) fn complete(&mut self, id: u64) {
        let Some(HostRequest { request, submitted_ns, taken_ns, is_broken, .. }) = self.hosts.remove(&id) else {
            return;
        };
        let Request { tag, operation, offset, length, buffer, .. } = request;
        let result = match is_broken {
            true => Err(BlockError::ArrayFailed { operation, offset, length }),
            false => {
                self.counters.count(operation, length);
                Ok(())
            }
        };
        let (submitted_at, started_at, completed_at) = (Nanos(submitted_ns), Nanos(taken_ns), Nanos(self.now_ns));
        self.completed.push_back(Completion { tag, operation, submitted_at, started_at, completed_at, result, buffer });
    }
}
