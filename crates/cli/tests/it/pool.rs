//! `flashwise pool`.

use crate::support;
use std::fmt::Write;

use support::Place;

/// Thirty pages in a round, every third access a write, and page 1 again and again.
fn with_trace() -> Place {
    let place = Place::new();
    let mut text = String::new();
    for access in 0..2_000_u32 {
        let page = if access % 4 == 0 { 1 } else { access * 7 % 40 };
        writeln!(text, "{} {page}", if access % 3 == 0 { "W" } else { "R" }).unwrap();
    }
    place.write("round.pages", &text);
    place
}

#[test]
fn each_policy_and_size_has_its_counts() {
    let place = with_trace();
    let arguments = ["pool", "round.pages", "--policy", "lru,arc", "--frames", "10,29,100", "-o", "json"];
    let document = place.run(&arguments).expect(0).document();
    assert_eq!((&document["schema"], &document["schema_version"]), (&"flashwise.pool".into(), &1.into()));
    assert_eq!((&document["accesses"], &document["pages"]), (&2_000.into(), &30.into()));
    assert!(document["accesses_per_s"].as_f64().unwrap() > 0.0);
    let results = document["results"].as_array().unwrap();
    let cells: Vec<_> =
        results.iter().map(|result| (result["policy"].as_str().unwrap(), result["frames"].as_u64())).collect();
    let sizes = [10, 29, 100].map(Some);
    assert_eq!(cells, [sizes.map(|frames| ("lru", frames)), sizes.map(|frames| ("arc", frames))].concat());
    for result in results {
        let of = |field: &str| result[field].as_u64().unwrap_or_else(|| panic!("{field}: {result}"));
        assert_eq!((of("accesses"), &result["ace"]), (2_000, &false.into()));
        assert_eq!(of("dirty_evictions"), of("write_back_operations"));
        assert_eq!(of("pages_written"), of("write_back_operations"));
        assert_eq!(of("evictions"), of("misses") - of("frames").min(30), "whatever came in beyond the frames went out");
        assert!(of("dirty_evictions") <= of("evictions") && result["accesses_per_s"].as_f64().unwrap() > 0.0);
    }
    assert_eq!((&results[2]["misses"], &results[2]["evictions"]), (&30.into(), &0.into()), "all pages fit");
}

#[test]
fn ace_writes_several_pages_at_once_and_stands_beside_the_classic_way_where_it_is_asked_for() {
    let place = with_trace();
    let run = |more: &[&str]| {
        let arguments = ["pool", "round.pages", "--policy", "lru", "--frames", "20", "-o", "json"];
        place.run(&[&arguments, more].concat()).expect(0).document()["results"].as_array().unwrap().clone()
    };
    let ace = run(&["--ace", "--write-back-batch", "4"]);
    assert_eq!((ace.len(), &ace[0]["ace"], &ace[0]["variant"]), (1, &true.into(), &"COW-X(4)".into()));
    let both = run(&["--compare", "--write-back-batch", "4", "--alpha", "3", "--kr", "8", "--kw", "4"]);
    assert_eq!((both.len(), &both[0]["ace"], &both[1]["misses"]), (2, &false.into(), &ace[0]["misses"]));
    let operations = |result: &serde_json::Value| result["write_back_operations"].as_u64().unwrap();
    assert!(operations(&both[1]) * 2 < operations(&both[0]), "{both:?}");
    let cost = |result: &serde_json::Value| result["model_cost"]["total_reads"].as_f64().unwrap();
    assert!(cost(&both[1]) < cost(&both[0]));
    let text =
        place.run(&["pool", "round.pages", "--policy", "lru,2q", "--frames", "20", "--compare"]).expect(0).stdout;
    insta::assert_snapshot!("pool", text);
    let arguments = ["pool", "round.pages", "--policy", "lru,2q", "--frames", "20", "--compare", "-o", "json"];
    let best = place.run(&arguments).expect(0).document()["best"].as_array().unwrap().clone();
    let by = |measure: &str| best.iter().find(|best| best["by"] == measure).unwrap();
    let misses = by("misses");
    assert_eq!((&misses["policy"], &misses["frames"], &misses["value"]), (&"2q".into(), &20.into(), &822.0.into()));
    assert_eq!((&by("pages_written")["is_shared"], &misses["is_shared"]), (&true.into(), &false.into()));
}

#[test]
fn on_a_simulated_drive_ace_takes_less_time_and_the_same_each_time() {
    // More pages than the drive's own buffer holds: what never reaches the flash costs nothing either way.
    let place = Place::new();
    let mut draw = 1_u32;
    let mut next = |below: u32| {
        draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (draw >> 8) % below
    };
    let text: String = (0..20_000).fold(String::new(), |mut text, _| {
        let page = if next(10) < 9 { next(400) } else { 400 + next(3_600) };
        writeln!(text, "{} {page}", if next(2) == 0 { "R" } else { "W" }).unwrap();
        text
    });
    place.write("skewed.pages", &text);
    let run = || {
        let arguments = ["pool", "skewed.pages", "--policy", "lru", "--frames", "240", "--compare", "-o", "json"];
        let drive = ["--drive", "sim:toshiba-xg5"];
        let document = place.run(&[&arguments[..], &drive].concat()).expect(0).document();
        [0, 1].map(|index| document["results"][index]["drive_cost"].clone())
    };
    let costs = run();
    assert_eq!(costs, run());
    let elapsed = |cost: &serde_json::Value| cost["elapsed_ns"].as_u64().unwrap();
    assert!(elapsed(&costs[1]) < elapsed(&costs[0]), "{costs:?}");
    assert_eq!(
        elapsed(&costs[0]),
        costs[0]["read_ns"].as_u64().unwrap() + costs[0]["write_ns"].as_u64().unwrap(),
        "the pool waits for everything"
    );
}

#[test]
fn what_makes_no_sense_is_told_in_a_line() {
    let place = with_trace();
    let mistakes: [(&[&str], i32, &str); 6] = [
        (
            &["--policy", "mru", "--frames", "9"],
            2,
            "unknown policy 'mru': did you mean 'lru'? Choose one of lru, fifo, nru",
        ),
        (&["--policy", "lru"], 2, "--frames"),
        (&["--policy", "clock:bit=2", "--frames", "9"], 2, "clock: bit = 2: must be a whole number from 0 to 1"),
        (&["--policy", "lru:k=2", "--frames", "9"], 2, "lru: unknown parameter 'k': it has none"),
        (&["--frames", "0"], 2, "0 is not in 1.."),
        (&["--frames", "9", "--alpha", "0", "--kr", "1", "--kw", "1"], 2, "--alpha must be a number above 0"),
    ];
    for (arguments, code, message) in mistakes {
        let ended = place.run(&[&["pool", "round.pages"], arguments].concat()).expect(code);
        assert!(ended.stderr.contains(message) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    }
}

#[test]
fn the_page_has_a_line_a_policy_over_the_sizes_and_bars_where_there_is_one_size() {
    let place = with_trace();
    let page = |frames: &str| {
        let arguments = ["pool", "round.pages", "--policy", "lru,arc", "--compare", "--html", "page.html", "--frames"];
        place.run(&[&arguments[..], &[frames]].concat()).expect(0);
        place.read("page.html")
    };
    let lines = page("10,20,29");
    for words in ["Misses", "Pages written back", "arc, COW-X(8)", "lru, 20 frames: ", "<polyline", "All pools"] {
        assert!(lines.contains(words), "{words} is not on the page");
    }
    assert!(lines.contains("series s1 dashed") && lines.contains("series s1\""), "ACE differs from the classic way");
    assert!(!lines.contains("Modelled cost"), "nobody asked for costs");
    let bars = page("10");
    assert!(!bars.contains("<polyline") && bars.contains("<rect"), "one size has no line");
    assert_eq!(place.run(&["pool", "round.pages", "--frames", "9", "--html", "round.pages"]).expect(5).stdout, "");
}

#[test]
fn many_traces_have_one_summary_and_a_file_that_is_none_is_left_out() {
    let place = with_trace();
    std::fs::create_dir(place.path("traces")).unwrap();
    let skewed = |modulus: u64| {
        (0..3_000_u64).fold(String::new(), |text, access| text + &format!("R {}\n", access * access % modulus % 60))
    };
    for (name, modulus) in [("a.pages", 97), ("b.pages", 89), ("c.pages", 83)] {
        place.write(&format!("traces/{name}"), &skewed(modulus));
    }
    place.write("traces/readme.txt", "no trace");
    let arguments = ["pool", "--traces", "traces", "--policy", "lru,arc", "--pool-share", "10%,50%"];
    let ended = place.run(&arguments).expect(0);
    assert!(ended.stderr.contains("readme.txt is left out: "), "{}", ended.stderr);
    insta::assert_snapshot!("pool_traces", ended.stdout);
    let document = place.run(&[&arguments[..], &["-o", "json"]].concat()).expect(0).document();
    assert_eq!((&document["schema"], &document["baseline"]), (&"flashwise.pool-traces".into(), &"lru".into()));
    assert_eq!(document["traces"].as_array().unwrap().len(), 3);
    let summary = document["summary"].as_array().unwrap();
    let alone: Vec<u64> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            let file = format!("traces/{name}.pages");
            let one = ["pool", &file, "--policy", "lru", "--pool-share", "10%", "-o", "json"];
            place.run(&one).expect(0).document()["results"][0]["misses"].as_u64().unwrap()
        })
        .collect();
    let together: Vec<u64> = document["traces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trace| trace["results"][0]["misses"].as_u64().unwrap())
        .collect();
    assert_eq!(alone, together, "each trace is run as it would be alone");
    assert!(summary.iter().all(|summary| summary["traces"] == 3 && summary["misses"]["mean"].as_f64().unwrap() > 0.0));
    place.fails(2, &["pool", "--traces", "traces", "--policy", "lru"]);
    place.fails(2, &["pool", "round.pages", "--traces", "traces", "--frames", "5"]);
}
