//! Reads the log at an opening.
//!
//! The log ends at the first block that does not follow: wrong checksum, wrong number, wrong epoch. That is where a
//! power cut left it, unless the superblock or a later block proves that the missing block was durable: then the medium
//! has lost it, and the opening fails with its place.
//!
//! **Epochs.** After a cut, blocks beyond the end may be whole: they were written and never acknowledged. They must not
//! follow a block that a later opening writes at the end. So each opening has a new epoch, durable in the superblock
//! before its first block: from `epoch_start` on only this epoch counts, and before it epochs never fall.

use std::collections::VecDeque;

use super::block::{Block, NO_START};
use super::{GROUP_HEADER, PAYLOAD};
use crate::bytes::{get_u32, get_u64};
use crate::error::{Result, StoreError};
use crate::faults::{Planted, is_planted};
use crate::medium::{BLOCK, Disk};
use crate::superblock::Superblock;

/// Blocks that are read at once.
const CHUNK_BLOCKS: u64 = 64;
/// Chunks in flight.
const DEPTH: usize = 4;

/// Records that are applied together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub seq: u64,
    pub records: Vec<u8>,
}

/// What the log holds.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub groups: Vec<Group>,
    /// The block after the last one that follows.
    pub next: u64,
    pub last_seq: u64,
    pub marks: VecDeque<(u64, u64)>,
    /// A packed log's unfinished block, to be copied to its place in the ring before anything else is written.
    pub unfinished: Option<Vec<u8>>,
}

struct Scanner<'a> {
    superblock: &'a Superblock,
    place: String,
    found: Scan,
    last_epoch: u64,
    /// Bytes of a group that is not complete yet, and the block in which it starts.
    assembling: Vec<u8>,
    started_in: u64,
}

/// Reads the log from the superblock's tail on.
pub(crate) fn scan(disk: &Disk, superblock: &Superblock) -> Result<Scan> {
    let found = Scan { next: superblock.tail, last_seq: superblock.last_seq, ..Scan::default() };
    let place = disk.name();
    let mut scanner =
        Scanner { superblock, place, found, last_epoch: 0, assembling: Vec::new(), started_in: superblock.tail };
    let limit = superblock.tail + superblock.geometry.ring_blocks;
    let mut number = superblock.tail;
    while number < limit {
        let chunk = read_chunk(disk, superblock, number, limit)?;
        let blocks: Vec<&[u8]> = chunk.iter().flat_map(|piece| piece.chunks(BLOCK as usize)).collect();
        for (n, bytes) in blocks.iter().enumerate() {
            if !scanner.accept(bytes, number + n as u64)? {
                let after = read_chunk(disk, superblock, number + blocks.len() as u64, limit)?;
                let after = after.iter().flat_map(|piece| piece.chunks(BLOCK as usize));
                return scanner.end(disk, blocks[n + 1..].iter().copied().chain(after));
            }
        }
        number += blocks.len() as u64;
    }
    scanner.end(disk, std::iter::empty())
}

/// Blocks from `number` on, up to a few chunks of them.
fn read_chunk(disk: &Disk, superblock: &Superblock, number: u64, limit: u64) -> Result<Vec<flashwise_block::IoBuffer>> {
    let geometry = &superblock.geometry;
    let mut spans = Vec::new();
    let mut at = number;
    while at < limit && spans.len() < DEPTH {
        let to_end = geometry.ring_blocks - at % geometry.ring_blocks;
        let most = CHUNK_BLOCKS.min(disk.max_transfer() / BLOCK).max(1);
        let count = most.min(to_end).min(limit - at);
        spans.push((geometry.ring_offset(at), (count * BLOCK) as usize));
        at += count;
    }
    disk.read(&spans, DEPTH, "the log")
}

impl Scanner<'_> {
    /// Whether a block may follow.
    fn follows(&self, block: &Block<'_>, number: u64) -> bool {
        let Superblock { epoch, epoch_start, .. } = *self.superblock;
        let is_of_epoch = match number >= epoch_start {
            _ if is_planted(Planted::EpochKept) => true,
            true => block.epoch == epoch,
            false => block.epoch < epoch && block.epoch >= self.last_epoch,
        };
        block.number == number && is_of_epoch
    }

    /// Takes a block if it follows.
    fn accept(&mut self, bytes: &[u8], number: u64) -> Result<bool> {
        match Block::decode(self.superblock.geometry.seed, bytes).filter(|block| self.follows(block, number)) {
            Some(block) => self.take(&block).map(|()| true),
            None => Ok(false),
        }
    }

    fn take(&mut self, block: &Block<'_>) -> Result<()> {
        if block.epoch != self.last_epoch {
            // The group that the last block of the earlier epoch began was never acknowledged.
            self.assembling.clear();
            self.last_epoch = block.epoch;
        }
        let payload = match (self.assembling.is_empty(), block.first) {
            (true, NO_START) => &[][..],
            (true, first) => &block.payload[usize::from(first)..],
            (false, _) => block.payload,
        };
        if self.assembling.is_empty() {
            self.started_in = block.number;
        }
        self.assembling.extend_from_slice(payload);
        self.found.next = block.number + 1;
        self.complete_groups(block.number)
    }

    /// Moves complete groups out of what is being assembled.
    fn complete_groups(&mut self, number: u64) -> Result<()> {
        let mut rest = &self.assembling[..];
        while rest.len() >= GROUP_HEADER {
            let (length, seq) = (get_u32(rest, 0) as usize, get_u64(rest, 4));
            let Some(records) = rest.get(GROUP_HEADER..GROUP_HEADER + length) else { break };
            let is_first = self.found.groups.is_empty();
            let is_next = if is_first { seq <= self.found.last_seq + 1 } else { seq == self.found.last_seq + 1 };
            if !is_next || seq == 0 {
                let what = format!("group {seq} follows group {}", self.found.last_seq);
                return Err(StoreError::corrupt(format!("{}: log block {number}", self.place), what));
            }
            if self.found.marks.back().is_none_or(|mark| mark.1 != self.started_in) {
                self.found.marks.push_back((seq, self.started_in));
            }
            self.found.groups.push(Group { seq, records: records.to_vec() });
            self.found.last_seq = seq;
            self.started_in = number;
            rest = &rest[GROUP_HEADER + length..];
        }
        let done = self.assembling.len() - rest.len();
        self.assembling.drain(..done);
        Ok(())
    }

    /// The log ends here, if nothing proves that it goes on.
    fn end<'b>(mut self, disk: &Disk, behind: impl Iterator<Item = &'b [u8]>) -> Result<Scan> {
        let geometry = self.superblock.geometry;
        let end = self.found.next;
        let spans = [false, true].map(|turn| (geometry.tail_offset(turn), BLOCK as usize));
        let tails = if geometry.is_packed { disk.read(&spans, 2, "the log")? } else { Vec::new() };
        let tail_blocks = tails.iter().filter_map(|bytes| Some((bytes, Block::decode(geometry.seed, bytes)?)));
        let tail_blocks: Vec<_> = tail_blocks.collect();
        let own = tail_blocks.iter().filter(|(_, block)| self.follows(block, end));
        if let Some((bytes, block)) = own.max_by_key(|(_, block)| (block.epoch, block.payload.len())) {
            self.take(block)?;
            self.found.unfinished = Some(bytes.to_vec());
        }
        let Superblock { epoch, durable, .. } = *self.superblock;
        let end = self.found.next;
        let later = behind.filter_map(|bytes| Block::decode(geometry.seed, bytes));
        let later = later.chain(tail_blocks.iter().map(|(_, block)| *block)).filter(|block| {
            let is_ahead = block.number > end && block.number - end < geometry.ring_blocks;
            is_ahead && block.epoch == epoch.max(self.last_epoch) && block.epoch >= self.last_epoch
        });
        let proven = later.map(|block| block.durable).max().unwrap_or(0).max(durable);
        if proven > end {
            let what = format!("it is damaged or missing, and the log was durable up to block {proven}");
            return Err(StoreError::corrupt(format!("{}: log block {end}", self.place), what));
        }
        debug_assert!(self.assembling.len() < u32::MAX as usize + PAYLOAD);
        Ok(self.found)
    }
}
