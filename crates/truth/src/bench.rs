//! A drive on the bench: the states that figures are defined in, and closed loops of requests against it.
//!
//! Unlike whoever learns a drive from outside, the bench may look at counters and start from a state that is laid out
//! at once.

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use flashwise_sim::SimulationError;
use flashwise_ssd::config::{BoundTo, Mapping};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

/// Idle time after which everything that continues by itself has ended, the emptying of an SLC cache too.
const QUIET: Nanos = Nanos::secs(30);

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

/// What a drive went through before it is brought into a state.
///
/// Where the unit of a page does not follow from its address, units that have all gone the same way collect at the same
/// time, and continue to do so for as long as anybody looks; those that have not collect in turn, and the requests in
/// flight wait now for this one and now for that. Speeds differ by up to a factor of two, at equal write amplification.
/// Where a page's unit follows from its address, a past still decides which superblocks are open and how full they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// Nothing: it is new.
    None,
    /// Writes of all lengths one at a time, everywhere, with flushes in between; then all of it was trimmed.
    Lively,
}

impl Past {
    /// Whether the state that a drive ends up in may depend on its past, even where nothing is collected.
    pub(crate) fn may_matter(config: &DeviceConfig) -> bool {
        config.ftl.mapping == Mapping::Page && config.ftl.placement.binds_to() == BoundTo::Nothing
    }
}

/// Writes of a lively past, their lengths in logical blocks up to so many, and after how many there is a flush.
const PAST_WRITES: u64 = 30_000;
const PAST_BLOCKS_MAX: u64 = 64;
const PAST_FLUSH_EVERY: u64 = 16;

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

    /// An empty drive with a past.
    pub(crate) fn with_past(config: &DeviceConfig, past: Past, seed: u64) -> Result<Self, SimulationError> {
        let mut bench = Self::empty(config, seed)?;
        if past == Past::None {
            return Ok(bench);
        }
        let (all, block) = (bench.everywhere(), config.host.logical_block_bytes);
        let longest = PAST_BLOCKS_MAX.min(config.host.max_transfer_bytes / block);
        for n in 0..PAST_WRITES {
            let length = block * (1 + bench.random.next_u64() % longest);
            let offset = bench.place(all, length);
            bench.alone(Request::write(ByteSize(offset.0 / block * block), ByteSize(length)))?;
            if n % PAST_FLUSH_EVERY == 0 {
                bench.alone(Request::flush())?;
            }
        }
        bench.trim(all, config.host.max_transfer_bytes)?;
        bench.settle()?;
        Ok(bench)
    }

    /// Trims a span, in requests of a length.
    pub(crate) fn trim(&mut self, span: Span, length: u64) -> Result<(), SimulationError> {
        let end = span.start + span.bytes;
        let mut at = span.start;
        while at < end {
            let part = length.min(end - at);
            self.alone(Request::trim(ByteSize(at), ByteSize(part)))?;
            at += part;
        }
        Ok(())
    }

    /// A drive that was written once, in order.
    pub(crate) fn filled(config: &DeviceConfig, seed: u64) -> Result<Self, SimulationError> {
        let mut bench = Self::empty(config, seed)?;
        match config.ftl.mapping {
            Mapping::InPlace => {}
            _ if config.reduction.is_none() => bench.drive.fill_at_once()?,
            _ => bench.fill()?,
        }
        Ok(bench)
    }

    /// Writes the whole drive in order, one write after the other, and lets it come to rest.
    fn fill(&mut self) -> Result<(), SimulationError> {
        let (all, length) = (self.everywhere(), self.drive.info().max_transfer.0.min(1 << 20));
        let pieces = all.bytes / length * length;
        self.write_in_order(all, length, 1, pieces)?;
        self.settle()?;
        if pieces < all.bytes {
            self.alone(Request::write(ByteSize(pieces), ByteSize(all.bytes - pieces)))?;
        }
        self.alone(Request::flush())?;
        self.settle()
    }

    /// A drive of which only a region holds data, written in order, after so many writes to it that all flash is in
    /// use: what is collected has nothing left to move.
    pub(crate) fn fresh(config: &DeviceConfig, region: u64, past: Past) -> Result<Self, SimulationError> {
        let mut bench = Self::with_past(config, past, 1)?;
        let length = config.host.max_transfer_bytes.min(1 << 20);
        let flash = if config.ftl.mapping == Mapping::InPlace { region } else { config.raw_bytes() + region };
        let passes = flash.div_ceil(region);
        let span = Span { start: 0, bytes: region / length * length };
        bench.write_in_order(span, length, 8, passes * span.bytes)?;
        bench.settle()?;
        Ok(bench)
    }

    /// A new drive of which a region was written once, in order, one write after the other: the pages of writes that
    /// are in flight at once lie mixed.
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

    /// A drive in the steady state of uniform writes where theory knows it, else one that was written once, in order;
    /// gives which. What depends on the past is written, as tests of drives start.
    pub(crate) fn steady(config: &DeviceConfig, past: Past, seed: u64) -> Result<(Self, bool), SimulationError> {
        if Past::may_matter(config) || past != Past::None {
            let mut bench = Self::with_past(config, past, seed)?;
            let (all, length) = (bench.everywhere(), config.host.max_transfer_bytes.min(1 << 20));
            bench.write_in_order(all, length, 32.min(config.host.queue_depth as usize), all.bytes)?;
            bench.settle()?;
            return Ok((bench, false));
        }
        let mut bench = Self::empty(config, seed)?;
        if flashwise_sim::enter_steady_state(&mut bench.drive, seed).is_ok() {
            return Ok((bench, true));
        }
        Ok((Self::filled(config, seed)?, false))
    }

    /// The first bytes of the drive, all of it where it has fewer.
    pub(crate) fn first(&self, bytes: u64) -> Span {
        Span { start: 0, bytes: bytes.min(self.drive.info().capacity.0) }
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

    /// Reads a span in order, one read after the other: of a map that is cached, what belongs to it is at hand then, or
    /// as much as there is room for.
    pub(crate) fn read_in_order(&mut self, span: Span) -> Result<(), SimulationError> {
        let length = self.drive.info().max_transfer.0.min(1 << 20);
        for n in 0..span.bytes / length {
            self.alone(Request::read(ByteSize(span.start + n * length), ByteSize(length)))?;
        }
        self.settle()
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

    /// Writes all of a span once, in order, in requests of a length, and no more: what is submitted ahead is no part of
    /// another pass. Gives bytes a second.
    pub(crate) fn pass_in_order(&mut self, span: Span, length: u64, depth: usize) -> Result<f64, SimulationError> {
        let (from, pieces) = (self.drive.now(), span.bytes / length);
        let mut submitted = 0;
        for _ in 0..pieces {
            while self.drive.outstanding() < depth && submitted < pieces {
                self.drive.submit(Request::write(ByteSize(span.start + submitted * length), ByteSize(length)))?;
                submitted += 1;
            }
            self.wait()?;
        }
        let seconds = self.drive.now().since(from).as_secs_f64();
        Ok((pieces * length) as f64 / seconds.max(1e-9))
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

    /// Waits until nothing is in flight and nothing continues by itself.
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
