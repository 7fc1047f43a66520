//! Fits SQLite to a drive: learn, run the workload unmodified, audit that, search from what the audit found, confirm,
//! apply on request.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flashwise_audit::{Audit, audit};
use flashwise_block::output::{Published, directory_of};
use flashwise_block::{ByteSize, Clock, Operation, Progress};
use flashwise_profile::DeviceProfile;
use flashwise_trace::FileRole;

use super::answers::{Answers, answered_by};
use super::apply::{Application, apply};
use super::audited::{flush_remark, options_with, with_flush};
use super::bench::{Place, Relay, SqliteBench, config};
use super::budget::{Budget, Elapsed, Measure, Stopwatch};
use super::by_hand::ByHand;
use super::knobs::{Change, Facts, Space, check_names, label, price};
use super::loaded::Loaded;
use super::notes::{clock, machine, notes};
use super::objective::Objective;
use super::places::Places;
use super::run::{Run, RunConfig, Workload, run};
use super::seen;
use super::settings::{Journal, Settings, Synchronous};
use super::uri::uri;
use super::weaker::weaker_guarantee;
use super::{check_new, check_new_database, learn_target, save_trace};
use crate::search::{Confirmation, Interval, Outcome, Part, SCREEN_UNTIL, Start, confidence, likely, search};
use crate::{
    Applied, Attaching, COMPARISON_SCHEMA, COMPARISON_SCHEMA_VERSION, Candidate, ChangeKind, Comparison, Declined,
    Gain, Guarantees, Host, Proposal, Recommendation, SearchSummary, Seen, Target, TuneError, WeakerGuarantee,
};

#[cfg(test)]
mod short_runs;

/// Page cache that a database may be given at most, by default: that of the checklist.
pub const PAGE_CACHE_LIMIT: ByteSize = super::knobs::CHECKLIST_CACHE;
/// Time budgets: for the built-in workload, for a user's own on a simulated drive, and on a real one.
const BUILT_IN_BUDGET: Duration = Duration::from_secs(50);
const SIMULATED_BUDGET: Duration = Duration::from_secs(120);
const REAL_BUDGET: Duration = Duration::from_secs(600);
/// The share of a full run that a short one does. A short run is a start with empty caches, and the ranks of the
/// built-in workload's combinations correlate with those of full runs by 0.79; among those with one page size by 0.95
/// or more, and the best of the full runs is the best with its page size in short ones, so that it is in the race
/// (`cargo test -p flashwise-tune --lib short_runs -- --include-ignored --nocapture`).
const SHORT_SHARE: u32 = 5;
/// Runs of screening on a drive whose runs differ, in a search of a database that is written to: 60 combinations and
/// neighbours, and as many again of the better ones.
const SCREENED: usize = 120;
/// The fewest statements of a short run.
const SHORT_STATEMENTS: usize = 50;
/// Learning may take at most this share of the budget from the search.
const LEARNING_SHARE: u32 = 4;
/// Space of the drive that stands for a real one in short runs, in databases.
const MODEL_SPACE: u64 = 4;

/// Options of `fit`.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// The drive, and where the database is on a simulated one.
    pub target: Target,
    /// Where the database is on the simulated drive that stands for a real one in short runs.
    pub model_host: Host,
    /// The work.
    pub workload: Workload,
    /// Seed of every random choice.
    pub seed: u64,
    /// A profile that was learned before; otherwise the drive is learned first.
    pub profile: Option<DeviceProfile>,
    /// One objective, or two, the deciding one first.
    pub objectives: Vec<Objective>,
    /// How long it may take; `None` for a default that depends on workload and target, and on a simulated drive does
    /// not depend on what else the machine does.
    pub time_budget: Option<TimeBudget>,
    /// The most that the page cache may become.
    pub page_cache_limit: ByteSize,
    /// Names of settings that must not change.
    pub skip: Vec<String>,
    /// Whether the user's database is to be changed.
    pub apply: bool,
    /// Attaches the target's drive, where the recommendation is measured again.
    pub attach: Attaching,
    /// Where to leave the database of the recommended run, as plain SQLite; must be new.
    pub save_database: Option<PathBuf>,
    /// Where to leave the trace that was audited; must be new.
    pub save_trace: Option<PathBuf>,
}

/// How long a fit may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBudget {
    /// By the clock.
    Clock(Duration),
    /// On the processors, divided by the threads that make runs: the same answer whatever else the machine does, for a
    /// simulated drive. On an idle machine it is the time of the clock.
    Processor(Duration),
}

impl FitOptions {
    /// A fit for throughput, with defaults for everything else.
    pub fn new(target: Target, workload: Workload) -> Self {
        Self {
            target,
            model_host: Host::default(),
            workload,
            seed: 1,
            profile: None,
            objectives: vec![Objective::Throughput],
            time_budget: None,
            page_cache_limit: PAGE_CACHE_LIMIT,
            skip: Vec::new(),
            apply: false,
            attach: Attaching::Never,
            save_database: None,
            save_trace: None,
        }
    }

    /// Where a database is measured: on the simulated drive of a profile, or else in the directory of the database.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn target_of(profile: Option<&DeviceProfile>, database: &Path) -> Result<Target, TuneError> {
        let simulated = profile.filter(|profile| profile.device.clock == Clock::Virtual);
        match simulated.map(|profile| Target::parse(&profile.device.target)) {
            Some(Ok(target)) => Ok(target),
            _ => Target::parse(&directory_of(database).display().to_string()),
        }
    }

    /// The budget, of which learning took so much: at most a quarter of it counts.
    fn budget(&self, learning: Elapsed) -> Budget {
        let learned = |measure: Measure, time: Duration| measure.of(learning).min(time / LEARNING_SHARE);
        let wall = |time| Budget::wall(time, learned(Measure::Wall, time));
        let processor = |time| Budget::processor(time, learned(Measure::Processor, time));
        match (self.time_budget, &self.workload, self.target.is_simulated()) {
            (Some(TimeBudget::Clock(time)), ..) => wall(time),
            (Some(TimeBudget::Processor(time)), ..) => processor(time),
            (None, Workload::KeyValue(work), true) => Budget::runs(BUILT_IN_BUDGET, work),
            (None, Workload::KeyValue(_), false) => wall(BUILT_IN_BUDGET),
            (None, Workload::User(_), true) => processor(SIMULATED_BUDGET),
            (None, Workload::User(_), false) => wall(REAL_BUDGET),
        }
    }

    fn check(&self) -> Result<[Objective; 2], TuneError> {
        check_names(&self.skip)?;
        self.workload.check()?;
        self.save_database.as_deref().map_or(Ok(()), check_new_database)?;
        self.save_trace.as_deref().map_or(Ok(()), check_new)?;
        if matches!(self.attach, Attaching::Always(_)) {
            seen::check(&self.target, &self.objectives)?;
        }
        if self.apply && !matches!(self.workload, Workload::User(_)) {
            return Err(TuneError::Options("--apply changes a database of yours: name it".into()));
        }
        match self.objectives[..] {
            [one] => Ok([one, one]),
            [first, second] if first != second => Ok([first, second]),
            _ => Err(TuneError::Options("give one objective, or two different ones".into())),
        }
    }
}

/// Fits SQLite to a drive.
///
/// # Errors
/// When the target, the workload or the database fails; nothing is left behind then.
pub fn fit(options: &FitOptions, progress: &mut dyn Progress) -> Result<Comparison, TuneError> {
    let objectives = options.check()?;
    let (started, stopwatch) = (Instant::now(), Stopwatch::start());
    let profile = match &options.profile {
        Some(profile) => profile.clone(),
        None => learn_target(&options.target, options.seed, None, progress)?,
    };
    let measured = with_flush(&options.target, &profile, progress)?;
    let remark = measured.as_ref().filter(|_| options.profile.is_some()).and_then(flush_remark);
    let profile = measured.unwrap_or(profile);
    let mut budget = options.budget(stopwatch.elapsed());
    let captured = Captured::run(options, &profile, &mut budget, progress)?;
    let Captured { run: stock_run, mut space, full, is_cut, audit } = captured;
    let short = short_place(options, &mut space, &full, &budget);
    let start = Start { stock: space.stock, checklist: space.checklist(), first: space.first() };
    let mut bench = SqliteBench::new(space, [short, full], objectives, budget, progress);
    let outcome = search(&mut bench, start, options.seed)?;
    let found = Found::new(options, &mut bench, outcome, &stock_run)?;
    let saved = found.save(options, &mut bench, &stock_run)?;
    let result = found.document(options, &mut bench, profile, &stock_run, Notice { started, is_cut, remark, audit });
    if result.is_err() {
        // They were new at the start: a fit that fails leaves no file.
        saved.iter().for_each(|file| _ = file.remove());
    }
    result
}

/// The workload with default settings.
struct Captured {
    run: Run,
    space: Space,
    full: Place,
    /// Whether a run does a part of the statements only.
    is_cut: bool,
    audit: Audit,
}

impl Captured {
    /// Runs the workload unmodified, as much of it as the budget allows for one run.
    fn run(
        options: &FitOptions,
        profile: &DeviceProfile,
        budget: &mut Budget,
        progress: &mut dyn Progress,
    ) -> Result<Self, TuneError> {
        let stock = options.workload.settings(options.workload.page_size()?);
        let mut workload = options.workload.clone();
        let mut relay = Relay { progress, shown: "running the workload unmodified", budget: *budget };
        relay.advance("", 0.0)?;
        // One copy, or one loaded table, serves all runs: the time that it takes is not that of a run.
        let loaded = match &mut workload {
            Workload::User(user) => {
                user.extent.time = budget.full_run();
                user.copy(stock.page)?;
                None
            }
            Workload::KeyValue(work) => {
                options.target.check_space(work.database_bytes_max())?;
                let loaded = Loaded::new(*work, options.seed).map(Arc::new);
                work.rounds = budget.rounds(work);
                loaded.as_ref().map(|loaded| loaded.of(stock.page, &mut relay)).transpose()?;
                loaded
            }
        };
        let config = config(&stock, &stock);
        let first = run(&options.target, &config, (&workload, loaded.as_deref()), options.seed, None, &mut relay)?;
        let kept = cut(&mut workload, first.rounds.statements, budget.share_of_statements(&first));
        let rounds = |workload: &Workload| if let Workload::KeyValue(work) = workload { work.rounds } else { 0 };
        let is_cut = first.rounds.is_cut || rounds(&workload) < rounds(&options.workload);
        let measure = budget.measure().unwrap_or(Measure::Processor);
        let [all, preparation] = [first.elapsed, first.preparation].map(|elapsed| measure.of(elapsed));
        let mut expected = preparation + all.saturating_sub(preparation).mul_f64(kept);
        if !options.target.is_simulated() {
            // The first run on a real drive is checked and meets a file system that has still to write: five times as
            // long as the next ones for a database of 30 MiB.
            let config = RunConfig { is_checked: false, ..config };
            let work = (&workload, loaded.as_deref());
            let again = run(&options.target, &config, work, options.seed, None, &mut relay)?;
            expected = measure.of(again.elapsed);
        }
        let log_pages = (log_pages(&first, &stock) as f64 * kept) as u64;
        let stopwatch = Stopwatch::start();
        let audit = audit(&first.trace, profile, &options_with(&options.target, &stock));
        budget.excuse(stopwatch.elapsed().wall);
        let facts = Facts {
            profile: profile.clone(),
            database: ByteSize(first.measurement.database_bytes),
            page_cache_limit: options.page_cache_limit,
            writes: first.rounds.transaction_latency.count() > 0,
            log_pages,
            log_pages_short: log_pages,
            answers: Answers::of(&audit),
            skip: options.skip.clone(),
            places: Places::of(&options.target),
        };
        let full = Place { target: options.target.clone(), workload, loaded, expected, full_runs: 1.0 };
        budget.charge(&full, 1, first.elapsed.processor, 1);
        Ok(Self { run: first, space: Space { stock, facts }, full, is_cut, audit })
    }
}

/// Fewer rounds of the built-in workload have no interval.
pub(super) const ROUNDS_MIN: u32 = 3;

/// Cuts the rounds of a workload to a share; returns the share of them that is left.
fn cut(workload: &mut Workload, statements: usize, share: f64) -> f64 {
    match workload {
        // The run itself was cut.
        Workload::User(user) => {
            user.extent = super::user::Extent { statements: Some(statements), time: None };
            1.0
        }
        Workload::KeyValue(work) => {
            let all = work.rounds;
            let rounds = f64::from(all) * share;
            work.rounds = (rounds as u32).clamp(ROUNDS_MIN.min(all), all);
            f64::from(work.rounds) / f64::from(all.max(1))
        }
    }
}

/// Pages that go through a write-ahead log, at most: those written to it, or those that commits wrote to the database.
fn log_pages(run: &Run, stock: &Settings) -> u64 {
    let role = if stock.journal == Journal::Log { FileRole::WriteAheadLog } else { FileRole::Database };
    let writes = run.trace.records.iter().filter(|record| record.operation == Operation::Write);
    let bytes = |role: Option<FileRole>| {
        let of_role = writes.clone().filter(|record| role.is_none_or(|role| record.role == role));
        of_role.map(|record| record.length.bytes()).sum::<u64>()
    };
    let (of_role, all) = (bytes(Some(role)), bytes(None));
    // Only the first rounds are traced.
    let untraced = if all == 0 { 1.0 } else { (run.measurement.host_bytes_written as f64 / all as f64).max(1.0) };
    let bytes = if of_role == 0 { run.measurement.host_bytes_written as f64 } else { of_role as f64 * untraced };
    (bytes / stock.page.bytes() as f64) as u64
}

/// Where screening runs, and what. On a simulated drive, the target itself or one that is made from the profile of a
/// real one, these are short runs. On a real drive noise is the same in a short run as in a full one and preparing
/// takes as long, so that runs are full there if time allows.
fn short_place(options: &FitOptions, space: &mut Space, full: &Place, budget: &Budget) -> Place {
    let target = model(options, space);
    if !target.is_simulated() && budget.share_of(full, SCREENED, 1) <= SCREEN_UNTIL {
        return full.clone();
    }
    let mut workload = full.workload.clone();
    match &mut workload {
        Workload::KeyValue(work) => work.rounds = work.rounds.div_ceil(SHORT_SHARE),
        Workload::User(user) => {
            let short = |statements: usize| (statements / SHORT_SHARE as usize).max(SHORT_STATEMENTS);
            user.extent.statements = user.extent.statements.map(short);
        }
    }
    space.facts.log_pages_short = space.facts.log_pages / u64::from(SHORT_SHARE);
    let expected = full.expected / SHORT_SHARE;
    Place { target, workload, loaded: full.loaded.clone(), expected, full_runs: 1.0 / f64::from(SHORT_SHARE) }
}

/// The simulated drive that screening runs on; a real one where the profile leaves open what a model of it needs.
fn model(options: &FitOptions, space: &Space) -> Target {
    match &options.target {
        Target::Simulated { .. } | Target::Volume { .. } => options.target.clone(),
        real => {
            let capacity = ByteSize(space.facts.database.bytes().saturating_mul(MODEL_SPACE));
            match flashwise_truth::learned::learned(&space.facts.profile, capacity) {
                Ok(model) => Target::Simulated {
                    name: format!("a model of {real}"),
                    config: Box::new(model.config),
                    host: options.model_host.clone(),
                },
                Err(_) => real.clone(),
            }
        }
    }
}

/// When the fit started, and how much of the workload its runs did.
struct Notice {
    started: Instant,
    is_cut: bool,
    /// What was measured beside the profile.
    remark: Option<String>,
    /// Of the unmodified workload.
    audit: Audit,
}

/// The result of the search, with the runs that the report shows.
struct Found {
    outcome: Outcome<Settings>,
    default: Run,
    checklist: Run,
    best: Run,
    weaker: Vec<WeakerGuarantee>,
    seen: Option<Seen>,
    /// Why it was not seen, where it could have been.
    unseen: Option<String>,
}

impl Found {
    fn new(
        options: &FitOptions,
        bench: &mut SqliteBench<'_>,
        outcome: Outcome<Settings>,
        stock_run: &Run,
    ) -> Result<Self, TuneError> {
        let confirmed = |settings: &Settings, bench: &SqliteBench<'_>| {
            let found = bench.confirmed.iter().find(|(known, _)| known == settings);
            found.map_or_else(|| stock_run.clone(), |(_, run)| run.clone())
        };
        let best = outcome.confirmation.best;
        let (stock, checklist) = (bench.space.stock, bench.space.checklist());
        let [default, checklist, best_run] = [stock, checklist, best].map(|settings| confirmed(&settings, bench));
        let weaker = weaker_guarantee(bench, &best, options.seed)?;
        let arms = [(stock, &default), (bench.space.checklist(), &checklist), (best, &best_run)];
        let (seen, unseen) = match outcome.confirmation.gains_in.is_some() {
            true => seen::see_if_wanted(options, bench, arms)?,
            false => (None, None),
        };
        Ok(Self { outcome, default, checklist, best: best_run, weaker, seen, unseen })
    }

    /// Whether what was confirmed was also seen, where that was requested.
    fn holds(&self) -> bool {
        self.outcome.confirmation.gains_in.is_some() && self.seen.as_ref().is_none_or(Seen::confirms)
    }

    /// Writes the requested files.
    fn save(
        &self,
        options: &FitOptions,
        bench: &mut SqliteBench<'_>,
        stock_run: &Run,
    ) -> Result<Vec<Published>, TuneError> {
        let mut saved = Vec::new();
        if let Some(path) = &options.save_database {
            // A batch that statements leave open would be a part of the database beside the saved file.
            let mut settings = self.outcome.confirmation.best;
            settings.vfs.atomic_batch = false;
            let best = config(&bench.space.stock, &settings);
            // All of the work, even where the budget cut the runs of the search.
            let (target, budget) = (&bench.full.target, bench.budget);
            let mut relay = Relay { progress: &mut *bench.progress, shown: "saving the database", budget };
            let work = (&options.workload, bench.full.loaded.as_deref());
            run(target, &best, work, options.seed, Some(path), &mut relay)?;
            saved.extend(Published::found(path));
        }
        if let Some(path) = &options.save_trace {
            let written = save_trace(path, &stock_run.trace);
            if written.is_err() {
                saved.iter().for_each(|file| _ = file.remove());
            }
            written?;
            saved.extend(Published::found(path));
        }
        Ok(saved)
    }

    fn document(
        self,
        options: &FitOptions,
        bench: &mut SqliteBench<'_>,
        profile: DeviceProfile,
        stock_run: &Run,
        Notice { started, is_cut, remark, audit: Audit { findings, unjudged, .. } }: Notice,
    ) -> Result<Comparison, TuneError> {
        let holds = self.holds();
        let Self { outcome, default, checklist, best, weaker, seen, unseen } = self;
        let (space, confirmation) = (&bench.space, &outcome.confirmation);
        let settings = confirmation.best;
        let file = match &options.workload {
            Workload::User(user) => Some(user.database.display().to_string()),
            Workload::KeyValue(_) => None,
        };
        let (changed, not_applied) = match (&options.workload, options.apply && holds) {
            (Workload::User(user), true) => match apply(&user.database, &space.stock, &settings, bench.progress)? {
                Application::Done(tuning) => (Some(tuning), None),
                Application::Declined(why) => (None, Some(why)),
            },
            _ => (None, None),
        };
        let by_hand = ByHand::of(file.as_deref(), &space.stock, &settings);
        let changes = by_hand.named(space.changes(&settings));
        let [mut default, mut checklist, mut best] = [default, checklist, best];
        default.measurement.label = DEFAULT.to_owned();
        checklist.measurement.label = label(&space.stock, &space.checklist());
        best.measurement.label = label(&space.stock, &settings);
        let findings_after = match confirmation.gains_in.is_some() {
            true => audit(&best.trace, &profile, &options_with(&options.target, &settings)).findings,
            false => findings.clone(),
        };
        let proposals = changes.iter().map(|change| Proposal {
            findings: answered_by(change.knob.name(), &findings, &findings_after),
            ..proposal(change, &outcome, &options.objectives)
        });
        let proposals = proposals.collect();
        let [default, checklist, best] = [default.measurement, checklist.measurement, best.measurement];
        let objectives = options.objectives.clone();
        let mut comparison = Comparison {
            schema: COMPARISON_SCHEMA.to_owned(),
            schema_version: COMPARISON_SCHEMA_VERSION,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            target: options.target.to_string(),
            database: format!("SQLite {}", flashwise_sqlite::sqlite_version()),
            file: file.clone(),
            workload: bench.full.workload.describe(options.seed),
            findings,
            unjudged,
            findings_after,
            applied: changes.iter().map(applied).collect(),
            default_page_size: default.clone(),
            before: default.clone(),
            after: best.clone(),
            default,
            checklist,
            best,
            gains: gains(confirmation, &objectives),
            gain: chosen_gain(confirmation, &objectives),
            seen,
            resolution: resolution(space, confirmation),
            recommendation: Recommendation { run: String::new(), reason: String::new() },
            proposals,
            declined: declined(space, &outcome, &objectives),
            candidates: candidates(space, &outcome, &objectives),
            guarantees: Guarantees {
                statement: settings.guarantee().to_owned(),
                of_default: space.stock.guarantee().to_owned(),
                synchronous: Synchronous::Full.name().to_owned(),
                weaker,
            },
            search: SearchSummary {
                time_budget_ns: u64::try_from(bench.budget.time.as_nanos()).unwrap_or(u64::MAX),
                time_ns: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
                screened: outcome.tried.iter().filter(|tried| !tried.screened.is_empty()).count(),
                screened_on: bench.short.target.to_string(),
                raced: outcome.tried.iter().filter(|tried| !tried.raced.is_empty()).count(),
                confirmation_runs: confirmation.runs,
                confidence: confidence(objectives.len()),
                statements: statements(&bench.full.workload, stock_run),
                workload_is_cut: is_cut,
                is_cut_short: outcome.is_cut_short,
                conversion_threshold: price(ChangeKind::Conversion),
                machine: machine(&options.target),
                times: clock(&options.target),
            },
            uri: uri(&by_hand.opened(), &settings),
            at_open: settings.at_open(),
            changed,
            notes: Vec::new(),
            profile,
            objectives,
        };
        comparison.recommendation = recommendation(&comparison);
        comparison.notes = notes(&comparison, &options.workload, &settings.vfs);
        comparison.notes.extend(bench.space.facts.places.note());
        comparison.notes.extend(not_applied);
        comparison.notes.extend(unseen);
        // A sentence of its own.
        comparison.notes.extend(remark.map(|remark| format!("{}{}.", remark[..1].to_uppercase(), &remark[1..])));
        Ok(comparison)
    }
}

/// Name of the run with the present settings.
const DEFAULT: &str = "default";
const CHECKLIST: &str = "checklist";
const BEST: &str = "best";

fn statements(workload: &Workload, run: &Run) -> u64 {
    match workload {
        Workload::KeyValue(work) => u64::from(work.rounds) * work.statements_per_round(),
        Workload::User(_) => run.rounds.statements as u64,
    }
}

fn applied(change: &Change) -> Applied {
    Applied {
        name: change.knob.name().to_owned(),
        old_value: change.old_value.clone(),
        new_value: change.new_value.clone(),
        reason: change.reason.clone(),
        undo: change.undo.clone(),
    }
}

fn gain(objective: Objective, from: &str, to: &str, interval: Interval) -> Gain {
    let Interval { ratio, low, high } = interval;
    // A document has no infinite number.
    let high = high.min(f64::MAX);
    Gain { metric: objective.metric().to_owned(), from: from.to_owned(), to: to.to_owned(), ratio, low, high }
}

/// The confirmed gain of what is recommended, in the objective that it gains in.
fn chosen_gain(confirmation: &Confirmation<Settings>, objectives: &[Objective]) -> Option<Gain> {
    let n = confirmation.gains_in?;
    let is_candidate = confirmation.best == confirmation.candidate;
    let interval = if is_candidate { confirmation.over_stock } else { confirmation.checklist };
    Some(gain(*objectives.get(n)?, DEFAULT, BEST, interval[n]))
}

/// Every confirmed ratio.
fn gains(confirmation: &Confirmation<Settings>, objectives: &[Objective]) -> Vec<Gain> {
    let is_candidate = confirmation.best == confirmation.candidate;
    let to = if is_candidate { BEST } else { "candidate" };
    let of = |(n, objective): (usize, &Objective)| {
        [
            gain(*objective, DEFAULT, to, confirmation.over_stock[n]),
            gain(*objective, DEFAULT, CHECKLIST, confirmation.checklist[n]),
            gain(*objective, CHECKLIST, to, confirmation.over_checklist[n]),
        ]
    };
    objectives.iter().enumerate().flat_map(of).collect()
}

/// The largest gain over the stock configuration that the confirmation does not exclude; `None` where no other
/// configuration could be tried.
fn resolution(space: &Space, confirmation: &Confirmation<Settings>) -> Option<f64> {
    let arms = [(confirmation.candidate, confirmation.over_stock), (space.checklist(), confirmation.checklist)];
    let measured = arms.into_iter().filter(|(settings, _)| *settings != space.stock);
    let gains = measured.flat_map(|(_, intervals)| intervals).map(|gain| gain.high.clamp(1.0, f64::MAX));
    gains.reduce(f64::max)
}

fn part<'a>(parts: &'a [Part], name: &str) -> Option<&'a Part> {
    parts.iter().find(|part| part.is_of(name) && part.is_measured())
}

/// What a change brings, in the objective that the recommendation gains in, or in the other one if it pays only there.
fn gain_of(part: &Part, outcome: &Outcome<Settings>, objectives: &[Objective]) -> Option<Gain> {
    let decides = outcome.confirmation.gains_in.unwrap_or(0);
    let pays = |n: usize| part.gains[n].ratio >= part.price;
    let pays_in_other_only = part.is_kept && !pays(decides) && pays(1 - decides);
    let n = if pays_in_other_only { 1 - decides } else { decides };
    Some(gain(*objectives.get(n)?, "without", "with", part.gains[n]))
}

fn proposal(change: &Change, outcome: &Outcome<Settings>, objectives: &[Objective]) -> Proposal {
    let parts = if outcome.confirmation.is_of_checklist() { &outcome.checklist_parts } else { &outcome.parts };
    let part = part(parts, change.knob.name()).filter(|part| part.is_kept);
    Proposal {
        name: change.knob.name().to_owned(),
        old_value: change.old_value.clone(),
        new_value: change.new_value.clone(),
        reason: change.reason.clone(),
        findings: Vec::new(),
        kind: change.kind,
        is_memory: change.is_memory,
        gain: part.and_then(|part| gain_of(part, outcome, objectives)),
        apply: change.apply.clone(),
        undo: change.undo.clone(),
    }
}

/// The changes of the winner that did not bring their price.
fn declined(space: &Space, outcome: &Outcome<Settings>, objectives: &[Objective]) -> Vec<Declined> {
    // The checklist may be recommended though its changes were pruned one by one.
    let recommended = space.changes(&outcome.confirmation.best);
    let is_recommended = |change: &Change| recommended.iter().any(|other| other.knob == change.knob);
    let dropped = |change: &Change| {
        part(&outcome.parts, change.knob.name()).filter(|part| !part.is_kept && !is_recommended(change))
    };
    let declined = space.changes(&outcome.winner).into_iter().filter_map(|change| {
        let part = dropped(&change)?;
        Some(Declined {
            name: change.knob.name().to_owned(),
            new_value: change.new_value,
            kind: change.kind,
            gain: gain_of(part, outcome, objectives)?,
            price: part.price,
        })
    });
    declined.collect()
}

/// Every configuration that was tried, the best first.
fn candidates(space: &Space, outcome: &Outcome<Settings>, objectives: &[Objective]) -> Vec<Candidate> {
    let confirmation = &outcome.confirmation;
    let candidate = |settings: &Settings, stage: &str, ratios: Vec<f64>, interval: Option<Interval>| Candidate {
        label: label(&space.stock, settings),
        stage: stage.to_owned(),
        kind: space.changes(settings).iter().map(|change| change.kind).max(),
        page_bytes: settings.page.bytes(),
        page_cache_bytes: settings.page_cache.bytes(),
        journal_mode: settings.journal.name().to_owned(),
        wal_autocheckpoint: settings.checkpoint_pages,
        techniques: settings.techniques(),
        ratios,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high).filter(|high| high.is_finite()),
        is_on_front: outcome.front.iter().any(|front| front.configuration == *settings),
    };
    let of = |intervals: &[Interval; 2]| objectives.iter().enumerate().map(|(n, _)| intervals[n].ratio).collect();
    let confirmed = [(confirmation.candidate, &confirmation.over_stock), (space.checklist(), &confirmation.checklist)];
    let mut all: Vec<Candidate> = Vec::new();
    for (settings, intervals) in confirmed {
        if settings != space.stock && all.iter().all(|known| known.label != label(&space.stock, &settings)) {
            all.push(candidate(&settings, "confirmed", of(intervals), Some(intervals[0])));
        }
    }
    let is_confirmed = |settings: &Settings| confirmed.iter().any(|(known, _)| known == settings);
    for tried in outcome.tried.iter().filter(|tried| !is_confirmed(&tried.configuration)) {
        let ratios = objectives.iter().enumerate().map(|(n, _)| tried.gain()[n].exp()).collect();
        let logs: Vec<f64> = tried.raced.iter().map(|costs| costs[0]).collect();
        let (stage, interval) = match logs.len() {
            0 => ("screened", None),
            1 => ("raced", None),
            _ => ("raced", Some(likely(&logs))),
        };
        all.push(candidate(&tried.configuration, stage, ratios, interval));
    }
    all.sort_by(|a, b| b.ratios[0].total_cmp(&a.ratios[0]));
    all
}

fn recommendation(c: &Comparison) -> Recommendation {
    let recommend = |run: &str, reason: String| Recommendation { run: run.to_owned(), reason };
    let count = c.candidates.len() + 1;
    match &c.gain {
        Some(gain) => {
            let names: Vec<&str> = c.proposals.iter().map(|proposal| proposal.name.as_str()).collect();
            recommend(
                "after",
                format!(
                    "Apply {}: {:.2} times as good as the present settings in {} ({:.2} to {:.2}), the best of {count} \
                     configurations.",
                    names.join(", "),
                    gain.ratio,
                    gain.metric,
                    gain.low,
                    gain.high
                ),
            )
        }
        None => recommend(
            "default_page_size",
            match c.resolution {
                Some(resolution) => format!(
                    "Keep the present settings: none of {count} configurations is to be recommended; a gain above \
                     {:.1} % is excluded.",
                    100.0 * (resolution - 1.0)
                ),
                None => "Keep the present settings: no other configuration could be tried.".to_owned(),
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::KeyValueWorkload;
    use flashwise_block::Silent;

    #[test]
    fn the_search_starts_from_the_audit_of_the_unmodified_workload() {
        let work = KeyValueWorkload { rows: 2_000, rounds: 3, ..KeyValueWorkload::QUICK };
        let options = FitOptions::new(Target::parse(crate::DEFAULT_TARGET).unwrap(), Workload::KeyValue(work));
        let (profile, mut budget) = (short_runs::profile(), Budget::runs(BUILT_IN_BUDGET, &work));
        let Captured { space, audit, .. } = Captured::run(&options, &profile, &mut budget, &mut Silent).unwrap();
        assert_eq!(space.facts.answers, Answers::of(&audit));
        let is_first = |settings: &Settings| {
            let changes = space.changes(settings);
            space.facts.answers.rank(changes.iter().map(|change| change.knob.name()))
        };
        let costliest = audit.findings.first().map(|found| found.judgement);
        assert_eq!(costliest, Some(flashwise_audit::Judgement::Violation));
        let ranks: Vec<usize> = space.first()[1..4].iter().map(is_first).collect();
        assert!(ranks.is_sorted() && ranks[0] < space.facts.answers.last(), "{ranks:?}");
    }

    #[test]
    fn a_built_in_workload_is_cut_to_its_share_and_what_is_left_is_known() {
        let cut_to = |rounds: u32, share: f64| {
            let mut workload = Workload::KeyValue(KeyValueWorkload { rounds, ..KeyValueWorkload::QUICK });
            let kept = cut(&mut workload, 0, share);
            let Workload::KeyValue(work) = workload else { unreachable!() };
            (work.rounds, kept)
        };
        assert_eq!(cut_to(100, 0.1), (10, 0.1));
        assert_eq!(cut_to(100, 10.0), (100, 1.0), "never made longer");
        assert_eq!(cut_to(10, 0.001), (ROUNDS_MIN, 0.3));
        assert_eq!(cut_to(2, 0.001), (2, 1.0), "nothing is left to cut");
    }
}
