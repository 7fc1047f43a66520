//! A run of one of our stores on a drive in virtual time.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, ByteSize, DeviceCounters, IoBuffer, Request, execute, interrupt};
use flashwise_store::workload::{Commits, KEY_BYTES, Workload};
use flashwise_store::{Batch, Durability, Engine, Keyspace, LogForm, Store, StoreOptions};

use super::Scale;
use super::case::{Case, DISTRIBUTIONS, Outcome, Phase, user_bytes};
use super::drives::{Drive, SharedDrive};
use crate::StudyError;

/// Bytes of a request that writes packed records.
const REQUEST: usize = 256 << 10;
const BLOCK: usize = 4096;

/// The options of a case's store.
fn options(case: &Case, engine: Engine, workload: &Workload) -> StoreOptions {
    let defaults = match engine {
        Engine::BTree => StoreOptions::default(),
        Engine::Hash => StoreOptions::hash(),
    };
    let tuning = &case.tuning;
    // What the guide recommends for drives that store zeros as anything else.
    let log_form = if case.drive == Drive::Plain { LogForm::Packed } else { LogForm::Sparse };
    StoreOptions {
        page: tuning.page.unwrap_or(defaults.page),
        segment: tuning.segment.unwrap_or(defaults.segment),
        bucket_fill: tuning.fill_percent.unwrap_or(defaults.bucket_fill),
        delta_threshold: tuning.threshold,
        log_form: tuning.log.unwrap_or(log_form),
        cache: case.cache(workload),
        identity: Some(workload.seed),
        ..defaults
    }
}

/// Commits a phase, and writes back what is dirty at its end.
fn phase(
    store: &Store,
    keyspace: &Keyspace,
    commits: Commits,
    counters: impl Fn() -> DeviceCounters,
) -> Result<Phase, StudyError> {
    let (before, mut user, mut count) = (counters(), 0, 0);
    for changes in commits {
        interrupt::check()?;
        user += user_bytes(&changes);
        count += 1;
        let mut batch = Batch::new();
        changes.into_iter().for_each(|(key, value)| batch.put(keyspace, key, value));
        store.commit(batch, Durability::Synced)?;
    }
    store.checkpoint()?;
    Ok(Phase::new(user, count, &before, &counters()))
}

/// Runs it.
pub(super) fn run(case: &Case, engine: Engine, scale: &Scale, seed: u64) -> Result<Outcome, StudyError> {
    let workload = case.workload(scale, seed);
    let drive = SharedDrive::new(case.drive.config()?, seed)?;
    let store = Store::create_device(Box::new(drive.clone()), &options(case, engine, &workload))?;
    let keyspace = store.keyspace("keys")?;
    let load = phase(&store, &keyspace, workload.load(), || drive.counters())?;
    let updates = case.updates(scale);
    let [uniform, zipf] = DISTRIBUTIONS.map(|distribution| {
        phase(&store, &keyspace, workload.updates(distribution, updates, case.commit), || drive.counters())
    });
    let (uniform, zipf) = (uniform?, zipf?);
    verify(&workload, case, updates, &keyspace)?;
    let physical = drive.space_use().map(|space| space.physical_bytes as f64);
    drop(keyspace);
    store.close()?;
    let space = physical.map_or(Ok(0.0), |physical| Ok::<_, StudyError>(physical / live_bytes(case, &workload)?))?;
    Ok(Outcome { load, uniform, zipf, space })
}

/// The values that a run leaves behind.
fn last_values(workload: &Workload, case: &Case, updates: u64) -> BTreeMap<[u8; KEY_BYTES], Vec<u8>> {
    let phases = DISTRIBUTIONS.into_iter().flat_map(|d| workload.updates(d, updates, case.commit));
    phases.flatten().collect()
}

/// What came out must be what went in, or its cost says nothing. Every hundredth key that was updated is compared.
fn verify(workload: &Workload, case: &Case, updates: u64, keyspace: &Keyspace) -> Result<(), StudyError> {
    for (key, value) in last_values(workload, case, updates).into_iter().step_by(100) {
        if keyspace.get(key)?.as_deref() != Some(value.as_slice()) {
            return Err(StudyError::Damaged(format!("{case}: a key lost its last value")));
        }
    }
    Ok(())
}

/// Physical bytes of the records alone: in order of their keys, packed, on a new drive that compresses.
pub(super) fn live_bytes(case: &Case, workload: &Workload) -> Result<f64, StudyError> {
    let mut records: Vec<_> = workload.load().flatten().collect();
    records.sort_unstable();
    let image: Vec<u8> = records.into_iter().flat_map(|(key, value)| key.into_iter().chain(value)).collect();
    let mut drive = SharedDrive::new(case.drive.config()?, workload.seed)?;
    let mut offset = 0;
    for part in image.chunks(REQUEST) {
        let mut buffer = IoBuffer::zeroed(part.len().next_multiple_of(BLOCK));
        buffer[..part.len()].copy_from_slice(part);
        let length = buffer.len() as u64;
        execute(&mut drive, Request::write(ByteSize(offset), ByteSize(length)).with_buffer(buffer))?.result?;
        offset += length;
    }
    Ok(drive.space_use().ok_or(StudyError::Lost)?.physical_bytes as f64)
}
