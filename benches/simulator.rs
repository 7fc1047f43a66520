//! How many host requests a second the simulator gets through, on one core.
//!
//! The drive has the structure of the Samsung preset (8 channels, 2 ways, 2 planes), cut to 6 GiB so that it can be
//! overwritten often enough. Before anything is timed it is filled once in order and overwritten three times at
//! random: garbage collection is then in its steady state, and each host write carries its share of it. Requests are
//! 4 KiB, 32 of them in flight, at uniformly random addresses, without payload.
#![allow(clippy::expect_used, reason = "a benchmark has nobody to hand an error to")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flashwise_block::{BlockDevice, ByteSize, DeviceCounters, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

const REQUEST: ByteSize = ByteSize::kib(4);
const IN_FLIGHT: usize = 32;
const OVERWRITES: u64 = 3;

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
    group.finish();
}

criterion_group!(benches, simulator);
criterion_main!(benches);
