//! Learns a drive's hidden parameters from its latencies, through a [`BlockDevice`] alone.
//!
//! ```text
//!   steps ──▶ requests ──▶ samples ──▶ medians with intervals ──▶ estimate ──▶ the same on resampled data ──▶ verdict
//!     ▲                                                                                                         │
//!     └── budget of time and writes, checkpoint after each step ◀──────────── profile so far ◀──────────────────┘
//! ```
//!
//! | step | figures | how |
//! |---|---|---|
//! | durable writes | write unit | durable writes of growing length: end of the first step of the staircase |
//! | reading back | stripe | reads of data written in pieces: the length from which on longer pieces read back no faster |
//! | locations | chunk, hot locations | reads with the start moved in small steps: period and minimum of the curve |
//! | pages | flash page | reads of two blocks moved block by block: period of the spikes |
//! | small writes | | bytes that random small writes program on a drive that has never erased |
//! | write burst | write buffer | writes to an idle drive: the long-run line extended back to the start of programming |
//! | throughput | α, k_r, k_w | random requests with growing depth: two fitted segments |
//! | latency, durability | α by latency, flush, durable write, protection | one request at a time |
//! | hot locations after writes | whether small writes destroy them | the location profile again |
//! | caches | read cache, read-ahead | reads of blocks read before, or next in order |
//! | parallel units | units | pairs of reads that wait for each other |
//! | internal volumes | volumes and their address bits | random writes with one address bit held; pairs of reads here and far away |
//! | content | compression, deduplication | writes by dose of zeros and of repeats |
//! | collection | GC onset and cost, WA, superblock, SLC cache, trim | the whole drive, overwritten until steady |
//! | cliff | over-provisioning | where that is too much: a fill, and random writes until their rate drops |
//! | limits | rates, bursts, budgets, holds of a cloud | loads that are never satisfied; in a run of its own |
//! | card | allocation unit, open units, merge | durable writes on both sides of where a unit may end; in a run of its own |
//! | | write amplification, years left, whose limit | the drive's own counters (`wear.rs`) |
//!
//! Points are measured in random order, so that drift cannot look like a trend. The estimates use medians, not means,
//! and every estimate is repeated on resampled data, which gives its interval. A figure whose estimate is not the same
//! nearly every time is `inconclusive`. A curve that shows nothing is `absent` if the probe would have detected the
//! feature, `inconclusive` otherwise. Features reported as present are corrected for the number of tests (Holm). Each
//! figure has its evidence: the probe and the reading.
//!
//! This crate does not know whether the drive is simulated, nor how it is built.
//!
//! | file | content |
//! |---|---|
//! | `plan.rs` | the steps in order, with the evidence that each needs and returns |
//! | `probes/` | one file per probe; `mod.rs` says how to add one |
//! | `evidence.rs`, `verdict.rs` | evidence that a probe passes to later ones; doubts, which decide each verdict |
//! | `session.rs`, `draft.rs` | budgets, checkpoints, continuing an earlier run; the profile under construction |
//! | `prober.rs`, `place.rs` | measured requests to the device; their place on the drive |
//! | `stats/` | medians, intervals, periods, knees, changes of level |
//!
//! Source: the request-size and location profiles of Kakaraparthy et al., PVLDB 13(4), 2019; α and k of Papon and
//! Athanassoulis, DaMoN 2021; volumes of SSDcheck, MICRO 2018; garbage collection after SSD-iq, PVLDB 18(11), 2025. The
//! sources read their plots by eye; all of the inference is ours.
//!
//! # Limits
//! Periods up to 256 KiB, powers of two or 3, 5 or 7 times one, with pages up to 32 KiB; write units up to 256 KiB;
//! stripes up to 512 KiB, powers of two; concurrency up to 256; write buffers up to 400 MiB; read-ahead up to 2 MiB. If
//! the write buffer survives a power cut, durable writes show neither write unit nor stripe.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

pub mod cliff;
mod draft;
pub mod drift;
mod evidence;
pub mod export;
pub mod fio;
mod place;
mod plan;
mod prober;
mod probes;
pub mod score;
mod session;
mod stats;
mod step;
mod verdict;
pub mod wear;

use std::ops::ControlFlow;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Clock, DeviceInfo, Nanos, Progress};
use flashwise_profile::{DeviceIdentity, DeviceProfile};

use prober::Prober;
pub use prober::RawSample;
use session::Session;

/// How to learn.
#[derive(Clone, Debug)]
pub struct LearnOptions {
    /// The target as the user named it; goes into the profile.
    pub target: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Bytes of the device to use, from its start on; at most its capacity, at least [`REGION_BYTES_MIN`].
    pub region: ByteSize,
    /// Start nothing that would write more than this.
    pub max_write: Option<ByteSize>,
    /// Start nothing after this time on the device's clock.
    pub time_budget: Option<Nanos>,
    /// Which of the two limits come with [`Effort::Quick`], and were given by nobody.
    pub quick_limits: QuickLimits,
    /// How many samples.
    pub effort: Effort,
    /// Which figures.
    pub scope: Scope,
    /// Sizes of requests at which α and k are asked beside 4 and 8 KiB: multiples of the logical block, up to
    /// [`REQUEST_BYTES_MAX`] and what the device takes at once.
    pub request_sizes: Vec<ByteSize>,
    /// Whether the device is a drive as a whole, and not a file on one.
    pub whole_drive: bool,
    /// Whether the device may be written to.
    pub may_write: bool,
    /// Go on from what this profile has: its finished steps are left out.
    pub resume: Option<Box<DeviceProfile>>,
    /// Keep each sample for [`Learned::raw`].
    pub keep_raw: bool,
}

/// Limits that come with a quick run, for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuickLimits {
    /// [`LearnOptions::max_write`].
    pub write: bool,
    /// [`LearnOptions::time_budget`].
    pub time: bool,
}

/// Which figures are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What durability costs: flush, durable write, protection.
    Durability,
    /// What decides how a database is laid out: lengths, places, α and k.
    Layout,
    /// Everything about the drive.
    Complete,
    /// What stands in front of the drive: the limits of a cloud volume.
    Limits,
    /// In which units a memory card works.
    Card,
}

/// How many samples are taken: intervals narrow with their number, and so does the drive's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For simulated drives, and for real ones that may be worn.
    Thorough,
    /// Some 2 GiB written; for real drives.
    Quick,
}

impl Effort {
    /// What suits a clock: virtual time costs nothing, a real drive does.
    pub fn suiting(clock: Clock) -> Self {
        match clock {
            Clock::Virtual => Self::Thorough,
            Clock::Wall => Self::Quick,
        }
    }
}

/// The region in which the units of a card are learned.
pub const CARD_REGION: ByteSize = ByteSize::gib(2);

/// The smallest region that the probes fit in.
pub const REGION_BYTES_MIN: ByteSize = ByteSize::mib(64);

/// The longest requests at which α and k can be asked.
pub const REQUEST_BYTES_MAX: ByteSize = ByteSize::mib(1);

impl LearnOptions {
    fn check_sizes(&self, device: &DeviceInfo) -> Result<(), LearnError> {
        let (block, longest) = (device.logical_block, REQUEST_BYTES_MAX.min(device.max_transfer));
        let fits = |size: &ByteSize| size.bytes() > 0 && size.is_multiple_of(block) && *size <= longest;
        match self.request_sizes.iter().find(|size| !fits(size)) {
            Some(&size) => Err(LearnError::RequestSize { target: self.target.clone(), size, block, longest }),
            None => Ok(()),
        }
    }

    /// The usual: a region of 256 MiB, seed 1, no limit on writes or time, thorough, what decides the layout.
    pub fn new(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            seed: 1,
            region: ByteSize::mib(256),
            max_write: None,
            time_budget: None,
            quick_limits: QuickLimits::default(),
            effort: Effort::Thorough,
            scope: Scope::Layout,
            request_sizes: Vec::new(),
            whole_drive: true,
            may_write: true,
            resume: None,
            keep_raw: false,
        }
    }

    /// The usual with the limits of a volume alone.
    pub fn limits(target: impl Into<String>) -> Self {
        Self { scope: Scope::Limits, ..Self::new(target) }
    }

    /// The usual with the units of a memory card alone, in a region that holds as many as class A1 keeps open.
    pub fn card(target: impl Into<String>) -> Self {
        Self { scope: Scope::Card, region: CARD_REGION, ..Self::new(target) }
    }

    /// The usual with every figure.
    pub fn complete(target: impl Into<String>) -> Self {
        Self { scope: Scope::Complete, ..Self::new(target) }
    }
}

/// Why a drive could not be learned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LearnError {
    /// The device failed or refused a request.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// There is not enough room to probe in.
    #[error("{target}: {available} is too small; the probes need at least {REGION_BYTES_MIN}")]
    TooSmall {
        /// The target.
        target: String,
        /// Its size.
        available: ByteSize,
    },
    /// Requests of a size that the device does not take, or that do not fit the probes.
    #[error("{target}: cannot use requests of {size}: give a multiple of {block}, at most {longest}")]
    RequestSize {
        /// The target.
        target: String,
        /// What was asked.
        size: ByteSize,
        /// The device's logical block.
        block: ByteSize,
        /// The most.
        longest: ByteSize,
    },
    /// The next probe would write more than allowed.
    #[error(
        "stopped by {} {limit}: {written} were written in all, and the next probe needed {next} more",
        write_limit(*.is_quick)
    )]
    WriteLimit {
        /// Whether the limit is that of a quick run.
        is_quick: bool,
        /// The limit.
        limit: ByteSize,
        /// Written so far.
        written: ByteSize,
        /// What the next request needs.
        next: ByteSize,
    },
    /// The time is up.
    #[error("stopped at the end of --time-budget")]
    TimeBudget,
    /// The time of a quick run is up.
    #[error("stopped at the end of the time of a quick run; --time-budget gives more")]
    QuickTime,
    /// The profile to continue from is of something else.
    #[error("cannot continue from this profile: it is of {theirs}, but the target is {ours}")]
    OtherDrive {
        /// What the profile is of.
        theirs: String,
        /// What is learned now.
        ours: String,
    },
}

impl LearnError {
    fn is_spent_budget(&self) -> bool {
        matches!(self, Self::WriteLimit { .. } | Self::TimeBudget | Self::QuickTime)
    }

    /// Whether a drive took less than it offers: a thin one, or one that counts on data that can be compressed.
    fn is_out_of_space(&self) -> bool {
        matches!(self, Self::Device(BlockError::NoSpace | BlockError::Os { errno: ENOSPC, .. }))
    }
}

/// The name of a write limit.
fn write_limit(is_quick: bool) -> &'static str {
    if is_quick { "the write limit of a quick run (--max-write sets another)," } else { "--max-write" }
}

/// What Linux answers where there is no space.
const ENOSPC: i32 = 28;

/// What came of learning.
#[derive(Debug)]
pub struct Learned {
    /// The figures; those that nobody came to are inconclusive.
    pub profile: DeviceProfile,
    /// Why it ended early; `None` at the end of all steps.
    pub stopped: Option<LearnError>,
    /// Each sample, where [`LearnOptions::keep_raw`] asks for them.
    pub raw: Vec<RawSample>,
}

/// Learns a drive. Overwrites the region, and with [`Scope::Complete`] the drive where the budget allows it.
///
/// # Errors
/// When the device fails, is too small, the profile to continue from is of another drive, or `progress` interrupts. A
/// spent budget is no error: the figures that it left out are inconclusive.
///
/// # Example
/// ```no_run
/// # fn drive() -> Box<dyn flashwise_block::BlockDevice> { unimplemented!() }
/// use flashwise_learn::{LearnOptions, learn};
/// let mut drive = drive();
/// let profile = learn(&mut *drive, &LearnOptions::new("my drive"), &mut flashwise_block::Silent)?;
/// println!("{:?}", profile.parameters.chunk_bytes);
/// # Ok::<(), flashwise_learn::LearnError>(())
/// ```
pub fn learn(
    device: &mut dyn BlockDevice,
    options: &LearnOptions,
    progress: &mut dyn Progress,
) -> Result<DeviceProfile, LearnError> {
    let learned = learn_step_by_step(device, options, progress, &mut |_| ControlFlow::Continue(()))?;
    match learned.stopped {
        Some(why) => Err(why),
        None => Ok(learned.profile),
    }
}

/// Like [`learn`], with the profile so far handed to `checkpoint` after each step, and kept when the device fails or
/// `progress` interrupts. A checkpoint that breaks off ends learning there, as one that could not be written does.
///
/// # Errors
/// Only for what shows before the first step.
pub fn learn_step_by_step(
    device: &mut dyn BlockDevice,
    options: &LearnOptions,
    progress: &mut dyn Progress,
    checkpoint: &mut dyn FnMut(&DeviceProfile) -> ControlFlow<()>,
) -> Result<Learned, LearnError> {
    let info = device.info().clone();
    let region = ByteSize(options.region.min(info.capacity).bytes() >> 20 << 20);
    if region < REGION_BYTES_MIN {
        return Err(LearnError::TooSmall { target: options.target.clone(), available: info.capacity });
    }
    options.check_sizes(&info)?;
    let identity = DeviceIdentity {
        target: options.target.clone(),
        name: info.name,
        capacity_bytes: info.capacity.bytes(),
        logical_block_bytes: info.logical_block.bytes(),
        clock: info.clock,
        promised_atomic_write_bytes: info.atomic_write.map(ByteSize::bytes),
    };
    let mut session = Session::begin(identity, Prober::new(device, region, options), options, progress, checkpoint)?;
    // Whatever ends the steps early is kept in the session.
    let _ended = plan::run(&mut session);
    Ok(session.finish())
}
