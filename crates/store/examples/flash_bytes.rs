//! Flash bytes per user byte of a store on a simulated drive: load, then updates, uniform and Zipf-distributed.
//!
//! ```text
//! cargo run --release -p flashwise-store --features workload --example flash_bytes -- \
//!   examples/compressing.toml --keys 1000000 --batch 1000 --updates 1000000
//! ```
//!
//! Options: `--engine b-tree|hash`, `--fill PERCENT` (of the hash's buckets), `--keys N`, `--value BYTES` (128),
//! `--batch N` (keys a commit), `--updates N`, `--cache-share F` (cache ÷ keys and values, 0.22), `--threshold BYTES`
//! (fixed T; adaptive without), `--segment BYTES`, `--page BYTES`, `--log BYTES`, `--packed`, `--seed N`. Deduplication
//! is off, and the write buffer has 3 MiB. Half of a value's bytes are zeros.

use std::error::Error;
use std::time::Instant;

use flashwise_block::{BlockDevice, ByteSize, DeviceCounters, FlashCounters};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_store::workload::{Commits, Distribution, KEY_BYTES, Workload};
use flashwise_store::{Batch, Durability, Keyspace, LogForm, Stats, Store, StoreError, StoreOptions};

struct Arguments {
    drive: String,
    options: Vec<(String, String)>,
}

impl Arguments {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut words = std::env::args().skip(1);
        let drive = words.next().ok_or("usage: flash_bytes DRIVE.toml [--keys N] …")?;
        let mut options = Vec::new();
        while let Some(name) = words.next() {
            let value =
                if name == "--packed" { String::new() } else { words.next().ok_or("an option has no value")? };
            options.push((name, value));
        }
        Ok(Self { drive, options })
    }

    fn get<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Box<dyn Error>>
    where
        T::Err: Error + 'static,
    {
        let found = self.options.iter().find(|option| option.0 == name);
        Ok(found.map(|option| option.1.parse()).transpose()?)
    }
}

/// Programmed bytes so far.
fn flash(stats: &Stats) -> u64 {
    let counters: DeviceCounters = stats.device.unwrap_or_default();
    let flash: FlashCounters = counters.flash.unwrap_or_default();
    flash.bytes_programmed.0 - flash.gc_bytes_moved.0
}

#[allow(clippy::print_stdout, reason = "a program's output")]
fn report(name: &str, before: &Stats, after: &Stats, started: Instant) {
    let user = (after.user_bytes.0 - before.user_bytes.0) as f64;
    let per_user = |after: ByteSize, before: ByteSize| (after.0 - before.0) as f64 / user;
    let (a, b) = (&after.io, &before.io);
    let commits = after.commits - before.commits;
    println!(
        "{name:<10} flash {:6.2}  host {:6.2}  log {:5.2}  image {:5.2}  delta {:5.2}  flushes/commit {:.2}  deltas \
         {:.0} %  T {}  {:.1} s",
        (flash(after) - flash(before)) as f64 / user,
        (after.host_write_amplification().unwrap_or_default() * after.user_bytes.0 as f64
            - before.host_write_amplification().unwrap_or_default() * before.user_bytes.0 as f64)
            / user,
        per_user(a.log_bytes, b.log_bytes),
        per_user(a.image_bytes, b.image_bytes),
        per_user(a.delta_bytes, b.delta_bytes),
        (a.flushes - b.flushes) as f64 / commits.max(1) as f64,
        100.0 * (after.delta_writes - before.delta_writes) as f64
            / (after.delta_writes + after.image_writes - before.delta_writes - before.image_writes).max(1) as f64,
        after.delta_threshold,
        started.elapsed().as_secs_f64(),
    );
}

/// Commits a phase.
fn run(store: &Store, keyspace: &Keyspace, commits: Commits) -> Result<(), StoreError> {
    for changes in commits {
        let mut batch = Batch::new();
        changes.into_iter().for_each(|(key, value)| batch.put(keyspace, key, value));
        store.commit(batch, Durability::Synced)?;
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "a program's output")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::read()?;
    let value_bytes: usize = arguments.get("--value")?.unwrap_or(128);
    let workload = Workload {
        keys: arguments.get("--keys")?.unwrap_or(200_000),
        value_bytes,
        random_bytes: value_bytes / 2,
        seed: arguments.get("--seed")?.unwrap_or(1),
    };
    let updates: u64 = arguments.get("--updates")?.unwrap_or(200_000);
    let per_commit: u64 = arguments.get("--batch")?.unwrap_or(1000);
    let share: f64 = arguments.get("--cache-share")?.unwrap_or(0.22);
    let mut config = DeviceConfig::from_toml(&std::fs::read_to_string(&arguments.drive)?, &arguments.drive)?;
    if let Some(reduction) = &mut config.reduction {
        reduction.deduplication = None;
    }
    config.controller.write_buffer_bytes = 3 << 20;
    let drive = SimulatedSsd::new(config, 1)?;
    println!("{} keys of {KEY_BYTES} + {value_bytes} B on {}", workload.keys, drive.info().name);
    let engine = arguments.get::<String>("--engine")?;
    let defaults = match engine.as_deref() {
        None | Some("b-tree") => StoreOptions::default(),
        Some("hash") => StoreOptions::hash(),
        Some(other) => return Err(format!("--engine {other}: give b-tree or hash").into()),
    };
    let mut options = StoreOptions {
        cache: ByteSize((workload.bytes() as f64 * share) as u64),
        delta_threshold: arguments.get("--threshold")?,
        identity: Some(1),
        log_form: if arguments.get::<String>("--packed")?.is_some() { LogForm::Packed } else { LogForm::Sparse },
        ..defaults
    };
    options.bucket_fill = arguments.get("--fill")?.unwrap_or(options.bucket_fill);
    options.segment = arguments.get("--segment")?.unwrap_or(options.segment);
    options.page = arguments.get("--page")?.unwrap_or(options.page);
    options.log = arguments.get("--log")?.unwrap_or(options.log);
    let store = Store::create_device(Box::new(drive), &options)?;
    let keyspace = store.keyspace("keys")?;

    let (before, started) = (store.stats(), Instant::now());
    run(&store, &keyspace, workload.load())?;
    store.checkpoint()?;
    let mut last = store.stats();
    report("load", &before, &last, started);
    for (name, distribution) in [("uniform", Distribution::Uniform), ("zipf", Distribution::Zipf)] {
        let started = Instant::now();
        run(&store, &keyspace, workload.updates(distribution, updates, per_commit))?;
        let now = store.stats();
        report(name, &last, &now, started);
        last = now;
    }

    store.checkpoint()?;
    let (stats, started) = (store.stats(), Instant::now());
    println!("{} pages; {:?}", stats.pages, stats.io);
    println!("{:.2} bytes of memory a key for where pages are", stats.index_memory.0 as f64 / workload.keys as f64);
    let gets = 100_000;
    for number in workload.reads().take(gets) {
        keyspace.get(Workload::key(number))?;
    }
    println!(
        "get        {:.2} µs of this machine, simulation included",
        started.elapsed().as_secs_f64() * 1e6 / gets as f64
    );
    Ok(())
}
