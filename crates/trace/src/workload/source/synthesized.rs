//! The requests of a synthetic flow.

use flashwise_block::{ByteSize, Nanos, Operation};
use rand_pcg::Pcg64Mcg;

use super::arrivals::ArrivalTimes;
use super::operations::Operations;
use super::places::Places;
use super::plain::Plain;
use super::random::unit;
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
    /// Those of reads, where they differ.
    read_sizes: Option<Sizes>,
    places: Places,
    arrivals: ArrivalTimes,
    fua: bool,
    flushes: Flushes,
    /// Share of writes that are read first.
    modify_share: f64,
    /// The write whose read was given last.
    modified: Option<FlowRequest>,
}

impl Synthesized {
    pub(super) fn new(
        flow: &Synthetic,
        checker: &FlowChecker<'_>,
        drive: Drive,
        random: Pcg64Mcg,
    ) -> Result<Self, WorkloadError> {
        let sizes = Sizes::new("synthetic.size", &flow.size, checker, drive)?;
        let read_sizes = flow.read_size.as_ref();
        let read_sizes = read_sizes.map(|it| Sizes::new("synthetic.read_size", it, checker, drive)).transpose()?;
        let lengths = read_sizes.iter().fold(sizes.lengths(), |lengths, it| lengths.and(it.lengths()));
        let places = Places::new(flow, checker, drive, lengths)?;
        Ok(Self {
            random,
            operations: Operations::new(flow),
            sizes,
            read_sizes,
            places,
            arrivals: ArrivalTimes::new(flow.pacing),
            fua: flow.fua,
            modify_share: flow.modify_share,
            modified: None,
            flushes: Flushes { every: flow.flush_every.unwrap_or(u64::MAX), writes: 0, at: Nanos(0) },
        })
    }

    /// The same flow in fewer steps a request, if it is one that allows it.
    pub(super) fn plain(&self) -> Option<Plain> {
        let has_others = self.flushes.every != u64::MAX || self.modify_share > 0.0 || self.read_sizes.is_some();
        match (&self.sizes, &self.places, &self.arrivals) {
            (&Sizes::Fixed(length), &Places::Random(span), ArrivalTimes::Closed) if !has_others => {
                let (random, operations) = (self.random.clone(), self.operations);
                Some(Plain { random, operations, length, span, fua: self.fua })
            }
            _ => None,
        }
    }

    /// The next request; there always is one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<FlowRequest> {
        if self.flushes.due() {
            return Some(self.flushes.take());
        }
        if let Some(write) = self.modified.take() {
            self.flushes.passed(true, write.at);
            return Some(write);
        }
        let operation = self.operations.draw(&mut self.random);
        let write = operation == Operation::Write;
        let sizes = match &mut self.read_sizes {
            Some(sizes) if operation == Operation::Read => sizes,
            _ => &mut self.sizes,
        };
        let length = sizes.draw(&mut self.random);
        let offset = self.places.draw(&mut self.random, length, write);
        let at = self.arrivals.draw(&mut self.random);
        let (offset, length) = (ByteSize(offset), ByteSize(length));
        let request = FlowRequest { operation, offset, length, fua: write & self.fua, at };
        if write && self.modify_share > 0.0 && unit(&mut self.random) <= self.modify_share {
            self.modified = Some(request);
            return Some(FlowRequest { operation: Operation::Read, fua: false, ..request });
        }
        self.flushes.passed(write, at);
        Some(request)
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

#[cfg(test)]
mod tests {
    use super::super::random::stream;
    use super::*;
    use crate::workload::{Access, Pacing, Size};
    use proptest::prelude::*;

    fn synthesized(flow: &Synthetic, seed: u64) -> Synthesized {
        let drive = Drive { capacity: 1 << 30, logical_block: 512 };
        Synthesized::new(flow, &FlowChecker { flow: "test" }, drive, stream(seed, 0)).unwrap()
    }

    fn random_blocks(read_share: f64, trim_share: f64, fua: bool) -> Synthetic {
        let pacing = Pacing::Closed { queue_depth: 8, think_ns: 0 };
        let flow = Synthetic::new(Access::Random, Size::Fixed { bytes: 4096 }, pacing);
        Synthetic { read_share, trim_share, fua, ..flow }
    }

    proptest! {
        #[test]
        fn a_plain_flow_is_the_same_flow(
            seed: u64, fua: bool, shares in prop::sample::select(vec![(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.7, 0.0), (0.4, 0.3)]),
        ) {
            let mut long = synthesized(&random_blocks(shares.0, shares.1, fua), seed);
            let mut short = long.plain().unwrap();
            for _ in 0..200 {
                prop_assert_eq!(Some(short.next()), long.next());
            }
        }
    }

    #[test]
    fn what_needs_more_than_an_operation_and_a_place_is_not_plain() {
        let changes: [fn(&mut Synthetic); 5] = [
            |flow| flow.access = Access::Sequential,
            |flow| flow.size = Size::Uniform { min_bytes: 512, max_bytes: 4096 },
            |flow| flow.flush_every = Some(3),
            |flow| flow.modify_share = 0.1,
            |flow| flow.read_size = Some(Size::Fixed { bytes: 512 }),
        ];
        for change in changes {
            let mut flow = random_blocks(0.5, 0.0, false);
            change(&mut flow);
            assert!(synthesized(&flow, 1).plain().is_none());
        }
    }
}
