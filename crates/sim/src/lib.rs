//! Runs a workload on a simulated drive in virtual time and reports the results of every flow.
//!
//! ```text
//!   Workload ── FlowSource, one per flow ──▶ driver ── Request, tagged with its flow ──▶ SimulatedSsd
//!                                            ▲  │ agenda: arrivals, pauses                  │
//!                                            │  └── completions ◀── CompletionRecord ───────┘
//!                                            ▼
//!                                        recorder   histograms, sums, a time series
//!                                            ▼
//!                                        Simulation (one document) ◀── counters, invariants
//! ```
//!
//! **What counts.** Every request that a flow submits is completed and counted, including those still in flight when
//! the flow's time is over. A flow's elapsed time runs from its start to its last completion, the whole simulation's
//! from the workload's start to the last completion of all. IOPS and bytes per second are over that time.
//!
//! **Checks**, in every build and at the end of every run: [`invariants`]. A violated invariant is an error, never a
//! result: a simulator that loses requests would report averages of a different load.
//!
//! **Limits.** Requests of one flow are counted exactly; percentiles have three significant digits. A drive runs on one
//! thread; [`sweep`] runs many simulations in parallel.
//!
//! **See also**: [`sweep`] runs many simulations on all cores, [`life`] projects the drive's life, [`precondition`] and
//! [`enter_steady_state`] bring a drive into a state before the measurement, and a [`Machine`] is the drive, array or
//! volume that a file describes. Drives are in `flashwise-ssd`, workloads in `flashwise-trace`.
//!
//! # Example
//! ```
//! use flashwise_block::Silent;
//! use flashwise_sim::{SimulationOptions, simulate};
//! use flashwise_ssd::{DeviceConfig, SimulatedSsd};
//! use flashwise_trace::workload::{Content, Workload};
//!
//! let text = r#"
//!     name = "random writes"
//!     [[flows]]
//!     requests = 10_000
//!     synthetic.access = "random"
//!     synthetic.size.fixed.bytes = 4096
//!     synthetic.pacing.closed.queue_depth = 32
//! "#;
//! let workload = Workload::from_toml(text, "writes.toml")?;
//! let mut drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo")?, workload.seed)?;
//! let result = simulate(&mut drive, &workload, ".".as_ref(), &SimulationOptions::default(), &mut Silent)?;
//! assert_eq!(result.flows[0].all.requests, 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod activity;
mod agenda;
mod document;
mod driver;
mod error;
mod flow_queues;
mod foresight;
pub mod invariants;
pub mod life;
mod machine;
mod precondition;
mod process;
mod recorder;
mod result;
mod steady_state;
pub mod sweep;
mod target;
mod timeline;

pub use document::{
    Busy, CommandTimes, DataReduction, DistributionPoint, EraseCount, EraseCounts, FlashActivity, FlowResult,
    GarbageCollection, HostActivity, Interval, Percentiles, Process, Responses, SIMULATION_SCHEMA,
    SIMULATION_SCHEMA_VERSION, Simulation, SlcCache, TimeSeries, Utilisation, VolumeActivity, WriteCauses,
};
pub use error::SimulationError;
pub use invariants::Invariant;
pub use machine::{ArrayMachine, Machine};
pub use precondition::{Precondition, Preconditioned, precondition};
pub(crate) use result::write_causes;
pub use steady_state::enter_steady_state;

use std::path::Path;
use std::time::Instant;

use flashwise_block::{Nanos, Progress};
use flashwise_trace::workload::{Content, Workload};

use activity::Before;
use driver::Driver;
use flashwise_array::SimulatedArray;
use flashwise_ssd::{ContentModel, SimulatedSsd};
use flashwise_volume::SimulatedVolume;
use target::Target;

/// How a simulation is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationOptions {
    /// What is on the drive before the workload starts.
    pub precondition: Precondition,
    /// Length of an interval of the time series; `None` for one that gives 200 to 400 of them.
    pub interval: Option<Nanos>,
}

/// Runs a workload on a drive, from its first request to the last completion.
///
/// `base` is the folder that traces are relative to. The workload starts at the drive's present time; what the drive
/// did before, preconditioning included, is not in the result.
///
/// # Errors
/// When the workload does not fit the drive, when a request is refused, when `progress` wants to stop, or when an
/// invariant is broken.
pub fn simulate(
    drive: &mut SimulatedSsd,
    workload: &Workload,
    base: &Path,
    options: &SimulationOptions,
    progress: &mut dyn Progress,
) -> Result<Simulation, SimulationError> {
    run(drive, workload, base, options, progress)
}

/// Runs a workload on an array; everything else is as with [`simulate`]. Drives fail when the array's configuration
/// says so, counted from the workload's start; a spare takes their place at once. The run ends with its last request,
/// not with the last row that is rebuilt.
///
/// # Errors
/// As [`simulate`]; also when the array has lost what a request needs.
pub fn simulate_array(
    array: &mut SimulatedArray,
    workload: &Workload,
    base: &Path,
    options: &SimulationOptions,
    progress: &mut dyn Progress,
) -> Result<Simulation, SimulationError> {
    run(array, workload, base, options, progress)
}

/// Runs a workload on a cloud volume; everything else is as with [`simulate`]. A state before the workload is that of
/// the drive behind the volume; other media have none.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_volume(
    volume: &mut SimulatedVolume,
    workload: &Workload,
    base: &Path,
    options: &SimulationOptions,
    progress: &mut dyn Progress,
) -> Result<Simulation, SimulationError> {
    run(volume, workload, base, options, progress)
}

fn run<D: Target>(
    target: &mut D,
    workload: &Workload,
    base: &Path,
    options: &SimulationOptions,
    progress: &mut dyn Progress,
) -> Result<Simulation, SimulationError> {
    workload.check()?;
    if let Some(content) = &workload.content {
        target.set_content_model(content_model(content));
    }
    let mut driver = Driver::open(target, workload, base, options)?;
    let preconditioned = driver.drive().precondition(options.precondition, workload.seed, progress)?;
    foresight::tell(driver.drive(), workload, base)?;
    let before = Before::of(driver.drive());
    let began = Instant::now();
    let record = driver.run(progress)?;
    let wall = began.elapsed();
    result::collect(target, workload, record, preconditioned, &before, wall)
}

/// What a workload's pages are like, as the drive has it.
fn content_model(content: &Content) -> ContentModel {
    ContentModel {
        compressed_share: 1.0 - content.compress_percentage / 100.0,
        compressed_spread: content.compress_spread_percentage / 100.0,
        zero_share: content.zero_percentage / 100.0,
        duplicate_share: content.dedupe_percentage / 100.0,
        duplicate_window: content.dedupe_window_pages,
    }
}

#[cfg(test)]
pub(crate) mod tests;
