//! Terminals, pipes, full disks and Ctrl-C.

use crate::support;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use support::{Ended, Place, TINY, is_empty};

/// What a command writes to a terminal that stands for one of its outputs.
fn on_a_terminal(mut command: Command, attach: impl FnOnce(&mut Command, Stdio)) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    attach(&mut command, terminal.into());
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut master, mut bytes, mut buffer) = (File::from(master), Vec::new(), [0; 4096]);
    // The end of a terminal's output is an error, EIO.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8(bytes).unwrap()
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// A long table, of a drive that needs no more learning.
const KNOWN: [&str; 3] = ["learn", "--resume", "p.toml"];

/// Waits until something holds, for at most 20 s.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process has a deleted file of a directory open: the scratch file.
fn has_scratch_file(process: u32, directory: &Path) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let mut targets = targets.map(|target| target.to_string_lossy().into_owned());
    targets.any(|target| target.starts_with(directory.to_str().unwrap()) && target.ends_with("(deleted)"))
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_no_panic() {
    let place = Place::with_profile();
    for arguments in [
        &["generate", "completions", "bash"][..],
        &["learn", "-o", "json"],
        &["learn"],
        &["device", "show", "samsung-960-evo"],
        &["--help"],
    ] {
        let mut child = place.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let ended = Ended::of(child).expect(0);
        assert_eq!(ended.stderr, "", "{arguments:?}");
    }
}

#[test]
fn a_reader_that_goes_away_in_the_middle_is_none_either() {
    let place = Place::new();
    let mut child = place.command(&["learn", "-o", "json"]).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    drop(stdout);
    let ended = Ended::of(child).expect(0);
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_failure_whose_readers_are_gone_still_has_its_exit_code() {
    let place = Place::new();
    for arguments in [&["learn", "nosuchdir", "-o", "json"][..], &["lern"], &["fit"]] {
        let mut child = place.command(arguments).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_result_that_finds_no_room_is_an_error() {
    let place = Place::new();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.command(&["device", "list"]).stdout(full).output().unwrap();
    let ended = Ended::from(output).expect(1);
    assert_eq!(ended.stderr, "flashwise: stdout: No space left on device\n");
}

#[test]
fn colours_are_for_terminals_and_for_people_who_want_them() {
    let place = Place::with_profile();
    let to_terminal = |no_color: Option<&str>| {
        let mut command = place.command(&KNOWN);
        command.stderr(Stdio::null()).envs(no_color.map(|value| ("NO_COLOR", value)));
        on_a_terminal(command, |command, terminal| {
            command.stdout(terminal);
        })
    };
    assert!(to_terminal(None).contains('\x1b'));
    assert!(to_terminal(Some("")).contains('\x1b'), "an empty NO_COLOR asks for nothing");
    assert!(!to_terminal(Some("1")).contains('\x1b'));
    assert!(!place.run(&KNOWN).expect(0).stdout.contains('\x1b'));
}

#[test]
fn progress_is_for_terminals_and_never_on_stdout() {
    let place = Place::with_profile();
    let arguments = [&["fit", "sqlite", "--profile", "p.toml", "-o", "json"][..], &TINY].concat();
    let mut command = place.command(&arguments);
    command.stdout(File::create(place.path("out.json")).unwrap());
    let shown = on_a_terminal(command, |command, terminal| {
        command.stderr(terminal);
    });
    assert!(shown.contains("ETA"), "{shown:?}");
    serde_json::from_str::<serde_json::Value>(&place.read("out.json")).unwrap();
    let lines = place.run(&arguments).expect(0).stderr;
    assert!(!lines.contains("ETA") && lines.lines().all(|line| line.contains(" s, ")), "{lines}");
}

#[test]
fn long_work_says_how_far_it_is_off_a_terminal_too() {
    let place = Place::with_profile();
    let sizes = ["--rows", "100000", "--rounds", "4", "--time-budget", "5s"];
    let lines = place.run(&[&["fit", "sqlite", "--profile", "p.toml"][..], &sizes].concat()).expect(0).stderr;
    assert!(lines.lines().any(|line| line.starts_with("flashwise: ") && line.contains(" %: ")), "{lines}");
}

#[test]
fn tables_are_as_wide_as_columns_says() {
    let place = Place::with_profile();
    let width = |columns: &str| {
        let output = place.command(&KNOWN).env("COLUMNS", columns).output().unwrap();
        let text = Ended::from(output).expect(0).stdout;
        text.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert_eq!([width("60"), width("80")], [60, 80]);
    assert!((81..=120).contains(&width("120")));
    assert_eq!([width("5"), width("none")], [60, 80]);
}

#[test]
fn ctrl_c_while_a_database_is_worked_on_ends_with_130_and_an_empty_directory() {
    let place = Place::with_profile();
    std::fs::create_dir(place.path("drive")).unwrap();
    let before = place.names();
    let arguments = ["fit", "sqlite", "--on", "drive", "--profile", "p.toml", "--rows", "40000", "-o", "json"];
    let child = place.command(&arguments).spawn().unwrap();
    wait_until("the scratch directory", || !is_empty(&place.path("drive")));
    std::thread::sleep(Duration::from_millis(300));
    interrupt(&child);
    let ended = Ended::of(child).expect(130);
    assert!(ended.stderr.ends_with("flashwise: interrupted\n"), "{}", ended.stderr);
    assert_eq!(ended.document()["error"]["exit_code"], 130);
    assert!(is_empty(&place.path("drive")) && place.has_no_temporary_files());
    assert_eq!(place.names(), before);
}

#[test]
fn ctrl_c_while_a_drive_is_learned_ends_with_130_and_an_empty_directory() {
    let place = Place::new();
    let drive = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = drive.path().canonicalize().unwrap();
    let arguments = ["learn", path.to_str().unwrap(), "--profile", "p.toml", "--html", "p.html"];
    let mut child = place.command(&arguments).spawn().unwrap();
    wait_until("the scratch file", || has_scratch_file(child.id(), &path) || child.try_wait().unwrap().is_some());
    if child.try_wait().unwrap().is_none() {
        interrupt(&child);
    }
    let ended = Ended::of(child);
    if ended.code == 5 {
        return eprintln!("skipped: no scratch file is possible here: {}", ended.stderr);
    }
    // A line before it says whether the disk of this machine is virtual or busy.
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| !line.starts_with("flashwise: the disk is ")).collect();
    assert_eq!((ended.code, &*lines, &*ended.stdout), (130, &["flashwise: interrupted"][..], ""));
    assert!(is_empty(&path) && place.names().is_empty() && place.has_no_temporary_files());
}

#[test]
fn ctrl_c_while_a_simulated_drive_is_learned_ends_with_130() {
    let place = Place::new();
    let child = place.command(&["learn", "sim:micron-m500", "--profile", "p.toml"]).spawn().unwrap();
    let handles_interrupts = |status: &str| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
    };
    let status = format!("/proc/{}/status", child.id());
    wait_until("a handler", || handles_interrupts(&std::fs::read_to_string(&status).unwrap()));
    interrupt(&child);
    let ended = Ended::of(child).expect(130);
    assert_eq!((&*ended.stderr, &*ended.stdout), ("flashwise: interrupted\n", ""));
    assert!(place.names().is_empty());
}
