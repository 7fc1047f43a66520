//! A snapshot of the running drive.
//!
//! ```text
//!   reader ── an empty table of times ──▶ engine:  swaps it for its own, adds counters ──▶ Snapshot
//!   reader:   adds the times to those of earlier snapshots, computes percentiles ──▶ DeviceStat
//! ```
//!
//! So the engine only copies a few hundred bytes and the utilisation of channels and planes, and swaps the histograms;
//! the reader does the slow work.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flashwise_sim::{Utilisation, WriteCauses};

use super::{Engine, KindLatencies, Times};
use crate::AttachError;
use crate::log_pages::LifeCounters;
use crate::stat::{DEVICE_STAT_SCHEMA, DEVICE_STAT_SCHEMA_VERSION, DeviceStat, DriveState, ReadOnlyCause};

/// A drive's statistics without those computed from its times.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) stat: DeviceStat,
    /// The time subtracted from each latency.
    round_trip: Duration,
    /// Since the last snapshot.
    pub(crate) times: Box<Times>,
}

impl Snapshot {
    /// The whole, with all times since the drive was attached.
    pub(crate) fn with_times(self, times: &Times) -> DeviceStat {
        let pacing = self.stat.time_scale.map(|scale| times.pacing(self.round_trip, scale));
        DeviceStat { latency: times.latencies(), failed: times.failed, pacing, ..self.stat }
    }
}

impl Engine {
    /// The state of the drive at a time. `empty` replaces the times since the last snapshot, which go to
    /// [`Self::reported_times`].
    ///
    /// # Errors
    /// When the drive is lost as a whole.
    pub(crate) fn snapshot(&mut self, empty: Box<Times>, at: Instant) -> Result<Snapshot, AttachError> {
        self.catch_up(at)?;
        let drive = &self.drive;
        let (info, counters) = (drive.info(), drive.counters().since(&self.baseline.counters));
        let (simulated_ns, faults) = (drive.now().since(self.baseline.at).0, self.faults.state(drive.now()));
        let (before, dies_per_chip) = (&self.baseline.flash, drive.dies_per_chip());
        let read_only = match (drive.is_read_only(), faults.read_only) {
            (true, _) => Some(ReadOnlyCause::EndOfLife),
            (false, true) => Some(ReadOnlyCause::Fault),
            (false, false) => None,
        };
        let now = drive.now();
        let life = drive.drive().map(|inner| LifeCounters::of(inner, now.0, drive.counters()));
        let stat = DeviceStat {
            schema: DEVICE_STAT_SCHEMA.to_owned(),
            schema_version: DEVICE_STAT_SCHEMA_VERSION,
            device: info.name.clone(),
            capacity_bytes: info.capacity.0,
            simulated_ns,
            time_scale: self.clocks.map(|clocks| clocks.scale()),
            state: DriveState { read_only, end_of_life: drive.end_of_life() },
            in_flight: self.outstanding() as u64,
            write_amplification: counters.write_amplification(),
            write_amplification_by_cause: WriteCauses::of(&counters),
            counters,
            space: drive.space_use(),
            utilisation: Utilisation::between(before, &drive.flash_statistics(), dies_per_chip, simulated_ns),
            latency: KindLatencies::default(),
            failed: 0,
            pacing: None,
            life,
            power_cuts: self.power_cuts,
            faults,
        };
        Ok(Snapshot { stat, round_trip: self.round_trips.head_start, times: std::mem::replace(&mut self.times, empty) })
    }

    /// Where the times of snapshots go.
    pub(crate) fn reported_times(&self) -> Arc<Mutex<Times>> {
        Arc::clone(&self.reported_times)
    }
}
