//! Runs of SQLite for the search: on the target, or short ones on a simulated drive.
//!
//! On a simulated drive runs do not disturb one another, so that several are made at once. In a directory there is one
//! at a time, and the search shuffles their order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use flashwise_block::{BlockError, ByteSize, Progress, interrupt};

use super::budget::{Budget, Measure, Stopwatch};
use super::knobs::{Change, Space, label, prices};
use super::loaded::Loaded;
use super::objective::Objective;
use super::run::{Run, RunConfig, Workload, run};
use super::settings::Settings;
use super::user::memory_of_run;
use super::weaker::weaker_runs;
use crate::search::{Bench, Costs, Job, Simpler, Stage};
use crate::{Target, TuneError};

/// Most runs at once, whatever the processor has: each holds a drive with a database in memory.
const WIDTH_MAX: usize = 8;
/// Memory for the databases of runs at once.
const MEMORY: ByteSize = ByteSize::gib(2);
/// How often progress is reported while other threads work.
const TICK: Duration = Duration::from_millis(50);

/// Where and what is run in a stage.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) target: Target,
    pub(super) workload: Workload,
    /// The built-in workload's tables, made once for all runs.
    pub(super) loaded: Option<Arc<Loaded>>,
    /// Time of one run, by the clock of the budget.
    pub(super) expected: Duration,
    /// The length of a run, in full runs.
    pub(super) full_runs: f64,
}

impl Place {
    pub(super) fn work(&self) -> (&Workload, Option<&Loaded>) {
        (&self.workload, self.loaded.as_deref())
    }
}

/// What `search` measures.
pub(super) struct SqliteBench<'a> {
    pub(super) space: Space,
    pub(super) short: Place,
    pub(super) full: Place,
    pub(super) objectives: [Objective; 2],
    pub(super) budget: Budget,
    /// Full runs after the search, for which it leaves the time.
    pub(super) runs_afterwards: usize,
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
        let runs_afterwards = if space.facts.writes { weaker_runs(&full.target) } else { 0 };
        Self { space, short, full, objectives, budget, runs_afterwards, progress, confirmed, runs, stage, best }
    }

    fn place(&self, stage: Stage) -> &Place {
        if stage == Stage::Screen { &self.short } else { &self.full }
    }

    /// Runs configurations, as many at once as the target allows.
    pub(super) fn run_all(&mut self, stage: Stage, jobs: &[(Settings, u64)]) -> Result<Vec<Run>, TuneError> {
        let (stopwatch, threads) = (Stopwatch::start(), self.threads(stage));
        let first = jobs.first().map(|(settings, _)| label(&self.space.stock, settings)).unwrap_or_default();
        let shown = format!("{}: {first}{}", self.stage, self.best);
        let place = self.place(stage).clone();
        // The others only help to choose.
        let is_checked = stage == Stage::Confirm;
        let one = |&(settings, seed): &(Settings, u64)| {
            (RunConfig { is_checked, ..config(&self.space.stock, &settings) }, seed)
        };
        let configs: Vec<(RunConfig, u64)> = jobs.iter().map(one).collect();
        let (budget, progress) = (self.budget, &mut *self.progress);
        let runs = match threads {
            1 => {
                let mut relay = Relay { progress, shown: &shown, budget };
                let one = |(config, seed): &(RunConfig, u64)| {
                    run(&place.target, config, place.work(), *seed, None, &mut relay)
                };
                configs.iter().map(one).collect::<Result<Vec<_>, _>>()?
            }
            _ => at_once(threads, &configs, &place, &mut Relay { progress, shown: &shown, budget })?,
        };
        self.runs[stage as usize] += runs.len();
        let processor: Duration = runs.iter().map(|run| run.elapsed.processor).sum();
        let (all, at_a_time) = match self.budget.measure() {
            Some(Measure::Processor) => (processor, jobs.len()),
            _ => (stopwatch.elapsed().wall, jobs.len().div_ceil(threads)),
        };
        let place = if stage == Stage::Screen { &mut self.short } else { &mut self.full };
        place.expected = all / u32::try_from(at_a_time.max(1)).unwrap_or(u32::MAX);
        self.budget.charge(place, runs.len(), processor, threads.min(runs.len()));
        Ok(runs)
    }

    /// How many runs of a stage are made at once.
    fn threads(&self, stage: Stage) -> usize {
        if !self.place(stage).target.is_simulated() {
            return 1;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let facts = &self.space.facts;
        let page_cache = facts.page_cache_limit.max(self.space.stock.page_cache);
        let run = memory_of_run(&self.place(stage).workload, facts.database, page_cache);
        let fit = MEMORY.bytes() / run.bytes().max(1);
        cores.min(WIDTH_MAX).min(usize::try_from(fit).unwrap_or(WIDTH_MAX)).max(1)
    }
}

/// A run of settings.
pub(super) fn config(stock: &Settings, settings: &Settings) -> RunConfig {
    RunConfig {
        label: label(stock, settings),
        settings: *settings,
        techniques: settings.techniques(),
        is_checked: true,
    }
}

/// Runs several configurations at once; progress is reported by this thread.
fn at_once(
    width: usize,
    jobs: &[(RunConfig, u64)],
    place: &Place,
    progress: &mut Relay<'_>,
) -> Result<Vec<Run>, TuneError> {
    let one = |(config, seed): &(RunConfig, u64), stop: &mut Stop<'_>| {
        run(&place.target, config, place.work(), *seed, None, stop)
    };
    in_order(width, jobs, progress, one)
}

/// Does jobs on some threads, as `flashwise_sim`'s sweeps do: the channel ends with the last worker, also with one that
/// panics, and the scope hands the panic on. The results are in the order of the jobs; the first failure stops all.
fn in_order<J: Sync, R: Send>(
    width: usize,
    jobs: &[J],
    progress: &mut dyn Progress,
    one: impl Fn(&J, &mut Stop<'_>) -> Result<R, TuneError> + Sync,
) -> Result<Vec<R>, TuneError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut done: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
    let result = std::thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..width.min(jobs.len()) {
            let (sender, next, stop, one) = (sender.clone(), &next, &stop, &one);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(n) else { return };
                    if sender.send((n, one(job, &mut Stop(stop)))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut result: Result<(), TuneError> = Ok(());
        loop {
            match results.recv_timeout(TICK) {
                Ok((n, Ok(run))) => done[n] = Some(run),
                // A run that was stopped because another one failed reports an interruption.
                Ok((_, Err(error))) if result.is_ok() => result = Err(error),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return result,
            }
            if result.is_ok() {
                result = progress.advance("", 0.0).map_err(TuneError::from);
            }
            if result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    result?;
    done.into_iter().map(|run| run.ok_or_else(|| BlockError::Interrupted.into())).collect()
}

/// Progress of a run on another thread: it ends the run once all are to end.
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

    fn objectives(&self) -> usize {
        if self.objectives[0] == self.objectives[1] { 1 } else { 2 }
    }

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

    /// A short run is a start with empty caches, which long pages fill faster.
    fn class(&self, of: &Settings) -> u64 {
        of.page.bytes()
    }

    fn seen_in_full_runs(&self, of: &Settings) -> Vec<Settings> {
        self.space.seen_in_full_runs(of)
    }

    fn simpler(&self, than: &Settings) -> Vec<Simpler<Settings>> {
        let mut changes = self.space.changes(than);
        changes.sort_by_key(|change| std::cmp::Reverse(change.kind));
        let mut simpler = Vec::new();
        for same_kind in changes.chunk_by(|a, b| a.kind == b.kind) {
            let (together, each) = prices(same_kind[0].kind, same_kind.len(), &changes);
            let singles = same_kind.iter().map(std::slice::from_ref);
            let of = |changes: &[Change], price: f64| Simpler {
                names: changes.iter().map(|change| change.knob.name().to_owned()).collect(),
                without: changes.iter().fold(*than, |without, change| self.space.without(&without, change.knob)),
                price,
            };
            simpler.extend(together.map(|price| of(same_kind, price)));
            simpler.extend(singles.map(|change| of(change, each)));
        }
        simpler
    }

    fn is_repeatable(&self, stage: Stage) -> bool {
        self.place(stage).target.is_repeatable()
    }

    /// With what is left for the runs after the search; a number of runs is for the search alone.
    fn spent(&self) -> f64 {
        let is_time = self.budget.measure().is_some();
        self.budget.spent() + if is_time { self.share_of(Stage::Prune, self.runs_afterwards) } else { 0.0 }
    }

    fn share_of(&self, stage: Stage, runs: usize) -> f64 {
        self.budget.share_of(self.place(stage), runs, self.threads(stage))
    }

    fn runs_within(&self, share: f64, stage: Stage) -> usize {
        self.budget.runs_within(share, self.place(stage), self.threads(stage))
    }

    /// Where runs are counted, the same on every machine, however many threads it has.
    fn batch(&self, stage: Stage) -> usize {
        if self.budget.measure().is_none() { WIDTH_MAX } else { self.threads(stage) }
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

#[cfg(test)]
mod tests {
    use flashwise_block::Silent;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_jobs_and_the_first_failure_ends_the_others() {
        let jobs: Vec<u64> = (0..50).collect();
        let squares = in_order(3, &jobs, &mut Silent, |&n, _| Ok(n * n)).unwrap();
        assert!(squares.into_iter().eq(jobs.iter().map(|n| n * n)));
        let failing = |&n: &u64, stop: &mut Stop<'_>| match n {
            1 => Err(TuneError::Missing("one".into())),
            // The others run until they are stopped.
            _ => loop {
                stop.advance("", 0.0)?;
                std::thread::yield_now();
            },
        };
        let error = in_order::<_, ()>(3, &jobs, &mut Silent, failing).unwrap_err();
        assert!(matches!(&error, TuneError::Missing(what) if what == "one"), "{error}");
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_worker_that_panics_ends_the_fit() {
        let panicking = |&n: &u64, _: &mut Stop<'_>| {
            assert!(n != 7, "seven");
            Ok(())
        };
        let _ = in_order(2, &(0..20).collect::<Vec<u64>>(), &mut Silent, panicking);
    }
}
