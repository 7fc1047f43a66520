//! A drive on the bench: the states that figures are defined in, and closed loops of requests against it.
//!
//! Unlike whoever learns a drive from outside, the bench may look at counters and start from a state that is laid out at
//! once.

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::config::Mapping;
use crate::simulation::SimulationError;
use crate::{DeviceConfig, SimulatedSsd};

/// Idle time after which everything that goes on by itself has ended.
const QUIET: Nanos = Nanos::millis(1_000);

/// A range of the drive that requests of one length go to, anywhere, aligned to their length.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// What a closed loop came to.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    /// Completed requests a second.
    pub(crate) per_s: f64,
    /// Flash bytes programmed ÷ host bytes written meanwhile; 1 where nothing was written.
    pub(crate) amplification: f64,
}

/// One drive, and the chance that its requests go by.
pub(crate) struct Bench {
    pub(crate) drive: SimulatedSsd,
    random: Pcg64Mcg,
}

impl Bench {
    /// An empty drive.
    pub(crate) fn empty(config: &DeviceConfig, seed: u64) -> Result<Self, SimulationError> {
        Ok(Self { drive: SimulatedSsd::new(config.clone(), seed)?, random: Pcg64Mcg::seed_from_u64(seed) })
    }

    /// A drive that was written once, in order.
    pub(crate) fn filled(config: &DeviceConfig, seed: u64) -> Result<Self, SimulationError> {
        let mut bench = Self::empty(config, seed)?;
        if config.ftl.mapping != Mapping::InPlace {
            bench.drive.fill_at_once()?;
        }
        Ok(bench)
    }

    /// A drive of which only a region holds data, written in order, after so many writes to it that all flash is in use:
    /// what is collected has nothing left to move.
    pub(crate) fn fresh(config: &DeviceConfig, region: u64) -> Result<Self, SimulationError> {
        let mut bench = Self::empty(config, 1)?;
        let length = config.host.max_transfer_bytes.min(1 << 20);
        let flash = if config.ftl.mapping == Mapping::InPlace { region } else { config.raw_bytes() + region };
        let passes = flash.div_ceil(region);
        let span = Span { start: 0, bytes: region / length * length };
        bench.write_in_order(span, length, 8, passes * span.bytes)?;
        bench.settle()?;
        Ok(bench)
    }

    /// A new drive of which a region was written once, in order, one write after the other: the pages of writes that are in
    /// flight at once lie mixed.
    pub(crate) fn written(config: &DeviceConfig, region: u64) -> Result<Self, SimulationError> {
        let mut bench = Self::empty(config, 1)?;
        let length = config.host.max_transfer_bytes.min(1 << 20);
        let span = Span { start: 0, bytes: region / length * length };
        bench.write_in_order(span, length, 1, span.bytes)?;
        bench.settle()?;
        bench.alone(Request::flush())?;
        bench.settle()?;
        Ok(bench)
    }

    /// A drive in the steady state of uniform writes where theory knows it, else one that was written once; gives which.
    pub(crate) fn steady(config: &DeviceConfig, seed: u64) -> Result<(Self, bool), SimulationError> {
        let mut bench = Self::empty(config, seed)?;
        if bench.drive.enter_steady_state(seed).is_ok() {
            return Ok((bench, true));
        }
        Ok((Self::filled(config, seed)?, false))
    }

    /// All of the drive.
    pub(crate) fn everywhere(&self) -> Span {
        Span { start: 0, bytes: self.drive.info().capacity.0 }
    }

    /// A place in a span for a request of a length.
    pub(crate) fn place(&mut self, span: Span, length: u64) -> ByteSize {
        let places = u128::from(span.bytes / length);
        let nth = (u128::from(self.random.next_u64()) * places) >> 64;
        ByteSize(span.start + nth as u64 * length)
    }

    /// Yes with a probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        ((self.random.next_u64() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }

    /// Keeps `depth` requests in flight until so many have completed; they stay in flight.
    pub(crate) fn run(
        &mut self,
        depth: usize,
        completions: u64,
        mut next: impl FnMut(&mut Self) -> Request,
    ) -> Result<Rate, SimulationError> {
        let (from, before) = (self.drive.now(), self.drive.counters());
        for _ in 0..completions {
            while self.drive.outstanding() < depth {
                let request = next(self);
                self.drive.submit(request)?;
            }
            self.wait()?;
        }
        let seconds = self.drive.now().since(from).as_secs_f64();
        let amplification = self.drive.counters().since(&before).write_amplification().unwrap_or(1.0);
        Ok(Rate { per_s: completions as f64 / seconds.max(1e-9), amplification })
    }

    /// Waits for one completion; gives its latency, `None` when nothing is in flight.
    fn wait(&mut self) -> Result<Option<u64>, SimulationError> {
        let Some(completion) = self.drive.wait()? else { return Ok(None) };
        completion.result.clone()?;
        Ok(Some(completion.latency().0))
    }

    /// Random reads.
    pub(crate) fn read(
        &mut self,
        span: Span,
        length: u64,
        depth: usize,
        completions: u64,
    ) -> Result<Rate, SimulationError> {
        self.run(depth, completions, |bench| Request::read(bench.place(span, length), ByteSize(length)))
    }

    /// Random writes.
    pub(crate) fn write(
        &mut self,
        span: Span,
        length: u64,
        depth: usize,
        completions: u64,
    ) -> Result<Rate, SimulationError> {
        self.run(depth, completions, |bench| Request::write(bench.place(span, length), ByteSize(length)))
    }

    /// Writes a span in order, in requests of a length, so many bytes of it, again and again.
    pub(crate) fn write_in_order(
        &mut self,
        span: Span,
        length: u64,
        depth: usize,
        bytes: u64,
    ) -> Result<Rate, SimulationError> {
        let (mut at, pieces) = (0, span.bytes / length);
        self.run(depth, bytes / length, |_| {
            at += 1;
            Request::write(ByteSize(span.start + (at - 1) % pieces * length), ByteSize(length))
        })
    }

    /// One request, alone; its latency, ns.
    pub(crate) fn alone(&mut self, request: Request) -> Result<u64, SimulationError> {
        self.drive.submit(request)?;
        Ok(self.wait()?.unwrap_or(0))
    }

    /// Flash bytes programmed since the drive is new.
    pub(crate) fn programmed(&self) -> u64 {
        self.drive.counters().flash.map_or(0, |flash| flash.bytes_programmed.0)
    }

    /// Superblocks that were collected since the drive is new.
    pub(crate) fn collections(&self) -> u64 {
        self.drive.counters().flash.map_or(0, |flash| flash.gc_runs)
    }

    /// Waits until nothing is in flight and nothing goes on by itself.
    pub(crate) fn settle(&mut self) -> Result<(), SimulationError> {
        while self.wait()?.is_some() {}
        Ok(self.drive.pause(QUIET)?)
    }
}

/// The middle one of the values.
pub(crate) fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    let n = values.len();
    match n {
        0 => 0.0,
        _ => (values[(n - 1) / 2] as f64 + values[n / 2] as f64) / 2.0,
    }
}

/// Latencies of requests one at a time, ns.
pub(crate) fn one_at_a_time(
    bench: &mut Bench,
    count: usize,
    mut next: impl FnMut(&mut Bench) -> Request,
) -> Result<Vec<u64>, SimulationError> {
    let mut latencies = Vec::with_capacity(count);
    for _ in 0..count {
        let request = next(bench);
        latencies.push(bench.alone(request)?);
    }
    Ok(latencies)
}
