//! A medium with what a store knows of it: bytes by cause, which writes a flush has made durable, the first failed
//! flush.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flashwise_block::{BlockError, ByteSize, DeviceCounters, IoBuffer, Request};

use super::Medium;
use crate::error::{During, Result, StoreError};
use crate::stats::IoStats;

/// The unit of the log, of delta blocks and of superblocks: what drives that compress compress by itself.
pub(crate) const BLOCK: u64 = 4096;

/// `EOPNOTSUPP`.
const NOT_SUPPORTED: i32 = 95;

/// Why bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Log,
    Image,
    Delta,
    Superblock,
}

/// A medium, shared by the parts of a store.
pub(crate) struct Disk {
    medium: Box<dyn Medium>,
    written: [AtomicU64; 4],
    read: AtomicU64,
    reads: AtomicU64,
    flushes: AtomicU64,
    trims: AtomicU64,
    trimmed: AtomicU64,
    /// Batches of page writes that have completed, and those of them that a later flush has made durable.
    completed: AtomicU64,
    durable: AtomicU64,
    /// The medium gives no space back: a file system without holes, a drive without trims.
    keeps_space: AtomicBool,
    poison: OnceLock<String>,
}

impl Disk {
    pub(crate) fn new(medium: Box<dyn Medium>) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            medium,
            written: [zero(), zero(), zero(), zero()],
            read: zero(),
            reads: zero(),
            flushes: zero(),
            trims: zero(),
            trimmed: zero(),
            completed: zero(),
            durable: zero(),
            keeps_space: AtomicBool::new(false),
            poison: OnceLock::new(),
        }
    }

    pub(crate) fn name(&self) -> String {
        self.medium.name()
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.medium.capacity()
    }

    pub(crate) fn max_transfer(&self) -> u64 {
        self.medium.max_transfer()
    }

    /// Makes the medium long enough for bytes up to `end`.
    pub(crate) fn ensure(&self, end: u64) -> Result<()> {
        match self.medium.ensure(end) {
            Err(BlockError::NoSpace) => Err(StoreError::Full { capacity: ByteSize(self.capacity()) }),
            done => done.during(|| format!("growing the store to {}", ByteSize(end))),
        }
    }

    /// Fails once a flush has failed.
    pub(crate) fn healthy(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(why) => Err(StoreError::Poisoned { why: why.clone() }),
        }
    }

    /// From now on nothing is written.
    pub(crate) fn poison(&self, why: &StoreError) {
        let _ = self.poison.set(why.to_string());
    }

    /// Reads spans, up to `depth` at once.
    pub(crate) fn read(&self, spans: &[(u64, usize)], depth: usize, what: &str) -> Result<Vec<IoBuffer>> {
        let requests = spans.iter().map(|&(offset, length)| {
            Request::read(ByteSize(offset), ByteSize(0)).with_buffer(IoBuffer::zeroed(length))
        });
        let buffers = self.medium.run(requests.collect(), depth).during(|| format!("reading {what}"))?;
        self.reads.fetch_add(spans.len() as u64, Ordering::Relaxed);
        self.read.fetch_add(spans.iter().map(|span| span.1 as u64).sum(), Ordering::Relaxed);
        let lost = BlockError::Protocol("a read lost its buffer");
        buffers.into_iter().map(|buffer| buffer.ok_or(lost.clone()).during(|| format!("reading {what}"))).collect()
    }

    /// Writes buffers, up to `depth` at once.
    pub(crate) fn write(&self, writes: Vec<(u64, IoBuffer, Cause)>, depth: usize, what: &str) -> Result<()> {
        self.healthy()?;
        for (_, buffer, cause) in &writes {
            self.written[*cause as usize].fetch_add(buffer.len() as u64, Ordering::Relaxed);
        }
        let request = |(offset, buffer, _)| Request::write(ByteSize(offset), ByteSize(0)).with_buffer(buffer);
        let requests = writes.into_iter().map(request).collect();
        self.medium.run(requests, depth).map(drop).during(|| format!("writing {what}"))
    }

    /// Gives spans back, if the medium can: nothing depends on it but how much space the store takes.
    pub(crate) fn trim(&self, spans: &[(u64, u64)], depth: usize) -> Result<()> {
        self.healthy()?;
        if self.keeps_space.load(Ordering::Relaxed) {
            return Ok(());
        }
        let request = |&(offset, length): &(u64, u64)| Request::trim(ByteSize(offset), ByteSize(length));
        match self.medium.run(spans.iter().map(request).collect(), depth) {
            Err(BlockError::Os { errno: NOT_SUPPORTED, .. }) => {
                self.keeps_space.store(true, Ordering::Relaxed);
                return Ok(());
            }
            done => done.map(drop).during(|| "giving space back".to_owned())?,
        }
        self.trims.fetch_add(spans.len() as u64, Ordering::Relaxed);
        self.trimmed.fetch_add(spans.iter().map(|span| span.1).sum(), Ordering::Relaxed);
        Ok(())
    }

    /// A batch of page writes has completed; returns its number.
    pub(crate) fn completed_batch(&self) -> u64 {
        self.completed.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Batches up to this one are durable.
    pub(crate) fn durable_batches(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Makes every completed write durable. A failure is final.
    pub(crate) fn flush(&self) -> Result<()> {
        self.healthy()?;
        let covered = self.completed.load(Ordering::Acquire);
        let flushed = self.medium.run(vec![Request::flush()], 1).map(drop).during(|| "flushing the store".to_owned());
        if let Err(error) = &flushed {
            self.poison(error);
        }
        flushed?;
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.durable.fetch_max(covered, Ordering::AcqRel);
        Ok(())
    }

    pub(crate) fn counters(&self) -> Option<DeviceCounters> {
        self.medium.counters()
    }

    pub(crate) fn stats(&self) -> IoStats {
        let bytes = |counter: &AtomicU64| ByteSize(counter.load(Ordering::Relaxed));
        IoStats {
            log_bytes: bytes(&self.written[Cause::Log as usize]),
            image_bytes: bytes(&self.written[Cause::Image as usize]),
            delta_bytes: bytes(&self.written[Cause::Delta as usize]),
            superblock_bytes: bytes(&self.written[Cause::Superblock as usize]),
            given_back_bytes: bytes(&self.trimmed),
            give_backs: self.trims.load(Ordering::Relaxed),
            flushes: self.flushes.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
            read_bytes: bytes(&self.read),
        }
    }
}
