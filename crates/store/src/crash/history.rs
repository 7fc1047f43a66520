//! Random histories of a store, and what must be there after a cut.

use std::collections::BTreeMap;

use flashwise_block::ByteSize;

use super::drive::{Bytes, Drive, Random, SharedControl, locked};
use crate::{Batch, Durability, Engine, LogForm, Result, Store, StoreError, StoreOptions};

pub(crate) const CAPACITY: ByteSize = ByteSize::mib(64);

/// Everything in a store: by keyspace and key.
pub(crate) type Content = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// A change of one key.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub keyspace: &'static str,
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

pub(crate) const KEYSPACES: [&str; 2] = ["a", "b"];

pub(crate) const ENGINES: [Engine; 2] = [Engine::BTree, Engine::Hash];

/// Options under which pages split, merge and are written, and the log comes around, within few commits.
pub(crate) fn options(random: &mut Random, engine: Engine) -> StoreOptions {
    // Full buckets have exceptions; empty ones are many.
    let bucket_fill = match engine {
        Engine::BTree => 0,
        Engine::Hash => [10, 20, 60, 90][random.below(4) as usize],
    };
    StoreOptions {
        engine,
        bucket_fill,
        page: ByteSize::kib(4),
        segment: ByteSize([64, 128, 256][random.below(3) as usize]),
        log: ByteSize::kib([128, 160, 256][random.below(3) as usize]),
        log_form: if random.below(3) == 0 { LogForm::Packed } else { LogForm::Sparse },
        identity: Some(random.next()),
        cache: ByteSize::kib(64),
        delta_threshold: [None, Some(ByteSize(0)), Some(ByteSize(2048))][random.below(3) as usize],
        write_concurrency: 1 + random.below(6) as usize,
        give_back_pages: 1 + random.below(4) as usize,
        buffer: ByteSize::kib(8),
        ..StoreOptions::default()
    }
}

/// A history: what was tried, and what was acknowledged when.
pub(crate) struct History {
    pub random: Random,
    /// The state before the first commit.
    pub content: Content,
    pub commits: Vec<Commit>,
}

pub(crate) struct Commit {
    pub changes: Vec<Change>,
    /// Events of the drive before it began.
    pub began: usize,
    /// Events when it, and all before it, were acknowledged as durable.
    pub durable: Option<usize>,
}

impl History {
    pub(crate) fn new(seed: u64, content: Content) -> Self {
        Self { random: Random(seed), content, commits: Vec::new() }
    }

    fn change(&mut self) -> Change {
        let random = &mut self.random;
        let keyspace = KEYSPACES[usize::from(random.below(4) == 0)];
        let key = match random.below(8) {
            // Long keys with a long common prefix, and short ones.
            0 => [vec![b'p'; 100 + random.below(80) as usize], vec![random.below(8) as u8]].concat(),
            _ => (random.below(160) as u16).to_be_bytes().to_vec(),
        };
        let length = match random.below(24) {
            0 => 2000 + random.below(9000),
            1..=3 => 300 + random.below(600),
            4 => 0,
            _ => 20 + random.below(120),
        };
        let value = match random.below(4) {
            0 => None,
            _ => Some((0..length).map(|n| (random.0.wrapping_add(n * 7) >> 3) as u8).collect()),
        };
        random.next();
        Change { keyspace, key, value }
    }

    fn changes(&mut self) -> Vec<Change> {
        let most = [1, 1, 3, 12][self.random.below(4) as usize];
        let count = 1 + self.random.below(most);
        (0..count).map(|_| self.change()).collect()
    }

    /// Marks everything so far as durable.
    fn synced(&mut self, control: &SharedControl) {
        let now = locked(control).events.len();
        self.commits.iter_mut().rev().take_while(|commit| commit.durable.is_none()).for_each(|commit| {
            commit.durable = Some(now);
        });
    }

    /// Commits and upkeep, until something fails or `count` commits are made.
    pub(crate) fn run(&mut self, store: &Store, control: &SharedControl, count: usize) -> Result<()> {
        for _ in 0..count {
            match self.random.below(40) {
                0 => {
                    store.checkpoint()?;
                    self.synced(control);
                }
                1 => {
                    store.compact()?;
                    self.synced(control);
                }
                2 => {
                    store.backup(&mut std::io::sink())?;
                }
                3 => {
                    store.sync()?;
                    self.synced(control);
                }
                _ => {}
            }
            self.commit(store, control)?;
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self, store: &Store, control: &SharedControl) -> Result<()> {
        let changes = self.changes();
        let level = match self.random.below(8) {
            0 => Durability::Buffered,
            1 | 2 => Durability::Flushed,
            _ => Durability::Synced,
        };
        let mut batch = Batch::new();
        let began = locked(control).events.len();
        self.commits.push(Commit { changes: changes.clone(), began, durable: None });
        for Change { keyspace, key, value } in &changes {
            let keyspace = store.keyspace(keyspace)?;
            match value {
                Some(value) => batch.put(&keyspace, key, value),
                None => batch.delete(&keyspace, key),
            }
        }
        match store.commit(batch, level) {
            // Nothing of it is there then.
            Err(StoreError::BatchTooLarge { .. }) => {
                self.commits.pop();
                return Ok(());
            }
            done => done?,
        }
        if level == Durability::Synced {
            self.synced(control);
        }
        Ok(())
    }

    /// The commits that must be there, and those that may be, after a cut at which `cut` events were done.
    fn bounds(&self, cut: usize) -> (usize, usize) {
        let least = self.commits.iter().rposition(|commit| commit.durable.is_some_and(|at| at <= cut));
        let most = self.commits.partition_point(|commit| commit.began <= cut);
        (least.map_or(0, |last| last + 1), most)
    }

    /// Which state of the history `found` is, after a cut; the state's number of commits, or what is wrong.
    pub(crate) fn find(&self, found: &Content, cut: usize) -> std::result::Result<usize, String> {
        let (least, most) = self.bounds(cut);
        let mut state = self.content.clone();
        let mut differs = Vec::new();
        for count in 0..=most {
            if count > 0 {
                apply(&mut state, &self.commits[count - 1].changes);
            }
            if count >= least {
                if state == *found {
                    return Ok(count);
                }
                differs.push(format!("state {count}: {}", difference(&state, found)));
            }
        }
        let commits = self.commits.len();
        Err(format!("none of the states {least} to {most} of {commits}; {}", differs.join("; ")))
    }

    /// The state after some commits.
    pub(crate) fn state(&self, commits: usize) -> Content {
        let mut state = self.content.clone();
        self.commits[..commits].iter().for_each(|commit| apply(&mut state, &commit.changes));
        state
    }
}

pub(crate) fn apply(state: &mut Content, changes: &[Change]) {
    for Change { keyspace, key, value } in changes {
        let key = ((*keyspace).to_owned(), key.clone());
        match value {
            Some(value) => _ = state.insert(key, value.clone()),
            None => _ = state.remove(&key),
        }
    }
}

fn difference(expected: &Content, found: &Content) -> String {
    let short = |key: &(String, Vec<u8>)| format!("{}/{}", key.0, key.1[..key.1.len().min(6)].escape_ascii());
    let missing: Vec<_> = expected.keys().filter(|key| !found.contains_key(*key)).map(short).take(3).collect();
    let extra: Vec<_> = found.keys().filter(|key| !expected.contains_key(*key)).map(short).take(3).collect();
    let is_other = |(key, value): &(&(String, Vec<u8>), &Vec<u8>)| expected.get(*key).is_some_and(|e| e != *value);
    let other: Vec<_> = found.iter().filter(is_other).map(|(key, _)| short(key)).take(3).collect();
    format!("missing {missing:?}, extra {extra:?}, other {other:?}")
}

/// Everything in a store, read forwards; and backwards, which must be the same.
pub(crate) fn content(store: &Store) -> Result<Content> {
    let mut content = Content::new();
    for name in store.keyspaces()? {
        let keyspace = store.keyspace(&name)?;
        let mut backwards = Vec::new();
        for entry in keyspace.entries()?.rev() {
            backwards.push(entry?);
        }
        for entry in keyspace.entries()? {
            let (key, value) = entry?;
            assert_eq!(backwards.pop().as_ref(), Some(&(key.clone(), value.clone())), "backwards");
            content.insert((name.clone(), key), value.to_vec());
        }
        assert!(backwards.is_empty());
    }
    Ok(content)
}

/// Opens a store on a drive with this content.
pub(crate) fn open(bytes: Bytes, options: &StoreOptions) -> (Result<Store>, SharedControl) {
    let (drive, control) = Drive::new(CAPACITY, bytes);
    (Store::open_device(drive, options), control)
}

/// Opens the store of a process that is killed now; its drive goes on.
pub(crate) fn kill(control: &SharedControl, options: &StoreOptions) -> (Result<Store>, SharedControl) {
    let killed = locked(control).clone();
    let (drive, control) = Drive::again(CAPACITY, killed);
    (Store::open_device(drive, options), control)
}

/// A new store.
pub(crate) fn create(options: &StoreOptions) -> (Result<Store>, SharedControl) {
    let (drive, control) = Drive::new(CAPACITY, Bytes::default());
    (Store::create_device(drive, options), control)
}
