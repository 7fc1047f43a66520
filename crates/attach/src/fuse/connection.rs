//! The kernel's connection to a mounted file, and how to end it from outside.
//!
//! A process that waits for a FUSE file system that does not respond can neither be killed nor interrupted, and a
//! `sync` anywhere on the machine waits with it. Only one thing helps: writing to the connection's `abort` file, which
//! lets every request fail. The file must be opened before it is needed, as opening it may wait too.
//!
//! Source: `Documentation/filesystems/fuse.rst` of Linux 6.18, *Control filesystem*. The connection's number is the
//! minor number of the mount's device (`fs/fuse/control.c`).

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::mounts::mounts;

/// Where distributions mount the control file system.
const CONTROL: &str = "/sys/fs/fuse/connections";

/// Opens the file that ends the connection of the mount at a place when anything is written to it.
///
/// # Errors
/// When nothing is mounted there, or the system gives no control over it.
pub(crate) fn abort_file(place: &Path) -> io::Result<File> {
    let mount = mounts()?.into_iter().rfind(|mount| mount.point == place);
    let (_, number) = mount.ok_or(io::ErrorKind::NotFound)?.device;
    let file = format!("{number}/abort");
    let open = |directory| -> io::Result<File> {
        Ok(openat(directory, &file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?.into())
    };
    // A private mount: many containers have none.
    match detached() {
        Ok(directory) => open(&directory),
        Err(_) => open(&File::open(CONTROL)?.into()),
    }
}

fn detached() -> io::Result<std::os::fd::OwnedFd> {
    let control = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&control)?;
    Ok(fsmount(&control, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}
