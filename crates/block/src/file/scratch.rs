//! The only file that flashwise writes to for a measurement: new, small relative to the free space, deleted at the end.

use std::ffi::OsStr;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use super::statx::{DirectAlignment, direct_alignment, file_system};
use crate::{BlockError, ByteSize, ExtentMap, IoBuffer, PlacementUnknown};

/// The size of a scratch file is a multiple of this.
const STEP: ByteSize = ByteSize::mib(1);

/// A scratch file takes at most one `SHARE`th of the free space.
const SHARE: u64 = 10;

/// How `IoBuffer`s are aligned, and the largest alignment that is tried.
const PAGE: ByteSize = ByteSize::kib(4);

/// A new file for measurements, in a directory that the user named.
///
/// It did not exist before, takes at most 10 % of the file system's free space, is allocated in full, and has no name:
/// it is opened with `O_TMPFILE` or, if the file system does not support that, created with `O_CREAT|O_EXCL` and
/// unlinked at once. The kernel frees it when the last handle is closed, also after a `SIGKILL`.
///
/// Without `O_TMPFILE`, a kill between creating and unlinking leaves an empty file `.flashwise-…`. The next scratch
/// file in that directory deletes it: a file with such a name, of the same user, and empty. That loses no data, even if
/// another program is just creating one, because an open file stays open.
#[derive(Debug)]
pub struct ScratchFile {
    file: Arc<OwnedFd>,
    directory: PathBuf,
    file_system: String,
    size: ByteSize,
}

impl ScratchFile {
    /// The smallest scratch file: less than that fits into the caches of some drives.
    pub const SMALLEST: ByteSize = ByteSize::mib(64);

    /// A new file in `directory` of `wanted` bytes, or of 10 % of the free space where that is less; whole MiB.
    ///
    /// # Errors
    /// [`BlockError::Refused`] when `directory` is an existing file or a device, when the size would be less than
    /// [`ScratchFile::SMALLEST`], and when the file system has no direct I/O; [`BlockError::Os`] for everything that
    /// the operating system refuses.
    pub fn create(directory: &Path, wanted: ByteSize) -> Result<Self, BlockError> {
        let failed = |what: &str| failed(directory, what);
        let (opened, size) = open_directory(directory, wanted)?;
        let file = open_nameless(opened.as_fd()).map_err(failed("creating a scratch file"))?;
        rustix::fs::fcntl_setfl(&file, OFlags::DIRECT).map_err(|error| match error {
            Errno::INVAL => unfit(directory, "has no direct I/O"),
            _ => failed("switching to direct I/O")(error),
        })?;
        retry_on_intr(|| rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size.0)).map_err(
            |error| match error {
                Errno::OPNOTSUPP => unfit(directory, "cannot preallocate a file (fallocate)"),
                _ => failed(&format!("allocating {size} for the scratch file"))(error),
            },
        )?;
        Ok(Self {
            file_system: file_system(&file),
            file: Arc::new(file),
            directory: fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned()),
            size,
        })
    }

    /// The size that [`ScratchFile::create`] would use now; creates no file.
    ///
    /// # Errors
    /// As there, as far as they can be found without creating a file.
    pub fn planned_size(directory: &Path, wanted: ByteSize) -> Result<ByteSize, BlockError> {
        open_directory(directory, wanted).map(|(_, size)| size)
    }

    /// How large it became.
    pub fn size(&self) -> ByteSize {
        self.size
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The type of the file system that it is on, as in `/proc/mounts`.
    pub fn file_system(&self) -> &str {
        &self.file_system
    }

    /// Where the file is on the drive below its file system. To be called after writing; valid as long as the file
    /// exists.
    ///
    /// # Errors
    /// [`PlacementUnknown`] with the reason if the file system does not report it, or may move the file.
    pub fn extents(&self) -> Result<ExtentMap, PlacementUnknown> {
        super::fiemap::extents(&self.file, &self.file_system, self.size)
    }

    pub(super) fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    /// Smallest unit of direct I/O, from the kernel (`STATX_DIOALIGN`, Linux 6.1) or by trying. Writes zeros to the
    /// first page: a hole is read without any check of alignment.
    pub(super) fn logical_block(&self) -> Result<ByteSize, BlockError> {
        let page = IoBuffer::zeroed(PAGE.0 as usize);
        retry_on_intr(|| pwrite(&self.file, &page, 0)).map_err(|error| match error {
            Errno::INVAL => unfit(&self.directory, "does not accept direct writes of 4 KiB"),
            _ => BlockError::os(format!("{}: first write", self.directory.display()), &error.into()),
        })?;
        if let Some(DirectAlignment { memory, offset }) = direct_alignment(&self.file) {
            let sound = (1..=PAGE.0 as u32).contains(&memory) && offset.is_power_of_two() && offset <= STEP.0 as u32;
            return match sound {
                true => Ok(ByteSize(u64::from(offset.max(512)))),
                false => {
                    let why = format!("needs an alignment to {memory} bytes in memory and {offset} in the file");
                    Err(unfit(&self.directory, &why))
                }
            };
        }
        let mut page = page;
        let mut works = |unit: ByteSize| pread(&self.file, &mut page[..unit.0 as usize], 0) == Ok(unit.0 as usize);
        [ByteSize(512), PAGE]
            .into_iter()
            .find(|&unit| works(unit))
            .ok_or_else(|| unfit(&self.directory, "does not accept direct reads of 4 KiB"))
    }
}

/// Adds the failed operation to an error of the system.
fn failed(directory: &Path, what: &str) -> impl Fn(Errno) -> BlockError + use<> {
    let context = format!("{}: {what}", directory.display());
    move |error: Errno| BlockError::os(context.clone(), &error.into())
}

/// The directory, and how large a scratch file in it may be now.
fn open_directory(directory: &Path, wanted: ByteSize) -> Result<(OwnedFd, ByteSize), BlockError> {
    refuse_what_is_no_directory(directory)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened =
        rustix::fs::open(directory, flags, Mode::empty()).map_err(failed(directory, "opening the directory"))?;
    let space = rustix::fs::fstatvfs(&opened).map_err(failed(directory, "reading the free space"))?;
    let size = capped_size(directory, wanted, ByteSize(space.f_bavail.saturating_mul(space.f_frsize)))?;
    Ok((opened, size))
}

fn unfit(directory: &Path, why: &str) -> BlockError {
    BlockError::Refused(format!(
        "{}: measuring a drive needs direct I/O (O_DIRECT) to a preallocated file, but this file system {why}; give a \
         directory on a real disk (ext4, XFS, btrfs, f2fs)",
        directory.display()
    ))
}

/// Existing files and devices are never opened for writing, whatever the rest of the program does.
fn refuse_what_is_no_directory(path: &Path) -> Result<(), BlockError> {
    let kind = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(metadata) => metadata.file_type(),
        Err(error) => return Err(BlockError::os(format!("{}: finding the directory", path.display()), &error)),
    };
    let reason = if kind.is_file() {
        "is an existing file, and existing files are never written to"
    } else if kind.is_block_device() {
        "is a block device, and a scratch file needs a directory"
    } else {
        "is neither a directory nor a disk"
    };
    Err(BlockError::Refused(format!(
        "{}: {reason}; give a directory: flashwise creates a file in it and deletes it afterwards",
        path.display()
    )))
}

/// `wanted`, but at most 10 % of `free`, in whole MiB.
fn capped_size(directory: &Path, wanted: ByteSize, free: ByteSize) -> Result<ByteSize, BlockError> {
    let smallest = ScratchFile::SMALLEST;
    let whole = |size: ByteSize| ByteSize(size.0 - size.0 % STEP.0);
    if wanted < smallest {
        return Err(BlockError::Refused(format!(
            "a scratch file of {wanted} is too small; request {smallest} or more"
        )));
    }
    let cap = whole(ByteSize(free.0 / SHARE));
    if cap < smallest {
        return Err(BlockError::Refused(format!(
            "{}: a scratch file needs at least {smallest} and may take at most 10 % of the free space, so {} must be \
             free on this file system, but only {free} are; free some space or give a directory on another disk",
            directory.display(),
            smallest * SHARE,
        )));
    }
    Ok(whole(wanted).min(cap))
}

/// A new file in `directory` without a name.
pub(super) fn open_nameless(directory: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    // O_EXCL with O_TMPFILE: the file can never get a name.
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, c".", flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => open_and_unlink(directory),
        opened => opened,
    }
}

/// The same where the file system has no `O_TMPFILE`.
#[allow(clippy::disallowed_methods, reason = "a scratch file that was just made, or an empty leftover of one")]
fn open_and_unlink(directory: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    remove_leftovers(directory);
    loop {
        let random = RandomState::new().build_hasher().finish();
        let name = format!(".flashwise-{}-{random:016x}", std::process::id());
        match open_new(directory, OsStr::new(&name)) {
            Err(Errno::EXIST) => {}
            Ok(file) => {
                return match rustix::fs::unlinkat(directory, name.as_str(), AtFlags::empty()) {
                    // Another process deleted it as a leftover.
                    Ok(()) | Err(Errno::NOENT) => Ok(file),
                    Err(error) => Err(error),
                };
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether a name is one that [`open_and_unlink`] gives: `.flashwise-`, decimal digits, `-`, 16 hexadecimal digits.
fn is_ours(name: &str) -> bool {
    let parts = name.strip_prefix(".flashwise-").and_then(|rest| rest.split_once('-'));
    let all = |text: &str, test: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(test);
    parts.is_some_and(|(process, random)| {
        all(process, u8::is_ascii_digit) && random.len() == 16 && all(random, u8::is_ascii_hexdigit)
    })
}

/// Deletes what a killed run left. A file that cannot be examined or deleted is kept.
#[allow(clippy::disallowed_methods, reason = "a scratch file that was just made, or an empty leftover of one")]
fn remove_leftovers(directory: BorrowedFd<'_>) {
    let Ok(user) = fs::metadata("/proc/self").map(|metadata| metadata.uid()) else { return };
    let Ok(entries) = rustix::fs::Dir::read_from(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Ok(status) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let is_regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        let is_empty = status.st_size == 0 && status.st_blocks == 0 && status.st_nlink == 1;
        if name.to_str().is_ok_and(is_ours) && is_regular && is_empty && status.st_uid == user {
            let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        }
    }
}

/// Creates `name`; an existing file or link is an error and is not changed.
fn open_new(directory: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: ByteSize = ByteSize::mib(1);

    fn capped(wanted: ByteSize, free: ByteSize) -> Result<ByteSize, String> {
        capped_size(Path::new("/data"), wanted, free).map_err(|error| error.to_string())
    }

    #[test]
    fn a_scratch_file_is_as_large_as_wanted_but_at_most_a_tenth_of_the_free_space_in_whole_mib() {
        assert_eq!(capped(ByteSize::gib(1), ByteSize::gib(100)), Ok(ByteSize::gib(1)));
        assert_eq!(capped(ByteSize::gib(1), ByteSize::gib(10)), Ok(ByteSize::gib(1)));
        assert_eq!(capped(ByteSize::gib(1), ByteSize(ByteSize::gib(10).0 - 1)), Ok(ByteSize::mib(1023)));
        assert_eq!(capped(ByteSize(MIB.0 * 100 + 4096), ByteSize::gib(100)), Ok(ByteSize::mib(100)));
        assert_eq!(capped(ByteSize(u64::MAX), ByteSize::gib(1)), Ok(ByteSize::mib(102)));
        assert_eq!(capped(MIB * 64, MIB * 640), Ok(MIB * 64));
    }

    #[test]
    fn too_little_space_is_told_with_what_is_free_and_what_is_needed() {
        let error = capped(ByteSize::gib(1), ByteSize(MIB.0 * 640 - 1)).unwrap_err();
        assert!(error.starts_with("/data: ") && error.contains("640 MiB must be free"), "{error}");
        let error = capped(ByteSize::gib(1), ByteSize::mib(100)).unwrap_err();
        assert!(error.contains("100 MiB are"), "{error}");
        assert!(capped(ByteSize::mib(63), ByteSize::gib(100)).unwrap_err().contains("64 MiB or more"));
    }

    #[test]
    fn an_existing_file_or_link_is_never_opened_in_place_of_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let handle = fs::File::open(directory.path()).unwrap();
        let path = directory.path().join("precious");
        fs::write(&path, "data").unwrap();
        std::os::unix::fs::symlink("nowhere", directory.path().join("dangling")).unwrap();
        for name in ["precious", "dangling"] {
            assert_eq!(open_new(handle.as_fd(), OsStr::new(name)).unwrap_err(), Errno::EXIST);
        }
        assert_eq!(fs::read(&path).unwrap(), b"data");
        assert!(!directory.path().join("nowhere").exists());
    }

    #[test]
    fn without_o_tmpfile_the_name_is_gone_as_soon_as_the_file_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let handle = fs::File::open(directory.path()).unwrap();
        let file = open_and_unlink(handle.as_fd()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(pwrite(&file, b"still usable", 0), Ok(12));
    }

    #[test]
    fn a_leftover_of_a_killed_run_is_removed_and_nothing_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let leftover = ".flashwise-4711-0123456789abcdef";
        let others = [
            ".flashwise-4711-0123456789abcde",
            ".flashwise-4711-0123456789abcdeg",
            ".flashwise--0123456789abcdef",
            ".flashwise-x-0123456789abcdef",
            "flashwise-4711-0123456789abcdef",
            "notes",
        ];
        others.iter().chain([&leftover]).for_each(|name| fs::write(path(name), "").unwrap());
        fs::write(path(".flashwise-1-0000000000000000"), "not empty").unwrap();
        fs::create_dir(path(".flashwise-2-0000000000000000")).unwrap();
        std::os::unix::fs::symlink(path("notes"), path(".flashwise-3-0000000000000000")).unwrap();
        let count = || fs::read_dir(directory.path()).unwrap().count();
        let before = count();
        let handle = fs::File::open(directory.path()).unwrap();
        drop(open_and_unlink(handle.as_fd()).unwrap());
        assert!(!path(leftover).exists());
        assert_eq!(count(), before - 1);
    }
}
