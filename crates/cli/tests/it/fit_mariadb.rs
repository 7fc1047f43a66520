//! `flashwise fit mariadb` as a user runs it: proposals, the option file, mistakes, a real server.

use crate::support;
use flashwise_block::Silent;
use flashwise_tune::TuneError;
use flashwise_tune::mariadb::{MariadbAddress, PrivateMariadb};
use support::Place;

const PLAN: [&str; 4] = ["fit", "mariadb", "--profile", "p.toml"];

#[test]
fn settings_follow_from_the_profile_alone_and_go_into_an_option_file() {
    let place = Place::with_profile();
    let document = place.run(&[&PLAN[..], &["-o", "json"]].concat()).expect(0).document();
    assert_eq!(document["schema"], "flashwise.tuning-mariadb");
    assert_eq!((document["program"].as_str(), document["server"].is_null()), (Some("MariaDB 10.11"), true));
    let proposals = document["proposals"].as_array().unwrap();
    let neighbors = proposals.iter().find(|p| p["name"] == "innodb_flush_neighbors").unwrap();
    assert_eq!(
        (neighbors["new_value"].as_str(), neighbors["undo"].as_str()),
        (Some("0"), Some("SET GLOBAL innodb_flush_neighbors = 1;"))
    );
    let evidence = &neighbors["evidence"][0];
    assert!(evidence["low"].as_f64() <= evidence["value"].as_f64() && evidence["value"].as_f64().unwrap() > 1_000.0);
    // The profile is of a drive that nobody has filled: what it takes in the steady state is not known.
    let left = document["left_alone"].as_array().unwrap();
    let capacity = left.iter().find(|left| left["name"] == "innodb_io_capacity").unwrap();
    assert_eq!(capacity["verdict"], "cannot-tell");
    assert!(document["measured"].is_null() && document["applied"].is_null());

    let text = place.run(&[&PLAN[..], &["--cnf-out", "drive.cnf"]].concat()).expect(0).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("documented defaults of MariaDB 10.11") && words.contains("Lines for an option file"),
        "{text}"
    );
    let file = place.read("drive.cnf");
    let lines: Vec<&str> = file.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(lines[..2], ["[mariadbd]", "innodb_flush_neighbors = 0"]);
    place.fails(5, &[&PLAN[..], &["--cnf-out", "drive.cnf"]].concat());
}

#[test]
fn mistakes_get_one_line_with_the_way_out() {
    let place = Place::with_profile();
    let lines = [
        (2, &["--apply"][..], "CONNECTION"),
        (2, &["--skip", "neighbors"], "innodb_flush_neighbors"),
        (2, &["--dsn", "nonsense"], "--dsn"),
        (1, &["--socket", "/no/such/socket"], "/no/such/socket"),
        (2, &["--user", "me"], "--socket"),
        (2, &["mysql://localhost", "--user", "me"], "mysql://me@HOST:PORT"),
        (2, &["--dsn", "mysql://localhost", "--user", "me"], "mysql://me@HOST:PORT"),
        (2, &["--rounds", "7"], "--measure"),
        (2, &["--measure", "--rounds", "3"], "--rounds 3"),
        (2, &["--measure", "--load", "p.toml"], "give yours with --sql"),
        (1, &["--measure", "--sql", "nowhere.sql"], "nowhere.sql: No such file"),
        (2, &["--sql", "p.toml"], "--measure"),
        (2, &["--measure", "--directory", "nowhere"], "no such directory"),
        (1, &["--measure", "--programs", "nowhere"], "mariadb-server-core"),
    ];
    for (code, arguments, words) in lines {
        let line = place.fails(code, &[&PLAN[..], arguments].concat());
        assert!(line.contains(words), "{arguments:?}: {line}");
    }
}

#[test]
fn a_server_is_changed_only_where_that_is_asked_for_and_reads_the_option_file() {
    let mut server = match PrivateMariadb::new(None, None) {
        Ok(server) => server,
        Err(TuneError::Missing(why)) => return eprintln!("{why}: not tested"),
        Err(error) => panic!("{error}"),
    };
    server.create("one", &mut Silent).unwrap();
    server.start("one", &[], &mut Silent).unwrap();
    let MariadbAddress::Socket { path, .. } = server.place() else { panic!("a private server has a socket") };
    let place = Place::with_profile();
    let plan = [&PLAN[..], &["--socket", path.to_str().unwrap(), "-o", "json"]].concat();
    let asked = |more: &[&str]| place.run(&[&plan[..], more].concat()).expect(0).document();
    let old = |document: &serde_json::Value| {
        let proposals = document["proposals"].as_array().unwrap();
        proposals.iter().any(|proposal| proposal["name"] == "innodb_flush_neighbors")
    };
    let only_read = asked(&[]);
    assert!(old(&only_read) && only_read["program"].as_str().unwrap().starts_with("MariaDB 1"));
    assert!(old(&asked(&[])), "nothing was changed");
    let applied = asked(&["--apply", "--cnf-out", "drive.cnf"]);
    assert_eq!(applied["applied"]["statements"][0], "SET GLOBAL innodb_flush_neighbors = 0;");
    assert!(!old(&asked(&[])), "it is as it is to be");
    // What SET GLOBAL did ends with the server; its option file stays.
    let of_file = place.read("drive.cnf");
    let lines = of_file.lines().filter_map(|line| line.split_once(" = "));
    let settings: Vec<(String, String)> = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    server.start("one", &[], &mut Silent).unwrap();
    assert!(old(&asked(&[])));
    server.start("one", &settings, &mut Silent).unwrap();
    assert!(!old(&asked(&[])), "{of_file}");
}
