//! Measured requests to a region of a device, with a count of what they wrote.

use flashwise_block::{BlockDevice, BlockError, ByteSize, Nanos, Progress, Request, execute};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::{Effort, LearnError, LearnOptions};

/// The unit in which the probes divide their region; every layout that can be learned repeats in it.
pub(crate) const SECTION: ByteSize = ByteSize::mib(1);

/// A device with the region that is probed.
pub(crate) struct Prober<'a> {
    device: &'a mut dyn BlockDevice,
    region: ByteSize,
    max_write: Option<ByteSize>,
    written: ByteSize,
    read: ByteSize,
    pub(crate) random: Pcg64Mcg,
    pub(crate) effort: Effort,
}

impl<'a> Prober<'a> {
    pub(crate) fn new(device: &'a mut dyn BlockDevice, region: ByteSize, options: &LearnOptions) -> Self {
        let (max_write, random) = (options.max_write, Pcg64Mcg::seed_from_u64(options.seed));
        Self { device, region, max_write, written: ByteSize(0), read: ByteSize(0), random, effort: options.effort }
    }

    pub(crate) fn logical_block(&self) -> ByteSize {
        self.device.info().logical_block
    }

    pub(crate) fn written(&self) -> ByteSize {
        self.written
    }

    pub(crate) fn read_total(&self) -> ByteSize {
        self.read
    }

    pub(crate) fn now(&self) -> Nanos {
        self.device.now()
    }

    /// Start of a random section whose `length` bytes lie wholly in the region.
    pub(crate) fn random_section(&mut self, length: ByteSize) -> ByteSize {
        let sections = (self.region - length) / SECTION + 1;
        SECTION * self.random.random_range(0..sections)
    }

    /// A random offset in the region, a multiple of `length`.
    pub(crate) fn random_offset(&mut self, length: ByteSize) -> ByteSize {
        length * self.random.random_range(0..self.region / length)
    }

    /// `items` in random order.
    pub(crate) fn shuffled<T>(&mut self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut items: Vec<T> = items.into_iter().collect();
        items.shuffle(&mut self.random);
        items
    }

    /// Counts a write against the limit.
    fn spend(&mut self, length: ByteSize) -> Result<(), LearnError> {
        let after = self.written + length;
        if let Some(limit) = self.max_write.filter(|&limit| after > limit) {
            return Err(LearnError::WriteLimit { limit, written: self.written, next: length });
        }
        self.written = after;
        Ok(())
    }

    /// Latency of one read, nothing else in flight.
    pub(crate) fn read(&mut self, offset: ByteSize, length: ByteSize) -> Result<Nanos, LearnError> {
        self.read += length;
        Ok(execute(self.device, Request::read(offset, length))?.latency())
    }

    /// Latency of one write that is durable at completion, nothing else in flight.
    pub(crate) fn durable_write(&mut self, offset: ByteSize, length: ByteSize) -> Result<Nanos, LearnError> {
        self.spend(length)?;
        Ok(execute(self.device, Request::write(offset, length).with_fua())?.latency())
    }

    /// Writes `length` bytes from `start` on in order, in large writes, and flushes.
    pub(crate) fn fill(
        &mut self,
        start: ByteSize,
        length: ByteSize,
        progress: &mut dyn Progress,
    ) -> Result<(), LearnError> {
        let sections = length / SECTION;
        for n in 0..sections {
            if n.is_multiple_of(16) {
                progress.advance("filling the region", n as f64 / sections as f64)?;
            }
            self.spend(SECTION)?;
            execute(self.device, Request::write(start + SECTION * n, SECTION))?;
        }
        execute(self.device, Request::flush())?;
        Ok(())
    }

    /// Submits a request without waiting.
    pub(crate) fn submit(&mut self, request: Request) -> Result<(), LearnError> {
        match request.operation {
            flashwise_block::Operation::Write => self.spend(request.length)?,
            flashwise_block::Operation::Read => self.read += request.length,
            _ => {}
        }
        Ok(self.device.submit(request)?)
    }

    /// Waits for one completion; `false` when nothing is in flight.
    pub(crate) fn wait(&mut self) -> Result<bool, LearnError> {
        match self.device.wait()? {
            Some(completion) => completion.result.map(|()| true).map_err(LearnError::Device),
            None => Ok(false),
        }
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.device.outstanding()
    }

    /// Makes everything durable.
    pub(crate) fn flush(&mut self) -> Result<(), LearnError> {
        while self.wait()? {}
        execute(self.device, Request::flush()).map(drop).map_err(|e: BlockError| e.into())
    }
}
