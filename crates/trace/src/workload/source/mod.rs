//! One flow's requests, one after the other, without an allocation a request.
//!
//! Checks, tables and files are dealt with once, in [`FlowSource::open`]. From then on a request is a few integer
//! operations: which kind of source, operation, size, place and arrival it is, are enums that a flow never changes, so
//! that the branches are predicted. `cargo run --release -p flashwise-trace --example generate` measures it.

mod arrivals;
mod choice;
mod kept;
mod operations;
mod places;
mod plain;
mod random;
mod replayed;
mod scatter;
mod sizes;
mod span;
mod synthesized;
mod zipf;

use std::path::Path;

use flashwise_block::{ByteSize, Nanos, Operation};

use super::check::{self, FlowChecker};
use super::{Flow, Pacing, ReplayPacing, WorkloadError};
use plain::Plain;
use replayed::Replayed;
use synthesized::Synthesized;
pub use zipf::Zipf;

/// One request of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRequest {
    /// What to do.
    pub operation: Operation,
    /// First byte on the drive; 0 for a flush.
    pub offset: ByteSize,
    /// How many bytes; 0 for a flush.
    pub length: ByteSize,
    /// Force unit access: a write completes only when it is durable.
    pub fua: bool,
    /// When it arrives, from the flow's start; never earlier than the request before it. 0 where the pacing is closed.
    pub at: Nanos,
}

/// Who decides when the next request is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourcePacing {
    /// The runner: it keeps `queue_depth` requests in flight, and lets `think` pass between a completion and the
    /// request that takes its place. It also ends the flow after [`Flow::duration_ns`], which the source cannot see.
    Closed {
        /// Requests in flight.
        queue_depth: u32,
        /// Pause after a completion.
        think: Nanos,
    },
    /// The source: each request arrives at its [`FlowRequest::at`].
    Timed,
}

/// The requests of one flow on one drive, in order. It ends with [`Flow::requests`], with [`Flow::duration_ns`] where
/// the pacing is timed, or with its trace, and stays ended.
#[derive(Debug)]
pub struct FlowSource {
    kind: Kind,
    pacing: SourcePacing,
    /// Requests still allowed.
    left: u64,
    /// First arrival time that is too late.
    until: Nanos,
    failure: Option<WorkloadError>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a flow, and a box would cost each request a detour")]
enum Kind {
    Plain(Plain),
    Synthesized(Synthesized),
    Replayed(Box<Replayed>),
}

/// What a flow must know of the drive.
#[derive(Clone, Copy, Debug)]
struct Drive {
    /// Bytes that can be addressed: whole logical blocks.
    capacity: u64,
    /// Smallest addressable unit, bytes.
    logical_block: u64,
}

impl FlowSource {
    /// Prepares a flow for a drive of `capacity` bytes in units of `logical_block`.
    ///
    /// `index` is the flow's place in its workload and `seed` the workload's: together they give the flow a random
    /// stream of its own. A trace's path is relative to `base`, the workload's folder. A trace is read through once
    /// before the first request, so that a bad line is told now and not after an hour of simulation.
    ///
    /// # Errors
    /// When the flow makes no sense, does not fit the drive, or its trace cannot be read.
    pub fn open(
        flow: &Flow,
        index: usize,
        seed: u64,
        capacity: ByteSize,
        logical_block: ByteSize,
        base: &Path,
    ) -> Result<Self, WorkloadError> {
        check::flow(flow)?;
        let drive = Drive::new(capacity, logical_block)?;
        let checker = FlowChecker { flow: &flow.name };
        let limits = Limits { requests: flow.requests.unwrap_or(u64::MAX), until: until(flow) };
        let (kind, pacing) = match (&flow.synthetic, &flow.trace) {
            (Some(it), _) => {
                let stream = random::stream(seed, index);
                let long = Synthesized::new(it, &checker, drive, stream)?;
                // A plain flow does not look at the time.
                let plain = if limits.until > Nanos(0) { long.plain() } else { None };
                (plain.map_or(Kind::Synthesized(long), Kind::Plain), it.pacing.into())
            }
            (None, Some(it)) => {
                (Kind::Replayed(Box::new(Replayed::open(it, &checker, drive, base, limits)?)), it.pacing.into())
            }
            (None, None) => return Err(WorkloadError::incomplete("flow", "has neither synthetic nor trace")),
        };
        Ok(Self { kind, pacing, left: limits.requests, until: limits.until, failure: None })
    }

    /// Who decides when the next request is submitted.
    pub fn pacing(&self) -> SourcePacing {
        self.pacing
    }

    /// Why the flow ended early: its trace was changed, or could no longer be read, after it had been checked in
    /// [`open`](Self::open). A runner asks for this when [`next`](Iterator::next) has returned `None`.
    pub fn failure(&self) -> Option<&WorkloadError> {
        self.failure.as_ref()
    }

    /// What whoever runs the flow should know of it, a sentence each: devices of a trace that are laid over one
    /// another, events that were lost, lines that were left out.
    pub fn notes(&self) -> Vec<String> {
        match &self.kind {
            Kind::Replayed(source) => source.notes(),
            Kind::Plain(_) | Kind::Synthesized(_) => Vec::new(),
        }
    }

    fn end(&mut self) -> Option<FlowRequest> {
        self.left = 0;
        None
    }

    /// The next request of a flow that is not plain.
    #[inline(never)]
    fn next_of_others(&mut self) -> Option<FlowRequest> {
        if self.left == 0 {
            return None;
        }
        let next = match &mut self.kind {
            Kind::Plain(source) => Some(source.next()),
            Kind::Synthesized(source) => source.next(),
            Kind::Replayed(source) => source.next().unwrap_or_else(|error| {
                self.failure = Some(error);
                None
            }),
        };
        match next {
            Some(request) if request.at < self.until => {
                self.left -= 1;
                Some(request)
            }
            _ => self.end(),
        }
    }
}

impl Iterator for FlowSource {
    type Item = FlowRequest;

    #[inline(always)]
    fn next(&mut self) -> Option<FlowRequest> {
        match &mut self.kind {
            Kind::Plain(source) if self.left > 0 => {
                self.left -= 1;
                Some(source.next())
            }
            _ => self.next_of_others(),
        }
    }
}

/// When a flow ends.
#[derive(Clone, Copy, Debug)]
struct Limits {
    requests: u64,
    until: Nanos,
}

fn until(flow: &Flow) -> Nanos {
    Nanos(flow.duration_ns.unwrap_or(u64::MAX))
}

impl Drive {
    fn new(capacity: ByteSize, logical_block: ByteSize) -> Result<Self, WorkloadError> {
        if logical_block.0 == 0 {
            return Err(WorkloadError::impossible("drive: logical block", 0, "must be at least 1 byte"));
        }
        let whole = capacity.0 - capacity.0 % logical_block.0;
        if whole == 0 {
            let reason = format!("must be at least one logical block of {logical_block}");
            return Err(WorkloadError::impossible("drive: capacity", capacity.0, reason));
        }
        Ok(Self { capacity: whole, logical_block: logical_block.0 })
    }

    /// Refuses what is no multiple of the drive's logical block.
    fn whole_blocks(self, checker: &FlowChecker<'_>, key: &str, bytes: u64) -> Result<(), WorkloadError> {
        let reason = format!("must be a multiple of the drive's logical block, {} bytes", self.logical_block);
        checker.require(key, bytes, bytes.is_multiple_of(self.logical_block), &reason)
    }
}

impl From<Pacing> for SourcePacing {
    fn from(pacing: Pacing) -> Self {
        match pacing {
            Pacing::Closed { queue_depth, think_ns } => Self::Closed { queue_depth, think: Nanos(think_ns) },
            Pacing::Open { .. } => Self::Timed,
        }
    }
}

impl From<ReplayPacing> for SourcePacing {
    fn from(pacing: ReplayPacing) -> Self {
        match pacing {
            ReplayPacing::Closed { queue_depth } => Self::Closed { queue_depth, think: Nanos(0) },
            ReplayPacing::Timestamps => Self::Timed,
        }
    }
}
