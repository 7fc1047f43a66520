//! `flashwise simulate`: its document, its files, and what it refuses.

use crate::support;
use support::Place;

/// Options like fio's of a moment's work.
const READS: [&str; 8] = ["--rw", "randread", "--bs", "4k", "--iodepth", "8", "--requests", "2000"];

const MIX: &str = r#"
name = "mix"
[[flows]]
name = "closed"
requests = 3000
synthetic.read_share = 0.5
synthetic.access = "random"
synthetic.size.fixed.bytes = 4096
synthetic.pacing.closed.queue_depth = 8
[[flows]]
name = "replayed"
trace = { path = "small.trace", format = "mqsim" }
"#;

const TRACE: &str = "0 0 0 8 0\n1000000 0 0 8 1\n2500000 0 64 16 0\n";

fn place() -> Place {
    let place = Place::new();
    place.write("mix.toml", MIX);
    place.write("small.trace", TRACE);
    place
}

#[test]
fn a_workload_gives_one_document_with_everything_that_was_measured_and_the_same_again() {
    let place = place();
    let run = || place.run(&["simulate", "sim:samsung-960-evo", "mix.toml", "-o", "json"]).expect(0).document();
    let (document, again) = (run(), run());
    assert_eq!(document["schema"], "flashwise.simulation");
    assert_eq!(document["device"]["name"], "Samsung SSD 960 EVO 500GB");
    assert_eq!(document["workload"]["flows"][0]["name"], "closed");
    let [closed, replayed] = &document["flows"].as_array().unwrap()[..] else { panic!("{document}") };
    assert_eq!((&closed["requests"], &replayed["requests"]), (&3000.into(), &3.into()));
    assert_eq!((&replayed["reads"], &replayed["writes"]), (&1.into(), &2.into()));
    for key in ["iops", "bytes_per_s", "mean_response_ns", "min_response_ns", "max_response_ns"] {
        assert!(closed[key].as_f64().unwrap() > 0.0 && closed["read"][key].as_f64().unwrap() > 0.0, "{key}");
    }
    for percent in ["50", "90", "95", "99", "99.9", "99.99", "99.999"] {
        assert!(closed["percentiles_ns"][percent].as_u64().unwrap() > 0, "{percent}");
    }
    assert!(document["invariants"].as_array().unwrap().iter().all(|invariant| invariant["holds"] == true));
    assert!(document["process"]["requests_per_s"].as_f64().unwrap() > 0.0);
    for key in ["reads", "programs", "erases"] {
        assert!(document["flash"][key].is_u64(), "{key}");
    }
    for key in ["executions", "pages_moved"] {
        assert!(document["gc"][key].is_u64(), "{key}");
    }
    assert!(document["flash"]["programs"].as_u64() > Some(0) && document["process"]["peak_memory_bytes"].is_u64());
    for key in ["flows", "flash", "time_series", "write_amplification", "elapsed_ns"] {
        assert_eq!(document[key], again[key], "same seed, same {key}");
    }
}

#[test]
fn a_trace_is_replayed_as_its_first_bytes_tell() {
    let place = place();
    let replay = |arguments: &[&str]| place.run(&[&["simulate", "micron-m500"], arguments].concat());
    let document = replay(&["small.trace", "-o", "json"]).expect(0).document();
    assert_eq!((&document["flows"][0]["name"], &document["total"]["requests"]), (&"small.trace".into(), &3.into()));
    place.write("blocks.txt", "0.0 0 0 8 0\n");
    let told = replay(&["blocks.txt"]).expect(0).stderr;
    assert!(told.contains("blocks.txt: read as disksim: ") && told.contains("bit 0 means a read"), "{told}");
    assert_eq!(replay(&["blocks.txt", "--trace-format", "disksim"]).expect(0).stderr, "");
    place.write("words.txt", "once upon a time\n");
    let line = place.fails(1, &["simulate", "micron-m500", "words.txt"]);
    assert!(
        line.contains("words.txt: its first lines match no known format") && line.contains("--trace-format"),
        "{line}"
    );
    place.write("beyond.trace", "0 0 999999999999 8 0\n");
    let line = place.fails(1, &["simulate", "micron-m500", "beyond.trace"]);
    assert!(line.contains("beyond.trace: line 1"), "{line}");
    replay(&["beyond.trace", "--fold"]).expect(0);
}

#[test]
fn options_like_fio_s_make_a_workload_of_one_flow() {
    let place = place();
    let like_fio = |more: &[&str]| {
        let arguments = [&["simulate", "samsung-960-evo", "-o", "json", "--rw", "randrw"], more].concat();
        place.run(&arguments).expect(0).document()
    };
    let document = like_fio(&["--bs", "8k", "--iodepth", "4", "--size", "1m", "--rwmixread", "100"]);
    assert_eq!((&document["total"]["requests"], &document["total"]["bytes"]), (&128.into(), &(1 << 20).into()));
    let document = like_fio(&[
        "--requests",
        "500",
        "--rate-iops",
        "10000",
        "--rate-process",
        "poisson",
        "--bssplit",
        "4k/50:8k/50",
    ]);
    assert_eq!(document["total"]["requests"], 500);
    assert!(
        document["elapsed_ns"].as_u64().unwrap().abs_diff(50_000_000) < 10_000_000,
        "500 requests at 10,000 a second"
    );
    let document = like_fio(&["--requests", "100", "--random_distribution", "zipf:1.1", "--thinktime", "1ms"]);
    assert!(document["elapsed_ns"].as_u64().unwrap() >= 99_000_000, "99 pauses of a millisecond");
    let line = place.fails(2, &["simulate", "samsung-960-evo", "--rw", "randread", "--random-distribution", "zipf"]);
    assert!(line.contains("zipf:0.9"), "{line}");
    let document = like_fio(&["--runtime", "5ms"]);
    assert!(document["elapsed_ns"].as_u64().unwrap() >= 5_000_000);
    let line = place.fails(2, &["simulate", "samsung-960-evo", "--rw", "randrw"]);
    assert!(line.contains("--runtime"), "{line}");
}

#[test]
fn requests_seed_and_duration_on_the_command_line_go_before_the_workload_s() {
    let place = place();
    let run = |more: &[&str]| {
        place.run(&[&["simulate", "samsung-960-evo", "mix.toml", "-o", "json"], more].concat()).expect(0).document()
    };
    let document = run(&["--requests", "2", "--seed", "7"]);
    assert_eq!((&document["total"]["requests"], &document["seed"]), (&4.into(), &7.into()));
    let document = run(&["--duration", "1ms"]);
    assert!(document["flows"][0]["requests"].as_u64().unwrap() < 3000);
    assert_eq!(document["flows"][1]["requests"], 1, "the second arrives after one millisecond");
}

#[test]
fn a_page_and_tables_are_written_and_only_those_are_replaced() {
    let place = place();
    let arguments = [&["simulate", "samsung-960-evo"], &READS[..], &["--csv", "t.csv", "--parquet", "t.parquet"]];
    let simulate = arguments.concat();
    for report in [["--html", "p.html"], ["--report", "r.html"], ["--report", "r"]] {
        for _ in 0..2 {
            place.run(&[&simulate[..], &report].concat()).expect(0);
        }
    }
    assert!(place.read("t.csv").starts_with("start_ns,requests,iops"));
    assert!(std::fs::read(place.path("t.parquet")).unwrap().starts_with(b"PAR1"));
    assert!(
        ["p.html", "r.html"].iter().all(|page| place.read(page).contains("<svg"))
            && place.read("r/report.json").contains("flashwise.simulation")
    );
    let line = place.fails(5, &[&["simulate", "samsung-960-evo"], &READS[..], &["--csv", "mix.toml"]].concat());
    assert!(line.contains("mix.toml: exists and is not a flashwise table"), "{line}");
}

#[test]
fn a_full_drive_reads_from_its_flash() {
    let place = place();
    let small = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/samsung-960-evo.toml"));
    let mut small = small.unwrap();
    for (key, value) in [("blocks_per_plane", "20"), ("pages_per_block", "16"), ("capacity_bytes", "67108864")] {
        let start = small.find(&format!("\n{key} =")).unwrap() + 1;
        let end = start + small[start..].find('\n').unwrap();
        small.replace_range(start..end, &format!("{key} = {value}"));
    }
    place.write("small.toml", &small);
    let run = |state: &str| {
        let arguments = [&["simulate", "./small.toml", "--precondition", state, "-o", "json"], &READS[..]].concat();
        place.run(&arguments).expect(0).document()
    };
    let (empty, full) = (run("empty"), run("fill"));
    assert_eq!((&empty["unwritten_pages_read"], &full["unwritten_pages_read"]), (&2000.into(), &0.into()));
    assert_eq!(full["precondition"]["bytes_laid_out"], 67_108_864);
}

#[test]
fn what_cannot_be_simulated_gets_one_line_with_the_way_out() {
    let place = place();
    place.write("bad.toml", "name = \"x\"\n[[flows]]\nrequest = 3\n");
    for (code, arguments, words) in [
        (2, &["simulate"][..], "<DEVICE>"),
        (2, &["simulate", "samsung-960-evo"], "<WORKLOAD>"),
        (2, &["simulate", "samsung", "mix.toml"], "unknown preset 'samsung'"),
        (1, &["simulate", "./none.toml", "mix.toml"], "none.toml"),
        (1, &["simulate", "samsung-960-evo", "none.toml"], "none.toml"),
        (1, &["simulate", "samsung-960-evo", "bad.toml"], "request"),
        (2, &["simulate", "samsung-960-evo", "mix.toml", "--fold"], "--fold"),
        (2, &["simulate", "samsung-960-evo", "mix.toml", "--rw", "read"], "cannot be used"),
        (2, &["simulate", "samsung-960-evo", "mix.toml", "--bs", "4k"], "cannot be used"),
        (2, &["simulate", "samsung-960-evo", "mix.toml", "--interval", "1ns"], "use a longer interval"),
        (1, &["simulate", "samsung-960-evo", "--rw", "read", "--requests", "1", "--bs", "4m"], "2 MiB at once"),
        (1, &["simulate", "samsung-960-evo", "mix.toml", "--report", "/proc/none"], "/proc/none"),
        (2, &["simulate", "samsung-960-evo", "mix.toml", "--file-system", "ext4"], "a workload of one flow"),
        (2, &["simulate", "samsung-960-evo", "ycsb-a", "--file-system", "ext4"], "give --size or --file-size"),
        (2, &["simulate", "samsung-960-evo", "ycsb-a", "--file-system", "ext3"], "did you mean 'ext4'"),
        (2, &["simulate", "samsung-960-evo", "ycsb-a", "--fsync", "1"], "--file-system"),
        (2, &["simulate", "samsung-960-evo", "ycsb-a", "--file-system", "xfs", "--fast-commit"], "--file-system ext4"),
    ] {
        let line = place.fails(code, arguments);
        assert!(line.contains(words), "{arguments:?}: {line}");
    }
}

#[test]
fn a_workload_on_a_file_shows_what_the_program_sees_and_what_the_drive_gets() {
    let place = place();
    let options = ["simulate", "samsung-960-evo", "--rw", "randwrite", "--size", "16m", "--requests", "200"];
    let file = ["--file-system", "ext4", "--memory", "64m", "--fdatasync", "2"];
    let arguments = [&options[..], &file].concat();
    let document = place.run(&[&arguments[..], &["-o", "json"]].concat()).expect(0).document();
    assert_eq!(document["schema"], "flashwise.file-run");
    assert_eq!((&document["writes"]["count"], &document["syncs"]["count"]), (&200.into(), &100.into()));
    assert_eq!((&document["drive"]["flushes"], &document["bytes_written"]), (&100.into(), &819_200.into()));
    let text = place.run(&arguments).expect(0).stdout;
    assert!(text.contains("A file of 16 MiB on ext4, under a page cache of 64 MiB"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

/// Each tick of the clock changes the file's time stamp, which the next `fsync` commits.
#[test]
fn fast_commits_take_the_place_of_the_journals() {
    let place = place();
    let options = ["simulate", "samsung-960-evo", "--rw", "randwrite", "--size", "16m", "--requests", "200"];
    let file = ["--file-system", "ext4", "--memory", "64m", "--fsync", "1", "--fast-commit"];
    let arguments = [&options[..], &file].concat();
    let kernel = &place.run(&[&arguments[..], &["-o", "json"]].concat()).expect(0).document()["kernel"];
    assert!(kernel["fast_commits"].as_u64() > Some(10), "{kernel}");
    assert_eq!(kernel["commits"], 0);
    let text = place.run(&arguments).expect(0).stdout;
    assert!(text.contains("fast commits"), "{text}");
}

#[test]
fn the_schema_of_a_workload_is_printed_as_it_is_and_as_a_document() {
    let place = place();
    let text = place.run(&["simulate", "--workload-schema"]).expect(0);
    let schema: serde_json::Value = serde_json::from_str(&text.stdout).unwrap();
    assert!(schema["$defs"]["Flow"].is_object());
    let document = place.run(&["simulate", "--workload-schema", "-o", "json"]).expect(0).document();
    assert_eq!(document["json_schema"], schema);
}
