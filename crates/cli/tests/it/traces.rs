//! `flashwise trace`, and the other verbs that take a trace.

use crate::loops;
use crate::support;
use std::io::Write;
use std::process::{Command, Stdio};

use loops::LoopDevice;
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
    assert!(document["format_reason"].as_str().unwrap().contains("1 means a read"));
    assert_eq!(document["summary"]["requests"], 3);
    assert_eq!(document["summary"]["bytes_written"], 12_288);
    assert_eq!(document["summary"]["duration_ns"], 2_000_000);
}

#[test]
fn a_trace_is_converted_packed_and_read_again_as_the_same_trace() {
    let place = with_traces();
    for output in ["a.csv", "a.csv.gz", "a.csv.bz2", "a.csv.zst", "a.csv.xz", "a.parquet"] {
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
fn a_text_of_columns_is_read_by_its_layout_by_every_verb() {
    let place = Place::new();
    place.write("lba.csv", "2048,4096,0.000125\n4096,8192,0.000310\n");
    let layout = "columns:offset=1:sectors,length=2:bytes,time=3:s";
    let text = place.run(&["trace", "info", "lba.csv", "--trace-format", layout]).expect(0).stdout;
    assert!(text.contains("reads") && text.contains("2 (100.0 %), 12 KiB"), "{text}");
    place.run(&["simulate", "samsung-960-evo", "lba.csv", "--trace-format", layout]).expect(0);
    place.run(&["trace", "replay", "lba.csv", "--trace-format", layout]).expect(0);
    place.write("q.txt", "0.000000001 259,0 D WS 2048 8 fio\n0.000090001 259,0 C WS 2048 8 fio\n");
    let text =
        place.run(&["trace", "info", "q.txt", "--blkparse-format", "%T.%9t %D %a %d %S %n %C\\n"]).expect(0).stdout;
    assert!(text.contains("90.0 µs") || text.contains("90 µs"), "{text}");
}

#[test]
fn devices_that_are_laid_over_one_another_are_told() {
    let place = Place::new();
    place.write("two.csv", "1,W,0,4096,1577808000000000\n2,R,0,4096,1577808000002000\n");
    let errors = "2 devices of the trace are replayed on the same addresses";
    let simulated = place.run(&["simulate", "samsung-960-evo", "two.csv"]).expect(0);
    assert!(simulated.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(errors), "{}", simulated.stdout);
    let replayed = place.run(&["trace", "replay", "two.csv"]).expect(0);
    assert!(replayed.stderr.contains(errors), "{}", replayed.stderr);
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
    let errors = place.run(&["simulate", "samsung-960-evo", "web.csv", "-o", "json"]).expect(0);
    assert_eq!(errors.document()["schema"], "flashwise.simulation");
    assert!(errors.stderr.contains("web.csv: read as msr: "), "{}", errors.stderr);
    place.run(&["simulate", "samsung-960-evo", "ssdiq-uniform", "--requests", "200"]).expect(0);
}

#[test]
fn audit_takes_any_trace_and_passes_over_as_many_bad_lines_as_is_asked() {
    let place = Place::with_profile();
    place.write("t.mqsim", &format!("{MQSIM}garbage\n"));
    let line = place.fails(1, &["audit", "t.mqsim", "--profile", "p.toml"]);
    assert!(line.contains("t.mqsim: line 4: it has 1 of five fields") && line.contains("'garbage'"), "{line}");
    let errors = place.run(&["audit", "t.mqsim", "--profile", "p.toml", "--skip-bad-lines", "1", "-o", "json"]);
    assert!([0, 3].contains(&errors.code), "{}", errors.stderr);
    assert_eq!(errors.document()["schema"], "flashwise.findings");
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
    let errors = place.run(&["trace", "convert", "t.mqsim", "-", "--to", "msr", "-o", "json"]).expect(2);
    assert_eq!(errors.document()["error"]["exit_code"], 2);
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

#[test]
fn tpcc_is_run_for_real_and_its_pages_are_a_trace() {
    let place = Place::new();
    let options = ["--scale", "0.01", "--transactions", "115", "--page-cache", "0", "--seed", "3"];
    let text = place.run(&[&["trace", "tpcc", "t.pages", "--to", "pages"], &options[..]].concat()).expect(0);
    insta::assert_snapshot!("trace_tpcc", text.stdout);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    let pages = place.read("t.pages");
    assert!(pages.lines().all(|line| line.starts_with("R ") || line.starts_with("W ")), "{pages}");
    let errors =
        place.run(&[&["trace", "tpcc", "again.pages.zst", "--to", "pages", "-o", "json"], &options[..]].concat());
    let document = errors.expect(0).document();
    assert_eq!(
        (&document["schema"], &document["transactions"]["new_order"]),
        (&"flashwise.trace-tpcc".into(), &50.into())
    );
    let info = |name: &str| place.run(&["trace", "info", name, "-o", "json"]).expect(0).document()["summary"].clone();
    assert_eq!(info("t.pages"), info("again.pages.zst"), "the same seed, the same trace");
    assert_eq!(info("t.pages")["requests"], pages.lines().count());
    place.fails(5, &["trace", "tpcc", "t.pages", "--to", "pages"]);
    place.fails(2, &["trace", "tpcc", "u.pages", "--to", "pages", "--scale", "2"]);
}

/// An event of blktrace without payload: a write of 4 KiB at sector 8, issued (7) or complete (8).
fn blktrace_event(at: u64, action: u32) -> Vec<u8> {
    let words = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let long = |number: u64| number.to_le_bytes().to_vec();
    [words(&[0x6561_7407, 1]), long(at), long(8), words(&[4096, action | 2 << 16, 77, 8 << 20, 0, 0])].concat()
}

#[test]
fn the_files_of_blktrace_are_one_trace_for_every_verb() {
    let place = Place::with_profile();
    std::fs::create_dir(place.path("t")).unwrap();
    std::fs::write(place.path("t/sda.blktrace.0"), blktrace_event(1_000, 7)).unwrap();
    std::fs::write(place.path("t/sda.blktrace.1"), blktrace_event(81_000, 8)).unwrap();
    for name in ["t", "t/sda.blktrace.0"] {
        let text = place.run(&["trace", "info", name]).expect(0).stdout;
        assert!(text.contains("80.0 µs median") || text.contains("latency"), "{text}");
        let document = place.run(&["trace", "info", name, "-o", "json"]).expect(0).document();
        assert_eq!(document["summary"]["latency"]["max_ns"].as_u64().unwrap() / 1_000, 80, "{document}");
        assert!(document["remarks"][0].as_str().unwrap().starts_with("merged by time from 2 files"), "{document}");
        place.run(&["trace", "convert", name, "a.csv"]).expect(0);
        assert!(place.read("a.csv").contains(",write,unknown,4096,4096,80000"), "{}", place.read("a.csv"));
        std::fs::remove_file(place.path("a.csv")).unwrap();
        let errors = place.run(&["audit", name, "--profile", "p.toml"]).expect(0).stderr;
        assert!(errors.contains("read as blktrace: blktrace files, one per CPU, merged by time"), "{errors}");
    }
    for name in ["t", "t/sda.blktrace.1"] {
        let document = place.run(&["simulate", "samsung-960-evo", name, "-o", "json"]).expect(0).document();
        assert_eq!(document["flows"][0]["requests"], 1, "{name}: {document}");
        place.run(&["trace", "replay", name]).expect(0);
    }
    std::fs::create_dir(place.path("t/empty")).unwrap();
    for verb in [&["simulate", "samsung-960-evo", "t/empty"][..], &["trace", "replay", "t/empty"]] {
        let errors = place.run(verb).expect(1).stderr;
        assert!(errors.contains("a directory without blktrace files"), "{errors}");
    }
}

#[test]
fn a_replay_on_a_block_device_tells_its_error_and_writes_only_with_consent() {
    let place = with_traces();
    let Some(device) = LoopDevice::new(&place.path("image"), 64) else { return };
    let name = device.path().to_str().unwrap();
    let image = place.path("image").canonicalize().unwrap().display().to_string();
    let is_untouched = || std::fs::read(place.path("image")).unwrap().iter().all(|&byte| byte == 0);
    place.write("reads.mqsim", "0 0 0 8 1\n1000000 0 8 8 1\n2000000 0 16 16 1\n");
    let read = place.run(&["trace", "replay", "reads.mqsim", name, "-o", "json"]).expect(0).document();
    assert_eq!((&read["requests"], &read["failed"], &read["clock"]), (&3.into(), &0.into(), &"wall".into()));
    let error = &read["issue_error"];
    assert!(error["count"] == 3 && error["p50_ns"].as_u64() <= error["p99_ns"].as_u64(), "{read}");
    assert!(
        error["p99_ns"].as_u64() <= error["max_ns"].as_u64() && read["elapsed_ns"].as_u64() >= Some(2_000_000),
        "{read}"
    );
    let text = place.run(&["trace", "replay", "reads.mqsim", name]).expect(0).stdout;
    assert!(text.contains("Requests were submitted late by"), "{text}");

    // Writes: not without consent, not with half of it, not beyond the region.
    let refused = place.run(&["trace", "replay", "t.mqsim", name]);
    assert!(refused.code != 0 || refused.stdout.contains("failed"), "{}", refused.stdout);
    place.fails(5, &["trace", "replay", "t.mqsim", name, "--destructive"]);
    place.fails(2, &["trace", "replay", "t.mqsim", name, "--confirm-device", &image]);
    let consent = ["--destructive", "--confirm-device", &image, "--size", "1m"];
    let plan = place.run(&[&["trace", "replay", "t.mqsim", name, "--dry-run"], &consent[..]].concat()).expect(0);
    assert!(plan.stdout.contains("to its first 1 MiB"), "{}", plan.stdout);
    place.write("far.mqsim", "0 0 65536 8 0\n");
    let far = place.run(&[&["trace", "replay", "far.mqsim", name], &consent[..]].concat()).expect(1);
    assert!(far.stderr.contains("the drive ends at byte 1048576"), "{}", far.stderr);
    assert!(is_untouched());
    let written = place.run(&[&["trace", "replay", "t.mqsim", name, "-o", "json"], &consent[..]].concat()).expect(0);
    assert_eq!(written.document()["failed"], 0);
    assert!(
        written.stderr.starts_with(&format!("flashwise: {name}: overwriting its first 1 MiB")),
        "{}",
        written.stderr
    );
    assert!(!is_untouched());
    let bytes = std::fs::read(place.path("image")).unwrap();
    assert!(bytes[8 * 512..16 * 512].iter().any(|&byte| byte != 0) && bytes[1 << 20..].iter().all(|&byte| byte == 0));
}
