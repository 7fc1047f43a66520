//! The drive in its steady state: what violations cost that only collection makes pay.
//!
//! Whether dead data was trimmed costs nothing on a drive with free room: it is paid when superblocks are collected. So the
//! rule that is about this is played on the drive of the profile after years of use:
//!
//! ```text
//!   drive of the profile, all logical pages written, in the steady state of uniform overwrites (mean field)
//!     └─▶ the window, again and again, until it has programmed the spare flash once: every superblock that was free or
//!         nearly empty has been filled by it and collected
//!          └─▶ as much again: measured, per window
//! ```
//!
//! The drive has at least [`SUPERBLOCKS_MIN`] superblocks of data in each unit, so that what the FTL keeps free by itself is
//! little beside its spare flash. A drive that is written in place collects nothing, and has no steady state of its own.
//!
//! Source of the state: `flashwise_ssd`'s `precondition`.

use flashwise_block::{BlockDevice, ByteSize};
use flashwise_profile::DeviceProfile;
use flashwise_ssd::config::Mapping;
use flashwise_ssd::learned::learned;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::play::{Map, PlayError, Played, Step, play_round, programmed};

/// Superblocks of data in each unit, at least: the six or so that the FTL keeps for itself are then a tenth of them.
const SUPERBLOCKS_MIN: u64 = 64;
/// Steps that are played at most, twice: it bounds the time.
const STEPS_MAX: u64 = 2_000_000;
/// Rounds at least: in the first the drive finds what dies together for the first time.
const ROUNDS_MIN: u64 = 4;
/// Any seed; the same for all plays, so that they differ by the window alone.
const SEED: u64 = 1;

/// A drive of at least `bytes` that can be brought to its steady state; none for a drive that is written in place.
pub(crate) fn config(profile: &DeviceProfile, fresh: &DeviceConfig, bytes: u64) -> Option<DeviceConfig> {
    if fresh.ftl.mapping != Mapping::Page {
        return None;
    }
    let open = fresh.units() * fresh.superpage_bytes();
    let row = open * u64::from(fresh.flash.pages_per_block);
    let mut config = learned(profile, ByteSize(bytes.max(SUPERBLOCKS_MIN * row))).ok()?.config;
    config.ftl.gc.separate_open_block = true;
    // One more superblock of a unit is open for collection, and one more superpage is not full.
    config.flash.blocks_per_plane += 1;
    config.controller.write_buffer_bytes =
        config.controller.write_buffer_bytes.max(config.host.max_transfer_bytes + 2 * open);
    config.check(&config.name).ok()?;
    Some(config)
}

/// Plays a window on the aged drive, and gives what one of it takes.
pub(crate) fn play(steps: &[Step], map: &Map, config: &DeviceConfig) -> Result<Played, PlayError> {
    let mut drive = SimulatedSsd::new(config.clone(), SEED)?;
    drive.enter_steady_state(SEED)?;
    let spare = config.raw_bytes() - config.capacity_bytes;
    let rounds_max = (STEPS_MAX / steps.len().max(1) as u64).max(ROUNDS_MIN);
    let fill_the_spare_flash = |drive: &mut SimulatedSsd| -> Result<u64, PlayError> {
        let before = drive.counters();
        for rounds in 1..=rounds_max {
            play_round(drive, steps, map)?;
            let counters = drive.counters().since(&before);
            // A window that writes nothing changes nothing.
            let is_idle = counters.host_bytes_written.0 == 0;
            if is_idle || (programmed(&counters) >= spare && rounds >= ROUNDS_MIN) {
                return Ok(rounds);
            }
        }
        Ok(rounds_max)
    };
    fill_the_spare_flash(&mut drive)?;
    let (before, start) = (drive.counters(), drive.now());
    let rounds = fill_the_spare_flash(&mut drive)?;
    let counters = drive.counters().since(&before);
    Ok(Played {
        time_ns: drive.now().since(start).0 / rounds,
        flash_bytes: programmed(&counters) / rounds,
        host_bytes: counters.host_bytes_written.0 / rounds,
    })
}
