//! Threads: what each of them sees must be a history of one after the other.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use flashwise_block::ByteSize;

use super::drive::{Bytes, Drive, Random, locked};
use super::history::ENGINES;
use crate::{Batch, Durability, Engine, Keyspace, Store, StoreError, StoreOptions};

fn store(engine: Engine, seed: u64) -> Store {
    let options = StoreOptions {
        engine,
        page: ByteSize::kib(4),
        log: ByteSize::kib(256),
        cache: ByteSize::kib(4 * 40),
        identity: Some(seed),
        ..StoreOptions::default()
    };
    let (drive, _) = Drive::new(ByteSize::mib(64), Bytes::default());
    Store::create_device(drive, &options).unwrap()
}

/// A put or get of one key, with the times between which it happened.
#[derive(Clone, Copy, Debug)]
struct Seen {
    began: u64,
    ended: u64,
    is_put: bool,
    value: u64,
}

/// Whether operations on a register can be put into an order that keeps their times (Wing and Gong).
fn is_linearisable(seen: &[Seen]) -> bool {
    fn search(seen: &[Seen], done: &mut Vec<bool>, value: u64, tried: &mut HashSet<(Vec<bool>, u64)>) -> bool {
        if done.iter().all(|&done| done) {
            return true;
        }
        if !tried.insert((done.clone(), value)) {
            return false;
        }
        let first_end = (0..seen.len()).filter(|&n| !done[n]).map(|n| seen[n].ended).min().unwrap_or(u64::MAX);
        for n in 0..seen.len() {
            let may_be_next = !done[n] && seen[n].began <= first_end && (seen[n].is_put || seen[n].value == value);
            if may_be_next {
                done[n] = true;
                if search(seen, done, seen[n].value, tried) {
                    return true;
                }
                done[n] = false;
            }
        }
        false
    }
    search(seen, &mut vec![false; seen.len()], 0, &mut HashSet::new())
}

#[test]
fn the_checker_knows_a_stale_read() {
    let put = |began, ended, value| Seen { began, ended, is_put: true, value };
    let get = |began, ended, value| Seen { began, ended, is_put: false, value };
    assert!(is_linearisable(&[put(0, 5, 1), get(1, 2, 0), get(3, 4, 1), get(6, 7, 1)]));
    assert!(!is_linearisable(&[put(0, 1, 1), get(2, 3, 0)]));
    assert!(!is_linearisable(&[put(0, 9, 1), get(1, 2, 1), get(3, 4, 0)]));
}

fn number(value: Option<crate::Value>) -> u64 {
    value.map_or(0, |value| crate::bytes::get_u64(&value, 0))
}

/// Splits and merges around the keys that are looked at.
fn churn(keyspace: &Keyspace, seed: u64, stop: &AtomicBool, store: &Store) {
    let mut random = Random(seed);
    let mut round = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let mut batch = Batch::new();
        for _ in 0..20 {
            let key = [b"r".as_slice(), &random.below(600).to_be_bytes()[6..]].concat();
            match round / 20 % 2 {
                0 => batch.put(keyspace, key, vec![7; 150 + random.below(200) as usize]),
                _ => batch.delete(keyspace, key),
            }
        }
        store.commit(batch, Durability::Buffered).unwrap();
        round += 1;
    }
}

#[test]
fn puts_and_gets_of_threads_are_linearisable_while_pages_split_and_merge() {
    const THREADS: u64 = 4;
    for (engine, seed) in ENGINES.into_iter().flat_map(|engine| (1..=4).map(move |seed| (engine, seed))) {
        let store = store(engine, seed);
        let keyspace = store.keyspace("k").unwrap();
        let clock = AtomicU64::new(1);
        let stop = AtomicBool::new(false);
        let seen: Vec<BTreeMap<u64, Vec<Seen>>> = thread::scope(|scope| {
            scope.spawn(|| churn(&keyspace, seed, &stop, &store));
            let threads: Vec<_> = (0..THREADS)
                .map(|n| {
                    let (keyspace, clock, store) = (&keyspace, &clock, &store);
                    scope.spawn(move || {
                        let mut random = Random(seed * 100 + n);
                        let mut seen: BTreeMap<u64, Vec<Seen>> = BTreeMap::new();
                        for step in 0..40 {
                            let key = random.below(4);
                            let name = [b"r".as_slice(), &(key * 150).to_be_bytes()[6..], b"x"].concat();
                            let is_put = random.below(3) == 0;
                            let value = 1 + n * 1000 + step;
                            let began = clock.fetch_add(1, Ordering::SeqCst);
                            let value = if is_put {
                                let mut batch = Batch::new();
                                batch.put(keyspace, &name, [value.to_le_bytes().as_slice(), &[1; 60]].concat());
                                let level = [Durability::Synced, Durability::Buffered][random.below(2) as usize];
                                store.commit(batch, level).unwrap();
                                value
                            } else {
                                number(keyspace.get(&name).unwrap())
                            };
                            let ended = clock.fetch_add(1, Ordering::SeqCst);
                            seen.entry(key).or_default().push(Seen { began, ended, is_put, value });
                        }
                        seen
                    })
                })
                .collect();
            let seen = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            stop.store(true, Ordering::Relaxed);
            seen
        });
        for key in 0..4 {
            let all: Vec<Seen> = seen.iter().flat_map(|seen| seen.get(&key).cloned().unwrap_or_default()).collect();
            assert!(is_linearisable(&all), "{engine}, seed {seed}, key {key}: {all:?}");
        }
        assert!(store.check().unwrap().is_sound());
    }
}

#[test]
fn transfers_keep_their_sum_in_every_snapshot_and_none_is_lost() {
    ENGINES.into_iter().for_each(transfer);
}

fn transfer(engine: Engine) {
    const ACCOUNTS: u64 = 12;
    let store = store(engine, 9);
    let keyspace = store.keyspace("k").unwrap();
    let name = |account: u64| [b"r".as_slice(), &(account * 50).to_be_bytes()[6..], b"x"].concat();
    let mut batch = Batch::new();
    (0..ACCOUNTS).for_each(|account| batch.put(&keyspace, name(account), 100u64.to_le_bytes()));
    store.commit(batch, Durability::Synced).unwrap();
    let stop = AtomicBool::new(false);
    let transfers = AtomicU64::new(0);
    let count = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| churn(&keyspace, 3, &stop, &store));
        let workers: Vec<_> = (0..3u64)
            .map(|n| {
                let (store, keyspace, transfers, count) = (&store, &keyspace, &transfers, Arc::clone(&count));
                scope.spawn(move || {
                    let mut random = Random(n);
                    for _ in 0..60 {
                        loop {
                            let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                            let mut transaction = store.transaction();
                            let (a, b) = (
                                number(transaction.get(keyspace, name(from)).unwrap()),
                                number(transaction.get(keyspace, name(to)).unwrap()),
                            );
                            let done = number(transaction.get(keyspace, "count").unwrap());
                            if from != to && a > 0 {
                                transaction.put(keyspace, name(from), (a - 1).to_le_bytes());
                                transaction.put(keyspace, name(to), (b + 1).to_le_bytes());
                            }
                            transaction.put(keyspace, "count", (done + 1).to_le_bytes());
                            match transaction.commit(Durability::Synced) {
                                Err(StoreError::Conflict) => continue,
                                done => break done.unwrap(),
                            }
                        }
                        transfers.fetch_add(1, Ordering::Relaxed);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let snapshot = store.snapshot();
                let mut sum = 0;
                let mut last = None;
                for entry in snapshot.entries(&keyspace).unwrap() {
                    let (key, value) = entry.unwrap();
                    assert!(engine == Engine::Hash || last.as_ref() < Some(&key), "out of order");
                    // Those of the churn are shorter.
                    if key.len() == 4 {
                        sum += number(Some(value));
                    }
                    last = Some(key);
                }
                assert_eq!(sum, ACCOUNTS * 100);
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(number(keyspace.get("count").unwrap()), transfers.load(Ordering::Relaxed));
    assert!(store.check().unwrap().is_sound());
}

#[test]
fn handles_are_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Store>();
    is_shared::<Keyspace>();
    is_shared::<crate::Snapshot>();
    is_shared::<StoreError>();
    fn is_sent<T: Send>() {}
    is_sent::<crate::Scan>();
    is_sent::<crate::Transaction>();
    is_sent::<Batch>();
}

/// Commits gather behind the flush that is under way, also while they make space in the log. The drive takes its time
/// for a flush, so that the other threads come together behind it.
#[test]
fn threads_share_flushes() {
    const THREADS: u32 = 8;
    const COMMITS: u32 = 60;
    for engine in ENGINES {
        let options = StoreOptions {
            engine,
            page: ByteSize::kib(4),
            log: ByteSize::mib(2),
            cache: ByteSize::mib(8),
            identity: Some(1),
            ..StoreOptions::default()
        };
        let (drive, control) = Drive::new(ByteSize::mib(64), Bytes::default());
        let store = Store::create_device(drive, &options).unwrap();
        let keyspace = store.keyspace("k").unwrap();
        let key = |n: u32| n.wrapping_mul(0x9e37_79b9).to_be_bytes();
        // The log is as full as it stays.
        for part in 0..200 {
            let mut batch = Batch::new();
            (0..40).for_each(|n| batch.put(&keyspace, key((part * 40 + n) % 3_200), [1; 200]));
            store.commit(batch, Durability::Synced).unwrap();
        }
        let used = store.stats().log_used.0 * 16 / options.log.0;
        assert!((6..=10).contains(&used), "{used} sixteenths of the log are used");
        locked(&control).flush_time = Some(std::time::Duration::from_millis(4));
        let flushes = store.stats().io.flushes;
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (store, keyspace) = (&store, &keyspace);
                scope.spawn(move || {
                    for n in 0..COMMITS {
                        let mut batch = Batch::new();
                        batch.put(keyspace, key((thread * COMMITS + n) * 7 % 3_200), [2; 200]);
                        store.commit(batch, Durability::Synced).unwrap();
                    }
                });
            }
        });
        let flushes = store.stats().io.flushes - flushes;
        println!("{engine}: {flushes} flushes for {} commits of {THREADS} threads", THREADS * COMMITS);
        assert!(flushes < u64::from(THREADS * COMMITS) / 2, "{engine}: {flushes} flushes");
    }
}

/// Runs something that must end, in a thread of its own.
fn must_end<R: Send + 'static>(what: &str, run: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || sender.send(run()));
    receiver.recv_timeout(std::time::Duration::from_secs(120)).unwrap_or_else(|error| panic!("{what}: {error}"))
}

#[test]
fn statistics_are_read_while_keyspaces_come_and_go() {
    for engine in ENGINES {
        let store = store(engine, 4);
        must_end("statistics beside keyspaces that come and go", move || {
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    for round in 0..30u8 {
                        let keyspace = store.keyspace("k").unwrap();
                        let mut batch = Batch::new();
                        (0..60u8).for_each(|n| batch.put(&keyspace, [n], [round; 300]));
                        store.commit(batch, Durability::Buffered).unwrap();
                        drop(keyspace);
                        store.drop_keyspace("k").unwrap();
                    }
                    stop.store(true, Ordering::Relaxed);
                });
                while !stop.load(Ordering::Relaxed) {
                    assert!(store.stats().pages > 0);
                }
            });
        });
    }
}
