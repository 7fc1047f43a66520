//! Block devices as the kernel lists them: in `/sys/dev/block`, by number, never by name.
//!
//! A name proves nothing: `/dev/sda`, a link below `/dev/disk/by-id` and a hand-made node are one device, and a path
//! that the kernel remembers may have another meaning now. Every comparison here is one of device numbers, or of device
//! and inode for regular files.
//!
//! Source: Linux, `Documentation/ABI/stable/sysfs-block`, `Documentation/ABI/testing/sysfs-block-device`.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::footprint::Target;

/// A device's number, major and minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DeviceNumber {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl DeviceNumber {
    /// From the number as `stat` gives it.
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.trim().split_once(':').ok_or(())?;
        Ok(Self { major: major.parse().map_err(|_| ())?, minor: minor.parse().map_err(|_| ())? })
    }
}

/// The current meaning of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A block device.
    Device(DeviceNumber),
    /// A regular file: its file system's device and its inode.
    File(u64, u64),
    /// Anything else.
    Other,
}

/// The backing of a loop device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopStatus {
    pub(crate) backing: Named,
    /// Where in that it starts, bytes.
    pub(crate) offset: u64,
    /// How many bytes of it at most; 0 for all.
    pub(crate) limit: u64,
}

/// Follows links; `None` where nothing is.
fn stat(path: &Path) -> Option<Named> {
    let metadata = fs::metadata(path).ok()?;
    Some(match metadata.file_type() {
        kind if kind.is_block_device() => Named::Device(DeviceNumber::from_raw(metadata.rdev())),
        kind if kind.is_file() => Named::File(metadata.dev(), metadata.ino()),
        _ => Named::Other,
    })
}

/// Directories where the kernel and udev describe devices.
#[derive(Clone, Debug)]
pub(crate) struct System {
    pub(crate) sys: PathBuf,
    pub(crate) proc: PathBuf,
    pub(crate) by_id: PathBuf,
    pub(crate) udev: PathBuf,
    /// The meanings of paths; tests have names without devices.
    pub(crate) named: fn(&Path) -> Option<Named>,
    /// The backing of loop devices.
    pub(crate) loop_status: fn(&Node) -> io::Result<LoopStatus>,
    /// The table of a mapped device.
    pub(crate) table: fn(&Node) -> io::Result<Vec<Target>>,
}

/// One block device in sysfs, whole or a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) number: DeviceNumber,
    /// The kernel's name, such as `nvme0n1p2`.
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
}

impl System {
    /// This machine.
    pub(crate) fn real() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
            by_id: "/dev/disk/by-id".into(),
            udev: "/run/udev/data".into(),
            named: stat,
            loop_status: super::kernel::loop_status,
            table: super::kernel::table,
        }
    }

    /// One number for all paths to a disk: the lowest of those that have its world-wide name.
    pub(crate) fn same_disk(&self, node: &Node) -> io::Result<DeviceNumber> {
        let name = |node: &Node| node.attribute("wwid").or_else(|| node.attribute("device/wwid"));
        let Some(wanted) = name(node) else { return Ok(node.number) };
        let same = self.disks()?.into_iter().filter(|disk| name(disk).as_ref() == Some(&wanted));
        Ok(same.map(|disk| disk.number).chain([node.number]).min().unwrap_or(node.number))
    }

    /// The device of a number.
    pub(crate) fn node(&self, number: DeviceNumber) -> io::Result<Node> {
        let directory = fs::canonicalize(self.sys.join("dev/block").join(number.to_string()))?;
        Node::at(directory).ok_or_else(|| io::Error::other(format!("sysfs does not describe device {number}")))
    }

    /// Every whole block device.
    pub(crate) fn disks(&self) -> io::Result<Vec<Node>> {
        // Not `/sys/block`: where devices are namespaces of a container, only this one is complete.
        let numbers = fs::read_dir(self.sys.join("dev/block"))?;
        let mut nodes: Vec<Node> = numbers
            .filter_map(|entry| fs::canonicalize(entry.ok()?.path()).ok())
            .filter_map(Node::at)
            .filter(|node| node.partition().is_none())
            .collect();
        nodes.sort_by_key(|node| node.number);
        Ok(nodes)
    }
}

impl Node {
    fn at(directory: PathBuf) -> Option<Self> {
        let number = fs::read_to_string(directory.join("dev")).ok()?.parse().ok()?;
        Some(Self { number, name: directory.file_name()?.to_string_lossy().into_owned(), directory })
    }

    /// The content of an attribute, without surrounding white space and NULs; `None` if it is missing or empty.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let bytes = fs::read(self.directory.join(name)).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// An attribute that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }

    /// Which partition of its disk it is; `None` for a whole device.
    pub(crate) fn partition(&self) -> Option<u64> {
        self.number("partition")
    }

    /// The disk that it is a partition of.
    pub(crate) fn disk(&self) -> Option<Self> {
        self.partition()?;
        Self::at(self.directory.parent()?.to_owned())
    }

    /// Its partitions.
    pub(crate) fn partitions(&self) -> io::Result<Vec<Self>> {
        let entries = fs::read_dir(&self.directory)?;
        let mut nodes: Vec<Self> = entries
            .filter_map(|entry| fs::canonicalize(entry.ok()?.path()).ok())
            .filter_map(Self::at)
            .filter(|node| node.directory != self.directory && node.partition().is_some())
            .collect();
        nodes.sort_by_key(|node| node.number);
        Ok(nodes)
    }

    /// Devices made of it: device mapper, LVM, md, bcache.
    pub(crate) fn holders(&self) -> io::Result<Vec<Self>> {
        self.linked("holders")
    }

    /// Devices that it is made of.
    pub(crate) fn slaves(&self) -> io::Result<Vec<Self>> {
        self.linked("slaves")
    }

    /// The path that a loop device was set up with; the kernel adds `" (deleted)"` where the file has no name any more.
    pub(crate) fn loop_backing(&self) -> Option<String> {
        self.attribute("loop/backing_file")
    }

    /// Whether it is a loop device that is set up.
    pub(crate) fn is_bound_loop(&self) -> bool {
        self.directory.join("loop").is_dir()
    }

    /// The devices that a directory of links names. A broken link is an error: its target is unknown.
    fn linked(&self, below: &str) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(self.directory.join(below)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut nodes = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let unknown = |why: String| io::Error::other(format!("{}: {why}", path.display()));
            let directory = fs::canonicalize(&path).map_err(|error| unknown(error.to_string()))?;
            nodes.push(Self::at(directory).ok_or_else(|| unknown("it is not a device".into()))?);
        }
        nodes.sort_by_key(|node| node.number);
        Ok(nodes)
    }
}

#[cfg(test)]
pub(super) mod fake {
    //! A machine made of files: disks, partitions, holders, mounts, to be taken apart by the tests.

    use super::*;

    /// A simulated machine; deleted when dropped.
    pub(crate) struct Machine {
        root: tempfile::TempDir,
    }

    /// A path means the device whose number stands in the file there; a path without a number is a regular file.
    fn named(path: &Path) -> Option<Named> {
        let text = fs::read_to_string(path).ok()?;
        let metadata = fs::metadata(path).ok()?;
        Some(text.parse().map_or(Named::File(metadata.dev(), metadata.ino()), Named::Device))
    }

    /// The backing recorded by `loop_with`, or the current meaning of the path that the loop device was set up with.
    fn loop_status(node: &Node) -> io::Result<LoopStatus> {
        let unknown = || io::Error::other(format!("{}: no such node", node.name));
        if let Some(status) = node.attribute("status_of_test") {
            let words: Vec<&str> = status.split(' ').collect();
            let number = |word: &str| word.parse().map_err(|_| unknown());
            let &["file", device, inode, offset, limit] = &*words else { return Err(unknown()) };
            let backing = Named::File(number(device)?, number(inode)?);
            return Ok(LoopStatus { backing, offset: number(offset)?, limit: number(limit)? });
        }
        let backing = named(Path::new(&node.loop_backing().ok_or_else(unknown)?)).ok_or_else(unknown)?;
        Ok(LoopStatus { backing, offset: 0, limit: 0 })
    }

    /// The table recorded by `mapped`, its lines separated by semicolons.
    fn table(node: &Node) -> io::Result<Vec<Target>> {
        let text = node.attribute("table_of_test").ok_or_else(|| io::Error::other("it needs root"))?;
        text.split(';').map(line).collect()
    }

    fn line(text: &str) -> io::Result<Target> {
        let words: Vec<&str> = text.splitn(4, ' ').collect();
        let &[start, length, kind, parameters] = &*words else { return Err(io::Error::other(text)) };
        let number = |word: &str| word.parse().map_err(io::Error::other);
        Ok(Target {
            start: number(start)?,
            length: number(length)?,
            kind: kind.to_owned(),
            parameters: parameters.to_owned(),
        })
    }

    impl Machine {
        pub(crate) fn new() -> Self {
            let machine = Self { root: tempfile::tempdir().unwrap() };
            for directory in ["sys/dev/block", "sys/fs/btrfs", "sys/devices", "proc/self", "by-id", "udev", "dev"] {
                fs::create_dir_all(machine.path(directory)).unwrap();
            }
            machine.write("proc/self/mountinfo", "1 0 0:1 / / rw - tmpfs tmpfs rw\n");
            machine.write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
            machine
        }

        pub(crate) fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        pub(crate) fn system(&self) -> System {
            System {
                sys: self.path("sys"),
                proc: self.path("proc"),
                by_id: self.path("by-id"),
                udev: self.path("udev"),
                named,
                loop_status,
                table,
            }
        }

        pub(crate) fn write(&self, name: &str, content: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        /// Adds a line to a file.
        pub(crate) fn append(&self, name: &str, line: &str) {
            let before = fs::read_to_string(self.path(name)).unwrap_or_default();
            self.write(name, &format!("{before}{line}\n"));
        }

        /// A whole device, with its node in `dev`.
        pub(crate) fn disk(&self, name: &str, number: &str) {
            self.device(&format!("sys/devices/{name}"), name, number);
        }

        /// A partition of a device.
        pub(crate) fn partition(&self, disk: &str, index: u32, name: &str, number: &str) {
            let directory = format!("sys/devices/{disk}/{name}");
            self.device(&directory, name, number);
            self.write(&format!("{directory}/partition"), &format!("{index}\n"));
            self.write(&format!("{directory}/start"), &format!("{index}000000\n"));
            self.write(&format!("{directory}/size"), "1000000\n");
        }

        fn device(&self, directory: &str, name: &str, number: &str) {
            for below in ["holders", "slaves"] {
                fs::create_dir_all(self.path(directory).join(below)).unwrap();
            }
            self.write(&format!("{directory}/dev"), &format!("{number}\n"));
            std::os::unix::fs::symlink(self.path(directory), self.path("sys/dev/block").join(number)).unwrap();
            self.write(&format!("dev/{name}"), number);
        }

        /// `above` is made of `below`, both as paths below `sys/devices`.
        pub(crate) fn holds(&self, above: &str, below: &str) {
            let name = |path: &str| Path::new(path).file_name().unwrap().to_owned();
            let devices = self.path("sys/devices");
            let link = |from: &str, kind: &str, to: &str| {
                let place = devices.join(from).join(kind).join(name(to));
                std::os::unix::fs::symlink(devices.join(to), place).unwrap();
            };
            link(below, "holders", above);
            link(above, "slaves", below);
        }

        /// A loop device over a path.
        pub(crate) fn loop_over(&self, name: &str, number: &str, backing: &Path) {
            self.disk(name, number);
            self.write(&format!("sys/devices/{name}/loop/backing_file"), &format!("{}\n", backing.display()));
        }

        /// A loop device with this `status`: `file DEVICE INODE OFFSET LIMIT`, or any other text for one that cannot be
        /// examined.
        pub(crate) fn loop_with(&self, name: &str, number: &str, status: &str) {
            self.loop_over(name, number, Path::new("/gone (deleted)"));
            self.write(&format!("sys/devices/{name}/status_of_test"), status);
        }

        /// A mapped device over another one, with a table of one line, or one that cannot be read.
        pub(crate) fn mapped(&self, name: &str, number: &str, below: &str, table: Option<&str>) {
            self.disk(name, number);
            self.holds(name, below);
            self.write(&format!("sys/devices/{name}/dm/name"), name);
            if let Some(table) = table {
                self.write(&format!("sys/devices/{name}/table_of_test"), table);
            }
        }

        pub(crate) fn node(&self, number: &str) -> Node {
            self.system().node(number.parse().unwrap()).unwrap()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_the_kernel_writes_it() {
        assert_eq!("259:3\n".parse(), Ok(DeviceNumber { major: 259, minor: 3 }));
        for wrong in ["", "8", "8:", ":1", "8:x", "-1:0", "8:0:1"] {
            assert!(wrong.parse::<DeviceNumber>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn partitions_know_their_disk_and_disks_their_partitions() {
        let machine = fake::Machine::new();
        machine.disk("sda", "8:0");
        machine.partition("sda", 1, "sda1", "8:1");
        machine.partition("sda", 2, "sda2", "8:2");
        let (disk, second) = (machine.node("8:0"), machine.node("8:2"));
        let names: Vec<_> = disk.partitions().unwrap().into_iter().map(|node| node.name).collect();
        assert_eq!(names, ["sda1", "sda2"]);
        assert_eq!((second.partition(), second.disk()), (Some(2), Some(disk.clone())));
        assert_eq!((disk.partition(), disk.disk()), (None, None));
        assert_eq!(machine.system().disks().unwrap(), [disk]);
        assert!(machine.system().node("8:9".parse().unwrap()).is_err());
    }
}
