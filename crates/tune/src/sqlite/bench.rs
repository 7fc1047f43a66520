//! Runs of SQLite for the search: on the target, or short ones on a simulated drive.
//!
//! On a simulated drive runs do not disturb one another, so that several are made at once. In a directory there is one
//! at a time, and the search shuffles their order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flashwise_block::{BlockError, ByteSize, Progress, interrupt};

use super::knobs::{Space, label, price};
use super::objective::Objective;
use super::run::{Run, RunConfig, Workload, run};
use super::settings::Settings;
use crate::search::{Bench, Costs, Job, Simpler, Stage};
use crate::{Target, TuneError};

/// Most runs at once, whatever the processor has: each holds a drive with a database in memory.
const WIDTH_MAX: usize = 8;
/// Memory for the databases of runs at once.
const MEMORY: ByteSize = ByteSize::gib(2);
/// How often the thread that reports progress wakes up while others work.
const WAKE: Duration = Duration::from_millis(50);

/// Where and what is run in a stage.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) target: Target,
    pub(super) workload: Workload,
    /// Time of one run, wall clock.
    pub(super) expected: Duration,
}

/// The time budget of a fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) started: Instant,
    pub(super) time: Duration,
}

impl Budget {
    pub(super) fn spent(&self) -> f64 {
        self.started.elapsed().as_secs_f64() / self.time.as_secs_f64().max(1e-3)
    }
}

/// What `search` measures.
pub(super) struct SqliteBench<'a> {
    pub(super) space: Space,
    pub(super) short: Place,
    pub(super) full: Place,
    pub(super) objectives: [Objective; 2],
    pub(super) budget: Budget,
    pub(super) progress: &'a mut dyn Progress,
    /// Of the configurations that are confirmed, the first run.
    pub(super) confirmed: Vec<(Settings, Run)>,
    /// Runs by stage, for the report.
    pub(super) runs: [usize; 4],
    /// What the progress shows.
    stage: String,
    best: String,
}

impl<'a> SqliteBench<'a> {
    pub(super) fn new(
        space: Space,
        [short, full]: [Place; 2],
        objectives: [Objective; 2],
        budget: Budget,
        progress: &'a mut dyn Progress,
    ) -> Self {
        let (confirmed, runs) = (Vec::new(), [0; 4]);
        let [stage, best] = [String::new(), String::new()];
        Self { space, short, full, objectives, budget, progress, confirmed, runs, stage, best }
    }

    fn place(&self, stage: Stage) -> &Place {
        if stage == Stage::Screen { &self.short } else { &self.full }
    }

    /// Runs configurations, as many at once as the target allows.
    pub(super) fn run_all(&mut self, stage: Stage, jobs: &[(Settings, u64)]) -> Result<Vec<Run>, TuneError> {
        let (started, width) = (Instant::now(), self.width(stage));
        let first = jobs.first().map(|(settings, _)| label(&self.space.stock, settings)).unwrap_or_default();
        let shown = format!("{}: {first}{}", self.stage, self.best);
        let place = self.place(stage).clone();
        let configs: Vec<(RunConfig, u64)> =
            jobs.iter().map(|(settings, seed)| (config(&self.space.stock, settings), *seed)).collect();
        let (budget, progress) = (self.budget, &mut *self.progress);
        let runs = match width {
            1 => {
                let mut relay = Relay { progress, shown: &shown, budget };
                let one = |(config, seed): &(RunConfig, u64)| {
                    run(&place.target, config, &place.workload, *seed, None, &mut relay)
                };
                configs.iter().map(one).collect::<Result<Vec<_>, _>>()?
            }
            _ => at_once(width, &configs, &place, &mut Relay { progress, shown: &shown, budget })?,
        };
        self.runs[stage as usize] += runs.len();
        let place = if stage == Stage::Screen { &mut self.short } else { &mut self.full };
        place.expected = started.elapsed() / u32::try_from(jobs.len().div_ceil(width).max(1)).unwrap_or(u32::MAX);
        Ok(runs)
    }
}

/// A run of settings.
pub(super) fn config(stock: &Settings, settings: &Settings) -> RunConfig {
    RunConfig { label: label(stock, settings), settings: *settings, techniques: settings.vfs.parameters() }
}

/// Runs several configurations at once; progress is reported by this thread.
fn at_once(
    width: usize,
    jobs: &[(RunConfig, u64)],
    place: &Place,
    progress: &mut Relay<'_>,
) -> Result<Vec<Run>, TuneError> {
    let (next, living, stop) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let results: Vec<Mutex<Option<Result<Run, TuneError>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some(((config, seed), slot)) = {
            let n = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(n).zip(results.get(n))
        } {
            let result = run(&place.target, config, &place.workload, *seed, None, &mut Stop(&stop));
            if result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(result);
            }
        }
        living.fetch_sub(1, Ordering::Release);
    };
    let heard = std::thread::scope(|scope| {
        for _ in 0..width.min(jobs.len()) {
            living.fetch_add(1, Ordering::Relaxed);
            scope.spawn(work);
        }
        let mut heard = Ok(());
        while living.load(Ordering::Acquire) > 0 {
            if heard.is_ok() {
                heard = progress.advance("", 0.0);
                stop.fetch_or(heard.is_err(), Ordering::Relaxed);
            }
            std::thread::park_timeout(WAKE);
        }
        heard
    });
    heard?;
    let mut results: Vec<Option<Result<Run, TuneError>>> =
        results.into_iter().map(|slot| slot.into_inner().ok().flatten()).collect();
    // A run that was stopped because another one failed says nothing.
    let failed = results.iter().position(|result| matches!(result, Some(Err(error)) if !error.is_interrupt()));
    if let Some(Err(error)) = failed.and_then(|n| results[n].take()) {
        return Err(error);
    }
    let lost = || Err(BlockError::Interrupted.into());
    results.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}

/// Stops a run on another thread.
struct Stop<'a>(&'a AtomicBool);

impl Progress for Stop<'_> {
    fn advance(&mut self, _stage: &str, _fraction: f64) -> Result<(), BlockError> {
        interrupt::check()?;
        if self.0.load(Ordering::Relaxed) { Err(BlockError::Interrupted) } else { Ok(()) }
    }
}

/// Reports the search instead of the run that is part of it.
pub(super) struct Relay<'a> {
    pub(super) progress: &'a mut dyn Progress,
    pub(super) shown: &'a str,
    pub(super) budget: Budget,
}

impl Progress for Relay<'_> {
    fn advance(&mut self, _stage: &str, _fraction: f64) -> Result<(), BlockError> {
        self.progress.advance(self.shown, self.budget.spent().min(1.0))
    }
}

impl Bench for SqliteBench<'_> {
    type Configuration = Settings;

    fn measure(&mut self, jobs: &[Job<Settings>]) -> Result<Vec<Costs>, TuneError> {
        let Some(stage) = jobs.first().map(|job| job.stage) else { return Ok(Vec::new()) };
        let wanted: Vec<(Settings, u64)> = jobs.iter().map(|job| (job.configuration, job.seed)).collect();
        let runs = self.run_all(stage, &wanted)?;
        let costs = runs.iter().map(|run| self.objectives.map(|objective| objective.cost(run))).collect();
        if stage == Stage::Confirm {
            for ((settings, _), run) in wanted.into_iter().zip(runs) {
                if self.confirmed.iter().all(|(known, _)| *known != settings) {
                    self.confirmed.push((settings, run));
                }
            }
        }
        Ok(costs)
    }

    fn neighbours(&self, of: &Settings) -> Vec<Settings> {
        self.space.neighbours(of)
    }

    fn seen_in_full_runs(&self, of: &Settings) -> Vec<Settings> {
        self.space.seen_in_full_runs(of)
    }

    fn simpler(&self, than: &Settings) -> Vec<Simpler<Settings>> {
        let mut changes = self.space.changes(than);
        changes.sort_by_key(|change| std::cmp::Reverse(change.kind));
        let simpler = |name: &str, kind| {
            let without = self.space.without(than, name);
            Simpler { name: name.to_owned(), without, price: price(kind) }
        };
        changes.iter().map(|change| simpler(change.name, change.kind)).collect()
    }

    fn spent(&self) -> f64 {
        self.budget.spent()
    }

    fn expected(&self, stage: Stage) -> f64 {
        self.place(stage).expected.as_secs_f64() / self.budget.time.as_secs_f64().max(1e-3)
    }

    fn width(&self, stage: Stage) -> usize {
        if !matches!(self.place(stage).target, Target::Simulated { .. }) {
            return 1;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let fit = MEMORY.bytes() / self.space.facts.database.bytes().max(1);
        cores.min(WIDTH_MAX).min(usize::try_from(fit).unwrap_or(WIDTH_MAX)).max(1)
    }

    fn report(&mut self, stage: Stage, best: Option<(&Settings, f64)>) {
        let runs = self.runs[stage as usize];
        self.stage = match stage {
            Stage::Screen => format!("screening, {runs} tried"),
            Stage::Race => format!("comparing the best, run {}", runs + 1),
            Stage::Prune => format!("leaving out each change, run {}", runs + 1),
            Stage::Confirm => format!("confirming, run {}", runs + 1),
        };
        if let Some((settings, gain)) = best.filter(|(_, gain)| *gain > 1.0) {
            self.best = format!("; best so far ×{gain:.2}, {}", label(&self.space.stock, settings));
        }
    }
}
