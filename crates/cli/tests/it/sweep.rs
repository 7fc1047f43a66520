//! `flashwise sweep`: its files, how it goes on, and what it refuses.

use crate::support;
use std::time::Duration;

use support::{Ended, Place};

const GRID: &str = r#"
device = "samsung-960-evo"
workload = "reads.toml"
[vary]
"flash.read_ns" = [40000, 80000]
"workload.flows.0.synthetic.pacing.closed.queue_depth" = [1, 8]
"#;

fn place(requests: &str) -> Place {
    let place = Place::new();
    place.write("grid.toml", GRID);
    place.write(
        "reads.toml",
        &format!(
            "name = \"reads\"\n[[flows]]\nrequests = {requests}\nsynthetic.read_share = 0.5\nsynthetic.access = \"random\"\n\
             synthetic.size.fixed.bytes = 4096\nsynthetic.pacing.closed.queue_depth = 1\n"
        ),
    );
    place
}

#[test]
fn a_sweep_gives_a_document_and_tables_and_a_second_one_runs_nothing() {
    let place = place("500");
    let document = place.run(&["sweep", "grid.toml", "-o", "json", "--csv", "rows.csv"]).expect(0).document();
    assert_eq!((&document["schema"], &document["resumed"]), (&"flashwise.sweep".into(), &0.into()));
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    assert_eq!(cells[3]["values"]["flash.read_ns"], 80_000);
    assert!(cells.iter().all(|cell| cell["rows"][0]["requests"] == 500 && cell["error"].is_null()));
    assert_eq!(place.names(), ["grid.parquet", "grid.results.jsonl", "grid.toml", "reads.toml", "rows.csv"]);
    let csv = place.read("rows.csv");
    assert!(csv.starts_with("cell,flow,flash.read_ns,workload.flows.0.synthetic.pacing.closed.queue_depth,requests,"));
    assert_eq!(csv.lines().count(), 5);

    let parquet = std::fs::read(place.path("grid.parquet")).unwrap();
    let text = place.run(&["sweep", "grid.toml", "--csv", "rows.csv"]).expect(0).stdout;
    assert!(text.contains("4 cells, 4 of them resumed from an earlier run."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(std::fs::read(place.path("grid.parquet")).unwrap(), parquet, "the same rows, the same file");
    assert_eq!(place.read("rows.csv"), csv);
}

#[test]
fn shards_that_share_nothing_merge_into_what_one_run_gives() {
    let whole = place("500");
    whole.run(&["sweep", "grid.toml", "--csv", "rows.csv"]).expect(0);
    let place = place("500");
    place.run(&["sweep", "grid.toml", "--shard", "1/3"]).expect(0);
    place.run(&["sweep", "grid.toml", "--shard", "3/3"]).expect(0);
    let merge = ["sweep", "grid.toml", "--csv", "rows.csv", "--merge"];
    let files = ["1", "3"].map(|shard| format!("grid.shard-{shard}-of-3.results.jsonl"));
    let [one, three] = files.each_ref().map(String::as_str);
    let error = place.run(&[&merge[..], &[one, three]].concat()).expect(1).stderr;
    assert!(error.contains("1 of 4 cells are in none of the files"), "{error}");
    assert!(!place.path("rows.csv").exists(), "there are no rows without all cells");
    place.run(&["sweep", "grid.toml", "--shard", "2/3", "--results", "two.jsonl"]).expect(0);
    // The results file is among those of a pattern.
    let document = place.run(&[&merge[..], &[one, "two.jsonl", "grid.results.jsonl", three, "-o", "json"]].concat());
    let document = document.expect(0).document();
    assert_eq!((&document["resumed"], &document["failed"]), (&4.into(), &0.into()));
    assert_eq!(place.read("rows.csv"), whole.read("rows.csv"));
    let parquet = |place: &Place| std::fs::read(place.path("grid.parquet")).unwrap();
    assert_eq!(parquet(&place), parquet(&whole));
    let error = place.run(&["sweep", "grid.toml", "--merge", "none.jsonl"]).expect(1).stderr;
    assert!(error.contains("none.jsonl: "), "{error}");
    assert!(!place.path("none.jsonl").exists());
    for shard in ["0/3", "4/3", "3", "a/b"] {
        let error = place.run(&["sweep", "grid.toml", "--shard", shard]).expect(2).stderr;
        assert!(error.contains("is not NUMBER/SHARDS"), "{error}");
    }
}

#[test]
fn ctrl_c_leaves_what_is_finished_and_the_same_command_goes_on() {
    let place = place("1_000_000_000");
    let child = place.command(&["sweep", "grid.toml", "--jobs", "1"]).spawn().unwrap();
    while !place.path("grid.results.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    Ended::of(child).expect(130);
    assert_eq!(place.names(), ["grid.results.jsonl", "grid.toml", "reads.toml"]);
    place.write("reads.toml", &place.read("reads.toml").replace("1_000_000_000", "100"));
    place.run(&["sweep", "grid.toml"]).expect(0);
}

#[test]
fn a_cell_that_fails_is_told_and_the_others_are_there() {
    let place = place("100");
    place.write(
        "grid.toml",
        &GRID.replace("\"flash.read_ns\" = [40000, 80000]", "\"host.max_transfer_bytes\" = [2048, 8192]"),
    );
    let ended = place.run(&["sweep", "grid.toml", "-o", "json"]).expect(1);
    let document = ended.document();
    assert_eq!(document["failed"], 2);
    assert!(document["cells"][0]["error"].as_str().unwrap().contains("2 KiB at once"), "{document}");
    assert_eq!(document["cells"][2]["rows"][0]["requests"], 100);
}

#[test]
fn what_cannot_be_swept_gets_one_line() {
    let place = place("100");
    place.write("mine.jsonl", "important\n");
    place.write("bad.toml", &GRID.replace("flash.read_ns", "flash.read_nz"));
    for (code, arguments, words) in [
        (1, &["sweep", "none.toml"][..], "none.toml"),
        (1, &["sweep", "reads.toml"], "reads.toml"),
        (1, &["sweep", "bad.toml"], "did you mean `read_ns`?"),
        (5, &["sweep", "grid.toml", "--results", "mine.jsonl"], "is not a file of sweep results"),
        (5, &["sweep", "grid.toml", "--parquet", "reads.toml"], "reads.toml: exists and is not a flashwise table"),
    ] {
        let line = place.fails(code, arguments);
        assert!(line.contains(words), "{arguments:?}: {line}");
    }
}
