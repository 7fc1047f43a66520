//! Accesses a second of every replacement policy, and of the `lru` crate on the same accesses in the same run.
//!
//! The accesses are Zipf with exponent 1 over a million pages, five million of them, into 100,000 frames; they are in
//! memory and numbered. A round is a fresh pool, so that the first misses are in it. What `lru` does in a round is a `get`,
//! and a `put` where it finds nothing: it knows no dirty pages. `flashwise pool` reads and numbers a trace before it
//! simulates; `numbering` says what that costs for an access.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flashwise_bufferpool::{Access, Ace, AnyPool, PageTrace, PolicySpec, PoolOptions, Shape, policies};
use lru::LruCache;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

const OBJECTS: usize = 1_000_000;
const ACCESSES: u64 = 5_000_000;
const FRAMES: usize = 100_000;

/// Objects by a Zipf distribution of exponent 1, a half of the accesses writes.
fn zipf() -> Vec<(u64, bool)> {
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
    (0..ACCESSES).map(&mut access).collect()
}

fn pool(name: &str, pages: usize, ace: Ace) -> Box<dyn AnyPool> {
    let shape = Shape { frames: FRAMES, pages, blocks: [].into() };
    let options = PoolOptions { ace, ..PoolOptions::default() };
    PolicySpec::parse(name).and_then(|spec| spec.pool(&shape, &options)).unwrap_or_else(|error| panic!("{error}"))
}

fn replay(mut pool: Box<dyn AnyPool>, accesses: &[Access]) -> u64 {
    pool.replay(accesses).unwrap_or_else(|error| panic!("{error}"));
    pool.counts().misses
}

fn lru_crate(accesses: &[Access]) -> u64 {
    let mut cache = LruCache::new(NonZeroUsize::new(FRAMES).unwrap_or(NonZeroUsize::MIN));
    let mut misses = 0;
    for access in accesses {
        let page = access.page().0;
        if cache.get(&page).is_none() {
            misses += 1;
            cache.put(page, ());
        }
    }
    misses
}

fn pools(criterion: &mut Criterion) {
    let numbers = zipf();
    let trace = |reads_only: bool| {
        let pages = numbers.iter().map(|&(page, is_write)| (page, is_write && !reads_only));
        PageTrace::of_pages("zipf", pages).unwrap_or_else(|error| panic!("{error}"))
    };
    let (reads, mixed) = (trace(true), trace(false));
    let mut group = criterion.benchmark_group("pool");
    group.sample_size(10).warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(3));
    group.throughput(Throughput::Elements(ACCESSES));
    group.bench_function("lru-crate", |bench| bench.iter(|| black_box(lru_crate(reads.accesses()))));
    for policy in policies() {
        for (kind, trace, ace) in [
            ("reads", &reads, Ace::CLASSIC),
            ("half-writes", &mixed, Ace::CLASSIC),
            ("half-writes-in-batches-of-8", &mixed, Ace::of(8)),
        ] {
            group.bench_function(BenchmarkId::new(policy.name, kind), |bench| {
                bench.iter(|| black_box(replay(pool(policy.name, trace.pages(), ace), trace.accesses())));
            });
        }
    }
    group.bench_function("numbering", |bench| bench.iter(|| black_box(trace(true).pages())));
    group.finish();
}

criterion_group!(benches, pools);
criterion_main!(benches);
