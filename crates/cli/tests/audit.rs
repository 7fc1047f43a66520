//! `flashwise audit`: of traces, of commands as they run, and of SQL through the VFS.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

mod support;

use std::process::Command;

use serde_json::Value;
use support::{Ended, Place};

/// Eight short writes of a file that looks like a database, made durable.
const WRITES: [&str; 7] = ["dd", "if=/dev/zero", "of=a.db", "bs=512", "count=8", "conv=fsync", "status=none"];

fn has_strace() -> bool {
    let there =
        Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).status().is_ok_and(|ended| ended.success());
    if !there {
        eprintln!("strace is not installed or may not trace: not tested");
    }
    there
}

fn audit(place: &Place, more: &[&str]) -> Ended {
    place.run(&[&["audit", "--profile", "p.toml"][..], more].concat())
}

fn finding<'a>(document: &'a Value, rule: &str) -> &'a Value {
    document["findings"].as_array().unwrap().iter().find(|f| f["rule"] == rule).unwrap()
}

#[test]
fn a_command_is_audited_as_it_runs_without_root() {
    if !has_strace() {
        return;
    }
    let place = Place::with_profile();
    let ended = audit(&place, &[&["-o", "json", "--save-trace", "t.strace", "--"][..], &WRITES].concat()).expect(3);
    let document = ended.document();
    let short = finding(&document, "write-whole-units");
    assert_eq!((&short["violations"], &short["bytes"]), (&8.into(), &4096.into()));
    let name = short["examples"][0]["file"].as_str().unwrap();
    assert!(name.ends_with("/a.db"), "{name}");
    assert_eq!(short["places"][0]["place"]["file"], name);
    assert_eq!(short["processes"].as_array().unwrap().len(), 1);
    assert!(short["cost"]["time_ns"].is_i64(), "{document}");
    let remarks = document["remarks"].to_string();
    assert!(remarks.contains("before page cache and file system"), "{remarks}");
    let open = document["unjudged"].to_string();
    assert!(open.contains("above the page cache"), "{open}");
    // What was kept gives the same counts again.
    let again = audit(&place, &["-o", "json", "t.strace"]).document();
    assert!(finding(&again, "write-whole-units")["violations"].as_u64().unwrap() >= 8);
}

#[test]
fn how_a_command_ended_is_told_and_its_output_is_not_mixed_with_the_document() {
    if !has_strace() {
        return;
    }
    let place = Place::with_profile();
    let ended = audit(&place, &["-o", "json", "--", "sh", "-c", "echo hello; exit 7"]).expect(0);
    assert!(ended.document()["remarks"].to_string().contains("the command ended with exit status: 7"));
    assert!(ended.stderr.contains("hello"), "{}", ended.stderr);
    let missing = audit(&place, &["--", "no-such-command"]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    assert!(missing.stderr.contains("strace could not trace no-such-command"), "{}", missing.stderr);
}

#[test]
fn what_a_drive_gets_is_audited_with_root_where_the_kernel_tells_it() {
    let place = Place::with_profile();
    let target = place.path("d");
    let of = format!("of={}", target.display());
    let command = ["dd", "if=/dev/zero", &of, "bs=4096", "count=64", "oflag=direct", "status=none"];
    let options = ["--block", ".", "-o", "json", "--"];
    let ended = audit(&place, &[&options[..], &command].concat());
    if ended.code == 1 {
        // No root, no tracefs, or no drive below the directory: each is told with the way out.
        let told = ["block events are not there", "neither a block device nor on one", "cannot be started"];
        assert!(told.iter().any(|why| ended.stderr.contains(why)), "{}", ended.stderr);
        eprintln!("not tested: {}", ended.stderr.trim());
        return;
    }
    let document = ended.expect(3).document();
    let short = finding(&document, "write-whole-units");
    assert!(short["violations"].as_u64().unwrap() >= 64, "{document}");
    assert!(short["places"][0]["place"]["region"]["device"].is_u64(), "{document}");
}

#[test]
fn without_strace_the_way_out_is_told() {
    let place = Place::with_profile();
    let mut command = place.command(&["audit", "--profile", "p.toml", "--", "true"]);
    let ended = Ended::from(command.env("PATH", "").output().unwrap());
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("strace is not installed: install it (apt-get install strace)"), "{}", ended.stderr);
}

#[test]
fn sql_is_audited_through_the_vfs_while_it_runs_on_a_copy() {
    let place = Place::with_profile();
    place.database("a.db");
    place.write("q.sql", "UPDATE t SET v = v || 'x' WHERE k % 10 = 0;\nSELECT count(*) FROM t;\n");
    let before = std::fs::read(place.path("a.db")).unwrap();
    let ended = audit(&place, &["--db", "a.db", "--sql", "q.sql", "-o", "json", "--save-trace", "t.csv"]).expect(3);
    let document = ended.document();
    assert_eq!(document["trace"], "q.sql on a.db");
    assert!(finding(&document, "write-once")["violations"].as_u64().unwrap() > 0, "{document}");
    assert_eq!(std::fs::read(place.path("a.db")).unwrap(), before, "the database is only read");
    let again = audit(&place, &["t.csv", "-o", "json"]).expect(3).document();
    assert_eq!(again["findings"], document["findings"], "the kept trace gives the same findings");
}

#[test]
fn an_audit_fails_only_from_the_cost_on_that_was_asked_for() {
    let place = Place::with_profile();
    let header = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n";
    let commits = (0..50).map(|n| {
        let at = n * 2_000_000;
        format!("{at},write,database,{},4096,20000\n{},flush,database,0,0,800000\n", n * 4096, at + 100_000)
    });
    place.write("t.csv", &(header.to_owned() + &commits.collect::<String>()));
    let code = |fail_on: &[&str]| {
        let options: Vec<&str> = fail_on.iter().flat_map(|rule| ["--fail-on", *rule]).collect();
        audit(&place, &[&["t.csv"][..], &options].concat()).code
    };
    assert_eq!(code(&[]), 3);
    assert_eq!(code(&["sync-less-often,1ms"]), 3);
    assert_eq!(code(&["11,50%"]), 3);
    assert_eq!(code(&["sync-less-often,10s"]), 0);
    assert_eq!(code(&["read-in-parallel,0"]), 0, "a rule that nobody broke");
    assert_eq!(code(&["sync-less-often,10s", "any,1MiB"]), 3);
    let unknown = audit(&place, &["t.csv", "--window", "0", "--fail-on", "any,1ms"]);
    assert_eq!(unknown.code, 4, "a cost that nobody told is no pass");
    for mistake in ["nonsense,5ms", "any", "any,5parsec", "any,200%"] {
        assert_eq!(code(&[mistake]), 2, "{mistake}");
    }
}

#[test]
fn the_page_of_an_audit_is_written_beside_the_text() {
    let place = Place::with_profile();
    place.write(
        "t.csv",
        "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n0,write,database,4096,512,100\n9,flush,database,0,0,9\n",
    );
    let text = audit(&place, &["t.csv", "--html", "a.html"]).expect(3);
    assert!(text.stdout.contains("1  Writes should be a whole multiple of 32 KiB long."), "{}", text.stdout);
    assert!(place.read("a.html").contains("Written by flashwise"));
}

#[test]
fn a_trace_a_command_or_a_database_is_needed_and_only_one_of_them() {
    let place = Place::with_profile();
    for mistake in [&[][..], &["t.csv", "--", "true"], &["--db", "a.db"], &["t.csv", "--block", "/dev/null"]] {
        assert_eq!(audit(&place, mistake).code, 2, "{mistake:?}");
    }
}
