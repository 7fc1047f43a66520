//! Control groups of this program's own, of version 1 or 2: a bound on memory, and a way of one's own through the loop driver.
//!
//! **I/O.** The kernel's loop driver does flushes, discards, and what is written back for nobody in particular one after the
//! other, and what comes from the same group waits behind them. Direct reads and writes of another group have a worker of their
//! own. On a drive whose flush takes 0.8 ms, four readers beside a writer that flushes did 8,000 reads a second in one group
//! with it, and 25,600 in a group of their own. Source: the kernel's `drivers/block/loop.c` (`loop_queue_work`).
//!
//! **Memory.** Of a group with a bound, page cache included, so that data do not fit.
//!
//! In version 1 each controller is a tree of its own. In version 2 a controller has to be handed down, which is asked for; that
//! has not been tried on a machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Where the trees are.
const ROOT: &str = "/sys/fs/cgroup";
/// How names of ours begin; the numbers of the process and of the group follow.
const NAME: &str = "flashwise.";

/// What a group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// I/O apart from everybody else's.
    Io,
    /// Memory with a bound.
    Memory,
}

impl Controller {
    /// Its tree in version 1; its name and a file that it has in version 2.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Io => ("blkio", "io", "io.stat"),
            Self::Memory => ("memory", "memory", "memory.max"),
        }
    }
}

/// A control group with one controller, removed at the end.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    is_version_1: bool,
}

impl Cgroup {
    /// A new one, with nobody in it. What processes that were killed have left is removed before.
    ///
    /// # Errors
    /// In words, why there is none.
    pub fn new(controller: Controller) -> Result<Self, String> {
        Self::below(Path::new(ROOT), controller)
    }

    fn below(root: &Path, controller: Controller) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (tree, name, file) = controller.names();
        let is_version_1 = root.join(tree).join("tasks").is_file();
        let tree = if is_version_1 { root.join(tree) } else { root.to_owned() };
        sweep(&tree);
        if !is_version_1 {
            // Where it is not handed down, the file is missing.
            let _ = fs::write(tree.join("cgroup.subtree_control"), format!("+{name}"));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = tree.join(format!("{NAME}{}.{number}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let this = Self { path, is_version_1 };
        match is_version_1 || this.path.join(file).exists() {
            true => Ok(this),
            false => Err(format!("{}: this system does not hand down its controller '{name}'", tree.display())),
        }
    }

    fn write(&self, file: &str, value: u64) -> Result<(), String> {
        let path = self.path.join(file);
        fs::write(&path, value.to_string()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Bounds its memory, page cache included.
    ///
    /// # Errors
    /// In words, also where it has no such controller.
    pub fn limit_memory(&self, bytes: u64) -> Result<(), String> {
        self.write(if self.is_version_1 { "memory.limit_in_bytes" } else { "memory.max" }, bytes)
    }

    /// Puts a process in; what it starts later is in it too, what it has started is not.
    ///
    /// # Errors
    /// In words, also where it has ended.
    pub fn hold(&self, process: u32) -> Result<(), String> {
        self.write("cgroup.procs", process.into())
    }

    /// Starts a program in it.
    ///
    /// # Errors
    /// Where it cannot be started; not where it is outside of the group then, which only version 2 can do, with what it has started
    /// within a moment.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        if !self.is_version_1 {
            return command.spawn().inspect(|child| drop(self.hold(child.id())));
        }
        // A thread by itself can be in a group of version 1, and what it starts is in that from the first moment on.
        let start = || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            self.write("tasks", u64::from(thread.unsigned_abs())).map_err(io::Error::other)?;
            command.spawn()
        };
        let started = std::thread::scope(|scope| scope.spawn(start).join());
        started.map_err(|_| io::Error::other("the thread that starts it panicked"))?
    }
}

/// Removes what processes that were killed have left.
fn sweep(tree: &Path) {
    for entry in fs::read_dir(tree).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('.').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // One that somebody is still in is refused.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Who was in it has ended, and may be counted a moment longer; who has not keeps it for the next sweep.
        for _ in 0..100 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
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
        let told = Cgroup::below(&root.path().join("none"), Controller::Memory).unwrap_err();
        assert!(told.contains("none") && told.contains("No such file"), "{told}");
        // As version 2 is where nothing is handed down.
        let told = Cgroup::below(root.path(), Controller::Io).unwrap_err();
        assert!(told.ends_with("this system does not hand down its controller 'io'"), "{told}");
        assert!(!fs::read_dir(root.path()).unwrap().any(|entry| entry.unwrap().path().is_dir()), "it is not left");
    }

    #[test]
    fn what_a_killed_process_has_left_is_swept_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let names =
            [format!("{NAME}999999999.0"), format!("{NAME}{}.7", std::process::id()), "other.999999999".to_owned()];
        names.iter().for_each(|name| fs::create_dir(root.path().join(name)).unwrap());
        sweep(root.path());
        assert_eq!(names.map(|name| root.path().join(name).exists()), [false, true, true]);
    }

    #[test]
    fn a_program_is_in_its_group_from_its_first_moment_on_and_who_starts_it_is_not() {
        let group = match Cgroup::new(Controller::Io) {
            Ok(group) => group,
            Err(why) => return eprintln!("{why}: not tested"),
        };
        let mut command = Command::new("cat");
        let child = group.spawn(command.arg("/proc/self/cgroup").stdout(std::process::Stdio::piped())).unwrap();
        let told = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let name = group.path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(!group.is_version_1 || told.contains(&format!("blkio:/{name}")), "{told}");
        let mine = fs::read_to_string("/proc/self/cgroup").unwrap();
        assert!(!mine.contains(&name), "{mine}");
        let path = group.path.clone();
        drop(group);
        assert!(!path.exists());
    }
}
