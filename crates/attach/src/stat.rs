//! Statistics of a running attached drive.

use flashwise_block::DeviceCounters;
use flashwise_sim::{Utilisation, WriteCauses};
use flashwise_ssd::EndOfLife;
use flashwise_ssd::SpaceUse;
use serde::{Deserialize, Serialize};

use crate::Pacing;
use crate::engine::KindLatencies;
use crate::fault::FaultState;
use crate::log_pages::LifeCounters;

/// The name of the document.
pub const DEVICE_STAT_SCHEMA: &str = "flashwise.device_stat";
/// Its version.
pub const DEVICE_STAT_SCHEMA_VERSION: u32 = 1;

/// The document of `flashwise device stat`: everything since the drive was attached.
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
    /// Seconds on the machine's clock per second on the drive's; `null` if completions are sent at once.
    pub time_scale: Option<f64>,
    /// Whether it takes writes, and why not.
    pub state: DriveState,
    /// Requests in flight.
    pub in_flight: u64,
    /// Counters of the host interface and of the flash.
    pub counters: DeviceCounters,
    /// Flash bytes programmed ÷ host bytes written; `null` where nothing was written.
    pub write_amplification: Option<f64>,
    /// Write amplification by cause; the parts add up to the whole, except for data still in the write buffer.
    pub write_amplification_by_cause: Option<WriteCauses>,
    /// Data on the drive and its space; `null` for a drive that stores all data unmodified.
    pub space: Option<SpaceUse>,
    /// How busy channels, chips, dies and planes were.
    pub utilisation: Utilisation,
    /// How long requests took on the drive's clock.
    pub latency: KindLatencies,
    /// Requests that failed.
    pub failed: u64,
    /// Delays of the completions; `null` if they are sent at once.
    pub pacing: Option<Pacing>,
    /// Counters since the drive is new, of which its NVMe log pages are made; `null` for a cloud volume.
    #[serde(default)]
    pub life: Option<LifeCounters>,
    /// How often its power was cut on demand.
    pub power_cuts: u64,
    /// Injected faults.
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
    /// By an injected fault.
    Fault,
}
