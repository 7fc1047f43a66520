//! Open files that a forked child does not keep.
//!
//! A lock of an open file (`F_OFD_SETLK`, fcntl(2)) stays until the last descriptor of that file is closed, and a fork
//! copies descriptors: a child that never touches the database would keep its parent's locks for as long as it lives,
//! even if the parent is killed. So in the child each such descriptor is replaced by one of `/dev/null`. The number
//! stays in use, so that operations of the child's copies of our objects have no effect, and close no other file.
//!
//! The list of them is protected by a gate, which the forking thread closes before the fork, and opens after it on both
//! sides. Nothing slow is done behind it: a file that was opened during a fork is opened again.

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::libc;

/// Data protected by the gate.
struct List {
    is_closed: AtomicBool,
    /// Descriptors that a child must not keep.
    open: UnsafeCell<Vec<RawFd>>,
}

// SAFETY: `open` is only accessed by the thread that has closed the gate.
unsafe impl Sync for List {}

static LIST: List = List { is_closed: AtomicBool::new(false), open: UnsafeCell::new(Vec::new()) };
/// Forks so far; changed behind the gate.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// The open `/dev/null` that replaces a descriptor in a child; `None` where no handler of forks could be registered.
static DEV_NULL: OnceLock<Option<File>> = OnceLock::new();

impl List {
    fn close_gate(&self) {
        while self.is_closed.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
    }

    fn open_gate(&self) {
        self.is_closed.store(false, Ordering::Release);
    }

    /// Works on the list behind the closed gate.
    fn with<T>(&self, work: impl FnOnce(&mut Vec<RawFd>) -> T) -> T {
        /// Opens the gate, after a panic too.
        struct Closed<'a>(&'a List);
        impl Drop for Closed<'_> {
            fn drop(&mut self) {
                self.0.open_gate();
            }
        }
        self.close_gate();
        let _closed = Closed(self);
        // SAFETY: the thread that has closed the gate has exclusive access, in this process's threads and in all
        // others.
        work(unsafe { &mut *self.open.get() })
    }
}

extern "C" fn before_fork() {
    LIST.close_gate();
    FORKS.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn in_parent() {
    LIST.open_gate();
}

extern "C" fn in_child() {
    // SAFETY: the thread that forked has closed the gate, and it is the child's only one.
    let open = unsafe { &*LIST.open.get() };
    if let Some(dev_null) = DEV_NULL.get().and_then(Option::as_ref) {
        for &descriptor in open {
            // SAFETY: both descriptors are open; the call may be made in a child of a process with threads.
            unsafe { libc::dup3(dev_null.as_raw_fd(), descriptor, libc::O_CLOEXEC) };
        }
    }
    LIST.open_gate();
}

fn listen() -> Option<File> {
    let dev_null = File::options().read(true).write(true).open("/dev/null").ok()?;
    // SAFETY: the functions live as long as the library, which is never unloaded, and none of them panics.
    let code = unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
    (code == 0).then_some(dev_null)
}

/// An open file that is no forked child's.
#[derive(Debug)]
pub(crate) struct OwnFile(File);

impl OwnFile {
    /// Opens a file.
    pub(crate) fn open<E>(mut open: impl FnMut() -> Result<File, E>) -> Result<Self, E> {
        DEV_NULL.get_or_init(listen);
        loop {
            let before = FORKS.load(Ordering::Relaxed);
            let file = open()?;
            // The file has no lock yet, so a child's copy of the closed descriptor does no harm.
            let is_own = LIST.with(|list| {
                // Where there is no memory for it a child keeps it; locks are also released one by one.
                if list.try_reserve(1).is_ok() {
                    list.push(file.as_raw_fd());
                }
                FORKS.load(Ordering::Relaxed) == before
            });
            let file = Self(file);
            if is_own {
                return Ok(file);
            }
        }
    }
}

impl Deref for OwnFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // The descriptor is closed after this; a fork in between gives the child a copy of a file without locks.
        let _ = unlock_all(&self.0);
        LIST.with(|list| list.retain(|&descriptor| descriptor != self.0.as_raw_fd()));
    }
}

/// Releases every lock of an open file, also for processes that inherited it.
pub(crate) fn unlock_all(file: &File) -> io::Result<()> {
    let everything = libc::flock {
        l_type: libc::F_UNLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_OFD_SETLK(&everything)).map(drop).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_another_file_in_the_place_of_one_that_is_not_its_own() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locked");
        let file = OwnFile::open(|| File::create(&path)).unwrap();
        let ours = file.metadata().unwrap().ino();
        // SAFETY: the child calls only functions that a child of a process with threads may call.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: a place for the result on the stack; `_exit` runs nothing of this process.
            unsafe {
                let mut found = std::mem::zeroed::<libc::stat>();
                let asked = libc::fstat(file.as_raw_fd(), &raw mut found);
                libc::_exit(if asked == 0 && found.st_ino != ours { 0 } else { 1 });
            }
        }
        let mut status = -1;
        // SAFETY: the child of above, and a place for its status.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the number stands for something else there");
        assert_eq!(file.metadata().unwrap().ino(), ours, "and for the same as before here");
        drop(file);
    }
}
