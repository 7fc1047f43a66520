//! Control characters of foreign text are shown and do nothing: in a pipe, on a terminal, in files for people.

use crate::support;
use support::Place;

/// Sets a terminal's title, rings, clears the screen in eight bits, and turns the direction of writing.
const FOREIGN: &str = "x\u{1b}]0;pwn\u{7}\u{9b}2J\u{202e}y";
const SHOWN: &str = "x\\u{1b}]0;pwn\\u{7}\\u{9b}2J\\u{202e}y";
/// The same for a file of TOML.
const IN_TOML: &str = "x\\u001b]0;pwn\\u0007\\u009b2J\\u202ey";

fn is_harmless(text: &str) -> bool {
    !text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}'])
}

/// A configuration or profile with that name.
fn renamed(toml: &str) -> String {
    let line = |line: &str| match line.starts_with("name = ") {
        true => format!("name = \"{IN_TOML}\"\n"),
        false => format!("{line}\n"),
    };
    toml.lines().map(line).collect()
}

/// A drive of that name.
fn drive(place: &Place) {
    let preset = place.run(&["device", "show", "samsung-960-evo"]).expect(0).stdout;
    place.write("dev.toml", &renamed(&preset));
}

#[test]
fn names_of_drives_and_profiles_are_shown_escaped() {
    let place = Place::with_profile();
    drive(&place);
    place.write("pe.toml", &renamed(&place.read("p.toml")));
    for arguments in [
        &["device", "check", "dev.toml"][..],
        &["simulate", "dev.toml", "--rw", "read", "--requests", "10"],
        &["fit", "postgres", "--profile", "pe.toml"],
        &["fit", "mariadb", "--profile", "pe.toml"],
        &["learn", "--resume", "pe.toml"],
    ] {
        for output in ["text", "json"] {
            let ended = place.run(&[arguments, &["-o", output]].concat());
            assert!(is_harmless(&ended.stdout) && is_harmless(&ended.stderr), "{arguments:?}: {:?}", ended.stdout);
            let shown = ended.stdout.contains(SHOWN) || ended.stderr.contains(SHOWN);
            assert!(shown || output == "json", "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        }
    }
    place.run(&["simulate", "dev.toml", "--rw", "read", "--requests", "10", "--html", "s.html"]).expect(0);
    place.run(&["fit", "postgres", "--profile", "pe.toml", "--sql-out", "s.sql"]);
    place.run(&["fit", "mariadb", "--profile", "pe.toml", "--cnf-out", "s.cnf"]);
    for file in ["s.html", "s.sql", "s.cnf"] {
        assert!(is_harmless(&place.read(file)), "{file}");
    }
}

#[test]
fn errors_name_files_sql_and_configurations_escaped() {
    let place = Place::with_profile();
    place.database("q.db");
    place.write("e.sql", &format!("SELECT * FROM \"{FOREIGN}\";\n"));
    let line = place.fails(1, &["fit", "sqlite", "--db", "q.db", "--sql", "e.sql", "--profile", "p.toml"]);
    assert!(is_harmless(&line) && line.contains(SHOWN), "{line:?}");
    let line = place.fails(1, &["device", "check", &format!("{FOREIGN}.toml")]);
    assert!(is_harmless(&line) && line.contains(SHOWN), "{line:?}");
    let line = place.fails(2, &["learn", FOREIGN]);
    assert!(is_harmless(&line) && line.contains(SHOWN), "{line:?}");
}

#[test]
fn an_error_that_quotes_megabytes_stays_a_line() {
    let place = Place::with_profile();
    place.database("app.db");
    place.write("long.sql", &format!("SELECT 1;\n{}", "[".repeat(2 << 20)));
    let line = place.fails(1, &["audit", "--db", "app.db", "--sql", "long.sql", "--profile", "p.toml"]);
    assert!(line.contains("long.sql, statement 2, line 2: unrecognized token") && line.len() < 3000, "{}", line.len());
}

#[test]
fn a_line_end_in_a_foreign_value_makes_no_line_of_its_own_in_a_file() {
    let place = Place::new();
    let device = "<Execution_Parameter_Set><Host_Parameter_Set/><Device_Parameter_Set><Dynamic_Wearleveling_Enabled>a\n\
                  capacity_bytes = 1\n\u{7f}</Dynamic_Wearleveling_Enabled><Flash_Parameter_Set/></Device_Parameter_Set>\
                  </Execution_Parameter_Set>";
    place.write("ssd.xml", device);
    let ended = place.run(&["device", "import", "--mqsim", "ssd.xml", "--directory", "o"]).expect(0);
    assert!(!ended.stdout.contains('\u{7f}'), "{:?}", ended.stdout);
    let written = place.read("o/device.toml");
    assert!(!written.lines().any(|line| line == "capacity_bytes = 1") && !written.contains('\u{7f}'), "{written}");
    place.run(&["device", "check", "o/device.toml"]).expect(0);
}
