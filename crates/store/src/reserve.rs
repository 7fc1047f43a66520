//! Space on the medium that the store holds for the day on which the medium is full.
//!
//! On a medium without space (a thin-provisioned drive, a full file system) even a delete needs some: for the log, and
//! for the new image of a page before the old one is given back. So in front of the pages there are bytes that no drive
//! can compress, as many as 64 pages and 64 KiB have. When a write finds no space they are given back. From then on
//! only batches of deletes are taken, until the reserve can be written again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flashwise_block::IoBuffer;

use crate::error::Result;
use crate::medium::{BLOCK, Cause, Disk};
use crate::superblock::{Geometry, reserve_bytes};

/// Requests of a restored reserve in flight.
const DEPTH: usize = 16;

/// The reserve of an open store.
pub(crate) struct Reserve {
    disk: Arc<Disk>,
    offset: u64,
    bytes: u64,
    seed: u64,
    is_released: AtomicBool,
}

/// Bytes that do not compress and are no page: splitmix64 (Sebastiano Vigna).
fn filling(seed: u64, block: u64) -> IoBuffer {
    let mut buffer = IoBuffer::zeroed(BLOCK as usize);
    let mut state = seed ^ block.wrapping_mul(0xd6e8_feb8_6659_fd93);
    for word in buffer.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    buffer
}

/// The blocks of a reserve, with their offsets.
pub(crate) fn blocks(geometry: &Geometry) -> Vec<(u64, IoBuffer)> {
    let (offset, seed) = (geometry.reserve_offset(), geometry.seed);
    let count = reserve_bytes(geometry.page_bytes) / BLOCK;
    (0..count).map(|block| (offset + block * BLOCK, filling(seed, block))).collect()
}

impl Reserve {
    /// The reserve as it is on the medium; one that cannot be read counts as given back. It is given back as a whole,
    /// so its ends show whether it is there.
    pub(crate) fn open(disk: &Arc<Disk>, geometry: &Geometry) -> Self {
        let (offset, seed, bytes) = (geometry.reserve_offset(), geometry.seed, reserve_bytes(geometry.page_bytes));
        let ends = [0, bytes / BLOCK - 1];
        let spans = ends.map(|block| (offset + block * BLOCK, BLOCK as usize));
        let is_whole = disk
            .read(&spans, 2, "the reserve")
            .is_ok_and(|stored| stored.iter().zip(ends).all(|(stored, block)| stored[..] == filling(seed, block)[..]));
        Self { disk: Arc::clone(disk), offset, bytes, seed, is_released: AtomicBool::new(!is_whole) }
    }

    /// Whether it was given back.
    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire)
    }

    /// Gives it back; whether it was there.
    pub(crate) fn release(&self) -> bool {
        let is_first = !self.is_released.swap(true, Ordering::AcqRel);
        is_first && self.disk.trim(&[(self.offset, self.bytes)], 1).is_ok()
    }

    /// Writes it again. It counts only with the next flush, which nothing waits for: the reserve holds no data.
    pub(crate) fn restore(&self) -> Result<()> {
        if self.is_released() {
            let writes = (0..self.bytes / BLOCK)
                .map(|block| (self.offset + block * BLOCK, filling(self.seed, block), Cause::Superblock));
            if let Err(error) = self.disk.write(writes.collect(), DEPTH, "the reserve") {
                // What was written of it takes the space that deletes need.
                let _ = self.disk.trim(&[(self.offset, self.bytes)], 1);
                return Err(error);
            }
            self.is_released.store(false, Ordering::Release);
        }
        Ok(())
    }
}
