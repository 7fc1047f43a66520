//! What an attached drive is doing, told while it runs.

use flashwise_block::DeviceCounters;
use flashwise_ssd::SpaceUse;
use flashwise_ssd::life::EndOfLife;
use flashwise_ssd::simulation::{Utilisation, WriteCauses};
use serde::{Deserialize, Serialize};

use crate::Pacing;
use crate::engine::{KindLatencies, Snapshot, Times};
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

impl DeviceStat {
    /// A look in full; `times` are those since the drive was attached.
    pub(crate) fn new(snapshot: Snapshot, times: &Times) -> Self {
        let read_only = match (snapshot.is_worn_out, snapshot.faults.read_only) {
            (true, _) => Some(ReadOnlyCause::EndOfLife),
            (false, true) => Some(ReadOnlyCause::Fault),
            (false, false) => None,
        };
        let pacing = snapshot.pace.map(|(scale, round_trip)| times.pacing(round_trip, scale));
        Self {
            schema: DEVICE_STAT_SCHEMA.to_owned(),
            schema_version: DEVICE_STAT_SCHEMA_VERSION,
            device: snapshot.device,
            capacity_bytes: snapshot.capacity_bytes,
            simulated_ns: snapshot.simulated_ns,
            time_scale: snapshot.pace.map(|(scale, _)| scale),
            state: DriveState { read_only, end_of_life: snapshot.end_of_life },
            in_flight: snapshot.in_flight,
            write_amplification: snapshot.counters.write_amplification(),
            write_amplification_by_cause: WriteCauses::of(&snapshot.counters),
            counters: snapshot.counters,
            space: snapshot.space,
            utilisation: snapshot.utilisation,
            latency: times.latencies(),
            failed: times.failed,
            pacing,
            power_cuts: snapshot.power_cuts,
            faults: snapshot.faults,
        }
    }
}
