//! `flashwise study ace-postgres` as a user runs it: what it needs, and how it goes on from a file of finished runs.

use std::process::Command;

use crate::ace_in_postgres::server_with_extension;
use crate::mounted::turn;
use crate::private_server::Programs;
use crate::studies::rows;
use crate::support::Place;

const STUDY: [&str; 3] = ["study", "ace-postgres", "--quick"];

/// Finished runs of the quick form with the default seed, for a server of this version.
fn finished(programs: &Programs) -> String {
    let output = Command::new(programs.bin.join("postgres")).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let number = text.split_whitespace().nth(2).unwrap().to_owned();
    // Rate and share of each slice: default, off, tuned, extension, of five rounds.
    let rounds = |rates: [u32; 4]| {
        let round = rates.map(|rate| format!("\t{rate}\t0.2")).concat();
        round.repeat(5)
    };
    let heading = format!("flashwise-study-ace-postgres 0.1.0, PostgreSQL {number}, 8192 pages, 5 rounds of 1500 ms");
    let direct = rounds([1000, 900, 1200, 1500]);
    let buffered = rounds([5000, 5000, 5000, 4990]);
    format!(
        "{heading}\nvirtual, MS, 4 sessions, direct, seed 1{direct}\nP4510, MS, 4 sessions, buffered, seed 1{buffered}\n"
    )
}

#[test]
fn finished_runs_are_not_repeated_and_gains_are_those_of_their_rounds() {
    let Some(programs) = Programs::find() else { return eprintln!("no server is installed: not tested") };
    let place = Place::new();
    place.write("runs", &finished(&programs));
    let mut command = place.command(&[&STUDY[..], &["-o", "json", "--resume", "runs"]].concat());
    let ended = command.arg("--programs").arg(&programs.bin).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let document: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let gains = rows(&document, &["", "default", "tuned", "off", "tuned alone", "in place"]);
    let buffered = gains.iter().find(|row| row[0] == "P4510, MS, 4 sessions, buffered").unwrap();
    assert!((buffered[1]["value"].as_f64().unwrap() + 0.2).abs() < 1e-9, "{buffered:?}");
    assert!(buffered[5]["value"].as_f64().unwrap() > 5.0, "the paper's scheme, simulated: {buffered:?}");
    let claims = document["claims"].as_array().unwrap();
    let verdict =
        |text: &str| &claims.iter().find(|claim| claim["claim"].as_str().unwrap().contains(text)).unwrap()["verdict"];
    assert_eq!(verdict("buffered I/O"), "reproduced");
    // Without direct I/O there is one case, and the limits say which server has it.
    if gains.len() == 1 {
        let limits = document["limits"].to_string();
        assert!(limits.contains("PostgreSQL 16 and later"), "{limits}");
    } else {
        assert_eq!(verdict("a tuned background writer"), "reproduced");
    }
}

#[test]
#[ignore = "minutes; part of make test-full"]
fn a_server_with_the_extension_is_measured_under_all_settings() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = Place::new();
    let Some(programs) = server_with_extension(&place) else { return };
    let mut command = place.command(&[&STUDY[..], &["-o", "json"]].concat());
    let ended = command.arg("--programs").arg(&programs.bin).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let document: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let rates = rows(&document, &["", "default", "off", "tuned", "extension"]);
    assert!(!rates.is_empty());
    for row in rates {
        assert!(row[1..].iter().all(|cell| cell["value"].as_f64().unwrap() > 0.0), "{row:?}");
    }
}
