//! The two generations of drives, the newer one with and without what its controller reduces, and the arrays that the
//! text makes of eight of them.

use flashwise_array::{ArrayConfig, Level, SimulatedArray};
use flashwise_block::{BlockDevice, ByteSize, Request, interrupt};
use flashwise_ssd::config::{CompressionConfig, DeduplicationConfig, ReductionConfig};
use flashwise_ssd::{ContentModel, DeviceConfig, SimulatedSsd};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::StudyError;

/// A generation of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    Slc,
    /// Given data that its controller cannot reduce, or with its controller's reduction left out: the same.
    Mlc,
    /// Given data that its controller stores in half of its length: compression alone.
    MlcHalf,
    /// Given data that its controller stores in a tenth of its length: half of the blocks are there already, the others
    /// are compressed to a fifth.
    MlcTenth,
}

/// What has been done to the drives before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Written once, in order.
    Filled,
    /// Overwritten at random until the garbage collection was steady, as after months behind a controller that passes
    /// on no trim.
    Steady,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Filled => "filled sequentially",
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
            Self::MlcHalf => "MLC, 2011, data compressed to a half",
            Self::MlcTenth => "MLC, 2011, data compressed to a tenth",
        }
    }

    /// One drive.
    pub(super) fn config(self) -> Result<DeviceConfig, StudyError> {
        let (text, name) = match self {
            Self::Slc => (include_str!("slc.toml"), "slc.toml"),
            _ => (include_str!("mlc.toml"), "mlc.toml"),
        };
        let mut config = DeviceConfig::from_toml(text, name)?;
        config.flash.blocks_per_plane /= SCALE;
        let page = config.ftl.logical_page_bytes;
        config.capacity_bytes = config.capacity_bytes / u64::from(SCALE) / page * page;
        Ok(if self.content().is_some() { with_data_reduction(config) } else { config })
    }

    /// What the data is like, where the drive reduces it.
    fn content(self) -> Option<ContentModel> {
        let (compressed_share, duplicate_share) = match self {
            Self::Slc | Self::Mlc => return None,
            Self::MlcHalf => (0.5, 0.0),
            Self::MlcTenth => (0.2, 0.5),
        };
        // Duplicates of what was written a moment ago, which is still there.
        Some(ContentModel { compressed_share, duplicate_share, duplicate_window: 1 << 12, ..ContentModel::default() })
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
            match (self.content(), state) {
                (Some(content), state) => write_first(&mut drive, content, state, seed)?,
                (None, State::Filled) => drive.fill_at_once()?,
                (None, State::Steady) => {
                    _ = flashwise_sim::enter_steady_state(&mut drive, seed.wrapping_mul(31).wrapping_add(n))?
                }
            }
            drives.push(drive);
        }
        Ok(SimulatedArray::of_drives(config, drives, seed)?)
    }
}

/// The drive with what its controller does to write less: DuraWrite as it is generally understood, compression and
/// deduplication of blocks of 4 KiB. Its maps need protection from power cuts here, which the SF-1200 has not; a flush
/// costs nothing then.
fn with_data_reduction(mut config: DeviceConfig) -> DeviceConfig {
    config.controller.power_loss_protection = true;
    config.host.logical_block_bytes = config.ftl.logical_page_bytes;
    config.reduction = Some(ReductionConfig {
        physical_bytes: None,
        compression: Some(CompressionConfig { granule_bytes: 512, ..CompressionConfig::default() }),
        deduplication: Some(DeduplicationConfig::default()),
    });
    config
}

/// Brings a drive that reduces data to its state by writing, since how much room that leaves depends on the data.
fn write_first(drive: &mut SimulatedSsd, content: ContentModel, state: State, seed: u64) -> Result<(), StudyError> {
    drive.set_content_model(content);
    let (capacity, step, page) =
        (drive.info().capacity.bytes(), drive.info().max_transfer.bytes(), drive.config().ftl.logical_page_bytes);
    let mut write = |offset: u64, length: u64| -> Result<(), StudyError> {
        interrupt::check()?;
        drive.submit(Request::write(ByteSize(offset), ByteSize(length)))?;
        if drive.outstanding() > IN_FLIGHT {
            drive.wait()?;
        }
        Ok(())
    };
    for offset in (0..capacity).step_by(step as usize) {
        write(offset, step.min(capacity - offset))?;
    }
    if state == State::Steady {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        for _ in 0..capacity / page {
            write(random.random_range(0..capacity / page) * page, page)?;
        }
    }
    while drive.wait()?.is_some() {}
    Ok(())
}

/// Requests in flight meanwhile.
const IN_FLIGHT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_are_possible_drives_with_what_is_set_aside_in_their_texts() {
        for (generation, share) in [(Generation::Slc, 0.074), (Generation::Mlc, 0.145), (Generation::MlcTenth, 0.145)] {
            let config = generation.config().unwrap();
            assert!((config.over_provisioning() - share).abs() < 0.002, "{}", config.over_provisioning());
        }
    }
}
