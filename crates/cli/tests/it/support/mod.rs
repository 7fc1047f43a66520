//! The program, run in a directory of its own.

#![allow(dead_code, reason = "each test file uses its share")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Arguments of a workload that takes a moment.
pub const TINY: [&str; 10] =
    ["--rows", "300", "--rounds", "2", "--inserts", "20", "--selects", "40", "--time-budget", "1s"];

/// How long a program that is to end may take.
const ENDING: Duration = Duration::from_secs(300);

/// A working directory, and beside it one for temporary files.
pub struct Place {
    work: TempDir,
    temporary: TempDir,
}

/// How a run of the program ended.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self { work: tempfile::tempdir().unwrap(), temporary: tempfile::tempdir().unwrap() }
    }

    /// A place with the default drive's profile, `p.toml`.
    pub fn with_profile() -> Self {
        static PROFILE: OnceLock<String> = OnceLock::new();
        let place = Self::new();
        let profile = PROFILE.get_or_init(|| {
            let place = Self::new();
            place.run(&["learn", "--profile", "p.toml"]).expect(0);
            place.read("p.toml")
        });
        place.write("p.toml", profile);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A database with 1,000 rows.
    pub fn database(&self, name: &str) {
        let sql = "PRAGMA page_size = 65536; CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT);
            WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
            INSERT INTO t SELECT x, 'value ' || x FROM n";
        rusqlite::Connection::open(self.path(name)).unwrap().execute_batch(sql).unwrap();
    }

    /// The program in this place, ready to be run; its width is 80.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("flashwise"));
        command.current_dir(self.work.path()).args(arguments);
        command.env("TMPDIR", self.temporary.path()).env("COLUMNS", "80").env_remove("NO_COLOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        let ended = Ended::from(self.command(arguments).output().unwrap());
        assert!(is_empty(self.temporary.path()), "{arguments:?} left a temporary file");
        ended
    }

    /// Runs what must fail: in text and in JSON, saying the same, leaving nothing behind. Gives the line on stderr.
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let before = self.names();
        let text = self.run(arguments);
        assert_eq!((text.code, &*text.stdout), (code, ""), "{arguments:?}: {}", text.stderr);
        let line = text.stderr.strip_suffix('\n').unwrap().to_owned();
        assert!(line.starts_with("flashwise: ") && !line.contains('\n'), "{arguments:?}: {line}");
        let json = self.run(&[arguments, &["-o", "json"]].concat());
        assert_eq!((json.code, &json.stderr), (code, &text.stderr), "{arguments:?}");
        let document = json.document();
        assert_eq!(document["schema"], "flashwise.error");
        assert_eq!(document["schema_version"], 1);
        assert_eq!(document["error"]["exit_code"], code);
        assert_eq!(document["error"]["message"], line["flashwise: ".len()..]);
        assert_eq!(self.names(), before, "{arguments:?} left something behind");
        line
    }

    /// The names in the working directory, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.work.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn has_no_temporary_files(&self) -> bool {
        is_empty(self.temporary.path())
    }
}

impl Ended {
    /// Waits for a program that ends by itself or was told to; one that goes on all the same is killed, and is a
    /// failure.
    pub fn of(child: Child) -> Self {
        let (ended, end) = mpsc::channel::<()>();
        let process = Pid::from_child(&child);
        let guard = std::thread::spawn(move || {
            let goes_on = end.recv_timeout(ENDING) == Err(mpsc::RecvTimeoutError::Timeout);
            goes_on.then(|| kill_process(process, Signal::KILL))
        });
        let output = child.wait_with_output().unwrap();
        drop(ended);
        assert!(guard.join().unwrap().is_none(), "it went on: {}", String::from_utf8_lossy(&output.stderr));
        output.into()
    }

    /// Checks the exit code.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.stderr);
        self
    }

    /// The one document on stdout, which has a schema and its version.
    pub fn document(&self) -> Value {
        let document: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout));
        assert!(document["schema"].as_str().unwrap().starts_with("flashwise."));
        assert_eq!(document["schema_version"], 1);
        document
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or_else(|| panic!("{:?}", output.status)),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}
