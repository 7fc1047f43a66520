//! What the content of writes changes: the gain by compression and by deduplication.
//!
//! Saturated random writes of 4 KiB to a part of a fresh drive, all of whose flash is in use, in the long run: of zeros
//! against random bytes, and of blocks that repeat a few others against blocks that differ from all others. Zeros carry
//! a few bytes that no other block has, or they would be repeats; repeats are random bytes each, or they could be
//! compressed.
//!
//! A drive that looks for repeats only when it has nothing to do writes all of them first, and gains nothing here.
//!
//! What is repeated has left the buffer before. A drive that reads it to compare is as fast as the dies are on which it
//! lies: where that matters, the gain has no truth.

use flashwise_block::{ByteSize, IoBuffer, Request};
use flashwise_profile::{Figure, Parameters};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::bench::{Bench, Past, Span};
use super::throughput::REGION;
use super::{Reasons, buffers, exactly, is_near};
use flashwise_sim::SimulationError;
use flashwise_ssd::DeviceConfig;

/// Writes are so long, so many are in flight, and they go to so many bytes.
const LENGTH: u64 = 4096;
const DEPTH: usize = 32;
const AREA: u64 = 32 << 20;
/// Writes that are measured, at least.
const WRITES: u64 = 8_192;
/// Bytes of a block of zeros that no other block has.
const DISTINCT_BYTES: usize = 16;
/// Blocks that others repeat.
const ORIGINALS: usize = 16;
/// A gain is one from this share on, and none below the other; in between nothing is said.
const GAIN: f64 = 0.08;
const NO_GAIN: f64 = 0.03;

/// What the blocks of a run are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Random,
    Zeros,
    /// What they repeat was first written among others, of which so many were repeats: one after the other, or apart.
    Repeats {
        before_percent: u64,
    },
}

/// Percent of repeats among which what is repeated comes to lie apart, and so few that they fill no buffer.
const APART: u64 = 10;

/// Of a drive that stores what it is given.
pub(super) fn read_off(config: &DeviceConfig, parameters: &mut Parameters) {
    if config.compression().is_none() {
        parameters.compression_gain = Figure::absent();
    }
    if config.deduplication().is_none() {
        parameters.deduplication_gain = Figure::absent();
    }
}

/// Of one that reduces it.
pub(super) fn measure(
    config: &DeviceConfig,
    parameters: &mut Parameters,
    reasons: &mut Reasons,
) -> Result<(), SimulationError> {
    if config.reduction.is_none() {
        return Ok(());
    }
    let random = writes_per_s(config, Content::Random)?;
    if config.compression().is_some() {
        let gain = writes_per_s(config, Content::Zeros)? / random;
        parameters.compression_gain = told(gain, "compression_gain", reasons);
    }
    if let Some(deduplication) = config.deduplication() {
        const KEY: &str = "deduplication_gain";
        let together = writes_per_s(config, Content::Repeats { before_percent: 100 })?;
        let apart = || writes_per_s(config, Content::Repeats { before_percent: APART });
        parameters.deduplication_gain = match deduplication.compare_on_hit && !is_near(apart()?, together) {
            true => reasons.unknown(KEY, "duplicates are compared with the stored page, and its place matters"),
            false => told(together / random, KEY, reasons),
        };
    }
    Ok(())
}

fn told(gain: f64, key: &'static str, reasons: &mut Reasons) -> Figure<f64> {
    match gain - 1.0 {
        more if more >= GAIN => exactly(gain),
        more if more < NO_GAIN => Figure::absent(),
        _ => reasons.unknown(key, "writes are only a little faster"),
    }
}

/// Saturated writes a second of one kind of content.
fn writes_per_s(config: &DeviceConfig, content: Content) -> Result<f64, SimulationError> {
    let mut bench = Bench::fresh(config, REGION.min(config.capacity_bytes), Past::None)?;
    let mut blocks = Blocks::new(content);
    let area = Span { start: 0, bytes: AREA.min(config.capacity_bytes) };
    let depth = DEPTH.min(config.host.queue_depth as usize);
    let mut write = |bench: &mut Bench, count: u64, repeats_percent: u64| {
        bench.run(depth, count, |bench| {
            Request::write(bench.place(area, LENGTH), ByteSize(0)).with_buffer(blocks.next(repeats_percent))
        })
    };
    let buffered = buffers::acknowledged_bytes(config) / LENGTH;
    let settle = 2 * buffered + area.bytes / LENGTH;
    if let Content::Repeats { before_percent } = content {
        write(&mut bench, settle, before_percent)?;
        write(&mut bench, settle, APART)?;
    }
    write(&mut bench, settle, 100)?;
    Ok(write(&mut bench, WRITES.max(4 * buffered), 100)?.per_s)
}

/// Blocks of one kind of content.
struct Blocks {
    content: Content,
    originals: Vec<IoBuffer>,
    random: Pcg64Mcg,
}

impl Blocks {
    fn new(content: Content) -> Self {
        let mut blocks = Self { content, originals: Vec::new(), random: Pcg64Mcg::seed_from_u64(1) };
        blocks.originals = (0..ORIGINALS).map(|_| blocks.noise()).collect();
        blocks
    }

    fn noise(&mut self) -> IoBuffer {
        let mut block = IoBuffer::zeroed(LENGTH as usize);
        self.random.fill_bytes(&mut block);
        block
    }

    /// The next block; of repeats so many percent are some.
    fn next(&mut self, repeats_percent: u64) -> IoBuffer {
        match self.content {
            Content::Random => self.noise(),
            Content::Zeros => {
                let mut block = IoBuffer::zeroed(LENGTH as usize);
                let from = block.len() - DISTINCT_BYTES;
                self.random.fill_bytes(&mut block[from..]);
                block
            }
            Content::Repeats { .. } if self.random.next_u64() % 100 >= repeats_percent => self.noise(),
            Content::Repeats { .. } => {
                let which = self.random.next_u64() as usize % self.originals.len();
                IoBuffer::copy_of(&self.originals[which])
            }
        }
    }
}
