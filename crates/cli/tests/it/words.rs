//! What people read: help, and the line that a failure gets.

use crate::support;
use support::Place;

#[test]
fn each_verb_has_a_help_page() {
    let place = Place::new();
    for verb in [
        &[][..],
        &["fit"],
        &["fit", "sqlite"],
        &["learn"],
        &["audit"],
        &["simulate"],
        &["sweep"],
        &["pool"],
        &["sqlite"],
        &["sqlite", "import"],
        &["device"],
        &["device", "import"],
        &["device", "stat"],
        &["attach", "cut"],
        &["attach", "fault"],
        &["tune"],
        &["tune", "postgres"],
        &["tune", "mariadb"],
        &["trace"],
        &["trace", "info"],
        &["trace", "convert"],
        &["trace", "generate"],
        &["trace", "replay"],
        &["generate"],
    ] {
        let help = place.run(&[verb, &["--help"]].concat()).expect(0);
        assert_eq!(help.stderr, "");
        insta::assert_snapshot!([&["help"], verb].concat().join("_"), help.stdout);
    }
}

#[test]
fn without_a_verb_the_menu_is_shown_and_the_exit_code_says_that_nothing_was_done() {
    let place = Place::new();
    for (arguments, entry) in [
        (&[][..], "fit "),
        (&["fit"], "sqlite "),
        (&["sqlite"], "export "),
        (&["device"], "list "),
        (&["generate"], "man "),
    ] {
        let ended = place.run(arguments).expect(2);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains("Usage: flashwise") && ended.stderr.contains(entry), "{}", ended.stderr);
        let document = place.run(&[arguments, &["-o", "json"]].concat()).expect(2).document();
        assert!(document["error"]["message"].as_str().unwrap().contains("requires a subcommand"), "{document}");
    }
}

#[test]
fn a_mistake_on_the_command_line_gets_one_line_with_the_way_out() {
    let place = Place::with_profile();
    place.write("README.md", "# Read me\n");
    place.write("broken.toml", "name = \"x\"\nflash = [\n");
    place.write("bad.sql", "SELECT 1;\nSELECT * FROM nowhere;\n");
    place.write("empty.sql", "-- nothing yet\n");
    place.database("a.db");
    let mistakes: [(i32, &[&str]); 34] = [
        (2, &["lern"]),
        (2, &["learn", "--fast"]),
        (2, &["learn", "one", "two"]),
        (2, &["learn", "nosuchdir"]),
        (2, &["learn", ""]),
        (2, &["learn", "samsung-960-evo"]),
        (2, &["learn", "sim:samsung"]),
        (1, &["learn", "sim:missing.toml"]),
        (1, &["learn", "sim:broken.toml"]),
        (5, &["learn", "README.md"]),
        (2, &["learn", "--max-write", "4KB"]),
        (2, &["learn", "--max-write", "much"]),
        (1, &["learn", "--max-write", "1m"]),
        (5, &["learn", "--profile", "README.md"]),
        (5, &["learn", "--html", "README.md"]),
        (1, &["learn", "--profile", "missing/p.toml"]),
        (1, &["learn", "--profile", "."]),
        (2, &["fit", "mysql"]),
        (2, &["fit", "sqlite", "--workload-size", "huge"]),
        (2, &["fit", "sqlite", "--rows", "many"]),
        (2, &["fit", "sqlite", "--rounds", "0"]),
        (2, &["fit", "sqlite", "--page-cache", "9t"]),
        (2, &["fit", "sqlite", "--db", "a.db"]),
        (2, &["fit", "sqlite", "--db", "a.db", "--sql", "bad.sql", "--rows", "5"]),
        (1, &["fit", "sqlite", "--db", "a.db", "--sql", "missing.sql"]),
        (1, &["fit", "sqlite", "--db", "a.db", "--sql", "empty.sql"]),
        (1, &["fit", "sqlite", "--db", "README.md", "--sql", "bad.sql"]),
        (1, &["fit", "sqlite", "--db", "a.db", "--sql", "bad.sql", "--profile", "p.toml"]),
        (1, &["fit", "sqlite", "--save-database", "missing/a.db"]),
        (5, &["fit", "sqlite", "--save-trace", "a.db"]),
        (2, &["audit", "trace.csv"]),
        (2, &["device", "show", "x"]),
        (1, &["sqlite", "info", "README.md"]),
        (5, &["sqlite", "export", "README.md", "a.db"]),
    ];
    let lines = mistakes.map(|(code, arguments)| {
        let line = place.fails(code, arguments);
        format!("$ flashwise {}\n{line}\nexit code {code}\n", arguments.join(" "))
    });
    insta::assert_snapshot!("mistakes", lines.join("\n"));
}

#[test]
fn json_is_recognised_in_every_spelling_even_where_the_rest_does_not_parse() {
    let place = Place::new();
    for spelling in [&["-o", "json"][..], &["-ojson"], &["-o=json"], &["--output", "json"], &["--output=json"]] {
        let ended = place.run(&[spelling, &["lern"]].concat()).expect(2);
        assert_eq!(ended.document()["error"]["exit_code"], 2);
        assert_eq!(
            place.run(&[spelling, &["device", "list"]].concat()).expect(0).document()["schema"],
            "flashwise.devices"
        );
    }
    let text = place.run(&["lern", "-o", "text"]).expect(2);
    assert_eq!(text.stdout, "");
}

#[test]
fn help_and_version_are_no_failures() {
    let place = Place::new();
    let version = place.run(&["--version"]).expect(0);
    assert_eq!(version.stdout, format!("flashwise {}\n", env!("CARGO_PKG_VERSION")));
    let help = place.run(&["help", "learn"]).expect(0);
    assert!(help.stdout.contains("Usage: flashwise learn"), "{}", help.stdout);
}
