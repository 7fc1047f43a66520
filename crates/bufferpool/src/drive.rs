//! What a run costs on a drive: each read and each batch of write-backs is asked of a device and waited for.
//!
//! The pages of a trace are on the device in the order of their addresses, without gaps. On a simulated drive all of it
//! happens in virtual time, so that the result is exact to the nanosecond from run to run.

use flashwise_block::{BlockDevice, BlockError, ByteSize, Nanos, Operation, Request};
use serde::Serialize;

use crate::directory::Page;
use crate::error::PoolError;
use crate::pool::Storage;

/// How a run continued a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DriveCost {
    /// From the first access to the last, on the drive's clock.
    pub elapsed_ns: u64,
    /// Of it, waiting for reads.
    pub read_ns: u64,
    /// Of it, waiting for write-backs.
    pub write_ns: u64,
    /// Flash bytes programmed ÷ bytes written, in this run; `None` where nothing was written or nobody tells.
    pub write_amplification: Option<f64>,
}

/// Pages on a device.
pub struct DriveStorage<'a> {
    device: &'a mut dyn BlockDevice,
    /// By page: its place on the device, in pages.
    places: &'a [u32],
    page: ByteSize,
    cost: DriveCost,
    start: Nanos,
    flash_before: Option<u64>,
    written_before: u64,
}

impl<'a> DriveStorage<'a> {
    /// Pages at their places on a device.
    ///
    /// # Errors
    /// When they do not fit, or are not whole logical blocks.
    pub fn new(device: &'a mut dyn BlockDevice, places: &'a [u32], page_bytes: u64) -> Result<Self, PoolError> {
        let (capacity, block) = (device.info().capacity, device.info().logical_block.0.max(1));
        let bytes = (places.len() as u64).saturating_mul(page_bytes);
        if bytes > capacity.0 {
            let message = format!("{} of pages do not fit on its {capacity}: use a larger drive", ByteSize(bytes));
            return Err(PoolError::Drive(message));
        }
        if !page_bytes.is_multiple_of(block) {
            let message = format!(
                "a page of {page_bytes} bytes is not a multiple of the logical block, {block}: set --page-size"
            );
            return Err(PoolError::Drive(message));
        }
        let (start, counters) = (device.now(), device.counters());
        Ok(Self {
            places,
            page: ByteSize(page_bytes),
            cost: DriveCost::default(),
            start,
            flash_before: counters.flash.map(|flash| flash.bytes_programmed.0),
            written_before: counters.host_bytes_written.0,
            device,
        })
    }

    /// Asks for all of them and waits for the last; how long that took.
    fn ask(&mut self, operation: Operation, pages: &[Page]) -> Result<u64, BlockError> {
        let start = self.device.now();
        for page in pages {
            let place = self.places.get(page.0 as usize).copied().unwrap_or_default();
            let offset = ByteSize(u64::from(place) * self.page.0);
            self.device.submit(match operation {
                Operation::Write => Request::write(offset, self.page),
                _ => Request::read(offset, self.page),
            })?;
        }
        let mut result = Ok(());
        while let Some(completion) = self.device.wait()? {
            result = result.and(completion.result);
        }
        result?;
        Ok(self.device.now().since(start).0)
    }

    /// What it cost so far.
    pub fn cost(&self) -> DriveCost {
        let counters = self.device.counters();
        let written = counters.host_bytes_written.0.saturating_sub(self.written_before);
        let programmed = counters.flash.zip(self.flash_before);
        let programmed = programmed.map(|(flash, before)| flash.bytes_programmed.0.saturating_sub(before));
        let write_amplification = programmed.filter(|_| written > 0).map(|bytes| bytes as f64 / written as f64);
        let elapsed_ns = self.device.now().since(self.start).0;
        DriveCost { elapsed_ns, write_amplification, ..self.cost.clone() }
    }
}

impl Storage for DriveStorage<'_> {
    fn write(&mut self, pages: &[Page]) -> Result<(), String> {
        self.cost.write_ns += self.ask(Operation::Write, pages).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn read(&mut self, pages: &[Page]) -> Result<(), String> {
        self.cost.read_ns += self.ask(Operation::Read, pages).map_err(|error| error.to_string())?;
        Ok(())
    }
}
