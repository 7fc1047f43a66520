//! How many host requests a second the simulator gets through, on one core, and how long it takes to begin.
//!
//! The drive has the structure of the Samsung preset (8 channels, 2 ways, 2 planes), cut to 6 GiB so that it can be
//! overwritten often enough. Before anything is timed it is filled once in order and overwritten three times at
//! random: garbage collection is then in its steady state, and each host write carries its share of it. Requests are
//! 4 KiB, 32 of them in flight, at uniformly random addresses, without payload.
//!
//! - Writes in the steady state, and reads of the same drive.
//! - Page-unit writes: single planes with pages of 4 KiB, so that each write is a flash command of its own, to a new
//!   drive, so that garbage collection has nothing to do.
//! - A drive of 1 TB: making it, and filling it at once.
#![allow(clippy::expect_used, reason = "a benchmark has nobody to hand an error to")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use flashwise_block::{BlockDevice, ByteSize, DeviceCounters, Request};
use flashwise_ssd::config::Placement;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

const REQUEST: ByteSize = ByteSize::kib(4);
const IN_FLIGHT: usize = 32;
const OVERWRITES: u64 = 3;
/// To a new drive of page units: far less than its blocks can take.
const WRITES_BEFORE_COLLECTION: u64 = 2_000_000;

/// A drive and a stream of random addresses.
struct Bed {
    drive: SimulatedSsd,
    pages: u64,
    state: u64,
}

impl Bed {
    /// A drive in the steady state of garbage collection.
    fn steady() -> Self {
        let mut config = DeviceConfig::preset("samsung-960-evo").expect("the preset exists");
        config.flash.blocks_per_plane = 60;
        config.flash.pages_per_block = 256;
        config.ftl.gc.free_superblocks = Some(3);
        config.capacity_bytes = ByteSize::gib(6).bytes();
        let drive = SimulatedSsd::new(config, 1).expect("the drive is possible");
        let pages = drive.info().capacity.bytes() / REQUEST.bytes();
        let mut bed = Self { drive, pages, state: 1 };
        bed.fill();
        bed.writes(OVERWRITES * bed.pages);
        bed
    }

    fn fill(&mut self) {
        for at in (0..self.drive.info().capacity.bytes()).step_by(1 << 20) {
            self.submit(Request::write(ByteSize(at), ByteSize::mib(1)));
        }
    }

    /// A new drive whose every logical page is a flash command of its own.
    fn page_units() -> Self {
        let mut config = DeviceConfig::preset("samsung-960-evo").expect("the preset exists");
        (config.flash.page_bytes, config.flash.pages_per_block) = (REQUEST.bytes(), 256);
        (config.ftl.superpage_planes, config.ftl.placement) = (Some(1), Placement::Static);
        config.capacity_bytes = ByteSize::gib(8).bytes();
        let drive = SimulatedSsd::new(config, 1).expect("the drive is possible");
        let pages = drive.info().capacity.bytes() / REQUEST.bytes();
        Self { drive, pages, state: 1 }
    }

    /// Xorshift: as good as free, so that the simulator is what is measured.
    fn random_offset(&mut self) -> ByteSize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ByteSize(self.state % self.pages * REQUEST.bytes())
    }

    fn submit(&mut self, request: Request) {
        self.drive.submit(request).expect("the request is sound");
        if self.drive.outstanding() >= IN_FLIGHT {
            black_box(self.drive.wait().expect("the drive is there"));
        }
    }

    fn writes(&mut self, count: u64) {
        for _ in 0..count {
            let offset = self.random_offset();
            self.submit(Request::write(offset, REQUEST));
        }
    }

    fn reads(&mut self, count: u64) {
        for _ in 0..count {
            let offset = self.random_offset();
            self.submit(Request::read(offset, REQUEST));
        }
    }

    /// Wall-clock time of some work.
    fn time(&mut self, work: impl FnOnce(&mut Self)) -> Duration {
        let start = Instant::now();
        work(self);
        start.elapsed()
    }
}

/// Proves that garbage collection was at work while the writes were timed.
fn tell_write_amplification(before: &DeviceCounters, after: &DeviceCounters) {
    let during = after.since(before);
    let moved = during.flash.map_or(ByteSize(0), |flash| flash.gc_bytes_moved);
    if let Some(amplification) = during.write_amplification() {
        println!("steady state: write amplification {amplification:.2}, {moved} moved by garbage collection");
    }
}

fn simulator(criterion: &mut Criterion) {
    let mut bed = Bed::steady();
    let mut group = criterion.benchmark_group("simulator");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(10));

    let before = bed.drive.counters();
    group.bench_function("random 4 KiB writes, steady state, 32 in flight", |bencher| {
        bencher.iter_custom(|count| bed.time(|bed| bed.writes(count)));
    });
    tell_write_amplification(&before, &bed.drive.counters());

    group.bench_function("random 4 KiB reads, 32 in flight", |bencher| {
        bencher.iter_custom(|count| bed.time(|bed| bed.reads(count)));
    });

    group.bench_function("random 4 KiB writes, a flash command each, 32 in flight", |bencher| {
        bencher.iter_custom(page_unit_writes);
    });
    group.finish();
}

/// Wall-clock time of so many writes to drives that are made anew before garbage collection begins.
fn page_unit_writes(count: u64) -> Duration {
    let mut left = count;
    let mut spent = Duration::ZERO;
    while left > 0 {
        let now = left.min(WRITES_BEFORE_COLLECTION);
        let mut bed = Bed::page_units();
        spent += bed.time(|bed| bed.writes(now));
        assert_eq!(bed.drive.counters().flash.map(|flash| flash.erases), Some(0), "garbage collection has begun");
        left -= now;
    }
    spent
}

/// The Samsung with twice the chips: 1 TB.
fn terabyte() -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").expect("the preset exists");
    config.flash.chips_per_channel = 2;
    config.capacity_bytes *= 2;
    config
}

fn begin(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a drive of 1 TB");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(10));
    let make = || SimulatedSsd::new(terabyte(), 1).expect("the drive is possible");
    group.bench_function("made", |bencher| bencher.iter_with_large_drop(make));
    group.bench_function("filled at once", |bencher| {
        let fill = |mut drive: SimulatedSsd| {
            drive.fill_at_once().expect("the drive is new");
            drive
        };
        bencher.iter_batched(make, fill, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, simulator, begin);
criterion_main!(benches);
