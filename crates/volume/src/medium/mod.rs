//! What stores a volume's bytes: a simulated drive, a plain latency, or a rotating disk.

mod bytes;
mod completions;
mod disk;
mod drive;
mod plain;

use flashwise_block::{BlockError, ByteSize, FlashCounters, IoBuffer, Request};
use flashwise_ssd::SsdError;

use crate::config::Volume;

pub(crate) use disk::Disk;
pub use disk::{DiskConfig, DiskQueue};
pub(crate) use drive::Drive;
pub(crate) use plain::Plain;
pub use plain::PlainConfig;

/// A request that the medium has done.
pub(crate) struct Done {
    pub(crate) tag: u64,
    pub(crate) at_ns: u64,
    pub(crate) result: Result<(), BlockError>,
    pub(crate) buffer: Option<IoBuffer>,
}

/// The medium of a volume. Requests come in the order of time, each after all that happens before it.
pub(crate) enum Medium {
    Drive(Box<Drive>),
    Plain(Plain),
    Disk(Box<Disk>),
}

impl Medium {
    pub(crate) fn new(volume: &Volume, seed: u64) -> Result<Self, SsdError> {
        let config = &volume.config;
        Ok(match (&volume.drive, &config.medium.plain, &config.medium.disk) {
            (Some(drive), ..) => Self::Drive(Box::new(Drive::new(drive.clone(), seed)?)),
            (None, _, Some(disk)) => Self::Disk(Box::new(Disk::new(disk, config.capacity_bytes))),
            (None, plain, None) => Self::Plain(Plain::new(plain.clone().unwrap_or_default())),
        })
    }

    pub(crate) fn submit(&mut self, request: Request, now_ns: u64) -> Result<(), BlockError> {
        match self {
            Self::Drive(drive) => return drive.submit(request, now_ns),
            Self::Plain(plain) => plain.submit(request, now_ns),
            Self::Disk(disk) => disk.submit(request, now_ns),
        }
        Ok(())
    }

    /// When something happens next.
    pub(crate) fn next_time(&self) -> Option<u64> {
        match self {
            Self::Drive(drive) => drive.next_time(),
            Self::Plain(plain) => plain.next_time(),
            Self::Disk(disk) => disk.next_time(),
        }
    }

    /// Lets what is next happen, and what follows until a time, but no more than one completion.
    pub(crate) fn advance(&mut self, limit_ns: u64) -> Result<Option<Done>, BlockError> {
        match self {
            Self::Drive(drive) => drive.advance(limit_ns),
            Self::Plain(plain) => Ok(plain.advance(limit_ns)),
            Self::Disk(disk) => Ok(disk.advance(limit_ns)),
        }
    }

    /// Brings the medium's own clock to the present.
    pub(crate) fn catch_up(&mut self, now_ns: u64) -> Result<(), BlockError> {
        match self {
            Self::Drive(drive) => drive.catch_up(now_ns),
            Self::Plain(_) | Self::Disk(_) => Ok(()),
        }
    }

    pub(crate) fn carries_bytes_of(&self, byte: ByteSize) -> bool {
        match self {
            Self::Drive(drive) => drive.get().carries_bytes_of(byte),
            Self::Plain(plain) => plain.bytes.holds(byte),
            Self::Disk(disk) => disk.bytes.holds(byte),
        }
    }

    pub(crate) fn flash_counters(&self) -> Option<FlashCounters> {
        match self {
            Self::Drive(drive) => drive.flash_counters(),
            Self::Plain(_) | Self::Disk(_) => None,
        }
    }
}
