//! The flash of a drive: the array with its times, the bytes that are in it, and what is counted of it.

use flashwise_block::FlashCounters;

use super::{FlashAddress, FlashArray};
use crate::config::DeviceConfig;
use crate::payload::Payload;

/// A flash command of the request that is being taken apart.
#[derive(Clone, Copy)]
pub(crate) struct RowRead {
    pub(crate) op: u32,
    pub(crate) at: FlashAddress,
}

/// The flash of a drive.
pub(crate) struct Medium {
    pub(crate) array: FlashArray,
    pub(crate) payload: Payload,
    pub(crate) counters: FlashCounters,
    /// Scratch space: the commands of the read that is being taken apart.
    pub(crate) row_reads: Vec<RowRead>,
}

impl Medium {
    /// An idle array without bytes; `seed` drives jitter and errors.
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Self {
        Self {
            array: FlashArray::new(config, seed),
            payload: Payload::new(config.content_bytes()),
            counters: FlashCounters::default(),
            row_reads: Vec::new(),
        }
    }
}
