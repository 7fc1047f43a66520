//! A small drive that is overwritten at random, and what theory says of it; for the tests and for the example that
//! prints the table in the book.
//!
//! The drive has one plane whose blocks are its superblocks, so that the blocks of theory are those of the drive. A
//! write is followed by the next one when the drive is at rest: garbage collection has ended, and the free and open
//! blocks are as many as the configuration says. So `fill` can be the fill of the sealed blocks, exactly.
#![allow(dead_code, reason = "each program uses its own part")]

use std::error::Error;

pub use crate::one_plane::FREE_BLOCKS;
use crate::one_plane::{PAGE_BYTES, one_plane};
use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use flashwise_ssd::config::GcPolicy;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_theory::{Policy, Zone};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// So much of the traffic goes to so much of the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skew {
    /// Share of the writes.
    pub traffic: f64,
    /// Share of the logical pages.
    pub size: f64,
}

/// Every page is written as often.
pub const UNIFORM: Skew = Skew { traffic: 1.0, size: 1.0 };

/// The skews of SSD-iq.
pub const SKEWS: [Skew; 4] = [
    Skew { traffic: 0.7, size: 0.3 },
    Skew { traffic: 0.8, size: 0.2 },
    Skew { traffic: 0.9, size: 0.1 },
    Skew { traffic: 0.95, size: 0.05 },
];

/// Fills of the sealed blocks that are examined.
pub const FILLS: [f64; 7] = [0.5, 0.6, 0.7, 0.8, 0.875, 0.9, 0.95];

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub policy: GcPolicy,
    /// Fill of the sealed blocks.
    pub fill: f64,
    pub skew: Skew,
    pub blocks: u32,
    pub pages_per_block: u32,
    /// The host and garbage collection write to the same block.
    pub one_frontier: bool,
    /// Overwrites of the whole drive before those that are measured, and as many that are.
    pub rounds: u32,
}

impl Case {
    /// Free and open blocks of the drive at rest.
    fn at_rest(&self) -> (f64, f64) {
        (f64::from(FREE_BLOCKS), if self.one_frontier { 1.0 } else { 2.0 })
    }

    /// Logical pages that give the fill.
    pub fn logical_pages(&self) -> u64 {
        let (free, open) = self.at_rest();
        let blocks = self.fill * (f64::from(self.blocks) - free - open) + open / 2.0;
        (blocks * f64::from(self.pages_per_block)).round() as u64
    }

    /// The drive.
    pub fn config(&self) -> Result<DeviceConfig, Box<dyn Error>> {
        let blocks = (self.blocks, self.pages_per_block);
        let mut config = one_plane(self.logical_pages(), blocks, self.policy)?;
        config.ftl.gc.separate_open_block = !self.one_frontier;
        config.check("case")?;
        Ok(config)
    }

    /// The writes, page by page.
    pub fn traffic(&self, seed: u64) -> impl FnMut() -> u64 + use<> {
        let (pages, share) = (self.logical_pages(), self.skew.traffic);
        let hot = (self.skew.size * pages as f64).round() as u64;
        let mut random = Pcg64::seed_from_u64(seed);
        move || {
            let is_hot = hot == pages || random.random_bool(share);
            if is_hot { random.random_range(0..hot) } else { random.random_range(hot..pages) }
        }
    }

    /// Write amplification of the simulated drive; between two writes it comes to rest.
    pub fn simulate(&self) -> Result<f64, Box<dyn Error>> {
        self.simulate_with(|drive, page| {
            drive.submit(Request::write(ByteSize(page * PAGE_BYTES), ByteSize(PAGE_BYTES)))?;
            drive.wait()?;
            drive.pause(Nanos::millis(1_000))
        })
    }

    /// The same with so many writes in flight, beside which garbage collection continues.
    pub fn simulate_in_flight(&self, depth: usize) -> Result<f64, Box<dyn Error>> {
        self.simulate_with(|drive, page| {
            drive.submit(Request::write(ByteSize(page * PAGE_BYTES), ByteSize(PAGE_BYTES)))?;
            if drive.outstanding() >= depth {
                drive.wait()?;
            }
            Ok(())
        })
    }

    fn simulate_with(
        &self,
        mut write: impl FnMut(&mut SimulatedSsd, u64) -> Result<(), flashwise_block::BlockError>,
    ) -> Result<f64, Box<dyn Error>> {
        let mut drive = SimulatedSsd::new(self.config()?, 1)?;
        drive.fill_at_once()?;
        let mut next_page = self.traffic(1);
        let writes = u64::from(self.rounds) * self.logical_pages();
        (0..writes).try_for_each(|_| write(&mut drive, next_page()))?;
        let before = drive.counters();
        (0..writes).try_for_each(|_| write(&mut drive, next_page()))?;
        drive.check_invariants()?;
        Ok(drive.counters().since(&before).write_amplification().unwrap_or(f64::NAN))
    }

    /// Write amplification by theory; `None` for policies that there is none of.
    pub fn theory(&self) -> Option<f64> {
        let policy = match self.policy {
            GcPolicy::Greedy => Policy::Greedy,
            GcPolicy::Fifo => Policy::Fifo,
            GcPolicy::Random => Policy::Random,
            GcPolicy::RandomGreedy => Policy::RandomGreedy { d: flashwise_ssd::config::GcConfig::default().choices },
            _ => return None,
        };
        let Skew { traffic, size } = self.skew;
        if self.skew == UNIFORM {
            return flashwise_theory::mean_field(self.fill, self.pages_per_block, policy)
                .ok()
                .map(|s| s.write_amplification);
        }
        let zones = [Zone { size, traffic }, Zone { size: 1.0 - size, traffic: 1.0 - traffic }];
        let state = flashwise_theory::mean_field_zones(self.fill, self.pages_per_block, policy, &zones);
        state.ok().map(|state| state.all.write_amplification)
    }
}
