//! What is attached: a simulated drive, or a simulated cloud volume.
//!
//! A volume is held in memory: it has no state that a file could keep, and its provider's replicas survive a power cut.

use flashwise_block::{BlockDevice, BlockError, ByteSize, Completion, DeviceCounters, DeviceInfo, Nanos, Request};
use flashwise_ssd::flash::Statistics;
use flashwise_ssd::{EndOfLife, SimulatedSsd, SpaceUse};
use flashwise_volume::SimulatedVolume;

use crate::AttachError;

/// Unit of written content of a volume that is not on a drive.
const PAGE: u64 = 4096;

/// A drive or a volume.
pub enum Attached {
    /// A drive.
    Drive(Box<SimulatedSsd>),
    /// A cloud volume.
    Volume(Box<SimulatedVolume>),
}

impl From<SimulatedSsd> for Attached {
    fn from(drive: SimulatedSsd) -> Self {
        Self::Drive(Box::new(drive))
    }
}

impl From<SimulatedVolume> for Attached {
    fn from(volume: SimulatedVolume) -> Self {
        Self::Volume(Box::new(volume))
    }
}

impl Attached {
    fn device(&self) -> &dyn BlockDevice {
        match self {
            Self::Drive(drive) => &**drive,
            Self::Volume(volume) => &**volume,
        }
    }

    fn device_mut(&mut self) -> &mut dyn BlockDevice {
        match self {
            Self::Drive(drive) => &mut **drive,
            Self::Volume(volume) => &mut **volume,
        }
    }

    /// The drive that stores the bytes.
    fn inner(&self) -> Option<&SimulatedSsd> {
        match self {
            Self::Drive(drive) => Some(drive),
            Self::Volume(volume) => volume.drive(),
        }
    }

    /// The drive, where it is attached itself.
    pub(crate) fn drive(&self) -> Option<&SimulatedSsd> {
        match self {
            Self::Drive(drive) => Some(drive),
            Self::Volume(_) => None,
        }
    }

    pub(crate) fn drive_mut(&mut self) -> Option<&mut SimulatedSsd> {
        match self {
            Self::Drive(drive) => Some(drive),
            Self::Volume(_) => None,
        }
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        self.device().info()
    }

    pub(crate) fn now(&self) -> Nanos {
        self.device().now()
    }

    pub(crate) fn counters(&self) -> DeviceCounters {
        self.device().counters()
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.device().outstanding()
    }

    pub(crate) fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.device_mut().submit(request)
    }

    pub(crate) fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        self.device_mut().wait()
    }

    pub(crate) fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        match self {
            Self::Drive(drive) => drive.wait_until(deadline),
            Self::Volume(volume) => volume.wait_until(deadline),
        }
    }

    /// The next completion until a time; where there is none, the clock stays at the last event.
    pub(crate) fn wait_within(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        match self {
            Self::Drive(drive) => Ok(drive.wait_within(deadline)),
            Self::Volume(volume) => volume.wait_within(deadline),
        }
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        match self {
            Self::Drive(drive) => drive.next_event(),
            Self::Volume(volume) => volume.next_event(),
        }
    }

    pub(crate) fn flash_statistics(&self) -> Statistics {
        self.inner().map_or_else(Statistics::default, SimulatedSsd::flash_statistics)
    }

    pub(crate) fn dies_per_chip(&self) -> u32 {
        self.inner().map_or(1, |drive| drive.config().flash.dies_per_chip)
    }

    pub(crate) fn space_use(&self) -> Option<SpaceUse> {
        self.inner()?.space_use()
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.inner().is_some_and(SimulatedSsd::is_read_only)
    }

    pub(crate) fn end_of_life(&self) -> Option<EndOfLife> {
        self.inner()?.end_of_life()
    }

    pub(crate) fn depends_on_content(&self) -> bool {
        self.inner().is_some_and(SimulatedSsd::depends_on_content)
    }

    /// Unit of content that is written or not.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.inner().map_or(PAGE, |drive| drive.config().ftl.logical_page_bytes)
    }

    /// Whether the page of a byte reads as zeros because nothing is there.
    pub(crate) fn is_hole(&self, byte: ByteSize) -> bool {
        let Some(drive) = self.inner() else { return !self.carries_bytes_of(byte) };
        // Media that are written in place map all pages from the start; there the bytes decide.
        let has_cache = drive.config().controller.write_cache.is_some();
        !drive.is_mapped(byte) || !has_cache && !drive.carries_bytes_of(byte)
    }

    pub(crate) fn carries_bytes(&self) -> bool {
        match self {
            Self::Drive(drive) => drive.carries_bytes(),
            // A volume is new.
            Self::Volume(_) => false,
        }
    }

    pub(crate) fn carries_bytes_of(&self, byte: ByteSize) -> bool {
        match self {
            Self::Drive(drive) => drive.carries_bytes_of(byte),
            Self::Volume(volume) => volume.carries_bytes_of(byte),
        }
    }

    pub(crate) fn reserve(&mut self, requests: usize, content: ByteSize) {
        if let Self::Drive(drive) = self {
            drive.reserve_requests(requests);
            drive.reserve_content(content);
        }
    }

    pub(crate) fn power_cut(&mut self) -> Result<(), AttachError> {
        match self {
            Self::Drive(drive) => drive.power_cut().map_err(|_| AttachError::NoPowerCuts),
            Self::Volume(_) => Err(AttachError::NoPowerCuts),
        }
    }
}
