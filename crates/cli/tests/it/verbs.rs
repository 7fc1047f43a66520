//! Each verb where nothing goes wrong, and the files that it leaves.

use crate::support;
use std::os::unix::fs::FileTypeExt;

use serde_json::Value;
use support::{Place, TINY};

const TRACE_HEADER: &str = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n";

#[test]
fn learn_writes_its_profile_and_its_page_and_replaces_only_those() {
    let place = Place::new();
    let learned = place.run(&["learn", "--profile", "p.toml", "--html", "p.html"]).expect(0);
    assert!(learned.stdout.contains("write unit") && learned.stderr.is_empty(), "{}", learned.stderr);
    assert_eq!(place.names(), ["p.html", "p.toml"]);
    assert!(place.read("p.html").starts_with("<!DOCTYPE html>"));
    let first = place.read("p.toml");
    assert!(first.starts_with("schema = \"flashwise.profile\""));
    place.run(&["learn", "--seed", "2", "--profile", "p.toml", "--html", "p.html"]).expect(0);
    assert_ne!(place.read("p.toml"), first);
    assert_eq!(place.names(), ["p.html", "p.toml"]);
}

#[test]
fn learn_writes_into_a_pipe_and_through_a_link() {
    let place = Place::new();
    place.write("real.toml", "");
    std::os::unix::fs::symlink("real.toml", place.path("link.toml")).unwrap();
    place.run(&["learn", "--profile", "link.toml", "--html", "/dev/null"]).expect(0);
    assert!(place.path("link.toml").is_symlink() && place.read("real.toml").contains("flashwise.profile"));
}

#[test]
fn nothing_is_written_when_learning_fails() {
    let place = Place::new();
    let line = place.fails(1, &["learn", "--profile", "p.toml", "--html", "p.html", "--max-write", "1m"]);
    assert!(line.contains("--max-write 1 MiB"), "{line}");
    assert!(place.names().is_empty());
}

#[test]
fn a_raw_device_is_refused_as_a_target_of_fit_and_as_an_output() {
    // Loop devices only: should the refusal ever fail, nothing is lost.
    let devices = std::fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap().path());
    let is_loop = |path: &std::path::PathBuf| {
        path.to_string_lossy().starts_with("/dev/loop")
            && std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
    };
    let Some(device) = devices.filter(is_loop).min() else {
        return eprintln!("skipped: there is no loop device here");
    };
    let (place, device) = (Place::new(), device.to_str().unwrap());
    for arguments in [
        &["fit", "sqlite", "--target", device][..],
        &["learn", "--profile", device],
        &["learn", "--html", device],
        &["fit", "sqlite", "--save-database", device],
    ] {
        let line = place.fails(5, arguments);
        assert!(line.contains(device), "{line}");
    }
}

#[test]
fn sizes_are_read_as_fio_users_write_them() {
    let place = Place::with_profile();
    let fit = |size| [&["fit", "sqlite", "--profile", "p.toml", "--page-cache", size][..], &TINY].concat();
    for size in ["64k", "64K", "64KiB", "64ki"] {
        let document = place.run(&[&fit(size)[..], &["-o", "json"]].concat()).expect(0).document();
        assert_eq!(document["workload"]["page_cache_bytes"], 65536, "{size}");
    }
    // SQLite's own pragma takes a number for pages.
    let line = place.fails(2, &fit("65536"));
    assert!(line.contains("give a unit"), "{line}");
}

#[test]
fn fit_says_where_its_report_is_and_a_second_one_takes_its_place() {
    let place = Place::with_profile();
    let fit = |seed: &str| {
        let arguments = ["fit", "sqlite", "--profile", "p.toml", "--seed", seed, "--report", "new/report"];
        place.run(&[&arguments[..], &TINY].concat()).expect(0)
    };
    let first = fit("1");
    let end = "Report: new/report/report.html, new/report/report.json; --verbose prints all of it\n";
    assert!(first.stdout.ends_with(end), "{}", first.stdout);
    assert!(!first.stderr.contains("replaced"), "{}", first.stderr);
    assert!(fit("2").stderr.contains("new/report: the report in it will be replaced"));
    let report: Value = serde_json::from_str(&place.read("new/report/report.json")).unwrap();
    assert_eq!(report["workload"]["seed"], 2);
    assert_eq!(std::fs::read_dir(place.path("new/report")).unwrap().count(), 2);
    assert_eq!(place.names(), ["new", "p.toml"]);
}

#[test]
fn a_report_that_cannot_be_written_stops_the_work_before_it_begins() {
    let place = Place::with_profile();
    place.write("file", "mine");
    for report in ["file", "file/below", "/proc/none"] {
        let line = place.fails(1, &["fit", "sqlite", "--report", report, "--save-database", "s.db"]);
        assert!(line.starts_with(&format!("flashwise: {report}")), "{line}");
    }
    assert_eq!(place.read("file"), "mine");
}

#[test]
fn the_number_of_inserts_a_transaction_is_a_parameter() {
    let place = Place::with_profile();
    for count in ["1", "500", "5000", "50000"] {
        let options = ["fit", "sqlite", "--profile", "p.toml", "--inserts-per-transaction", count, "-o", "json"];
        let document = place.run(&[&options[..], &TINY].concat()).expect(0).document();
        assert_eq!(document["workload"]["inserts_per_transaction"].to_string(), count);
        let commits = if count == "1" { 40 } else { 2 };
        assert_eq!(document["before"]["transaction_latency"]["count"], commits, "{count}");
    }
}

#[test]
fn a_target_is_an_option_and_in_the_place_of_a_database_the_option_is_named() {
    let place = Place::with_profile();
    let base = [&["fit", "sqlite", "--profile", "p.toml", "-o", "json"][..], &TINY].concat();
    for target in [["--target", "sim:micron-m500"], ["--on", "sim:micron-m500"]] {
        assert_eq!(place.run(&[&base[..], &target].concat()).expect(0).document()["target"], "sim:micron-m500");
    }
    std::fs::create_dir(place.path("drive")).unwrap();
    for (target, others) in
        [("sim:micron-m500", &[][..]), ("sim:micron-m500", &["--on", "sim:toshiba-xg5"]), ("drive", &[])]
    {
        let document = place.run(&[&base[..], &[target], others].concat()).expect(2).document();
        let error = document["error"]["message"].as_str().unwrap();
        assert!(error.contains(&format!("type --on {target} to fit to it")), "{error}");
    }
}

#[test]
fn the_default_report_goes_into_the_working_directory() {
    let place = Place::with_profile();
    let fit = || place.run(&[&["fit", "sqlite", "--profile", "p.toml"][..], &TINY].concat()).expect(0);
    fit();
    assert_eq!(place.names(), ["flashwise-report", "p.toml"]);
    let first = place.read("flashwise-report/report.html");
    assert!(fit().stdout.contains("Report: flashwise-report-2/report.html"));
    assert_eq!(place.read("flashwise-report/report.html"), first, "an earlier report is kept");
}

#[test]
fn a_fit_that_fails_late_leaves_neither_report_nor_database_nor_copies() {
    let place = Place::with_profile();
    place.database("a.db");
    place.write("late.sql", &("SELECT * FROM t;\n".repeat(50) + "SELECT broken FROM t;\n"));
    let arguments = ["--profile", "p.toml", "--save-database", "s.db", "--save-trace", "t.csv", "--report", "r"];
    let fit = [&["fit", "sqlite", "--db", "a.db", "--sql", "late.sql"][..], &arguments].concat();
    let line = place.fails(1, &fit);
    assert!(line.ends_with("late.sql, statement 51, line 51: no such column: broken"), "{line}");
}

#[test]
fn an_audit_ends_with_3_for_violations_and_with_0_for_none() {
    let place = Place::with_profile();
    place.write("good.csv", &format!("{TRACE_HEADER}0,read,database,32768,65536,90000\n"));
    place.write("bad.csv", &format!("{TRACE_HEADER}0,read,database,0,65536,90000\n0,write,database,0,100,9\n"));
    place.write("empty.csv", TRACE_HEADER);
    for (trace, code) in [("good.csv", 0), ("bad.csv", 3), ("empty.csv", 0)] {
        let text = place.run(&["audit", trace, "--profile", "p.toml"]).expect(code);
        assert!(text.stderr.is_empty() && !text.stdout.is_empty(), "{}", text.stderr);
        let document = place.run(&["audit", trace, "--profile", "p.toml", "-o", "json"]).expect(code).document();
        assert_eq!(document["schema"], "flashwise.findings");
        assert_eq!(document["trace"], trace);
        let findings = document["findings"].as_array().unwrap();
        assert_eq!(findings.iter().any(|f| f["violations"] != 0), code == 3, "{document}");
    }
}

#[test]
fn a_trace_or_profile_that_is_none_is_told_with_its_place() {
    let place = Place::with_profile();
    place.write("cut.csv", &format!("{TRACE_HEADER}0,read,database,0,65536,9\n1,smell,database,0,1,1\n"));
    place.write("text", "no trace at all\nreally\n");
    place.write("other.toml", "schema = \"something.else\"\n");
    for (trace, profile, words) in [
        ("cut.csv", "p.toml", "cut.csv: line 3: operation is 'smell'"),
        ("text", "p.toml", "text: its first lines match no known format"),
        ("missing.csv", "p.toml", "missing.csv: No such file"),
        ("cut.csv", "missing.toml", "missing.toml: No such file"),
        ("cut.csv", "other.toml", "other.toml: not a flashwise profile"),
        ("cut.csv", "text", "text: not a flashwise profile"),
    ] {
        let line = place.fails(1, &["audit", trace, "--profile", profile]);
        assert!(line.contains(words), "{line}");
    }
}

#[test]
fn a_database_goes_to_hot_locations_and_back_to_the_byte() {
    let place = Place::with_profile();
    place.database("a.db");
    let original = std::fs::read(place.path("a.db")).unwrap();
    let import = place.run(&["sqlite", "import", "a.db", "hot.db", "--profile", "p.toml"]).expect(0);
    assert!(
        import.stdout.starts_with("hot.db: laid out for the drive, every page at a hot location"),
        "{}",
        import.stdout
    );
    let info = place.run(&["sqlite", "info", "hot.db"]).expect(0).stdout;
    assert!(info.contains("\npages at hot locations "), "{info}");
    // How far the pages are shifted, and whether the file system tells, is not the same everywhere.
    let by_place = ["shift ", "pages at hot locations ", "layout version ", "file "];
    let lines = info.lines().filter(|line| !by_place.iter().any(|label| line.starts_with(label)));
    insta::assert_snapshot!("info_of_a_database_at_hot_locations", lines.collect::<Vec<_>>().join("\n"));
    let document = place.run(&["sqlite", "info", "a.db", "-o", "json"]).expect(0).document();
    assert_eq!((&document["schema"], &document["layout"]), (&"flashwise.sqlite-info".into(), &"plain".into()));
    let export = place.run(&["sqlite", "export", "hot.db", "back.db", "-o", "json"]).expect(0).document();
    assert_eq!(export["schema"], "flashwise.sqlite-export");
    assert_eq!(std::fs::read(place.path("back.db")).unwrap(), original);
    assert_eq!(place.names(), ["a.db", "back.db", "hot.db", "p.toml"]);
}

#[test]
fn an_import_whose_pages_would_not_be_hot_is_refused_with_the_page_size_to_use() {
    let place = Place::with_profile();
    rusqlite::Connection::open(place.path("small.db")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let line = place.fails(1, &["sqlite", "import", "small.db", "hot.db", "--profile", "p.toml"]);
    assert!(line.contains("small.db: pages of 4 KiB would not be at hot locations"), "{line}");
    assert!(line.contains("PRAGMA page_size = 65536; VACUUM"), "{line}");
    assert_eq!(place.names(), ["p.toml", "small.db"]);
    rusqlite::Connection::open(place.path("small.db"))
        .unwrap()
        .execute_batch("PRAGMA page_size = 65536; VACUUM")
        .unwrap();
    let import = ["sqlite", "import", "small.db", "hot.db", "--profile", "p.toml", "-o", "json"];
    assert_eq!(place.run(&import).expect(0).document()["pages_are_hot"], true);
}

#[test]
fn import_and_export_never_overwrite_and_leave_nothing_when_they_fail() {
    let place = Place::with_profile();
    place.database("a.db");
    place.write("precious", "data");
    // Its hot locations lead by so little that whether writes leave them there stays open.
    place.run(&["learn", "sim:micron-m500", "--profile", "plain.toml"]).expect(4);
    place.run(&["sqlite", "import", "a.db", "hot.db", "--profile", "p.toml"]).expect(0);
    for (code, arguments, words) in [
        (5, &["sqlite", "export", "hot.db", "precious"][..], "precious: exists"),
        (5, &["sqlite", "import", "a.db", "precious", "--profile", "p.toml"], "precious: exists"),
        (1, &["sqlite", "export", "a.db", "new.db"], "already a plain SQLite file"),
        (1, &["sqlite", "export", "missing.db", "new.db"], "missing.db: no such file"),
        (1, &["sqlite", "export", "hot.db", "missing/new.db"], "missing/new.db: No such file"),
        (1, &["sqlite", "import", "precious", "new.db", "--profile", "p.toml"], "precious: not a SQLite database"),
        (1, &["sqlite", "import", "hot.db", "new.db", "--profile", "p.toml"], "hot.db: not a SQLite database"),
        (1, &["sqlite", "import", "a.db", "new.db", "--profile", "plain.toml"], "needs no layout of its own"),
        (1, &["sqlite", "info", "missing.db"], "missing.db: no such file"),
    ] {
        let line = place.fails(code, arguments);
        assert!(line.contains(words), "{line}");
    }
    assert_eq!(place.read("precious"), "data");
}

#[test]
fn a_drive_whose_figures_cannot_all_be_told_is_learned_with_exit_code_4() {
    let place = Place::new();
    let drive = place.run(&["device", "show", "samsung-960-evo"]).expect(0).stdout;
    let noisy = drive.replace("array_time_jitter = 0.03", "array_time_jitter = 0.5");
    assert_ne!(noisy, drive);
    place.write("noisy.toml", &noisy);
    let ended = place.run(&["learn", "sim:noisy.toml", "--profile", "p.toml", "-o", "json"]).expect(4);
    assert!(ended.stdout.contains("\"inconclusive\""), "{}", ended.stdout);
    assert!(place.read("p.toml").contains("inconclusive"), "the profile is written all the same");
}

#[test]
fn studies_are_listed() {
    let place = Place::new();
    let list = place.run(&["study", "--list"]).expect(0).stdout;
    let document = place.run(&["study", "--list", "-o", "json"]).expect(0).document();
    assert_eq!(document["studies"].as_array().unwrap().len(), list.lines().count());
    insta::assert_snapshot!("study_list", list);
}

#[test]
fn presets_are_listed_shown_and_checked() {
    let place = Place::new();
    let list = place.run(&["device", "list"]).expect(0);
    insta::assert_snapshot!("device_list", list.stdout);
    let document = place.run(&["device", "list", "-o", "json"]).expect(0).document();
    for preset in document["presets"].as_array().unwrap() {
        let name = preset["name"].as_str().unwrap();
        let shown = place.run(&["device", "show", name]).expect(0).stdout;
        assert_eq!(place.run(&["device", "show", &format!("sim:{name}")]).expect(0).stdout, shown);
        place.write("copy.toml", &shown);
        let checked = place.run(&["device", "check", "copy.toml"]).expect(0);
        assert!(checked.stdout.starts_with("copy.toml: ") && checked.stdout.lines().count() == 1, "{}", checked.stdout);
        let json = |arguments: &[&str]| place.run(&[arguments, &["-o", "json"]].concat()).expect(0).document();
        assert_eq!(json(&["device", "check", "copy.toml"])["device"], json(&["device", "show", name])["device"]);
    }
}

#[test]
fn presets_that_are_marked_as_validated_are_those_that_the_book_names() {
    let place = Place::new();
    let list = place.run(&["device", "list", "-o", "json"]).expect(0).document();
    let all = ["presets", "volumes"].map(|key| list[key].as_array().unwrap().clone()).concat();
    let marks: Vec<&str> = all.iter().map(|preset| preset["evidence"].as_str().unwrap()).collect();
    for mark in ["validated", "fitted", "simulator", "data sheet"] {
        assert!(marks.contains(&mark), "{mark}");
    }
    let book = include_str!("../../../../docs/devices.md");
    let paragraph = book.split("\n- ").find(|paragraph| paragraph.starts_with("`validated`")).unwrap();
    let named: Vec<&str> = paragraph.split('`').skip(3).step_by(2).collect();
    let marked = all.iter().filter(|preset| preset["evidence"] == "validated");
    let mut marked: Vec<&str> = marked.map(|preset| preset["name"].as_str().unwrap()).collect();
    marked.sort_unstable();
    assert_eq!(named, marked);
}

#[test]
fn a_configuration_that_cannot_be_is_told_with_its_key_and_one_that_is_none_with_its_line() {
    let place = Place::new();
    let preset = place.run(&["device", "show", "micron-m500"]).expect(0).stdout;
    place.write("impossible.toml", &preset.replace("pages_per_block = 512", "pages_per_block = 0"));
    place.write("misspelt.toml", &preset.replace("pages_per_block", "pages_per_blok"));
    place.write("broken.toml", &preset.replace("[flash]", "[flash"));
    for (file, words) in [
        ("impossible.toml", "flash.pages_per_block = 0: must be at least 1"),
        ("misspelt.toml", "pages_per_blok"),
        ("broken.toml", "broken.toml: line "),
        ("missing.toml", "missing.toml: No such file"),
    ] {
        for arguments in [
            &["device", "check", file][..],
            &["learn", &format!("sim:{file}")],
            &["fit", "sqlite", "--on", &format!("sim:{file}")],
        ] {
            let line = place.fails(1, arguments);
            assert!(line.contains(words) && line.contains(file), "{line}");
        }
    }
}

#[test]
fn man_pages_and_completions_cover_every_verb() {
    let place = Place::new();
    let document = place.run(&["generate", "man", "man", "-o", "json"]).expect(0).document();
    let files: Vec<_> = document["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    for verb in ["", "-fit-sqlite", "-learn", "-audit", "-sqlite-export", "-device-show", "-generate-completions"] {
        let name = format!("flashwise{verb}.1");
        assert!(files.contains(&&*name), "{files:?}");
        assert!(place.read(&format!("man/{name}")).contains(".SH NAME"), "{name}");
    }
    assert_eq!(std::fs::read_dir(place.path("man")).unwrap().count(), files.len());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&["generate", "completions", shell]).expect(0).stdout;
        assert!(script.contains("inserts-per-transaction"), "{shell}");
        let document = place.run(&["generate", "completions", shell, "-o", "json"]).expect(0).document();
        assert_eq!(document["script"], script);
    }
    place.write("file", "");
    let line = place.fails(1, &["generate", "man", "file"]);
    assert!(line.contains("file: "), "{line}");
}

#[test]
fn a_database_is_tuned_on_copies_and_changed_only_where_that_is_asked_for() {
    let place = Place::with_profile();
    let db = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let rows = "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t SELECT i, 'v' FROM n";
    db.execute_batch(rows).unwrap();
    drop(db);
    let statements: String = (1..30).map(|i| format!("UPDATE t SET v = 'w' WHERE k = {};", i * 11)).collect();
    place.write("work.sql", &statements);
    let (before, bytes) = (place.names(), std::fs::read(place.path("app.db")).unwrap());

    // Settings of plain SQLite alone are applied in place.
    let skipped = flashwise_sqlite::TECHNIQUES.iter().map(|technique| technique.name).chain(["page_size", "log-sync"]);
    let skipped: Vec<&str> = skipped.flat_map(|name| ["--skip", name]).collect();
    let arguments =
        [&["tune", "sqlite", "app.db", "--profile", "p.toml", "--sql", "work.sql", "--report", "r"][..], &skipped]
            .concat();
    let document = place.run(&[&arguments[..], &["-o", "json"]].concat()).expect(0).document();
    assert_eq!(
        (document["schema"].as_str(), document["file"].as_str()),
        (Some("flashwise.comparison"), Some("app.db"))
    );
    assert_eq!(document["target"], "sim:samsung-960-evo", "the drive that the profile is of");
    let journal = &document["proposals"][0];
    assert_eq!((journal["name"].as_str(), journal["new_value"].as_str()), (Some("journal_mode"), Some("wal")));
    assert!(document["gain"]["low"].as_f64().unwrap() > 1.01 && document["changed"].is_null());
    std::fs::remove_dir_all(place.path("r")).unwrap();
    assert!(place.names() == before && std::fs::read(place.path("app.db")).unwrap() == bytes, "nothing has changed");

    let text = place.run(&[&arguments[..], &["--apply"]].concat()).expect(0).stdout;
    assert!(text.contains("app.db: changed."), "{text}");
    let db = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    drop(db);
    place.fails(2, &["tune", "sqlite", "app.db", "--profile", "p.toml", "--skip", "journal"]);
    place.fails(1, &["tune", "sqlite", "p.toml", "--profile", "p.toml"]);
}
