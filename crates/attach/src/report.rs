//! What an attached drive did, at the end.

use flashwise_block::{DeviceCounters, Percentiles};
use flashwise_ssd::SpaceUse;
use serde::Serialize;

use crate::{Captured, Pacing};

/// What `flashwise attach` tells at its end.
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
    /// What went over the host interface, and what the flash did for it.
    pub counters: DeviceCounters,
    /// Flash bytes programmed ÷ host bytes written; `null` where nothing was written.
    pub write_amplification: Option<f64>,
    /// What is on the drive and the room that it takes; `null` for a drive that stores everything as it comes.
    pub space: Option<SpaceUse>,
    /// How long requests took on the drive's clock.
    pub latency: RequestTimes,
    /// Requests that were answered with an error by the drive.
    pub failed: u64,
    /// How late the answers were; `null` where they come at once.
    pub pacing: Option<Pacing>,
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
