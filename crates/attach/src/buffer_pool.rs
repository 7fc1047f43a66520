//! Reusable memory for the bytes of requests.
//!
//! ```text
//!   a write's bytes come  ── take ─▶ buffer ─▶ drive ─▶ completed ── give ────┐
//!   a read is wanted      ── take ─▶ buffer ─▶ drive ─▶ client has it ── give ─┤
//!                              ▲                                               │
//!                              └── shelves, one for each power of two ◀────────┘
//! ```
//!
//! A request that allocates memory may wait for the system to free some by writing to this very drive. So buffers are
//! kept for later requests: after the first ones, no request allocates memory. There are never more buffers than were
//! in use at once, and at most [`MOST`] bytes of unused ones.
//!
//! A buffer that is taken contains its last user's data. The caller fills it, or passes it to nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashwise_block::{ByteSize, IoBuffer};

/// Idle bytes at most.
const MOST: usize = 256 << 20;
/// Idle buffers of a size at most.
const EACH: usize = 1024;
/// Sizes: powers of two from the smallest buffer on.
const SIZES: usize = 16;

/// Idle buffers.
#[derive(Debug)]
struct Shelves {
    of_size: [Vec<IoBuffer>; SIZES],
    idle_bytes: usize,
}

/// The buffers of a drive; copies are the same.
#[derive(Clone, Debug)]
pub(crate) struct BufferPool(Arc<Mutex<Shelves>>);

impl Default for BufferPool {
    fn default() -> Self {
        let of_size = std::array::from_fn(|_| Vec::with_capacity(EACH));
        Self(Arc::new(Mutex::new(Shelves { of_size, idle_bytes: 0 })))
    }
}

/// The shelf for a length, if there is one.
fn shelf(length: usize) -> Option<usize> {
    let size = (IoBuffer::allocation_size(length) / IoBuffer::allocation_size(0)).trailing_zeros() as usize;
    (size < SIZES).then_some(size)
}

impl BufferPool {
    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of a length, whose bytes are anything.
    pub(crate) fn take(&self, length: ByteSize) -> IoBuffer {
        let length = length.0 as usize;
        let idle = shelf(length).and_then(|shelf| {
            let mut shelves = self.shelves();
            let idle = shelves.of_size[shelf].pop()?;
            shelves.idle_bytes -= IoBuffer::allocation_size(length);
            Some(idle)
        });
        let idle = idle.and_then(|mut buffer| buffer.set_length(length).then_some(buffer));
        idle.unwrap_or_else(|| IoBuffer::zeroed(length))
    }

    /// A buffer with these bytes.
    pub(crate) fn copy_of(&self, bytes: &[u8]) -> IoBuffer {
        let mut buffer = self.take(ByteSize(bytes.len() as u64));
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// Takes a buffer back.
    pub(crate) fn give(&self, buffer: IoBuffer) {
        let room = IoBuffer::allocation_size(buffer.len());
        let Some(shelf) = shelf(buffer.len()) else { return };
        let mut shelves = self.shelves();
        if shelves.of_size[shelf].len() < EACH && shelves.idle_bytes + room <= MOST {
            shelves.of_size[shelf].push(buffer);
            shelves.idle_bytes += room;
        }
    }

    /// Makes at least that many buffers of a length available, each touched.
    pub(crate) fn reserve(&self, length: ByteSize, count: usize) {
        let Some(shelf) = shelf(length.0 as usize) else { return };
        let missing = count.saturating_sub(self.shelves().of_size[shelf].len());
        for _ in 0..missing {
            self.give(IoBuffer::zeroed(length.0 as usize));
        }
    }

    /// Makes buffers of all usual sizes of requests available: of each size, as many as fit into `bytes`, and at most
    /// `count`.
    pub(crate) fn reserve_all(&self, bytes: usize, count: usize) {
        let least = IoBuffer::allocation_size(0);
        for size in (0..SIZES).map(|shelf| least << shelf).take_while(|&size| size <= bytes) {
            self.reserve(ByteSize(size as u64), (bytes / size).min(count));
        }
    }

    #[cfg(test)]
    fn idle(&self) -> usize {
        self.shelves().of_size.iter().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_for_every_length_that_it_has_room_for() {
        let buffers = BufferPool::default();
        let first = buffers.take(ByteSize(5000));
        let place = first.as_ptr();
        buffers.give(first);
        let again = buffers.take(ByteSize(8192));
        assert_eq!((again.as_ptr(), again.len()), (place, 8192));
        let other = buffers.take(ByteSize(8192));
        assert_ne!(other.as_ptr(), place, "it is in use");
        buffers.give(again);
        assert_eq!((buffers.take(ByteSize(4096)).len(), buffers.idle()), (4096, 1), "another size");
        assert!(*buffers.copy_of(&[7; 6000]) == [7; 6000], "whatever was in it");
    }

    #[test]
    fn no_more_lies_idle_than_may() {
        let buffers = BufferPool::default();
        (0..20).for_each(|_| buffers.give(IoBuffer::zeroed(32 << 20)));
        assert_eq!(buffers.idle(), MOST / (32 << 20));
        buffers.reserve(ByteSize(512), 10);
        assert_eq!(buffers.idle(), MOST / (32 << 20), "it is full");
        let all = BufferPool::default();
        all.reserve_all(1 << 20, 64);
        assert_eq!(all.idle(), 64 + 64 + 64 + 32 + 16 + 8 + 4 + 2 + 1, "from 4 KiB to 1 MiB");
        let small = BufferPool::default();
        small.reserve(ByteSize(512), EACH + 10);
        assert_eq!(small.idle(), EACH);
    }
}
