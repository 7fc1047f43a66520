//! One run: a drive of the poster's kind, put into a state, and requests of one size on it.

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request, execute};
use flashwise_report::study::Measured;
use flashwise_ssd::config::CleaningPolicy;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::StudyError;
use crate::statistics::Repetition;

/// A drive: pages of 64 KiB, 4 a block, 8 elements of 8 planes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Organisation {
    /// Blocks of a plane: 2048 make 32 GB, 256 make 4 GB.
    pub(super) blocks: u32,
    pub(super) policy: CleaningPolicy,
    /// Cleaning starts when so much of a plane or less is free, per cent.
    pub(super) min_free_percent: u32,
    /// So much of each plane holds no data of a full drive, per cent.
    pub(super) reserve_percent: u32,
    /// Blocks cleaned before one operation, at most.
    pub(super) cleanings_max: Option<u32>,
    pub(super) lifetime_erasures: u32,
}

/// What is asked of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) sequential: bool,
    pub(super) is_read: bool,
}

impl Pattern {
    /// Sequential and random reads, sequential and random writes.
    pub(super) const ALL: [Self; 4] = [
        Self { sequential: true, is_read: true },
        Self { sequential: false, is_read: true },
        Self { sequential: true, is_read: false },
        Self { sequential: false, is_read: false },
    ];

    pub(super) fn name(self) -> &'static str {
        match (self.sequential, self.is_read) {
            (true, true) => "sequential read",
            (false, true) => "random read",
            (true, false) => "sequential write",
            (false, false) => "random write",
        }
    }
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// The next one when the one before is done.
    Synchronous,
    /// At random times, so many that sequential requests keep this share of the elements busy.
    Open(f64),
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Experiment {
    pub(super) organisation: Organisation,
    pub(super) pattern: Pattern,
    pub(super) bytes: u64,
    pub(super) arrivals: Arrivals,
    /// Random requests start at any multiple of this, bytes; by default of their own length.
    pub(super) alignment: Option<u64>,
    /// How often the whole drive is overwritten with random pages before.
    pub(super) overwrites: f64,
    /// What the host reads ahead of a sequential stream, bytes.
    pub(super) read_ahead: Option<u64>,
}

/// Requests of a run.
pub(super) const REQUESTS: u64 = 300;

/// Bytes of a page.
const PAGE: u64 = 65_536;

impl Organisation {
    /// A drive of so many blocks a plane with a threshold, and a reserve of 10 % above it (15 % with 5 %).
    pub(super) fn with_threshold(blocks: u32, min_free_percent: u32, policy: CleaningPolicy) -> Self {
        let reserve_percent = if min_free_percent == 90 { 95 } else { min_free_percent + 10 };
        Self { blocks, policy, min_free_percent, reserve_percent, cleanings_max: None, lifetime_erasures: 50 }
    }

    pub(super) fn name(&self) -> String {
        let size = if self.blocks == 2048 { "32 GB" } else { "4 GB" };
        format!("{size}, {} %", self.min_free_percent)
    }

    /// A full drive.
    pub(super) fn drive(&self, seed: u64) -> Result<SimulatedSsd, StudyError> {
        let mut config = DeviceConfig::preset(if self.blocks == 2048 { "machado-32g" } else { "machado-4g" })?;
        config.flash.blocks_per_plane = self.blocks;
        let element = &mut config.ftl.element;
        element.cleaning_policy = self.policy;
        element.min_free_share = f64::from(self.min_free_percent) / 100.0;
        element.cleanings_per_operation_max = self.cleanings_max;
        element.lifetime_erasures = self.lifetime_erasures;
        let rows = self.blocks - self.blocks * self.reserve_percent / 100;
        config.capacity_bytes = u64::from(rows) * config.ftl.element.row_bytes(&config);
        let mut drive = SimulatedSsd::new(config, seed)?;
        drive.fill_at_once()?;
        Ok(drive)
    }
}

impl Experiment {
    /// Synchronous, aligned requests on a full drive that were never written to since.
    pub(super) fn new(organisation: Organisation, pattern: Pattern, bytes: u64) -> Self {
        let (arrivals, overwrites) = (Arrivals::Synchronous, 0.0);
        Self { organisation, pattern, bytes, arrivals, alignment: None, overwrites, read_ahead: None }
    }

    /// The mean response time over repeated runs, ms.
    pub(super) fn repeat(&self, repetition: Repetition, seed: u64) -> Result<Measured, StudyError> {
        repetition.repeat(|n| self.run(seed.wrapping_mul(1_000_003).wrapping_add(n)))
    }

    /// The mean response time of one run, ms.
    pub(super) fn run(&self, seed: u64) -> Result<f64, StudyError> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut drive = self.organisation.drive(seed)?;
        overwrite(&mut drive, self.overwrites, &mut random)?;
        let capacity = drive.info().capacity.bytes();
        let places = capacity / self.bytes;
        let mut next = random.random_range(0..places);
        let (mut sum_ns, mut time_ns) = (0, drive.now().0);
        let mut ahead = 0..0;
        for _ in 0..REQUESTS {
            let offset = match (self.pattern.sequential, self.alignment) {
                (true, _) => next * self.bytes,
                (false, Some(unit)) => random.random_range(0..=(capacity - self.bytes) / unit) * unit,
                (false, None) => random.random_range(0..places) * self.bytes,
            };
            next = if next + 1 == places { 0 } else { next + 1 };
            if ahead.contains(&offset) {
                continue;
            }
            let length = match self.read_ahead {
                Some(window) if self.pattern.sequential && self.pattern.is_read => {
                    let length = window.max(self.bytes).min(capacity - offset);
                    ahead = offset..offset + length;
                    length
                }
                _ => self.bytes,
            };
            match self.arrivals {
                Arrivals::Synchronous => sum_ns += execute(&mut drive, self.request(offset, length))?.latency().0,
                Arrivals::Open(load) => {
                    time_ns += (2.0 * random.random::<f64>() * self.gap_ns(load)) as u64;
                    while let Some(done) = drive.wait_until(Nanos(time_ns))? {
                        sum_ns += done.latency().0;
                    }
                    drive.submit(self.request(offset, length))?;
                }
            }
        }
        while let Some(done) = drive.wait()? {
            sum_ns += done.latency().0;
        }
        Ok(sum_ns as f64 / REQUESTS as f64 / 1e6)
    }

    fn request(&self, offset: u64, length: u64) -> Request {
        let (offset, length) = (ByteSize(offset), ByteSize(length));
        if self.pattern.is_read { Request::read(offset, length) } else { Request::write(offset, length) }
    }

    /// The mean time between requests at which their page operations keep this share of 8 elements busy.
    fn gap_ns(&self, load: f64) -> f64 {
        let operation_ns = if self.pattern.is_read { 1_714_600.0 } else { 1_889_600.0 };
        self.bytes.div_ceil(PAGE) as f64 * operation_ns / 8.0 / load
    }
}

/// Overwrites random pages, so many times the whole drive.
pub(super) fn overwrite(drive: &mut SimulatedSsd, times: f64, random: &mut Pcg64Mcg) -> Result<(), StudyError> {
    let pages = drive.info().capacity.bytes() / PAGE;
    for _ in 0..(pages as f64 * times) as u64 {
        let page = random.random_range(0..pages);
        execute(drive, Request::write(ByteSize(page * PAGE), ByteSize(PAGE)))?;
    }
    Ok(())
}
