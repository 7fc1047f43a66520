//! A directory that is deleted at the end, with every process that works in it, even if flashwise is killed.
//!
//! ```text
//!   flashwise ──pipe──▶ sh: mktemp -d; wait for the end of input; end processes whose working directory is in it; rm -rf
//! ```
//!
//! The kernel closes the pipe however flashwise ends, and the shell is in a process group of its own, so that Ctrl-C
//! does not reach it. The shell creates the directory itself, so it knows of every such directory.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::TuneError;

/// `QUIT` lets a server end its processes and release its shared memory; `KILL` is for processes still running after 10
/// s.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
dir=$(mktemp -d "$1/$2.XXXXXX") || exit 1
printf '%s\n' "$dir"
while read -r _; do :; done
exec >/dev/null
signal=QUIT tries=0
while :; do
    left=$(ls -ld /proc/[0-9]*/cwd | grep -F -e " -> $dir" | sed 's|.* /proc/\([0-9]*\)/cwd -> .*|\1|')
    [ -n "$left" ] || { rm -rf "$dir"; [ -e "$dir" ] || exit 0; }
    for process in $left; do kill -s $signal "$process"; done
    tries=$((tries + 1))
    [ $tries -lt 100 ] || signal=KILL
    [ $tries -lt 200 ] || exit 1
    sleep 0.1
done
"#;

/// A directory with its guard.
#[derive(Debug)]
pub struct DirectoryGuard {
    shell: Child,
    path: PathBuf,
}

impl DirectoryGuard {
    /// Creates a new directory in `parent`, whose name starts with `name`.
    ///
    /// # Errors
    /// When it cannot be created there.
    pub fn new(parent: &Path, name: &str) -> Result<Self, TuneError> {
        let failed = |e: &io::Error| TuneError::file(parent, e);
        let parent = parent.canonicalize().map_err(|e| failed(&e))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "sh"]).arg(&parent).arg(name).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = command.spawn().map_err(|e| TuneError::file("/bin/sh", &e))?;
        let mut path = String::new();
        if let Some(told) = shell.stdout.take() {
            BufReader::new(told).read_line(&mut path).map_err(|e| failed(&e))?;
        }
        let guard = Self { shell, path: PathBuf::from(path.trim_end_matches('\n')) };
        match guard.path.is_dir() {
            true => Ok(guard),
            false => {
                let message = "a directory cannot be created in it".to_owned();
                Err(TuneError::File { path: parent, message })
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DirectoryGuard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(directory: &Path) -> Command {
        let mut command = Command::new("sleep");
        // It must not keep the output of the tests open if it is left behind.
        command.arg("60").current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    #[test]
    fn the_directory_goes_with_its_guard_and_what_works_in_it_is_ended() {
        let parent = tempfile::tempdir().unwrap();
        let guard = DirectoryGuard::new(parent.path(), "guarded").unwrap();
        let path = guard.path().to_owned();
        std::fs::write(path.join("file"), "x").unwrap();
        let mut inside = sleeper(&path).spawn().unwrap();
        let mut beside = sleeper(parent.path()).spawn().unwrap();
        drop(guard);
        assert!(!path.exists() && std::fs::read_dir(parent.path()).unwrap().next().is_none());
        assert!(!inside.wait().unwrap().success());
        assert!(beside.try_wait().unwrap().is_none(), "what is not in it goes on");
        beside.kill().unwrap();
        beside.wait().unwrap();
    }

    #[test]
    fn where_no_directory_can_be_made_that_is_told() {
        assert!(
            DirectoryGuard::new(Path::new("/no/such/place"), "guarded")
                .err()
                .unwrap()
                .to_string()
                .contains("/no/such/place")
        );
        assert!(
            DirectoryGuard::new(Path::new("/proc"), "guarded")
                .err()
                .unwrap()
                .to_string()
                .contains("a directory cannot be created")
        );
    }
}
