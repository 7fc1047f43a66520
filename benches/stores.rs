//! CPU time of a load, a get and a scan of 100 keys, for both engines of `flashwise-store`.
//!
//! ```console
//! $ cargo bench -p flashwise-benches --bench stores -- [--keys N] [--rounds N] [--engine b-tree|hash] [--only load|get|scan]
//! ```
//!
//! Keys of 16 bytes and values of 128, half of them zeros, on a device in memory that costs a copy a request. Loads are
//! commits of 10,000 keys in random order, each synced, and write-back is part of them. Gets are of random keys, and
//! scans read 100 keys from a random one on; all pages are in the cache. Times are those on the processor, the kernel's
//! included; the figure is the median of the rounds, each with a fresh store.
//!
//! `--only` runs one part, for a profiler:
//! `valgrind --tool=callgrind --toggle-collect='*measured*' BENCH --rounds 1 --keys 50000 --engine b-tree --only get`.

#![allow(clippy::disallowed_methods, reason = "it prints what it measures")]

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};
use flashwise_store::workload::Workload;
use flashwise_store::{Batch, Durability, Engine, Store, StoreOptions};
use rustix::time::{ClockId, clock_gettime};

/// Keys of a scan.
const SCAN: usize = 100;
/// Gets and scans of a round.
const GETS: usize = 200_000;
const SCANS: usize = 10_000;
/// Size of the device, bytes.
const CAPACITY: usize = 2 << 30;

/// A device in memory: a request costs a copy of its bytes, and no time.
struct Memory {
    info: DeviceInfo,
    bytes: Vec<u8>,
    done: VecDeque<Completion>,
}

impl Memory {
    fn new() -> Self {
        let info = DeviceInfo {
            name: "memory".to_owned(),
            capacity: ByteSize(CAPACITY as u64),
            logical_block: ByteSize::kib(4),
            max_transfer: ByteSize::mib(2),
            queue_depth: 1024,
            clock: Clock::Virtual,
            atomic_write: None,
        };
        Self { info, bytes: vec![0; CAPACITY], done: VecDeque::new() }
    }
}

impl BlockDevice for Memory {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(0)
    }

    fn submit(&mut self, mut request: Request) -> Result<(), BlockError> {
        let from = request.offset.0 as usize;
        let span = from..from + request.length.0 as usize;
        match (request.operation, &mut request.buffer) {
            (Operation::Read, Some(buffer)) => buffer.copy_from_slice(&self.bytes[span]),
            (Operation::Write, Some(buffer)) => self.bytes[span].copy_from_slice(buffer),
            _ => {}
        }
        self.done.push_back(Completion {
            tag: request.tag,
            operation: request.operation,
            submitted_at: Nanos(0),
            started_at: Nanos(0),
            completed_at: Nanos(0),
            result: Ok(()),
            buffer: request.buffer,
        });
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        Ok(self.done.pop_front())
    }

    fn outstanding(&self) -> usize {
        self.done.len()
    }

    fn pause(&mut self, _: Nanos) -> Result<(), BlockError> {
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }
}

/// Time of this process on a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Microseconds that each of so many calls took.
#[inline(never)]
fn measured(calls: usize, work: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let before = processor_time();
    work()?;
    Ok((processor_time() - before).as_secs_f64() * 1e6 / calls as f64)
}

fn load(store: &Store, commits: Vec<Batch>) -> Result<(), Box<dyn Error>> {
    for batch in commits {
        store.commit(batch, Durability::Synced)?;
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

struct Arguments(Vec<String>);

impl Arguments {
    fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str, otherwise: u64) -> Result<u64, Box<dyn Error>> {
        Ok(self.get(name).map(str::parse).transpose()?.unwrap_or(otherwise))
    }
}

/// Load, get and scan of one round, each where it is wanted.
fn round(engine: Engine, workload: &Workload, only: Option<&str>) -> Result<[Option<f64>; 3], Box<dyn Error>> {
    let is_wanted = |what: &str| only.is_none_or(|only| only == what);
    let defaults = if engine == Engine::Hash { StoreOptions::hash() } else { StoreOptions::default() };
    // Everything fits: the hash keeps its buckets mostly empty.
    let options = StoreOptions { cache: ByteSize::gib(1), identity: Some(1), ..defaults };
    let store = Store::create_device(Box::new(Memory::new()), &options)?;
    let keyspace = store.keyspace("keys")?;
    let commits: Vec<Batch> = workload
        .load()
        .map(|changes| {
            let mut batch = Batch::new();
            changes.into_iter().for_each(|(key, value)| batch.put(&keyspace, key, value));
            batch
        })
        .collect();
    let loaded = match is_wanted("load") {
        true => Some(measured(workload.keys as usize, || {
            load(&store, commits)?;
            Ok(store.checkpoint()?)
        })?),
        false => load(&store, commits).map(|()| None)?,
    };
    let keys: Vec<_> = workload.reads().take(GETS).map(Workload::key).collect();
    let read = |keys: &[[u8; 16]]| -> Result<(), Box<dyn Error>> {
        for key in keys {
            std::hint::black_box(keyspace.get(key)?.ok_or("a key is missing")?);
        }
        Ok(())
    };
    read(&keys)?;
    let got = is_wanted("get").then(|| measured(GETS, || read(&keys))).transpose()?;
    let scan = || -> Result<(), Box<dyn Error>> {
        for key in &keys[..SCANS] {
            for entry in keyspace.range(key.as_slice()..)?.take(SCAN) {
                std::hint::black_box(entry?);
            }
        }
        Ok(())
    };
    let has_scans = engine == Engine::BTree && is_wanted("scan");
    let scanned = has_scans.then(|| measured(SCANS, scan)).transpose()?;
    Ok([loaded, got, scanned])
}

#[allow(clippy::print_stdout, reason = "a bench's output")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments(std::env::args().collect());
    // As `cargo bench -- --test` runs it: everything once.
    let is_test = arguments.0.iter().any(|word| word == "--test");
    let keys = arguments.number("--keys", if is_test { 10_000 } else { 200_000 })?;
    let rounds = arguments.number("--rounds", if is_test { 1 } else { 5 })?;
    println!("{keys} keys of 16 + 128 bytes, {rounds} rounds; µs of processor time");
    for (name, engine) in [("b-tree", Engine::BTree), ("hash", Engine::Hash)] {
        if arguments.get("--engine").is_some_and(|wanted| wanted != name) {
            continue;
        }
        let mut all: [Vec<f64>; 3] = Default::default();
        for seed in 1..=rounds {
            let workload = Workload { keys, value_bytes: 128, random_bytes: 64, seed };
            let times = round(engine, &workload, arguments.get("--only"))?;
            all.iter_mut().zip(times).for_each(|(all, time)| all.extend(time));
        }
        for (what, times) in ["load", "get", "scan of 100"].into_iter().zip(all) {
            if !times.is_empty() {
                println!("{name:<8} {what:<12} {:8.2}", median(times));
            }
        }
    }
    Ok(())
}
