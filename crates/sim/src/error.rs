//! Why a simulation gives no result.

use flashwise_block::BlockError;
use flashwise_trace::workload::WorkloadError;

use flashwise_ssd::SsdError;

/// Why a simulation gives no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The workload makes no sense or does not fit the drive.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The drive refused a request of a flow.
    #[error("flow '{flow}': {reason}")]
    Request {
        /// The flow's name.
        flow: String,
        /// What the drive says.
        reason: BlockError,
    },
    /// The drive is lost, or the run was interrupted.
    #[error(transparent)]
    Drive(#[from] BlockError),
    /// The time series would have too many intervals.
    #[error("--interval: {intervals} intervals of {interval_ns} ns exceed the limit of {most}: use a longer interval")]
    Interval {
        /// How many it would be at least.
        intervals: u64,
        /// The length that was asked for, ns.
        interval_ns: u64,
        /// How many there may be.
        most: usize,
    },
    /// Weighted round robin: flows of different priorities would have to share a queue.
    #[error(
        "host.submission_queues = {queues}: the workload's flows have {classes} priorities, and each needs a queue of \
         its own"
    )]
    Queues {
        /// Different priorities of flows.
        classes: usize,
        /// Submission queues of the drive.
        queues: usize,
    },
    /// The drive is to be told the future of a workload that has none that is known.
    #[error("ftl.streams.foresight_error: {reason}")]
    Foresight {
        /// Why not.
        reason: String,
    },
    /// The drive cannot be put into the state that was asked for.
    #[error(transparent)]
    Precondition(#[from] SsdError),
    /// The simulator contradicts itself; its figures are not to be trusted.
    #[error("the simulation violated an invariant, so there are no results: {name}: {detail}; please report this bug")]
    Invariant {
        /// Which one.
        name: String,
        /// The two figures that should agree.
        detail: String,
    },
}

impl SimulationError {
    /// Whether the user stopped it.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Drive(BlockError::Interrupted))
    }
}
