//! The redo log: a ring of blocks of 4 KiB in which groups of records stand one after the other.
//!
//! ```text
//!   append(group) ─▶ buffer ─▶ write: whole blocks ─▶ ring ─▶ flush ─▶ durable
//!                                  └ packed: the unfinished block ─▶ two tail blocks in turn
//!   open ─▶ scan: from the superblock's tail to the first block that does not follow ─▶ groups
//! ```
//!
//! - **Sparse** (for drives that compress): a write pads its last block with zeros, and the next one starts with a
//!   fresh block. A record goes to flash once.
//! - **Packed**: writes share blocks. The unfinished block holds acknowledged groups and is never written over itself:
//!   its versions go to the one of two tail blocks that does not have the last durable one, and to the ring when it is
//!   full.
//!
//! The ring was written once when the store was created: on a file system the first write to a block of a file changes
//! the file's own data as well, which costs more than the log saves.
//!
//! Source: the sparse log of Qiao et al., FAST 2022. `docs/formats/store.md` draws the bytes.

mod block;
mod scan;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashwise_block::{ByteSize, IoBuffer};

pub(crate) use self::block::PAYLOAD;
use self::block::{Block, NO_START};
pub(crate) use self::scan::{Group, Scan, scan};
use crate::error::{Result, StoreError};
use crate::medium::{BLOCK, Cause, Disk};
use crate::superblock::{Geometry, Superblock};

/// Bytes in front of a group's records: their length (u32) and the sequence number (u64).
pub(crate) const GROUP_HEADER: usize = 12;

/// A group may take this share of the ring: another half is kept free of pages that hold the log's tail.
const GROUP_SHARE: u64 = 4;

/// Requests of one log write in flight.
const DEPTH: usize = 16;

struct State {
    /// Bytes that wait for the next write, and where groups start in them.
    buffer: Vec<u8>,
    starts: Vec<(usize, u64)>,
    /// Number of the next block, or of the unfinished one.
    next: u64,
    /// Payload of the unfinished block, and its first start.
    part: Vec<u8>,
    part_first: u16,
    /// Bytes that a write has taken, those of the unfinished block included, until it is done.
    taken: usize,
    /// The tail block that the next unfinished block goes to: the one without the last durable version.
    turn: bool,
    /// Whether that tail block has a version that is not durable.
    is_turn_used: bool,
    /// The block from which a restart would read, and the end of what is durable.
    tail: u64,
    durable: u64,
    epoch: u64,
    /// The first group that starts in a block, for each block in which one does: sequence number and block.
    marks: VecDeque<(u64, u64)>,
    appended_seq: u64,
    written_seq: u64,
    synced_seq: u64,
}

/// The log of an open store.
pub(crate) struct Log {
    disk: Arc<Disk>,
    geometry: Geometry,
    state: Mutex<State>,
    /// Longest request.
    piece_blocks: usize,
}

/// What a write takes from the state.
struct Taken {
    payload: Vec<u8>,
    starts: Vec<(usize, u64)>,
    first_block: u64,
    last_seq: u64,
}

impl Log {
    /// The log behind what a scan has found.
    pub(crate) fn new(disk: Arc<Disk>, superblock: &Superblock, scan: &Scan) -> Self {
        let state = State {
            buffer: Vec::new(),
            starts: Vec::new(),
            next: scan.next,
            part: Vec::new(),
            taken: 0,
            part_first: NO_START,
            turn: false,
            is_turn_used: false,
            tail: superblock.tail,
            durable: scan.next,
            epoch: superblock.epoch,
            marks: scan.marks.clone(),
            appended_seq: scan.last_seq,
            written_seq: scan.last_seq,
            synced_seq: scan.last_seq,
        };
        let piece_blocks = (disk.max_transfer().min(256 << 10) / BLOCK).max(1) as usize;
        Self { disk, geometry: superblock.geometry, state: Mutex::new(state), piece_blocks }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Longest group.
    pub(crate) fn group_max(&self) -> u64 {
        self.geometry.ring_blocks / GROUP_SHARE * PAYLOAD as u64
    }

    /// Blocks of the ring that a restart would read, those of the waiting bytes included.
    pub(crate) fn used_blocks(&self) -> u64 {
        let state = self.state();
        let waiting = state.part.len().max(state.taken) + state.buffer.len();
        state.next - state.tail + waiting.div_ceil(PAYLOAD) as u64 + 1
    }

    /// Blocks in the ring.
    pub(crate) fn ring_blocks(&self) -> u64 {
        self.geometry.ring_blocks
    }

    /// Bytes that wait for a write.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.state().buffer.len()
    }

    /// Adds a group. The caller has made sure that the ring has space.
    pub(crate) fn append(&self, seq: u64, records: &[u8]) -> Result<()> {
        let length = (GROUP_HEADER + records.len()) as u64;
        if length > self.group_max() {
            return Err(StoreError::BatchTooLarge { length: ByteSize(length), max: ByteSize(self.group_max()) });
        }
        let mut state = self.state();
        let at = state.buffer.len();
        state.starts.push((at, seq));
        state.buffer.extend_from_slice(&(records.len() as u32).to_le_bytes());
        state.buffer.extend_from_slice(&seq.to_le_bytes());
        state.buffer.extend_from_slice(records);
        state.appended_seq = seq;
        Ok(())
    }

    pub(crate) fn appended_seq(&self) -> u64 {
        self.state().appended_seq
    }

    pub(crate) fn written_seq(&self) -> u64 {
        self.state().written_seq
    }

    pub(crate) fn synced_seq(&self) -> u64 {
        self.state().synced_seq
    }

    /// Drops the groups that wait for a write, and everything that was not written: the next group gets the number
    /// after `last_seq`.
    pub(crate) fn forget_after(&self, last_seq: u64) {
        let mut state = self.state();
        (state.buffer, state.starts, state.taken) = (Vec::new(), Vec::new(), 0);
        state.appended_seq = last_seq;
    }

    /// Writes what waits. One caller at a time. After a failure the bytes are gone, some of their blocks may be on the
    /// medium, and [`Log::start_epoch`] must come before the next write.
    pub(crate) fn write(&self) -> Result<()> {
        let taken = self.take();
        if taken.payload.is_empty() || taken.last_seq == self.written_seq() {
            self.state().taken = 0;
            return Ok(());
        }
        self.check_space(&taken)?;
        let (writes, unfinished) = self.blocks(&taken);
        self.disk.write(writes, DEPTH, "the log")?;
        self.written(&taken, unfinished);
        Ok(())
    }

    /// Makes everything durable that was written.
    pub(crate) fn flush(&self) -> Result<()> {
        let (written, next) = {
            let state = self.state();
            (state.written_seq, state.next)
        };
        if !crate::faults::is_planted(crate::faults::Planted::FlushLeftOut) {
            self.disk.flush()?;
        }
        let mut state = self.state();
        state.synced_seq = state.synced_seq.max(written);
        state.durable = state.durable.max(next);
        state.turn ^= std::mem::take(&mut state.is_turn_used);
        Ok(())
    }

    /// Fails where blocks that a restart needs would be overwritten: whoever appends keeps space for that.
    fn check_space(&self, taken: &Taken) -> Result<()> {
        let end = taken.first_block + taken.payload.len().div_ceil(PAYLOAD) as u64;
        match end - self.state().tail <= self.geometry.ring_blocks {
            true => Ok(()),
            false => Err(StoreError::Invalid("the log has no space for what was appended to it".to_owned())),
        }
    }

    fn take(&self) -> Taken {
        let mut state = self.state();
        let buffer = std::mem::take(&mut state.buffer);
        let mut starts = std::mem::take(&mut state.starts);
        let mut payload = state.part.clone();
        starts.iter_mut().for_each(|start| start.0 += payload.len());
        payload.extend_from_slice(&buffer);
        state.taken = payload.len();
        Taken { payload, starts, first_block: state.next, last_seq: state.appended_seq }
    }

    /// The blocks of a payload, in pieces that are adjacent on the medium; and how many bytes of the payload belong to
    /// an unfinished block.
    fn blocks(&self, taken: &Taken) -> (Vec<(u64, IoBuffer, Cause)>, usize) {
        let (durable, epoch, part_first, turn) = {
            let state = self.state();
            (state.durable, state.epoch, state.part_first, state.turn)
        };
        let unfinished = if self.geometry.is_packed { taken.payload.len() % PAYLOAD } else { 0 };
        let mut starts = taken.starts.iter().map(|start| start.0).peekable();
        let mut encode = |n: usize, payload: &[u8], into: &mut [u8]| {
            let begin = n * PAYLOAD;
            let own = starts.peek().filter(|&&start| start < begin + payload.len()).map(|start| start - begin);
            while starts.next_if(|&start| start < begin + payload.len()).is_some() {}
            let first = match (n, part_first) {
                (0, first) if first != NO_START => first,
                _ => own.map_or(NO_START, |start| start as u16),
            };
            let number = taken.first_block + n as u64;
            Block { number, epoch, durable, first, payload }.encode(self.geometry.seed, into);
        };
        let whole = &taken.payload[..taken.payload.len() - unfinished];
        let payloads: Vec<&[u8]> = whole.chunks(PAYLOAD).collect();
        let mut writes = Vec::new();
        let mut n = 0;
        while n < payloads.len() {
            let offset = self.geometry.ring_offset(taken.first_block + n as u64);
            let to_end = self.geometry.ring_blocks - (taken.first_block + n as u64) % self.geometry.ring_blocks;
            let count = (payloads.len() - n).min(self.piece_blocks).min(to_end as usize);
            let mut buffer = IoBuffer::zeroed(count * BLOCK as usize);
            for (into, payload) in buffer.chunks_mut(BLOCK as usize).zip(&payloads[n..]) {
                encode(n, payload, into);
                n += 1;
            }
            writes.push((offset, buffer, Cause::Log));
        }
        if unfinished > 0 {
            let mut buffer = IoBuffer::zeroed(BLOCK as usize);
            encode(payloads.len(), &taken.payload[whole.len()..], &mut buffer);
            writes.push((self.geometry.tail_offset(turn), buffer, Cause::Log));
        }
        (writes, unfinished)
    }

    /// Notes what was written.
    fn written(&self, taken: &Taken, unfinished: usize) {
        let mut state = self.state();
        state.taken = 0;
        for &(start, seq) in &taken.starts {
            let block = taken.first_block + (start / PAYLOAD) as u64;
            if state.marks.back().is_none_or(|mark| mark.1 != block) {
                state.marks.push_back((seq, block));
            }
        }
        let whole = taken.payload.len() - unfinished;
        let old_first = state.part_first;
        state.part = taken.payload[whole..].to_vec();
        state.part_first = match taken.starts.iter().find(|start| start.0 >= whole) {
            _ if whole == 0 && old_first != NO_START => old_first,
            Some(start) if unfinished > 0 => (start.0 - whole) as u16,
            _ => NO_START,
        };
        state.next = taken.first_block + whole.div_ceil(PAYLOAD) as u64;
        state.is_turn_used |= unfinished > 0;
        state.written_seq = taken.last_seq;
    }

    /// The block from which a restart must read if changes from `seq` on are needed; with `None` nothing is needed.
    pub(crate) fn block_of(&self, seq: Option<u64>) -> u64 {
        let state = self.state();
        let Some(seq) = seq else { return state.next };
        let before = state.marks.partition_point(|mark| mark.0 <= seq);
        match before.checked_sub(1).and_then(|at| state.marks.get(at)) {
            Some(&(_, block)) => block.max(state.tail),
            None => state.tail,
        }
    }

    /// The sequence number of the first group that starts at least `blocks` blocks before the end.
    pub(crate) fn seq_behind(&self, blocks: u64) -> Option<u64> {
        let state = self.state();
        let limit = state.next.checked_sub(blocks)?;
        let before = state.marks.partition_point(|mark| mark.1 <= limit);
        before.checked_sub(1).and_then(|at| state.marks.get(at)).map(|mark| mark.0)
    }

    /// Fills in the log's part of a superblock.
    pub(crate) fn describe(&self, superblock: &mut Superblock, tail: u64) {
        let state = self.state();
        superblock.tail = tail;
        superblock.durable = state.durable;
        superblock.last_seq = state.synced_seq;
    }

    /// Blocks before `tail` are free: both superblocks that name it are durable.
    pub(crate) fn free_to(&self, tail: u64) {
        let mut state = self.state();
        state.tail = state.tail.max(tail);
        while state.marks.len() > 1 && state.marks[1].1 <= tail {
            state.marks.pop_front();
        }
    }

    /// Blocks from the next one on belong to another epoch, which the superblock has named.
    pub(crate) fn start_epoch(&self, epoch: u64) {
        let mut state = self.state();
        state.epoch = epoch;
    }

    /// Number of the next block, for a superblock that names a new epoch. A packed log's unfinished block is closed.
    pub(crate) fn next_block(&self) -> u64 {
        self.state().next
    }
}

#[cfg(test)]
mod tests;
