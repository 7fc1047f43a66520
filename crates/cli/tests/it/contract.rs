//! What programs that call flashwise rely on: exit codes, one JSON document, nothing left behind.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

fn flashwise(dir: &Path, arguments: &[&str]) -> Output {
    Command::cargo_bin("flashwise").unwrap().current_dir(dir).env_remove("COLUMNS").args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("stdout is no single JSON document: {e}: {}", String::from_utf8_lossy(&output.stdout))
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A workload of moments, its page cache a tenth of its database.
const SMALL: [&str; 12] = [
    "--rows",
    "20000",
    "--rounds",
    "3",
    "--inserts",
    "300",
    "--selects",
    "600",
    "--page-cache",
    "256k",
    "--time-budget",
    "5s",
];
/// Less still, with the search that is the default.
const SMALLER: [&str; 10] =
    ["--rows", "2000", "--rounds", "3", "--inserts", "60", "--selects", "100", "--page-cache", "32k"];

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn learn_gives_a_profile_with_every_figure_its_interval_and_its_verdict() {
    let dir = TempDir::new().unwrap();
    let output = flashwise(dir.path(), &["learn", "sim:samsung-960-evo", "-o", "json"]);
    let document = json(&output);
    assert_eq!(document["schema"], "flashwise.profile");
    assert_eq!(document["schema_version"], 1);
    let parameters = document["parameters"].as_object().unwrap();
    for key in [
        "write_unit_bytes",
        "stripe_bytes",
        "chunk_bytes",
        "page_bytes",
        "hot_location",
        "asymmetry_4k",
        "read_concurrency_4k",
        "write_concurrency_4k",
        "asymmetry_8k",
        "read_concurrency_8k",
        "write_concurrency_8k",
    ] {
        let figure = parameters[key].as_object().unwrap_or_else(|| panic!("{key}"));
        let verdict = figure["verdict"].as_str().unwrap();
        assert!(["certain", "inconclusive", "absent"].contains(&verdict), "{key}: {verdict}");
        let has_value = verdict == "certain";
        for part in ["value", "low", "high"] {
            assert!(figure.contains_key(part), "{key}.{part}");
            assert!(!has_value || !figure[part].is_null(), "{key}.{part}");
        }
    }
    assert_eq!(parameters["write_unit_bytes"]["value"], 32768);
    assert_eq!(parameters["hot_location"]["value"]["period_bytes"], 65536);
    assert_eq!(parameters["hot_location"]["value"]["offset_bytes"], 32768);
    assert!(parameters["page_bytes"]["value"].is_null());
    assert!(is_empty(dir.path()), "learn leaves nothing in the working directory");
}

/// The same command on a single processor.
fn on_one_processor(dir: &Path, arguments: &[&str]) -> Output {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first: String = allowed.trim().chars().take_while(char::is_ascii_digit).collect();
    let program = assert_cmd::cargo::cargo_bin("flashwise");
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &first]).arg(program).args(arguments);
    command.current_dir(dir).env_remove("COLUMNS").output().unwrap()
}

/// The document without what depends on the machine: times of its clock and its processor, and its free memory.
fn without_machine(mut document: Value) -> Value {
    for part in ["search", "default", "before", "checklist", "default_page_size", "best", "after"] {
        let part = document[part].as_object_mut().unwrap();
        ["time_ns", "cpu_time_ns", "times", "machine"].iter().for_each(|key| _ = part.remove(*key));
    }
    document
}

#[test]
fn fit_gives_a_comparison_and_a_report_and_the_same_on_every_machine() {
    let dir = TempDir::new().unwrap();
    let arguments = [&["fit", "sqlite", "-o", "json"][..], &SMALLER].concat();
    let output = flashwise(dir.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!(document["schema"], "flashwise.comparison");
    assert!(document["profile"]["parameters"].is_object());
    assert!(!document["findings"].as_array().unwrap().is_empty());
    assert!(!document["applied"].as_array().unwrap().is_empty());
    for run in ["before", "after", "default_page_size", "default", "checklist", "best"] {
        for key in
            ["select_per_s", "insert_per_s", "host_bytes_written", "flash_bytes_programmed", "write_amplification"]
        {
            assert!(document[run][key].as_f64().unwrap() > 0.0, "{run}.{key}");
        }
        assert_eq!(document[run]["integrity_check"], "ok");
    }
    assert!(document["gain"]["low"].as_f64().unwrap() > 1.01, "{}", document["gain"]);
    assert!(document["candidates"].as_array().unwrap().iter().all(|candidate| candidate["ratios"][0].is_number()));
    assert_eq!(document["guarantees"]["synchronous"], "full");
    for (old, new) in [("before", "default"), ("after", "best"), ("default_page_size", "default")] {
        assert_eq!(document[old], document[new]);
    }
    let page = std::fs::read_to_string(dir.path().join("flashwise-report/report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("http://") && !page.contains("src="));
    let saved = std::fs::read_to_string(dir.path().join("flashwise-report/report.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&saved).unwrap(), document);

    let again = json(&on_one_processor(dir.path(), &arguments));
    assert_eq!(without_machine(again), without_machine(document));
}

/// The failure that arguments give: exit code and the line on stderr; nothing on stdout, nothing left behind.
fn failure(arguments: &[&str]) -> (i32, String) {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("broken.toml"), "name = 3 [").unwrap();
    let shown = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices/micron-m500.toml"));
    let impossible = shown.unwrap().replace("pages_per_block = 512", "pages_per_block = 0");
    std::fs::write(dir.path().join("impossible.toml"), impossible).unwrap();
    std::fs::write(dir.path().join("bad.sql"), "SELECT 1;\nSELECT * FROM nowhere;").unwrap();
    rusqlite::Connection::open(dir.path().join("a.db")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let before: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    let text = flashwise(dir.path(), arguments);
    assert!(text.stdout.is_empty(), "{}", String::from_utf8_lossy(&text.stdout));
    let document = flashwise(dir.path(), &[arguments, &["-o", "json"]].concat());
    assert_eq!(json(&document)["schema"], "flashwise.error", "{arguments:?}");
    assert_eq!(document.status.code(), text.status.code());
    let after: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(after.len(), before.len(), "{arguments:?} left something behind: {after:?}");
    (text.status.code().unwrap(), stderr(&text))
}

#[test]
fn bad_input_gets_one_line_that_says_what_and_where_and_the_right_exit_code() {
    for (arguments, code, words) in [
        (&["learn", "sim:nothing"][..], 2, "unknown preset 'nothing'"),
        (&["learn", "no-such-directory"], 2, "no-such-directory: no such directory"),
        (&["learn", "sim:./broken.toml"], 1, "./broken.toml: line 1"),
        (&["learn", "sim:./impossible.toml"], 1, "flash.pages_per_block = 0: must be at least 1"),
        (&["device", "check", "impossible.toml"], 1, "flash.pages_per_block = 0"),
        (&["device", "show", "nothing"], 2, "samsung-960-evo"),
        (&["learn", "a.db"], 5, "a.db: an existing file is never written to"),
        (&["fit", "sqlite", "--report", "/proc/none"], 1, "/proc/none"),
        (&["fit", "sqlite", "--report", "a.db"], 1, "a.db"),
        (&["fit", "sqlite", "--rows", "0"], 2, "rows"),
        (&["fit", "sqlite", "--save-database", "a.db"], 5, "a.db: exists"),
        (&["fit", "sqlite", "--save-database", "x", "--save-trace", "x"], 2, "name the same file"),
        (&["fit", "sqlite", "--db", "none.db", "--sql", "bad.sql"], 1, "none.db"),
        (&["fit", "sqlite", "--db", "a.db", "--sql", "bad.sql", "--on", "sim:micron-m500"], 1, "statement 2"),
        (&["fit", "sqlite", "--db", "broken.toml", "--sql", "bad.sql"], 1, "broken.toml"),
        (&["learn", "--max-write", "1m"], 1, "--max-write"),
        (&["audit", "none.csv", "--profile", "none.toml"], 1, "none.toml"),
        (&["sqlite", "info", "broken.toml"], 1, "broken.toml"),
        (&["sqlite", "export", "a.db", "plain.db"], 1, "plain"),
    ] {
        let (exit, line) = failure(arguments);
        assert_eq!(exit, code, "{arguments:?}: {line}");
        assert!(line.contains(words), "{arguments:?}: {line}");
        // Beside the lines of progress.
        let lines = line.trim_end().lines().filter(|line| !line.contains(" %: "));
        assert_eq!(lines.count(), 1, "{arguments:?}: {line}");
    }
}

#[test]
fn a_command_line_that_does_not_parse_is_a_usage_error_in_json_too() {
    let dir = TempDir::new().unwrap();
    let output = flashwise(dir.path(), &["learn", "--page-cache", "4KB", "-o", "json"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(json(&output)["error"]["exit_code"], 2);
    let output = flashwise(dir.path(), &["fit", "sqlite", "--page-cache", "4KB"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("4KiB"), "{}", stderr(&output));
}

#[test]
fn the_profile_audit_and_layout_verbs_work_on_what_the_others_leave() {
    let dir = TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name);
    let learned = flashwise(dir.path(), &["learn", "--profile", "p.toml", "--html", "p.html"]);
    assert_eq!(learned.status.code(), Some(0), "{}", stderr(&learned));
    let db = rusqlite::Connection::open(path("plain.db")).unwrap();
    db.execute_batch("PRAGMA page_size = 65536; CREATE TABLE t (x); INSERT INTO t VALUES (42)").unwrap();
    drop(db);
    let fit = [&["fit", "sqlite", "--profile", "p.toml", "--save-trace", "t.csv"][..], &SMALL].concat();
    assert_eq!(flashwise(dir.path(), &fit).status.code(), Some(0));
    let audited = flashwise(dir.path(), &["audit", "t.csv", "--profile", "p.toml", "-o", "json"]);
    assert_eq!(audited.status.code(), Some(3), "plain SQLite breaks rules on this drive");
    let findings = json(&audited);
    assert!(findings["findings"].as_array().unwrap().iter().any(|f| f["violations"].as_u64().unwrap() > 0));

    let import = flashwise(dir.path(), &["sqlite", "import", "plain.db", "hot.db", "--profile", "p.toml"]);
    assert_eq!(import.status.code(), Some(0), "{}", stderr(&import));
    let info = json(&flashwise(dir.path(), &["sqlite", "info", "hot.db", "-o", "json"]));
    assert_eq!(info["layout"], "hot-locations");
    assert_eq!(flashwise(dir.path(), &["sqlite", "export", "hot.db", "back.db"]).status.code(), Some(0));
    assert_eq!(std::fs::read(path("plain.db")).unwrap(), std::fs::read(path("back.db")).unwrap());
}

#[test]
fn a_user_s_database_is_run_on_a_copy_and_stays_as_it_was() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("mine.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "PRAGMA page_size = 8192; CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB); CREATE INDEX i ON t (v);
         WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000)
         INSERT INTO t SELECT x, randomblob(200) FROM n",
    )
    .unwrap();
    drop(db);
    let original = std::fs::read(&path).unwrap();
    let statements: String = (1..200).map(|n| format!("SELECT v FROM t WHERE k = {};\n", n * 13 % 3000)).collect();
    let sql = format!("{statements}BEGIN; INSERT INTO t VALUES (9001, x'00'); DELETE FROM t WHERE k < 50; COMMIT;");
    std::fs::write(dir.path().join("q.sql"), sql).unwrap();
    let arguments =
        ["fit", "sqlite", "--db", "mine.db", "--sql", "q.sql", "--page-cache", "128k", "--save-database", "out.db"];
    let on = ["--on", "sim:samsung-960-evo", "--time-budget", "5s", "-o", "json"];
    let output = flashwise(dir.path(), &[&arguments[..], &on].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!(document["default_page_size"]["page_bytes"], 8192);
    assert!(document["after"]["select_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read(&path).unwrap(), original, "the original is untouched");
    let saved = rusqlite::Connection::open(dir.path().join("out.db")).unwrap();
    let rows: i64 = saved.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 3000 - 49 + 1);
    let check: String = saved.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

/// What SQLite gains in a new directory of this one, which is left empty; nothing where the file system cannot hold a
/// scratch file.
fn fitted_in(parent: &Path, more: &[&str]) -> Option<Value> {
    let (dir, reports) = (TempDir::new_in(parent).unwrap(), TempDir::new().unwrap());
    let target = dir.path().to_str().unwrap();
    let arguments = [&["fit", "sqlite", "--target", target, "-o", "json"][..], &SMALL, more].concat();
    let output = flashwise(reports.path(), &arguments);
    if stderr(&output).contains("O_DIRECT") || stderr(&output).contains("free") {
        eprintln!("skipped: this file system cannot hold a scratch file: {}", stderr(&output));
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(is_empty(dir.path()));
    Some(json(&output))
}

fn on_disk() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// In memory, where a disk takes minutes; on the disk, whose requests have to be aligned, with a profile of another
/// drive.
#[test]
fn a_directory_is_a_drive_in_wall_clock_time_and_is_left_empty() {
    let memory = Path::new("/dev/shm");
    let learned = memory.is_dir().then(|| fitted_in(memory, &[])).flatten().or_else(|| fitted_in(on_disk(), &[]));
    let Some(learned) = learned else { return };
    assert_eq!(learned["profile"]["device"]["clock"], "wall");
    let other = TempDir::new().unwrap();
    let profile = other.path().join("p.toml");
    let profile = profile.to_str().unwrap();
    assert_eq!(flashwise(other.path(), &["learn", "--profile", profile]).status.code(), Some(0));
    if let Some(fitted) = fitted_in(on_disk(), &["--profile", profile]) {
        assert!(fitted["before"]["insert_per_s"].as_f64().unwrap() > 0.0, "{fitted}");
    }
}

#[test]
#[ignore = "minutes on a disk: make test-full runs it"]
fn a_directory_on_a_disk_is_learned_in_wall_clock_time_and_is_left_empty() {
    let Some(fitted) = fitted_in(on_disk(), &[]) else { return };
    assert_eq!(fitted["profile"]["device"]["clock"], "wall");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_130_and_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("flashwise"))
        .current_dir(dir.path())
        .args(["fit", "sqlite", "--rows", "3000000", "--rounds", "50"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_empty(dir.path()));
}
