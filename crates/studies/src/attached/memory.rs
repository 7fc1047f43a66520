//! A bound on the memory of a server, page cache included, so that its data do not fit: a memory cgroup of its own.
//!
//! Linux has two forms of them: version 1, where the memory controller is a tree of its own, and version 2, where it has to
//! be handed down (which has not been tried). Where neither can be had, the study says so and measures with everything
//! cached.

use std::fs;
use std::path::{Path, PathBuf};

use super::cores::family;
use crate::StudyError;

/// Where the trees are.
const ROOT: &str = "/sys/fs/cgroup";
/// How names of ours begin; the number of the process follows.
const NAME: &str = "flashwise-study.";

/// A cgroup, removed at the end.
#[derive(Debug)]
pub(crate) struct MemoryBound {
    path: PathBuf,
}

impl MemoryBound {
    /// A new one with so many bytes; why there is none.
    pub(crate) fn new(bytes: u64) -> Result<Self, String> {
        Self::below(Path::new(ROOT), bytes)
    }

    fn below(root: &Path, bytes: u64) -> Result<Self, String> {
        let (tree, file) = match root.join("memory/memory.limit_in_bytes").is_file() {
            true => (root.join("memory"), "memory.limit_in_bytes"),
            false => (root.to_owned(), "memory.max"),
        };
        sweep(&tree);
        // Version 2 hands the controller down where it is told to; where it is not, the file of the bound is missing.
        let _ = fs::write(tree.join("cgroup.subtree_control"), "+memory");
        let path = tree.join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let this = Self { path };
        this.write(file, bytes)?;
        Ok(this)
    }

    fn write(&self, file: &str, value: u64) -> Result<(), String> {
        let path = self.path.join(file);
        fs::write(&path, value.to_string()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Puts a server in, with what it has started; what it starts later is in it too.
    pub(crate) fn hold(&self, server: u32) -> Result<(), StudyError> {
        for process in family(server)? {
            // One that has ended meanwhile needs no bound.
            let told = self.write("cgroup.procs", process.into());
            if process == server {
                told.map_err(StudyError::Attach)?;
            }
        }
        Ok(())
    }
}

/// Removes what studies that were killed have left.
fn sweep(tree: &Path) {
    for entry in fs::read_dir(tree).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // One that somebody is still in is refused.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for MemoryBound {
    fn drop(&mut self) {
        // Who was in it has ended, and may be counted a moment longer.
        for _ in 0..100 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_are_no_cgroups_that_is_told() {
        let root = tempfile::tempdir().unwrap();
        let told = MemoryBound::below(&root.path().join("none"), 1 << 20).unwrap_err();
        assert!(told.contains("none") && told.contains("No such file"), "{told}");
    }

    #[test]
    fn what_a_killed_study_has_left_is_swept_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let names = [format!("{NAME}999999999"), format!("{NAME}{}", std::process::id()), "other.999999999".to_owned()];
        names.iter().for_each(|name| fs::create_dir(root.path().join(name)).unwrap());
        sweep(root.path());
        assert_eq!(names.map(|name| root.path().join(name).exists()), [false, true, true]);
    }
}
