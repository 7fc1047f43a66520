//! The drive mounted: a file system on a loop device over the drive's file.
//!
//! ```text
//!   a database ─▶ ext4, xfs at DIR ─▶ /dev/loopN, direct I/O ─▶ /run/flashwise/…/fuse/disk ─▶ the drive
//! ```
//!
//! Everything that waits for the drive, from `losetup` to `umount`, is done by a thread of its own while the server's
//! thread serves. It is removed in the opposite order: the file system is unmounted, which waits for processes that use
//! it; the loop device is detached; the file is unmounted. After a failure it is cut off ([`Volume`]'s `drop`): the
//! kernel's connection to the file is ended first, so that nothing can wait for a drive that serves no more. Leftovers
//! of a killed drive are removed by the next one ([`runtime_directory`]).
//!
//! A file system is created without discarding: an empty drive has nothing to discard, and the content of a
//! preconditioned drive is to stay. Inode tables are left for the file system to fill when needed, as the drive reads
//! as zeros; otherwise a thread of ext4 would write them while a database is measured.

mod holders;
mod loops;
mod runtime_directory;
mod tools;

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flashwise_block::ByteSize;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::kernel_times::TimeSum;
use crate::mounts::{Mount, mounts};
use loops::{LoopDevice, OpenLoopDevice};
pub(crate) use runtime_directory::RuntimeDirectory;

/// How often it is looked whether a mount is still held.
const LOOK: Duration = Duration::from_millis(20);
/// Delay before busy mounts are reported: files of a program that has just ended are closed in a moment.
const MOMENT: Duration = Duration::from_millis(300);

/// A file system that a drive can be mounted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4
    Ext4,
    /// XFS
    Xfs,
}

impl FileSystem {
    /// As the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// The other kind.
    fn other(self) -> Self {
        match self {
            Self::Ext4 => Self::Xfs,
            Self::Xfs => Self::Ext4,
        }
    }

    /// The program that creates one, and its package.
    fn maker(self) -> (&'static str, &'static str) {
        match self {
            Self::Ext4 => ("mkfs.ext4", "e2fsprogs"),
            Self::Xfs => ("mkfs.xfs", "xfsprogs"),
        }
    }

    fn make_options(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-q", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1"],
            Self::Xfs => &["-q", "-K"],
        }
    }

    /// Mount options, with a time `scale`: ext4 commits its journal after that time on the drive's clock, XFS has no
    /// such option.
    fn mount_options(self, scale: f64) -> CString {
        let options = match self {
            Self::Ext4 if scale > 1.0 => {
                format!("discard,noinit_itable,commit={:.0}", (COMMIT_S * scale).min(LONGEST_COMMIT_S))
            }
            Self::Ext4 => "discard,noinit_itable".to_owned(),
            Self::Xfs => "discard".to_owned(),
        };
        CString::new(options).unwrap_or_default()
    }
}

/// Sends a message to the user while the server runs.
#[derive(Clone)]
pub(crate) struct Messages(pub(crate) Arc<dyn Fn(&str) + Send + Sync>);

impl Messages {
    pub(crate) fn send(&self, words: &str) {
        (self.0)(words);
    }
}

/// A mount that was checked and can be done.
#[derive(Clone, Debug)]
pub(crate) struct MountPlan {
    directory: PathBuf,
    kind: FileSystem,
    /// Offset of the file system on the drive.
    offset: ByteSize,
    losetup: PathBuf,
    maker: PathBuf,
    /// Seconds of the machine's for one of the drive's.
    scale: f64,
}

/// After so long ext4 commits its journal, and as long as it may.
const COMMIT_S: f64 = 5.0;
const LONGEST_COMMIT_S: f64 = 86_400.0;

impl MountPlan {
    /// Checks all requirements, and creates the drive's directory.
    ///
    /// # Errors
    /// In words: what is missing.
    pub(crate) fn prepare(
        directory: &Path,
        kind: FileSystem,
        offset: ByteSize,
    ) -> Result<(Self, RuntimeDirectory), String> {
        if !rustix::process::geteuid().is_root() {
            return Err("mounting a file system needs root; run this as root, or serve the drive with --nbd or --fuse"
                .to_owned());
        }
        let losetup = loops::losetup()?;
        let (maker, package) = kind.maker();
        let maker = tools::find(maker, package)?;
        let made = RuntimeDirectory::create(Path::new(runtime_directory::BASE), &losetup);
        let home =
            made.map_err(|error| format!("its file needs a directory in {}: {error}", runtime_directory::BASE))?;
        let directory = check(directory)?;
        Ok((Self { directory, kind, offset, losetup, maker, scale: 1.0 }, home))
    }

    /// Makes a loop device over the drive's file, which is served meanwhile; `scale` seconds of the machine's are one
    /// of the drive's.
    pub(crate) fn attach(self, file: &Path, sector: u64, scale: f64) -> Result<Volume, String> {
        let (device, held) = LoopDevice::attach(&self.losetup, file, sector, self.offset)?;
        device.set_queue_limits(scale);
        Ok(Volume { plan: Self { scale, ..self }, device, held: Some(held), abort: None })
    }
}

/// An empty directory at which nothing is mounted.
fn check(directory: &Path) -> Result<PathBuf, String> {
    crate::fuse::clear_stale_mount(directory)?;
    let real = directory.canonicalize().map_err(|error| format!("{error}; give an empty directory"))?;
    let mounts = mounts().map_err(|error| format!("mountinfo: {error}"))?;
    // Checked before the directory is read: an existing mount might not respond.
    if let Some(mount) = mounts.iter().rfind(|mount| mount.point == real) {
        let Mount { kind, source, .. } = mount;
        return Err(format!("{source} ({kind}) is mounted here already; unmount it, or give another directory"));
    }
    crate::fuse::check(&real)
}

/// A drive with a loop device, and perhaps a file system that is mounted.
#[derive(Debug)]
pub(crate) struct Volume {
    plan: MountPlan,
    device: LoopDevice,
    /// Until it is mounted, and so held by that.
    held: Option<OpenLoopDevice>,
    /// Ends the kernel's connection to the drive's file where anything is written to it.
    pub(crate) abort: Option<File>,
}

impl Volume {
    /// Where it is mounted.
    pub(crate) fn directory(&self) -> &Path {
        &self.plan.directory
    }

    /// The loop device.
    pub(crate) fn device(&self) -> PathBuf {
        self.device.path()
    }

    /// The device's requests so far, by the kernel's account; `None` if another drive's device has its name.
    pub(crate) fn requests(&self) -> Option<TimeSum> {
        let _held = self.device.open_if_same()?;
        self.device.requests()
    }

    /// Records what is to be removed if the drive is killed.
    ///
    /// # Errors
    /// In words: nothing can be recorded.
    pub(crate) fn note_in(&self, home: &RuntimeDirectory) -> Result<(), String> {
        home.note_device(&self.device).map_err(|error| format!("its loop device cannot be recorded: {error}"))
    }

    /// Returns the work of creating the file system, on an empty drive, and mounting it or the existing one, for
    /// another thread. A drive with content is never formatted.
    pub(crate) fn mounting(&mut self, is_blank: bool) -> impl FnOnce() -> Result<FileSystem, String> + Send + 'static {
        let (plan, device, held) = (self.plan.clone(), self.device(), self.held.take());
        move || {
            // Another device must not get its name while it is formatted.
            let _held = held;
            if is_blank {
                let options = plan.kind.make_options().iter().map(OsStr::new);
                let arguments: Vec<_> = options.chain([device.as_os_str()]).collect();
                tools::run(&plan.maker, &arguments)
                    .map_err(|error| format!("the file system cannot be created: {error}"))?;
                return mount_as(&plan, &device, plan.kind);
            }
            let tried = mount_as(&plan, &device, plan.kind);
            let found = tried.or_else(|error| mount_as(&plan, &device, plan.kind.other()).map_err(|_| error));
            let help = "a drive with content is not formatted; give another data file, or serve this one with --fuse";
            found.map_err(|error| format!("{error}; {help}"))
        }
    }

    /// Returns the work of unmounting the file system, as soon as no process uses it, or at once in a `hurry`, and of
    /// detaching the loop device; for another thread.
    pub(crate) fn unmounting(&self, hurry: Arc<AtomicBool>, messages: Messages) -> impl FnOnce() + Send + 'static {
        let device = self.device.clone();
        move || {
            // Another process may have unmounted and detached it, and its name may be that of another device.
            let Some(held) = device.open_if_same() else { return };
            let Some(numbers) = device.numbers() else { return };
            let (began, mut is_told) = (Instant::now(), false);
            while let Some(busy) = unmount_next(numbers, hurry.load(Ordering::Relaxed)) {
                if !is_told && began.elapsed() > MOMENT {
                    is_told = true;
                    messages.send(&words_of(&busy));
                }
                std::thread::sleep(LOOK);
            }
            device.detach();
            drop(held);
        }
    }
}

/// Mounts a file system.
fn mount_as(plan: &MountPlan, device: &Path, kind: FileSystem) -> Result<FileSystem, String> {
    let (name, options) = (kind.name(), kind.mount_options(plan.scale));
    let mounted = mount(device, &plan.directory, name, MountFlags::NOATIME, options.as_c_str());
    mounted.map(|()| kind).map_err(|error| match error {
        Errno::NODEV => format!("this kernel does not support {name}"),
        error => format!("the file system cannot be mounted: {error}"),
    })
}

/// Unmounts the mounts of a device, the latest first. Returns a busy mount.
fn unmount_next(device: (u32, u32), hurry: bool) -> Option<Mount> {
    loop {
        let mount = mounts().ok()?.into_iter().rfind(|mount| mount.device == device)?;
        if hurry {
            // Processes that use it lose the drive now; as much data as possible should be on it.
            let _ = File::open(&mount.point).map(|directory| rustix::fs::syncfs(&directory));
        }
        let flags = if hurry { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        match unmount(&mount.point, flags) {
            Ok(()) => {}
            Err(Errno::BUSY) => return Some(mount),
            // Another process has unmounted it meanwhile, or it cannot be unmounted.
            Err(_) if mounts().is_ok_and(|mounts| !mounts.contains(&mount)) => {}
            Err(_) => return None,
        }
    }
}

fn words_of(busy: &Mount) -> String {
    let place = busy.point.display();
    let holders = holders::holders(&busy.point, &mounts().unwrap_or_default());
    let holders = holders.unwrap_or_else(|| "an unknown process".to_owned());
    format!("{place} is in use by {holders}; it is unmounted when they release it, or at once on Ctrl-C")
}

/// Unmounts all of some mounts at once, the latest first, whoever holds them.
fn unmount_all(which: impl Fn(&Mount) -> bool) {
    for mount in mounts().unwrap_or_default().iter().rev().filter(|mount| which(mount)) {
        // On failure it is not mounted any more.
        let _ = unmount(&mount.point, UnmountFlags::DETACH);
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if self.device.backing().is_none() {
            return;
        }
        // The drive is not served any more: nothing below may wait for it.
        if let Some(abort) = &mut self.abort {
            let _ = abort.write_all(b"1");
        }
        let Some(_held) = self.device.open_if_same() else { return };
        if let Some(numbers) = self.device.numbers() {
            unmount_all(|mount| mount.device == numbers);
        }
        self.device.detach();
    }
}
