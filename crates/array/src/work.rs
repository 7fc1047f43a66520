//! What is in progress: pieces of work on ranges of the array, and the requests to members that they consist of.
//!
//! ```text
//!   request of the host ─┐
//!   row that is destaged ├──▶ work on a range ── lock ──▶ reads from members ──▶ writes to members ──▶ done
//!   row that is rebuilt ─┘      one or more                  where it needs any     where it has any
//! ```

use flashwise_block::{ByteSize, IoBuffer, Operation};

use super::parity::Row;

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parent {
    /// A request of the host's.
    Host(u64),
    /// A row that leaves the write cache.
    Destage(u64),
    /// A place that is rebuilt, and which rebuilding of it.
    Rebuild(usize, u64),
    /// A check of a row.
    Check,
}

/// What a piece of work does.
pub(super) enum Work {
    /// Reads bytes from where they are.
    Read,
    /// Puts bytes of a row together from what is left of it.
    ReadRow(RowWork),
    /// Writes bytes, with their parity where they are whole rows.
    Write,
    /// Writes part of a row that has parity.
    WriteRow(RowWork),
    /// Writes what a member should hold in a row.
    Rebuild(RowWork, usize),
    /// Compares all that is held of a row.
    Check(RowWork),
    /// Flushes every member.
    Flush,
}

impl Work {
    /// What it does with a row, where it is about one.
    pub(super) fn row_mut(&mut self) -> Option<&mut RowWork> {
        match self {
            Self::ReadRow(work) | Self::WriteRow(work) | Self::Rebuild(work, _) | Self::Check(work) => Some(work),
            Self::Read | Self::Write | Self::Flush => None,
        }
    }
}

/// Work on the same bytes of each chunk of a row.
#[derive(Default)]
pub(super) struct RowWork {
    pub(super) row: u64,
    /// The bytes of the chunks that are concerned.
    pub(super) from: u64,
    pub(super) to: u64,
    /// What was read, by slot; of [`Work::Check`], by member.
    pub(super) read: Row,
    pub(super) method: Method,
}

/// How the parity that goes with a write is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Method {
    /// There is none to write.
    #[default]
    None,
    /// Read what is overwritten and the parity, and change the parity by the difference (read-modify-write).
    Modify,
    /// Read what is not overwritten, and compute the parity anew (reconstruct-write).
    Reconstruct,
    /// Read all that is left, restore what is missing, and compute the parity anew.
    Restore,
}

/// A piece of work.
pub(super) struct Job {
    pub(super) parent: Parent,
    /// Its range of the array, bytes.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) work: Work,
    /// Members that could not read for it, as bits.
    pub(super) avoid: u64,
    /// Requests to members that are not completed.
    pub(super) pending: u32,
    /// Its reads are done, or it needed none.
    pub(super) is_writing: bool,
    /// A read has failed and must be made elsewhere.
    pub(super) must_retry: bool,
    /// A member failed that was to be written.
    pub(super) missed_write: bool,
    /// It cannot be done.
    pub(super) is_broken: bool,
    /// Bytes travel with its requests.
    pub(super) carries_bytes: bool,
}

impl Job {
    /// A piece of work on a range that has asked nothing of the members yet.
    pub(super) fn new(parent: Parent, (start, end): (u64, u64), avoid: u64, work: Work, carries_bytes: bool) -> Self {
        Self {
            parent,
            start,
            end,
            work,
            avoid,
            pending: 0,
            is_writing: false,
            must_retry: false,
            missed_write: false,
            is_broken: false,
            carries_bytes,
        }
    }
}

/// Where the bytes of a request to a member belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On the array.
    Array(u64),
    /// In a slot of a row, from a byte of the work's range on.
    Slot(usize, u64),
    /// The parity of that number of a whole row, from a byte of the chunk on.
    Parity(u64, usize, u64),
}

/// Bytes of a request to a member that belong together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) place: Place,
    pub(super) length: u64,
}

/// A request to a member.
pub(super) struct Extent {
    pub(super) member: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) spans: Vec<Span>,
}

/// A request to a member that is on its way.
pub(super) struct Child {
    pub(super) job: u64,
    pub(super) member: usize,
    pub(super) operation: Operation,
    pub(super) spans: Vec<Span>,
}

/// A request to a member that is about to be made.
pub(super) struct MemberRequest {
    pub(super) operation: Operation,
    pub(super) extent: Extent,
    pub(super) buffer: Option<IoBuffer>,
}

/// Requests to members in the making; what follows on the same member goes into one, as far as it takes.
pub(super) struct Extents {
    list: Vec<Extent>,
    /// The last one of each member.
    last: Vec<Option<usize>>,
    limit: u64,
}

impl Extents {
    pub(super) fn new(members: usize, operation: Operation, max_transfer: ByteSize) -> Self {
        let limit = if operation == Operation::Trim { u64::MAX } else { max_transfer.bytes() };
        Self { list: Vec::new(), last: vec![None; members], limit }
    }

    /// Adds bytes of a member.
    pub(super) fn add(&mut self, member: usize, mut offset: u64, place: Place, length: u64) {
        let mut done = 0;
        while done < length {
            let room = self.last[member]
                .map(|last| &self.list[last])
                .map_or(0, |last| if last.offset + last.length == offset { self.limit - last.length } else { 0 });
            if room == 0 {
                self.last[member] = Some(self.list.len());
                self.list.push(Extent { member, offset, length: 0, spans: Vec::new() });
                continue;
            }
            let part = room.min(length - done);
            if let Some(extent) = self.last[member].and_then(|last| self.list.get_mut(last)) {
                extent.spans.push(Span { place: place.behind(done), length: part });
                extent.length += part;
            }
            (done, offset) = (done + part, offset + part);
        }
    }

    pub(super) fn into_list(self) -> Vec<Extent> {
        self.list
    }
}

impl Place {
    fn behind(self, bytes: u64) -> Self {
        match self {
            Self::Array(at) => Self::Array(at + bytes),
            Self::Slot(slot, from) => Self::Slot(slot, from + bytes),
            Self::Parity(row, parity, from) => Self::Parity(row, parity, from + bytes),
        }
    }
}
