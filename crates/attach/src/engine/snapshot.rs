//! A look at the drive while it runs.
//!
//! ```text
//!   who looks ── an empty table of times ──▶ engine:  swaps it for its own, adds counters ──▶ Snapshot
//!   who looks:  adds the times to those of earlier looks, makes percentiles ──▶ DeviceStat
//! ```
//!
//! So the engine copies a few hundred bytes and the figures of channels and planes, and the histograms change hands: what
//! takes long is done by who looks.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flashwise_block::{BlockDevice, DeviceCounters};
use flashwise_ssd::SpaceUse;
use flashwise_ssd::life::EndOfLife;
use flashwise_ssd::simulation::Utilisation;

use super::{Engine, Times};
use crate::AttachError;
use crate::fault::FaultState;

/// What the engine tells of itself.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) device: String,
    pub(crate) capacity_bytes: u64,
    pub(crate) simulated_ns: u64,
    /// Seconds of the machine for a simulated one, and what is taken off each answer; `None` where answers come at once.
    pub(crate) pace: Option<(f64, Duration)>,
    pub(crate) in_flight: u64,
    pub(crate) counters: DeviceCounters,
    pub(crate) space: Option<SpaceUse>,
    pub(crate) utilisation: Utilisation,
    pub(crate) is_worn_out: bool,
    pub(crate) end_of_life: Option<EndOfLife>,
    pub(crate) power_cuts: u64,
    pub(crate) faults: FaultState,
    /// Since the last snapshot.
    pub(crate) times: Box<Times>,
}

impl Engine {
    /// The drive as it is at a moment. `empty` takes the place of the times since the last snapshot, which go to
    /// [`Self::reported_times`].
    ///
    /// # Errors
    /// When the drive is lost as a whole.
    pub(crate) fn snapshot(&mut self, empty: Box<Times>, at: Instant) -> Result<Snapshot, AttachError> {
        self.catch_up(at)?;
        let drive = &self.drive.0;
        let (info, simulated) = (drive.info(), drive.now().since(self.baseline.at));
        let dies_per_chip = drive.config().flash.dies_per_chip;
        Ok(Snapshot {
            device: info.name.clone(),
            capacity_bytes: info.capacity.0,
            simulated_ns: simulated.0,
            pace: self.clocks.map(|clocks| (clocks.scale(), self.round_trips.head_start)),
            in_flight: self.outstanding() as u64,
            counters: drive.counters().since(&self.baseline.counters),
            space: drive.space_use(),
            utilisation: Utilisation::between(
                &self.baseline.flash,
                &drive.flash_statistics(),
                dies_per_chip,
                simulated.0,
            ),
            is_worn_out: drive.is_read_only(),
            end_of_life: drive.end_of_life(),
            power_cuts: self.power_cuts,
            faults: self.faults.state(drive.now()),
            times: std::mem::replace(&mut self.times, empty),
        })
    }

    /// Takes the times of a look back that nobody has got.
    pub(crate) fn restore_times(&mut self, times: &Times) {
        self.times.merge(times);
    }

    /// Where the times of looks go.
    pub(crate) fn reported_times(&self) -> Arc<Mutex<Times>> {
        Arc::clone(&self.reported_times)
    }
}
