//! A small drive that keeps streams apart, overwritten by hot and cold, skewed or uniform traffic, and what theory says
//! of it; for the tests and for the example that prints the table in the book.
//!
//! The drive is that of `overwrite.rs`: one plane, whose blocks are its superblocks, at rest between two writes. All
//! policies have the same logical pages; `fill` is that of the sealed blocks of a drive without streams, from which the
//! open blocks of the further classes take a little more.
#![allow(dead_code, reason = "each program that uses this uses its own part")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;

use crate::one_plane::{FREE_BLOCKS, PAGE_BYTES, one_plane};
use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use flashwise_ssd::config::{GcPolicy, StreamPolicy, StreamsConfig};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_theory::{Policy, Zone};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Which pages are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// All as often.
    Uniform,
    /// So much of the traffic goes to so much of the drive, uniformly; the former names stream 1, the rest none.
    HotCold { traffic: f64, size: f64 },
    /// Each page about as long after its last write as the time before, ± 10 %: so much of the traffic goes to so much
    /// of the drive; no stream is named.
    Steady { traffic: f64, size: f64 },
    /// The page of rank r with a probability of r to the power of minus this; no stream is named.
    Zipf { theta: f64 },
}

pub const STRONG: Traffic = Traffic::HotCold { traffic: 0.9, size: 0.1 };

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub streams: StreamPolicy,
    pub gc: GcPolicy,
    pub traffic: Traffic,
    /// Fill of the sealed blocks of a drive without streams.
    pub fill: f64,
    pub blocks: u32,
    pub pages_per_block: u32,
    /// Overwrites of the whole drive before those that are measured: so many that the cold pages, too, are overwritten
    /// several times.
    pub warm_up: u32,
    /// Overwrites of the whole drive that are measured.
    pub rounds: u32,
}

impl Case {
    /// Logical pages that give the fill.
    pub fn logical_pages(&self) -> u64 {
        let blocks = self.fill * f64::from(self.blocks - FREE_BLOCKS - 2) + 1.0;
        (blocks * f64::from(self.pages_per_block)).round() as u64
    }

    /// The drive.
    pub fn config(&self) -> Result<DeviceConfig, Box<dyn Error>> {
        let blocks = (self.blocks, self.pages_per_block);
        let mut config = one_plane(self.logical_pages(), blocks, self.gc)?;
        config.ftl.streams = StreamsConfig { policy: self.streams, streams: 2, ..StreamsConfig::default() };
        config.check("case")?;
        Ok(config)
    }

    /// The writes: page and stream.
    pub fn writes(&self, seed: u64) -> Box<dyn FnMut() -> (u64, u16)> {
        let pages = self.logical_pages();
        let mut random = Pcg64::seed_from_u64(seed);
        match self.traffic {
            Traffic::Uniform => Box::new(move || (random.random_range(0..pages), 0)),
            Traffic::HotCold { traffic, size } => {
                let hot = (size * pages as f64).round() as u64;
                Box::new(move || match random.random_bool(traffic) {
                    true => (random.random_range(0..hot), 1),
                    false => (random.random_range(hot..pages), 0),
                })
            }
            Traffic::Steady { traffic, size } => {
                let hot = (size * pages as f64).round() as u64;
                // Mean lives of the two parts, in millionths of a write.
                let [hot_life, cold_life] = [hot as f64 / traffic, (pages - hot) as f64 / (1.0 - traffic)];
                let life = move |page| if page < hot { hot_life } else { cold_life } * 1e6;
                let first = (0..pages).map(|page| (random.random_range(0.0..life(page)) as u64, page));
                let mut due: BinaryHeap<Reverse<(u64, u64)>> = first.map(Reverse).collect();
                Box::new(move || {
                    let Some(Reverse((time, page))) = due.pop() else { return (0, 0) };
                    let next = time + (life(page) * random.random_range(0.9..1.1)) as u64;
                    due.push(Reverse((next, page)));
                    (page, 0)
                })
            }
            Traffic::Zipf { theta } => {
                let mut sum = 0.0;
                let below: Vec<f64> = (1..=pages)
                    .map(|rank| {
                        sum += (rank as f64).powf(-theta);
                        sum
                    })
                    .collect();
                // Neighbours in rank lie apart: a step that has no divisor in common with the number of pages.
                let step = (pages * 5 / 8..).find(|&step| coprime(step, pages)).unwrap_or(1);
                Box::new(move || {
                    let drawn = random.random_range(0.0..sum);
                    let rank = below.partition_point(|&below| below <= drawn) as u64;
                    (rank.min(pages - 1) * step % pages, 0)
                })
            }
        }
    }

    /// Write amplification of the simulated drive; between two writes it comes to rest.
    pub fn simulate(&self) -> Result<f64, Box<dyn Error>> {
        self.simulate_on(SimulatedSsd::new(self.config()?, 1)?)
    }

    /// The same of a drive that is told beforehand when pages die, with an error.
    pub fn simulate_foreseen(&self, error: f64) -> Result<f64, Box<dyn Error>> {
        let mut config = self.config()?;
        config.ftl.streams.foresight_error = Some(error);
        let mut drive = SimulatedSsd::new(config, 1)?;
        let (mut next, writes) = (self.writes(1), u64::from(self.warm_up + self.rounds) * self.logical_pages());
        let pages: Vec<u32> = (0..writes).map(|_| next().0 as u32).collect();
        drive.set_future_writes(&pages)?;
        self.simulate_on(drive)
    }

    fn simulate_on(&self, mut drive: SimulatedSsd) -> Result<f64, Box<dyn Error>> {
        drive.fill_at_once()?;
        let mut next = self.writes(1);
        let mut write = |drive: &mut SimulatedSsd| {
            let (page, stream) = next();
            drive.submit(Request::write(ByteSize(page * PAGE_BYTES), ByteSize(PAGE_BYTES)).in_stream(stream))?;
            drive.wait()?;
            drive.pause(Nanos::millis(1_000))
        };
        let pages = self.logical_pages();
        (0..u64::from(self.warm_up) * pages).try_for_each(|_| write(&mut drive))?;
        let before = drive.counters();
        (0..u64::from(self.rounds) * pages).try_for_each(|_| write(&mut drive))?;
        drive.check_invariants()?;
        Ok(drive.counters().since(&before).write_amplification().unwrap_or(f64::NAN))
    }

    /// Fill of the sealed blocks, with the open ones of all classes apart.
    fn fill_of_sealed(&self) -> f64 {
        let streams = StreamsConfig { policy: self.streams, streams: 2, ..StreamsConfig::default() };
        let open = f64::from(streams.host_classes() + streams.gc_classes());
        let (blocks, pages) = (u64::from(self.blocks), u64::from(self.pages_per_block));
        flashwise_theory::fill_of_sealed(self.logical_pages(), blocks, pages, f64::from(FREE_BLOCKS), open)
    }

    /// What greedy makes of streams that are kept apart, by theory. Each stream is a drive of its own, written
    /// uniformly; greedy takes the emptiest block of all and so gives the streams such shares of the spare space that
    /// their victims are equally full. Then each has the fill of the whole, and the write amplification of that.
    pub fn greedy_apart(&self) -> Option<f64> {
        let state = flashwise_theory::mean_field(self.fill_of_sealed(), self.pages_per_block, Policy::Greedy);
        state.ok().map(|state| state.write_amplification)
    }

    /// The least with the best shares of the spare space, for large blocks.
    pub fn best_apart(&self) -> f64 {
        match self.traffic {
            Traffic::HotCold { traffic, size } => {
                let zones = [Zone { size, traffic }, Zone { size: 1.0 - size, traffic: 1.0 - traffic }];
                flashwise_theory::write_amplification_separated(self.fill_of_sealed(), &zones)
            }
            _ => f64::NAN,
        }
    }
}

fn coprime(a: u64, b: u64) -> bool {
    if b == 0 { a == 1 } else { coprime(b, a % b) }
}
