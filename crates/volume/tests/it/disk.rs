//! Rotating disks beside their seek, rotation and rates.

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request, execute};
use flashwise_volume::{DiskConfig, DiskQueue, SimulatedVolume, Volume};

fn disk(name: &str, change: impl Fn(&mut DiskConfig)) -> (SimulatedVolume, DiskConfig) {
    let mut volume = Volume::preset(name).unwrap();
    let disk = volume.config.medium.disk.as_mut().unwrap();
    change(disk);
    let config = disk.clone();
    (SimulatedVolume::new(volume, 1).unwrap(), config)
}

/// Requests a second of so many, a depth in flight.
fn rate(volume: &mut SimulatedVolume, depth: usize, count: u64, request: impl Fn(u64) -> Request) -> f64 {
    let (from, mut next) = (volume.now(), 0);
    for _ in 0..count {
        while next < count && volume.outstanding() < depth {
            volume.submit(request(next)).unwrap();
            next += 1;
        }
        volume.wait().unwrap().unwrap();
    }
    count as f64 / volume.now().since(from).as_secs_f64()
}

fn random(volume: &SimulatedVolume) -> impl Fn(u64) -> ByteSize + use<> {
    let blocks = volume.info().capacity.0 / 4096;
    move |i| ByteSize((u128::from(i) * 2_654_435_761 % u128::from(blocks)) as u64 * 4096)
}

#[test]
fn a_random_read_takes_the_average_seek_and_half_a_rotation() {
    for name in ["sas-15k", "sata-7k2"] {
        let (mut volume, config) = disk(name, |_| {});
        let place = random(&volume);
        let found = rate(&mut volume, 1, 2_000, |i| Request::read(place(i), ByteSize::kib(4)));
        let expected = 1e9 / (config.average_seek_ns as f64 + 30e9 / f64::from(config.rpm));
        // The seek over a third of the stroke is a little more than the mean over random pairs.
        assert!((found / expected - 1.0).abs() < 0.12, "{name}: {found} and not {expected}");
    }
}

#[test]
fn long_reads_run_at_the_sustained_rate_of_their_zone() {
    for name in ["sas-15k", "sata-7k2"] {
        let (volume, config) = disk(name, |_| {});
        let inner = (volume.info().capacity.0 - (1 << 30)) >> 20 << 20;
        for (from, expected) in [(0, config.outer_bytes_per_s), (inner, config.inner_bytes_per_s)] {
            let (mut volume, _) = disk(name, |_| {});
            let per_s = rate(&mut volume, 2, 300, |i| Request::read(ByteSize(from + (i << 20)), ByteSize::mib(1)));
            let ratio = per_s * 1_048_576.0 / expected as f64;
            assert!((ratio - 1.0).abs() < 0.03, "{name} at {from}: {ratio}");
        }
    }
}

#[test]
fn the_nearest_request_first_serves_more_than_the_oldest_first() {
    let deep = |queue| {
        let (mut volume, _) = disk("sata-7k2", |disk| disk.queue = queue);
        let place = random(&volume);
        rate(&mut volume, 32, 2_000, |i| Request::read(place(i), ByteSize::kib(4)))
    };
    let (shortest, fifo) = (deep(DiskQueue::Shortest), deep(DiskQueue::Fifo));
    assert!(shortest > 1.8 * fifo, "{shortest} and {fifo}");
}

#[test]
fn a_cached_write_completes_at_once_and_a_flush_waits_for_it() {
    let (mut volume, _) = disk("sata-7k2", |_| {});
    let write = |at| Request::write(ByteSize::gib(at), ByteSize::kib(4));
    let cached = execute(&mut volume, write(1)).unwrap().latency();
    assert!(cached < Nanos::micros(100), "{cached}");
    assert!(execute(&mut volume, Request::flush()).unwrap().latency() > Nanos::millis(1));
    assert!(execute(&mut volume, Request::flush()).unwrap().latency() < Nanos::micros(100), "nothing waits any more");
    let forced = execute(&mut volume, write(900).with_fua()).unwrap().latency();
    assert!(forced > Nanos::millis(1), "{forced}");
}

#[test]
fn the_same_sector_again_takes_a_whole_rotation() {
    let (mut volume, config) = disk("sas-15k", |disk| disk.read_ahead_bytes = 0);
    let read = || Request::read(ByteSize::gib(1), ByteSize(512));
    execute(&mut volume, read()).unwrap();
    let again = execute(&mut volume, read()).unwrap().latency().0;
    let rotation = 60_000_000_000 / u64::from(config.rpm);
    assert!(again.abs_diff(rotation) < 20_000, "{again} and not {rotation}");
}
