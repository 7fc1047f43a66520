//! Programs that `scripts/sqlite-suite` built from SQLite's source, with flashwise as their default VFS.
#![allow(dead_code, reason = "each test file uses its share")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::configurations::{Configuration, techniques_for};

/// SQLite's tests refuse to run as root.
const NOBODY: u32 = 65534;

/// Programs with what they need, where an ordinary user can get at it.
pub struct Suite {
    dir: tempfile::TempDir,
    as_nobody: bool,
}

/// How a program ended, and all that it said.
pub struct Outcome {
    pub status: ExitStatus,
    pub text: String,
}

fn library() -> PathBuf {
    // Cargo builds the library of the package under test, and leaves it beside the test programs.
    std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so")
}

impl Suite {
    /// Programs, and files of SQLite's source beside them by their last names. `None`, and a line that says why, where
    /// a program is not there.
    pub fn find(programs: &[&str], files: &[&str]) -> Option<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let built =
            target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).join("sqlite-suite");
        if let Some(missing) = programs.iter().find(|program| !built.join("build").join(program).exists()) {
            println!(
                "skipped: SQLite's own {missing} is not built; scripts/sqlite-suite does that as root, from Debian's \
                 source"
            );
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let copy = |from: &Path| {
            let status = Command::new("cp").arg("-r").arg(from).arg(dir.path()).status();
            assert!(status.unwrap().success(), "copying {}", from.display());
        };
        programs.iter().for_each(|program| copy(&built.join("build").join(program)));
        files.iter().for_each(|file| copy(&built.join("source").join(file)));
        copy(&library());
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/places.tcl"));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let as_nobody = rustix::process::geteuid().is_root();
        Some(Self { dir, as_nobody })
    }

    /// Where a program or a file is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// An empty directory for one run.
    pub fn workplace(&self) -> tempfile::TempDir {
        let work = tempfile::tempdir_in(self.dir.path()).unwrap();
        if self.as_nobody {
            chown(work.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        work
    }

    /// Runs a program in a directory, for so many seconds at most, on databases with such pages; `None` where the
    /// program changes them.
    pub fn run(
        &self,
        configuration: &Configuration,
        page: Option<u32>,
        work: &Path,
        seconds: u32,
        program: &str,
        arguments: &[PathBuf],
    ) -> Outcome {
        let mut command = Command::new("timeout");
        command
            .arg(seconds.to_string())
            .arg(self.path(program))
            .args(arguments)
            .current_dir(work)
            .env("HOME", work)
            .env("FLASHWISE_LIBRARY", self.path("libflashwise_sqlite.so"))
            .env("FLASHWISE_SQLITE", techniques_for(configuration.techniques, page))
            .stdin(Stdio::null());
        if self.as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome { status: output.status, text: said(&output.stdout) + &said(&output.stderr) }
    }
}

/// Does some work for each item, so many at a time.
pub fn in_parallel<T: Sync>(items: &[T], at_once: usize, work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}
