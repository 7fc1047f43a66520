//! The drive in its steady state, for violations that cost only during garbage collection (GC).
//!
//! Untrimmed dead data, and short-lived data among long-lived data, cost nothing on a drive with free space: they cost
//! when superblocks are collected. So rules about them are replayed on the drive of the profile after years of use:
//!
//! ```text
//!   drive of the profile, all logical pages written, in the steady state of uniform overwrites (mean field)
//!     └─▶ the window, again and again, until it has programmed all of the flash three times: nothing is left of
//!         the state before
//!          └─▶ on, until it has programmed the spare flash twice: measured, per window
//! ```
//!
//! **Long-lived data.** A page that the window writes twice is short-lived. One that it writes once lives for an
//! unknown time, longer than the window. If each round wrote it again in place, it would die after one round, together
//! with everything else that the round wrote, and GC would never have to move it. So long-lived data goes to other
//! addresses in each round, one after another through all the rest of the drive, and lives until the drive has been
//! gone through.
//!
//! The drive has at least [`SUPERBLOCKS_MIN`] superblocks of data in each unit, so that what the FTL keeps free by
//! itself is little beside its spare flash, and two streams, of which a window that names none uses one. A drive that
//! is written in place has no GC and no steady state.
//!
//! Source of the state: `flashwise_ssd`'s `precondition`.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, ByteSize, Request};
use flashwise_profile::DeviceProfile;
use flashwise_ssd::config::{Mapping, StreamPolicy};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_truth::learned::learned;

use crate::play::{AREA, Map, PlayError, Played, Step, play_round, programmed, requests};
use crate::request::Space;

/// Superblocks of data in each unit, at least: the six or so that the FTL keeps for itself are then a tenth of them.
const SUPERBLOCKS_MIN: u64 = 64;
/// Steps that are played at most before and while it is measured, each: it bounds the time. A drive on which they do
/// not go around stays nearer to the state of uniform overwrites.
const STEPS_MAX: u64 = 2_000_000;
/// Bytes that are read and written at most before and while it is measured, each: a step can be a long one. Steps of 16
/// KiB reach both bounds together.
const BYTES_MAX: u64 = STEPS_MAX * (16 << 10);
/// How often all of the flash is programmed before it is measured: superblocks of what stays are the last to be
/// collected, and after twice the raw capacity the write amplification no longer changed.
const WARM_UP: u64 = 3;
/// Rounds at least: in the first the drive finds what dies together for the first time.
const ROUNDS_MIN: u64 = 4;
/// What is written again and what stays.
const STREAMS: u32 = 2;
/// Any seed; the same for all plays, so that they differ by the window alone.
const SEED: u64 = 1;

/// A used drive, and which part of it is for what stays.
pub(crate) struct AgedDrive {
    config: DeviceConfig,
    /// First area behind the window's own, where what stays is written.
    first: u64,
    /// Areas for it.
    areas: u64,
}

impl AgedDrive {
    /// The drive for windows of at most `bytes`; none where it is written in place.
    pub(crate) fn new(profile: &DeviceProfile, fresh: &DeviceConfig, steps: &[Step], bytes: u64) -> Option<Self> {
        if fresh.ftl.mapping != Mapping::Page {
            return None;
        }
        let first = bytes.div_ceil(AREA);
        let wanted = (first + staying_areas(steps).len() as u64).saturating_mul(AREA);
        let open = fresh.units() * fresh.superpage_bytes();
        let row = open * u64::from(fresh.flash.pages_per_block);
        let mut config = learned(profile, ByteSize(wanted.max(SUPERBLOCKS_MIN * row))).ok()?.config;
        config.ftl.gc.separate_open_block = true;
        (config.ftl.streams.policy, config.ftl.streams.streams) = (StreamPolicy::Hint, STREAMS);
        // A unit has as many superblocks open for collection and for streams, and one more superpage is not full.
        config.flash.blocks_per_plane += 2 * STREAMS - 1;
        config.controller.write_buffer_bytes =
            config.controller.write_buffer_bytes.max(config.host.max_transfer_bytes + 2 * u64::from(STREAMS) * open);
        config.check(&config.name).ok()?;
        let areas = (config.capacity_bytes / AREA).checked_sub(first)?;
        Some(Self { config, first, areas })
    }

    /// Plays a window again and again, and gives what one round takes.
    pub(crate) fn play(&self, steps: &[Step], map: &Map) -> Result<Played, PlayError> {
        let mut drive = SimulatedSsd::new(self.config.clone(), SEED)?;
        flashwise_sim::enter_steady_state(&mut drive, SEED)?;
        let mut rounds = Rounds { of: self, map, staying: staying_areas(steps), played: 0 };
        rounds.play_until(WARM_UP * self.config.raw_bytes(), &mut drive, steps)?;
        let (before, start, earlier) = (drive.counters(), drive.now(), rounds.played);
        rounds.play_until(2 * (self.config.raw_bytes() - self.config.capacity_bytes), &mut drive, steps)?;
        let (counters, played) = (drive.counters().since(&before), rounds.played - earlier);
        Ok(Played {
            time_ns: drive.now().since(start).0 / played,
            flash_bytes: programmed(&counters) / played,
            host_bytes: counters.host_bytes_written.0 / played,
        })
    }
}

type Area = (bool, Space, u64);

/// The areas in which something is written that stays, numbered.
fn staying_areas(steps: &[Step]) -> BTreeMap<Area, u64> {
    let staying = steps.iter().filter(|step| step.stays);
    let mut areas: BTreeMap<Area, u64> =
        staying.flat_map(|step| step.areas().map(|area| ((step.is_moved, step.space, area), 0))).collect();
    areas.values_mut().enumerate().for_each(|(index, number)| *number = index as u64);
    areas
}

/// A window that is played round after round.
struct Rounds<'a> {
    of: &'a AgedDrive,
    map: &'a Map,
    staying: BTreeMap<Area, u64>,
    /// Rounds so far.
    played: u64,
}

impl Rounds<'_> {
    /// Plays rounds until they have programmed so many bytes.
    fn play_until(&mut self, bytes: u64, drive: &mut SimulatedSsd, steps: &[Step]) -> Result<(), PlayError> {
        let before = drive.counters();
        let rounds_max = (STEPS_MAX / steps.len().max(1) as u64).max(ROUNDS_MIN);
        for rounds in 1..=rounds_max {
            play_round(drive, steps, |step| self.requests(step))?;
            self.played += 1;
            let counters = drive.counters().since(&before);
            // A window that writes nothing changes nothing.
            let is_idle = counters.host_bytes_written.0 == 0;
            let is_enough = programmed(&counters) >= bytes
                || counters.host_bytes_read.0.saturating_add(counters.host_bytes_written.0) >= BYTES_MAX;
            if is_idle || (is_enough && rounds >= ROUNDS_MIN) {
                break;
            }
        }
        Ok(())
    }

    fn requests(&self, step: &Step) -> Vec<Request> {
        requests(step, |at| match step.stays {
            true => self.place(step, at),
            false => self.map.place(step, at),
        })
    }

    /// Where a byte that stays is in this round.
    fn place(&self, step: &Step, at: u64) -> u64 {
        let number = self.staying.get(&(step.is_moved, step.space, at / AREA)).copied().unwrap_or(0);
        let turn = self.played * self.staying.len() as u64 + number;
        match self.of.areas {
            0 => self.map.place(step, at),
            areas => (self.of.first + turn % areas) * AREA + at % AREA,
        }
    }
}
