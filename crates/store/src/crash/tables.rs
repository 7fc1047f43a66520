//! What is particular to tables: growth, exceptions, shrinking, memory, and what they refuse.

use std::sync::Arc;

use flashwise_block::ByteSize;

use super::drive::{Bytes, Drive, Random, SharedControl, locked};
use crate::engine::Index;
use crate::hash::Table;
use crate::{Batch, Durability, Keyspace, Store, StoreError, StoreOptions};

fn options(bucket_fill: u32) -> StoreOptions {
    StoreOptions {
        bucket_fill,
        log: ByteSize::mib(4),
        cache: ByteSize::kib(512),
        identity: Some(7),
        ..StoreOptions::hash()
    }
}

fn store(options: &StoreOptions) -> (Store, SharedControl, Keyspace) {
    let (drive, control) = Drive::new(ByteSize::mib(512), Bytes::default());
    let store = Store::create_device(drive, options).unwrap();
    let keyspace = store.keyspace("k").unwrap();
    (store, control, keyspace)
}

fn table(keyspace: &Keyspace) -> &Arc<Table> {
    match &keyspace.inner.index {
        Index::Table(table) => table,
        Index::Tree(_) => panic!("it is a tree"),
    }
}

fn exceptions(store: &Store, keyspace: &Keyspace) -> usize {
    table(keyspace).exceptions_from(&store.shared.pages, b"", usize::MAX).unwrap().len()
}

fn key(n: u32) -> [u8; 8] {
    u64::from(n).to_be_bytes()
}

#[test]
fn a_table_grows_by_a_bounded_number_of_buckets_a_commit_and_never_falls_behind() {
    let (store, _, keyspace) = store(&options(20));
    let filled = 4096 * 20 / 100;
    for n in 0..3_000 {
        let before = table(&keyspace).buckets();
        keyspace.put(key(n), vec![n as u8; 100]).unwrap();
        let split = table(&keyspace).buckets() - before;
        assert!(split <= 2, "{split} buckets were split for one record");
    }
    let bytes = table(&keyspace).counts(&store.shared.pages).unwrap().bytes;
    assert_eq!((bytes, table(&keyspace).buckets()), (3_000 * 112, (3_000u64 * 112).div_ceil(filled)));
    let mut batch = Batch::new();
    (3_000..8_000).for_each(|n| batch.put(&keyspace, key(n), vec![n as u8; 100]));
    store.commit(batch, Durability::Synced).unwrap();
    assert_eq!(table(&keyspace).buckets(), (8_000u64 * 112).div_ceil(filled));
    assert_eq!(exceptions(&store, &keyspace), 0, "a fifth of a bucket is used");
    assert!((0..8_000).all(|n| keyspace.get(key(n)).unwrap().unwrap() == vec![n as u8; 100]));
    // Updates change nothing of a table's size.
    let buckets = table(&keyspace).buckets();
    (0..500).for_each(|n| keyspace.put(key(n), [9; 100]).unwrap());
    assert_eq!(table(&keyspace).buckets(), buckets);
    assert!(store.check().unwrap().is_sound());
}

#[test]
fn a_bucket_that_overflows_has_exceptions_which_splits_and_compaction_take_back() {
    let (store, control, keyspace) = store(&options(90));
    let mut most = 0;
    for part in 0..60 {
        let mut batch = Batch::new();
        (0..100).for_each(|n| batch.put(&keyspace, key(part * 100 + n), vec![part as u8; 200]));
        store.commit(batch, Durability::Synced).unwrap();
        most = most.max(exceptions(&store, &keyspace));
    }
    assert!(most > 50, "{most} exceptions at most");
    let value = |n: u32| vec![(n / 100) as u8; 200];
    assert!((0..6_000).all(|n| keyspace.get(key(n)).unwrap().unwrap() == value(n)));
    assert_eq!(keyspace.entries().unwrap().count(), 6_000);
    assert!(store.check().unwrap().is_sound());
    // Values in the side tree are replaced, become long, and go.
    (0..600).for_each(|n| keyspace.put(key(n), vec![1; 3000]).unwrap());
    (600..1_200).for_each(|n| keyspace.delete(key(n)).unwrap());
    (0..600).for_each(|n| keyspace.put(key(n), value(n)).unwrap());
    let check = store.check().unwrap();
    assert!(check.is_sound() && check.keys == 5_400, "{check:?}");
    (1_200..4_000).for_each(|n| keyspace.delete(key(n)).unwrap());
    let (pages, buckets) = (store.stats().pages, table(&keyspace).buckets());
    store.compact().unwrap();
    assert!(table(&keyspace).buckets() < buckets * 2 / 3 && store.stats().pages <= pages);
    let check = store.check().unwrap();
    assert!(check.is_sound() && check.keys == 2_600, "{check:?}");
    drop(keyspace);
    store.close().unwrap();
    let (drive, _) = Drive::new(ByteSize::mib(512), locked(&control).bytes.clone());
    let store = Store::open_device(drive, &options(90)).unwrap();
    let keyspace = store.keyspace("k").unwrap();
    assert!((0..600).chain(4_000..6_000).all(|n| keyspace.get(key(n)).unwrap().unwrap() == value(n)));
}

#[test]
fn an_emptied_table_shrinks_to_one_bucket_and_grows_again() {
    let (store, _, keyspace) = store(&options(20));
    for round in 0..2u8 {
        let mut batch = Batch::new();
        (0..4_000).for_each(|n| batch.put(&keyspace, key(n), [round; 100]));
        store.commit(batch, Durability::Synced).unwrap();
        let pages = store.stats().pages;
        let mut batch = Batch::new();
        (0..4_000).for_each(|n| batch.delete(&keyspace, key(n)));
        store.commit(batch, Durability::Synced).unwrap();
        store.compact().unwrap();
        assert_eq!(table(&keyspace).buckets(), 1);
        assert!(store.stats().pages < pages / 20, "{} of {pages} pages", store.stats().pages);
        assert!(keyspace.is_empty().unwrap() && store.check().unwrap().is_sound());
    }
}

#[test]
fn where_pages_are_takes_less_than_a_byte_of_memory_a_key() {
    let (store, _, keyspace) = store(&options(20));
    for part in 0..5 {
        let mut batch = Batch::new();
        (0..3_000).for_each(|n| batch.put(&keyspace, key(part * 3_000 + n), [part as u8; 128]));
        store.commit(batch, Durability::Synced).unwrap();
    }
    let memory = store.stats().index_memory.0 as f64 / 15_000.0;
    assert!(memory < 1.0, "{memory} bytes a key");
}

#[test]
fn what_needs_an_order_of_keys_is_refused_and_names_the_engine() {
    let (store, _, keyspace) = store(&options(20));
    keyspace.put("a", "1").unwrap();
    let is_refused = |error: StoreError| {
        assert!(
            matches!(error, StoreError::Unordered { .. }) && error.to_string().contains("table-less hash"),
            "{error}"
        );
    };
    is_refused(keyspace.range("a"..).err().unwrap());
    is_refused(keyspace.prefix("a").err().unwrap());
    is_refused(keyspace.iter().err().unwrap());
    is_refused(store.snapshot().range(&keyspace, "a"..).err().unwrap());
    is_refused(store.transaction().prefix(&keyspace, "a").err().unwrap());
    assert_eq!(keyspace.entries().unwrap().next().unwrap().unwrap().0, b"a");
    let error = keyspace.put(vec![1; 488], "x").unwrap_err();
    assert!(matches!(error, StoreError::KeyTooLong { length: 488, max: 487, .. }), "{error}");
    keyspace.put(vec![1; 487], "x").unwrap();
}

#[test]
fn a_dump_goes_from_one_engine_to_the_other() {
    let (hash, _, keyspace) = store(&options(20));
    let mut random = Random(3);
    for n in 0..500 {
        keyspace.put(key(n), vec![n as u8; random.below(2000) as usize]).unwrap();
    }
    let mut dump = Vec::new();
    assert_eq!(hash.backup(&mut dump).unwrap(), 500);
    let (drive, _) = Drive::new(ByteSize::mib(64), Bytes::default());
    let tree = Store::create_device(drive, &StoreOptions { log: ByteSize::mib(4), ..StoreOptions::default() }).unwrap();
    assert_eq!(tree.restore(&mut dump.as_slice()).unwrap(), 500);
    let copy = tree.keyspace("k").unwrap();
    assert!((0..500).all(|n| copy.get(key(n)).unwrap() == keyspace.get(key(n)).unwrap()));
}

#[test]
fn a_snapshot_of_a_table_stays_as_it_was_while_buckets_are_split_and_merged() {
    let (store, _, keyspace) = store(&options(20));
    (0..300).for_each(|n| keyspace.put(key(n), [1; 100]).unwrap());
    let snapshot = store.snapshot();
    let mut scan = snapshot.entries(&keyspace).unwrap();
    let mut seen: Vec<Vec<u8>> = (0..50).map(|_| scan.next().unwrap().unwrap().0).collect();
    let mut batch = Batch::new();
    (0..3_000).for_each(|n| batch.put(&keyspace, key(n), [2; 100]));
    store.commit(batch, Durability::Synced).unwrap();
    seen.extend((0..100).map(|_| scan.next().unwrap().unwrap().0));
    let mut batch = Batch::new();
    (10..3_000).for_each(|n| batch.delete(&keyspace, key(n)));
    store.commit(batch, Durability::Synced).unwrap();
    store.compact().unwrap();
    for entry in scan {
        let (key, value) = entry.unwrap();
        assert_eq!(value, [1; 100]);
        seen.push(key);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..300).map(|n| key(n).to_vec()).collect::<Vec<_>>());
    assert_eq!(keyspace.entries().unwrap().count(), 10);
}

/// Two threads that drop one keyspace, and create it again, leave a store that is sound and opens.
#[test]
fn a_keyspace_that_several_threads_drop_and_create_is_dropped_once_each_time() {
    for engine in super::ENGINES {
        let options = StoreOptions { engine, page: ByteSize::kib(4), ..options(20) };
        let (drive, control) = Drive::new(ByteSize::mib(64), Bytes::default());
        let store = Store::create_device(drive, &options).unwrap();
        std::thread::scope(|scope| {
            for n in 0..3u8 {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..15u8 {
                        let keyspace = store.keyspace("shared").unwrap();
                        for part in 0..4 {
                            match keyspace.put([n, round, part], [round; 300]) {
                                Ok(()) | Err(StoreError::NoKeyspace { .. }) => {}
                                Err(error) => panic!("{engine}: {error}"),
                            }
                        }
                        store.drop_keyspace("shared").unwrap();
                    }
                });
            }
        });
        let check = store.check().unwrap();
        assert!(check.is_sound(), "{engine}: {:?}", check.damage);
        store.close().unwrap();
        let (drive, _) = Drive::new(ByteSize::mib(64), locked(&control).bytes.clone());
        let store = Store::open_device(drive, &options).unwrap();
        let check = store.check().unwrap();
        assert!(check.is_sound() && check.keys == 0, "{engine}: {check:?}");
    }
}
