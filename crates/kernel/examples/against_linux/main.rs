//! Runs the same calls on Linux and on the model, and compares what reaches the drive and how long it takes.
//!
//! `scripts/kernel-against-linux` runs all of it:
//!
//! ```text
//! against_linux record FLASHWISE DIR OUT.csv [PART OF A NAME | -PART OF A NAME]…
//!                          runs workloads in DIR, where `flashwise attach --mount` serves a drive
//! against_linux counts ext4|ext4-fast-commit|xfs SCALE COSTS RECORDED.csv…
//!                          requests, bytes and flushes beside the model's
//! against_linux rates ext4|ext4-fast-commit|xfs SCALE COSTS RECORDED.csv…
//!                          operations a second beside the model's
//!
//! --share N                one part in N of each workload, for a drive that is slowed down
//! ```

#![allow(clippy::expect_used, reason = "a call that fails ends the run")]
#![allow(clippy::disallowed_methods, reason = "the directory was made for it, and plain calls are what is measured")]

mod linux;
mod model;
mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use flashwise_block::{BlockDevice, Nanos};
use flashwise_kernel::{FileSystemKind, ProcessorCosts};

use crate::linux::Linux;
use crate::model::Model;
use crate::workloads::{Workload, all, make_file};

const COLUMNS: [&str; 6] = ["host_reads", "host_bytes_read", "host_writes", "host_bytes_written", "flushes", "trims"];

/// Nanoseconds, then the columns.
type Row = [u64; 7];

/// What an attached drive has counted.
fn counters(flashwise: &str, mount: &Path) -> [u64; 6] {
    let output = Command::new(flashwise).args(["device", "stat"]).arg(mount).args(["-o", "json"]).output();
    let text = String::from_utf8(output.expect("flashwise device stat").stdout).expect("JSON");
    let all = text.split_once("\"counters\"").expect("counters").1;
    COLUMNS.map(|name| {
        let behind = all.split_once(&format!("\"{name}\"")).expect("a counter").1;
        let digits: String =
            behind.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    })
}

fn selected(parts: &[String]) -> Vec<Workload> {
    let (without, with): (Vec<&str>, Vec<&str>) =
        parts.iter().map(String::as_str).partition(|part| part.starts_with('-'));
    let is_named = |name: &str| with.is_empty() || with.iter().any(|part| name.contains(part));
    let is_left_out = |name: &str| without.iter().any(|part| name.contains(&part[1..]));
    all().into_iter().filter(|workload| is_named(workload.name) && !is_left_out(workload.name)).collect()
}

fn record(flashwise: &str, mount: PathBuf, out: &str, parts: &[String]) {
    let mut linux = Linux::new(mount.clone());
    make_file(&mut linux);
    let mut text = format!("workload,nanoseconds,{}\n", COLUMNS.join(","));
    for workload in selected(parts) {
        workload.prepare(&mut linux);
        let before = counters(flashwise, &mount);
        let began = Instant::now();
        workload.run(&mut linux);
        let elapsed = began.elapsed().as_nanos();
        // What was read ahead last, and discards, are on their way.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let after = counters(flashwise, &mount);
        let counts: Vec<String> =
            after.iter().zip(before).map(|(after, before)| (after - before).to_string()).collect();
        text += &format!("{},{elapsed},{}\n", workload.name, counts.join(","));
    }
    std::fs::write(out, text).expect("the recording");
}

fn model(setup: &Setup, names: &BTreeMap<String, Vec<Row>>) -> Vec<(Workload, Row)> {
    let scale = setup.scale;
    let mut model = Model::new(model::machine("samsung-960-evo", setup), scale);
    make_file(&mut model);
    let mut rows = Vec::new();
    for workload in all().into_iter().filter(|workload| names.contains_key(workload.name)) {
        workload.prepare(&mut model);
        let counts = |model: &Model| {
            let all = model.kernel.device().counters();
            [all.host_reads, all.host_bytes_read.0, all.host_writes, all.host_bytes_written.0, all.flushes, all.trims]
        };
        let (before, began) = (counts(&model), model.kernel.now());
        workload.run(&mut model);
        let elapsed = model.kernel.now().since(began).0 * scale;
        model.kernel.pause(Nanos(20_000_000 / scale)).expect("a pause");
        let after = counts(&model);
        let mut row = [elapsed; 7];
        (0..6).for_each(|column| row[column + 1] = after[column] - before[column]);
        rows.push((workload, row));
    }
    rows
}

fn read(files: &[String]) -> BTreeMap<String, Vec<Row>> {
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("a recording");
        for line in text.lines().skip(1) {
            let (name, numbers) = line.split_once(',').expect("a row");
            let numbers: Vec<u64> = numbers.split(',').map(|number| number.parse().expect("a number")).collect();
            rows.entry(name.to_owned()).or_default().push(numbers.try_into().expect("seven columns"));
        }
    }
    rows
}

fn median(rows: &[Row], column: usize) -> u64 {
    let mut values: Vec<u64> = rows.iter().map(|row| row[column]).collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// What the recording was made with.
struct Setup {
    file_system: FileSystemKind,
    /// `mkfs.ext4 -O fast_commit`
    fast_commit: bool,
    /// `attach --time-scale`
    scale: u64,
    costs: ProcessorCosts,
}

/// What deviates, with the reason in `docs/kernel.md`. Nothing else may.
fn is_known(file_system: FileSystemKind, workload: &str, column: &str) -> bool {
    match (workload, column) {
        // Which blocks XFS takes again before their trim is sent is a race of two threads.
        (name, "trims") if file_system == FileSystemKind::Xfs => {
            name.starts_with("sqlite_delete") || name == "rename_replace_16k_fsync"
        }
        // ext4 sends trims in a worker, whenever that runs.
        (_, "trims") => file_system == FileSystemKind::Ext4,
        // The group of the space for small files, which depends on what was allocated before and on the processor,
        // decides how many bitmaps are logged.
        (name, "bytes written")
            if ["append_4k_f", "create_fsync_delete", "sqlite_delete"].iter().any(|part| name.starts_with(part)) =>
        {
            file_system == FileSystemKind::Ext4
        }
        // Commits come with the clock's tick: how many depends on the machine's pace.
        ("overwrite_4k_fsync" | "sqlite_wal_normal_2500_commits" | "sqlite_persist_full_4096_150_commits", _) => true,
        // How pages lie in memory decides where a request ends.
        ("write_stream_4k_fdatasync" | "create_1000_files_sync", "writes") => true,
        _ => false,
    }
}

/// Prints counts, and fails where one differs by more than 10 %.
fn compare_counts(setup: &Setup, files: &[String]) -> ExitCode {
    let recorded = read(files);
    println!("| workload | reads | MB read | writes | MB written | flushes | trims |");
    println!("|---|---|---|---|---|---|---|");
    let mut far = Vec::new();
    for (workload, ours) in model(setup, &recorded) {
        let mut cells = format!("| {} |", workload.name.replace('_', " "));
        for (column, name) in ["reads", "bytes read", "writes", "bytes written", "flushes", "trims"].iter().enumerate()
        {
            let (model, real) = (ours[column + 1], median(&recorded[workload.name], column + 1));
            let few = match *name {
                // Which metadata is still in memory is the kernel's reclaim's decision.
                "reads" => 32,
                "bytes read" => 256 << 10,
                "bytes written" => 64 << 10,
                _ => 16,
            };
            if model <= few && real <= few {
                cells += " – |";
                continue;
            }
            cells += &match name.starts_with("bytes") {
                true => format!(" {:.2} / {:.2} |", model as f64 / 1e6, real as f64 / 1e6),
                false => format!(" {model} / {real} |"),
            };
            if model.abs_diff(real) * 10 > real && !is_known(setup.file_system, workload.name, name) {
                far.push(format!("{}: {name} {model}, Linux {real}", workload.name));
            }
        }
        println!("{cells}");
    }
    report(&far)
}

/// Prints operations a second, and fails where they differ by more than 15 %.
fn compare_rates(setup: &Setup, files: &[String]) -> ExitCode {
    let recorded = read(files);
    println!("| workload | model | Linux | model / Linux |");
    println!("|---|---|---|---|");
    let mut far = Vec::new();
    for (workload, ours) in model(setup, &recorded) {
        let rate = |nanoseconds: u64| {
            let scale = if workload.name.starts_with("warm") { 1 } else { setup.scale };
            (workload.operations() * scale) as f64 * 1e9 / nanoseconds.max(1) as f64
        };
        let (model, real) = (rate(ours[0]), rate(median(&recorded[workload.name], 0)));
        println!("| {} | {model:.0} | {real:.0} | {:.2} |", workload.name.replace('_', " "), model / real);
        if (model - real).abs() > 0.15 * real {
            far.push(format!("{}: {model:.0} operations a second, Linux {real:.0}", workload.name));
        }
    }
    report(&far)
}

fn report(far: &[String]) -> ExitCode {
    far.iter().for_each(|line| eprintln!("{line}"));
    if far.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--share") {
        let share = arguments.drain(at..at + 2).nth(1).and_then(|share| share.parse().ok());
        workloads::cut_to(share.expect("--share N"));
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["record", flashwise, mount, out, ..] => {
            record(flashwise, PathBuf::from(mount), out, &arguments[4..]);
            ExitCode::SUCCESS
        }
        [what @ ("counts" | "rates"), name @ ("ext4" | "ext4-fast-commit" | "xfs"), scale, costs, ..] => {
            let file_system = if *name == "xfs" { FileSystemKind::Xfs } else { FileSystemKind::Ext4 };
            let fast_commit = *name == "ext4-fast-commit";
            let scale = scale.parse().expect("a factor");
            let costs = match *costs {
                "default" => ProcessorCosts::default(),
                file => ProcessorCosts::from_toml(&std::fs::read_to_string(file).expect("costs"), file).expect("costs"),
            };
            let setup = Setup { file_system, fast_commit, scale, costs };
            if *what == "counts" {
                compare_counts(&setup, &arguments[4..])
            } else {
                compare_rates(&setup, &arguments[4..])
            }
        }
        _ => {
            eprintln!("against_linux [--share N] record FLASHWISE DIR OUT.csv [PART OF A NAME | -PART OF A NAME]…");
            eprintln!("against_linux [--share N] counts|rates ext4|ext4-fast-commit|xfs SCALE COSTS RECORDED.csv…");
            eprintln!("COSTS is a file that `flashwise kernel calibrate --costs` wrote, or `default`");
            ExitCode::FAILURE
        }
    }
}
