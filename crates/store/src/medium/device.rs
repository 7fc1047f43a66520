//! A store on a whole block device. One call has the device at a time; its requests are in flight together.

use std::sync::{Mutex, PoisonError};

use flashwise_block::{BlockDevice, BlockError, ByteSize, DeviceCounters, IoBuffer, Request};

use super::{BLOCK, Medium, drive};
use crate::error::{Result, StoreError};

/// A device, and the tag of its next request.
struct Tagged {
    device: Box<dyn BlockDevice + Send>,
    next_tag: u64,
}

/// A device, and what of it never changes.
pub(crate) struct DeviceMedium {
    device: Mutex<Tagged>,
    name: String,
    capacity: u64,
    max_transfer: u64,
}

impl DeviceMedium {
    /// A device with blocks of at most 4 KiB.
    pub(crate) fn new(device: Box<dyn BlockDevice + Send>) -> Result<Self> {
        let info = device.info();
        let block = info.logical_block;
        if block.0 == 0 || !ByteSize(BLOCK).is_multiple_of(block) {
            let why = format!("its blocks have {block}; a store needs a device with blocks of 4 KiB or less");
            return Err(StoreError::NotAStore { place: info.name.clone(), why });
        }
        let capacity = info.capacity.0.min(device.writable().0);
        let (name, max_transfer) = (info.name.clone(), info.max_transfer.0);
        Ok(Self { device: Mutex::new(Tagged { device, next_tag: 0 }), name, capacity, max_transfer })
    }
}

impl Medium for DeviceMedium {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn max_transfer(&self) -> u64 {
        self.max_transfer
    }

    fn ensure(&self, end: u64) -> Result<(), BlockError> {
        if end <= self.capacity { Ok(()) } else { Err(BlockError::NoSpace) }
    }

    fn run(&self, requests: Vec<Request>, depth: usize) -> Result<Vec<Option<IoBuffer>>, BlockError> {
        let mut device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        let Tagged { device, next_tag } = &mut *device;
        drive(device.as_mut(), next_tag, requests, depth)
    }

    fn counters(&self) -> Option<DeviceCounters> {
        Some(self.device.lock().unwrap_or_else(PoisonError::into_inner).device.counters())
    }
}
