//! `flashwise trace`, and the other verbs that take a trace.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use support::Place;

const MQSIM: &str = "0 0 0 8 1\n1000000 0 8 8 0\n2000000 0 16 16 0\n";
const MSR: &str = "128166372003061629,web,0,Read,0,8192,1331\n128166372003062629,web,0,Write,8192,512,900\n";

fn with_traces() -> Place {
    let place = Place::new();
    place.write("t.mqsim", MQSIM);
    place.write("web.csv", MSR);
    place
}

#[test]
fn info_tells_what_a_trace_was_taken_for_and_what_it_asks_for() {
    let place = with_traces();
    let text = place.run(&["trace", "info", "web.csv"]).expect(0);
    insta::assert_snapshot!("trace_info", text.stdout);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    let document = place.run(&["trace", "info", "t.mqsim", "-o", "json"]).expect(0).document();
    assert_eq!(document["schema"], "flashwise.trace-info");
    assert_eq!((&document["format"], &document["compression"]), (&"mqsim".into(), &"none".into()));
    assert!(document["format_reason"].as_str().unwrap().contains("1 is taken for a read"));
    assert_eq!(document["summary"]["requests"], 3);
    assert_eq!(document["summary"]["bytes_written"], 12_288);
    assert_eq!(document["summary"]["duration_ns"], 2_000_000);
}

#[test]
fn a_trace_is_converted_packed_and_read_again_as_the_same_trace() {
    let place = with_traces();
    for output in ["a.csv", "a.csv.gz", "a.csv.zst", "a.csv.xz", "a.parquet"] {
        let document = place.run(&["trace", "convert", "t.mqsim", output, "-o", "json"]).expect(0).document();
        assert_eq!((&document["schema"], &document["written"]), (&"flashwise.trace-conversion".into(), &3.into()));
        place.run(&["trace", "convert", output, "back.mqsim", "--to", "mqsim"]).expect(0);
        assert_eq!(place.read("back.mqsim"), MQSIM, "{output}");
        std::fs::remove_file(place.path("back.mqsim")).unwrap();
    }
    let text = place.run(&["trace", "convert", "web.csv", "web.trace", "--to", "mqsim"]).expect(0);
    insta::assert_snapshot!("trace_convert", text.stdout);
    assert_eq!(place.read("web.trace"), "0 0 0 16 1\n100000 0 16 1 0\n");
}

#[test]
fn a_trace_goes_through_pipes() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_flashwise"))
        .args(["trace", "convert", "-", "-", "--to", "disksim"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(MQSIM.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "0.000000 0 0 8 1\n1.000000 0 8 8 0\n2.000000 0 16 16 0\n");
}

#[test]
fn generated_traces_are_the_same_for_the_same_seed() {
    let place = Place::new();
    let generate = |output: &str, seed: &str| {
        place.run(&["trace", "generate", "ycsb-a", output, "--requests", "500", "--seed", seed]).expect(0);
        place.read(output)
    };
    let (first, again, other) = (generate("a.csv", "1"), generate("b.csv", "1"), generate("c.csv", "2"));
    assert_eq!(first.lines().count(), 501);
    assert!(first == again && first != other);
    let document = place.run(&["trace", "info", "a.csv", "-o", "json"]).expect(0).document();
    assert_eq!(document["summary"]["requests"], 500);
}

#[test]
fn simulate_takes_any_trace_and_workloads_by_name() {
    let place = with_traces();
    let told = place.run(&["simulate", "samsung-960-evo", "web.csv", "-o", "json"]).expect(0);
    assert_eq!(told.document()["schema"], "flashwise.simulation");
    assert!(told.stderr.contains("web.csv: read as msr: "), "{}", told.stderr);
    place.run(&["simulate", "samsung-960-evo", "ssdiq-uniform", "--requests", "200"]).expect(0);
}

#[test]
fn audit_takes_any_trace_and_passes_over_as_many_bad_lines_as_is_asked() {
    let place = Place::with_profile();
    place.write("t.mqsim", &format!("{MQSIM}garbage\n"));
    let line = place.fails(1, &["audit", "t.mqsim", "--profile", "p.toml"]);
    assert!(line.contains("t.mqsim: line 4: it has 1 of five fields") && line.contains("'garbage'"), "{line}");
    let told = place.run(&["audit", "t.mqsim", "--profile", "p.toml", "--skip-bad-lines", "1", "-o", "json"]);
    assert!([0, 3].contains(&told.code), "{}", told.stderr);
    assert_eq!(told.document()["schema"], "flashwise.findings");
}

#[test]
fn what_cannot_be_done_with_a_trace_is_told_with_the_way_out() {
    let place = with_traces();
    place.write("README.md", "# Read me\n");
    place.write("bad.mqsim", "0 0 0 8 1\n0 0 0 8\n");
    place.write("half.csv.gz", "\u{1f}");
    let mistakes: [(i32, &[&str]); 11] = [
        (1, &["trace", "info", "missing.csv"]),
        (1, &["trace", "info", "README.md"]),
        (1, &["trace", "info", "."]),
        (1, &["trace", "info", "bad.mqsim", "--trace-format", "mqsim"]),
        (2, &["trace", "info", "t.mqsim", "--trace-format", "mqsm"]),
        (2, &["trace", "info", "t.mqsim", "--sector-size", "0"]),
        (2, &["trace", "convert", "t.mqsim", "out.trace"]),
        (2, &["trace", "convert", "t.mqsim", "out.trace", "--to", "spc"]),
        (5, &["trace", "convert", "t.mqsim", "web.csv"]),
        (2, &["trace", "generate", "ycsb-z", "out.csv"]),
        (1, &["trace", "generate", "ycsb-a", "out.csv", "--size", "1k"]),
    ];
    let lines = mistakes.map(|(code, arguments)| {
        format!("$ flashwise {}\n{}\nexit code {code}\n", arguments.join(" "), place.fails(code, arguments))
    });
    insta::assert_snapshot!("trace_mistakes", lines.join("\n"));
    let told = place.run(&["trace", "convert", "t.mqsim", "-", "--to", "msr", "-o", "json"]).expect(2);
    assert_eq!(told.document()["error"]["exit_code"], 2);
}

#[test]
fn a_replay_on_the_simulator_is_exact_and_on_a_file_tells_its_error() {
    let place = with_traces();
    let exact = place.run(&["trace", "replay", "t.mqsim"]).expect(0);
    insta::assert_snapshot!("trace_replay", exact.stdout);
    let document = place.run(&["trace", "replay", "t.mqsim", "--speed", "2", "-o", "json"]).expect(0).document();
    assert_eq!((&document["schema"], &document["requests"]), (&"flashwise.trace-replay".into(), &3.into()));
    assert_eq!(document["issue_error"]["max_ns"], 0);
    assert!(document["elapsed_ns"].as_u64().unwrap() < 1_500_000, "{document}");
    std::fs::create_dir(place.path("scratch")).unwrap();
    let real =
        place.run(&["trace", "replay", "t.mqsim", "scratch", "--size", "64m", "--widen", "-o", "json"]).expect(0);
    let real = real.document();
    assert_eq!((&real["requests"], &real["failed"], &real["clock"]), (&3.into(), &0.into(), &"wall".into()));
    assert!(real["issue_error"]["count"] == 3 && real["elapsed_ns"].as_u64().unwrap() >= 2_000_000, "{real}");
    assert!(support::is_empty(&place.path("scratch")));
    let closed =
        place.run(&["trace", "replay", "ycsb-a", "--requests", "300", "--iodepth", "8", "-o", "json"]).expect(0);
    assert!(closed.document()["issue_error"].is_null());
    place.fails(2, &["trace", "replay", "t.mqsim", "--speed", "0"]);
}
