//! Keyspaces that are dropped: whatever they hold, on whatever drive, and cut in the middle.

use flashwise_block::ByteSize;

use super::drive::{Kept, Random, Record, locked};
use super::history::{ENGINES, create, open};
use crate::{Batch, Durability, Engine, Store, StoreError, StoreOptions};

fn small(engine: Engine) -> StoreOptions {
    StoreOptions {
        engine,
        page: ByteSize::kib(8),
        log: ByteSize::kib(256),
        cache: ByteSize::kib(256),
        identity: Some(3),
        ..StoreOptions::default()
    }
}

/// Keys with a long common prefix, which a page has once and a log record each time.
fn fill(store: &Store, name: &str, count: u32) {
    let keyspace = store.keyspace(name).unwrap();
    for n in 0..count {
        let mut batch = Batch::new();
        // In no order: leaves between others have both fences, and so a prefix.
        let last = n.wrapping_mul(0x9e37_79b9).to_be_bytes().to_vec();
        batch.put(&keyspace, [vec![b'p'; 980], last].concat(), [n as u8; 8]);
        store.commit(batch, Durability::Buffered).unwrap();
    }
    store.sync().unwrap();
}

#[test]
fn a_keyspace_of_long_keys_is_dropped_with_the_smallest_log() {
    for engine in ENGINES {
        let (store, control) = create(&small(engine));
        let store = store.unwrap();
        fill(&store, "a", 1_500);
        let used = store.stats().pages;
        assert!(store.drop_keyspace("a").unwrap());
        assert!(store.stats().pages < used / 4, "{} of {used} pages", store.stats().pages);
        let check = store.check().unwrap();
        assert!(check.is_sound(), "{engine}: {:?}", check.damage);
        drop(store);
        let (store, _) = open(locked(&control).bytes.clone(), &small(engine));
        assert!(store.unwrap().check().unwrap().is_sound());
    }
}

/// The rest of a keyspace is freed by the commits after the next opening, which does not wait for it.
#[test]
fn a_drop_that_is_cut_anywhere_ends_with_the_commits_that_follow() {
    for engine in ENGINES {
        let options = StoreOptions { page: ByteSize::kib(4), log: ByteSize::kib(160), ..small(engine) };
        let (store, control) = create(&options);
        let store = store.unwrap();
        let kept = store.keyspace("kept").unwrap();
        kept.put("key", vec![1; 9_000]).unwrap();
        let gone = store.keyspace("gone").unwrap();
        for n in 0..1_200u32 {
            let mut batch = Batch::new();
            let length = if n % 100 == 0 { 6_000 } else { 120 };
            batch.put(&gone, n.wrapping_mul(0x9e37_79b9).to_be_bytes(), vec![n as u8; length]);
            store.commit(batch, Durability::Buffered).unwrap();
        }
        drop((kept, gone));
        store.checkpoint().unwrap();
        let began = locked(&control).events.len();
        store.drop_keyspace("gone").unwrap();
        let ended = locked(&control).events.len();
        drop(store);
        let (mut record, mut random) = (Record::new(&control), Random(11));
        let (mut cut, mut unfinished) = (began, 0);
        while cut <= ended {
            let image = record.image(cut, Kept::choose(&mut random), &mut random);
            cut += 1 + random.below(2) as usize;
            let (store, control) = open(image, &options);
            let store = store.unwrap();
            if store.keyspaces().unwrap().len() == 2 {
                continue;
            }
            let requests = locked(&control).requests;
            assert!(requests < 200, "{engine}: the opening made {requests} requests");
            let is_unfinished = store.stats().pages > 20;
            unfinished += usize::from(is_unfinished);
            let kept = store.keyspace("kept").unwrap();
            for n in 0..100u16 {
                let mut batch = Batch::new();
                batch.put(&kept, n.to_be_bytes(), "");
                store.commit(batch, Durability::Buffered).unwrap();
            }
            assert_eq!(kept.get("key").unwrap().unwrap(), vec![1; 9_000]);
            let check = store.check().unwrap();
            assert!(check.is_sound() && check.keys == 101, "{engine}: {check:?}");
            let mut after = store.keyspaces().unwrap();
            after.sort();
            assert_eq!(after, ["kept"]);
            let left = crate::catalog::list_dropped(&store.snapshot().0).unwrap();
            assert!(left.is_empty(), "{engine}: {left:?} after 100 commits");
        }
        assert!(unfinished > 0, "{engine}: {unfinished} drops were cut in the middle");
    }
}

/// On a drive without physical space: what takes space fails, what frees some works, and the store goes on.
#[test]
fn a_full_drive_is_no_reason_to_open_the_store_again_after_a_drop_or_a_compaction() {
    for engine in ENGINES {
        let options = StoreOptions { page: ByteSize::kib(4), log: ByteSize::kib(256), ..small(engine) };
        let (store, control) = create(&options);
        let store = store.unwrap();
        for name in ["a", "b"] {
            let keyspace = store.keyspace(name).unwrap();
            for n in 0..300u32 {
                keyspace.put(n.wrapping_mul(0x9e37_79b9).to_be_bytes(), vec![n as u8; 300]).unwrap();
            }
        }
        // Not even the log's next blocks have space.
        let blocks = locked(&control).bytes.stored().len();
        locked(&control).space_blocks = Some(blocks);
        let mut dump = Vec::new();
        let _ = store.backup(&mut dump);
        let keyspace = store.keyspace("a").unwrap();
        (0..200u32).for_each(|n| drop(keyspace.put(n.to_be_bytes(), vec![7; 2_000])));
        let _ = store.compact();
        let _ = store.drop_keyspace("b");
        let _ = store.restore(&mut dump.as_slice());
        let _ = store.compact();
        let full = store.commit(Batch::new(), Durability::Synced);
        assert!(!matches!(full, Err(StoreError::Poisoned { .. })), "{engine}: {full:?}");
        locked(&control).space_blocks = None;
        store.keyspace("a").unwrap().put("k", "v").unwrap();
        let _ = store.drop_keyspace("b");
        store.compact().unwrap();
        let check = store.check().unwrap();
        assert!(check.is_sound(), "{engine}: {:?}", check.damage);
    }
}
