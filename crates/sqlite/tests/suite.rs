//! SQLite's own tests on the VFS: `testfixture` from SQLite's source, with flashwise as its default VFS.
//!
//! Each configuration must have no error that SQLite's own VFS does not have. What differs for a reason stands in
//! `suite/known-differences.txt`, with the reason. `scripts/sqlite-suite` builds the program; without it the tests say
//! so and skip.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// SQLite's tests refuse to run as root.
const NOBODY: u32 = 65534;

/// A way to run the tests.
struct Configuration {
    name: &'static str,
    techniques: &'static str,
    /// Whether databases and logs are laid out.
    layout: bool,
    /// Whether writes are held back.
    holds_back: bool,
    /// Whether the space of freed pages is given back.
    discards: bool,
}

const CONFIGURATIONS: [Configuration; 7] = [
    Configuration { name: "no technique", techniques: "", layout: false, holds_back: false, discards: false },
    Configuration {
        name: "use-hot-locations",
        techniques: "use-hot-locations=64k+32k",
        layout: true,
        holds_back: true,
        discards: false,
    },
    Configuration {
        name: "write-aligned-stripes",
        techniques: "write-aligned-stripes=64k",
        layout: true,
        holds_back: true,
        discards: false,
    },
    Configuration {
        name: "contain-write-in-flash-page",
        techniques: "contain-write-in-flash-page=16k",
        layout: true,
        holds_back: true,
        discards: false,
    },
    Configuration { name: "sparse-log", techniques: "sparse-log=4k", layout: true, holds_back: true, discards: false },
    Configuration {
        name: "concurrent-write-back and discard",
        techniques: "concurrent-write-back=8&discard=on",
        layout: false,
        holds_back: true,
        discards: true,
    },
    Configuration {
        name: "all together",
        techniques: "use-hot-locations=64k+32k&write-aligned-stripes=64k&concurrent-write-back=8&discard=on",
        layout: true,
        holds_back: true,
        discards: true,
    },
];

/// What `make test` runs: a file of each part of SQLite that has to do with files.
const SELECTION: [&str; 28] = [
    "attach",
    "autovacuum",
    "bigfile2",
    "corruptA",
    "crash5",
    "delete",
    "e_vacuum",
    "e_walckpt",
    "incrblob",
    "incrvacuum",
    "insert",
    "ioerr4",
    "journal1",
    "journal2",
    "jrnlmode",
    "jrnlmode3",
    "lock",
    "pagesize",
    "rollback",
    "savepoint",
    "select1",
    "superlock",
    "update",
    "vacuum",
    "wal2",
    "wal4",
    "walbak",
    "walro",
];

/// A difference that is known: where it holds, the test file, the test (with * at its end for more), the reason.
struct Known {
    scope: String,
    file: String,
    test: String,
}

fn known() -> Vec<Known> {
    let text = include_str!("../suite/known-differences.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (what, reason) = line.split_once('|').expect("a reason behind a bar");
            assert!(!reason.trim().is_empty(), "without a reason: {line}");
            let mut words = what.split_whitespace().map(str::to_owned);
            let mut word = || words.next().expect("scope, file and test");
            Known { scope: word(), file: word(), test: word() }
        })
        .collect()
}

impl Known {
    fn covers(&self, configuration: &Configuration, file: &str, test: &str) -> bool {
        let holds = match self.scope.as_str() {
            "any" => true,
            "layout" => configuration.layout,
            "held" => configuration.holds_back,
            "discard" => configuration.discards,
            other => panic!("no scope is called {other}"),
        };
        let is_test = self.test.strip_suffix('*').map_or(test == self.test, |start| test.starts_with(start));
        holds && self.file == file && is_test
    }
}

/// The test program with what it needs, where an ordinary user can get at it.
struct Suite {
    dir: tempfile::TempDir,
    as_nobody: bool,
}

fn library() -> PathBuf {
    // Cargo builds the library of the package under test, and leaves it beside the test programs.
    std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so")
}

impl Suite {
    /// `None`, and a line that says why, where the test program is not there.
    fn find() -> Option<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let built =
            target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")).join("sqlite-suite");
        if !built.join("build/testfixture").exists() {
            println!(
                "skipped: SQLite's own tests are not built; scripts/sqlite-suite does that as root, from Debian's source"
            );
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let copy = |from: &Path, to: &str| {
            let status = Command::new("cp").arg("-r").arg(from).arg(dir.path().join(to)).status();
            assert!(status.unwrap().success(), "copying {}", from.display());
        };
        copy(&built.join("build/testfixture"), "testfixture");
        copy(&built.join("source/test"), "test");
        copy(&library(), "library.so");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/places.tcl"), "places.tcl");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let as_nobody = rustix::process::geteuid().is_root();
        Some(Self { dir, as_nobody })
    }

    /// Runs one file; tells its tests and the names of those that failed.
    fn run(&self, configuration: &Configuration, file: &str) -> (usize, Vec<String>) {
        let work = tempfile::tempdir_in(self.dir.path()).unwrap();
        if self.as_nobody {
            chown(work.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let path = |name: &str| self.dir.path().join(name);
        let mut command = Command::new("timeout");
        command.arg("300").arg(path("testfixture"));
        if configuration.layout {
            command.arg(path("places.tcl"));
        }
        command
            .arg(path("test").join(format!("{file}.test")))
            .current_dir(work.path())
            .env("HOME", work.path())
            .env("FLASHWISE_LIBRARY", path("library.so"))
            .env("FLASHWISE_SQLITE", configuration.techniques)
            .stdin(Stdio::null());
        if self.as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let count = text.lines().find_map(|line| line.split_once(" errors out of ")?.1.split(' ').next()?.parse().ok());
        let failed = text.lines().find_map(|line| line.strip_prefix("!Failures on these tests:"));
        let mut failed: Vec<String> = failed.unwrap_or("").split_whitespace().map(str::to_owned).collect();
        if count.is_none() {
            failed.push(format!("(it did not reach its end: {})", output.status));
        }
        (count.unwrap_or(0), failed)
    }

    /// Runs files, two at a time; tells how many tests there were, and every failure that nothing explains.
    fn run_all(&self, configuration: &Configuration, files: &[String]) -> (usize, usize, Vec<String>) {
        let (next, tests, explained) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let unexplained = Mutex::new(Vec::new());
        let known = known();
        let work = || {
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (count, failed) = self.run(configuration, file);
                tests.fetch_add(count, Ordering::Relaxed);
                for test in failed {
                    if known.iter().any(|known| known.covers(configuration, file, &test)) {
                        explained.fetch_add(1, Ordering::Relaxed);
                    } else {
                        unexplained.lock().unwrap().push(format!("{file}.test: {test}"));
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
        (tests.into_inner(), explained.into_inner(), unexplained.into_inner().unwrap())
    }

    fn check(&self, files: &[String]) {
        let mut all = Vec::new();
        for configuration in &CONFIGURATIONS {
            let (tests, explained, unexplained) = self.run_all(configuration, files);
            let name = configuration.name;
            println!(
                "{name}: {tests} tests of {} files, {explained} known differences, {} errors",
                files.len(),
                unexplained.len()
            );
            assert!(tests > files.len(), "{name}: the files hold more tests than {tests}");
            all.extend(unexplained.into_iter().map(|test| format!("{name}: {test}")));
        }
        assert!(all.is_empty(), "errors that SQLite's own VFS does not have:\n{}", all.join("\n"));
    }
}

#[test]
fn a_selection_of_sqlites_own_tests_passes_under_every_technique() {
    let Some(suite) = Suite::find() else { return };
    suite.check(&SELECTION.map(str::to_owned));
}

/// Everything that `veryquick` runs, for each configuration: twenty minutes on two cores.
#[test]
#[ignore = "twenty minutes: make test-full runs it"]
fn sqlites_own_tests_pass_under_every_technique() {
    let Some(suite) = Suite::find() else { return };
    let files: Vec<String> = include_str!("../suite/files.txt").lines().map(str::to_owned).collect();
    assert!(files.len() > 900);
    suite.check(&files);
}

#[test]
fn every_known_difference_is_of_a_file_that_is_run_and_stands_once() {
    let files: BTreeSet<&str> = include_str!("../suite/files.txt").lines().collect();
    let mut seen = BTreeSet::new();
    for known in known() {
        assert!(files.contains(known.file.as_str()), "{}", known.file);
        assert!(seen.insert((known.scope, known.file.clone(), known.test.clone())), "{} {}", known.file, known.test);
    }
}
