//! Files that one process has for itself, by a lock that ends with its owner.
//!
//! A lock of `flock` belongs to the open file, not to the process: it stays until the last descriptor of that file is
//! closed, and every fork copies descriptors. A program that another thread starts has them until it executes, so a
//! lock that is left to the closing of its file may be there for some milliseconds more, and whoever opens the file
//! again at once is refused. A lock that is released explicitly is released for all copies.
//!
//! Source: `flock(2)`; `fork(2)` and `execve(2)` for what a child has.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};

use rustix::fs::{FlockOperation, flock};

/// An open file with an exclusive lock, which is released when this is dropped, whoever has copies of its descriptor.
#[derive(Debug)]
pub struct LockedFile(File);

impl LockedFile {
    /// Locks a file, without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where another open file has the lock; those of `flock(2)`, as on a file system
    /// without locks. The file is closed then.
    pub fn new(file: File) -> io::Result<Self> {
        lock(&file)?;
        Ok(Self(file))
    }

    /// Like [`LockedFile::new`], but also on a file system without locks.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where another open file has the lock.
    pub fn where_possible(file: File) -> io::Result<Self> {
        match lock(&file) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(Self(file)),
        }
    }
}

/// Takes a file's exclusive lock, without waiting.
fn lock(file: &File) -> io::Result<()> {
    rustix::io::retry_on_intr(|| flock(file, FlockOperation::NonBlockingLockExclusive)).map_err(Into::into)
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_owner_though_a_copy_of_the_descriptor_is_open() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let locked = LockedFile::new(named.reopen().unwrap()).unwrap();
        // What a program has that is started meanwhile, until it executes.
        let _copy = locked.try_clone().unwrap();
        let refused = LockedFile::where_possible(named.reopen().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(locked);
        LockedFile::new(named.reopen().unwrap()).unwrap();
    }
}
