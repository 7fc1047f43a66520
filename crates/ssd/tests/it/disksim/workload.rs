//! DiskSim's synthetic workload generator, its random numbers, and the traces of the long runs.
//!
//! The random numbers are those of POSIX `drand48`: x ← x · 0x5DEECE66D + 11 mod 2⁴⁸, u = x ÷ 2⁴⁸. The first request is
//! drawn after seed 42; then the simulator seeds with 1000003.

use flashwise_block::Operation;

/// One request: when it arrives, what it wants, in sectors of 512 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub time_ms: f64,
    pub operation: Operation,
    pub sector: u64,
    pub sectors: u64,
}

/// POSIX `drand48`.
pub struct Drand48(u64);

impl Drand48 {
    pub fn new(seed: u64) -> Self {
        Self(seed << 16 | 0x330E)
    }

    pub fn next(&mut self) -> f64 {
        self.0 = (self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB)) & ((1 << 48) - 1);
        self.0 as f64 / (1_u64 << 48) as f64
    }
}

/// How long requests are.
#[derive(Clone, Copy)]
pub enum Size {
    /// Always one block.
    Block,
    /// Exponential with this mean, sectors.
    Exponential(f64),
}

/// The parameters of the generator.
#[derive(Clone, Copy)]
pub struct Synthetic {
    /// Addresses are below this, sectors.
    pub capacity_sectors: u64,
    /// Starts and lengths are multiples of this, sectors.
    pub block_sectors: u64,
    pub size: Size,
    /// The time between requests is uniform from 0 to this, or always this.
    pub gap_ms: f64,
    pub fixed_gap: bool,
    pub sequential: bool,
    pub operation: Operation,
    /// Requests, of which the last one ends the run.
    pub requests: u64,
}

impl Synthetic {
    /// The stream of requests.
    pub fn arrivals(self) -> impl Iterator<Item = Arrival> {
        let blocks = self.capacity_sectors / self.block_sectors;
        let mut random = Drand48::new(42);
        let (mut time_ms, mut start, mut length) = (0.0, 0, 0);
        (0..self.requests).map(move |n| {
            let repeats = n > 0 && random.next() < f64::from(u8::from(self.sequential)) && start + 2 * length < blocks;
            time_ms += self.gap(&mut random);
            if repeats {
                start += length;
            } else {
                random.next();
                (start, length) = self.place(blocks, &mut random);
                random.next();
            }
            random.next();
            if n == 0 {
                random = Drand48::new(1_000_003);
            }
            let (sector, sectors) = (start * self.block_sectors, length * self.block_sectors);
            Arrival { time_ms, operation: self.operation, sector, sectors }
        })
    }

    fn gap(&self, random: &mut Drand48) -> f64 {
        let u = random.next();
        if self.fixed_gap { self.gap_ms } else { u * self.gap_ms }
    }

    fn place(&self, blocks: u64, random: &mut Drand48) -> (u64, u64) {
        loop {
            let start = (random.next() * blocks as f64) as u64;
            let u = random.next();
            let length = match self.size {
                Size::Block => 1,
                Size::Exponential(mean) => ((-mean * (1.0 - u).ln()) as u64).div_ceil(self.block_sectors),
            };
            if length > 0 && start + length < blocks {
                return (start, length);
            }
        }
    }
}

/// Knuth's 64-bit linear congruential generator, of which the upper 31 bits are used.
struct Lcg(u64);

impl Lcg {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 31) as f64
    }
}

/// A trace of page writes: `share` of them go to the first `hot` part of `range` pages.
#[derive(Clone, Copy)]
pub struct PageWrites {
    pub requests: u64,
    pub range: u64,
    /// (hot part of the pages, share of the writes); `None` writes uniformly.
    pub skew: Option<(f64, f64)>,
    pub gap_ms: f64,
    pub seed: u64,
    pub page_sectors: u64,
}

impl PageWrites {
    pub fn arrivals(self) -> impl Iterator<Item = Arrival> {
        let mut random = Lcg(self.seed);
        (1..=self.requests).map(move |k| {
            let (u1, u2) = (random.next(), random.next());
            let (first, count) = match self.skew {
                None => (0, self.range),
                Some((part, share)) => {
                    let hot = (self.range as f64 * part) as u64;
                    if u1 < share { (0, hot) } else { (hot, self.range - hot) }
                }
            };
            let page = first + (u2 * count as f64) as u64;
            Arrival {
                time_ms: k as f64 * self.gap_ms,
                operation: Operation::Write,
                sector: page * self.page_sectors,
                sectors: self.page_sectors,
            }
        })
    }
}

/// Reads and writes, half and half, of 1 to 16 pages.
pub fn mixed(requests: u64) -> impl Iterator<Item = Arrival> {
    const PAGES: u64 = 54_064;
    let mut random = Lcg(99);
    let mut time_ms = 0.0;
    (0..requests).map(move |_| {
        let [u1, u2, u3, u4] = std::array::from_fn(|_| random.next());
        let pages = 1 + (16.0 * u1) as u64;
        let start = (u2 * (PAGES - pages) as f64) as u64;
        time_ms += 8.0 * u3;
        let operation = if u4 < 0.5 { Operation::Read } else { Operation::Write };
        Arrival { time_ms: (time_ms * 1e3).round() / 1e3, operation, sector: start * 8, sectors: pages * 8 }
    })
}
