//! What is between a disk and the latencies that a program sees: a hypervisor, and the requests of other programs.
//!
//! A virtual disk is known by its driver (virtio, Xen) or by the model that its hypervisor gives it. How busy a disk is
//! shows in the time that the kernel counts for it (`io_ticks`), over a short time in which this program does nothing.
//!
//! Source: Linux, `Documentation/block/stat.rst`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::sysfs::{whole, whole_drive};

/// How long a disk is watched.
const WATCHED: Duration = Duration::from_millis(300);
/// Share of the time that a disk works for others from which on it counts as busy: one part in ten. The learner reports
/// a figure as certain if its interval is narrower than that.
const BUSY_SHARE: f64 = 0.1;
/// The field of `stat` that counts the milliseconds with a request in flight.
const IO_TICKS: usize = 9;
/// Words in the model or the vendor of a virtual disk.
const HYPERVISORS: [&str; 9] =
    ["QEMU", "VIRTUAL", "VMWARE", "VBOX", "MSFT", "XEN", "ELASTIC BLOCK STORE", "PERSISTENTDISK", "GOOGLE"];
/// Mapped devices below each other that are followed to the disk.
const LAYERS_MAX: usize = 8;

/// Circumstances that blur a disk's latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskConditions {
    /// What shows that the disk is virtual.
    pub virtual_by: Option<String>,
    /// Share of the time that the disk worked for others, if it is busy.
    pub busy_share: Option<f64>,
}

impl DiskConditions {
    /// Of the disk of a directory, a file or a block device; takes 0.3 s. A disk that the kernel does not describe has
    /// no conditions.
    pub fn of(path: &Path) -> Self {
        disk_of(path).map_or_else(Self::default, |disk| Self::of_disk(&disk, WATCHED))
    }

    fn of_disk(disk: &Path, watched: Duration) -> Self {
        let ticks = || ticks(&fs::read_to_string(disk.join("stat")).ok()?);
        let (started, before) = (Instant::now(), ticks());
        std::thread::sleep(watched);
        let busy_share = before
            .zip(ticks())
            .map(|(before, after)| after.saturating_sub(before) as f64 / (started.elapsed().as_millis().max(1) as f64));
        let busy_share = busy_share.filter(|&share| share >= BUSY_SHARE).map(|share| share.min(1.0));
        Self { virtual_by: virtual_by(disk), busy_share }
    }
}

/// One line; empty if there is nothing to say.
impl fmt::Display for DiskConditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy = |share: f64| format!("busy (other programs use it {:.0} % of the time)", share * 100.0);
        let conditions = match (&self.virtual_by, self.busy_share) {
            (None, None) => return Ok(()),
            (Some(by), None) => format!("virtual ({by})"),
            (None, Some(share)) => busy(share),
            (Some(by), Some(share)) => format!("virtual ({by}) and {}", busy(share)),
        };
        write!(
            f,
            "the disk is {conditions}: latencies are not the drive's alone, and many parameters will be inconclusive"
        )
    }
}

/// The disk below a path, in sysfs; of several that a mapped device is made of, the first.
fn disk_of(path: &Path) -> Option<PathBuf> {
    let mut disk = whole_drive(path).ok()?;
    for _ in 0..LAYERS_MAX {
        let below = fs::read_dir(disk.join("slaves")).ok().and_then(|mut slaves| slaves.next()?.ok());
        let Some(below) = below else { break };
        disk = whole(fs::canonicalize(below.path()).ok()?);
    }
    Some(disk)
}

/// What shows that a disk is virtual.
fn virtual_by(disk: &Path) -> Option<String> {
    let name = disk.file_name()?.to_str()?;
    if disk.components().any(|part| part.as_os_str().to_str().is_some_and(|part| part.starts_with("virtio"))) {
        return Some("virtio".to_owned());
    }
    if name.starts_with("xvd") {
        return Some("Xen".to_owned());
    }
    let names = ["model", "vendor"].map(|file| fs::read_to_string(disk.join("device").join(file)).unwrap_or_default());
    let names = names.into_iter().map(|text| text.trim().to_owned());
    names.into_iter().find(|text| HYPERVISORS.iter().any(|word| text.to_uppercase().contains(word)))
}

fn ticks(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(IO_TICKS)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(directory: &Path, path: &str, model: &str, stat: &str) -> PathBuf {
        let disk = directory.join(path);
        fs::create_dir_all(disk.join("device")).unwrap();
        fs::write(disk.join("device/model"), model).unwrap();
        fs::write(disk.join("stat"), stat).unwrap();
        disk
    }

    #[test]
    fn a_virtual_disk_is_known_by_its_driver_or_its_model() {
        let place = tempfile::tempdir().unwrap();
        let by = |path: &str, model: &str| virtual_by(&disk(place.path(), path, model, ""));
        assert_eq!(by("pci/virtio1/block/vda", ""), Some("virtio".to_owned()));
        assert_eq!(by("nvme0n1", "Amazon Elastic Block Store\n"), Some("Amazon Elastic Block Store".to_owned()));
        assert_eq!(by("sda", "QEMU HARDDISK   \n"), Some("QEMU HARDDISK".to_owned()));
        assert_eq!(by("nvme1n1", "Samsung SSD 960 EVO 250GB"), None);
    }

    #[test]
    fn a_disk_that_works_for_others_is_busy() {
        let place = tempfile::tempdir().unwrap();
        let stat = |ticks: u64| format!("1 2 3 4 5 6 7 8 0 {ticks} 9 0 0 0 0\n");
        let at = disk(place.path(), "sda", "a drive", &stat(1000));
        assert_eq!(DiskConditions::of_disk(&at, Duration::from_millis(20)), DiskConditions::default());
        let file = at.join("stat");
        let work = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            fs::write(file, stat(1_000_000)).unwrap();
        });
        let busy = DiskConditions::of_disk(&at, Duration::from_millis(400));
        work.join().unwrap();
        assert_eq!(busy.busy_share, Some(1.0));
        let line = busy.to_string();
        assert!(line.starts_with("the disk is busy (other programs use it 100 % of the time): "), "{line}");
        let both = DiskConditions { virtual_by: Some("virtio".to_owned()), busy_share: Some(0.25) };
        assert!(both.to_string().starts_with("the disk is virtual (virtio) and busy (other programs use it 25 %"));
        assert_eq!(DiskConditions::default().to_string(), "");
    }
}
