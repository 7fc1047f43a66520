//! The loop device over the drive's file: what makes a file a block device that a file system can be on.
//!
//! | default of the kernel's | would make of the drive | here |
//! |---|---|---|
//! | I/O through the page cache | one request at a time | direct I/O, and an error where the kernel takes it back |
//! | sectors of 512 bytes | one that takes any 512 bytes | the drive's logical blocks |
//! | a request of up to 1,280 KiB | two, as the file takes 1 MiB | 1 MiB |
//! | writing back is throttled at 2 ms | few writes in flight where time is stretched | 2 ms of the drive's time |
//! | reading ahead by 2.5 MiB, as for a disk that turns | one whose scans are faster than a drive's | 128 KiB |
//! | what was set while another file was below it | one of 16 requests, or of 4 KiB each, say | set anew, all of it |
//!
//! **Whose device it is.** A device's name is no mark of ours: as soon as somebody else has detached our file, another
//! program may get the same name for its own. What is never used twice is the number that the kernel gives each file
//! below a device, its `diskseq`. It is noted when the device is made, also in the drive's directory, and everything
//! that is done to a device by its name, detaching it above all, is done while the device is held open and found to
//! have that number still ([`LoopDevice::open_if_same`]): nobody can put another file below a device that somebody has
//! open, whoever detaches it. The path of the file below a device is no such mark: once the drive's process is gone it
//! is anything from the path that it had to `/disk`.
//!
//! Source: `drivers/block/loop.c` and `Documentation/ABI/stable/sysfs-block` of Linux 6.18. The devices are made by
//! `losetup` of util-linux, which looks for a free one and tries again where another program was faster.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use flashwise_block::ByteSize;

use super::tools;
use crate::mounts;

/// Bytes of the largest request that the file takes whole, KiB.
const LONGEST_KIB: u64 = 1024;

/// Read ahead, as of any drive of flash, KiB (`VM_READAHEAD_PAGES`).
const READ_AHEAD_KIB: &str = "128";

/// Requests under way at most. A device keeps what somebody has set for the file that it was over before.
const REQUESTS: &str = "128";
/// On the way there.
const STEP: &str = "64";

/// A loop device.
#[derive(Clone, Debug)]
pub(super) struct LoopDevice {
    losetup: PathBuf,
    /// `loop3`.
    name: String,
    /// Tells the file below it from all others that ever are; kernels before 5.15 have no such number.
    sequence: Option<u64>,
}

/// A loop device that is open: what is below it stays what it is.
#[derive(Debug)]
pub(super) struct OpenLoopDevice {
    _open: File,
}

/// Finds `losetup`.
pub(super) fn losetup() -> Result<PathBuf, String> {
    tools::find("losetup", "util-linux (Debian: mount)")
}

impl LoopDevice {
    /// A new device over a file whose sectors have so many bytes, from `offset` on, held. It reads and writes; the file
    /// must be served meanwhile.
    ///
    /// # Errors
    /// In words: there is no loop device, or the kernel does not do direct I/O on it.
    pub(super) fn attach(
        losetup: &Path,
        file: &Path,
        sector: u64,
        offset: ByteSize,
    ) -> Result<(Self, OpenLoopDevice), String> {
        let (sector, offset) = (sector.clamp(512, 4096).to_string(), offset.0.to_string());
        let options = ["--show", "--find", "--direct-io=on", "--sector-size", &sector, "--offset", &offset];
        let arguments: Vec<_> = options.iter().map(OsStr::new).chain([file.as_os_str()]).collect();
        let made = tools::run(losetup, &arguments).map_err(|error| {
            format!("no loop device can be had: {error}; the kernel's module loop and a free /dev/loop* are needed")
        })?;
        let name = made.strip_prefix("/dev/").ok_or_else(|| format!("losetup says {made}"))?.to_owned();
        let device = Self { losetup: losetup.to_owned(), name, sequence: None };
        let open = File::open(device.path()).map_err(|error| format!("{made}: {error}"))?;
        // Looked at when nobody can change it any more.
        if device.backing().is_none_or(|over| over != file) {
            return Err(format!("somebody else has taken {made} for another file meanwhile; try again"));
        }
        let (device, held) = (Self { sequence: device.sequence_now(), ..device }, OpenLoopDevice { _open: open });
        device.be_as_long_as_its_file()?;
        if device.attribute("loop/dio").as_deref() == Some("1") {
            return Ok((device, held));
        }
        device.detach();
        Err("this kernel's loop device takes no direct I/O from the file, one request at a time; use --nbd".to_owned())
    }

    /// Holds it, if it is still the one that it was.
    pub(super) fn open_if_same(&self) -> Option<OpenLoopDevice> {
        let open = File::open(self.path()).ok()?;
        let is_the_same = self.backing().is_some() && self.sequence_now() == self.sequence;
        is_the_same.then_some(OpenLoopDevice { _open: open })
    }

    /// What tells what is below it now from everything else.
    fn sequence_now(&self) -> Option<u64> {
        self.attribute("diskseq")?.parse().ok()
    }

    /// What the next drive finds it by, where this one is killed: a line.
    pub(super) fn note(&self) -> String {
        self.sequence.map_or_else(String::new, |sequence| format!("{} {sequence}\n", self.name))
    }

    /// A kernel that could not learn the length of the file, of which it says nothing (`lo_calculate_size`), makes an
    /// empty device over it. Then it is asked again.
    fn be_as_long_as_its_file(&self) -> Result<(), String> {
        let is_empty = || self.attribute("size").as_deref() == Some("0");
        if is_empty() {
            let asked = tools::run(&self.losetup, &[OsStr::new("--set-capacity"), self.path().as_os_str()]);
            if is_empty() {
                self.detach();
                let words = asked.err().unwrap_or_else(|| "nor when asked again".to_owned());
                return Err(format!("/dev/{} has not the length of the drive: {words}; try again", self.name));
            }
        }
        Ok(())
    }

    /// Lets the device be no narrower than the drive, of whose seconds each takes `scale` of the machine's, whatever
    /// its last user has left.
    pub(super) fn set_queue_limits(&self, scale: f64) {
        let number = |name: &str| self.attribute(name).and_then(|told| told.parse::<u64>().ok());
        let longest = number("queue/max_hw_sectors_kb").map_or(LONGEST_KIB, |most| most.min(LONGEST_KIB));
        self.set_attribute("queue/max_sectors_kb", &longest.to_string());
        self.set_attribute("queue/scheduler", "none");
        // In two steps: from 16 to 128 at once, Linux 6.18 says 128 and lets 16 through.
        self.set_attribute("queue/nr_requests", STEP);
        self.set_attribute("queue/nr_requests", REQUESTS);
        // The kernel's own again; what is there may be one that was stretched already.
        self.set_attribute("queue/wbt_lat_usec", "-1");
        if let Some(throttle) = number("queue/wbt_lat_usec").filter(|_| scale > 1.0) {
            self.set_attribute("queue/wbt_lat_usec", &((throttle as f64 * scale) as u64).to_string());
        }
        // After the length of requests, of which the kernel takes it.
        self.set_attribute("queue/read_ahead_kb", READ_AHEAD_KIB);
    }

    /// All devices over the file of a drive that was killed: the one that was noted, and those over its path.
    pub(super) fn of_dead(losetup: &Path, file: &Path, note: &str) -> Vec<Self> {
        let noted = note.lines().filter_map(|line| line.split_once(' '));
        let noted: Vec<(&str, u64)> = noted.filter_map(|(name, number)| Some((name, number.parse().ok()?))).collect();
        let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let devices = names.filter(|name| name.starts_with("loop")).map(|name| {
            let device = Self { losetup: losetup.to_owned(), name, sequence: None };
            Self { sequence: device.sequence_now(), ..device }
        });
        let is_noted =
            |device: &Self| noted.iter().any(|&(name, number)| name == device.name && Some(number) == device.sequence);
        devices.filter(|device| device.backing().is_some_and(|over| over == file || is_noted(device))).collect()
    }

    /// The file below it; none once it is detached.
    pub(super) fn backing(&self) -> Option<PathBuf> {
        self.attribute("loop/backing_file").map(PathBuf::from)
    }

    /// Its name among the system's files.
    pub(super) fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// Its numbers, by which a mount names it.
    pub(super) fn numbers(&self) -> Option<(u32, u32)> {
        self.attribute("dev").and_then(|numbers| mounts::device(&numbers))
    }

    /// Gives it back, if it is still ours; where somebody has it, as soon as nobody has.
    pub(super) fn detach(&self) {
        // Open until the kernel has been told: what the name means cannot change in between.
        let Some(_held) = self.open_if_same() else { return };
        // Where it is gone already there is nothing to do.
        let _ = tools::run(&self.losetup, &[OsStr::new("--detach"), self.path().as_os_str()]);
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let told = std::fs::read_to_string(Path::new("/sys/block").join(&self.name).join(name)).ok()?;
        Some(told.trim_end().to_owned())
    }

    /// What the kernel does not take it leaves as it is; the self-test tells whether the device is wide enough.
    #[allow(clippy::disallowed_methods, reason = "an attribute of the kernel's")]
    fn set_attribute(&self, name: &str, value: &str) {
        let _ = std::fs::write(Path::new("/sys/block").join(&self.name).join(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two files with a loop device over each, one after the other at the same name.
    struct Reused {
        losetup: PathBuf,
        directory: tempfile::TempDir,
    }

    impl Reused {
        fn new() -> Option<Self> {
            let losetup = losetup().ok().filter(|_| rustix::process::geteuid().is_root())?;
            let directory = tempfile::tempdir().unwrap();
            for name in ["ours", "theirs"] {
                File::create(directory.path().join(name)).unwrap().set_len(8 << 20).unwrap();
            }
            Some(Self { losetup, directory })
        }

        fn file(&self, name: &str) -> PathBuf {
            self.directory.path().canonicalize().unwrap().join(name)
        }

        /// What stands for somebody else: by name, without asking whose it is.
        fn run(&self, arguments: &[&str], file: &Path) -> bool {
            let arguments = arguments.iter().map(OsStr::new).chain([file.as_os_str()]);
            tools::run(&self.losetup, &arguments.collect::<Vec<_>>()).is_ok()
        }
    }

    #[test]
    fn a_name_that_somebody_else_has_got_meanwhile_is_left_alone() {
        let Some(place) = Reused::new() else { return eprintln!("it takes root and losetup: not tested") };
        let Ok((device, held)) = LoopDevice::attach(&place.losetup, &place.file("ours"), 512, ByteSize(0)) else {
            return eprintln!("no loop devices: not tested");
        };
        // Somebody detaches it. As long as it is held, nobody gets the name for another file.
        assert!(place.run(&["--detach"], &device.path()));
        let name = device.path().display().to_string();
        assert!(!place.run(&[&name], &place.file("theirs")), "the kernel gives it to nobody");
        assert_eq!(device.backing(), Some(place.file("ours")));
        drop(held);
        assert!(place.run(&[&name], &place.file("theirs")), "now it is theirs");
        let theirs = LoopDevice { sequence: device.sequence_now(), ..device.clone() };
        let dead = |note: &str| LoopDevice::of_dead(&place.losetup, &place.file("ours"), note);
        device.detach();
        let is_there = device.backing() == Some(place.file("theirs"));
        let (found, held) = (dead(&device.note()), device.open_if_same().is_some());
        theirs.detach();
        assert!(is_there, "what is theirs is not detached");
        assert!(found.is_empty() && !held, "nor is it found as ours: {found:?}");
        assert_eq!(theirs.backing(), None, "but by who has made it");
    }

    #[test]
    fn what_was_noted_is_found_whatever_its_file_is_called_by_now() {
        let Some(place) = Reused::new() else { return eprintln!("it takes root and losetup: not tested") };
        let Ok((device, held)) = LoopDevice::attach(&place.losetup, &place.file("ours"), 512, ByteSize(0)) else {
            return eprintln!("no loop devices: not tested");
        };
        drop(held);
        std::fs::remove_file(place.file("ours")).unwrap();
        let over = device.backing().unwrap();
        let find = |note: &str| LoopDevice::of_dead(&place.losetup, &place.file("ours"), note);
        let (by_note, by_path, by_other) = (find(&device.note()), find(""), find(&format!("{} 1\n", device.name)));
        by_note.iter().for_each(LoopDevice::detach);
        let is_gone = device.backing().is_none();
        device.detach();
        assert_ne!(over, place.file("ours"), "the kernel calls it otherwise");
        assert_eq!((by_note.len(), by_path.len(), by_other.len(), is_gone), (1, 0, 0, true));
    }
}
