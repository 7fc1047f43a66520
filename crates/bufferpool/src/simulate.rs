//! Many pools on one trace: every policy with every size, on all cores.
//!
//! ```text
//!   PageTrace ─▶ cells: policy × frames × classic or ACE ─▶ workers ─▶ PoolReport, in the order of the plan
//! ```
//!
//! Each cell has a pool of its own and goes through the whole trace, so that the curve of misses over sizes is exact
//! for every policy, and its time is that of one core.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use flashwise_block::interrupt;
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use rayon::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::ace::Ace;
use crate::cost::{DriveModel, ModelCost};
use crate::drive::{DriveCost, DriveStorage};
use crate::error::PoolError;
use crate::policy::{PolicySpec, Shape};
use crate::pool::{AnyPool, Counts, PoolOptions};
use crate::prefetch::Prefetch;
use crate::trace::PageTrace;

/// `schema` of a report.
pub const POOL_SCHEMA: &str = "flashwise.pool";
/// `schema_version` of a report.
pub const POOL_SCHEMA_VERSION: u32 = 1;

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct PoolPlan {
    /// Policies, in the order of the report.
    pub policies: Vec<PolicySpec>,
    /// Sizes of the pool.
    pub frames: Vec<u64>,
    /// Ways to write back: [`Ace::CLASSIC`], ACE, or both.
    pub write_backs: Vec<Ace>,
    /// What is prefetched where the way to write back is not the classic one.
    pub prefetch: Prefetch,
    /// A drive of the parametric model to tell costs of.
    pub model: Option<DriveModel>,
    /// A simulated drive to tell costs of.
    pub drive: Option<DeviceConfig>,
    /// Pools at a time; 0 for one a core.
    pub jobs: usize,
}

/// One pool's run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolResult {
    /// The policy, with its parameters.
    pub policy: String,
    /// Whether dirty pages are written back in batches.
    pub ace: bool,
    /// How, in the words of ACE's authors; `None` for the classic way.
    pub variant: Option<String>,
    /// Frames of the pool.
    pub frames: u64,
    /// Accesses.
    pub accesses: u64,
    /// Accesses to pages without a frame.
    pub misses: u64,
    /// Misses ÷ accesses.
    pub miss_ratio: f64,
    /// Pages that were evicted.
    pub evictions: u64,
    /// Victims that were dirty.
    pub dirty_evictions: u64,
    /// Batches of pages that were written together.
    pub write_back_operations: u64,
    /// Pages in them.
    pub pages_written: u64,
    /// Pages of a batch, on average; `None` without one.
    pub mean_batch: Option<f64>,
    /// Pages that were read before anybody asked.
    pub pages_prefetched: u64,
    /// Those of them that somebody requested while they were there.
    pub prefetched_used: u64,
    /// Accesses ÷ time on the processor: of one core, whatever else the machine does; the drive not simulated.
    pub accesses_per_s: f64,
    /// Cost by the parametric model.
    pub model_cost: Option<ModelCost>,
    /// Cost on the simulated drive.
    pub drive_cost: Option<DriveCost>,
}

impl PoolResult {
    /// Bytes that the write-backs programmed on flash; `None` without a drive whose write amplification is known.
    pub(crate) fn flash_bytes(&self, page_bytes: u64) -> Option<f64> {
        let amplification = match self.pages_written {
            0 => 1.0,
            _ => self.drive_cost.as_ref()?.write_amplification?,
        };
        self.drive_cost.as_ref()?;
        Some(self.pages_written as f64 * page_bytes as f64 * amplification)
    }
}

/// What a pool can be best by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolMeasure {
    /// Accesses to pages without a frame.
    Misses,
    /// Time on the simulated drive, ns.
    DriveTime,
    /// Cost by the parametric model, page reads.
    ModelCost,
    /// Bytes programmed on the simulated drive's flash.
    FlashBytes,
    /// Pages written back.
    PagesWritten,
}

impl PoolMeasure {
    const ALL: [Self; 5] = [Self::Misses, Self::DriveTime, Self::ModelCost, Self::FlashBytes, Self::PagesWritten];

    fn of(self, result: &PoolResult, page_bytes: u64) -> Option<f64> {
        match self {
            Self::Misses => Some(result.misses as f64),
            Self::DriveTime => result.drive_cost.as_ref().map(|cost| cost.elapsed_ns as f64),
            Self::ModelCost => result.model_cost.as_ref().map(|cost| cost.total_reads),
            Self::FlashBytes => result.flash_bytes(page_bytes),
            Self::PagesWritten => Some(result.pages_written as f64),
        }
    }
}

/// The best pool of one size by one measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestPool {
    /// Frames of the pool.
    pub frames: u64,
    /// By what.
    pub by: PoolMeasure,
    /// The policy; of several that are as good, the first of the results.
    pub policy: String,
    /// How it writes back; `None` for the classic way.
    pub variant: Option<String>,
    /// Its value.
    pub value: f64,
    /// The highest value of a pool of this size.
    pub worst: f64,
    /// Whether pools of other policies are as good.
    pub is_shared: bool,
}

/// The best pool of each size by each measure in which pools of that size differ.
fn best(results: &[PoolResult], page_bytes: u64) -> Vec<BestPool> {
    let mut frames: Vec<u64> = results.iter().map(|result| result.frames).collect();
    frames.sort_unstable();
    frames.dedup();
    let of = |(frames, by): (u64, PoolMeasure)| {
        let of_size = results.iter().filter(|result| result.frames == frames);
        let valued = of_size.filter_map(|result| Some((result, by.of(result, page_bytes)?)));
        let valued: Vec<(&PoolResult, f64)> = valued.collect();
        let &(first, value) = valued.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let worst = valued.iter().map(|(_, value)| *value).fold(value, f64::max);
        let is_shared = valued.iter().any(|(result, other)| *other == value && result.policy != first.policy);
        let (policy, variant) = (first.policy.clone(), first.variant.clone());
        (worst > value).then_some(BestPool { frames, by, policy, variant, value, worst, is_shared })
    };
    frames.into_iter().flat_map(|frames| PoolMeasure::ALL.map(|by| (frames, by))).filter_map(of).collect()
}

/// All runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolReport {
    /// Always [`POOL_SCHEMA`].
    pub schema: &'static str,
    /// Always [`POOL_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The trace.
    pub trace: String,
    /// Its requests, as far as they were read.
    pub requests: u64,
    /// Accesses to pages in it.
    pub accesses: u64,
    /// Accesses that write.
    pub writes: u64,
    /// Different pages.
    pub pages: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// What is prefetched.
    pub prefetch: Prefetch,
    /// The drive of the parametric model.
    pub model: Option<DriveModel>,
    /// The simulated drive.
    pub drive: Option<String>,
    /// Accesses of all results ÷ time from the first to the last of them, on all cores.
    pub accesses_per_s: f64,
    /// A pool each: by policy, then frames, then the way to write back.
    pub results: Vec<PoolResult>,
    /// The best pools of each size.
    pub best: Vec<BestPool>,
}

/// Accesses between two reports of progress.
const CHUNK: usize = 1 << 16;

/// Runs every cell of a plan; `progress` is called with how far all of it is, from 0 to 1, by several threads.
///
/// # Errors
/// When a size is 0, a policy refuses a parameter, the drive cannot hold the pages, or the user interrupts.
pub fn simulate(
    trace: &mut PageTrace,
    plan: &PoolPlan,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<PoolReport, PoolError> {
    if plan.frames.contains(&0) {
        return Err(PoolError::NoFrames);
    }
    let accesses = trace.accesses().len() as u64;
    let (writes, pages) = (trace.writes(), trace.pages() as u64);
    let common = Common::new(trace, plan)?;
    let cells = cells(plan);
    let done = AtomicU64::new(0);
    let all = (accesses * cells.len() as u64 * if plan.drive.is_some() { 2 } else { 1 }).max(1);
    let told = |more: u64| {
        let done = done.fetch_add(more, Ordering::Relaxed) + more;
        progress(done as f64 / all as f64);
        interrupt::check().map_err(|_| PoolError::Interrupted)
    };
    let threads = rayon::ThreadPoolBuilder::new().num_threads(plan.jobs.min(cells.len())).build();
    let threads = threads.map_err(|error| PoolError::Threads(error.to_string()))?;
    let start = Instant::now();
    let run = |cell: &Cell<'_>| run(trace, plan, &common, cell, &told);
    let results = threads.install(|| cells.par_iter().map(run).collect::<Result<Vec<_>, _>>())?;
    let seconds = start.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(PoolReport {
        schema: POOL_SCHEMA,
        schema_version: POOL_SCHEMA_VERSION,
        trace: trace.name().to_owned(),
        requests: trace.requests(),
        accesses,
        writes,
        pages,
        page_bytes: trace.page_bytes(),
        prefetch: plan.prefetch,
        model: plan.model,
        drive: plan.drive.as_ref().map(|drive| drive.name.clone()),
        accesses_per_s: (accesses * results.len() as u64) as f64 / seconds,
        best: best(&results, trace.page_bytes()),
        results,
    })
}

/// What all cells share.
struct Common {
    blocks: Arc<[u32]>,
    next_pages: Arc<[u32]>,
    places: Vec<u32>,
}

impl Common {
    fn new(trace: &mut PageTrace, plan: &PoolPlan) -> Result<Self, PoolError> {
        let behind = plan.write_backs.iter().map(|ace| ace.evict.unwrap_or(ace.write_back_batch)).max().unwrap_or(1);
        let next_pages = match plan.prefetch.follows_streams() {
            true => trace.with_neighbours(behind as u64)?,
            false => [].into(),
        };
        let places = if plan.drive.is_some() { trace.places() } else { Vec::new() };
        Ok(Self { blocks: trace.blocks(), next_pages, places })
    }
}

/// One pool.
struct Cell<'a> {
    policy: &'a PolicySpec,
    frames: u64,
    ace: Ace,
}

fn cells(plan: &PoolPlan) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    for policy in &plan.policies {
        for &frames in &plan.frames {
            cells.extend(plan.write_backs.iter().map(|&ace| Cell { policy, frames, ace }));
        }
    }
    cells
}

impl Cell<'_> {
    fn is_classic(&self) -> bool {
        self.ace == Ace::CLASSIC
    }

    fn pool(&self, trace: &PageTrace, plan: &PoolPlan, common: &Common) -> Result<Box<dyn AnyPool>, PoolError> {
        // Frames beyond the pages would stay empty.
        let frames = usize::try_from(self.frames).unwrap_or(usize::MAX).min(trace.pages());
        let shape = Shape { frames, pages: trace.pages(), blocks: Arc::clone(&common.blocks) };
        let prefetch = if self.is_classic() { Prefetch::None } else { plan.prefetch };
        let options = PoolOptions { ace: self.ace, prefetch, next_pages: Arc::clone(&common.next_pages) };
        Ok(self.policy.pool(&shape, &options)?)
    }
}

fn run(
    trace: &PageTrace,
    plan: &PoolPlan,
    common: &Common,
    cell: &Cell<'_>,
    told: &(dyn Fn(u64) -> Result<(), PoolError> + Sync),
) -> Result<PoolResult, PoolError> {
    let mut pool = cell.pool(trace, plan, common)?;
    let start = processor_seconds();
    for chunk in trace.accesses().chunks(CHUNK) {
        pool.replay(chunk)?;
        told(chunk.len() as u64)?;
    }
    let seconds = (processor_seconds() - start).max(f64::MIN_POSITIVE);
    let drive_cost = plan.drive.as_ref().map(|drive| on_drive(drive, trace, plan, common, cell, told)).transpose()?;
    Ok(result(cell, pool.counts(), seconds, plan.model, drive_cost))
}

/// How long this thread has been on a processor.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn on_drive(
    drive: &DeviceConfig,
    trace: &PageTrace,
    plan: &PoolPlan,
    common: &Common,
    cell: &Cell<'_>,
    told: &(dyn Fn(u64) -> Result<(), PoolError> + Sync),
) -> Result<DriveCost, PoolError> {
    let failed = |error: flashwise_ssd::SsdError| PoolError::Drive(error.to_string());
    let mut ssd = SimulatedSsd::new(drive.clone(), 1).map_err(failed)?;
    // Pages that were never written would be read in no time.
    ssd.fill_at_once().map_err(failed)?;
    let mut storage = DriveStorage::new(&mut ssd, &common.places, trace.page_bytes())?;
    let mut pool = cell.pool(trace, plan, common)?;
    for chunk in trace.accesses().chunks(CHUNK) {
        chunk.iter().try_for_each(|&access| pool.access_on(access, &mut storage))?;
        told(chunk.len() as u64)?;
    }
    Ok(storage.cost())
}

fn result(
    cell: &Cell<'_>,
    counts: &Counts,
    seconds: f64,
    model: Option<DriveModel>,
    drive_cost: Option<DriveCost>,
) -> PoolResult {
    let operations = counts.write_back_operations;
    PoolResult {
        policy: cell.policy.name().to_owned(),
        ace: !cell.is_classic(),
        variant: (!cell.is_classic()).then(|| cell.ace.name()),
        frames: cell.frames,
        accesses: counts.accesses,
        misses: counts.misses,
        miss_ratio: counts.misses as f64 / (counts.accesses as f64).max(1.0),
        evictions: counts.evictions,
        dirty_evictions: counts.dirty_evictions,
        write_back_operations: operations,
        pages_written: counts.pages_written,
        mean_batch: (operations > 0).then(|| counts.pages_written as f64 / operations as f64),
        pages_prefetched: counts.prefetched,
        prefetched_used: counts.prefetched_used,
        accesses_per_s: counts.accesses as f64 / seconds,
        model_cost: model.map(|model| model.cost(counts)),
        drive_cost,
    }
}
