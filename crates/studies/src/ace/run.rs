//! One run: accesses, a pool, a drive; and runs that differ in how the pool writes back, on the same accesses.
//!
//! The time of a run is the drive's: the pool waits for each read and for each batch of write-backs, and nothing else
//! takes time. The text's own simulator does the same with O_DIRECT and O_SYNC.

use std::sync::Arc;

use flashwise_block::{BlockDevice, ByteSize, Nanos, Request, execute};
use flashwise_bufferpool::drive::DriveStorage;
use flashwise_bufferpool::{Access, Ace, AnyPool, Counts, PolicySpec, PoolError, PoolOptions, Prefetch, Shape};
use flashwise_report::study::Measured;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use super::workload::{Conditions, Workload};
use crate::StudyError;
use crate::statistics::mean;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// The policies of the text. CFLRU looks for a clean page in the last third of the pool, as its authors' scripts have
/// it.
pub(super) const POLICIES: [(&str, &str); 4] =
    [("LRU", "lru"), ("CFLRU", "cflru:window=0.3333"), ("LRU-WSR", "lru-wsr"), ("Clock Sweep", "clock-sweep")];

/// How a pool writes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    /// One page when it falls.
    Classic,
    /// n pages at a time.
    Ace(usize),
    /// The same, and pages that a prefetcher names are read in their place.
    AcePrefetch(usize, Prefetch),
}

/// The text has both prefetchers.
pub(super) const PREFETCH: Prefetch = Prefetch::Both;

impl Method {
    /// Classic, ACE and ACE with prefetching.
    pub(super) fn three(batch: usize) -> [Self; 3] {
        [Self::Classic, Self::Ace(batch), Self::AcePrefetch(batch, PREFETCH)]
    }

    fn options(self, next_pages: &Arc<[u32]>) -> PoolOptions {
        let (ace, prefetch) = match self {
            Self::Classic => (Ace::CLASSIC, Prefetch::None),
            Self::Ace(batch) => (Ace::of(batch), Prefetch::None),
            Self::AcePrefetch(batch, prefetch) => (Ace::of(batch), prefetch),
        };
        PoolOptions { ace, prefetch, next_pages: Arc::clone(next_pages) }
    }
}

/// What a drive holds before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The file, written once in order on an empty drive: nothing is collected for a long time.
    Written,
    /// What a long random overwrite leaves: every write pays for collection.
    Steady,
}

/// Where pages are, and what is behind each.
pub(super) struct Pages {
    pub(super) places: Vec<u32>,
    pub(super) next: Arc<[u32]>,
    pub(super) blocks: Arc<[u32]>,
}

impl Pages {
    /// A file from the drive's start on.
    pub(super) fn of_file(pages: usize) -> Self {
        let last = pages.saturating_sub(1) as u32;
        let next = (0..pages as u32).map(|page| if page < last { page + 1 } else { u32::MAX }).collect();
        Self { places: (0..pages as u32).collect(), next, blocks: [].into() }
    }

    /// An empty pool for them.
    pub(super) fn pool(&self, policy: &str, frames: usize, method: Method) -> Result<Box<dyn AnyPool>, StudyError> {
        let shape = Shape { frames, pages: self.places.len(), blocks: Arc::clone(&self.blocks) };
        let spec = PolicySpec::parse(policy).map_err(PoolError::from)?;
        Ok(spec.pool(&shape, &method.options(&self.next)).map_err(PoolError::from)?)
    }
}

/// What a run took and did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Run {
    pub(super) seconds: f64,
    pub(super) read_seconds: f64,
    pub(super) write_seconds: f64,
    pub(super) accesses: f64,
    pub(super) misses: f64,
    pub(super) pages_written: f64,
    pub(super) batches: f64,
    pub(super) prefetched: f64,
    pub(super) prefetched_used: f64,
    /// Flash bytes programmed ÷ bytes written; 0 where nothing was written.
    pub(super) amplification: f64,
}

impl Run {
    /// What a pool did, in no time.
    pub(super) fn counted(counts: &Counts) -> Self {
        Self {
            accesses: counts.accesses as f64,
            misses: counts.misses as f64,
            pages_written: counts.pages_written as f64,
            batches: counts.write_back_operations as f64,
            prefetched: counts.prefetched as f64,
            prefetched_used: counts.prefetched_used as f64,
            ..Self::default()
        }
    }
}

/// A pool and its drive, to be asked for one access after the other.
pub(super) struct Bench<'a> {
    pool: Box<dyn AnyPool>,
    storage: DriveStorage<'a>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        ssd: &'a mut SimulatedSsd,
        pages: &'a Pages,
        policy: &str,
        frames: usize,
        method: Method,
    ) -> Result<Self, StudyError> {
        let pool = pages.pool(policy, frames, method)?;
        Ok(Self { pool, storage: DriveStorage::new(ssd, &pages.places, PAGE)? })
    }

    pub(super) fn play(&mut self, accesses: &[Access]) -> Result<(), StudyError> {
        accesses.iter().try_for_each(|&access| self.pool.access_on(access, &mut self.storage))?;
        Ok(())
    }

    /// What happened so far.
    pub(super) fn told(&self) -> Run {
        let cost = self.storage.cost();
        Run {
            seconds: cost.elapsed_ns as f64 / 1e9,
            read_seconds: cost.read_ns as f64 / 1e9,
            write_seconds: cost.write_ns as f64 / 1e9,
            amplification: cost.write_amplification.unwrap_or(0.0),
            ..Run::counted(self.pool.counts())
        }
    }
}

/// Bytes of a request when the file is written.
const LOADING: u64 = 1 << 20;

/// A drive in a state, with a file of so many pages at its start.
pub(super) fn drive(config: &DeviceConfig, state: State, pages: usize, seed: u64) -> Result<SimulatedSsd, StudyError> {
    let mut ssd = SimulatedSsd::new(config.clone(), seed)?;
    if state == State::Steady {
        flashwise_sim::enter_steady_state(&mut ssd, seed)?;
        return Ok(ssd);
    }
    let bytes = pages as u64 * PAGE;
    for start in (0..bytes).step_by(LOADING as usize) {
        execute(&mut ssd, Request::write(ByteSize(start), ByteSize(LOADING.min(bytes - start))))?.result?;
    }
    execute(&mut ssd, Request::flush())?.result?;
    ssd.pause(SETTLING)?;
    Ok(ssd)
}

/// Until what the drive has taken over is on flash.
const SETTLING: Nanos = Nanos(1_000_000_000);

/// What is compared.
#[derive(Clone, Debug)]
pub(super) struct Setting<'a> {
    pub(super) conditions: Conditions,
    pub(super) workload: Workload,
    pub(super) policy: &'static str,
    pub(super) frames: usize,
    /// The first is what the others are compared with.
    pub(super) methods: Vec<Method>,
    pub(super) drive: &'a DeviceConfig,
    pub(super) state: State,
}

impl<'a> Setting<'a> {
    /// A workload under the text's conditions: classic, ACE, ACE with prefetching.
    pub(super) fn of(
        conditions: Conditions,
        workload: Workload,
        policy: &'static str,
        drive: &'a DeviceConfig,
        batch: usize,
    ) -> Self {
        let (frames, methods) = (conditions.frames(), Method::three(batch).to_vec());
        Self { conditions, workload, policy, frames, methods, drive, state: State::Written }
    }

    /// Runs all methods on the same accesses with one seed after the other, until what they save is known well enough.
    pub(super) fn compare(&self, seed: u64) -> Result<Compared, StudyError> {
        let pages = Pages::of_file(self.conditions.pages());
        let repetition = self.conditions.repetition;
        let mut compared = Compared { runs: Vec::new() };
        loop {
            let seed = seed.wrapping_mul(1_000_003).wrapping_add(compared.runs.len() as u64);
            compared.runs.push(self.once(&pages, seed)?);
            let known = compared.runs.len() >= repetition.runs_min && compared.is_known(100.0 * repetition.error_max);
            if known || compared.runs.len() >= repetition.runs_max {
                return Ok(compared);
            }
        }
    }

    fn once(&self, pages: &Pages, seed: u64) -> Result<Vec<Run>, StudyError> {
        let accesses = self.workload.accesses(&self.conditions, seed);
        let run = |&method: &Method| {
            let mut ssd = drive(self.drive, self.state, self.conditions.pages(), seed)?;
            let mut bench = Bench::new(&mut ssd, pages, self.policy, self.frames, method)?;
            bench.play(&accesses)?;
            Ok(bench.told())
        };
        self.methods.iter().map(run).collect()
    }
}

/// The runs of each seed, by method.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub(super) runs: Vec<Vec<Run>>,
}

impl Compared {
    /// The mean of a quantity of one method's runs.
    pub(super) fn mean(&self, method: usize, what: impl Fn(&Run) -> f64) -> Measured {
        mean(&self.runs.iter().map(|runs| what(&runs[method])).collect::<Vec<_>>())
    }

    /// The mean over the seeds of how a quantity of a method stands to that of the first one.
    pub(super) fn against_first(&self, method: usize, how: impl Fn(&Run, &Run) -> f64) -> Measured {
        mean(&self.runs.iter().map(|runs| how(&runs[method], &runs[0])).collect::<Vec<_>>())
    }

    /// Time of the first method that another one saves, per cent.
    pub(super) fn saved(&self, method: usize) -> Measured {
        self.against_first(method, |run, first| 100.0 * (1.0 - run.seconds / first.seconds))
    }

    /// Time of the first method ÷ that of another one.
    pub(super) fn speedup(&self, method: usize) -> Measured {
        self.against_first(method, |run, first| first.seconds / run.seconds)
    }

    /// Misses beyond those of the first method, per cent of them.
    pub(super) fn misses_more(&self, method: usize) -> Measured {
        self.against_first(method, |run, first| 100.0 * (run.misses / first.misses - 1.0))
    }

    /// Pages written beyond those of the first method, per cent of them.
    pub(super) fn writes_more(&self, method: usize) -> Measured {
        self.against_first(method, |run, first| 100.0 * (run.pages_written / first.pages_written.max(1.0) - 1.0))
    }

    /// Whether half of each interval of what is saved is within so many percentage points.
    fn is_known(&self, points: f64) -> bool {
        let methods = self.runs.first().map_or(0, Vec::len);
        (1..methods).map(|method| self.saved(method)).all(|saved| (saved.high - saved.low) / 2.0 <= points)
    }
}
