//! How fast the shared pool is: hits by one thread and by several, and misses on a file beside nothing else.
//!
//! ```console
//! $ cargo run --release -p flashwise-bufferpool --example pool_rates -- hits
//! $ cargo run --release -p flashwise-bufferpool --example pool_rates -- misses FILE THREADS SECONDS
//! ```
//!
//! `misses` reads random pages of 4 KiB of an existing FILE through a pool of 256 frames, by so many threads; nearly
//! all of them miss. Beside it goes `fio --ioengine=psync --rw=randread --bs=4k --direct=1 --numjobs=THREADS --thread`.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flashwise_block::ByteSize;
use flashwise_bufferpool::concurrent::{DeviceStore, FileStore, PageStore};
use flashwise_bufferpool::{BufferPool, BufferPoolOptions, Page, PoolError};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hits"] => hits(),
        ["misses", file, threads, seconds] => misses(file.as_ref(), threads.parse()?, seconds.parse()?),
        _ => Err("give 'hits', or 'misses FILE THREADS SECONDS'".into()),
    }
}

/// Reads of pages that are all there.
fn hits() -> Result<(), Box<dyn Error>> {
    const FRAMES: u64 = 16_384;
    let (pool, other) = (full_pool(FRAMES)?, full_pool(FRAMES)?);
    for hot in [64, 1024, FRAMES] {
        let (mut bare, mut one, mut two, mut apart) = (f64::INFINITY, f64::INFINITY, f64::INFINITY, f64::INFINITY);
        for _ in 0..7 {
            bare = bare.min(bare_ns(hot));
            one = one.min(hit_ns(&[&pool], hot)?);
            two = two.min(hit_ns(&[&pool, &pool], hot)?);
            apart = apart.min(hit_ns(&[&pool, &other], hot)?);
        }
        println!(
            "{hot:>6} pages: {one:.1} ns a hit, {two:.1} by each of two threads, {apart:.1} where each has a pool of its \
             own; without a pool {bare:.1} (least of 7)"
        );
    }
    Ok(())
}

/// A pool that has all pages of so many.
fn full_pool(frames: u64) -> Result<BufferPool<DeviceStore<SimulatedSsd>>, Box<dyn Error>> {
    let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo")?, 1)?;
    let pool = BufferPool::new(DeviceStore::new(drive, 4096)?, BufferPoolOptions::new(frames as usize))?;
    for page in 0..frames {
        drop(pool.read(Page(page as u32))?);
    }
    Ok(pool)
}

/// The same reads of memory that nobody shares.
fn bare_ns(pages: u64) -> f64 {
    let memory = vec![1_u8; pages as usize * 4096];
    let order = order(pages, 0);
    let start = processor_ns();
    let mut sum = 0_u64;
    for n in 0..HITS {
        sum += u64::from(memory[order[(n & 0xffff) as usize] as usize * 4096]);
    }
    std::hint::black_box(sum);
    (processor_ns() - start) / f64::from(HITS)
}

/// How long this thread has been on a processor: a hit waits for nothing else, and what else the machine does is not in
/// it.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

const HITS: u32 = 5_000_000;

/// Random pages.
fn order(pages: u64, seed: u64) -> Vec<u32> {
    let mut random = Pcg64::seed_from_u64(seed);
    (0..65_536).map(|_| (random.next_u64() % pages) as u32).collect()
}

/// Nanoseconds of a thread on its processor for one hit, while one for each of the pools does the same on it.
fn hit_ns<S: PageStore>(pools: &[&BufferPool<S>], pages: u64) -> Result<f64, PoolError> {
    let work = |pool: &BufferPool<S>, seed: u64| {
        let order = order(pages, seed);
        let start = processor_ns();
        let mut sum = 0_u64;
        for n in 0..HITS {
            sum += u64::from(pool.read(Page(order[(n & 0xffff) as usize]))?[0]);
        }
        std::hint::black_box(sum);
        Ok((processor_ns() - start) / f64::from(HITS))
    };
    let work = &work;
    let times: Vec<Result<f64, PoolError>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..).zip(pools).map(|(seed, pool)| scope.spawn(move || work(pool, seed))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let times: Vec<f64> = times.into_iter().collect::<Result<_, _>>()?;
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}

/// Random reads of a file through a small pool.
fn misses(file: &Path, threads: u64, seconds: u64) -> Result<(), Box<dyn Error>> {
    let pool = BufferPool::new(FileStore::open(file, 4096)?, BufferPoolOptions::new(256))?;
    let pages = pool.store().pages();
    let (reads, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = |seed: u64| {
        let mut random = Pcg64::seed_from_u64(seed);
        while !is_over.load(Ordering::Relaxed) {
            drop(pool.read(Page((random.next_u64() % pages) as u32))?);
            reads.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<(), PoolError>(())
    };
    let work = &work;
    let start = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|seed| scope.spawn(move || work(seed))).collect();
        thread::sleep(Duration::from_secs(seconds));
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Result<Vec<()>, _>>()
    })?;
    let rate = reads.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    let statistics = pool.statistics();
    let missed = 100.0 * statistics.misses as f64 / statistics.accesses.max(1) as f64;
    println!("{threads} threads: {rate:.0} reads a second of {}, {missed:.1} % of them misses", ByteSize(pages * 4096));
    Ok(())
}
