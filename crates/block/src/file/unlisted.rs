//! A file that is open in no table of descriptors.
//!
//! A process that holds POSIX locks on a file loses all of them when it closes *any* descriptor of that file, however it
//! came by it. So a library that opens a database once more beside its owner, to write it with direct I/O, would drop
//! the owner's locks on its way out. A file that io_uring opens straight into a place of the ring has no descriptor:
//! nothing that is done with it touches a lock.
//!
//! Source: fcntl(2), "Advisory record locking"; io_uring_prep_openat_direct(3).

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use io_uring::types::{DestinationSlot, Fd, Fixed};
use io_uring::{IoUring, Probe, opcode, squeue};
use rustix::fs::{AtFlags, StatxFlags};

use crate::{BlockError, ByteSize, IoBuffer};

/// Requests at once.
const DEPTH: u32 = 64;
/// Longest piece of a write.
const LONGEST: usize = 1 << 20;
const SLOT: u32 = 0;

/// A file open for writing with direct I/O, beside whoever else has it open.
///
/// ```no_run
/// use flashwise_block::{ByteSize, UnlistedFile};
/// # fn main() -> Result<(), flashwise_block::BlockError> {
/// let mut file = UnlistedFile::open("app.db".as_ref())?;
/// if file.takes(ByteSize(8192), 4096) {
///     file.write_all(&[(ByteSize(8192), &[7; 4096])])?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct UnlistedFile {
    ring: IoUring,
    block: u64,
    name: String,
    /// Set when the ring itself has failed: nobody knows what is in flight.
    broken: bool,
}

/// A piece of a write that is under way.
struct Piece {
    offset: u64,
    done: usize,
    bytes: IoBuffer,
}

impl UnlistedFile {
    /// Opens a file that exists.
    ///
    /// # Errors
    /// [`BlockError::Os`] where there is no such file, no direct I/O, or no io_uring that can open a file without a
    /// descriptor (Linux 5.15).
    pub fn open(path: &Path) -> Result<Self, BlockError> {
        let name = path.display().to_string();
        let failed = |error: io::Error| BlockError::os(format!("{name}: open for direct writes"), &error);
        let ring = IoUring::new(DEPTH).map_err(failed)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(failed)?;
        let needed = [opcode::OpenAt::CODE, opcode::Write::CODE, opcode::Fallocate::CODE];
        if needed.iter().any(|&code| !probe.is_supported(code)) {
            return Err(failed(io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
        }
        ring.submitter().register_files_sparse(SLOT + 1).map_err(failed)?;
        let told = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN);
        let offset = told.map_or(0, |told| told.stx_dio_offset_align);
        let block = if offset.is_power_of_two() { u64::from(offset.max(512)) } else { 4096 };
        let mut file = Self { ring, block, name, broken: false };
        file.enter(path)?;
        Ok(file)
    }

    /// Puts the file into its place in the ring.
    fn enter(&mut self, path: &Path) -> Result<(), BlockError> {
        let failed = |error: io::Error| BlockError::os(format!("{}: open for direct writes", path.display()), &error);
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
        let slot = DestinationSlot::try_from_slot_target(SLOT);
        let slot = slot.map_err(|_| failed(io::Error::from_raw_os_error(libc::EINVAL)))?;
        let entry = opcode::OpenAt::new(Fd(libc::AT_FDCWD), name.as_ptr())
            .flags(libc::O_RDWR | libc::O_DIRECT)
            .file_index(Some(slot))
            .build();
        let mut results = [0];
        // SAFETY: the name outlives the call, which returns when the request has ended.
        unsafe { self.run(&mut [entry], &mut results)? };
        match results[0] {
            result if result < 0 => Err(failed(io::Error::from_raw_os_error(-result))),
            _ => Ok(()),
        }
    }

    /// Whether a write there is one that direct I/O takes.
    pub fn takes(&self, offset: ByteSize, length: usize) -> bool {
        !self.broken && offset.bytes().is_multiple_of(self.block) && (length as u64).is_multiple_of(self.block)
    }

    /// Writes runs of bytes, all of them in flight together as far as the ring holds them, and waits for all.
    ///
    /// # Errors
    /// [`BlockError::Os`] with the first failure; any part of the runs may have been written.
    pub fn write_all(&mut self, runs: &[(ByteSize, &[u8])]) -> Result<(), BlockError> {
        let pieces = runs.iter().flat_map(|(start, bytes)| {
            let pieces = bytes.chunks(LONGEST).enumerate();
            pieces.map(move |(n, piece)| (start.bytes() + (n * LONGEST) as u64, piece))
        });
        let pieces: Vec<_> = pieces.collect();
        for batch in pieces.chunks(DEPTH as usize) {
            let make = |&(offset, bytes): &(u64, &[u8])| Piece { offset, done: 0, bytes: IoBuffer::copy_of(bytes) };
            self.write_batch(batch.iter().map(make).collect())?;
        }
        Ok(())
    }

    fn write_batch(&mut self, mut pieces: Vec<Piece>) -> Result<(), BlockError> {
        while !pieces.is_empty() {
            let entry = |piece: &Piece| {
                let rest = &piece.bytes[piece.done..];
                let offset = piece.offset + piece.done as u64;
                opcode::Write::new(Fixed(SLOT), rest.as_ptr(), rest.len() as u32).offset(offset).build()
            };
            let mut entries: Vec<_> = pieces.iter().map(entry).collect();
            let mut results = vec![0; entries.len()];
            // SAFETY: the pieces keep their memory until the requests have ended; if that can never be known, they keep
            // it for ever.
            if let Err(error) = unsafe { self.run(&mut entries, &mut results) } {
                std::mem::forget(pieces);
                return Err(error);
            }
            for (piece, &result) in pieces.iter_mut().zip(&results) {
                match result {
                    written @ 1.. => piece.done += written as usize,
                    0 => return Err(self.failed("write", libc::EIO)),
                    error if [libc::EINTR, libc::EAGAIN].contains(&-error) => {}
                    error => return Err(self.failed("write", -error)),
                }
            }
            pieces.retain(|piece| piece.done < piece.bytes.len());
        }
        Ok(())
    }

    /// Gives the space of a span back; it reads as zeros from then on.
    ///
    /// # Errors
    /// [`BlockError::Os`], as where the file system cannot do that.
    pub fn punch(&mut self, offset: ByteSize, length: ByteSize) -> Result<(), BlockError> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let entry = opcode::Fallocate::new(Fixed(SLOT), length.bytes()).offset(offset.bytes()).mode(mode).build();
        let mut results = [0];
        // SAFETY: the request points to no memory.
        unsafe { self.run(&mut [entry], &mut results)? };
        if results[0] < 0 { Err(self.failed("punch a hole", -results[0])) } else { Ok(()) }
    }

    /// Makes up to [`DEPTH`] requests and waits for all of them.
    ///
    /// # Safety
    /// What the entries point to must stay valid until the call returns, and for ever if it returns an error.
    unsafe fn run(&mut self, entries: &mut [squeue::Entry], results: &mut [i32]) -> Result<(), BlockError> {
        if self.broken {
            return Err(self.failed("use its ring again", libc::EIO));
        }
        self.broken = true;
        for (n, entry) in entries.iter().enumerate() {
            // SAFETY: the caller's promise.
            let pushed = unsafe { self.ring.submission().push(&entry.clone().user_data(n as u64)) };
            pushed.map_err(|_| self.failed("queue a request", libc::EBUSY))?;
        }
        let mut open = entries.len();
        while open > 0 {
            match self.ring.submit_and_wait(1).map_err(|error| error.raw_os_error()) {
                Ok(_) | Err(Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(error) => return Err(self.failed("wait for the kernel", error.unwrap_or(libc::EIO))),
            }
            for entry in self.ring.completion() {
                if let Some(result) = results.get_mut(entry.user_data() as usize) {
                    *result = entry.result();
                    open -= 1;
                }
            }
        }
        self.broken = false;
        Ok(())
    }

    fn failed(&self, what: &str, errno: i32) -> BlockError {
        BlockError::os(format!("{}: {what}", self.name), &io::Error::from_raw_os_error(errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Where direct I/O works: not every temporary directory has it.
    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    #[test]
    fn runs_are_written_together_and_holes_punched() {
        let dir = directory();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 64 * 4096]).unwrap();
        let mut file = UnlistedFile::open(&path).unwrap();
        assert!(file.takes(ByteSize(8192), 4096) && !file.takes(ByteSize(100), 4096) && !file.takes(ByteSize(0), 100));
        let data: Vec<_> = (0..100_u64).map(|n| (ByteSize(n * 8192), vec![n as u8; 4096])).collect();
        let runs: Vec<_> = data.iter().map(|(at, bytes)| (*at, bytes.as_slice())).collect();
        file.write_all(&runs).unwrap();
        file.punch(ByteSize(4096), ByteSize(4096)).unwrap();
        let found = fs::read(&path).unwrap();
        assert_eq!(found.len(), 99 * 8192 + 4096, "the file grows");
        for (at, bytes) in &data {
            assert_eq!(found[at.0 as usize..][..4096], bytes[..], "{at}");
        }
        assert!(found[4096..8192].iter().all(|&byte| byte == 0) && found[3 * 4096] == 1);
    }

    #[test]
    fn opening_writing_and_leaving_touches_no_lock() {
        let dir = directory();
        let path = dir.path().join("file");
        fs::write(&path, vec![1; 4096]).unwrap();
        let owner = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        rustix::fs::fcntl_lock(&owner, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        let inode = format!(":{} ", rustix::fs::fstat(&owner).unwrap().st_ino);
        let is_locked = || fs::read_to_string("/proc/locks").unwrap().contains(&inode);
        assert!(is_locked());
        let mut file = UnlistedFile::open(&path).unwrap();
        file.write_all(&[(ByteSize(0), &[2; 4096])]).unwrap();
        drop(file);
        assert!(is_locked(), "the lock is gone");
        drop(fs::File::open(&path).unwrap());
        assert!(!is_locked(), "an ordinary descriptor takes the lock with it: otherwise this test would show nothing");
    }

    #[test]
    fn what_is_not_there_is_not_made() {
        let dir = directory();
        let path = dir.path().join("nothing");
        assert!(UnlistedFile::open(&path).is_err() && !path.exists());
    }
}
