//! The loop device over the drive's file: it makes the file a block device for a file system.
//!
//! | default of the kernel | effect on the drive | here |
//! |---|---|---|
//! | I/O through the page cache | one request at a time | direct I/O, and an error if the kernel disables it |
//! | sectors of 512 bytes | accepts any 512 bytes | the drive's logical blocks |
//! | a request of up to 1,280 KiB | two, as the file accepts 1 MiB | 1 MiB |
//! | write-back is throttled at 2 ms | few writes in flight with a time scale | 2 ms of the drive's time |
//! | read-ahead of 2.5 MiB, as for a hard disk | scans faster than a drive's | 128 KiB |
//! | settings for an earlier file below it | 16 requests, or 4 KiB each, for example | set again, all of them |
//!
//! **Identity of a device.** A device's name does not identify it: as soon as another process has detached our file, a
//! program may get the same name for its own. The number that the kernel gives each file below a device, its `diskseq`,
//! is never reused. It is recorded when the device is created, also in the drive's directory, and every operation on a
//! device by its name, above all detaching it, is done while the device is held open and has that number
//! ([`LoopDevice::open_if_same`]): no process can put another file below a device that is open. The path of the file
//! below a device does not identify it: when the drive's process has ended, it may be anything from the earlier path to
//! `/disk`.
//!
//! Source: `drivers/block/loop.c` and `Documentation/ABI/stable/sysfs-block` of Linux 6.18. The devices are created by
//! `losetup` of util-linux, which looks for a free one and retries if another program was faster.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use flashwise_block::ByteSize;

use super::tools;
use crate::kernel_times::TimeSum;
use crate::mounts;

/// Bytes of the largest request that the file takes whole, KiB.
const LONGEST_KIB: u64 = 1024;

/// Read ahead, as of any drive of flash, KiB (`VM_READAHEAD_PAGES`).
const READ_AHEAD_KIB: &str = "128";

/// Most requests in flight. A device keeps the settings for its earlier file.
const REQUESTS: &str = "128";
/// On the way there.
const STEP: &str = "64";

/// A loop device.
#[derive(Clone, Debug)]
pub(super) struct LoopDevice {
    losetup: PathBuf,
    /// `loop3`.
    name: String,
    /// Identifies the file below it uniquely; kernels before 5.15 have no such number.
    sequence: Option<u64>,
}

/// A loop device that is open: the file below it cannot change.
#[derive(Debug)]
pub(super) struct OpenLoopDevice {
    _open: File,
}

/// Finds `losetup`.
pub(super) fn losetup() -> Result<PathBuf, String> {
    tools::find("losetup", "util-linux (Debian: mount)")
}

impl LoopDevice {
    /// Creates a device over a file, with that sector size, from `offset` on, and holds it open. This reads and writes;
    /// the file must be served meanwhile.
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
            format!("no loop device: {error}; the kernel module loop and a free /dev/loop* are needed")
        })?;
        let name =
            made.strip_prefix("/dev/").ok_or_else(|| format!("unexpected output of losetup: {made}"))?.to_owned();
        let device = Self { losetup: losetup.to_owned(), name, sequence: None };
        let open = File::open(device.path()).map_err(|error| format!("{made}: {error}"))?;
        // Checked when it cannot be changed any more.
        if device.backing().is_none_or(|over| over != file) {
            return Err(format!("{made} is now in use for another file; try again"));
        }
        let (device, held) = (Self { sequence: device.sequence_now(), ..device }, OpenLoopDevice { _open: open });
        device.be_as_long_as_its_file()?;
        if device.attribute("loop/dio").as_deref() == Some("1") {
            return Ok((device, held));
        }
        device.detach();
        Err("this kernel's loop device does not support direct I/O to the file and serves one request at a time; use \
             --nbd"
            .to_owned())
    }

    /// Holds it, if it is still the one that it was.
    pub(super) fn open_if_same(&self) -> Option<OpenLoopDevice> {
        let open = File::open(self.path()).ok()?;
        let is_the_same = self.backing().is_some() && self.sequence_now() == self.sequence;
        is_the_same.then_some(OpenLoopDevice { _open: open })
    }

    /// Identifies the file below it now.
    fn sequence_now(&self) -> Option<u64> {
        self.attribute("diskseq")?.parse().ok()
    }

    /// The line by which the next drive finds it, if this one is killed.
    pub(super) fn note(&self) -> String {
        self.sequence.map_or_else(String::new, |sequence| format!("{} {sequence}\n", self.name))
    }

    /// A kernel that could not read the length of the file, without reporting that (`lo_calculate_size`), creates an
    /// empty device over it. Then the length is set again.
    fn be_as_long_as_its_file(&self) -> Result<(), String> {
        let is_empty = || self.attribute("size").as_deref() == Some("0");
        if is_empty() {
            let asked = tools::run(&self.losetup, &[OsStr::new("--set-capacity"), self.path().as_os_str()]);
            if is_empty() {
                self.detach();
                let words = asked.err().unwrap_or_else(|| "losetup --set-capacity did not help".to_owned());
                return Err(format!("/dev/{} does not have the size of the drive: {words}; try again", self.name));
            }
        }
        Ok(())
    }

    /// Gives the device at least the drive's concurrency, with a time `scale`, whatever its last user has set.
    pub(super) fn set_queue_limits(&self, scale: f64) {
        let number = |name: &str| self.attribute(name).and_then(|told| told.parse::<u64>().ok());
        let longest = number("queue/max_hw_sectors_kb").map_or(LONGEST_KIB, |most| most.min(LONGEST_KIB));
        self.set_attribute("queue/max_sectors_kb", &longest.to_string());
        self.set_attribute("queue/scheduler", "none");
        // In two steps: from 16 to 128 at once, Linux 6.18 reports 128 but lets 16 through.
        self.set_attribute("queue/nr_requests", STEP);
        self.set_attribute("queue/nr_requests", REQUESTS);
        // The kernel's default; the present value may be a scaled one already.
        self.set_attribute("queue/wbt_lat_usec", "-1");
        if let Some(throttle) = number("queue/wbt_lat_usec").filter(|_| scale > 1.0) {
            self.set_attribute("queue/wbt_lat_usec", &((throttle as f64 * scale) as u64).to_string());
        }
        // After the length of requests, from which the kernel derives it.
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

    /// Its requests so far, by the kernel's account.
    pub(super) fn requests(&self) -> Option<TimeSum> {
        TimeSum::of_stat(&self.attribute("stat")?)
    }

    /// Its name among the system's files.
    pub(super) fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// Its numbers, by which a mount names it.
    pub(super) fn numbers(&self) -> Option<(u32, u32)> {
        self.attribute("dev").and_then(|numbers| mounts::device(&numbers))
    }

    /// Detaches it, if it is still ours; if a process has it open, as soon as that closes it.
    pub(super) fn detach(&self) {
        // Open until the kernel has detached it: the meaning of the name cannot change in between.
        let Some(_held) = self.open_if_same() else { return };
        // If it is gone already there is nothing to do.
        let _ = tools::run(&self.losetup, &[OsStr::new("--detach"), self.path().as_os_str()]);
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let told = std::fs::read_to_string(Path::new("/sys/block").join(&self.name).join(name)).ok()?;
        Some(told.trim_end().to_owned())
    }

    /// A setting that the kernel refuses is left; the self-test shows whether the concurrency is sufficient.
    #[allow(clippy::disallowed_methods, reason = "an attribute of the kernel's")]
    fn set_attribute(&self, name: &str, value: &str) {
        let _ = std::fs::write(Path::new("/sys/block").join(&self.name).join(name), value);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Whether something becomes so within seconds: a device that was closed is open until every copy of its descriptor
    /// is closed, and a program that another test starts has copies until it executes.
    fn soon(is_so: impl Fn() -> bool) -> bool {
        let until = Instant::now() + Duration::from_secs(10);
        while !is_so() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

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

        /// Acts as another process: by name, without checking the identity.
        fn run(&self, arguments: &[&str], file: &Path) -> bool {
            let arguments = arguments.iter().map(OsStr::new).chain([file.as_os_str()]);
            tools::run(&self.losetup, &arguments.collect::<Vec<_>>()).is_ok()
        }
    }

    #[test]
    fn a_name_that_somebody_else_has_got_meanwhile_is_left_alone() {
        let Some(place) = Reused::new() else { return eprintln!("it needs root and losetup: not tested") };
        let Ok((device, held)) = LoopDevice::attach(&place.losetup, &place.file("ours"), 512, ByteSize(0)) else {
            return eprintln!("no loop devices: not tested");
        };
        // Another process detaches it. While it is held open, its name cannot get another file.
        assert!(place.run(&["--detach"], &device.path()));
        let name = device.path().display().to_string();
        assert!(!place.run(&[&name], &place.file("theirs")), "the kernel gives it to nobody");
        assert_eq!(device.backing(), Some(place.file("ours")));
        drop(held);
        assert!(soon(|| place.run(&[&name], &place.file("theirs"))), "now it is theirs");
        let theirs = LoopDevice { sequence: device.sequence_now(), ..device.clone() };
        let dead = |note: &str| LoopDevice::of_dead(&place.losetup, &place.file("ours"), note);
        device.detach();
        let is_there = device.backing() == Some(place.file("theirs"));
        let (found, held) = (dead(&device.note()), device.open_if_same().is_some());
        theirs.detach();
        assert!(is_there, "what is theirs is not detached");
        assert!(found.is_empty() && !held, "nor is it found as ours: {found:?}");
        assert!(soon(|| theirs.backing().is_none()), "but by who has made it");
    }

    #[test]
    fn what_was_noted_is_found_whatever_its_file_is_called_by_now() {
        let Some(place) = Reused::new() else { return eprintln!("it needs root and losetup: not tested") };
        let Ok((device, held)) = LoopDevice::attach(&place.losetup, &place.file("ours"), 512, ByteSize(0)) else {
            return eprintln!("no loop devices: not tested");
        };
        drop(held);
        std::fs::remove_file(place.file("ours")).unwrap();
        let over = device.backing().unwrap();
        let find = |note: &str| LoopDevice::of_dead(&place.losetup, &place.file("ours"), note);
        let (by_note, by_path, by_other) = (find(&device.note()), find(""), find(&format!("{} 1\n", device.name)));
        by_note.iter().for_each(LoopDevice::detach);
        let is_gone = soon(|| device.backing().is_none());
        device.detach();
        assert_ne!(over, place.file("ours"), "the kernel calls it otherwise");
        assert_eq!((by_note.len(), by_path.len(), by_other.len(), is_gone), (1, 0, 0, true));
    }
}
