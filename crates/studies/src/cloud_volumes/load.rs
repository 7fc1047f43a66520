//! Loads on a volume: as many requests as a rate says, or as many as a depth keeps in flight.

use flashwise_block::{BlockDevice, BlockError, ByteSize, Completion, Nanos, Operation, Request};
use flashwise_volume::SimulatedVolume;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Bytes of a write of the maps, and how many of them are in flight at most.
const WRITE: u64 = 128 << 10;
const WRITES_IN_FLIGHT: usize = 64;
/// Bytes of a read of the maps.
const READ: u64 = 512;

/// What reads saw.
pub(super) struct Reads {
    /// Their latencies, in order.
    latencies_ns: Vec<u64>,
    /// Reads a second.
    pub(super) per_s: f64,
}

impl Reads {
    fn new(mut latencies_ns: Vec<u64>, per_s: f64) -> Self {
        latencies_ns.sort_unstable();
        Self { latencies_ns, per_s }
    }

    /// The latency that a share of them stays below, ms.
    pub(super) fn percentile_ms(&self, percent: f64) -> f64 {
        let last = self.latencies_ns.len().saturating_sub(1);
        let at = (percent / 100.0 * last as f64).round() as usize;
        self.latencies_ns.get(at).map_or(f64::NAN, |&ns| ns as f64 / 1e6)
    }
}

/// A cell of a map, as `diskplorer` measures it: reads of 512 bytes arrive as a Poisson process, sequential writes of
/// 128 KiB at a steady rate, at most 64 of them in flight. The first sixth is not counted.
pub(super) fn cell(
    volume: &mut SimulatedVolume,
    (reads_per_s, written_mb_per_s): (f64, f64),
    lasts: Nanos,
    seed: u64,
) -> Result<Reads, BlockError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut gap = move || (-libm::log(1.0 - random.random::<f64>()) / reads_per_s * 1e9) as u64;
    let mut places = Pcg64Mcg::seed_from_u64(seed ^ 1);
    let (capacity, write_gap) = (volume.info().capacity.0, WRITE as f64 / (written_mb_per_s * 1e6) * 1e9);
    let (mut next_read, mut next_write, mut written, mut writing) = (gap(), 0.0_f64, 0_u64, 0_usize);
    let (counted_from, mut latencies) = (lasts.0 / 6, Vec::new());
    loop {
        let write_at = if written_mb_per_s > 0.0 && writing < WRITES_IN_FLIGHT { next_write as u64 } else { u64::MAX };
        let at = next_read.min(write_at).max(volume.now().0);
        if at >= lasts.0 {
            break;
        }
        if let Some(done) = volume.wait_until(Nanos(at))? {
            note(&done, counted_from, &mut latencies);
            writing -= usize::from(done.operation == Operation::Write);
            continue;
        }
        if write_at <= next_read {
            let offset = ByteSize(written * WRITE % (capacity / WRITE * WRITE));
            volume.submit(Request::write(offset, ByteSize(WRITE)))?;
            (written, writing, next_write) = (written + 1, writing + 1, next_write + write_gap);
        } else {
            let block = places.random_range(0..capacity / READ);
            volume.submit(Request::read(ByteSize(block * READ), ByteSize(READ)))?;
            next_read += gap();
        }
    }
    let completed = latencies.len() as f64;
    // Reads that wait are as slow as they are at the end, at least.
    while volume.outstanding() > 0 {
        if let Some(done) = volume.wait()? {
            note(&done, counted_from, &mut latencies);
        }
    }
    Ok(Reads::new(latencies, completed / Nanos(lasts.0 - counted_from).as_secs_f64()))
}

fn note(done: &Completion, counted_from: u64, latencies: &mut Vec<u64>) {
    if done.operation == Operation::Read && done.submitted_at.0 >= counted_from {
        latencies.push(done.latency().0);
    }
}

/// Random reads of a size, so many in flight, after as many that are not counted.
pub(super) fn at_depth(
    device: &mut dyn BlockDevice,
    (depth, size): (usize, u64),
    count: usize,
    seed: u64,
) -> Result<Reads, BlockError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let blocks = device.info().capacity.0 / size;
    let (mut latencies, mut submitted) = (Vec::with_capacity(count), 0);
    let mut from = device.now();
    for done in 0..2 * count {
        while submitted < 2 * count && device.outstanding() < depth {
            let offset = ByteSize(random.random_range(0..blocks) * size);
            device.submit(Request::read(offset, ByteSize(size)))?;
            submitted += 1;
        }
        let Some(completion) = device.wait()? else { break };
        if done >= count {
            latencies.push(completion.latency().0);
        } else {
            from = device.now();
        }
    }
    let per_s = count as f64 / device.now().since(from).as_secs_f64();
    Ok(Reads::new(latencies, per_s))
}

/// Requests one after the other in order, or at random, so many in flight; requests a second.
pub(super) fn rate(
    device: &mut dyn BlockDevice,
    depth: usize,
    count: u64,
    request: &dyn Fn(u64) -> Request,
) -> Result<f64, BlockError> {
    let (from, mut submitted) = (device.now(), 0);
    for _ in 0..count {
        while submitted < count && device.outstanding() < depth {
            device.submit(request(submitted))?;
            submitted += 1;
        }
        device.wait()?;
    }
    Ok(count as f64 / device.now().since(from).as_secs_f64())
}
