//! The drives: the one of `examples/compressing.toml`, and others that differ from it in one thing.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use flashwise_block::{BlockDevice, BlockError, Completion, DeviceCounters, DeviceInfo, Nanos, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd, SpaceUse};

use crate::StudyError;

/// The drive that compresses.
const COMPRESSING: &str = include_str!("../compressing.toml");
/// Its write buffer here, bytes: the example's holds more than a phase of a small run writes.
const WRITE_BUFFER: u64 = 3 << 20;
/// Capacity without compression, bytes: less than its flash has.
const PLAIN_CAPACITY: u64 = 8 << 30;

/// The small drive: address space and flash, bytes.
pub(super) const SMALL_CAPACITY: u64 = 256 << 20;
pub(super) const SMALL_PHYSICAL: u64 = 2 << 20;
/// Its flash, more than that by what garbage collection needs: superblocks of 1 MiB.
const SMALL_BLOCKS: u32 = 16;
const SMALL_PAGES: u32 = 2;

/// A drive of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drive {
    /// Compresses each block of 4 KiB by zlib. It does not deduplicate.
    Compresses,
    /// The same flash without compression.
    Plain,
}

impl fmt::Display for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compresses => "compresses",
            Self::Plain => "plain",
        })
    }
}

impl Drive {
    /// Its configuration.
    pub(super) fn config(self) -> Result<DeviceConfig, StudyError> {
        let mut config = DeviceConfig::from_toml(COMPRESSING, "examples/compressing.toml")?;
        config.controller.write_buffer_bytes = WRITE_BUFFER;
        match self {
            Self::Compresses => {
                if let Some(reduction) = &mut config.reduction {
                    reduction.deduplication = None;
                }
            }
            Self::Plain => {
                config.reduction = None;
                config.capacity_bytes = PLAIN_CAPACITY;
            }
        }
        config.check("stores")?;
        Ok(config)
    }
}

/// The drive that compresses, with little flash behind much address space.
pub(super) fn small() -> Result<DeviceConfig, StudyError> {
    let mut config = Drive::Compresses.config()?;
    (config.flash.blocks_per_plane, config.flash.pages_per_block) = (SMALL_BLOCKS, SMALL_PAGES);
    config.capacity_bytes = SMALL_CAPACITY;
    if let Some(reduction) = &mut config.reduction {
        reduction.physical_bytes = Some(SMALL_PHYSICAL);
    }
    config.check("stores")?;
    Ok(config)
}

/// A drive that a store has, and whose counters the study reads.
#[derive(Clone)]
pub(super) struct SharedDrive {
    drive: Arc<Mutex<SimulatedSsd>>,
    info: DeviceInfo,
}

impl SharedDrive {
    pub(super) fn new(config: DeviceConfig, seed: u64) -> Result<Self, StudyError> {
        let drive = SimulatedSsd::new(config, seed)?;
        let info = drive.info().clone();
        Ok(Self { drive: Arc::new(Mutex::new(drive)), info })
    }

    fn with<T>(&self, what: impl FnOnce(&mut SimulatedSsd) -> T) -> T {
        what(&mut self.drive.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Space in use; `None` without compression.
    pub(super) fn space_use(&self) -> Option<SpaceUse> {
        self.with(|drive| drive.space_use())
    }
}

impl BlockDevice for SharedDrive {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.with(|drive| drive.now())
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.with(|drive| drive.submit(request))
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        self.with(SimulatedSsd::wait)
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        self.with(SimulatedSsd::poll)
    }

    fn outstanding(&self) -> usize {
        self.with(|drive| drive.outstanding())
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        self.with(|drive| drive.pause(duration))
    }

    fn counters(&self) -> DeviceCounters {
        self.with(|drive| drive.counters())
    }
}
