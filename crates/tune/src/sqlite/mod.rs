//! The adapter for SQLite: run it, audit it, apply the techniques, run it again.
//!
//! Up to three runs of the same workload, each on a fresh drive: SQLite with default settings; with the page size of
//! the plan; with that page size and the plan's techniques. So a reader sees the gain of each step.

mod advice;
mod apply;
mod knobs;
mod made;
mod notes;
mod plan;
mod program;
mod run;
mod session;
mod settings;
mod tpcc;
mod tuning;
mod user;
mod workload;

pub use program::Program;
pub use run::Workload;
pub use tpcc::{TPCC_PAGE, TableTraffic, TpccRun, TpccTransaction, TpccWorkload, tpcc};
pub use tuning::{TuneOptions, tune};
pub use user::{Statements, UserWorkload};
pub use workload::KeyValueWorkload;

use std::path::{Path, PathBuf};

use flashwise_audit::{AuditOptions, audit};
use flashwise_block::output::{Access, OutputFile, Published};
use flashwise_block::{ByteSize, Clock, Progress};
use flashwise_learn::{Effort, LearnOptions, learn};
use flashwise_profile::DeviceProfile;
use flashwise_sqlite::VfsOptions;
use flashwise_trace::IoTrace;

use crate::rates::gain;
use crate::{COMPARISON_SCHEMA, COMPARISON_SCHEMA_VERSION, Comparison, Gain, Recommendation, Target, TuneError};
use plan::Plan;
use run::{Run, RunConfig};
use settings::{DEFAULT_PAGE, Settings};

/// Bytes of a target that learning uses.
pub const LEARN_REGION: ByteSize = ByteSize::mib(256);

/// Options of `fit`.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// The drive.
    pub target: Target,
    /// The work.
    pub workload: Workload,
    /// Seed of every random choice.
    pub seed: u64,
    /// A profile that was learned before; otherwise the drive is learned first.
    pub profile: Option<DeviceProfile>,
    /// Where to leave the database of the last run, as plain SQLite; must be new.
    pub save_database: Option<PathBuf>,
    /// Where to leave the trace that was audited; must be new.
    pub save_trace: Option<PathBuf>,
}

/// How a target is learned by default: the parameters that decide the layout of a database.
pub fn learn_options(target: &Target, seed: u64, clock: Clock) -> LearnOptions {
    LearnOptions {
        seed,
        region: LEARN_REGION,
        effort: Effort::suiting(clock),
        whole_drive: matches!(target, Target::Simulated { .. }) && !target.is_file(),
        ..LearnOptions::new(target.to_string())
    }
}

/// Learns a target. On a raw device the confirmed limit of writes holds, whatever `max_write` is.
///
/// # Errors
/// When it cannot be opened or learned.
pub fn learn_target(
    target: &Target,
    seed: u64,
    max_write: Option<ByteSize>,
    progress: &mut dyn Progress,
) -> Result<DeviceProfile, TuneError> {
    let mut device = target.open(seed, LEARN_REGION)?;
    let max_write = max_write.into_iter().chain(target.write_limit()).min();
    let options = LearnOptions { max_write, ..learn_options(target, seed, device.info().clock) };
    Ok(learn(&mut *device, &options, progress)?)
}

/// Fits SQLite to a drive, and measures the gain.
///
/// # Errors
/// When the target, the workload or the database fails; nothing is left behind then.
pub fn fit(options: &FitOptions, progress: &mut dyn Progress) -> Result<Comparison, TuneError> {
    let (page_now, description) = match &options.workload {
        Workload::KeyValue(workload) => {
            workload.check()?;
            (DEFAULT_PAGE, workload.describe(options.seed))
        }
        Workload::User(workload) => {
            workload.check()?;
            (workload.page_size()?, workload.describe(options.seed))
        }
    };
    [&options.save_database, &options.save_trace].into_iter().flatten().try_for_each(|path| check_new(path))?;
    let profile = match &options.profile {
        Some(profile) => profile.clone(),
        None => learn_target(&options.target, options.seed, None, progress)?,
    };
    let plan = plan::plan(&profile, page_now);
    let runs = Runs::measure(options, &plan, page_now, progress)?;
    if let Some(path) = &options.save_trace {
        let database = options.save_database.as_deref().and_then(|database| Published::found(database).ok());
        let saved = save_trace(path, &runs.before().trace);
        if let (Err(_), Some(database)) = (&saved, database) {
            // It was new at the start: a fit that fails leaves no file.
            let _ = database.remove();
        }
        saved?;
    }
    Ok(runs.compare(options, profile, plan, description))
}

/// Runs a workload once, unmodified, through the VFS, and returns its requests to the target.
///
/// # Errors
/// When the target, the workload or the database fails.
pub fn capture(
    target: &Target,
    workload: &Workload,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<IoTrace, TuneError> {
    let page = match workload {
        Workload::KeyValue(workload) => workload.check().map(|()| DEFAULT_PAGE),
        Workload::User(workload) => workload.check().and_then(|()| workload.page_size()),
    }?;
    let settings = workload.settings(page);
    let config = RunConfig { label: "captured".to_owned(), settings, techniques: Vec::new() };
    Ok(run::run(target, &config, workload, seed, None, progress)?.trace)
}

/// Refuses a path where no new file can be created: the name exists, if only as a broken link, or its directory does
/// not.
fn check_new(path: &Path) -> Result<(), TuneError> {
    if path.symlink_metadata().is_ok() {
        return Err(TuneError::Refused(format!("{}: exists; existing files are never written to", path.display())));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if parent.is_dir() {
        return Ok(());
    }
    let message = format!("there is no directory {}", parent.display());
    Err(TuneError::File { path: path.to_owned(), message })
}

/// Writes a trace into a new file, wholly or not at all.
///
/// # Errors
/// When there is one, or it cannot be written.
pub fn save_trace(path: &Path, trace: &IoTrace) -> Result<(), TuneError> {
    let failed = |e: std::io::Error| TuneError::file(path, &e);
    let mut new = OutputFile::create(path, Access::Usual).map_err(failed)?;
    flashwise_trace::write_csv(trace, std::io::BufWriter::new(new.file()))
        .map_err(|e| TuneError::File { path: path.to_owned(), message: e.to_string() })?;
    new.publish().map(drop).map_err(failed)
}

/// The measured runs; `before` and `after` are absent where nothing is applied.
struct Runs {
    default: Run,
    fitted: Option<(Run, Run)>,
}

impl Runs {
    fn measure(
        options: &FitOptions,
        plan: &Plan,
        page_now: ByteSize,
        progress: &mut dyn Progress,
    ) -> Result<Self, TuneError> {
        let plain = |page: ByteSize| RunConfig {
            label: format!("{page} pages, plain"),
            settings: options.workload.settings(page),
            techniques: Vec::new(),
        };
        let save = options.save_database.as_deref();
        let mut run = |config: RunConfig, save| {
            run::run(&options.target, &config, &options.workload, options.seed, save, progress)
        };
        if plan.applied.is_empty() {
            return Ok(Self { default: run(plain(page_now), save)?, fitted: None });
        }
        let techniques = vec!["use-hot-locations".to_owned()];
        let hot = RunConfig {
            label: format!("{} pages, hot locations", plan.page),
            settings: Settings {
                vfs: VfsOptions { layout: plan.layout, ..VfsOptions::PLAIN },
                ..options.workload.settings(plan.page)
            },
            techniques,
        };
        let default = run(plain(page_now), None)?;
        let before = if plan.page == page_now { default.clone() } else { run(plain(plan.page), None)? };
        let after = run(hot, save)?;
        Ok(Self { default, fitted: Some((before, after)) })
    }

    fn before(&self) -> &Run {
        self.fitted.as_ref().map_or(&self.default, |(before, _)| before)
    }

    fn after(&self) -> &Run {
        self.fitted.as_ref().map_or(&self.default, |(_, after)| after)
    }

    fn gains(&self) -> Vec<Gain> {
        let Some((before, after)) = &self.fitted else { return Vec::new() };
        let (default, before, after) = (("default_page_size", &self.default), ("before", before), ("after", after));
        let compare = |a: (&str, &Run), b: (&str, &Run)| {
            let (x, y) = (&a.1.rounds, &b.1.rounds);
            let selects = gain("select_per_s", (a.0, &x.selects), (b.0, &y.selects));
            [selects, gain("insert_per_s", (a.0, &x.inserts), (b.0, &y.inserts))]
        };
        [compare(before, after), compare(default, before), compare(default, after)]
            .into_iter()
            .flatten()
            .flatten()
            .collect()
    }

    fn compare(
        self,
        options: &FitOptions,
        profile: DeviceProfile,
        plan: Plan,
        workload: crate::WorkloadDescription,
    ) -> Comparison {
        let gains = self.gains();
        let findings_of = |run: &Run| audit(&run.trace, &profile, &AuditOptions::default()).findings;
        let (findings, findings_after) = (findings_of(self.before()), findings_of(self.after()));
        let mut comparison = Comparison {
            schema: COMPARISON_SCHEMA.to_owned(),
            schema_version: COMPARISON_SCHEMA_VERSION,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            target: options.target.to_string(),
            database: format!("SQLite {}", flashwise_sqlite::sqlite_version()),
            workload,
            profile,
            findings,
            findings_after,
            applied: plan.applied,
            default_page_size: self.default.measurement.clone(),
            before: self.before().measurement.clone(),
            after: self.after().measurement.clone(),
            gains,
            recommendation: Recommendation { run: String::new(), reason: String::new() },
            notes: Vec::new(),
        };
        comparison.recommendation = advice::recommend(&comparison, plan.obstacle.as_ref());
        comparison.notes = notes::notes(&comparison);
        comparison
    }
}
