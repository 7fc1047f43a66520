//! Shared memory of a database on a drive: the index of its write-ahead log and the locks on it, between the
//! connections of one process.
//!
//! SQLite keeps the index in regions of 32 KiB that all connections of a database map, and protects it by eight locks,
//! each held by one connection exclusively or by several together. The memory exists as long as a connection has it
//! mapped; the first connection finds it empty and rebuilds the index from the log, as after a crash.
//!
//! Source: SQLite's `sqlite3_io_methods` (`xShmMap`, `xShmLock`, `xShmBarrier`, `xShmUnmap`) and
//! <https://sqlite.org/walformat.html>, section 2.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use libsqlite3_sys as sqlite;

use crate::ffi::Region;
use crate::locks::{Busy, HandleId};

/// `xShmMap`, `xShmLock`, `xShmBarrier` and `xShmUnmap` in safe terms; each returns SQLite's result code.
pub(crate) trait SharedMemory {
    /// A region, which is null with a good code if it does not exist and was not to be created.
    fn map(&mut self, region: c_int, bytes: c_int, extend: bool) -> (c_int, *mut c_void);
    /// Takes or releases `count` locks from `first` on.
    fn lock(&mut self, first: c_int, count: c_int, flags: c_int) -> c_int;
    /// Orders earlier writes before later reads.
    fn barrier(&mut self);
    /// Releases the memory; with `delete` it is not needed any more.
    fn unmap(&mut self, delete: bool) -> c_int;
}

/// Regions that a database may have: of 32 KiB each they index the frames of a log of 16 TiB.
const REGIONS_MAX: usize = 1 << 20;
/// Longest region that is made; SQLite's are of 32 KiB.
const REGION_MAX: usize = 1 << 20;

/// Locks of one connection, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    shared: u8,
    alone: u8,
}

/// The shared memory of one database.
#[derive(Default)]
pub(crate) struct WalIndex {
    regions: Vec<Region>,
    /// Connections that have mapped it or hold a lock.
    held: BTreeMap<HandleId, Held>,
}

impl WalIndex {
    /// Bytes that it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.bytes() as u64).sum()
    }

    /// A region by its number; null if it does not exist and was not to be created.
    ///
    /// # Errors
    /// A result code of SQLite if no such region is possible.
    pub(crate) fn map(
        &mut self,
        handle: HandleId,
        region: c_int,
        bytes: c_int,
        extend: bool,
    ) -> Result<*mut c_void, c_int> {
        let number = usize::try_from(region).ok().filter(|&number| number < REGIONS_MAX);
        let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..=REGION_MAX).contains(bytes));
        let (Some(number), Some(bytes)) = (number, bytes) else { return Err(sqlite::SQLITE_IOERR_SHMMAP) };
        self.held.entry(handle).or_default();
        while extend && self.regions.len() <= number {
            self.regions.push(Region::zeroed(bytes));
        }
        Ok(self.regions.get(number).map_or(std::ptr::null_mut(), Region::as_ptr))
    }

    /// Takes or releases locks, as `flags` say.
    pub(crate) fn lock(&mut self, handle: HandleId, first: c_int, count: c_int, flags: c_int) -> Result<(), Busy> {
        let bits = (0..8).filter(|bit| (first..first.saturating_add(count)).contains(bit));
        let mask = bits.fold(0_u8, |mask, bit| mask | 1 << bit);
        let others = self.held.iter().filter(|&(&other, _)| other != handle).map(|(_, held)| held);
        let (shared, alone) = others.fold((0, 0), |(shared, alone), held| (shared | held.shared, alone | held.alone));
        let own = self.held.entry(handle).or_default();
        if flags & sqlite::SQLITE_SHM_UNLOCK != 0 {
            (own.shared, own.alone) = (own.shared & !mask, own.alone & !mask);
        } else if flags & sqlite::SQLITE_SHM_SHARED != 0 {
            if alone & mask != 0 {
                return Err(Busy);
            }
            own.shared |= mask;
        } else {
            if (shared | alone) & mask != 0 {
                return Err(Busy);
            }
            own.alone |= mask;
        }
        Ok(())
    }

    /// A connection lets go of everything; the memory goes with the last one.
    pub(crate) fn unmap(&mut self, handle: HandleId) {
        self.held.remove(&handle);
        if self.held.is_empty() {
            self.regions.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: HandleId = HandleId(1);
    const B: HandleId = HandleId(2);
    const SHARED: c_int = sqlite::SQLITE_SHM_LOCK | sqlite::SQLITE_SHM_SHARED;
    const ALONE: c_int = sqlite::SQLITE_SHM_LOCK | sqlite::SQLITE_SHM_EXCLUSIVE;
    const RELEASE: c_int = sqlite::SQLITE_SHM_UNLOCK | sqlite::SQLITE_SHM_SHARED;

    #[test]
    fn a_region_is_the_same_memory_for_all_and_goes_with_the_last() {
        let mut index = WalIndex::default();
        assert!(index.map(A, 0, 32768, false).unwrap().is_null());
        let first = index.map(A, 0, 32768, true).unwrap();
        let third = index.map(B, 2, 32768, true).unwrap();
        assert!(!first.is_null() && !third.is_null() && first != third);
        assert_eq!(index.map(B, 0, 32768, false), Ok(first), "it stays where it is");
        index.unmap(A);
        assert_eq!(index.map(B, 2, 32768, false), Ok(third));
        index.unmap(B);
        assert!(index.map(A, 0, 32768, false).unwrap().is_null());
        for (region, bytes) in [(-1, 32768), (0, 0), (0, -5), (i32::MAX, 32768), (0, i32::MAX)] {
            assert_eq!(index.map(A, region, bytes, true), Err(sqlite::SQLITE_IOERR_SHMMAP), "{region}, {bytes}");
        }
    }

    #[test]
    fn a_lock_is_of_many_readers_or_of_one_writer() {
        let mut index = WalIndex::default();
        index.lock(A, 3, 1, SHARED).unwrap();
        index.lock(B, 3, 1, SHARED).unwrap();
        assert_eq!(index.lock(A, 3, 1, ALONE), Err(Busy));
        index.lock(A, 4, 4, ALONE).unwrap();
        assert_eq!(index.lock(B, 7, 1, SHARED), Err(Busy));
        assert_eq!(index.lock(B, 2, 3, ALONE), Err(Busy), "one of three is taken");
        index.lock(B, 3, 1, RELEASE).unwrap();
        index.lock(A, 3, 1, ALONE).unwrap();
        index.unmap(A);
        index.lock(B, 0, 8, ALONE).unwrap();
    }
}
