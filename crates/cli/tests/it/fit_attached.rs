//! `fit --attached`: what is recommended, on the simulated drive attached to this machine.

use crate::mounted::turn;
use crate::support::Place;

const ROWS: &str = "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT);
    WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
    INSERT INTO t SELECT x, 'value ' || x FROM n";

/// A place with a database of small pages, and a file of commits.
fn place() -> Place {
    let place = Place::with_profile();
    rusqlite::Connection::open(place.path("app.db")).unwrap().execute_batch(ROWS).unwrap();
    let commits: String =
        (0..40).map(|n| format!("UPDATE t SET v = 'value {n}' WHERE k = {};\n", 1 + n * 17)).collect();
    place.write("app.sql", &commits);
    place
}

/// A fit whose gain is that of a log.
fn fit(more: &[&'static str]) -> Vec<&'static str> {
    let words = ["fit", "sqlite", "app.db", "--sql", "app.sql", "--profile", "p.toml", "--time-budget", "2s"];
    let skipped = ["page_size", "cache_size", "log-sync"].into_iter().flat_map(|name| ["--skip", name]);
    words.into_iter().chain(skipped).chain(more.iter().copied()).collect()
}

#[test]
fn a_gain_that_a_client_sees_on_the_attached_drive_too_is_applied() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let document = place.run(&fit(&["--attached", "--apply", "-o", "json"])).expect(0).document();
    let ratio = |gain: &serde_json::Value| gain["ratio"].as_f64().unwrap();
    let seen = &document["seen"];
    assert_eq!((seen["file_system"].as_str(), seen["slower"].as_u64()), (Some("ext4"), Some(20)));
    let of_best = seen["gains"].as_array().unwrap().iter().find(|gain| gain["from"] == "default").unwrap();
    assert_eq!(of_best["to"], "best");
    // A machine that is busy with other tests answers late now and then: far apart, but not opposite.
    let [promised, seen] = [ratio(&document["gain"]), ratio(of_best)];
    assert!(promised > 1.2 && (0.5..2.0).contains(&(seen / promised)), "promised {promised}, seen {seen}");
    assert_eq!(document["changed"]["in_place"], true);
    assert!(place.read("flashwise-report/report.html").contains("een on the attached drive (ext4, 20 times as slow"));
}

#[test]
fn what_cannot_be_attached_is_refused_before_anything_is_measured() {
    let place = place();
    std::fs::create_dir(place.path("here")).unwrap();
    for (more, why) in [
        (&["--attached", "--on", "here"][..], "the target is no simulated drive"),
        (&["--attached", "--on", "sim:gp3"], "the target is a volume"),
        (&["--attached", "--file-system", "none"], "the bare drive has no file system to mount"),
        (&["--attached", "--objective", "p99"], "only throughput is measured there"),
    ] {
        let error = place.fails(2, &fit(more));
        assert!(error.contains("--attached: ") && error.contains(why), "{error}");
    }
}

/// A measurement of a server's settings, as short as possible.
const SHORTEST: [&str; 6] = ["--measure", "--rounds", "5", "--round-time", "1s", "--clients=2"];

#[test]
#[ignore = "half a minute: make test-full runs it"]
fn settings_of_a_server_are_measured_on_the_attached_drive() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    if flashwise_tune::postgres::PrivatePostgres::new(None, None).is_err() {
        println!("skipped: no PostgreSQL server is installed");
        return;
    }
    let place = Place::new();
    place.write("load.sql", "CREATE TABLE t AS SELECT n AS k, 0 AS v FROM generate_series(1, 1000) n");
    place.write("work.sql", "\\set k random(1, 1000)\nUPDATE t SET v = v + 1 WHERE k = :k;\n");
    let fit = ["fit", "postgres", "--for-version", "15", "--on", "sim:samsung-960-evo", "--load", "load.sql"];
    let more = ["--sql", "work.sql", "--attached", "-o", "json"];
    let document = place.run(&[&fit[..], &SHORTEST, &more].concat()).expect(0).document();
    let measured = &document["measured"];
    assert_eq!(
        (measured["attached"]["file_system"].as_str(), measured["attached"]["slower"].as_u64()),
        (Some("ext4"), Some(1))
    );
    // A commit waits for a flush, which takes the drive 0.74 ms: on this machine's own disk these are not its rates.
    let per_s = |side: &str| measured[side]["per_s"].as_f64().unwrap();
    assert!((1.0..3_000.0).contains(&per_s("before")) && per_s("after") > 1.0, "{measured}");
    // A commit writes a page of the log at least.
    for side in ["before", "after"] {
        let of = |bytes: &str| measured["attached"][side][bytes].as_u64().unwrap();
        assert!(of("host_bytes") >= 4096 && of("flash_bytes") >= of("host_bytes") / 2, "{measured}");
    }
    assert!(
        document["notes"].to_string().contains("attached to this machine, at its own speed"),
        "{}",
        document["notes"]
    );
    let directory = measured["directory"].as_str().unwrap();
    assert!(!std::path::Path::new(directory).exists(), "{directory} is still there");
}

#[test]
fn a_server_is_attached_only_to_a_simulated_drive_that_is_named() {
    let place = Place::with_profile();
    std::fs::create_dir(place.path("here")).unwrap();
    for database in ["postgres", "mariadb"] {
        for (drive, why) in [
            (&["--on", "here"][..], "the target is no simulated drive: name its --directory"),
            (&["--on", "sim:gp3"], "the target is a volume"),
            (&["--profile", "p.toml"], "name the drive with --on sim:DRIVE"),
            (&["--on", "sim:samsung-960-evo", "--directory", "here"], "cannot be used with"),
        ] {
            let error = place.fails(2, &[&["fit", database, "--measure", "--attached"], drive].concat());
            assert!(error.contains("--attached") && error.contains(why), "{database}: {error}");
        }
    }
}
