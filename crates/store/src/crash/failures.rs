//! Requests that fail, drives that are full, bits that flip, bytes that somebody made up.

use flashwise_block::ByteSize;

use super::drive::{Bytes, Drive, Event, Random, Record, SharedControl, locked};
use super::history::{CAPACITY, Content, ENGINES, History, content, create, open, options};
use crate::bytes::{checksum, get_u64, put};
use crate::pages::PageLayout;
use crate::superblock::{Geometry, Superblock};
use crate::{Batch, Durability, Engine, Result, Store, StoreError, StoreOptions};

/// Commits one after the other, whatever fails. A commit that fails is not there; after a poisoning the history ends.
fn go_on(history: &mut History, store: &Store, control: &SharedControl, count: usize) {
    for _ in 0..count {
        match history.random.below(12) {
            0 => _ = store.checkpoint(),
            1 => _ = store.compact(),
            2 => _ = store.backup(&mut std::io::sink()),
            _ => {}
        }
        match history.commit(store, control) {
            Ok(()) => {}
            Err(StoreError::Poisoned { .. }) => {
                history.commits.pop();
                return;
            }
            // A flush that failed leaves the commit in doubt, and poisons.
            Err(_) if store.commit(Batch::new(), Durability::Buffered).is_err() => return,
            Err(_) => _ = history.commits.pop(),
        }
    }
}

/// One history in which one request fails, or all from it on; returns whether it came that far.
fn one_fails(engine: Engine, seed: u64, fail_at: u64, fails_on: bool) -> bool {
    let mut random = Random(seed);
    let options = options(&mut random, engine);
    let (store, control) = create(&options);
    let mut history = History::new(random.next(), Content::new());
    let store = store.unwrap();
    let words = format!("{engine}, seed {seed}, request {fail_at} fails, on: {fails_on}");
    {
        let mut control = locked(&control);
        (control.requests, control.fail_at, control.fails_on) = (0, Some(fail_at), fails_on);
    }
    go_on(&mut history, &store, &control, 40);
    let is_reached = locked(&control).requests >= fail_at;
    locked(&control).fail_at = None;
    let is_poisoned = store.commit(Batch::new(), Durability::Buffered).is_err();
    let all = history.commits.len();
    if !is_poisoned {
        assert_eq!(content(&store).unwrap(), history.state(all), "{words}: the open store");
        let check = store.check().unwrap();
        assert!(check.is_sound(), "{words}: {:?}", check.damage);
        go_on(&mut history, &store, &control, 3);
    }
    drop(store);
    let end = locked(&control).events.len();
    let (store, _) = open(locked(&control).bytes.clone(), &options);
    let store = store.unwrap_or_else(|error| panic!("{words}: {error}"));
    let found = content(&store).unwrap();
    match is_poisoned {
        false => assert_eq!(found, history.state(history.commits.len()), "{words}: opened again"),
        true => _ = history.find(&found, end).unwrap_or_else(|error| panic!("{words}: {error}")),
    }
    assert!(store.check().unwrap().is_sound(), "{words}");
    is_reached
}

#[test]
fn whichever_request_fails_nothing_is_lost_and_the_store_goes_on_or_says_that_it_cannot() {
    let runs = [(1, false), (2, true), (3, false), (5, true)];
    for (engine, (seed, fails_on)) in ENGINES.into_iter().flat_map(|engine| runs.map(|run| (engine, run))) {
        let mut random = Random(seed);
        let mut fail_at = 1;
        while one_fails(engine, seed, fail_at, fails_on) {
            fail_at += 1 + random.below(3);
        }
        assert!(fail_at > 100, "the history is too short: {fail_at} requests");
    }
}

#[test]
fn a_failed_flush_poisons_the_store_and_reads_go_on() {
    let (store, control) = create(&StoreOptions { log: ByteSize::mib(1), ..StoreOptions::default() });
    let store = store.unwrap();
    let keyspace = store.keyspace("a").unwrap();
    keyspace.put("k", "old").unwrap();
    {
        let mut control = locked(&control);
        control.fail_at = Some(control.requests + 2);
    }
    assert!(matches!(keyspace.put("k", "new"), Err(StoreError::Io { .. })));
    assert!(matches!(keyspace.put("k", "newer"), Err(StoreError::Poisoned { .. })));
    assert!(matches!(store.sync(), Err(StoreError::Poisoned { .. })));
    assert_eq!(keyspace.get("k").unwrap().as_deref(), Some(b"old".as_slice()));
}

/// Reads need space in the cache, and find it although no page can be written.
#[test]
fn after_a_failed_flush_every_key_is_still_read() {
    for engine in ENGINES {
        let options = StoreOptions {
            engine,
            page: ByteSize::kib(4),
            log: ByteSize::mib(1),
            cache: ByteSize::kib(4 * 20),
            ..StoreOptions::default()
        };
        let (store, control) = create(&options);
        let store = store.unwrap();
        let keyspace = store.keyspace("a").unwrap();
        (0..300u16).for_each(|n| keyspace.put(n.to_be_bytes(), vec![n as u8; 400]).unwrap());
        store.checkpoint().unwrap();
        (0..40u16).for_each(|n| keyspace.put((n * 7).to_be_bytes(), vec![1; 400]).unwrap());
        let (until, errno) = (crate::Durability::Synced, 5);
        locked(&control).refused = Some((flashwise_block::Operation::Flush, errno));
        let mut batch = Batch::new();
        batch.put(&keyspace, "k", "new");
        assert!(store.commit(batch, until).is_err());
        for n in 0..300u16 {
            let value = keyspace.get(n.to_be_bytes()).unwrap_or_else(|error| panic!("{engine}, key {n}: {error}"));
            assert_eq!(value.unwrap().len(), 400);
        }
        assert_eq!(keyspace.entries().unwrap().filter(|entry| entry.is_ok()).count(), 300);
    }
}

/// A drive or a file system that gives no space back: the store takes more of it, and nothing else is different.
#[test]
fn a_medium_without_trims_is_one_that_keeps_its_space() {
    for (engine, errno) in ENGINES.into_iter().flat_map(|engine| [95, 5].map(|errno| (engine, errno))) {
        let mut random = Random(7);
        // Many pages wait until their old slots are given back, and some are written meanwhile.
        let options = StoreOptions { give_back_pages: 64, ..options(&mut random, engine) };
        let (store, control) = create(&options);
        let store = store.unwrap();
        locked(&control).refused = Some((flashwise_block::Operation::Trim, errno));
        let mut history = History::new(random.next(), Content::new());
        for _ in 0..300 {
            history.commit(&store, &control).unwrap_or_else(|error| panic!("{engine}, error {errno}: {error}"));
        }
        assert_eq!(content(&store).unwrap(), history.state(300));
        assert!(store.check().unwrap().is_sound());
        assert!(errno != 95 || store.compact().is_ok(), "{engine}: there is nothing to be given back");
    }
}

#[test]
fn a_full_device_is_an_error_loses_nothing_and_works_again_after_deletes() {
    ENGINES.into_iter().for_each(full_device);
}

fn full_device(engine: Engine) {
    let options = StoreOptions {
        engine,
        page: ByteSize::kib(4),
        log: ByteSize::kib(256),
        cache: ByteSize::kib(128),
        identity: Some(5),
        ..StoreOptions::default()
    };
    let (drive, control) = Drive::new(ByteSize::mib(2), Bytes::default());
    let store = Store::create_device(drive, &options).unwrap();
    let keyspace = store.keyspace("a").unwrap();
    let key = |n: u32| n.wrapping_mul(0x9e37_79b9).to_be_bytes();
    let mut stored = 0;
    let error = loop {
        match keyspace.put(key(stored), vec![stored as u8; 400]) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_full() && error.to_string().contains("delete keys"), "{error}");
    assert!(stored > 300, "{stored}");
    assert!(store.check().unwrap().is_sound());
    let is_there = |n: u32| keyspace.get(key(n)).unwrap().is_some_and(|value| value == vec![n as u8; 400]);
    assert!((0..stored).all(is_there) && keyspace.entries().unwrap().count() == stored as usize);
    // Present keys can be replaced; deleted ones make space.
    keyspace.put(key(0), vec![9; 400]).unwrap();
    (0..stored / 2).for_each(|n| keyspace.delete(key(n)).unwrap());
    (0..stored / 4).for_each(|n| keyspace.put(key(n), vec![n as u8; 400]).unwrap());
    assert!((0..stored / 4).all(is_there) && !(stored / 4..stored / 2).any(is_there));
    drop((keyspace, store));
    let (drive, _) = Drive::new(ByteSize::mib(2), locked(&control).bytes.clone());
    let store = Store::open_device(drive, &options).unwrap();
    assert!(store.check().unwrap().is_sound());
}

#[test]
fn a_drive_without_physical_space_is_an_error_loses_nothing_and_works_again_after_deletes() {
    ENGINES.into_iter().for_each(full_drive);
}

fn full_drive(engine: Engine) {
    let options = StoreOptions {
        engine,
        page: ByteSize::kib(4),
        log: ByteSize::kib(128),
        cache: ByteSize::kib(64),
        give_back_pages: 4,
        identity: Some(5),
        ..StoreOptions::default()
    };
    let (store, control) = create(&options);
    let store = store.unwrap();
    let keyspace = store.keyspace("a").unwrap();
    let key = |n: u32| n.wrapping_mul(0x9e37_79b9).to_be_bytes();
    // The log comes around once, so that its blocks have their space.
    (0..40).for_each(|_| keyspace.put("x", "y").unwrap());
    locked(&control).space_blocks = Some(500);
    let mut stored = 0;
    let error = loop {
        match keyspace.put(key(stored), vec![stored as u8; 400]) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_full(), "{error}");
    let error = keyspace.put(key(stored), vec![0; 400]).unwrap_err();
    assert!(error.to_string().contains("until it has, the store takes only deletes"), "{error}");
    assert!(stored > 300, "{stored}");
    let is_there = |n: u32| keyspace.get(key(n)).unwrap().is_some_and(|value| value == vec![n as u8; 400]);
    assert!((0..stored).all(is_there));
    let mut deleted = 0;
    for n in 0..stored {
        match keyspace.delete(key(n)) {
            Ok(()) => deleted += 1,
            Err(error) => assert!(error.is_full(), "{error}"),
        }
    }
    assert!(deleted > stored / 2, "{deleted} of {stored}");
    let kept = keyspace.entries().unwrap().count();
    assert_eq!(kept, 1 + (stored - deleted) as usize);
    (0..20).for_each(|n| keyspace.put(key(n), vec![n as u8; 400]).unwrap());
    assert!((0..20).all(is_there));
    assert!(store.check().unwrap().is_sound());
}

/// A store that was closed, with its content.
fn closed(engine: Engine, seed: u64) -> (StoreOptions, Bytes, Content) {
    let mut random = Random(seed);
    let options = options(&mut random, engine);
    let (store, control) = create(&options);
    let store = store.unwrap();
    let mut history = History::new(random.next(), Content::new());
    history.run(&store, &control, 80).unwrap();
    store.close().unwrap();
    let bytes = locked(&control).bytes.clone();
    let content = history.state(history.commits.len());
    (options, bytes, content)
}

/// Opens, reads, checks and writes; an error is the answer to damage, a panic is not.
fn use_store(bytes: Bytes, options: &StoreOptions) -> Result<(Content, crate::Check)> {
    let (store, _) = open(bytes, options);
    let store = store?;
    let content = content(&store)?;
    let check = store.check()?;
    Ok((content, check))
}

#[test]
fn a_flipped_bit_is_found_and_named_or_does_not_matter() {
    ENGINES.into_iter().for_each(flip_bits);
}

fn flip_bits(engine: Engine) {
    let (mut named, mut harmless) = (0, 0);
    for seed in 1..=4 {
        let (options, bytes, content) = closed(engine, seed);
        let mut random = Random(seed);
        for block in bytes.stored() {
            for _ in 0..2 {
                let bit = random.below(4096 * 8);
                let offset = block * 4096 + bit / 8;
                let mut flipped = bytes.clone();
                let mut byte = [0];
                flipped.read(offset, &mut byte);
                flipped.write(offset, &[byte[0] ^ 1 << (bit % 8)]);
                match use_store(flipped, &options) {
                    Err(error @ StoreError::Corrupt { .. }) => {
                        let words = error.to_string();
                        assert!(words.contains("byte") || words.contains("log") || words.contains("superblock"));
                        named += 1;
                    }
                    Err(error) => panic!("seed {seed}, bit {bit} of block {block}: {error}"),
                    Ok((found, check)) => {
                        assert_eq!(found, content, "seed {seed}, bit {bit} of block {block}");
                        if check.is_sound() { harmless += 1 } else { named += 1 }
                    }
                }
            }
        }
    }
    // What is not in use, old log blocks and unused slots, does not matter.
    println!("{named} flipped bits were named, {harmless} were in bytes out of use");
    assert!(named > 150, "{named} named, {harmless} harmless");
}

#[test]
fn a_flipped_bit_in_the_log_never_hides_a_durable_commit_but_the_last() {
    for (engine, seed) in ENGINES.into_iter().flat_map(|engine| (1..=6).map(move |seed| (engine, seed))) {
        let mut random = Random(seed);
        let options = StoreOptions { buffer: ByteSize(0), ..options(&mut random, engine) };
        let (store, control) = create(&options);
        let store = store.unwrap();
        let keyspace = store.keyspace("a").unwrap();
        for n in 0..20u8 {
            keyspace.put([n], [n; 100]).unwrap();
        }
        // The power is cut, the store is not closed.
        let mut record = Record::new(&control);
        let killed = record.image(record.len(), super::Kept::Everything, &mut random);
        for block in 4..24u64 {
            let mut flipped = killed.clone();
            let offset = block * 4096 + random.below(100);
            let mut byte = [0];
            flipped.read(offset, &mut byte);
            flipped.write(offset, &[byte[0] ^ 4]);
            let keys = match use_store(flipped, &options) {
                Err(StoreError::Corrupt { place, .. }) => {
                    assert!(place.contains("log"), "{place}");
                    continue;
                }
                other => other.unwrap().0.len(),
            };
            assert!(keys >= 19, "seed {seed}, block {block}: {keys} keys");
        }
    }
}

/// Changes bytes at random, and makes the checksums right again: only the structure is wrong.
fn made_up(bytes: &Bytes, random: &mut Random, geometry: &Geometry) -> Bytes {
    let mut made = bytes.clone();
    let layout = PageLayout::new(geometry);
    let stored = bytes.stored();
    for _ in 0..1 + random.below(3) {
        let block = stored[random.below(stored.len() as u64) as usize];
        let mut bytes = vec![0; 4096];
        made.read(block * 4096, &mut bytes);
        for _ in 0..1 + random.below(4) {
            let area = if random.below(2) == 0 { 80 } else { 4096 };
            let at = random.below(area) as usize;
            bytes[at] = random.next() as u8;
        }
        let offset = block * 4096;
        if offset < 8192 {
            let sum = checksum(0, &bytes[..4088]);
            put(&mut bytes, 4088, &sum.to_le_bytes());
        } else if offset >= geometry.area_start {
            // Pages of 4 KiB: a block is a slot or a delta, both sealed alike.
            let page = (offset - geometry.area_start) / layout.area_bytes();
            put(&mut bytes, 8, &page.to_le_bytes());
            let sum = checksum(geometry.seed, &bytes[8..]);
            put(&mut bytes, 0, &sum.to_le_bytes());
        } else {
            let sum = checksum(geometry.seed, &bytes[8..]);
            put(&mut bytes, 0, &sum.to_le_bytes());
        }
        made.write(offset, &bytes);
    }
    made
}

/// Uses a store that somebody made up, with writes; whatever comes, it must not panic or hang.
fn bear(bytes: Bytes, options: &StoreOptions) {
    let (store, control) = open(bytes, options);
    let Ok(store) = store else { return };
    for name in store.keyspaces().unwrap_or_default() {
        let Ok(Some(keyspace)) = store.find_keyspace(&name) else { continue };
        // What is read need not make sense; forwards and backwards need not agree.
        keyspace.entries().into_iter().for_each(|scan| scan.for_each(drop));
        keyspace.entries().into_iter().for_each(|scan| scan.rev().for_each(drop));
    }
    let _ = store.check();
    let mut history = History::new(1, Content::new());
    for _ in 0..6 {
        let _ = history.commit(&store, &control);
    }
    let _ = store.compact();
    let _ = store.drop_keyspace("a");
    let _ = store.check();
}

fn fuzz(seeds: std::ops::Range<u64>, rounds: u64) {
    for (engine, seed) in ENGINES.into_iter().flat_map(|engine| seeds.clone().map(move |seed| (engine, seed))) {
        let (options, bytes, _) = closed(engine, seed);
        let mut block = vec![0; 4096];
        bytes.read(0, &mut block);
        let (drive, _) = Drive::new(CAPACITY, bytes.clone());
        let disk = crate::medium::Disk::new(Box::new(crate::medium::DeviceMedium::new(drive).unwrap()));
        let (superblock, _) = Superblock::read(&disk).unwrap();
        assert_eq!(get_u64(&block, 16), superblock.geometry.seed);
        let mut random = Random(seed);
        for _ in 0..rounds {
            bear(made_up(&bytes, &mut random, &superblock.geometry), &options);
        }
    }
}

#[test]
fn bytes_that_somebody_made_up_are_an_error_and_never_a_panic() {
    fuzz(1..5, 150);
}

/// Numbers that only the superblock has are compared with the medium before anything is counted by them.
#[test]
fn a_superblock_of_impossible_numbers_is_refused() {
    for engine in ENGINES {
        let (options, bytes, _) = closed(engine, 1);
        for (at, value) in [(104, 1u64 << 55), (104, 1 << 30), (64, 0), (32, 1 << 24), (80, 1 << 50), (72, 1 << 55)] {
            let mut made = bytes.clone();
            for copy in [0, 4096] {
                let mut block = vec![0; 4096];
                made.read(copy, &mut block);
                put(&mut block, at, &value.to_le_bytes());
                let sum = checksum(0, &block[..4088]);
                put(&mut block, 4088, &sum.to_le_bytes());
                made.write(copy, &block);
            }
            bear(made.clone(), &options);
            let is_refused =
                matches!(use_store(made, &options), Err(StoreError::Corrupt { .. } | StoreError::Io { .. }));
            assert!(is_refused || at == 72, "{engine}: {value} at byte {at}");
        }
    }
}

#[test]
#[ignore = "minutes: the same, many times more"]
fn many_bytes_that_somebody_made_up_are_an_error_and_never_a_panic() {
    fuzz(5..60, 1000);
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let (drive, control) = Drive::new(CAPACITY, Bytes::default());
    let error = Store::open_device(drive, &StoreOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert!(!locked(&control).events.iter().any(|event| matches!(event, Event::Write(..) | Event::Trim(..))));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    std::fs::write(&path, "Dear Sir").unwrap();
    let error = Store::open(&path, &StoreOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"Dear Sir");
}
