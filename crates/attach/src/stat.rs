//! What an attached drive is doing, told while it runs.

use flashwise_block::DeviceCounters;
use flashwise_sim::{Utilisation, WriteCauses};
use flashwise_ssd::EndOfLife;
use flashwise_ssd::SpaceUse;
use serde::{Deserialize, Serialize};

use crate::Pacing;
use crate::engine::KindLatencies;
use crate::fault::FaultState;

/// The name of the document.
pub const DEVICE_STAT_SCHEMA: &str = "flashwise.device_stat";
/// Its version.
pub const DEVICE_STAT_SCHEMA_VERSION: u32 = 1;

/// What `flashwise device stat` tells: everything since the drive was attached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceStat {
    /// [`DEVICE_STAT_SCHEMA`].
    pub schema: String,
    /// [`DEVICE_STAT_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The drive's name.
    pub device: String,
    /// Its addressable bytes.
    pub capacity_bytes: u64,
    /// The drive's time, ns.
    pub simulated_ns: u64,
    /// Seconds of the machine for one of the drive's; `null` where answers come at once.
    pub time_scale: Option<f64>,
    /// Whether it takes writes, and why not.
    pub state: DriveState,
    /// Requests that are not answered.
    pub in_flight: u64,
    /// What went over the host interface, and what the flash did for it.
    pub counters: DeviceCounters,
    /// Flash bytes programmed ÷ host bytes written; `null` where nothing was written.
    pub write_amplification: Option<f64>,
    /// The same by cause; the parts add up to it, but for what is still in the write buffer.
    pub write_amplification_by_cause: Option<WriteCauses>,
    /// What is on the drive and the room that it takes; `null` for a drive that stores everything as it comes.
    pub space: Option<SpaceUse>,
    /// How busy channels, chips, dies and planes were.
    pub utilisation: Utilisation,
    /// How long requests took on the drive's clock.
    pub latency: KindLatencies,
    /// Requests that were answered with an error.
    pub failed: u64,
    /// How late the answers were; `null` where they come at once.
    pub pacing: Option<Pacing>,
    /// How often its power was cut on demand.
    pub power_cuts: u64,
    /// What goes wrong on demand.
    pub faults: FaultState,
}

/// Whether a drive takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveState {
    /// Why it does not; `null` while it does.
    pub read_only: Option<ReadOnlyCause>,
    /// When it ran out of spare blocks; `null` before.
    pub end_of_life: Option<EndOfLife>,
}

/// Why a drive takes no more writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadOnlyCause {
    /// It has run out of spare blocks.
    EndOfLife,
    /// It was told to.
    Fault,
}
