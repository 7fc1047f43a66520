//! Control groups of this program, of version 1 or 2: a limit of memory, and a separate worker in the loop driver.
//!
//! **I/O.** The kernel's loop driver does flushes, discards and anonymous write-back one after the other, and I/O of
//! the same group waits behind them. Direct reads and writes of another group have a worker of their own. On a drive
//! whose flush takes 0.8 ms, four readers beside a writer that flushes did 8,000 reads per second in one group with it,
//! and 25,600 in a group of their own. Source: the kernel's `drivers/block/loop.c` (`loop_queue_work`).
//!
//! **Memory.** A limit for a group, page cache included, so that data does not fit.
//!
//! In version 1 each controller is a tree of its own. Version 2 is one tree, also beside trees of version 1, in which a
//! controller must be delegated, which this module requests. A process is in one group of it and limited by that in
//! everything: a process with its own worker stays where it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flashwise_block::process::is_absent;

/// Where the trees are.
const ROOT: &str = "/sys/fs/cgroup";
/// That of version 2 in it where there are others.
const UNIFIED: &str = "unified";
/// Prefix of the names of our groups; the numbers of the process and of the group follow.
const NAME: &str = "flashwise.";

/// The purpose of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Io,
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

/// Where groups with a controller are.
#[derive(Debug)]
struct Tree {
    path: PathBuf,
    controller: Controller,
    is_version_1: bool,
}

impl Tree {
    fn of(root: &Path, controller: Controller) -> Self {
        let (name, _, _) = controller.names();
        let is_version_1 = root.join(name).join("tasks").is_file();
        let path = match is_version_1 {
            true => root.join(name),
            false if root.join(UNIFIED).is_dir() => root.join(UNIFIED),
            false => root.to_owned(),
        };
        Self { path, controller, is_version_1 }
    }

    /// Which of a process's groups is of this tree.
    fn group_in<'a>(&self, groups: &'a str) -> Option<&'a str> {
        let (name, _, _) = self.controller.names();
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_ours =
                if self.is_version_1 { controllers.split(',').any(|one| one == name) } else { controllers.is_empty() };
            is_ours.then_some(path)
        })
    }

    /// Enables it in the groups below one.
    #[allow(clippy::disallowed_methods, reason = "attributes and groups of the kernel's own file system")]
    fn enable_in(&self, group: &Path) {
        if !self.is_version_1 {
            let (_, name, _) = self.controller.names();
            // Whether it was is seen in those.
            let _ = fs::write(group.join("cgroup.subtree_control"), format!("+{name}"));
        }
    }

    fn check_enabled_in(&self, group: &Path) -> Result<(), String> {
        let (_, name, file) = self.controller.names();
        match self.is_version_1 || group.join(file).exists() {
            true => Ok(()),
            false => Err(format!("{}: the cgroup controller '{name}' is not delegated", self.path.display())),
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
    /// An empty group with a limit of memory, page cache included.
    ///
    /// # Errors
    /// In words, why there is none.
    pub fn of_memory(bytes: u64) -> Result<Self, String> {
        let group = Self::below(&Tree::of(Path::new(ROOT), Controller::Memory))?;
        group.write(if group.is_version_1 { "memory.limit_in_bytes" } else { "memory.max" }, bytes)?;
        Ok(group)
    }

    /// An empty group whose I/O does not wait behind other flushes; none if processes started by this one have a worker
    /// of their own already.
    ///
    /// # Errors
    /// In words, why there is none.
    pub fn of_io() -> Result<Option<Self>, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| format!("/proc/self/cgroup: {error}"))?;
        Self::of_io_for(&groups, Path::new(ROOT))
    }

    /// For a process with these groups, as listed in `/proc/PID/cgroup`.
    fn of_io_for(groups: &str, root: &Path) -> Result<Option<Self>, String> {
        let tree = Tree::of(root, Controller::Io);
        match tree.group_in(groups) {
            None | Some("/") => Self::below(&tree).map(Some),
            Some(_) if tree.is_version_1 => Ok(None),
            Some(own) => {
                let mut place = tree.path.clone();
                for name in own.split('/').filter(|name| !name.is_empty()) {
                    tree.enable_in(&place);
                    place.push(name);
                }
                tree.check_enabled_in(&place).map(|()| None)
            }
        }
    }

    /// A new group. Leftovers of killed processes are removed first.
    #[allow(clippy::disallowed_methods, reason = "attributes and groups of the kernel's own file system")]
    fn below(tree: &Tree) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        sweep(&tree.path);
        tree.enable_in(&tree.path);
        let path = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = tree.path.join(format!("{NAME}{}.{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => break path,
                // Left by a dead process that had this one's number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        };
        let group = Self { path, is_version_1: tree.is_version_1 };
        tree.check_enabled_in(&group.path)?;
        Ok(group)
    }

    #[allow(clippy::disallowed_methods, reason = "attributes and groups of the kernel's own file system")]
    fn write(&self, file: &str, value: u64) -> Result<(), String> {
        let path = self.path.join(file);
        fs::write(&path, value.to_string()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Moves a process into the group; later children are in it too, earlier ones are not.
    ///
    /// # Errors
    /// In words, also if the process has ended.
    pub fn add_process(&self, process: u32) -> Result<(), String> {
        self.write("cgroup.procs", process.into())
    }

    /// Starts a program in the group.
    ///
    /// # Errors
    /// When it cannot be started. If the group does not accept it, it is started outside; and in version 2, what it
    /// starts within its first moment is outside.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        if !self.is_version_1 {
            return command.spawn().inspect(|child| drop(self.add_process(child.id())));
        }
        // In version 1 a single thread can be in a group, and its children are in it from the start.
        let start = || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            // A group makes it faster, or no faster: not a reason to go without it.
            let _ = self.write("tasks", u64::from(thread.unsigned_abs()));
            command.spawn()
        };
        let started = std::thread::scope(|scope| scope.spawn(start).join());
        started.map_err(|_| io::Error::other("the thread that starts it panicked"))?
    }
}

/// Removes leftovers of killed processes.
#[allow(clippy::disallowed_methods, reason = "attributes and groups of the kernel's own file system")]
fn sweep(tree: &Path) {
    for entry in fs::read_dir(tree).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('.').next()?.parse::<u32>().ok());
        if process.is_some_and(is_absent) {
            // A group with a process in it cannot be removed.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Cgroup {
    #[allow(clippy::disallowed_methods, reason = "attributes and groups of the kernel's own file system")]
    fn drop(&mut self) {
        // Ended processes may be counted a moment longer; a live one keeps the group until the next sweep.
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

    fn io_below(root: &Path) -> Tree {
        Tree::of(root, Controller::Io)
    }

    /// A simulated tree of version 2: a delegated controller is a file here.
    fn version_2(groups: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for group in groups {
            fs::create_dir_all(root.path().join(group)).unwrap();
        }
        root
    }

    #[test]
    fn where_there_are_no_cgroups_that_is_told() {
        let root = tempfile::tempdir().unwrap();
        let told = Cgroup::below(&Tree::of(&root.path().join("none"), Controller::Memory)).unwrap_err();
        assert!(told.contains("none") && told.contains("No such file"), "{told}");
        // As version 2 is where nothing is handed down.
        let told = Cgroup::below(&io_below(root.path())).unwrap_err();
        assert!(told.ends_with("the cgroup controller 'io' is not delegated"), "{told}");
        assert!(!fs::read_dir(root.path()).unwrap().any(|entry| entry.unwrap().path().is_dir()), "it is not left");
    }

    #[test]
    fn a_process_of_a_group_of_version_1_has_a_way_of_its_own_and_one_at_the_root_is_given_one() {
        let root = version_2(&["blkio"]);
        fs::write(root.path().join("blkio/tasks"), "").unwrap();
        let groups = |own: &str| format!("8:pids:/else\n7:cpu,blkio:{own}\n0::/else\n");
        assert!(Cgroup::of_io_for(&groups("/service"), root.path()).unwrap().is_none());
        let group = Cgroup::of_io_for(&groups("/"), root.path()).unwrap().unwrap();
        assert_eq!(group.path.parent(), Some(&*root.path().join("blkio")));
    }

    #[test]
    fn a_process_of_a_group_of_version_2_stays_in_it_and_is_handed_the_controller() {
        let root = version_2(&["user.slice/me.scope"]);
        let groups = "0::/user.slice/me.scope\n";
        let told = Cgroup::of_io_for(groups, root.path()).unwrap_err();
        assert!(told.ends_with("the cgroup controller 'io' is not delegated"), "{told}");
        let asked = |group: &str| fs::read_to_string(root.path().join(group).join("cgroup.subtree_control")).ok();
        assert_eq!([asked(""), asked("user.slice")], [Some("+io".to_owned()), Some("+io".to_owned())]);
        assert_eq!(asked("user.slice/me.scope"), None, "it has processes, and may hand down nothing");
        fs::write(root.path().join("user.slice/me.scope/io.stat"), "").unwrap();
        assert!(Cgroup::of_io_for(groups, root.path()).unwrap().is_none());
    }

    #[test]
    fn a_tree_of_version_2_is_found_beside_trees_of_version_1() {
        let root = version_2(&["unified", "memory"]);
        fs::write(root.path().join("memory/tasks"), "").unwrap();
        assert_eq!(io_below(root.path()).path, root.path().join("unified"));
        assert_eq!(Tree::of(root.path(), Controller::Memory).path, root.path().join("memory"));
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
    fn a_group_that_a_dead_process_of_the_same_number_has_left_is_in_nobodys_way() {
        let root = version_2(&["blkio"]);
        fs::write(root.path().join("blkio/tasks"), "").unwrap();
        // Other tests count on meanwhile.
        for number in 0..1000 {
            fs::create_dir(root.path().join(format!("blkio/{NAME}{}.{number}", std::process::id()))).unwrap();
        }
        assert!(Cgroup::below(&io_below(root.path())).is_ok());
    }

    #[test]
    fn a_program_is_in_its_group_from_its_first_moment_on_and_who_starts_it_is_not() {
        let group = match Cgroup::below(&io_below(Path::new(ROOT))) {
            Ok(group) => group,
            Err(why) => return eprintln!("{why}: not tested"),
        };
        let mut command = Command::new("cat");
        let child = group.spawn(command.arg("/proc/self/cgroup").stdout(std::process::Stdio::piped())).unwrap();
        let told = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let name = group.path.file_name().unwrap().to_str().unwrap().to_owned();
        // One of version 2 is put in once it runs.
        assert!(!group.is_version_1 || told.contains(&format!("blkio:/{name}")), "{told}");
        let mine = fs::read_to_string("/proc/self/cgroup").unwrap();
        assert!(!mine.contains(&name), "{mine}");
        let path = group.path.clone();
        drop(group);
        assert!(!path.exists());
    }
}
