//! Whether an earlier profile is of the drive that is learned now, in the same way.
//!
//! ```text
//!   simulated drive, block device   the same name
//!   directory                       on the same file system or block device as the profile's directory is now
//!   either                          through a file system of the same kind or none, and both with io_uring or without
//! ```
//!
//! A path does not name a drive: `/mnt/ssd/a` and `/mnt/ssd/b` are on one, and another one may have been mounted at
//! `/mnt/ssd` since. The latter cannot be seen: a file system's drive is not in the profile.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use flashwise_block::{FileTitle, whole_drive};
use flashwise_profile::DeviceProfile;
use flashwise_tune::Target;

use crate::failure::Failure;

/// Refuses to compare the profile of something else with the device of this name.
pub fn check_same_drive(earlier: &DeviceProfile, target: &Target, name: &str) -> Result<(), Failure> {
    let is_directory = matches!(target, Target::Directory(_));
    difference(&earlier.device.name, name, is_directory).map_or(Ok(()), |why| {
        Err(Failure::usage(format!("--compare: {why}; the first profile of a drive is learned with --profile alone")))
    })
}

fn difference(theirs: &str, ours: &str, is_directory: bool) -> Option<String> {
    let parse = if is_directory { FileTitle::of_file } else { FileTitle::of_device };
    let (then, now) = (parse(theirs), parse(ours));
    if then.place != now.place && !(is_directory && are_on_one_drive(then.place, now.place)) {
        let place = Path::new(then.place);
        let why = match (is_directory, place.is_dir()) {
            (true, true) => ", which is on another drive",
            (true, false) if place.is_absolute() => "; the former is absent now, so its drive is unknown",
            _ => "",
        };
        return Some(format!("the profile is of {theirs}, but the target is {ours}{why}"));
    }
    if then.file_system != now.file_system {
        let through = |file_system: Option<&str>| file_system.unwrap_or("no file system").to_owned();
        let (then, now) = (through(then.file_system), through(now.file_system));
        return Some(format!(
            "the profile was learned through {then}, the target is on {now}: this alone changes times"
        ));
    }
    if then.has_io_uring != now.has_io_uring {
        let with = |has_io_uring| if has_io_uring { "with" } else { "without" };
        let (then, now) = (with(then.has_io_uring), with(now.has_io_uring));
        return Some(format!(
            "the profile was learned {then} io_uring, the target is reached {now} it: this alone changes times"
        ));
    }
    None
}

/// Whether two directories are on the same file system, or on the same block device.
fn are_on_one_drive(one: &str, other: &str) -> bool {
    let file_system = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    let drive = |path: &Path| whole_drive(path).ok();
    let (one, other) = (Path::new(one), Path::new(other));
    let is_on_one = file_system(one) == file_system(other) || drive(one).is_some_and(|one| Some(one) == drive(other));
    one.is_dir() && is_on_one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_directories_of_one_file_system_are_on_one_drive() {
        let place = tempfile::tempdir().unwrap();
        let name = |folder: &str| format!("{} (ext4)", place.path().join(folder).display());
        std::fs::create_dir(place.path().join("a")).unwrap();
        assert_eq!(difference(&name("a"), &name("."), true), None);
        assert_eq!(difference(&name("gone"), &name("gone"), true), None, "the same path needs no look");
        let gone = difference(&name("gone"), &name("a"), true).unwrap();
        assert!(gone.ends_with("; the former is absent now, so its drive is unknown"), "{gone}");
        let other = difference("/proc (ext4)", &name("a"), true).unwrap();
        assert!(other.starts_with("the profile is of /proc (ext4), but the target is "), "{other}");
        assert!(other.ends_with(", which is on another drive"), "{other}");
    }

    #[test]
    fn what_lies_between_program_and_drive_is_the_same() {
        let through = difference("/mnt (ext4)", "/mnt (xfs)", true).unwrap();
        assert!(through.contains("learned through ext4, the target is on xfs"), "{through}");
        let threads = "64 threads, no io_uring: Operation not permitted (os error 1)";
        let without = difference(&format!("/mnt (ext4, {threads})"), "/mnt (ext4)", true).unwrap();
        assert!(without.contains("learned without io_uring, the target is reached with it"), "{without}");
        let device = "Samsung SSD 960 EVO, 64 threads, no io_uring: EPERM";
        assert!(difference("Samsung SSD 960 EVO", device, false).unwrap().contains("reached without it"));
        let others = "/mnt (ext4, 32 threads, no io_uring: Function not implemented)";
        assert_eq!(difference(others, &format!("/mnt (ext4, {threads})"), true), None);
    }

    #[test]
    fn drives_with_names_are_the_same_by_name() {
        assert_eq!(difference("Micron M500", "Micron M500", false), None);
        let other = difference("Micron M500", "Samsung SSD 960 EVO", false).unwrap();
        assert_eq!(other, "the profile is of Micron M500, but the target is Samsung SSD 960 EVO");
    }
}
