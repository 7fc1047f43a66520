//! Whatever it is doing, the program ends within two seconds of Ctrl-C or SIGTERM and leaves nothing; what it leaves
//! when it is killed, the next run sweeps.

use crate::support;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::{Ended, Place, is_empty};

/// What the program promises.
const SOON: Duration = Duration::from_secs(2);
/// How many times as long as a run of the program that does nothing a busy machine may take beyond that: threads are
/// woken, and a process ends.
const RUNS: u32 = 20;

const ENDLESS: &str = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c;";

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ends_soon(child: Child, signal: Signal) -> Ended {
    let sent = Instant::now();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let ended = Ended::of(child).expect(130);
    let (took, again) = (sent.elapsed(), Instant::now());
    Place::new().run(&["--version"]).expect(0);
    assert!(took < SOON + RUNS * again.elapsed(), "{took:?}");
    ended
}

/// The program handles Ctrl-C, and its work is about to start.
fn wait_until_it_listens(child: &Child) {
    let caught = |line: &str| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok();
    let catches = |signals: u64| signals >> (Signal::INT.as_raw() - 1) & 1 == 1;
    let status = format!("/proc/{}/status", child.id());
    wait_until("the handler", || {
        std::fs::read_to_string(&status).unwrap().lines().find_map(caught).is_some_and(catches)
    });
}

/// Ends when the process is a zombie, which nobody may reap, or gone.
fn wait_until_it_is_dead(process: &str) {
    wait_until("the end of what was started", || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
    });
}

/// Options of a shell that takes no signal, with its number in `started` when it does not.
const DEAF: [&str; 3] =
    ["sh", "-c", "trap '' INT TERM HUP; echo $$ > started.new; mv started.new started; exec sleep 60"];

/// A place with a database and one statement that never ends.
fn endless() -> Place {
    let place = Place::with_profile();
    place.database("app.db");
    place.write("endless.sql", ENDLESS);
    std::fs::create_dir(place.path("drive")).unwrap();
    place
}

const FIT: [&str; 10] =
    ["fit", "sqlite", "--on", "drive", "--db", "app.db", "--sql", "endless.sql", "--profile", "p.toml"];

#[test]
fn one_sql_statement_that_never_ends_is_ended_and_leaves_nothing() {
    let place = endless();
    let before = place.names();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let child = place.command(&FIT).spawn().unwrap();
        wait_until("the scratch folder", || !is_empty(&place.path("drive")));
        std::thread::sleep(Duration::from_millis(500));
        assert!(ends_soon(child, signal).stderr.ends_with("flashwise: interrupted\n"));
        assert!(is_empty(&place.path("drive")) && place.has_no_temporary_files());
        assert_eq!(place.names(), before);
    }
    for arguments in [
        &["tune", "sqlite", "app.db", "--sql", "endless.sql", "--profile", "p.toml"][..],
        &["audit", "--db", "app.db", "--sql", "endless.sql", "--profile", "p.toml"],
    ] {
        let child = place.command(arguments).spawn().unwrap();
        wait_until("the copy of the database", || !place.has_no_temporary_files());
        ends_soon(child, Signal::INT);
        assert!(place.has_no_temporary_files(), "{arguments:?}");
    }
}

#[test]
fn what_a_killed_run_left_is_swept_by_the_next_one() {
    let place = endless();
    let mut killed = place.command(&FIT).spawn().unwrap();
    wait_until("the scratch folder", || !is_empty(&place.path("drive")));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!is_empty(&place.path("drive")));
    let child = place.command(&FIT).spawn().unwrap();
    let only_its_own = || {
        let names = std::fs::read_dir(place.path("drive")).unwrap().map(|entry| entry.unwrap().file_name());
        let own = format!("flashwise-{}-", child.id());
        let names: Vec<_> = names.collect();
        !names.is_empty() && names.iter().all(|name| name.to_str().unwrap().starts_with(&own))
    };
    wait_until("the sweep", only_its_own);
    std::thread::sleep(Duration::from_millis(300));
    ends_soon(child, Signal::INT);
    assert!(is_empty(&place.path("drive")) && place.has_no_temporary_files());
}

#[test]
fn a_study_that_is_interrupted_gives_one_valid_document() {
    let place = Place::new();
    for format in ["json", "text"] {
        let child = place.command(&["study", "gc-organisation", "-o", format]).spawn().unwrap();
        wait_until_it_listens(&child);
        let ended = ends_soon(child, Signal::INT);
        assert_eq!(ended.stderr, "flashwise: interrupted\n");
        match format {
            "json" => assert_eq!(ended.document()["error"]["exit_code"], 130),
            _ => assert_eq!(ended.stdout, ""),
        }
        assert!(place.has_no_temporary_files());
    }
}

#[test]
fn under_nohup_the_program_goes_on_when_its_terminal_is_closed() {
    let place = endless();
    let mut command = place.command(&FIT);
    let program = command.get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(program).args(command.get_args());
    shell.current_dir(place.path(".")).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command = shell;
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait_until("the scratch folder", || !is_empty(&place.path("drive")));
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    assert!(child.try_wait().unwrap().is_none(), "it has ended");
    ends_soon(child, Signal::INT);
    assert!(is_empty(&place.path("drive")) && place.has_no_temporary_files());
}

#[test]
fn a_captured_command_that_takes_no_signal_is_killed() {
    let place = Place::with_profile();
    let mut child = place.command(&[&["audit", "--profile", "p.toml", "--"], &DEAF[..]].concat()).spawn().unwrap();
    let mut ended = None;
    wait_until("the command", || {
        ended = child.try_wait().unwrap();
        ended.is_some() || place.path("started").exists()
    });
    if ended.is_some() {
        let ended = Ended::of(child);
        let has_no_tracer = ended.stderr.contains("strace") || ended.stderr.contains("permission denied");
        assert!(has_no_tracer, "{}", ended.stderr);
        return eprintln!("skipped: {}", ended.stderr);
    }
    ends_soon(child, Signal::TERM);
    wait_until_it_is_dead(place.read("started").trim());
    assert!(place.has_no_temporary_files());
}

/// Work that asks nobody whether it should go on is ended from beside it.
#[test]
fn a_recorded_program_a_calibration_a_study_and_a_shell_of_a_store_end_and_leave_nothing() {
    let place = Place::with_profile();
    place.database("app.db");
    let before = place.names();
    let is_left = |what: &str| {
        assert!(place.has_no_temporary_files(), "{what}");
        assert_eq!(place.names(), before, "{what}");
    };
    let record = ["fit", "sqlite", "app.db", "--profile", "p.toml", "--record", "--"];
    let child = place.command(&[&record, &DEAF[..]].concat()).spawn().unwrap();
    wait_until("the recorded program", || place.path("started").exists());
    assert!(!place.has_no_temporary_files());
    ends_soon(child, Signal::TERM);
    wait_until_it_is_dead(place.read("started").trim());
    std::fs::remove_file(place.path("started")).unwrap();
    is_left("a recorded program");

    let calibrate = ["kernel", "calibrate", "--directory", ".", "--costs", "costs.toml"];
    let child = place.command(&calibrate).spawn().unwrap();
    wait_until("the file that is measured with", || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
        let mut names = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        names.any(|name| name.starts_with(place.path("").canonicalize().unwrap()))
    });
    ends_soon(child, Signal::INT);
    is_left("a calibration");

    let child = place.command(&["study", "fit", "--quick"]).spawn().unwrap();
    wait_until_it_listens(&child);
    ends_soon(child, Signal::INT);
    is_left("a study");

    // A shell whose input stays open.
    let mut shell = place.command(&["store", "kv", "s"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let input = shell.stdin.take();
    wait_until("the store", || place.path("s").exists());
    ends_soon(shell, Signal::INT);
    drop(input);
    place.run(&["store", "check", "s"]).expect(0);
}

#[test]
fn a_pipe_that_nobody_writes_to_is_no_reason_to_stay() {
    let place = Place::new();
    fifo(&place, "pipe");
    let child = place.command(&["trace", "info", "pipe"]).spawn().unwrap();
    wait_until_it_listens(&child);
    ends_soon(child, Signal::TERM);
}

pub fn fifo(place: &Place, name: &str) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path(name), mode).unwrap();
}

#[test]
fn what_must_be_a_regular_file_is_not_waited_for() {
    let place = Place::with_profile();
    place.database("app.db");
    place.write("q.sql", "SELECT 1;");
    fifo(&place, "f.db");
    let start = Instant::now();
    for arguments in [
        &["tune", "sqlite", "f.db", "--sql", "q.sql", "--profile", "p.toml"][..],
        &["fit", "sqlite", "--db", "f.db", "--sql", "q.sql", "--profile", "p.toml"],
        &["fit", "sqlite", "--db", "app.db", "--sql", "f.db", "--profile", "p.toml"],
        &["audit", "--db", "f.db", "--sql", "q.sql", "--profile", "p.toml"],
        &["audit", "--target", "f.db", "--profile", "p.toml"],
        &["sqlite", "info", "f.db"],
        &["sqlite", "import", "f.db", "new.db", "--profile", "p.toml"],
        &["sqlite", "export", "f.db", "new.db"],
    ] {
        let line = place.fails(1, arguments);
        assert!(line.contains("f.db: it is a named pipe; give a regular file"), "{arguments:?}: {line}");
    }
    for arguments in [
        &["tune", "sqlite", "/dev/zero", "--sql", "q.sql", "--profile", "p.toml"][..],
        &["fit", "sqlite", "--db", "app.db", "--sql", "/dev/zero", "--profile", "p.toml"],
        &["sqlite", "info", "/dev/zero"],
    ] {
        let line = place.fails(1, arguments);
        assert!(line.contains("/dev/zero: it is a character device"), "{arguments:?}: {line}");
    }
    let line = place.fails(1, &["device", "check", "/dev/zero"]);
    assert!(line.contains("/dev/zero: it is longer than 256 MiB"), "{line}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn a_profile_and_a_trace_may_come_through_a_pipe() {
    let place = Place::with_profile();
    place.write("t.csv", "at_ns,operation,offset_bytes,length_bytes\n0,read,0,4096\n");
    for (arguments, file) in
        [(&["audit", "t.csv", "--profile", "pipe"][..], "p.toml"), (&["trace", "info", "pipe"], "t.csv")]
    {
        fifo(&place, "pipe");
        let (from, to) = (place.path(file), place.path("pipe"));
        let writer = std::thread::spawn(move || std::fs::write(to, std::fs::read(from).unwrap()).unwrap());
        let ended = place.run(arguments);
        assert!([0, 3].contains(&ended.code), "{arguments:?}: {}", ended.stderr);
        writer.join().unwrap();
        std::fs::remove_file(place.path("pipe")).unwrap();
    }
}

#[test]
fn a_configuration_of_200_000_attributes_is_refused_at_once() {
    let place = Place::new();
    let attributes: String = (0..200_000).map(|n| format!(" a{n}=\"1\"")).collect();
    place.write("a.xml", &format!("<Execution_Parameter_Set{attributes}/>"));
    let start = Instant::now();
    let line = place.fails(1, &["device", "import", "--mqsim", "a.xml", "--directory", "o"]);
    assert!(line.contains("more than 4096 attributes"), "{line}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
