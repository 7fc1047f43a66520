//! The calls of Linux, on a mounted file system.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::time::Duration;

use rustix::fs::{Advice, FallocateFlags, Mode, OFlags};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use crate::workloads::{Calls, Hint, How};

/// The longest read or write of a workload.
const BUFFER: usize = 4 << 20;

/// A directory on a mounted file system.
pub(crate) struct Linux {
    directory: PathBuf,
    files: Vec<Option<OwnedFd>>,
    maps: Vec<Option<(NonNull<u8>, usize)>>,
    buffer: Vec<u8>,
    /// Where the buffer's first page starts: direct I/O needs it aligned.
    aligned: usize,
}

impl Linux {
    pub(crate) fn new(directory: PathBuf) -> Self {
        let buffer = vec![0x5a_u8; BUFFER + 4096];
        let aligned = buffer.as_ptr().align_offset(4096);
        Self { directory, files: Vec::new(), maps: Vec::new(), buffer, aligned }
    }

    fn fd(&self, file: usize) -> &OwnedFd {
        self.files[file].as_ref().expect("an open file")
    }

    fn at(&self, map: usize, offset: u64) -> *mut u8 {
        let (start, bytes) = self.maps[map].expect("a map");
        assert!((offset as usize) < bytes);
        // SAFETY: the offset is within the map, as checked.
        unsafe { start.as_ptr().add(offset as usize) }
    }
}

fn put<T>(all: &mut Vec<Option<T>>, new: T) -> usize {
    match all.iter().position(Option::is_none) {
        Some(free) => {
            all[free] = Some(new);
            free
        }
        None => {
            all.push(Some(new));
            all.len() - 1
        }
    }
}

impl Calls for Linux {
    fn open(&mut self, name: &str, how: How) -> usize {
        let mut flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        flags.set(OFlags::TRUNC, how.truncate);
        flags.set(OFlags::DIRECT, how.direct);
        // `OFlags::DSYNC` of rustix 1.1 is O_SYNC, which has the bit of O_DSYNC.
        if how.dsync {
            flags |= OFlags::from_bits_retain(libc::O_DSYNC as u32);
        }
        if how.sync {
            flags |= OFlags::SYNC;
        }
        let file = rustix::fs::open(self.directory.join(name), flags, Mode::RUSR | Mode::WUSR).expect("open");
        put(&mut self.files, file)
    }

    fn close(&mut self, file: usize) {
        self.files[file] = None;
    }

    fn read(&mut self, file: usize, offset: u64, bytes: u64) {
        let fd = self.files[file].as_ref().expect("an open file");
        let buffer = &mut self.buffer[self.aligned..self.aligned + bytes as usize];
        rustix::io::pread(fd, buffer, offset).expect("pread");
    }

    fn write(&mut self, file: usize, offset: u64, bytes: u64) {
        let buffer = &self.buffer[self.aligned..self.aligned + bytes as usize];
        assert_eq!(rustix::io::pwrite(self.fd(file), buffer, offset).expect("pwrite"), bytes as usize);
    }

    fn fsync(&mut self, file: usize) {
        rustix::fs::fsync(self.fd(file)).expect("fsync");
    }

    fn fdatasync(&mut self, file: usize) {
        rustix::fs::fdatasync(self.fd(file)).expect("fdatasync");
    }

    fn sync_range(&mut self, file: usize, offset: u64, bytes: u64, wait: bool) {
        let flags = match wait {
            true => libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER,
            false => libc::SYNC_FILE_RANGE_WRITE,
        };
        // SAFETY: the descriptor is open; the call touches no memory of ours.
        let outcome = unsafe { libc::sync_file_range(self.fd(file).as_raw_fd(), offset as i64, bytes as i64, flags) };
        assert_eq!(outcome, 0, "sync_file_range");
    }

    fn allocate(&mut self, file: usize, offset: u64, bytes: u64) {
        rustix::fs::fallocate(self.fd(file), FallocateFlags::empty(), offset, bytes).expect("fallocate");
    }

    fn truncate(&mut self, file: usize, bytes: u64) {
        rustix::fs::ftruncate(self.fd(file), bytes).expect("ftruncate");
    }

    fn unlink(&mut self, name: &str) {
        rustix::fs::unlink(self.directory.join(name)).expect("unlink");
    }

    fn rename(&mut self, from: &str, to: &str) {
        rustix::fs::rename(self.directory.join(from), self.directory.join(to)).expect("rename");
    }

    fn sync_directory(&mut self) {
        let directory = rustix::fs::open(&self.directory, OFlags::RDONLY, Mode::empty()).expect("open");
        rustix::fs::fsync(directory).expect("fsync");
    }

    fn advise(&mut self, file: usize, offset: u64, bytes: u64, hint: Hint) {
        let advice = match hint {
            Hint::Random => Advice::Random,
            Hint::WillNeed => Advice::WillNeed,
            Hint::DontNeed => Advice::DontNeed,
        };
        rustix::fs::fadvise(self.fd(file), offset, std::num::NonZero::new(bytes), advice).expect("fadvise");
    }

    fn map(&mut self, file: usize, bytes: u64) -> usize {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new map at an address that the kernel chooses; it is used through raw pointers alone.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                protection,
                MapFlags::SHARED,
                self.fd(file).as_fd(),
                0,
            )
        };
        let start = NonNull::new(start.expect("mmap").cast::<u8>()).expect("an address");
        put(&mut self.maps, (start, bytes as usize))
    }

    fn unmap(&mut self, map: usize) {
        let (start, bytes) = self.maps[map].take().expect("a map");
        // SAFETY: it was mapped with this length, and nothing points to it any more.
        unsafe { rustix::mm::munmap(start.as_ptr().cast(), bytes) }.expect("munmap");
    }

    fn load(&mut self, map: usize, offset: u64) {
        // SAFETY: `at` gives an address within the map.
        std::hint::black_box(unsafe { self.at(map, offset).read_volatile() });
    }

    fn store(&mut self, map: usize, offset: u64) {
        // SAFETY: `at` gives an address within the map, which nothing else uses.
        unsafe { self.at(map, offset).write_volatile(0x5b) };
    }

    fn msync(&mut self, map: usize, offset: u64, bytes: u64) {
        // SAFETY: the range is within the map; its content is not changed.
        unsafe { rustix::mm::msync(self.at(map, offset).cast(), bytes as usize, MsyncFlags::SYNC) }.expect("msync");
    }

    fn sync(&mut self) {
        rustix::fs::sync();
    }

    fn quiet(&mut self) {
        rustix::fs::sync();
        std::fs::write("/proc/sys/vm/drop_caches", "3").expect("drop_caches needs root");
        std::thread::sleep(Duration::from_millis(300));
    }
}
