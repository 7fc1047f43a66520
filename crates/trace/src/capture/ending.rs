//! How a command that is traced comes to its end: by itself, or because the user wants it to.
//!
//! Ctrl-C on a terminal reaches the command by itself, because it is of the same process group; a signal that was sent
//! to flashwise alone does not. So after [`GRACE`] the command is told the same (SIGINT), and what has not ended after
//! [`PATIENCE`] is killed. Told are the command and all that descends from it, or, where a tracer stands between, all
//! that it traces: strace itself ignores signals while it writes to a file, and ends after the last of them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often is looked whether the command has ended; what that adds to its time is lost in that of its start.
const POLL: Duration = Duration::from_millis(5);
/// What a command is given that the terminal told already.
const GRACE: Duration = Duration::from_millis(300);
/// What a command is given to end in order, from the interrupt on: flashwise itself ends within two seconds.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What the started process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Started {
    /// The command.
    Command,
    /// What traces it.
    Tracer,
}

/// Waits for the end, and brings it about where `interrupted` is set.
pub(super) fn wait(child: &mut Child, started: Started, interrupted: &AtomicBool) -> io::Result<ExitStatus> {
    let mut since = None;
    let mut left = [(GRACE, Signal::INT), (PATIENCE, Signal::KILL)].into_iter().peekable();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupted.load(Ordering::Relaxed) {
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            if let Some((_, signal)) = left.next_if(|(due, _)| waited >= *due) {
                tell(child.id(), started, signal);
            }
        }
        thread::sleep(POLL);
    }
}

/// Sends a signal to all that is to end. What ended meanwhile needs none.
fn tell(child: u32, started: Started, signal: Signal) {
    let own = (started == Started::Command).then_some(child);
    for process in descendants(child, &processes()).into_iter().chain(own) {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        process.into_iter().for_each(|process| _ = kill_process(process, signal));
    }
}

/// Whose child a process is, and who traces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Family {
    parent: u32,
    tracer: u32,
}

/// All processes of the machine that are to be seen.
fn processes() -> BTreeMap<u32, Family> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let family = |number: u32| Some((number, family(&fs::read_to_string(format!("/proc/{number}/status")).ok()?)?));
    numbers.filter_map(family).collect()
}

/// What `/proc/PID/status` tells.
fn family(status: &str) -> Option<Family> {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok())
    };
    Some(Family { parent: field("PPid:")?, tracer: field("TracerPid:")? })
}

/// Those that descend from a process, or are traced by it or by one that does.
fn descendants(root: u32, processes: &BTreeMap<u32, Family>) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        for (&number, family) in processes {
            if (family.parent == parent || family.tracer == parent) && !found.contains(&number) {
                found.push(number);
            }
        }
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_and_what_is_traced_belong_to_a_command_and_nobody_else() {
        let family = |parent, tracer| Family { parent, tracer };
        let processes = BTreeMap::from([
            (1, family(0, 0)),
            (10, family(1, 0)),
            (11, family(10, 10)),
            (12, family(11, 10)),
            // A daemon: its parent has ended, but it is still traced.
            (13, family(1, 10)),
            (20, family(1, 0)),
            (21, family(20, 0)),
        ]);
        assert_eq!(descendants(10, &processes), [11, 12, 13]);
        assert_eq!(descendants(20, &processes), [21]);
        assert!(descendants(99, &processes).is_empty());
    }

    #[test]
    fn the_kernel_tells_parent_and_tracer_of_a_process() {
        // Whoever runs the tests in the background may ignore SIGINT, and a child inherits that.
        let mut child =
            std::process::Command::new("env").args(["--default-signal=INT", "sleep", "60"]).spawn().unwrap();
        let own = std::process::id();
        assert_eq!(processes().get(&child.id()), Some(&Family { parent: own, tracer: 0 }));
        assert!(descendants(own, &processes()).contains(&child.id()));
        let ended = wait(&mut child, Started::Command, &AtomicBool::new(true)).unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(2));
    }
}
