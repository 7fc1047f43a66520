//! The report of an attached drive at the end.

use flashwise_block::{DeviceCounters, Percentiles};
use flashwise_ssd::SpaceUse;
use serde::Serialize;

use crate::{Captured, KernelTimes, Pacing};

/// The report of `flashwise attach`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttachReport {
    /// `flashwise.attach`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// The drive's name.
    pub device: String,
    /// Its addressable bytes.
    pub capacity_bytes: u64,
    /// Simulated time from the start to the end, ns.
    pub simulated_ns: u64,
    /// Counters of the host interface and of the flash.
    pub counters: DeviceCounters,
    /// Flash bytes programmed ÷ host bytes written; `null` where nothing was written.
    pub write_amplification: Option<f64>,
    /// Data on the drive and its space; `null` for a drive that stores all data unmodified.
    pub space: Option<SpaceUse>,
    /// How long requests took on the drive's clock.
    pub latency: RequestTimes,
    /// Requests that the drive failed.
    pub failed: u64,
    /// Delays of the completions; `null` if they are sent at once.
    pub pacing: Option<Pacing>,
    /// How long programs on the mounted drive waited; `null` without `--mount`, or if completions are sent at once.
    pub kernel: Option<KernelTimes>,
    /// The trace that was captured.
    pub capture: Option<Captured>,
}

/// How long the requests of each kind took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RequestTimes {
    /// Reads.
    pub reads: Percentiles,
    /// Writes, of bytes and of zeros.
    pub writes: Percentiles,
    /// Flushes.
    pub flushes: Percentiles,
    /// Trims.
    pub trims: Percentiles,
}
