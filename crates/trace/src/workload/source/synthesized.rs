//! The requests of a synthetic flow.

use flashwise_block::{ByteSize, Nanos, Operation};
use rand_pcg::Pcg64Mcg;

use super::arrivals::ArrivalTimes;
use super::operations::Operations;
use super::places::Places;
use super::sizes::Sizes;
use super::{Drive, FlowRequest};
use crate::workload::check::FlowChecker;
use crate::workload::{Synthetic, WorkloadError};

/// Draws requests: operation, length, offset and arrival, in this order.
#[derive(Debug)]
pub(super) struct Synthesized {
    random: Pcg64Mcg,
    operations: Operations,
    sizes: Sizes,
    places: Places,
    arrivals: ArrivalTimes,
    fua: bool,
    flushes: Flushes,
}

impl Synthesized {
    pub(super) fn new(
        flow: &Synthetic,
        checker: &FlowChecker<'_>,
        drive: Drive,
        random: Pcg64Mcg,
    ) -> Result<Self, WorkloadError> {
        let sizes = Sizes::new(&flow.size, checker, drive)?;
        let places = Places::new(flow, checker, drive, sizes.lengths())?;
        Ok(Self {
            random,
            operations: Operations::new(flow),
            sizes,
            places,
            arrivals: ArrivalTimes::new(flow.pacing),
            fua: flow.fua,
            flushes: Flushes { every: flow.flush_every.unwrap_or(u64::MAX), writes: 0, at: Nanos(0) },
        })
    }

    /// The next request; there always is one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<FlowRequest> {
        if self.flushes.due() {
            return Some(self.flushes.take());
        }
        let operation = self.operations.draw(&mut self.random);
        let length = self.sizes.draw(&mut self.random);
        let offset = self.places.draw(&mut self.random, length);
        let at = self.arrivals.draw(&mut self.random);
        let write = operation == Operation::Write;
        self.flushes.passed(write, at);
        let (offset, length) = (ByteSize(offset), ByteSize(length));
        Some(FlowRequest { operation, offset, length, fua: write & self.fua, at })
    }
}

/// A flush after each so many writes.
#[derive(Debug)]
struct Flushes {
    every: u64,
    /// Writes since the last flush.
    writes: u64,
    /// When the last request arrived: a write, where a flush is due.
    at: Nanos,
}

impl Flushes {
    #[inline]
    fn due(&self) -> bool {
        self.writes >= self.every
    }

    #[inline]
    fn passed(&mut self, write: bool, at: Nanos) {
        self.writes += u64::from(write);
        self.at = at;
    }

    fn take(&mut self) -> FlowRequest {
        self.writes = 0;
        FlowRequest { operation: Operation::Flush, offset: ByteSize(0), length: ByteSize(0), fua: false, at: self.at }
    }
}
