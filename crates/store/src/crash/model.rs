//! The store beside a map in memory: random operations, every kind of read, reopening.

use std::collections::BTreeMap;
use std::ops::Bound;

use flashwise_block::ByteSize;

use super::drive::{Bytes, Drive, Random, SharedControl, locked};
use super::history::ENGINES;
use crate::{Batch, Durability, Engine, Keyspace, LogForm, Scan, Snapshot, Store, StoreError, StoreOptions};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const CAPACITY: ByteSize = ByteSize::mib(256);

fn options(random: &mut Random, engine: Engine) -> StoreOptions {
    let page = [4, 8, 16, 32][random.below(4) as usize];
    StoreOptions {
        engine,
        bucket_fill: [10, 20, 60, 90][random.below(4) as usize],
        page: ByteSize::kib(page),
        segment: ByteSize([64, 128, 512][random.below(3) as usize]),
        log: ByteSize::kib(page * (32 + random.below(64))),
        log_form: if random.below(2) == 0 { LogForm::Packed } else { LogForm::Sparse },
        identity: Some(random.next()),
        cache: ByteSize::kib(page * 20),
        ..StoreOptions::default()
    }
}

fn key(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0 => Vec::new(),
        1 => vec![0xff; random.below(400) as usize],
        2 => [vec![b'x'; 200], random.below(50).to_be_bytes().to_vec()].concat(),
        _ => random.below(900).to_be_bytes()[5..].to_vec(),
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    let length = match random.below(40) {
        0 => random.below(60_000),
        1..4 => random.below(4000),
        _ => random.below(200),
    };
    vec![random.next() as u8; length as usize]
}

/// Entries of a scan that is read from both ends, in any order, until they meet.
fn from_both_ends(mut scan: Scan, random: &mut Random) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let is_front = random.below(3) > 0;
        let next = if is_front { scan.next() } else { scan.next_back() };
        let Some(entry) = next else { break };
        let (key, value) = entry.unwrap();
        if is_front { &mut front } else { &mut back }.push((key, value.to_vec()));
    }
    back.reverse();
    front.extend(back);
    front
}

struct Both {
    store: Store,
    control: SharedControl,
    keyspace: Keyspace,
    map: Map,
    options: StoreOptions,
    snapshots: Vec<(Snapshot, Map)>,
}

impl Both {
    fn new(random: &mut Random, engine: Engine) -> Self {
        let options = options(random, engine);
        let (drive, control) = Drive::new(CAPACITY, Bytes::default());
        let store = Store::create_device(drive, &options).unwrap();
        let keyspace = store.keyspace("k").unwrap();
        Self { store, control, keyspace, map: Map::new(), options, snapshots: Vec::new() }
    }

    fn write(&mut self, random: &mut Random) {
        let mut batch = Batch::new();
        let mut map = self.map.clone();
        let most = if random.below(8) == 0 { 60 } else { 3 };
        for _ in 0..1 + random.below(most) {
            let key = key(random);
            // Phases that grow and phases that shrink.
            if random.below(100) < 30 + 40 * (random.0 >> 60 & 1) {
                batch.delete(&self.keyspace, &key);
                map.remove(&key);
            } else {
                let value = value(random);
                batch.put(&self.keyspace, &key, &value);
                map.insert(key, value);
            }
        }
        let until = [Durability::Synced, Durability::Flushed, Durability::Buffered][random.below(3) as usize];
        match self.store.commit(batch, until) {
            Ok(()) => self.map = map,
            Err(StoreError::BatchTooLarge { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn read(&self, random: &mut Random) {
        let wanted = key(random);
        assert_eq!(self.keyspace.get(&wanted).unwrap().as_deref(), self.map.get(&wanted).map(Vec::as_slice));
        if self.options.engine == Engine::Hash {
            return self.read_all(random);
        }
        let (mut low, mut high) = (key(random), key(random));
        if low > high {
            std::mem::swap(&mut low, &mut high);
        }
        let bounds = match random.below(5) {
            0 => (Bound::Unbounded, Bound::Excluded(high)),
            1 => (Bound::Excluded(low), Bound::Unbounded),
            2 => (Bound::Included(low.clone()), Bound::Included(low)),
            3 => (Bound::Excluded(low), Bound::Included([high, vec![1]].concat())),
            _ => (Bound::Included(low), Bound::Included(high)),
        };
        let expected: Vec<_> = self.map.range(bounds.clone()).map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(from_both_ends(self.keyspace.range(bounds).unwrap(), random), expected);
    }

    fn read_all(&self, random: &mut Random) {
        let refused = self.keyspace.range::<&[u8]>(..);
        assert!(matches!(refused, Err(StoreError::Unordered { .. })));
        let mut found = from_both_ends(self.keyspace.entries().unwrap(), random);
        found.sort_unstable();
        let expected: Vec<_> = self.map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(found, expected);
    }

    fn prefix(&self, random: &mut Random) {
        if self.options.engine == Engine::Hash {
            return;
        }
        let prefix = key(random);
        let prefix = &prefix[..prefix.len().min(1 + random.below(2) as usize)];
        let found: Vec<_> = self.keyspace.prefix(prefix).unwrap().map(|entry| entry.unwrap().0).collect();
        let expected: Vec<_> = self.map.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        assert_eq!(found, expected);
    }

    fn snapshot(&mut self, random: &mut Random) {
        if self.snapshots.len() > 2 {
            let (snapshot, map) = self.snapshots.remove(random.below(3) as usize);
            let found: Map =
                snapshot.entries(&self.keyspace).unwrap().map(|e| e.map(|(k, v)| (k, v.to_vec())).unwrap()).collect();
            assert_eq!(found, map);
        }
        self.snapshots.push((self.store.snapshot(), self.map.clone()));
        for (snapshot, map) in &self.snapshots {
            let wanted = key(random);
            let found = snapshot.get(&self.keyspace, &wanted).unwrap();
            assert_eq!(found.as_deref(), map.get(&wanted).map(Vec::as_slice));
        }
    }

    fn transaction(&mut self, random: &mut Random) {
        let mut transaction = self.store.transaction();
        let mut map = self.map.clone();
        for _ in 0..1 + random.below(6) {
            let (key, value) = (key(random), value(random));
            if value.len() % 3 == 0 {
                transaction.delete(&self.keyspace, &key);
                map.remove(&key);
            } else {
                transaction.put(&self.keyspace, &key, &value);
                map.insert(key, value);
            }
        }
        let wanted = key(random);
        assert_eq!(transaction.get(&self.keyspace, &wanted).unwrap().as_deref(), map.get(&wanted).map(Vec::as_slice));
        if self.options.engine == Engine::Hash {
            let found: Map = transaction
                .entries(&self.keyspace)
                .unwrap()
                .map(|e| e.map(|(k, v)| (k, v.to_vec())).unwrap())
                .collect();
            assert_eq!(found, map);
        } else {
            let low = key(random);
            let found = transaction.range(&self.keyspace, low.clone()..).unwrap().map(|e| e.unwrap().0);
            assert!(found.eq(map.range(low..).map(|(key, _)| key.clone())));
        }
        match random.below(3) {
            0 => drop(transaction),
            1 => {
                // Somebody else changes what was read.
                self.store.keyspace("k").unwrap().put(&wanted, b"other").unwrap();
                self.map.insert(wanted.clone(), b"other".to_vec());
                let is_own = transaction.commit(Durability::Synced);
                assert!(matches!(is_own, Err(StoreError::Conflict) | Ok(())), "{is_own:?}");
                if is_own.is_ok() {
                    // It had changed that key itself.
                    self.map = map;
                }
            }
            _ => match transaction.commit(Durability::Flushed) {
                Ok(()) => self.map = map,
                Err(StoreError::BatchTooLarge { .. }) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }

    fn reopen(self, is_killed: bool) -> Self {
        let Self { store, control, keyspace, map, options, snapshots } = self;
        drop((keyspace, snapshots));
        if is_killed {
            store.sync().unwrap();
        }
        let killed = locked(&control).bytes.clone();
        drop(store);
        let bytes = if is_killed { killed } else { locked(&control).bytes.clone() };
        let (drive, control) = Drive::new(CAPACITY, bytes);
        let store = Store::open_device(drive, &options).unwrap();
        let keyspace = store.find_keyspace("k").unwrap().unwrap();
        Self { store, control, keyspace, map, options, snapshots: Vec::new() }
    }
}

fn run(engine: Engine, seed: u64, steps: usize) {
    let mut random = Random(seed);
    let mut both = Both::new(&mut random, engine);
    for _ in 0..steps {
        match random.below(40) {
            0 => both = both.reopen(random.below(2) == 0),
            1 => both.store.compact().unwrap(),
            2 => both.store.checkpoint().unwrap(),
            3..7 => both.snapshot(&mut random),
            7..10 => both.transaction(&mut random),
            10..15 => both.read(&mut random),
            15..17 => both.prefix(&mut random),
            _ => both.write(&mut random),
        }
    }
    let all: Map = both.keyspace.entries().unwrap().map(|e| e.map(|(k, v)| (k, v.to_vec())).unwrap()).collect();
    assert_eq!(all, both.map);
    both.snapshots.clear();
    let check = both.store.check().unwrap();
    assert!(check.is_sound(), "{:?}", check.damage);
    assert_eq!(check.keys, both.map.len() as u64);
    assert_eq!(check.pages, both.store.stats().pages, "pages in use");
}

fn many(seeds: std::ops::Range<u64>, steps: usize) {
    for (engine, seed) in ENGINES.into_iter().flat_map(|engine| seeds.clone().map(move |seed| (engine, seed))) {
        let done = std::panic::catch_unwind(|| run(engine, seed, steps));
        assert!(done.is_ok(), "{engine}, seed {seed}, {steps} steps: see above");
    }
}

#[test]
fn the_store_is_a_map_whatever_is_done_with_it() {
    many(1..13, 400);
}

#[test]
#[ignore = "minutes: the same, with many more seeds"]
fn the_store_is_a_map_whatever_is_done_with_it_for_long() {
    many(100..130, 2000);
}
