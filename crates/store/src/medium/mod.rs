//! What a store lies on: a file of its own, or a block device, simulated or real.
//!
//! ```text
//!   log, superblock, pages ─▶ Disk: what was written for which cause, barriers, the failed sync ─▶ Medium ─┬─ FileMedium
//!                                                                                                        └─ DeviceMedium
//! ```

mod device;
mod disk;
mod file;

use flashwise_block::{BlockDevice, BlockError, DeviceCounters, IoBuffer, Request};

pub(crate) use device::DeviceMedium;
pub(crate) use disk::{BLOCK, Cause, Disk};
pub(crate) use file::FileMedium;

/// Bytes that requests read, write, trim and flush. Threads share it.
pub(crate) trait Medium: Send + Sync {
    /// Path or model, for messages.
    fn name(&self) -> String;

    /// Most bytes that the medium can have.
    fn capacity(&self) -> u64;

    /// The longest request.
    fn max_transfer(&self) -> u64;

    /// Makes the medium at least `end` bytes long; new bytes read as zeros on a file, as anything on a device.
    fn ensure(&self, end: u64) -> Result<(), BlockError>;

    /// Carries out requests that do not overlap, up to `depth` of them in flight; returns their buffers in the order
    /// of the requests. All of them have ended when it returns, also after a failure.
    fn run(&self, requests: Vec<Request>, depth: usize) -> Result<Vec<Option<IoBuffer>>, BlockError>;

    /// Counters of the device, where it has some.
    fn counters(&self) -> Option<DeviceCounters>;
}

/// Carries out requests on a device that has none outstanding, or some that an earlier failure has left behind. Their
/// tags are below `first_tag`, which grows by the number of requests.
fn drive(
    device: &mut dyn BlockDevice,
    first_tag: &mut u64,
    requests: Vec<Request>,
    depth: usize,
) -> Result<Vec<Option<IoBuffer>>, BlockError> {
    let first = *first_tag;
    *first_tag += requests.len() as u64;
    let mut buffers: Vec<Option<IoBuffer>> = requests.iter().map(|_| None).collect();
    let mut failed = None;
    let mut waiting = requests.into_iter().enumerate();
    loop {
        while failed.is_none() && device.outstanding() < depth.max(1) {
            let Some((index, request)) = waiting.next() else { break };
            failed = device.submit(request.tagged(first + index as u64)).err();
        }
        let Some(done) = device.wait()? else {
            return match failed {
                Some(error) => Err(error),
                None => Ok(buffers),
            };
        };
        let Some(index) = done.tag.checked_sub(first) else { continue };
        if let Some(place) = buffers.get_mut(index as usize) {
            *place = done.buffer;
        }
        failed = failed.or(done.result.err());
    }
}
