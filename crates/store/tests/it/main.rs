//! A store in a file, as a program uses it.

#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

use std::io::Read;
use std::process::{Command, Stdio};

use flashwise_block::ByteSize;
use flashwise_store::{Batch, Durability, Engine, LogForm, Store, StoreError, StoreOptions};

const ENGINES: [Engine; 2] = [Engine::BTree, Engine::Hash];

fn options() -> StoreOptions {
    StoreOptions { log: ByteSize::mib(4), cache: ByteSize::mib(1), ..StoreOptions::default() }
}

fn key(n: u32) -> [u8; 4] {
    n.wrapping_mul(0x9e37_79b9).to_be_bytes()
}

#[test]
fn a_file_grows_and_has_everything_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let forms = [("sparse", LogForm::Sparse), ("packed", LogForm::Packed)];
    for (engine, (name, log_form)) in ENGINES.into_iter().flat_map(|engine| forms.map(|form| (engine, form))) {
        let path = folder.path().join(format!("{engine} {name}"));
        let options = StoreOptions { engine, log_form, ..options() };
        let store = Store::open(&path, &options).unwrap();
        let keyspace = store.keyspace("k").unwrap();
        for part in 0..10 {
            let mut batch = Batch::new();
            (0..200).for_each(|n| batch.put(&keyspace, key(part * 200 + n), [part as u8; 300]));
            store.commit(batch, Durability::Flushed).unwrap();
        }
        keyspace.put("long", vec![7; 200_000]).unwrap();
        let stats = store.stats();
        assert!(stats.pages > 100 && stats.io.image_bytes.0 > 0, "{stats:?}");
        drop(keyspace);
        store.close().unwrap();

        let store = Store::open(&path, &StoreOptions { create: false, ..options }).unwrap();
        let keyspace = store.find_keyspace("k").unwrap().unwrap();
        assert_eq!(store.engine(), engine);
        assert_eq!(keyspace.entries().unwrap().count(), 2_001);
        assert!((0..2_000).all(|n| keyspace.get(key(n)).unwrap().unwrap() == [(n / 200) as u8; 300]));
        assert_eq!(keyspace.get("long").unwrap().unwrap(), vec![7; 200_000]);
        let check = store.check().unwrap();
        assert!(check.is_sound() && check.keys == 2_001, "{check:?}");
    }
}

#[test]
fn a_store_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let store = Store::open(&path, &options()).unwrap();
    assert!(matches!(Store::open(&path, &options()), Err(StoreError::InUse { .. })));
    drop(store);
    Store::open(&path, &options()).unwrap();
    let missing = folder.path().join("missing");
    assert!(Store::open(&missing, &StoreOptions { create: false, ..options() }).is_err());
    assert!(!missing.exists());
}

/// The rest of the dump is a hole in a file, which costs nobody anything.
#[test]
fn a_dump_that_claims_more_than_a_store_takes_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("s"), &options()).unwrap();
    // A keyspace "k", and an entry whose key has 2^40 bytes.
    let claim = [&b"flashwise-dump 1\x01\x01k\x02"[..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x20]].concat();
    let mut dump = claim.chain(std::io::repeat(0).take(1 << 40));
    let error = store.restore(&mut dump).unwrap_err();
    assert!(matches!(error, StoreError::BatchTooLarge { length: ByteSize(l), .. } if l == 1 << 40), "{error}");
}

/// A file is the one that was opened, whatever has its name by now.
#[test]
fn a_store_whose_file_is_renamed_stays_in_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("s"), folder.path().join("moved"));
    let options = StoreOptions { cache: ByteSize::kib(256), ..options() };
    let fill = |store: &Store, byte: u8, parts: u32| {
        let keyspace = store.keyspace("k").unwrap();
        for part in 0..parts {
            let mut batch = Batch::new();
            (0..100).for_each(|n| batch.put(&keyspace, key(part * 100 + n), [byte; 300]));
            store.commit(batch, Durability::Synced).unwrap();
        }
    };
    let one = Store::open(&path, &options).unwrap();
    fill(&one, 1, 20);
    std::fs::rename(&path, &moved).unwrap();
    let other = Store::open(&path, &options).unwrap();
    fill(&other, 2, 20);
    // The file grows, and is opened anew for what is in flight together.
    fill(&one, 3, 80);
    for (store, path, byte) in [(one, &moved, 3), (other, &path, 2)] {
        assert!(store.check().unwrap().is_sound());
        store.close().unwrap();
        let store = Store::open(path, &options).unwrap();
        let keyspace = store.keyspace("k").unwrap();
        assert!((0..2_000).all(|n| keyspace.get(key(n)).unwrap().unwrap() == [byte; 300]), "{byte}");
        assert!(store.check().unwrap().is_sound());
    }
}

#[test]
fn a_dropped_keyspace_is_gone_for_all_and_its_space_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("s"), &options()).unwrap();
    let mut most = 0;
    for round in 0..4 {
        let keyspace = store.keyspace("k").unwrap();
        assert!(keyspace.is_empty().unwrap(), "round {round}");
        let mut batch = Batch::new();
        (0..800).for_each(|n| batch.put(&keyspace, key(n), [round; 200]));
        store.commit(batch, Durability::Synced).unwrap();
        if round == 0 {
            most = store.stats().pages;
        }
        assert!(store.stats().pages <= most);
        assert!(store.drop_keyspace("k").unwrap() && !store.drop_keyspace("k").unwrap());
        assert!(matches!(keyspace.get(key(1)), Err(StoreError::NoKeyspace { .. })));
        assert!(matches!(keyspace.put(key(1), "x"), Err(StoreError::NoKeyspace { .. })));
        assert!(keyspace.iter().is_err());
    }
    assert!(store.keyspaces().unwrap().is_empty());
    assert!(store.check().unwrap().is_sound());
}

#[test]
fn arguments_that_make_no_sense_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("s"), &options()).unwrap();
    let keyspace = store.keyspace("k").unwrap();
    assert!(keyspace.put(vec![1; 1008], "x").is_ok());
    let error = keyspace.put(vec![1; 1009], "x").unwrap_err();
    assert!(matches!(error, StoreError::KeyTooLong { length: 1009, max: 1008, .. }), "{error}");
    let error = keyspace.put("k", vec![1; 2 << 20]).unwrap_err();
    assert!(matches!(error, StoreError::BatchTooLarge { .. }), "{error}");
    assert!(store.keyspace("").is_err() && store.keyspace(&"n".repeat(129)).is_err());
    let other = Store::open(folder.path().join("t"), &options()).unwrap();
    let mut batch = Batch::new();
    batch.put(&keyspace, "k", "v");
    let error = other.commit(batch, Durability::Synced).unwrap_err();
    assert!(error.to_string().contains("another store"), "{error}");
    let mut batch = Batch::new();
    batch.put(&keyspace, "k", "v");
    batch.put(&other.keyspace("k").unwrap(), "k", "w");
    let error = other.commit(batch, Durability::Synced).unwrap_err();
    assert!(error.to_string().contains("several stores"), "{error}");
    // A copy of a file has the store's identity, and pages of its own.
    store.sync().unwrap();
    std::fs::copy(folder.path().join("s"), folder.path().join("copy")).unwrap();
    let copy = Store::open(folder.path().join("copy"), &options()).unwrap();
    let mut batch = Batch::new();
    batch.put(&keyspace, "k", "v");
    let error = copy.commit(batch, Durability::Synced).unwrap_err();
    assert!(error.to_string().contains("another store"), "{error}");
    assert!(Store::open(folder.path().join("u"), &StoreOptions { page: ByteSize(5000), ..options() }).is_err());
    assert!(!folder.path().join("u").exists());
}

const CHILD: &str = "FLASHWISE_STORE_CHILD";

/// What the killed process does: it commits until it is killed, and prints each number that was acknowledged.
#[test]
fn a_child_that_commits_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    // The store exists, and knows its engine.
    let store = Store::open(path, &options()).unwrap();
    let keyspace = store.keyspace("k").unwrap();
    for n in 0u32.. {
        let mut batch = Batch::new();
        (0..5).for_each(|part| batch.put(&keyspace, [key(n).as_slice(), &[part]].concat(), vec![n as u8; 200]));
        store.commit(batch, Durability::Flushed).unwrap();
        use std::io::Write;
        writeln!(std::io::stdout(), "acknowledged {n}").unwrap();
    }
}

#[test]
fn a_process_that_is_killed_loses_no_commit_that_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    for (engine, commits) in ENGINES.into_iter().flat_map(|engine| [1, 40, 200].map(|commits| (engine, commits))) {
        let path = folder.path().join(engine.to_string());
        drop(Store::open(&path, &StoreOptions { engine, ..options() }).unwrap());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["a_child_that_commits_until_it_is_killed", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = Vec::new();
        let mut out = child.stdout.take().unwrap();
        while text.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"acknowledged")).count() < commits {
            let mut piece = [0; 512];
            let read = out.read(&mut piece).unwrap();
            assert!(read > 0, "the child ended");
            text.extend_from_slice(&piece[..read]);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        out.read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let whole = &text[..text.rfind('\n').unwrap_or(0)];
        let acknowledged = whole.lines().filter_map(|line| line.strip_prefix("acknowledged ")).count() as u32;
        let store = Store::open(&path, &options()).unwrap();
        let keyspace = store.keyspace("k").unwrap();
        for n in 0..acknowledged {
            for part in 0..5u8 {
                let value = keyspace.get([key(n).as_slice(), &[part]].concat()).unwrap();
                assert_eq!(value.unwrap(), vec![n as u8; 200], "commit {n} of {acknowledged}");
            }
        }
        assert_eq!(keyspace.entries().unwrap().count() % 5, 0, "no commit by half");
        assert!(store.check().unwrap().is_sound());
    }
}
