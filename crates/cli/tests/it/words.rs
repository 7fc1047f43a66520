//! What people read: help, and the line that a failure gets.

use std::path::Path;

use crate::support;
use support::Place;

/// The words of each command with its help page: the program's own, and those of all commands below it.
fn help_pages(place: &Place) -> Vec<(Vec<String>, String)> {
    let mut pages = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(words) = waiting.pop() {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let ended = place.run(&arguments).expect(0);
        assert_eq!(ended.stderr, "");
        let (_, listed) = ended.stdout.split_once("\nCommands:\n").unwrap_or_default();
        let listed = listed.lines().take_while(|line| !line.is_empty());
        let names = listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
        waiting.extend(names.filter(|name| *name != "help").map(|name| [&words[..], &[name.to_owned()]].concat()));
        pages.push((words, ended.stdout));
    }
    pages
}

#[test]
fn each_verb_has_a_help_page() {
    let place = Place::new();
    let pages = help_pages(&place);
    assert!(pages.len() > 30, "{} pages", pages.len());
    for (words, page) in pages {
        insta::assert_snapshot!([&["help".to_owned()], &words[..]].concat().join("_"), page);
    }
}

#[test]
fn without_arguments_a_short_screen_says_what_to_start_with() {
    let screen = Place::new().run(&[]).expect(0);
    assert_eq!(screen.stderr, "");
    insta::assert_snapshot!("start", screen.stdout);
}

/// Phrases of an earlier private dialect that have no place in plain technical English.
const DIALECT: &[&str] = &[
    "is told",
    "told as",
    "says so",
    "what collects",
    "spare room",
    "fast cells",
    "cells that are fast",
    "held against",
    "mended",
    "in turns",
    "by turns",
    "as it comes",
    "nobody asks",
    "there is none",
];

/// Whether a text has a phrase, not as a part of longer words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_letter = |found: Option<char>| found.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + phrase.len()..].chars().next())
    })
}

/// The dialect's phrases in a text; a text that was wrapped is joined first.
fn dialect(name: &str, text: &str) -> Vec<String> {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let found = DIALECT.iter().filter(|phrase| has_phrase(&joined, phrase));
    found.map(|phrase| format!("{name}: \"{phrase}\"")).collect()
}

#[test]
fn a_phrase_is_found_across_lines_and_not_within_words() {
    assert_eq!(dialect("page", "the drive\nis\ntold so, and mended."), ["page: \"is told\"", "page: \"mended\""]);
    assert!(dialect("page", "recommended settings").is_empty());
}

#[test]
fn help_snapshots_and_documents_are_in_plain_english() {
    let place = Place::new();
    let mut found = dialect("flashwise", &place.run(&[]).expect(0).stdout);
    found.extend(help_pages(&place).iter().flat_map(|(words, page)| dialect(&words.join(" "), page)));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in ["cli/tests/it/snapshots", "report/src/terminal/snapshots"] {
        for entry in std::fs::read_dir(crates.join(folder)).unwrap().map(Result::unwrap) {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            found.extend(dialect(&entry.file_name().to_string_lossy(), &text));
        }
    }
    for (name, text) in crate::documents::texts() {
        found.extend(dialect(&name, &text));
    }
    assert!(found.is_empty(), "not plain English:\n{}", found.join("\n"));
}

#[test]
fn a_command_that_lacks_a_subcommand_shows_its_menu_and_fails() {
    let place = Place::new();
    for (arguments, entry) in
        [(&["fit"][..], "sqlite "), (&["sqlite"], "export "), (&["device"], "list "), (&["generate"], "man ")]
    {
        let ended = place.run(arguments).expect(2);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains("Usage: flashwise") && ended.stderr.contains(entry), "{}", ended.stderr);
        let document = place.run(&[arguments, &["-o", "json"]].concat()).expect(2).document();
        assert!(document["error"]["message"].as_str().unwrap().contains("requires a subcommand"), "{document}");
    }
    let document = place.run(&["-o", "json"]).expect(2).document();
    assert!(document["error"]["message"].as_str().unwrap().contains("requires a subcommand"), "{document}");
}

#[test]
fn an_unknown_name_gets_the_name_that_was_probably_meant() {
    let place = Place::with_profile();
    place.database("a.db");
    place.write("t.csv", "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n");
    place.write("drive.toml", "nam = \"x\"\n");
    place.write("work.toml", "name = \"x\"\nsed = 1\n");
    place.write("grid.toml", "name = \"x\"\ndevise = \"micron-m500\"\n");
    for (code, arguments, meant) in [
        (2, &["lern"][..], "'learn'"),
        (2, &["learn", "--profil", "p.toml"], "'--profile'"),
        (2, &["learn", "sim:samsung"], "did you mean 'samsung-960-evo'?"),
        (2, &["device", "show", "micron-500"], "did you mean 'micron-m500'?"),
        (2, &["study", "maria-db"], "did you mean 'mariadb'?"),
        (2, &["pool", "t.csv", "--policy", "s4-fifo", "--frames", "5"], "did you mean 's3-fifo'?"),
        (2, &["trace", "info", "t.csv", "--trace-format", "mqsm"], "'mqsim'"),
        (2, &["trace", "generate", "ycsb-z", "out.csv"], "did you mean 'ycsb-a'?"),
        (
            2,
            &["audit", "t.csv", "--profile", "p.toml", "--fail-on", "sync-less,5ms"],
            "did you mean 'sync-less-often'?",
        ),
        (2, &["tune", "sqlite", "a.db", "--profile", "p.toml", "--skip", "journal"], "did you mean 'journal_mode'?"),
        (2, &["fit", "postgres", "--profile", "p.toml", "--skip", "fill_factor"], "did you mean 'fillfactor'?"),
        (2, &["fit", "mariadb", "--profile", "p.toml", "--skip", "io_capacity"], "did you mean 'innodb_io_capacity"),
        (1, &["sqlite", "import", "a.db", "b.db", "--techniques", "hot=on"], "did you mean 'use-hot-locations'?"),
        (2, &["learn", "/dev/null", "--destructive", "--allow-signature", "btrf"], "did you mean 'btrfs'?"),
        (1, &["device", "check", "drive.toml"], "did you mean `name`?"),
        (1, &["simulate", "micron-m500", "work.toml"], "did you mean `seed`?"),
        (1, &["sweep", "grid.toml"], "did you mean `device`?"),
    ] {
        let line = place.fails(code, arguments);
        assert!(line.contains(meant), "{arguments:?}: {line}");
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
    let mistakes: [(i32, &[&str]); 46] = [
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
        (2, &["learn", ".", "--file-system", "xfs"]),
        (2, &["fit", "mysql"]),
        (2, &["fit", "sqlite3"]),
        (2, &["fit", "postgres", "--apply"]),
        (2, &["fit", "postgres", "--profile", "p.toml", "--on", "."]),
        (2, &["fit", "mariadb", "/run/a.sock", "--dsn", "mysql://b", "--profile", "p.toml"]),
        (2, &["fit", "sqlite", "--workload-size", "huge"]),
        (2, &["fit", "sqlite", "--rows", "many"]),
        (2, &["fit", "sqlite", "--rounds", "0"]),
        (2, &["fit", "sqlite", "--page-cache", "9t"]),
        (2, &["fit", "sqlite", "--page-cache", "2000"]),
        (2, &["fit", "sqlite", "--page-cache-limit", "64"]),
        (2, &["fit", "sqlite", "--sql", "bad.sql"]),
        (2, &["fit", "sqlite", "--apply"]),
        (2, &["fit", "sqlite", "--objective", "speed"]),
        (2, &["fit", "sqlite", "a.db", "--db", "a.db"]),
        (2, &["fit", "sqlite", "sim:micron-m500"]),
        (2, &["fit", "sqlite", "."]),
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
    let short = place.run(&["-V"]).expect(0);
    assert_eq!(short.stdout, format!("flashwise {}\n", env!("CARGO_PKG_VERSION")));
    assert!(place.run(&["--version"]).expect(0).stdout.starts_with(&short.stdout));
    let help = place.run(&["help", "learn"]).expect(0);
    assert!(help.stdout.contains("Usage: flashwise learn"), "{}", help.stdout);
}
