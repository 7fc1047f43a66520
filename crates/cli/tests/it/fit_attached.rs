//! `fit sqlite --attached`: what is recommended, on the simulated drive attached to this machine.

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
