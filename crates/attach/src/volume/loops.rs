//! The loop device over the drive's file: what makes a file a block device that a file system can be on.
//!
//! | default of the kernel's | would make of the drive | here |
//! |---|---|---|
//! | I/O through the page cache | one request at a time | direct I/O, and an error where the kernel takes it back |
//! | sectors of 512 bytes | one that takes any 512 bytes | the drive's logical blocks |
//! | a request of up to 1,280 KiB | two, as the file takes 1 MiB | 1 MiB |
//! | writing back is throttled at 2 ms | a drive with few writes under way where its time is stretched | 2 ms of the drive's time |
//! | what was set while another file was below it | one of 16 requests, say | 128 requests and no scheduler, as the kernel begins |
//!
//! Source: `drivers/block/loop.c` and `Documentation/ABI/stable/sysfs-block` of Linux 6.18. The devices are made by
//! `losetup` of util-linux, which looks for a free one and tries again where another program was faster.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use flashwise_block::ByteSize;

use super::tools;
use crate::mounts;

/// Bytes of the largest request that the file takes whole, KiB.
const LONGEST_KIB: u64 = 1024;

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
}

/// Finds `losetup`.
pub(super) fn losetup() -> Result<PathBuf, String> {
    tools::find("losetup", "util-linux (Debian: mount)")
}

impl LoopDevice {
    /// A new device over a file whose sectors have so many bytes, from `offset` on. It reads and writes; the file must be served
    /// meanwhile.
    ///
    /// # Errors
    /// In words: there is no loop device, or the kernel does not do direct I/O on it.
    pub(super) fn attach(losetup: &Path, file: &Path, sector: u64, offset: ByteSize) -> Result<Self, String> {
        let (sector, offset) = (sector.clamp(512, 4096).to_string(), offset.0.to_string());
        let options = ["--show", "--find", "--direct-io=on", "--sector-size", &sector, "--offset", &offset];
        let arguments: Vec<_> = options.iter().map(OsStr::new).chain([file.as_os_str()]).collect();
        let made = tools::run(losetup, &arguments).map_err(|error| {
            format!("no loop device can be had: {error}; the kernel's module loop and a free /dev/loop* are needed")
        })?;
        let name = made.strip_prefix("/dev/").ok_or_else(|| format!("losetup says {made}"))?.to_owned();
        let device = Self { losetup: losetup.to_owned(), name };
        device.be_as_long_as_its_file()?;
        if device.told("loop/dio").as_deref() == Some("1") {
            return Ok(device);
        }
        device.detach();
        Err("this kernel's loop device takes no direct I/O from the file, one request at a time; use --nbd".to_owned())
    }

    /// A kernel that could not learn the length of the file, of which it says nothing (`lo_calculate_size`), makes an empty
    /// device over it. Then it is asked again.
    fn be_as_long_as_its_file(&self) -> Result<(), String> {
        let is_empty = || self.told("size").as_deref() == Some("0");
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

    /// Lets the device be no narrower than the drive, of whose seconds each takes `scale` of the machine's.
    pub(super) fn widen(&self, scale: f64) {
        let limit = |name: &str, most: u64| {
            if self.told(name).and_then(|told| told.parse::<u64>().ok()).is_some_and(|told| told > most) {
                self.tell(name, &most.to_string());
            }
        };
        limit("queue/max_sectors_kb", LONGEST_KIB);
        self.tell("queue/scheduler", "none");
        // In two steps: from 16 to 128 at once, Linux 6.18 says 128 and lets 16 through.
        self.tell("queue/nr_requests", STEP);
        self.tell("queue/nr_requests", REQUESTS);
        let throttle = self.told("queue/wbt_lat_usec").and_then(|told| told.parse::<u64>().ok());
        if let Some(throttle) = throttle.filter(|_| scale > 1.0) {
            self.tell("queue/wbt_lat_usec", &((throttle as f64 * scale) as u64).to_string());
        }
    }

    /// All devices over a file.
    pub(super) fn over(losetup: &Path, file: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let devices =
            names.filter(|name| name.starts_with("loop")).map(|name| Self { losetup: losetup.to_owned(), name });
        devices.filter(|device| device.backing().is_some_and(|over| over == file)).collect()
    }

    /// The file below it; none once it is detached.
    pub(super) fn backing(&self) -> Option<PathBuf> {
        self.told("loop/backing_file").map(PathBuf::from)
    }

    /// Its name among the system's files.
    pub(super) fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// Its numbers, by which a mount names it.
    pub(super) fn numbers(&self) -> Option<(u32, u32)> {
        self.told("dev").and_then(|numbers| mounts::device(&numbers))
    }

    /// Gives it back; where somebody has it, as soon as nobody has.
    pub(super) fn detach(&self) {
        // Where it is gone already there is nothing to do.
        let _ = tools::run(&self.losetup, &[OsStr::new("--detach"), self.path().as_os_str()]);
    }

    fn told(&self, name: &str) -> Option<String> {
        let told = std::fs::read_to_string(Path::new("/sys/block").join(&self.name).join(name)).ok()?;
        Some(told.trim_end().to_owned())
    }

    /// What the kernel does not take it leaves as it is; the self-test tells whether the device is wide enough.
    fn tell(&self, name: &str, value: &str) {
        let _ = std::fs::write(Path::new("/sys/block").join(&self.name).join(name), value);
    }
}
