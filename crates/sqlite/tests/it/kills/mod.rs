//! Kills a process at any one of its system calls: `strace` sends `SIGKILL` in the place of the call.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What changes files.
pub const CALLS: [&str; 6] = ["pwrite64", "pwritev2", "fdatasync", "fsync", "unlink", "ftruncate"];

/// What became of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// In the place of the call.
    Killed,
    /// There are fewer calls of the kind.
    Completed,
}

/// Whether processes can be killed like that here; says what is missing otherwise.
pub fn is_possible() -> bool {
    let strace = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let is_there = strace.is_ok_and(|status| status.success());
    if !is_there {
        println!("skipped: strace is not there, or may not trace; scripts/test-tools installs it");
    }
    is_there
}

/// Starts a test of this program again, which sees `variable` set to `value`, and kills it in the place of the
/// `number`th call (from 1) of a kind.
pub fn run(test: &str, variable: &str, value: &str, directory: &Path, call: &str, number: u64) -> End {
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:error=EIO:signal=SIGKILL:when={number}")])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads", "1"])
        .env(variable, value)
        .current_dir(directory)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    match (status.signal(), status.code()) {
        (Some(9), _) | (_, Some(137)) => End::Killed,
        (_, Some(0)) => End::Completed,
        _ => panic!("{test} with {variable}={value}, {call} {number}: {status}"),
    }
}
