//! SQLite's own `speedtest1` on a real file: its own VFS beside flashwise, without and with techniques, in pairs.
//!
//! ```console
//! $ scripts/sqlite-suite all     # as root, once: builds speedtest1 from Debian's source
//! $ cargo bench -p flashwise-benches --bench sqlite [-- DIRECTORY] [--pairs N] [--size N]
//! ```
//!
//! The program is the same in all runs, with SQLite's own VFS where no library is named to it. For each journal and
//! each way the median over the pairs of its time ÷ that of SQLite's own VFS, run just before or just after it, with
//! the 95 % bootstrap interval of the median. Which of a pair is first changes from pair to pair.

#![allow(clippy::disallowed_methods, reason = "it measures on files of its own")]

mod pairs;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pairs::{Arguments, Compared, compare};

/// What is asked of the VFS.
const WAYS: [(&str, &str); 3] = [
    ("no technique", ""),
    ("concurrent-write-back=8", "concurrent-write-back=8"),
    ("write-aligned-stripes=64k", "write-aligned-stripes=64k"),
];
const JOURNALS: [&str; 2] = ["delete", "wal"];

fn speedtest1() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"));
    target.join("sqlite-suite/build/speedtest1")
}

/// Runs it once; SQLite's own VFS where there are no techniques.
fn run(
    program: &Path,
    arguments: &Arguments,
    journal: &str,
    techniques: Option<&str>,
) -> Result<Duration, Box<dyn Error>> {
    let library = std::env::current_exe()?.with_file_name("libflashwise_sqlite.so");
    let file = arguments.directory.join("speedtest1.db");
    for suffix in ["", "-wal", "-shm", "-journal", "-fwwal", "-fwjournal", "-fwbatch"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    let mut command = Command::new(program);
    command.args(["--journal", journal, "--size", &arguments.amount.to_string()]).arg(&file).stdout(Stdio::null());
    if let Some(techniques) = techniques {
        command.env("FLASHWISE_LIBRARY", library).env("FLASHWISE_SQLITE", techniques);
    }
    let started = Instant::now();
    let status = command.status()?;
    let time = started.elapsed();
    let _ = std::fs::remove_file(&file);
    if status.success() { Ok(time) } else { Err(format!("speedtest1 ended with {status}").into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (arguments, program) = (Arguments::parse(15, "--size", 10)?, speedtest1());
    if !program.exists() {
        println!("skipped: speedtest1 is not built; scripts/sqlite-suite all does that as root, from Debian's source");
        return Ok(());
    }
    println!("speedtest1 --size {}, {} pairs, in {}", arguments.amount, arguments.pairs, arguments.directory.display());
    // Not measured: the first one finds nothing of the program in memory.
    run(&program, &arguments, JOURNALS[0], Some(""))?;
    for journal in JOURNALS {
        for (name, techniques) in WAYS {
            let ours = || run(&program, &arguments, journal, Some(techniques));
            let Compared { ratio, low, high, second } =
                compare(arguments.pairs, ours, || run(&program, &arguments, journal, None))?;
            println!("{journal:<7} {name:<26} {ratio:.3} of SQLite's own ({low:.3}…{high:.3}); that one {second:.2} s");
        }
    }
    Ok(())
}
