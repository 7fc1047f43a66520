//! Whether a device is mounted, used as swap, or being written by another process.
//!
//! Mounts are matched by the number of the mounted device, by the current meaning of the mount's source, and, for
//! btrfs, by the list of members, because a btrfs mount has a number of its own and names one member only. Mounts of
//! other namespaces are visible if this user may read a process in them; the exclusive open detects the rest.
//!
//! Source: Linux, `Documentation/filesystems/proc.rst`, section 3.5 (`mountinfo`) and 1.1 (`fdinfo`).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::system::{DeviceNumber, Named, Node, System};

/// A device that is in use, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) of: Used,
    pub(crate) how: How,
}

/// The object in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    Number(DeviceNumber),
    /// A device without a node, by the kernel's name.
    Name(String),
    /// A regular file: device and inode.
    File(u64, u64),
}

/// How something is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Mounted here.
    Mounted(String),
    /// Swapped to.
    Swap,
    /// Open for writing in a process.
    Written { pid: u32, name: String },
}

impl Use {
    /// Whether it is this device, or the file that backs the device.
    pub(crate) fn is_of(&self, node: &Node, backing: Option<Named>) -> bool {
        match &self.of {
            Used::Number(number) => *number == node.number,
            Used::Name(name) => *name == node.name,
            Used::File(device, inode) => backing == Some(Named::File(*device, *inode)),
        }
    }
}

/// Everything that is mounted or swapped to.
///
/// # Errors
/// When the kernel's own lists cannot be read: then nothing is known to be free.
pub(crate) fn mounts_and_swaps(system: &System) -> io::Result<Vec<Use>> {
    let ours = fs::read_to_string(system.proc.join("self/mountinfo"))?;
    let mut mounts: BTreeSet<String> = ours.lines().map(str::to_owned).collect();
    // Those of other namespaces, each once. The namespace of another user's process may be unreadable, and a process
    // may have ended.
    let mut namespaces = BTreeSet::new();
    for process in processes(system) {
        let namespace = fs::read_link(process.join("ns/mnt")).ok();
        if namespace.is_none_or(|namespace| namespaces.insert(namespace)) {
            let theirs = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
            mounts.extend(theirs.lines().map(str::to_owned));
        }
    }
    let mut uses: Vec<Use> = mounts.iter().flat_map(|line| mount(system, line)).collect();
    uses.extend(btrfs_members(system));
    match fs::read_to_string(system.proc.join("swaps")) {
        Ok(swaps) => uses.extend(swaps.lines().skip(1).filter_map(|line| swap(system, line))),
        // A kernel without swap has no such list.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(uses)
}

/// The devices of one line of `mountinfo`.
fn mount(system: &System, line: &str) -> Vec<Use> {
    let fields: Vec<&str> = line.split(' ').collect();
    let (Some(number), Some(point)) = (fields.get(2), fields.get(4)) else { return Vec::new() };
    let how = || How::Mounted(unescaped(point));
    let mut uses: Vec<Use> =
        number.parse().ok().map(|number| Use { of: Used::Number(number), how: how() }).into_iter().collect();
    let source = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').nth(1)).map(unescaped);
    if let Some(source) = source.filter(|source| source.starts_with('/'))
        && let Some(Named::Device(number)) = (system.named)(Path::new(&source))
        && !uses.iter().any(|known| known.of == Used::Number(number))
    {
        uses.push(Use { of: Used::Number(number), how: how() });
    }
    uses
}

/// Members of mounted btrfs file systems: `/sys/fs/btrfs/UUID/devices/NAME`.
fn btrfs_members(system: &System) -> Vec<Use> {
    let list = |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    list(system.sys.join("fs/btrfs"))
        .flat_map(|volume| list(volume.join("devices")))
        .filter_map(|member| fs::read_to_string(member.join("dev")).ok()?.parse().ok())
        .map(|number| Use { of: Used::Number(number), how: How::Mounted("a btrfs of several devices".into()) })
        .collect()
}

/// The device or file of one line of `/proc/swaps`.
fn swap(system: &System, line: &str) -> Option<Use> {
    let path = unescaped(line.split_whitespace().next()?);
    let of = match (system.named)(Path::new(&path)) {
        Some(Named::Device(number)) => Used::Number(number),
        Some(Named::File(device, inode)) => Used::File(device, inode),
        _ => Used::Name(Path::new(path.trim_end_matches(" (deleted)")).file_name()?.to_string_lossy().into_owned()),
    };
    Some(Use { of, how: How::Swap })
}

/// The kernel writes white space and backslashes as three octal digits.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.filter(|_| first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The directories of all processes.
fn processes(system: &System) -> Vec<PathBuf> {
    let entries = fs::read_dir(&system.proc).into_iter().flatten().flatten();
    let is_process = |name: &std::ffi::OsStr| name.to_string_lossy().parse::<u32>().is_ok();
    entries.filter(|entry| is_process(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// Other processes that have one of `devices`, or one of the files that back the device, open for writing, such as a
/// virtual machine or a database on a raw device. Only root sees those of other users.
pub(crate) fn writers(system: &System, devices: &BTreeSet<DeviceNumber>, files: &BTreeSet<(u64, u64)>) -> Vec<Use> {
    let mut uses = Vec::new();
    for process in processes(system) {
        let Some(pid) = process.file_name().and_then(|name| name.to_string_lossy().parse::<u32>().ok()) else {
            continue;
        };
        if pid == std::process::id() {
            continue;
        }
        for handle in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            let of = match (system.named)(&handle.path()) {
                Some(Named::Device(number)) if devices.contains(&number) => Used::Number(number),
                Some(Named::File(device, inode)) if files.contains(&(device, inode)) => Used::File(device, inode),
                _ => continue,
            };
            if is_writable(&process.join("fdinfo").join(handle.file_name())) {
                let name = fs::read_to_string(process.join("comm")).unwrap_or_default().trim().to_owned();
                uses.push(Use { of, how: How::Written { pid, name } });
            }
        }
    }
    uses
}

/// Whether the flags of an open file, octal as in `open(2)`, allow writing.
fn is_writable(fdinfo: &Path) -> bool {
    let text = fs::read_to_string(fdinfo).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

#[cfg(test)]
mod tests {
    use super::super::system::fake::Machine;
    use super::*;

    fn used(machine: &Machine) -> Vec<(Used, How)> {
        mounts_and_swaps(&machine.system()).unwrap().into_iter().map(|found| (found.of, found.how)).collect()
    }

    fn number(text: &str) -> Used {
        Used::Number(text.parse().unwrap())
    }

    #[test]
    fn a_mount_is_found_by_its_number_whatever_its_source_is_called() {
        let machine = Machine::new();
        machine.append("proc/self/mountinfo", "30 1 8:1 / /my\\040disk rw - ext4 /dev/disk/by-id/gone rw");
        assert!(used(&machine).contains(&(number("8:1"), How::Mounted("/my disk".into()))));
    }

    #[test]
    fn a_btrfs_mount_is_found_by_its_source_and_its_other_members_by_the_list_of_members() {
        let machine = Machine::new();
        machine.disk("sdb", "8:16");
        machine.disk("sdc", "8:32");
        let source = machine.path("dev/sdb");
        let line = format!("30 1 0:41 /@ /data rw shared:1 - btrfs {} rw,subvol=/@", source.display());
        machine.append("proc/self/mountinfo", &line);
        machine.write("sys/fs/btrfs/some-uuid/devices/sdc/dev", "8:32\n");
        let used = used(&machine);
        assert!(used.contains(&(number("8:16"), How::Mounted("/data".into()))), "{used:?}");
        assert!(used.iter().any(|(of, _)| *of == number("8:32")), "{used:?}");
    }

    #[test]
    fn mounts_of_the_first_process_count_too() {
        let machine = Machine::new();
        machine.write("proc/1/mountinfo", "30 1 8:1 / /host rw - ext4 /dev/sda1 rw\n");
        assert!(used(&machine).contains(&(number("8:1"), How::Mounted("/host".into()))));
    }

    #[test]
    fn swap_is_found_by_number_by_file_and_where_the_node_is_gone_by_name() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.write("swap file", "no number");
        for path in [machine.path("dev/sda"), machine.path("swap file"), "/gone/zram0".into()] {
            let path = path.display().to_string().replace(' ', "\\040");
            machine.append("proc/swaps", &format!("{path}\tpartition\t1024\t0\t-2"));
        }
        let found = used(&machine);
        assert!(found.contains(&(number("8:0"), How::Swap)), "{found:?}");
        assert!(found.contains(&(Used::Name("zram0".into()), How::Swap)), "{found:?}");
        assert!(found.iter().any(|(of, how)| matches!((of, how), (Used::File(..), How::Swap))), "{found:?}");
    }

    #[test]
    fn lists_that_cannot_be_read_are_an_error_and_not_an_empty_list() {
        let machine = Machine::new();
        std::fs::remove_file(machine.path("proc/self/mountinfo")).unwrap();
        assert!(mounts_and_swaps(&machine.system()).is_err());
        let other = Machine::new();
        std::fs::remove_file(other.path("proc/swaps")).unwrap();
        assert!(mounts_and_swaps(&other.system()).is_ok(), "a kernel without swap");
        std::fs::create_dir(other.path("proc/swaps")).unwrap();
        assert!(mounts_and_swaps(&other.system()).is_err());
    }

    #[test]
    fn a_process_counts_when_it_may_write_and_not_when_it_only_reads() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        let open = |pid: u32, flags: &str| {
            machine.write(&format!("proc/{pid}/comm"), "qemu\n");
            machine.write(&format!("proc/{pid}/fdinfo/5"), &format!("pos:\t0\nflags:\t{flags}\n"));
            std::fs::create_dir_all(machine.path(&format!("proc/{pid}/fd"))).unwrap();
            let handle = machine.path(&format!("proc/{pid}/fd/5"));
            std::os::unix::fs::symlink(machine.path("dev/sda"), handle).unwrap();
        };
        // No process has numbers that large.
        open(u32::MAX - 1, "0100000");
        open(u32::MAX, "0140002");
        let found = writers(&machine.system(), &BTreeSet::from(["8:0".parse().unwrap()]), &BTreeSet::new());
        assert_eq!(found, [Use { of: number("8:0"), how: How::Written { pid: u32::MAX, name: "qemu".into() } }]);
        assert!(writers(&machine.system(), &BTreeSet::new(), &BTreeSet::new()).is_empty());
    }

    #[test]
    fn octal_escapes_are_undone_and_everything_else_is_left_alone() {
        assert_eq!(unescaped("/a\\040b\\011c\\134d"), "/a b\tc\\d");
        for text in ["", "\\", "\\04", "\\999", "plain", "\\04x"] {
            assert_eq!(unescaped(text), text);
        }
    }
}
