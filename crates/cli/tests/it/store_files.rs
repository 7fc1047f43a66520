//! What `flashwise store` reads, writes and prints: files of others stay, a private store stays private, and names have
//! no effect on a terminal.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::endings::fifo;
use crate::support::{Ended, Place};

/// A shell of a store, with its commands.
fn kv(place: &Place, arguments: &[&str], commands: &[u8]) -> Ended {
    let arguments = [&["store", "kv"], arguments].concat();
    let mut child = place.command(&arguments).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let commands = commands.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&commands)));
    let ended = Ended::of(child);
    writer.join().unwrap();
    ended
}

fn mode(place: &Place, name: &str) -> u32 {
    fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_dump_and_what_is_restored_of_it_are_as_private_as_the_store() {
    let place = Place::new();
    kv(&place, &["s"], b"put k v\n").expect(0);
    fs::set_permissions(place.path("s"), fs::Permissions::from_mode(0o600)).unwrap();
    // Root may give it away.
    let owner = if std::os::unix::fs::chown(place.path("s"), Some(1234), Some(1234)).is_ok() { 1234 } else { 0 };
    place.run(&["store", "dump", "s", "s.dump"]).expect(0);
    place.run(&["store", "restore", "s.dump", "r"]).expect(0);
    for name in ["s.dump", "r"] {
        assert_eq!(mode(&place, name), 0o600, "{name}");
        assert!(owner == 0 || fs::metadata(place.path(name)).unwrap().uid() == owner, "{name}");
    }
    assert!(kv(&place, &["r"], b"get k\n").expect(0).stdout.contains('v'));
}

#[test]
fn a_dump_or_a_store_replaces_no_file_and_a_damaged_dump_leaves_none() {
    let place = Place::new();
    kv(&place, &["s"], b"put a 1\nput b 2\n").expect(0);
    place.run(&["store", "dump", "s", "s.dump"]).expect(0);
    place.write("notes", "mine");
    for arguments in [&["store", "dump", "s", "notes"], &["store", "restore", "s.dump", "notes"]] {
        let line = place.fails(5, arguments);
        assert!(line.contains("notes: exists; existing files are never written to"), "{line}");
    }
    assert_eq!(place.read("notes"), "mine");
    let line = place.fails(1, &["store", "check", "notes"]);
    assert!(line.contains("it does not start with a superblock"), "{line}");
    let dump = fs::read(place.path("s.dump")).unwrap();
    fs::write(place.path("cut.dump"), &dump[..dump.len() - 9]).unwrap();
    place.fails(1, &["store", "restore", "cut.dump", "r"]);
    fifo(&place, "pipe");
    let line = place.fails(1, &["store", "restore", "pipe", "r"]);
    assert!(line.contains("pipe: it is a named pipe"), "{line}");
}

/// The signal comes while the entries are written, or after.
#[test]
fn a_restore_that_is_interrupted_leaves_no_store() {
    let place = Place::new();
    let values: String = (0..40).map(|n| format!("put k{n} {}\n", "v".repeat(200_000))).collect();
    kv(&place, &["s"], values.as_bytes()).expect(0);
    place.run(&["store", "dump", "s", "s.dump"]).expect(0);
    let before = place.names();
    for milliseconds in [0, 50, 200] {
        let mut child = place.command(&["store", "restore", "s.dump", "r"]).spawn().unwrap();
        while place.names() == before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(milliseconds));
        if child.try_wait().unwrap().is_none() {
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
        }
        let ended = Ended::of(child);
        // Whole, or absent.
        match ended.code {
            0 => {
                let found = place.run(&["store", "check", "r", "-o", "json"]).expect(0).document();
                assert_eq!(found["keys"], 40, "{found:#}");
                fs::remove_file(place.path("r")).unwrap();
            }
            code => assert_eq!((code, place.names()), (130, before.clone()), "{}", ended.stderr),
        }
    }
}

#[test]
fn names_keys_and_values_have_no_effect_on_a_terminal() {
    let place = Place::new();
    let commands = b"use a\x1b]0;pwn\x07b\nput k\x1b[31m v\x1b[0m\nscan\nkeyspaces\nwrong\x1b\n\
                     drop \xc2\x9b\nput \xff x\nput z 9\n";
    let ended = kv(&place, &["s"], commands).expect(0);
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!ended.stdout.contains(is_control), "{:?}", ended.stdout);
    assert!(ended.stdout.contains("a\\u{1b}]0;pwn\\u{7}b"), "{}", ended.stdout);
    // One command that is no text does not end the others.
    assert!(ended.stdout.contains("error: the command is not UTF-8 text"), "{}", ended.stdout);
    assert!(kv(&place, &["s"], "use a\u{1b}]0;pwn\u{7}b\nget z\n".as_bytes()).stdout.contains('9'));
}

#[test]
fn input_without_line_ends_is_refused_before_it_fills_the_memory() {
    let place = Place::new();
    let mut command = place.command(&["store", "kv", "s"]);
    command.stdin(fs::File::open("/dev/zero").unwrap());
    let ended = Ended::of(command.spawn().unwrap()).expect(1);
    assert!(ended.stderr.contains("stdin: a line is longer than 65 MiB"), "{}", ended.stderr);
    let mut start = [0; 8];
    fs::File::open(place.path("s")).unwrap().read_exact(&mut start).unwrap();
    assert_eq!(&start, b"flwstore");
}
