//! `flashwise fit postgres` as a user runs it: proposals, mistakes, and that nothing stays behind however it ends.

use crate::support;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flashwise_tune::TuneError;
use flashwise_tune::postgres::PrivatePostgres;
use rustix::process::{Pid, Signal, kill_process};
use support::{Ended, Place, is_empty};

/// What stands in a profile for `fit postgres` to go by.
const PLAN: [&str; 6] = ["fit", "postgres", "--profile", "p.toml", "--iodepth", "1"];

#[test]
fn settings_follow_from_the_profile_alone_and_go_into_a_file_for_psql() {
    let place = Place::with_profile();
    let document = place.run(&[&PLAN[..], &["-o", "json"]].concat()).expect(0).document();
    assert_eq!(document["schema"], "flashwise.tuning-postgres");
    assert_eq!((document["program"].as_str(), document["server"].is_null()), (Some("PostgreSQL 18"), true));
    let proposals = document["proposals"].as_array().unwrap();
    let named = |name: &str| proposals.iter().find(|proposal| proposal["name"] == name).unwrap();
    let delay = named("commit_delay");
    let flush = delay["evidence"][0]["value"].as_f64().unwrap();
    assert_eq!(delay["new_value"], (flush / 2.0).round().to_string(), "half of a flush, µs");
    assert_eq!(delay["evidence"][0]["figure"], "flush_ns");
    let ahead = named("effective_io_concurrency");
    let reads: f64 = ahead["new_value"].as_str().unwrap().parse().unwrap();
    assert!(reads >= ahead["evidence"][0]["value"].as_f64().unwrap(), "at least k_r: {reads}");
    assert_eq!((&named("io_workers")["new_value"], &named("io_workers")["base_value"]), (&"32".into(), &"32".into()));
    assert!(ahead["expected"]["ratio"].as_f64().unwrap() > 2.0 && named("random_page_cost")["expected"].is_null());
    assert!(document["measured"].is_null() && document["applied"].is_null());

    let text = place.run(&[&PLAN[..], &["--sql-out", "tune.sql", "--skip", "commit_delay"]].concat()).expect(0).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("documented defaults of PostgreSQL 18") && words.contains("Statements for psql"), "{text}");
    let forms = ["--conf-out", "a.conf", "--rds-out", "a.json", "--cloud-sql-out", "a.yaml"];
    place.run(&[&PLAN[..], &forms[..]].concat()).expect(0);
    let parameters: serde_json::Value = serde_json::from_str(&place.read("a.json")).unwrap();
    assert_eq!(parameters.as_array().unwrap().len(), proposals.len());
    for file in ["a.conf", "a.yaml"] {
        assert!(place.read(file).contains("effective_io_concurrency"), "{file}");
        place.fails(5, &[&PLAN[..], &["--conf-out", file]].concat());
    }
    let sql = place.read("tune.sql");
    let statements: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--") && !line.is_empty()).collect();
    assert!(statements.iter().all(|line| line.ends_with(';')) && !sql.contains("commit_delay"), "{sql}");
    assert_eq!(statements.len(), proposals.len(), "one is skipped, and one reads the configuration again");
    place.fails(5, &[&PLAN[..], &["--sql-out", "tune.sql"]].concat());
}

#[test]
fn without_a_profile_the_drive_is_learned_first_and_tune_is_the_same_command() {
    let place = Place::with_profile();
    let on = ["--on", "sim:micron-m500", "-o", "json"];
    let learned = place.run(&[&["fit", "postgres"], &on[..]].concat()).expect(0).document();
    assert_eq!(learned["drive"], "Micron M500 120GB");
    let named = |document: &serde_json::Value| -> Vec<String> {
        let proposals = document["proposals"].as_array().unwrap();
        proposals.iter().map(|proposal| proposal["name"].as_str().unwrap().to_owned()).collect()
    };
    let names = named(&learned);
    for name in ["random_page_cost", "commit_delay"] {
        assert!(names.iter().any(|known| known == name), "{name} follows from what is learned: {names:?}");
    }
    assert_eq!(named(&place.run(&[&["tune", "postgres"], &on[..]].concat()).expect(0).document()), names);
}

#[test]
fn without_a_drive_and_a_server_the_settings_are_for_the_embedded_drive_and_a_note_says_so() {
    let place = Place::new();
    for database in ["postgres", "mariadb"] {
        let document = place.run(&["fit", database, "-o", "json"]).expect(0).document();
        assert!(document["drive"].as_str().unwrap().contains("960 EVO"), "{document:#}");
        assert!(document["notes"][0].as_str().unwrap().contains("Name yours with --on"), "{document:#}");
        assert!(!document["proposals"].as_array().unwrap().is_empty());
    }
}

#[test]
fn mistakes_get_one_line_with_the_way_out() {
    let place = Place::with_profile();
    let lines = [
        (2, &["--apply"][..], "--dsn"),
        (2, &["--for-version", "9"], "13 to 19"),
        (2, &["--skip", "delay"], "commit_delay"),
        (2, &["--sessions", "0"], "--sessions"),
        (2, &["--dsn", "host"], "--dsn: "),
        (1, &["--dsn", "host=/no/such/place"], "/no/such/place:5432: "),
        (2, &["--rounds", "7"], "--measure"),
        (2, &["--measure", "--rounds", "3"], "--rounds 3"),
        (2, &["--measure", "--round-time", "1500ms"], "whole seconds"),
        (2, &["--measure", "--directory", "nowhere"], "no such directory"),
        (5, &["--measure", "--scale", "4000000000"], "10 % of the"),
        (1, &["--measure", "--scale", "1", "--programs", "."], "install the package postgresql"),
    ];
    for (code, arguments, words) in lines {
        let line = place.fails(code, &[&PLAN[..], arguments].concat());
        assert!(line.contains(words), "{arguments:?}: {line}");
    }
}

/// A measurement that would take long, in directories that the server's user can reach.
struct Long {
    place: Place,
    data: PathBuf,
    temporary: PathBuf,
}

impl Long {
    /// `None`, told, where no server is installed, or there is too little room: a measurement takes a tenth at most.
    fn new() -> Option<Self> {
        let space = rustix::fs::statvfs(std::env::temp_dir()).unwrap();
        if space.f_bavail * space.f_frsize < 24 << 30 {
            println!("skipped: it takes 24 GiB of free space in {}", std::env::temp_dir().display());
            return None;
        }
        match PrivatePostgres::new(None, None) {
            Err(TuneError::Missing(why)) => {
                println!("skipped: {why}");
                return None;
            }
            other => drop(other.unwrap()),
        }
        let place = Place::with_profile();
        let [data, temporary] = ["data", "temporary"].map(|name| place.path(name));
        for path in [&data, &temporary] {
            std::fs::create_dir(path).unwrap();
        }
        for path in [&data, &temporary, data.parent().unwrap()] {
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        Some(Self { place, data, temporary })
    }

    /// Starts it, waits until its server runs, and ends it with a signal.
    fn end_with(&self, signal: Signal) -> std::process::Child {
        let measure = ["--measure", "--directory", "data", "--scale", "1", "--rounds", "100", "--round-time", "30s"];
        let mut command = self.place.command(&[&PLAN[..], &measure].concat());
        let mut child = command.env("TMPDIR", &self.temporary).spawn().unwrap();
        wait_for("a server", || {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            let mut places = std::fs::read_dir(&self.temporary).unwrap().flatten();
            places.any(|place| place.path().join(".s.PGSQL.5432").exists())
        });
        assert!(works_in(&self.data).iter().any(|place| place.ends_with("/before")), "its server works in its cluster");
        kill_process(Pid::from_child(&child), signal).unwrap();
        child
    }

    fn has_left_nothing(&self) -> bool {
        is_empty(&self.data) && is_empty(&self.temporary) && works_in(&self.data).is_empty()
    }
}

/// The working directories of processes below a directory.
fn works_in(directory: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let places = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    let places = places.map(|place| place.display().to_string());
    places.filter(|place| place.starts_with(&directory.display().to_string())).collect()
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_there() {
        assert!(started.elapsed() < Duration::from_secs(120), "waited for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_measurement_leaves_no_server_and_no_directory() {
    let Some(long) = Long::new() else { return };
    long.end_with(Signal::KILL).wait().unwrap();
    wait_for("the end of the server", || long.has_left_nothing());
}

#[test]
fn ctrl_c_ends_a_measurement_and_its_server() {
    let Some(long) = Long::new() else { return };
    let ended = Ended::of(long.end_with(Signal::INT)).expect(130);
    assert!(long.has_left_nothing(), "nothing is left when it ends");
    assert_eq!((&*ended.stdout, ended.stderr.lines().count()), ("", 1), "{}", ended.stderr);
}
