//! DiskSim's device driver: open arrivals, at most 20 requests inside the drive, the others wait in C-LOOK order.

use std::collections::BTreeSet;

use flashwise_block::{BlockDevice, ByteSize, Completion, Nanos, Operation, Request};
use flashwise_ssd::{CleaningStatistics, DeviceConfig, RemainingLife, SimulatedSsd};

use super::workload::Arrival;

/// Requests inside the drive, at most.
const INSIDE_MAX: usize = 20;

/// What a run has given.
#[derive(Debug)]
pub struct Outcome {
    /// Mean time from release to the drive to completion.
    pub mean_ms: f64,
    pub completed: u64,
    pub cleaning: CleaningStatistics,
    pub life: RemainingLife,
}

struct Driver {
    drive: SimulatedSsd,
    waiting: BTreeSet<(u64, u64, u64, bool)>,
    arrived: u64,
    last_sector: u64,
    sum_ns: u64,
    completed: u64,
}

impl Driver {
    fn arrive(&mut self, arrival: &Arrival) {
        self.arrived += 1;
        let is_read = arrival.operation == Operation::Read;
        let request = (arrival.sector, self.arrived, arrival.sectors, is_read);
        if self.drive.outstanding() < INSIDE_MAX {
            self.release(request);
        } else {
            self.waiting.insert(request);
        }
    }

    fn release(&mut self, (sector, _, sectors, is_read): (u64, u64, u64, bool)) {
        self.last_sector = sector;
        let (offset, length) = (ByteSize(sector * 512), ByteSize(sectors * 512));
        let request = if is_read { Request::read(offset, length) } else { Request::write(offset, length) };
        self.drive.submit(request).unwrap();
    }

    fn complete(&mut self, completion: &Completion) {
        completion.result.clone().unwrap();
        self.sum_ns += completion.latency().0;
        self.completed += 1;
        let next = self.waiting.range((self.last_sector, 0, 0, false)..).next().or_else(|| self.waiting.first());
        if let Some(&next) = next {
            self.waiting.remove(&next);
            self.release(next);
        }
    }
}

/// Runs requests on a full drive; the last one ends the run when it would arrive.
pub fn run(config: DeviceConfig, arrivals: impl Iterator<Item = Arrival>) -> Outcome {
    let mut drive = SimulatedSsd::new(config, 1_000_003).unwrap();
    drive.fill_at_once().unwrap();
    let waiting = BTreeSet::new();
    let mut driver = Driver { drive, waiting, arrived: 0, last_sector: 0, sum_ns: 0, completed: 0 };
    let mut arrivals = arrivals.peekable();
    while let Some(arrival) = arrivals.next() {
        let time_ns = (arrival.time_ms * 1e6).round() as u64;
        while let Some(completion) = driver.drive.wait_until(Nanos(time_ns)).unwrap() {
            driver.complete(&completion);
        }
        if arrivals.peek().is_some() {
            driver.arrive(&arrival);
        }
    }
    let mean_ms = driver.sum_ns as f64 / driver.completed as f64 / 1e6;
    let (cleaning, life) = (driver.drive.cleaning_statistics().unwrap(), driver.drive.remaining_life().unwrap());
    driver.drive.check_invariants().unwrap();
    Outcome { mean_ms, completed: driver.completed, cleaning, life }
}
