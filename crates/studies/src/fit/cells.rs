//! One fit, and the tables of all.

use std::time::Duration;

use flashwise_block::Silent;
use flashwise_block::temporary::TemporaryFolder;
use flashwise_profile::DeviceProfile;
use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};
use flashwise_tune::sqlite::{
    DEFAULT_PAGE_CACHE, FitOptions, Statements, TimeBudget, UserWorkload, Workload, fit as fit_sqlite,
};
use flashwise_tune::{Comparison, Target};

use super::work::Work;
use crate::{StudyError, StudyOptions};

/// What a fit recommends.
pub(super) struct Cell {
    drive: String,
    work: Work,
    /// Throughput of the recommendation ÷ that of SQLite's defaults.
    pub(super) over_default: Measured,
    /// Throughput of the checklist ÷ that of SQLite's defaults.
    checklist: Measured,
    /// Throughput of the recommendation ÷ that of the checklist.
    pub(super) over_checklist: Measured,
    /// Its changes, and what each brings.
    changes: String,
    /// Configurations that were tried.
    tried: usize,
}

#[cfg(test)]
impl Cell {
    /// A recommendation beside the checklist, which gains nothing over the defaults.
    pub(super) fn beside_checklist(over_checklist: Measured) -> Self {
        let (drive, changes) = (String::new(), String::new());
        let (over_default, checklist) = (over_checklist, EXACTLY_ONE);
        Self { drive, work: Work::Scans, over_default, checklist, over_checklist, changes, tried: 1 }
    }
}

const EXACTLY_ONE: Measured = Measured { value: 1.0, low: 1.0, high: 1.0 };

/// The profile of a preset.
pub(super) fn learned(drive: &str, options: &StudyOptions) -> Result<DeviceProfile, StudyError> {
    let target = target(drive, options)?;
    Ok(flashwise_tune::sqlite::learn_target(&target, options.seed, None, &mut Silent)?)
}

fn target(drive: &str, options: &StudyOptions) -> Result<Target, StudyError> {
    Ok(Target::parse(&format!("sim:{drive}"))?.with_host(options.host.clone()))
}

/// Fits one workload to one drive.
pub(super) fn fit(
    drive: &str,
    work: Work,
    profile: &DeviceProfile,
    time: Duration,
    options: &StudyOptions,
) -> Result<Cell, StudyError> {
    let folder = TemporaryFolder::create("flashwise-")?;
    let database = folder.path().join("work.db");
    work.create(&database, options.seed)?;
    let statements = Statements::Made(work.statements(options.seed));
    let workload = Workload::User(UserWorkload::new(database, statements, DEFAULT_PAGE_CACHE));
    let options = FitOptions {
        profile: Some(profile.clone()),
        time_budget: Some(TimeBudget::Processor(time)),
        seed: options.seed,
        ..FitOptions::new(target(drive, options)?, workload)
    };
    Ok(cell(drive, work, &fit_sqlite(&options, &mut Silent)?))
}

fn cell(drive: &str, work: Work, found: &Comparison) -> Cell {
    let of = |from: &str, is_candidate: bool| {
        let is_it = |to: &str| if is_candidate { to == "best" || to == "candidate" } else { to == "checklist" };
        let gain = found.gains.iter().find(|gain| gain.from == from && is_it(&gain.to));
        gain.map_or(EXACTLY_ONE, |gain| Measured { value: gain.ratio, low: gain.low, high: gain.high })
    };
    let checklist = of("default", false);
    let takes_checklist = found.best.label == found.checklist.label;
    let (over_default, over_checklist) = match found.gain {
        Some(_) if takes_checklist => (checklist, EXACTLY_ONE),
        Some(_) => (of("default", true), of("checklist", true)),
        None => (EXACTLY_ONE, inverse(checklist)),
    };
    let change = |name: &str, gain: Option<f64>| match gain {
        Some(ratio) => format!("{name} ×{ratio:.2}"),
        None => name.to_owned(),
    };
    let changes: Vec<String> = found
        .proposals
        .iter()
        .map(|proposal| change(&proposal.name, proposal.gain.as_ref().map(|gain| gain.ratio)))
        .collect();
    Cell {
        drive: drive.to_owned(),
        work,
        over_default,
        checklist,
        over_checklist,
        changes: if changes.is_empty() { "none".to_owned() } else { changes.join(", ") },
        tried: found.candidates.len(),
    }
}

fn inverse(of: Measured) -> Measured {
    Measured { value: 1.0 / of.value, low: 1.0 / of.high, high: 1.0 / of.low }
}

fn table(caption: &str, cells: &[Cell], drives: &[&str], work: &[Work], of: &dyn Fn(&Cell) -> StudyCell) -> StudyTable {
    let columns = std::iter::once("drive".to_owned()).chain(work.iter().map(Work::to_string)).collect();
    let cell = |drive: &str, work: Work| {
        let found = cells.iter().find(|cell| cell.drive == drive && cell.work == work);
        found.map_or_else(|| StudyCell::text("–"), of)
    };
    let row = |drive: &&str| {
        std::iter::once(StudyCell::text(*drive)).chain(work.iter().map(|work| cell(drive, *work))).collect()
    };
    StudyTable { caption: caption.to_owned(), columns, rows: drives.iter().map(row).collect() }
}

/// Throughput beside the defaults and the checklist.
pub(super) fn ratios(cells: &[Cell], drives: &[&str], work: &[Work]) -> StudySection {
    let tables = vec![
        table("recommendation ÷ checklist", cells, drives, work, &|cell| StudyCell::Measured(cell.over_checklist)),
        table("recommendation ÷ SQLite's defaults", cells, drives, work, &|cell| {
            StudyCell::Measured(cell.over_default)
        }),
        table("checklist ÷ SQLite's defaults", cells, drives, work, &|cell| StudyCell::Measured(cell.checklist)),
    ];
    let text = vec![
        "Statements a second, with the interval of 99 % from fresh runs. All configurations commit with \
         synchronous=FULL. The checklist is a write-ahead log and a page cache of 64 MiB."
            .to_owned(),
    ];
    StudySection { title: "Where does a fit pay?".to_owned(), text, tables, charts: Vec::new() }
}

/// Which changes bring it.
pub(super) fn changes(cells: &[Cell], drives: &[&str], work: &[Work]) -> StudySection {
    let tables = vec![
        table("changes, and throughput with each ÷ without", cells, drives, work, &|cell| {
            StudyCell::text(cell.changes.clone())
        }),
        table("configurations tried", cells, drives, work, &|cell| StudyCell::text(cell.tried.to_string())),
    ];
    let text = vec!["What is recommended, each change with what it brings beside the others.".to_owned()];
    StudySection { title: "Which changes bring it?".to_owned(), text, tables, charts: Vec::new() }
}
