//! The processes that keep a mount busy, as far as `/proc` shows, without accessing the file system.

use std::path::{Path, PathBuf};

use crate::mounts::Mount;

/// How many are named.
const NAMED: usize = 4;

/// The users of a mount, in words such as `postgres (process 17), bash (process 12)`; none if no process is visible,
/// such as one of another container.
pub(super) fn holders(place: &Path, mounts: &[Mount]) -> Option<String> {
    let below = mounts.iter().filter(|mount| mount.point != place && mount.point.starts_with(place));
    let mut words: Vec<_> = below.map(|mount| format!("the mount at {}", mount.point.display())).collect();
    words.extend(processes(place).into_iter().map(|(process, name)| format!("{name} (process {process})")));
    let more = words.len().saturating_sub(NAMED);
    words.truncate(NAMED);
    if more > 0 {
        words.push(format!("{more} more"));
    }
    (!words.is_empty()).then(|| words.join(", "))
}

/// Processes that have a file there open or mapped, run a program from there, or are in it; by number.
fn processes(place: &Path) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let holding = numbers.into_iter().filter(|&number| holds(Path::new(&format!("/proc/{number}")), place));
    let name = |number| std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default().trim().to_owned();
    holding.map(|number| (number, name(number))).collect()
}

fn holds(process: &Path, place: &Path) -> bool {
    let is_there = |link: PathBuf| std::fs::read_link(link).is_ok_and(|target| target.starts_with(place));
    ["cwd", "root", "exe"].iter().any(|link| is_there(process.join(link)))
        || ["fd", "map_files"].iter().any(|links| {
            let links = std::fs::read_dir(process.join(links)).into_iter().flatten().flatten();
            links.into_iter().any(|link| is_there(link.path()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::parse;

    #[test]
    fn who_has_a_file_open_is_named_and_so_is_what_is_mounted_below() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        assert_eq!(holders(&place, &[]), None);
        let _file = std::fs::File::create(place.join("file")).unwrap();
        let words = holders(&place, &[]).unwrap();
        assert!(words.contains(&format!("(process {})", std::process::id())), "{words}");
        let inner = format!("90 22 0:50 / {0} rw - ext4 a rw\n91 90 0:51 / {0}/inner rw - tmpfs b rw", place.display());
        let words = holders(&place, &parse(&inner)).unwrap();
        assert!(words.starts_with(&format!("the mount at {}/inner, ", place.display())), "{words}");
    }
}
