//! `fit sqlite --record DB -- COMMAND`, with the machine's own shell of SQLite.

use crate::support;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use support::{Ended, Place};

const FIT: [&str; 6] = ["fit", "sqlite", "--on", "sim:samsung-960-evo", "--profile", "p.toml"];

/// Nothing to try: each run does all of the work, and there are few.
fn fit() -> Vec<&'static str> {
    let settings = ["page_size", "cache_size", "journal_mode", "wal_autocheckpoint", "log-sync"];
    let techniques = flashwise_sqlite::TECHNIQUES.iter().map(|technique| technique.name);
    let skipped = settings.into_iter().chain(techniques).flat_map(|name| ["--skip", name]);
    FIT.into_iter().chain(skipped).collect()
}

/// A place with a database, where there is a shell.
fn place() -> Option<Place> {
    if Command::new("sqlite3").arg("-version").output().is_err() {
        println!("skipped: this machine has no sqlite3 shell");
        return None;
    }
    let place = Place::with_profile();
    place.database("app.db");
    Some(place)
}

#[test]
fn the_recorded_statements_are_the_workload_and_can_be_used_again() {
    let Some(place) = place() else { return };
    let sql = "UPDATE t SET v = 'a' WHERE k = 1; SELECT v FROM t WHERE k = 1; DELETE FROM t WHERE k > 900;";
    let more = ["app.db", "--save-recording", "kept", "-o", "json", "--", "sqlite3", "app.db", sql];
    let ended = place.run(&[&fit()[..], &["--record"], &more].concat()).expect(0);
    let document = ended.document();
    assert_eq!((document["search"]["statements"].as_u64(), document["file"].as_str()), (Some(3), Some("app.db")));
    assert!(
        document["workload"]["summary"].as_str().unwrap().starts_with("the recorded statements of `sqlite3 app.db")
    );
    // The command's own output does not mix with the document.
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines.contains(&"a"), "{lines:?}");
    assert!(lines[1].starts_with("flashwise: recorded 3 statements of 1 connection in "), "{lines:?}");
    assert!(lines[2].ends_with("saved; to use it again: flashwise fit sqlite kept.db --sql kept.sql"), "{lines:?}");
    assert_eq!(place.names(), ["app.db", "flashwise-report", "kept.db", "kept.sql", "p.toml"]);

    let again = ["fit", "sqlite", "kept.db", "--sql", "kept.sql", "--report", "r", "-o", "json"];
    let again = place.run(&[&again[..], &fit()[2..]].concat()).expect(0).document();
    assert_eq!(again["search"]["statements"], document["search"]["statements"]);
    assert_eq!(again["default"]["drive_time_ns"], document["default"]["drive_time_ns"], "the same work");
}

#[test]
fn what_cannot_be_recorded_leaves_nothing_and_nothing_is_replaced() {
    let Some(place) = place() else { return };
    place.write("kept.sql", "mine");
    let before = place.names();
    for (code, more, words) in [
        (2, &["app.db"][..], "the following required arguments were not provided: <COMMAND>"),
        (2, &["--", "true"], "--record: name the database that COMMAND works on"),
        (2, &["app.db", "--sql", "q.sql", "--", "true"], "cannot be used with"),
        (1, &["app.db", "--", "true"], "true: not recorded: it called no libsqlite3.so"),
        (1, &["app.db", "--", "./nowhere"], "./nowhere: cannot be started"),
        (1, &["no.db", "--", "true"], "no.db: No such file"),
        (5, &["app.db", "--save-recording", "kept", "--", "true"], "kept.sql: exists"),
    ] {
        let ended = place.run(&[&fit()[..], &["--record"], more].concat());
        assert_eq!((ended.code, &*ended.stdout), (code, ""), "{more:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{more:?}: {}", ended.stderr);
        assert_eq!(place.names(), before, "{more:?}");
    }
    let without = place.run(&["fit", "sqlite", "app.db", "--", "true"]);
    assert!(without.code == 2 && without.stderr.contains("--record"), "{}", without.stderr);
}

#[test]
fn the_settings_that_a_program_makes_are_those_of_default_when_it_is_used_again() {
    let Some(place) = place() else { return };
    let sql = "PRAGMA journal_mode = wal; PRAGMA cache_size = -64; PRAGMA wal_autocheckpoint = 16; \
               UPDATE t SET v = v || 'a'; UPDATE t SET v = v || 'b'; SELECT sum(length(v)) FROM t;";
    let more = ["app.db", "--save-recording", "my work", "-o", "json", "--", "sqlite3", "app.db", sql];
    let ended = place.run(&[&fit()[..], &["--record"], &more].concat()).expect(0);
    let again =
        "flashwise: saved; to use it again: flashwise fit sqlite 'my work.db' --sql 'my work.sql' --page-cache 64k\n";
    assert!(ended.stderr.contains(again), "{}", ended.stderr);
    let used = ["fit", "sqlite", "my work.db", "--sql", "my work.sql", "--page-cache", "64k", "--report", "r"];
    let used = place.run(&[&used[..], &fit()[2..], &["-o", "json"]].concat()).expect(0).document();
    let document = ended.document();
    assert_eq!(used["default"]["drive_time_ns"], document["default"]["drive_time_ns"], "the same settings");
    let journals = [&document, &used].map(|document| document["workload"]["summary"].as_str().unwrap().contains("log"));
    assert_eq!(journals, [true; 2]);
}

#[test]
fn a_recording_that_cannot_be_saved_is_used_all_the_same() {
    let Some(place) = place() else { return };
    let script = "sqlite3 app.db 'UPDATE t SET v = 1'; echo mine > kept.sql";
    let more = ["app.db", "--save-recording", "kept", "-o", "json", "--", "sh", "-c", script];
    let ended = place.run(&[&fit()[..], &["--record"], &more].concat());
    assert!(ended.code != 0 && ended.stdout.contains("\"search\""), "{}", ended.stderr);
    assert!(ended.stderr.contains("flashwise: not saved: kept.sql: "), "{}", ended.stderr);
    assert_eq!(place.read("kept.sql"), "mine\n");
    assert!(!place.path("kept.db").exists() && place.has_no_temporary_files());
}

#[test]
fn a_recording_that_is_interrupted_is_kept() {
    let Some(place) = place() else { return };
    let script = "sqlite3 app.db 'UPDATE t SET v = 1'; touch started; exec sleep 60";
    let more = ["app.db", "--save-recording", "kept", "--", "sh", "-c", script];
    let child = place.command(&[&fit()[..], &["--record"], &more].concat()).spawn().unwrap();
    while !place.path("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = Ended::of(child).expect(130);
    assert!(ended.stderr.ends_with("flashwise: interrupted; the recording is kept\n"), "{}", ended.stderr);
    assert!(place.read("kept.sql").ends_with("UPDATE t SET v = 1;\n"));
    assert!(place.has_no_temporary_files());
}
