//! SQLite's five lock levels between the connections of one process.
//!
//! The rules are those of <https://sqlite.org/lockingv3.html>: many may hold SHARED; one may hold RESERVED beside
//! them; PENDING lets no new SHARED in; EXCLUSIVE is alone.

use std::collections::BTreeMap;
use std::ffi::c_int;

/// The lock of a connection on a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[default]
    None,
    Shared,
    Reserved,
    Pending,
    Exclusive,
}

impl Level {
    /// SQLite's number for it.
    pub(crate) fn from_code(code: c_int) -> Option<Self> {
        [Self::None, Self::Shared, Self::Reserved, Self::Pending, Self::Exclusive]
            .get(usize::try_from(code).ok()?)
            .copied()
    }

    /// Calls of `fcntl` that SQLite's VFS for Unix makes to raise a lock to it (`os_unix.c`, `unixLock`): SHARED is
    /// PENDING, the shared bytes, and PENDING given back.
    pub(crate) fn calls(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Shared => 3,
            Self::Reserved | Self::Pending => 1,
            Self::Exclusive => 2,
        }
    }
}

/// Another connection has a conflicting lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// One open handle of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandleId(pub u64);

/// The locks on one file; handles without a lock are absent.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: BTreeMap<HandleId, Level>,
}

impl Locks {
    fn of(&self, handle: HandleId) -> Level {
        self.held.get(&handle).copied().unwrap_or_default()
    }

    fn of_others(&self, handle: HandleId) -> Level {
        self.held.iter().filter(|&(&other, _)| other != handle).map(|(_, &level)| level).max().unwrap_or_default()
    }

    /// Raises a handle's lock.
    ///
    /// A handle that wants EXCLUSIVE while others still read is left at PENDING, so that no new reader gets in its way.
    pub(crate) fn lock(&mut self, handle: HandleId, wanted: Level) -> Result<(), Busy> {
        if wanted <= self.of(handle) {
            return Ok(());
        }
        let others = self.of_others(handle);
        let forbidden_by = match wanted {
            Level::None | Level::Shared => Level::Pending,
            Level::Reserved | Level::Pending | Level::Exclusive => Level::Reserved,
        };
        if others >= forbidden_by {
            return Err(Busy);
        }
        if wanted == Level::Exclusive && others != Level::None {
            self.held.insert(handle, Level::Pending);
            return Err(Busy);
        }
        self.held.insert(handle, wanted);
        debug_assert!(wanted != Level::Exclusive || self.held.len() == 1, "an exclusive lock is alone");
        Ok(())
    }

    /// Lowers a handle's lock.
    pub(crate) fn unlock(&mut self, handle: HandleId, to: Level) {
        if to == Level::None {
            self.held.remove(&handle);
        } else if self.of(handle) > to {
            self.held.insert(handle, to);
        }
    }

    /// Whether any connection, including this one, has RESERVED or more.
    pub(crate) fn is_reserved(&self) -> bool {
        self.held.values().any(|&level| level >= Level::Reserved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: HandleId = HandleId(1);
    const B: HandleId = HandleId(2);
    const C: HandleId = HandleId(3);

    #[test]
    fn a_writer_waits_for_readers_and_lets_no_new_one_in() {
        let mut locks = Locks::default();
        locks.lock(A, Level::Shared).unwrap();
        locks.lock(B, Level::Shared).unwrap();
        locks.lock(A, Level::Reserved).unwrap();
        assert!(locks.is_reserved());
        locks.lock(C, Level::Shared).unwrap();
        locks.unlock(C, Level::None);
        assert_eq!(locks.lock(B, Level::Reserved), Err(Busy));
        assert_eq!(locks.lock(A, Level::Exclusive), Err(Busy));
        assert_eq!(locks.lock(C, Level::Shared), Err(Busy), "a pending writer lets nobody in");
        locks.unlock(B, Level::None);
        locks.lock(A, Level::Exclusive).unwrap();
        assert_eq!(locks.lock(B, Level::Shared), Err(Busy));
        locks.unlock(A, Level::Shared);
        assert!(!locks.is_reserved());
        locks.lock(B, Level::Shared).unwrap();
    }

    #[test]
    fn of_two_readers_only_one_can_become_the_writer() {
        let mut locks = Locks::default();
        locks.lock(A, Level::Shared).unwrap();
        locks.lock(B, Level::Shared).unwrap();
        assert_eq!(locks.lock(A, Level::Exclusive), Err(Busy), "left at pending");
        assert_eq!(locks.lock(B, Level::Exclusive), Err(Busy));
        locks.unlock(B, Level::None);
        locks.lock(A, Level::Exclusive).unwrap();
    }
}
