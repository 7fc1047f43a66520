//! What the tests of studies that run a database server share.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::support::Place;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What a command says that has to fail, in one line.
pub fn complaint(command: &mut Command) -> String {
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.stdout.is_empty());
    let text = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// The program as somebody who is not root runs it, and the place that holds it.
pub fn as_nobody() -> (Place, Command) {
    let place = Place::new();
    let command = if is_root() {
        // The program where everybody can run it.
        let copy = place.path("flashwise");
        std::fs::copy(assert_cmd::cargo::cargo_bin!("flashwise"), &copy).unwrap();
        std::fs::set_permissions(place.path(""), Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(copy);
        command.uid(65_534).gid(65_534);
        command
    } else {
        Command::new(assert_cmd::cargo::cargo_bin!("flashwise"))
    };
    (place, command)
}

/// Rows of the section whose columns are these.
pub fn rows<'a>(document: &'a Value, columns: &[&str]) -> Vec<&'a Vec<Value>> {
    let sections = document["sections"].as_array().unwrap();
    let tables = sections.iter().flat_map(|section| section["tables"].as_array().unwrap());
    let table = tables.into_iter().find(|table| table["columns"].as_array().unwrap() == columns).unwrap();
    table["rows"].as_array().unwrap().iter().map(|row| row.as_array().unwrap()).collect()
}
