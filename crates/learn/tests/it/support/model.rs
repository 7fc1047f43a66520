//! A drive that has nothing in common with the simulator: servers with queues of their own, and at most a few features.
//!
//! ```text
//!   write ─▶ link ─▶ [buffer] ─┐
//!                              ├─▶ a server: any that is free, or the one that the address names ─▶ completion
//!   read ─▶ [cache] ───────────┘
//! ```
//!
//! A part of a request takes `fixed + length · per byte`, times a noise with a heavy tail; parts on different servers
//! run at once. There are no pages, blocks, mapping or collection, and the drive tells nothing about its flash. When a
//! request is done is known as it is submitted: whoever comes first is served first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const BLOCK: u64 = 4096;

/// What a part of a request takes.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    pub fixed_ns: f64,
    pub per_byte_ns: f64,
}

/// Which server a part goes to.
#[derive(Clone, Copy, Debug)]
pub enum Placement {
    /// The whole request to the one that is free first.
    Any,
    /// Pieces of this length by turns, by address alone.
    ByAddress { piece: ByteSize },
}

/// What the drive is.
#[derive(Clone, Debug)]
pub struct Model {
    pub capacity: ByteSize,
    pub servers: usize,
    pub placement: Placement,
    pub read: Service,
    pub write: Service,
    /// Time of a byte on the link of writes.
    pub link_per_byte_ns: f64,
    /// What an answer from memory takes.
    pub memory_ns: f64,
    /// Services vary by this share on either side.
    pub noise: f64,
    /// One part in so many takes two to twenty times as long; 0 for none.
    pub tail_one_in: u32,
    /// Times are multiples of this.
    pub granularity: Nanos,
    /// Bytes that are acknowledged before a server has them; 0 for none.
    pub write_buffer: ByteSize,
    /// Blocks that were read last and are completed from memory; 0 for none.
    pub read_cache: ByteSize,
    /// Share of a write's service that zeros save.
    pub zeros_save: f64,
    /// Share of a write's service that a block seen before saves.
    pub repeats_save: f64,
    /// Bytes since they were trimmed that are written fast, and how much slower all others are.
    pub fast_writes: Option<(ByteSize, f64)>,
}

impl Default for Model {
    /// Eight servers and nothing else.
    fn default() -> Self {
        Self {
            capacity: ByteSize::mib(128),
            servers: 8,
            placement: Placement::Any,
            read: Service { fixed_ns: 70_000.0, per_byte_ns: 0.5 },
            write: Service { fixed_ns: 210_000.0, per_byte_ns: 1.5 },
            link_per_byte_ns: 0.3,
            memory_ns: 9_000.0,
            noise: 0.04,
            tail_one_in: 200,
            granularity: Nanos(1),
            write_buffer: ByteSize(0),
            read_cache: ByteSize(0),
            zeros_save: 0.0,
            repeats_save: 0.0,
            fast_writes: None,
        }
    }
}

/// A request that will be done at a known time; the first one is the least.
struct Due {
    at: u64,
    number: u64,
    completion: Completion,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The drive.
pub struct ModelDrive {
    model: Model,
    info: DeviceInfo,
    random: Pcg64Mcg,
    now: u64,
    submitted: u64,
    due: BinaryHeap<Due>,
    /// When each server has done all that it was given.
    free_at: Vec<u64>,
    link_free_at: u64,
    buffer: Buffer,
    cache: Cache,
    contents: HashSet<u64>,
    fast_left: u64,
    counters: DeviceCounters,
}

impl ModelDrive {
    pub fn new(model: Model, seed: u64) -> Self {
        let info = DeviceInfo {
            name: "a model".to_owned(),
            capacity: model.capacity,
            logical_block: ByteSize(512),
            max_transfer: ByteSize::mib(1),
            queue_depth: 256,
            clock: Clock::Virtual,
            atomic_write: None,
        };
        Self {
            info,
            random: Pcg64Mcg::seed_from_u64(seed),
            now: 0,
            submitted: 0,
            due: BinaryHeap::new(),
            free_at: vec![0; model.servers],
            link_free_at: 0,
            buffer: Buffer { size: model.write_buffer.bytes(), ..Buffer::default() },
            cache: Cache { blocks: model.read_cache.bytes() / BLOCK, ..Cache::default() },
            contents: HashSet::new(),
            fast_left: model.fast_writes.map_or(0, |(bytes, _)| bytes.bytes()),
            counters: DeviceCounters::default(),
            model,
        }
    }

    fn noise(&mut self) -> f64 {
        let spread = self.model.noise * (self.random.random_range(-1.0..1.0) + self.random.random_range(-1.0..1.0));
        let is_late = self.model.tail_one_in > 0 && self.random.random_range(0..self.model.tail_one_in) == 0;
        let tail = if is_late { 2.0 / self.random.random_range(0.1_f64..1.0) } else { 1.0 };
        (1.0 + spread / 2.0) * tail
    }

    /// Gives a part to a server from `ready` on; tells when it is done.
    fn serve(&mut self, server: usize, ready: u64, service_ns: f64) -> u64 {
        let service = service_ns * self.noise();
        self.free_at[server] = self.free_at[server].max(ready) + service as u64;
        self.free_at[server]
    }

    /// Gives a whole request to its servers; tells when the last part is done.
    fn serve_all(&mut self, offset: u64, length: u64, ready: u64, service: Service, factor: f64) -> u64 {
        let time = |bytes: u64| factor * (service.fixed_ns + service.per_byte_ns * bytes as f64);
        match self.model.placement {
            Placement::Any => {
                let first = (0..self.free_at.len()).min_by_key(|&server| self.free_at[server]).unwrap();
                self.serve(first, ready, time(length))
            }
            Placement::ByAddress { piece } => {
                let (piece, mut at, end, mut done) = (piece.bytes(), offset, offset + length, ready);
                while at < end {
                    let stop = (at / piece + 1) * piece;
                    let bytes = stop.min(end) - at;
                    let server = (at / piece) as usize % self.free_at.len();
                    done = done.max(self.serve(server, ready, time(bytes)));
                    at += bytes;
                }
                done
            }
        }
    }

    fn read(&mut self, offset: u64, length: u64) -> u64 {
        let blocks = offset / BLOCK..(offset + length).div_ceil(BLOCK);
        let at_hand = blocks.clone().all(|block| self.cache.has(block));
        blocks.for_each(|block| self.cache.put(block));
        if at_hand {
            return self.now + (self.model.memory_ns * self.noise()) as u64;
        }
        self.serve_all(offset, length, self.now, self.model.read, 1.0)
    }

    /// Share of its service that a write takes.
    fn share(&mut self, request: &Request) -> f64 {
        let mut share = 1.0;
        if let Some(content) = request.buffer.as_deref() {
            let zeros = content.iter().filter(|&&byte| byte == 0).count();
            share -= self.model.zeros_save * zeros as f64 / content.len() as f64;
            if self.model.repeats_save > 0.0 {
                let mut hasher = DefaultHasher::new();
                content.hash(&mut hasher);
                if !self.contents.insert(hasher.finish()) {
                    share -= self.model.repeats_save;
                }
            }
        }
        if let Some((_, slower)) = self.model.fast_writes {
            share *= if self.fast_left == 0 { slower } else { 1.0 };
            self.fast_left = self.fast_left.saturating_sub(request.length.bytes());
        }
        share
    }

    fn write(&mut self, request: &Request) -> u64 {
        let (offset, length) = (request.offset.bytes(), request.length.bytes());
        (offset / BLOCK..(offset + length).div_ceil(BLOCK)).for_each(|block| self.cache.forget(block));
        let share = self.share(request);
        let transfer = (self.model.link_per_byte_ns * length as f64) as u64;
        self.link_free_at = self.link_free_at.max(self.now) + transfer;
        let there = self.link_free_at;
        if self.buffer.size < length {
            return self.serve_all(offset, length, there, self.model.write, share);
        }
        let accepted = self.buffer.room(there, length);
        let drained = self.serve_all(offset, length, accepted, self.model.write, share);
        self.buffer.hold(length, drained);
        if request.fua { drained } else { accepted + self.model.memory_ns as u64 }
    }

    fn trim(&mut self, length: u64) -> u64 {
        let most = self.model.fast_writes.map_or(0, |(bytes, _)| bytes.bytes());
        self.fast_left = (self.fast_left + length).min(most);
        self.now + self.model.memory_ns as u64
    }

    fn finish(&mut self, request: &Request) -> u64 {
        match request.operation {
            Operation::Read => self.read(request.offset.bytes(), request.length.bytes()),
            Operation::Write | Operation::WriteZeroes => self.write(request),
            Operation::Trim => self.trim(request.length.bytes()),
            Operation::Flush => self.buffer.empty_at().max(self.now) + self.model.memory_ns as u64,
        }
    }

    fn rounded(&self, at: u64) -> u64 {
        at.next_multiple_of(self.model.granularity.0.max(1))
    }

    fn count(&mut self, operation: Operation, length: ByteSize) {
        let counters = &mut self.counters;
        match operation {
            Operation::Read => {
                counters.host_reads += 1;
                counters.host_bytes_read += length;
            }
            Operation::Write | Operation::WriteZeroes => {
                counters.host_writes += 1;
                counters.host_bytes_written += length;
            }
            Operation::Trim => counters.trims += 1,
            Operation::Flush => counters.flushes += 1,
        }
    }
}

impl BlockDevice for ModelDrive {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.rounded(self.now))
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        self.submitted += 1;
        self.count(request.operation, request.length);
        let at = self.finish(&request);
        let (submitted_at, completed_at) = (self.now(), Nanos(self.rounded(at)));
        let Request { tag, operation, buffer, .. } = request;
        let started_at = submitted_at;
        let completion = Completion { tag, operation, submitted_at, started_at, completed_at, result: Ok(()), buffer };
        self.due.push(Due { at, number: self.submitted, completion });
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        let Some(Due { at, completion, .. }) = self.due.pop() else { return Ok(None) };
        self.now = self.now.max(at);
        Ok(Some(completion))
    }

    fn outstanding(&self) -> usize {
        self.due.len()
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        self.now += duration.0;
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }
}

/// Writes that were acknowledged and are not yet done.
#[derive(Default)]
struct Buffer {
    size: u64,
    used: u64,
    /// When each write leaves, and its length.
    leaving: BinaryHeap<Reverse<(u64, u64)>>,
    last_leaves: u64,
    last_accepted: u64,
}

impl Buffer {
    /// When there is room for so much that came at `ready`.
    fn room(&mut self, ready: u64, length: u64) -> u64 {
        let mut at = ready.max(self.last_accepted);
        while let Some(&Reverse((leaves, bytes))) = self.leaving.peek() {
            if leaves > at && self.used + length <= self.size {
                break;
            }
            at = at.max(leaves);
            self.used -= bytes;
            self.leaving.pop();
        }
        self.last_accepted = at;
        at
    }

    fn hold(&mut self, length: u64, leaves: u64) {
        self.used += length;
        self.leaving.push(Reverse((leaves, length)));
        self.last_leaves = self.last_leaves.max(leaves);
    }

    fn empty_at(&self) -> u64 {
        self.last_leaves
    }
}

/// The blocks that were read last.
#[derive(Default)]
struct Cache {
    blocks: u64,
    turn: u64,
    last_read: HashMap<u64, u64>,
    /// Reads in order; those that are not the last of their block do not count.
    reads: VecDeque<(u64, u64)>,
}

impl Cache {
    fn has(&self, block: u64) -> bool {
        self.last_read.contains_key(&block)
    }

    fn put(&mut self, block: u64) {
        if self.blocks == 0 {
            return;
        }
        self.turn += 1;
        self.last_read.insert(block, self.turn);
        self.reads.push_back((block, self.turn));
        while self.last_read.len() as u64 > self.blocks {
            let Some((block, turn)) = self.reads.pop_front() else { return };
            if self.last_read.get(&block) == Some(&turn) {
                self.last_read.remove(&block);
            }
        }
    }

    fn forget(&mut self, block: u64) {
        self.last_read.remove(&block);
    }
}
