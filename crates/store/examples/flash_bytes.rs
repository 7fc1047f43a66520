//! Flash bytes per user byte of a store on a simulated drive: load, then updates, uniform and Zipf-distributed.
//!
//! ```text
//! cargo run --release -p flashwise-store --example flash_bytes -- \
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
use flashwise_store::{Batch, Durability, Keyspace, LogForm, Stats, Store, StoreOptions};

/// splitmix64 (Sebastiano Vigna).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ranks by Zipf's law with exponent 0.99, as YCSB draws them (Gray et al., SIGMOD 1994).
struct Zipf {
    keys: f64,
    alpha: f64,
    eta: f64,
    zeta: f64,
}

const THETA: f64 = 0.99;

impl Zipf {
    fn new(keys: u64) -> Self {
        let zeta: f64 = (1..=keys).map(|rank| (rank as f64).powf(-THETA)).sum();
        let two = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / keys as f64).powf(1.0 - THETA)) / (1.0 - two / zeta);
        Self { keys: keys as f64, alpha: 1.0 / (1.0 - THETA), eta, zeta }
    }

    fn rank(&self, random: &mut Random) -> u64 {
        let u = random.unit();
        let uz = u * self.zeta;
        match () {
            () if uz < 1.0 => 0,
            () if uz < 1.0 + 0.5f64.powf(THETA) => 1,
            () => ((self.keys * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64).min(self.keys as u64 - 1),
        }
    }
}

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

/// The `n`-th key: 16 bytes, in random order.
fn key(n: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&Random(n).next().to_be_bytes());
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

fn value(random: &mut Random, length: usize) -> Vec<u8> {
    let mut value = vec![0; length];
    value[..length / 2].chunks_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]));
    value
}

fn commit(store: &Store, batch: &mut Batch) -> Result<(), Box<dyn Error>> {
    Ok(store.commit(std::mem::take(batch), Durability::Synced)?)
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

fn update(
    store: &Store,
    keyspace: &Keyspace,
    arguments: &Arguments,
    random: &mut Random,
    mut next: impl FnMut(&mut Random) -> u64,
) -> Result<(), Box<dyn Error>> {
    let updates: u64 = arguments.get("--updates")?.unwrap_or(200_000);
    let batch_keys: usize = arguments.get("--batch")?.unwrap_or(1000);
    let length = arguments.get("--value")?.unwrap_or(128);
    let mut batch = Batch::new();
    for n in 1..=updates {
        let key = key(next(random));
        batch.put(keyspace, key, value(random, length));
        // A key that comes twice is one change of the batch.
        if n % batch_keys as u64 == 0 {
            commit(store, &mut batch)?;
        }
    }
    commit(store, &mut batch)
}

#[allow(clippy::print_stdout, reason = "a program's output")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::read()?;
    let keys: u64 = arguments.get("--keys")?.unwrap_or(200_000);
    let length: usize = arguments.get("--value")?.unwrap_or(128);
    let share: f64 = arguments.get("--cache-share")?.unwrap_or(0.22);
    let mut config = DeviceConfig::from_toml(&std::fs::read_to_string(&arguments.drive)?, &arguments.drive)?;
    if let Some(reduction) = &mut config.reduction {
        reduction.deduplication = None;
    }
    config.controller.write_buffer_bytes = 3 << 20;
    let drive = SimulatedSsd::new(config, 1)?;
    println!("{} keys of 16 + {length} B on {}", keys, drive.info().name);
    let engine = arguments.get::<String>("--engine")?;
    let defaults = match engine.as_deref() {
        None | Some("b-tree") => StoreOptions::default(),
        Some("hash") => StoreOptions::hash(),
        Some(other) => return Err(format!("--engine {other}: give b-tree or hash").into()),
    };
    let mut options = StoreOptions {
        cache: ByteSize((keys as f64 * (16 + length) as f64 * share) as u64),
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
    let mut random = Random(arguments.get("--seed")?.unwrap_or(1));

    let (before, started) = (store.stats(), Instant::now());
    let mut order: Vec<u64> = (0..keys).collect();
    (1..order.len()).rev().for_each(|n| order.swap(n, (random.next() % (n as u64 + 1)) as usize));
    let mut batch = Batch::new();
    for (n, number) in order.iter().enumerate() {
        batch.put(&keyspace, key(*number), value(&mut random, length));
        if (n + 1) % 10_000 == 0 {
            commit(&store, &mut batch)?;
        }
    }
    commit(&store, &mut batch)?;
    store.checkpoint()?;
    let loaded = store.stats();
    report("load", &before, &loaded, started);

    let started = Instant::now();
    update(&store, &keyspace, &arguments, &mut random, |random| random.next() % keys)?;
    let uniform = store.stats();
    report("uniform", &loaded, &uniform, started);

    let (started, zipf) = (Instant::now(), Zipf::new(keys));
    // Ranks are spread over the keys.
    update(&store, &keyspace, &arguments, &mut random, |random| Random(zipf.rank(random)).next() % keys)?;
    let zipf = store.stats();
    report("zipf", &uniform, &zipf, started);

    store.checkpoint()?;
    let (stats, started) = (store.stats(), Instant::now());
    println!("{} pages; {:?}", stats.pages, stats.io);
    println!("{:.2} bytes of memory a key for where pages are", stats.index_memory.0 as f64 / keys as f64);
    let gets = 100_000;
    for _ in 0..gets {
        keyspace.get(key(random.next() % keys))?;
    }
    println!(
        "get        {:.2} µs of this machine, simulation included",
        started.elapsed().as_secs_f64() * 1e6 / gets as f64
    );
    Ok(())
}
