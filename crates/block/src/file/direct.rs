//! A file that belongs to the program: a database's own, read and written with direct I/O.
//!
//! The content is not protected against the program. Measurements use a [`ScratchFile`](super::ScratchFile) or a raw
//! drive instead.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FileType};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use super::statx;
use crate::{BlockError, ByteSize, ExtentMap, IoBuffer, PlacementUnknown};

/// Smallest unit of direct I/O if the file system does not report it.
const PAGE: ByteSize = ByteSize::kib(4);

/// A file of the program's own, open with `O_DIRECT`. Its clones are the same file, and several threads may use it.
///
/// ```no_run
/// use flashwise_block::{ByteSize, IoBuffer, DirectFile};
/// # fn main() -> Result<(), flashwise_block::BlockError> {
/// let file = DirectFile::create("app.pages".as_ref(), ByteSize::mib(64))?;
/// file.write_at(&IoBuffer::copy_of(&[7; 4096]), ByteSize(0))?;
/// file.sync()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DirectFile {
    file: Arc<OwnedFd>,
    path: PathBuf,
    size: ByteSize,
}

impl DirectFile {
    /// An existing file, of the size that it has.
    ///
    /// # Errors
    /// [`BlockError::Refused`] when it is no regular file or its file system has no direct I/O; [`BlockError::Os`] when
    /// it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, BlockError> {
        Self::with(path, OpenOptions::new().read(true).write(true))
    }

    /// Creates a file of `size` bytes, allocated in full; the name must not exist.
    ///
    /// # Errors
    /// As [`DirectFile::open`], and when there is too little space: the file is then deleted.
    #[allow(clippy::disallowed_methods, reason = "a file that was just made")]
    pub fn create(path: &Path, size: ByteSize) -> Result<Self, BlockError> {
        let mut file = Self::with(path, OpenOptions::new().read(true).write(true).create_new(true))?;
        let allocated =
            retry_on_intr(|| rustix::fs::fallocate(&file.file, FallocateFlags::empty(), 0, size.bytes().max(1)));
        allocated.map_err(|error| {
            // A partly allocated file is useless; that it cannot be deleted either changes nothing.
            let _ = std::fs::remove_file(path);
            file.failed(&format!("allocating {size}"), error)
        })?;
        file.size = size;
        Ok(file)
    }

    fn with(path: &Path, options: &mut OpenOptions) -> Result<Self, BlockError> {
        let opened = options.custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(path);
        let file: OwnedFd = opened.map_err(|error| failed_to_open(path, &error))?.into();
        let told = rustix::fs::fstat(&file).map_err(|error| BlockError::os(place(path), &error.into()))?;
        if FileType::from_raw_mode(told.st_mode) != FileType::RegularFile {
            return Err(BlockError::Refused(format!("{}: it is not a regular file", path.display())));
        }
        let size = ByteSize(u64::try_from(told.st_size).unwrap_or_default());
        Ok(Self { file: Arc::new(file), path: path.to_owned(), size })
    }

    /// Its size when it was opened or created.
    pub fn size(&self) -> ByteSize {
        self.size
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `into` from the file, by one system call where the kernel gives all of it at once.
    ///
    /// # Errors
    /// [`BlockError::Os`] when the read fails or the file ends before.
    pub fn read_at(&self, into: &mut [u8], offset: ByteSize) -> Result<(), BlockError> {
        let mut done = 0;
        while done < into.len() {
            let read = retry_on_intr(|| pread(&self.file, &mut into[done..], offset.bytes() + done as u64));
            match read.map_err(|error| self.failed("read", error))? {
                0 => return Err(self.failed("read beyond the end", Errno::IO)),
                read => done += read,
            }
        }
        Ok(())
    }

    /// Writes `bytes` into the file.
    ///
    /// # Errors
    /// [`BlockError::Os`] when the write fails; a part of it may have been done.
    pub fn write_at(&self, bytes: &IoBuffer, offset: ByteSize) -> Result<(), BlockError> {
        let mut done = 0;
        while done < bytes.len() {
            let written = retry_on_intr(|| pwrite(&self.file, &bytes[done..], offset.bytes() + done as u64));
            match written.map_err(|error| self.failed("write", error))? {
                0 => return Err(self.failed("write", Errno::IO)),
                written => done += written,
            }
        }
        Ok(())
    }

    /// Makes everything that was written durable (`fdatasync`). After it has failed once, nothing is known to be
    /// durable: the kernel may say the next time that all is well.
    ///
    /// # Errors
    /// [`BlockError::Os`].
    pub fn sync(&self) -> Result<(), BlockError> {
        retry_on_intr(|| rustix::fs::fdatasync(&self.file)).map_err(|error| self.failed("sync", error))
    }

    pub(super) fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    pub(super) fn file_system(&self) -> String {
        statx::file_system(&self.file)
    }

    pub(super) fn extents(&self) -> Result<ExtentMap, PlacementUnknown> {
        super::fiemap::extents(&self.file, &self.file_system(), self.size)
    }

    /// Smallest unit of direct I/O.
    pub(super) fn logical_block(&self) -> ByteSize {
        let offset = statx::direct_alignment(&self.file).map_or(0, |alignment| alignment.offset);
        if offset.is_power_of_two() { ByteSize(u64::from(offset.max(512))) } else { PAGE }
    }

    fn failed(&self, what: &str, error: Errno) -> BlockError {
        BlockError::os(format!("{}: {what}", self.path.display()), &error.into())
    }
}

fn place(path: &Path) -> String {
    format!("{}: open", path.display())
}

fn failed_to_open(path: &Path, error: &std::io::Error) -> BlockError {
    match error.raw_os_error() {
        Some(libc::EINVAL) => {
            BlockError::Refused(format!("{}: its file system has no direct I/O (O_DIRECT)", path.display()))
        }
        _ => BlockError::os(place(path), error),
    }
}
