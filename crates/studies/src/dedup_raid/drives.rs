//! The two generations of drives, and the arrays that the text makes of eight of them.

use flashwise_ssd::array::{ArrayConfig, Level, SimulatedArray};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::StudyError;

/// A generation of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    Slc,
    Mlc,
}

/// What has been done to the drives before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Written once, in order.
    Filled,
    /// Overwritten at random until the garbage collection was steady, as after months behind a controller that passes on no
    /// trim.
    Steady,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Filled => "filled in order",
            Self::Steady => "overwritten at random",
        }
    }
}

/// A level with its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Organisation {
    pub(super) level: Level,
    pub(super) chunk_bytes: u64,
}

/// The text's four, the first being that of its other tests.
pub(super) const ORGANISATIONS: [Organisation; 4] = [
    Organisation { level: Level::Raid10, chunk_bytes: 16 << 10 },
    Organisation { level: Level::Raid5, chunk_bytes: 16 << 10 },
    Organisation { level: Level::Raid6, chunk_bytes: 64 << 10 },
    Organisation { level: Level::Raid10, chunk_bytes: 256 << 10 },
];

impl Organisation {
    pub(super) fn name(self) -> String {
        let level = match self.level {
            Level::Raid0 => "RAID-0",
            Level::Raid1 => "RAID-1",
            Level::Raid10 => "RAID-10",
            Level::Raid5 => "RAID-5",
            Level::Raid6 => "RAID-6",
        };
        format!("{level}, {} KiB", self.chunk_bytes >> 10)
    }
}

/// Drives of an array.
const DRIVES: u32 = 8;

/// Drives have this part of their blocks and of their capacity: what they do at a time stays the same, and a run fits
/// memory.
const SCALE: u32 = 16;

/// Commands a second of the controller: what the text takes for its limit.
pub(super) const CONTROLLER_IOPS: u64 = 45_000;

/// Bytes a second of the controller: the maker's figure for the 5 series, 1.2 GB/s.
const CONTROLLER_BYTES_PER_S: u64 = 1_200_000_000;

/// What a command takes longer behind the controller, ns [fit].
const CONTROLLER_LATENCY_NS: u64 = 30_000;

impl Generation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Slc => "SLC, 2010",
            Self::Mlc => "MLC, 2011",
        }
    }

    /// One drive.
    pub(super) fn config(self) -> Result<DeviceConfig, StudyError> {
        let (text, name) = match self {
            Self::Slc => (include_str!("slc.toml"), "slc.toml"),
            Self::Mlc => (include_str!("mlc.toml"), "mlc.toml"),
        };
        let mut config = DeviceConfig::from_toml(text, name)?;
        config.flash.blocks_per_plane /= SCALE;
        let page = config.ftl.logical_page_bytes;
        config.capacity_bytes = config.capacity_bytes / u64::from(SCALE) / page * page;
        Ok(match self {
            Self::Slc => config,
            Self::Mlc => with_data_reduction(config),
        })
    }

    /// Eight of them behind the controller, in a state.
    pub(super) fn array(
        self,
        organisation: Organisation,
        state: State,
        controller_iops: u64,
        seed: u64,
    ) -> Result<SimulatedArray, StudyError> {
        let drive = self.config()?;
        let mut config = ArrayConfig::new(organisation.level, DRIVES, organisation.chunk_bytes);
        config.name = format!("8 × {}, {}", drive.name, organisation.name());
        config.controller.iops_max = controller_iops;
        config.controller.bandwidth_bytes_per_s = CONTROLLER_BYTES_PER_S;
        config.controller.command_latency_ns = CONTROLLER_LATENCY_NS;
        // Large enough for whole rows of every organisation.
        config.controller.max_transfer_bytes = Some(4 << 20);
        let mut drives = Vec::new();
        for n in 0..u64::from(DRIVES) {
            let mut drive = SimulatedSsd::new(drive.clone(), seed.wrapping_add(n))?;
            match state {
                State::Filled => drive.fill_at_once()?,
                State::Steady => _ = drive.enter_steady_state(seed.wrapping_mul(31).wrapping_add(n))?,
            }
            drives.push(drive);
        }
        Ok(SimulatedArray::of_drives(config, drives, seed)?)
    }
}

/// The drive with what its controller does to write less. Deduplication and compression are not among the drive's keys
/// here, so that every block is written as it comes: this is the one place to say otherwise.
fn with_data_reduction(config: DeviceConfig) -> DeviceConfig {
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_are_possible_drives_with_what_is_set_aside_in_their_texts() {
        for (generation, share) in [(Generation::Slc, 0.074), (Generation::Mlc, 0.145)] {
            let config = generation.config().unwrap();
            assert!((config.over_provisioning() - share).abs() < 0.002, "{}", config.over_provisioning());
        }
    }
}
