//! The host's side of the drive: the queues of commands ([`queues`]), requests under way ([`active`]), and firmware and link
//! ([`interface`], [`link`]).
//!
//! ```text
//!   submission queues ─ arbitration ─▶ fetched over the link ─▶ firmware ─▶ (a write's data over the link) ─▶ controller
//!   completion posted over the link ◀─ (a read's data over the link) ◀─────────────────────────────────────── controller
//! ```
//!
//! The firmware takes one command at a time (`command_issue_ns`, which limits IOPS), and a command has its first
//! effect `command_latency_ns` after it was taken. The link is a server for each direction (NVMe) or for both together
//! (SATA). How a read's data crosses is `host.data_transfer`; when reads are cut through, data leaves over the link while
//! it is still coming in from the flash.
//!
//! A drive of elements carries whole requests over its link instead ([`whole_request_link`]). What the host may say of
//! requests before they come is in [`hints`]; where requests spend their time, in [`stages`].

mod active;
mod hints;
mod interface;
mod queues;
mod stages;
mod whole_request_link;

use flashwise_block::{BlockError, ByteSize, Clock, DeviceCounters, DeviceInfo, Operation};

pub(crate) use active::Active;
pub(crate) use hints::{Hint, PrefetchHints};
pub(crate) use interface::HostInterface;
pub(crate) use queues::SubmissionQueues;
pub use stages::StageTimes;
pub(crate) use whole_request_link::WholeRequestLink;

use crate::config::DeviceConfig;
use crate::list::{Fifo, Slab};

/// What the host sees of a drive, and its requests.
pub(crate) struct Host {
    pub(crate) info: DeviceInfo,
    /// The bits of an address inside a logical block; all of them where its length is no power of two.
    pub(crate) in_logical_block: u64,
    pub(crate) interface: HostInterface,
    /// Requests that wait for a place in the drive.
    pub(crate) queues: SubmissionQueues,
    pub(crate) active: Slab<Active>,
    /// Requests that the drive has taken and not completed.
    pub(crate) in_drive: u32,
    /// Requests that are completed and not given back, in the order of their completion, and how many there are.
    pub(crate) completed: Fifo,
    pub(crate) completions: u32,
    /// Requests that are submitted and not given back.
    pub(crate) outstanding: u64,
    pub(crate) hints: PrefetchHints,
    /// The link of a drive of elements.
    pub(crate) link: WholeRequestLink,
    pub(crate) counters: DeviceCounters,
    pub(crate) stage_times: [StageTimes; 2],
}

impl Host {
    /// The host of a new drive: it has submitted nothing.
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let logical_block = config.host.logical_block_bytes;
        Self {
            info: DeviceInfo {
                name: config.name.clone(),
                capacity: ByteSize(config.capacity_bytes),
                logical_block: ByteSize(logical_block),
                max_transfer: ByteSize(config.host.max_transfer_bytes),
                queue_depth: config.host.queue_depth,
                clock: Clock::Virtual,
            },
            in_logical_block: if logical_block.is_power_of_two() { logical_block - 1 } else { u64::MAX },
            interface: HostInterface::new(&config.host),
            queues: SubmissionQueues::new(&config.host),
            active: Slab::default(),
            in_drive: 0,
            completed: Fifo::default(),
            completions: 0,
            outstanding: 0,
            hints: PrefetchHints::default(),
            link: WholeRequestLink::default(),
            counters: DeviceCounters::default(),
            stage_times: [StageTimes::default(); 2],
        }
    }
}

/// The drive has nothing left to do, and has not completed everything.
pub(crate) const LOST: BlockError = BlockError::Protocol("the simulated drive lost a request");

/// The answer to a request without a buffer: what a [`Completion`] tells, in as few bytes as it takes.
pub(crate) struct Answer {
    pub(crate) tag: u64,
    pub(crate) operation: Operation,
    /// When it was submitted, when the drive took it, and when it was done.
    pub(crate) submitted_ns: u64,
    pub(crate) taken_ns: u64,
    pub(crate) completed_ns: u64,
    /// Why it was not done.
    pub(crate) error: Option<Box<BlockError>>,
}
