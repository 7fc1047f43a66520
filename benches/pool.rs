//! Accesses a second of every replacement policy, and of the `lru` crate and libCacheSim on the same accesses in the
//! same run.
//!
//! ```console
//! $ cargo bench -p flashwise-benches --bench pool -- [--rounds N] [--accesses N] [--frames N] [--only POLICY,…] [--reads] \
//!       [--python PROGRAM]
//! ```
//!
//! The accesses are Zipf with exponent 1 over a million pages, into 100,000 frames; they are in memory and numbered. In
//! each round everybody serves all of them once, one after the other, by a fresh pool, so that the first misses are in
//! it; what is reported is the median of the rounds. Times are those on the processor, so that what else the machine
//! does meets all of them alike, and only through its caches.
//!
//! - What `lru` does is a `get`, and a `put` where it finds nothing: it knows no dirty pages.
//! - libCacheSim runs in a Python that has its package (`pip install libcachesim`), on a file of the same accesses that
//!   it maps into memory. Its misses are compared with ours, and a difference ends the run. Where it is absent, that is
//!   told. Its hash tables have two to four places for each page; the package's default of 16 million, which fit no
//!   cache, is slower.
//! - `flashwise pool` reads and numbers a trace before it simulates; the last line says what that costs for an access.

#![allow(clippy::disallowed_methods, reason = "it measures on files of its own")]

use std::error::Error;
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

use flashwise_bufferpool::{Access, Ace, PageTrace, PolicySpec, PoolOptions, Shape, policies};
use lru::LruCache;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rustix::time::{ClockId, clock_gettime};

const OBJECTS: usize = 1_000_000;

/// What libCacheSim has under which name.
const PEERS: &[(&str, &str)] = &[
    ("lru", "LRU"),
    ("fifo", "FIFO"),
    ("clock", "Clock"),
    ("lfu", "LFU"),
    ("2q", "TwoQ"),
    ("arc", "ARC"),
    ("sieve", "Sieve"),
    ("s3-fifo:fill=main", "S3FIFO"),
];

/// As it is run here: the S3FIFO of libCacheSim's package fills main where small has its share, and has our defaults
/// but for that.
fn as_run(policy: &'static str) -> &'static str {
    if policy == "s3-fifo" { "s3-fifo:fill=main" } else { policy }
}

/// Says whether it can, then serves the file once by each cache, and tells seconds and misses.
const LIBCACHESIM: &str = r#"
import sys, time
import libcachesim as lcs
path, frames = sys.argv[1], int(sys.argv[2])
for name in sys.argv[3:]:
    reader = lcs.TraceReader(trace=path, trace_type=lcs.TraceType.ORACLE_GENERAL_TRACE,
                             reader_init_params=lcs.ReaderInitParam(ignore_obj_size=True))
    cache = getattr(lcs, name)(frames, hashpower=(2 * frames).bit_length())
    start = time.thread_time()
    ratio, _ = cache.process_trace(reader)
    print(name, time.thread_time() - start, ratio, flush=True)
"#;

/// Ways to use a pool.
const WAYS: [&str; 3] = ["reads", "half writes", "batches of 8"];

struct Arguments {
    rounds: usize,
    accesses: u64,
    frames: usize,
    only: Vec<String>,
    ways: usize,
    python: String,
}

impl Arguments {
    fn parse() -> Result<Self, Box<dyn Error>> {
        let mut arguments = Self {
            rounds: 5,
            accesses: 20_000_000,
            frames: 100_000,
            only: Vec::new(),
            ways: WAYS.len(),
            python: "python3".to_owned(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word}: a value is missing"));
            match word.as_str() {
                "--rounds" => arguments.rounds = value()?.parse::<usize>()?.max(1),
                "--accesses" => arguments.accesses = value()?.parse::<u64>()?.max(1),
                "--frames" => arguments.frames = value()?.parse::<usize>()?.max(1),
                "--only" => arguments.only = value()?.split(',').map(str::to_owned).collect(),
                "--reads" => arguments.ways = 1,
                "--python" => arguments.python = value()?,
                "--test" => (arguments.rounds, arguments.accesses) = (1, 100_000),
                "--bench" => {}
                other => return Err(format!("{other}: unknown").into()),
            }
        }
        Ok(arguments)
    }
}

/// Objects by a Zipf distribution of exponent 1, a half of the accesses writes.
fn zipf(accesses: u64) -> Vec<(u64, bool)> {
    let mut sum = 0.0;
    let start = |rank| {
        let start = sum;
        sum += 1.0 / rank as f64;
        start
    };
    let sums: Vec<f64> = (1..=OBJECTS).map(start).collect();
    let mut random = Pcg64::seed_from_u64(7);
    let mut access = |_| {
        let bits = random.next_u64();
        let at = (bits >> 11) as f64 / (1_u64 << 53) as f64 * sum;
        // Neighbours in rank are no neighbours in address.
        let rank = sums.partition_point(|&start| start <= at) as u64;
        (rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40, bits & 1 == 1)
    };
    (0..accesses).map(&mut access).collect()
}

/// Seconds that this thread was on a processor.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// What some work gives, and its seconds.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = seconds();
    let done = work();
    (seconds() - before, done)
}

/// Serves everything by a fresh pool; how long that took, and the misses.
fn ours(name: &str, trace: &PageTrace, frames: usize, ace: Ace) -> Result<(f64, u64), Box<dyn Error>> {
    let shape = Shape { frames, pages: trace.pages(), blocks: trace.blocks() };
    let mut pool = PolicySpec::parse(name)?.pool(&shape, &PoolOptions { ace, ..PoolOptions::default() })?;
    let (time, replayed) = timed(|| pool.replay(trace.accesses()));
    replayed?;
    Ok((time, pool.counts().misses))
}

fn lru_crate(accesses: &[Access], frames: usize) -> (f64, u64) {
    let mut cache = LruCache::new(NonZeroUsize::new(frames).unwrap_or(NonZeroUsize::MIN));
    timed(|| {
        let mut misses = 0;
        for access in accesses {
            let page = access.page().0;
            if cache.get(&page).is_none() {
                misses += 1;
                cache.put(page, ());
            }
        }
        misses
    })
}

/// libCacheSim, with a file of the accesses.
struct Peer {
    python: String,
    trace: PathBuf,
}

impl Peer {
    /// `None`, said aloud, where its package is not there.
    fn new(python: &str, folder: &Path, trace: &PageTrace) -> Result<Option<Self>, Box<dyn Error>> {
        let found = Command::new(python).args(["-c", "import libcachesim; print(libcachesim.__version__)"]).output();
        let Some(found) = found.ok().filter(|found| found.status.success()) else {
            println!("libCacheSim: {python} has no package libcachesim; its column stays empty");
            return Ok(None);
        };
        println!("libCacheSim: PyPI libcachesim {}", String::from_utf8_lossy(&found.stdout).trim());
        let path = folder.join("zipf.oracleGeneral.bin");
        let mut file = BufWriter::new(std::fs::File::create(&path)?);
        for (time, access) in (0_u32..).zip(trace.accesses()) {
            // Time, object (0 is none), size, next access, which no cache here asks for.
            file.write_all(&time.to_le_bytes())?;
            file.write_all(&(u64::from(access.page().0) + 1).to_le_bytes())?;
            file.write_all(&1_u32.to_le_bytes())?;
            file.write_all(&(-1_i64).to_le_bytes())?;
        }
        file.flush()?;
        Ok(Some(Self { python: python.to_owned(), trace: path }))
    }

    /// Seconds and share of misses of each cache.
    fn run(&self, names: &[&str], frames: usize) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
        let mut command = Command::new(&self.python);
        command.args(["-c", LIBCACHESIM]).arg(&self.trace).arg(frames.to_string()).args(names);
        let output = command.output()?;
        if !output.status.success() {
            return Err(format!("libCacheSim: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let number =
            |word: Option<&str>| word.and_then(|word| word.parse::<f64>().ok()).ok_or("libCacheSim: no number");
        let told = String::from_utf8(output.stdout)?;
        let line = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            Ok((number(words.next())?, number(words.next())?))
        };
        told.lines().map(line).collect()
    }
}

/// Million accesses a second by the median of the times.
fn rate(accesses: u64, seconds: &mut [f64]) -> String {
    seconds.sort_unstable_by(f64::total_cmp);
    match seconds.get(seconds.len() / 2) {
        Some(median) => format!("{:.1}", accesses as f64 / median / 1e6),
        None => "–".to_owned(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse()?;
    let (rounds, frames, accesses) = (arguments.rounds, arguments.frames, arguments.accesses);
    let numbers = zipf(accesses);
    let trace = |reads_only: bool| {
        PageTrace::of_pages("zipf", numbers.iter().map(|&(page, is_write)| (page, is_write && !reads_only)))
    };
    let (numbering, reads) = timed(|| trace(true));
    let reads = reads?;
    let mixed = trace(false)?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let peer = Peer::new(&arguments.python, folder.path(), &reads)?;

    let is_wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let names: Vec<&str> =
        policies().iter().map(|policy| policy.name).filter(|name| is_wanted(name)).map(as_run).collect();
    let peers: Vec<(usize, &str)> =
        (0..).zip(&names).filter_map(|(at, name)| Some((at, PEERS.iter().find(|(own, _)| own == name)?.1))).collect();
    let peer_names: Vec<&str> = peers.iter().map(|peer| peer.1).collect();

    let mut times = vec![[const { Vec::new() }; WAYS.len()]; names.len()];
    let (mut peer_times, mut lru_times) = (vec![Vec::new(); names.len()], Vec::new());
    for _ in 0..rounds {
        let (time, lru_misses) = lru_crate(reads.accesses(), frames);
        lru_times.push(time);
        let mut misses = Vec::new();
        for (name, times) in names.iter().zip(&mut times) {
            for (way, times) in times.iter_mut().enumerate().take(arguments.ways) {
                let (trace, ace) = [(&reads, Ace::CLASSIC), (&mixed, Ace::CLASSIC), (&mixed, Ace::of(8))][way];
                let (time, missed) = ours(name, trace, frames, ace)?;
                times.push(time);
                if way == 0 {
                    misses.push(missed);
                }
                if *name == "lru" && way == 0 && missed != lru_misses {
                    return Err(format!("the lru crate misses {lru_misses} times, LRU here {missed} times").into());
                }
            }
        }
        let Some(peer) = &peer else { continue };
        for (&(at, name), (seconds, ratio)) in peers.iter().zip(peer.run(&peer_names, frames)?) {
            peer_times[at].push(seconds);
            let theirs = (ratio * accesses as f64).round() as u64;
            if theirs != misses[at] {
                return Err(format!("libCacheSim's {name} misses {theirs} times, ours {} times", misses[at]).into());
            }
        }
    }

    println!(
        "{accesses} accesses, {} pages, {frames} frames, {rounds} rounds: million accesses a second",
        reads.pages()
    );
    println!("| policy | {} | libCacheSim |", WAYS.join(" | "));
    println!("|---|---|---|---|---|");
    for ((name, times), peer) in names.iter().zip(&mut times).zip(&mut peer_times) {
        let [reads, half, batches] = times.each_mut().map(|times| rate(accesses, times));
        println!("| {name} | {reads} | {half} | {batches} | {} |", rate(accesses, peer));
    }
    println!("| the lru crate | {} | | | |", rate(accesses, &mut lru_times));
    println!("reading the trace into numbers: {:.1}", accesses as f64 / numbering / 1e6);
    Ok(())
}
