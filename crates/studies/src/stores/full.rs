//! A drive that has address space left, and no space on its flash: an error, nothing lost, and after deletes the store
//! goes on.

use flashwise_block::ByteSize;
use flashwise_report::study::{StudyCell, StudySection, StudyTable};
use flashwise_store::workload::Workload;
use flashwise_store::{Batch, Durability, Engine, Keyspace, Store, StoreError, StoreOptions};

use super::drives::{self, SharedDrive};
use crate::{Progress, StudyError, StudyOptions};

/// Keys a commit.
const COMMIT: u64 = 100;
/// More keys than the drive takes: by then something is wrong with the study.
const KEYS_MAX: u64 = 1_000_000;
/// Bytes of a value, half of them zeros.
const VALUE: usize = 128;
/// Of the keys, one in so many is kept.
const KEPT: u64 = 2;

/// What happened to an engine.
pub(super) struct Full {
    engine: Engine,
    /// Keys that were taken.
    keys: u64,
    /// The error's words.
    error: String,
    /// Whether every key was there afterwards, and nothing of the commit that failed.
    is_whole: bool,
    /// Keys that were deleted on the full drive.
    deleted: u64,
    /// Keys put after that.
    put: u64,
    /// Whether the store was sound at the end, opened again.
    is_sound: bool,
}

fn put(store: &Store, keyspace: &Keyspace, from: u64, value: &[u8]) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    (from..from + COMMIT).for_each(|n| batch.put(keyspace, Workload::key(n), value));
    store.commit(batch, Durability::Synced)
}

fn delete(store: &Store, keyspace: &Keyspace, keys: &[u64]) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    keys.iter().for_each(|n| batch.delete(keyspace, Workload::key(*n)));
    store.commit(batch, Durability::Synced)
}

fn are_there(keyspace: &Keyspace, mut keys: impl Iterator<Item = u64>) -> Result<bool, StoreError> {
    keys.try_fold(true, |all, n| Ok(all && keyspace.get(Workload::key(n))?.is_some_and(|value| value.len() == VALUE)))
}

fn fill(engine: Engine, seed: u64) -> Result<Full, StudyError> {
    let drive = SharedDrive::new(drives::small()?, seed)?;
    let defaults = match engine {
        Engine::BTree => StoreOptions::default(),
        Engine::Hash => StoreOptions::hash(),
    };
    let options = StoreOptions { log: ByteSize::mib(1), cache: ByteSize::mib(8), identity: Some(seed), ..defaults };
    let store = Store::create_device(Box::new(drive.clone()), &options)?;
    let keyspace = store.keyspace("keys")?;
    let value = Workload { keys: 1, value_bytes: VALUE, random_bytes: VALUE / 2, seed };
    let mut values = value.updates(flashwise_store::workload::Distribution::Uniform, u64::MAX, 1);
    let mut value = || values.next().and_then(|mut changes| changes.pop()).map_or_else(Vec::new, |(_, value)| value);
    let mut keys = 0;
    let error = loop {
        match put(&store, &keyspace, keys, &value()) {
            Ok(()) if keys < KEYS_MAX => keys += COMMIT,
            Ok(()) => return Err(StudyError::Lost),
            Err(error) if error.is_full() => break error.to_string(),
            Err(error) => return Err(error.into()),
        }
    };
    let is_whole = are_there(&keyspace, 0..keys)? && keyspace.get(Workload::key(keys))?.is_none();
    let gone: Vec<u64> = (0..keys).filter(|n| n % KEPT != 0).collect();
    let mut deleted = 0;
    for part in gone.chunks(COMMIT as usize) {
        match delete(&store, &keyspace, part) {
            Ok(()) => deleted += part.len() as u64,
            Err(error) if error.is_full() => break,
            Err(error) => return Err(error.into()),
        }
    }
    store.compact()?;
    let mut more = 0;
    while more < deleted / 2 {
        match put(&store, &keyspace, keys + more, &value()) {
            Ok(()) => more += COMMIT,
            Err(error) if error.is_full() => break,
            Err(error) => return Err(error.into()),
        }
    }
    drop(keyspace);
    store.close()?;
    let store = Store::open_device(Box::new(drive), &StoreOptions { create: false, ..options })?;
    let keyspace = store.keyspace("keys")?;
    let kept = (0..keys).step_by(KEPT as usize).chain(keys..keys + more);
    let is_sound = store.check()?.is_sound() && are_there(&keyspace, kept)?;
    Ok(Full { engine, keys, error, is_whole, deleted, put: more, is_sound })
}

/// Fills a drive with each engine.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Vec<Full>, StudyError> {
    let engines = [Engine::BTree, Engine::Hash];
    crate::parallel::map("full drive", &engines, progress, |&engine| fill(engine, options.seed))
}

/// The section.
pub(super) fn section(all: &[Full]) -> StudySection {
    let yes = |is_so: bool| StudyCell::text(if is_so { "yes" } else { "no" });
    let number = |n: u64| StudyCell::text(flashwise_block::grouped(n));
    let row = |full: &Full| {
        vec![
            StudyCell::text(full.engine.to_string()),
            number(full.keys),
            StudyCell::text(&full.error),
            yes(full.is_whole),
            number(full.deleted),
            number(full.put),
            yes(full.is_sound),
        ]
    };
    StudySection {
        title: "A drive whose flash is full while its address space is not".to_owned(),
        text: vec![format!(
            "A small drive that compresses: {} of address space, {} of flash. Keys of 16 bytes with values of {VALUE} \
             are put, {COMMIT} a commit, until a commit fails; then every second key is deleted, the store compacted, \
             and half as many keys are put. At the end the store is opened again, checked, and every key is read.",
            ByteSize(drives::SMALL_CAPACITY),
            ByteSize(drives::SMALL_PHYSICAL),
        )],
        tables: vec![StudyTable {
            caption: "until the drive is full, and after".to_owned(),
            columns: ["", "keys", "error", "all keys kept", "deleted", "put again", "sound at the end"]
                .map(str::to_owned)
                .to_vec(),
            rows: all.iter().map(row).collect(),
        }],
        charts: Vec::new(),
    }
}
