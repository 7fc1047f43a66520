//! PostgreSQL under TPC-C with room left in its pages, on a drive that compresses and on one that does not.
//!
//! ```text
//!   sessions: TPC-C ─▶ a private PostgreSQL, its memory bounded ─▶ ext4 ─▶ flashwise attach ─▶ plain or compressing drive
//!     └─▶ transactions a second of the drive's clock                          └─▶ bytes of the file system, and of the flash
//! ```
//!
//! - [`bench`]: one drive with a database a fill factor; [`drives`]: the two of them;
//! - [`crate::attached`]: a drive as a disk for as long as it is needed, and what the server may use;
//! - [`claims`], [`sections`]: what comes out.
//!
//! **Time.** A drive answers when it would, its world slowed down so far that the database's processors are to it what
//! 32 are to a drive in real time: the text's server has as many. So neither the processors nor the drive is made the
//! bottleneck by the machine that this runs on, and answers that come late by a tenth of a millisecond are late by a
//! thirtieth of that on the drive's clock. How late they were is told.
//!
//! Source: ScaleFlux's text on its CSD 2000.

mod bench;
mod claims;
mod drives;
mod sections;

use flashwise_report::study::Measured;
use flashwise_tune::TuneError;
use flashwise_tune::postgres::{PostgresTpcc, PrivatePostgres};

use crate::attached::{self, Cores, load_average};
use crate::statistics::mean;
use crate::{Findings, Progress, StudyError, StudyOptions};
use bench::{Conditions, Filled, Outcome, Round, Work};
use drives::Drive;

/// The fill factors of the text: PostgreSQL's own, and one that leaves space.
const FULL: u32 = 100;
const ROOM: u32 = 75;
/// Processors of the text's server.
const TEXT_PROCESSORS: f64 = 32.0;
/// What a session takes beside the page cache, bytes.
const SESSION_BYTES: u64 = 6 << 20;
/// What the server takes without sessions, and with a page cache of about a quarter of the smaller tables.
const SERVER_BYTES: u64 = 40 << 20;

/// A change of one condition.
struct Variation {
    name: &'static str,
    change: fn(&mut Conditions),
}

/// What is changed, one at a time; the quick version takes the first three.
const VARIATIONS: [Variation; 6] = [
    Variation { name: "all data cached", change: |conditions| conditions.memory_bytes = None },
    Variation { name: "pgbench", change: |conditions| conditions.work = conditions.other_work() },
    Variation {
        name: "pgbench, compressing",
        change: |conditions| (conditions.work, conditions.drive) = (conditions.other_work(), Drive::Compressing),
    },
    Variation { name: "drive half as fast", change: |conditions| conditions.time_scale *= 2.0 },
    Variation { name: "processors a quarter as fast", change: |conditions| conditions.time_scale /= 4.0 },
    Variation {
        name: "full_page_writes off",
        change: |conditions| conditions.settings.push(("full_page_writes", "off")),
    },
];

/// All that was measured.
struct Results {
    /// By drive, in the order of [`Drive::BOTH`].
    drives: [Outcome; 2],
    /// With one thing changed; on the plain drive, if that is not what is changed.
    varied: Vec<(&'static str, Outcome)>,
    conditions: Conditions,
}

impl Results {
    fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Self, StudyError> {
        let conditions = conditions(options)?;
        let program = options.program.as_deref();
        let varied: &[Variation] = if options.quick { &VARIATIONS[..3] } else { &VARIATIONS };
        let share = 1.0 / (2.0 + 0.5 * varied.len() as f64);
        let on = |drive: Drive, at: f64| {
            bench::run(&Conditions { drive, ..conditions.clone() }, program, progress, (at * share, share))
        };
        let drives = [on(Drive::Plain, 0.0)?, on(Drive::Compressing, 1.0)?];
        let vary = |(at, variation): (usize, &Variation)| {
            let mut changed = Conditions { drive: Drive::Plain, fills: vec![FULL, ROOM], ..conditions.clone() };
            (variation.change)(&mut changed);
            let done = (2.0 + 0.5 * at as f64) * share;
            Ok((variation.name, bench::run(&changed, program, progress, (done, 0.5 * share))?))
        };
        let varied = varied.iter().enumerate().map(vary).collect::<Result<_, StudyError>>()?;
        Ok(Self { drives, varied, conditions })
    }
}

fn conditions(options: &StudyOptions) -> Result<Conditions, StudyError> {
    let cores = Cores::share()?;
    let tables = PostgresTpcc { warehouses: 32, items: 3_000, customers: 90, fill_factor: FULL };
    let small = Conditions {
        drive: Drive::Plain,
        fills: vec![FULL, ROOM, 50],
        work: Work::Tpcc(tables),
        sessions: 8,
        transactions: 600,
        rounds: 4,
        time_scale: TEXT_PROCESSORS / f64::from(cores.count),
        memory_bytes: Some(SERVER_BYTES + 8 * SESSION_BYTES),
        settings: Vec::new(),
        seed: options.seed,
    };
    Ok(match options.quick {
        true => small,
        false => Conditions {
            fills: vec![FULL, 90, 80, ROOM, 70, 60, 50],
            work: Work::Tpcc(PostgresTpcc { warehouses: 64, ..tables }),
            sessions: 16,
            transactions: 2_000,
            rounds: 8,
            memory_bytes: Some(SERVER_BYTES + 16 * SESSION_BYTES),
            ..small
        },
    })
}

impl Conditions {
    /// pgbench's tables of about the same size.
    fn other_work(&self) -> Work {
        match self.work {
            Work::Tpcc(tables) => Work::Pgbench { scale: (tables.warehouses / 4).max(1) },
            work @ Work::Pgbench { .. } => work,
        }
    }
}

impl Outcome {
    fn of(&self, fill: u32) -> Result<&Filled, StudyError> {
        self.fills.iter().find(|filled| filled.fill == fill).ok_or(StudyError::Lost)
    }

    /// Transactions a second with one fill factor ÷ with another, of rounds of the same age.
    fn gain(&self, fill: u32, against: u32) -> Result<Measured, StudyError> {
        let (these, those) = (self.of(fill)?, self.of(against)?);
        let ratios: Vec<f64> = these.rounds.iter().zip(&those.rounds).map(|(a, b)| a.rate / b.rate).collect();
        Ok(mean(&ratios))
    }
}

impl Filled {
    fn mean(&self, of: impl Fn(&Round) -> f64) -> Measured {
        mean(&self.rounds.iter().map(of).collect::<Vec<_>>())
    }

    /// Of all updates, those that stayed on their page and left the indexes alone.
    fn hot_share(&self) -> f64 {
        let sum = |of: fn(&Round) -> f64| self.rounds.iter().map(of).sum::<f64>();
        sum(|round| round.hot_updates) / sum(|round| round.updates).max(1.0)
    }
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    look_for_server()?;
    let load = load_average();
    let results = Results::run(options, progress)?;
    let claims = claims::all(&results)?;
    let sections = sections::all(&results, &load)?;
    Ok(Findings { claims, sections, limits: limits(&results) })
}

/// What is missing is told before a drive is made.
fn look_for_server() -> Result<(), StudyError> {
    match PrivatePostgres::new(None, None) {
        Ok(_) => Ok(()),
        Err(TuneError::Missing(_)) => Err(StudyError::Missing(
            "no PostgreSQL server is installed: install the package postgresql (Debian, Ubuntu) or postgresql-server \
             (Fedora, RHEL)"
                .to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

fn limits(results: &Results) -> Vec<String> {
    let first = &results.drives[0];
    let mut limits = vec![
        format!(
            "{}. The text gives no version, memory size or run time, nor which tables have the fill factor; here \
             every table has it and no index.",
            first.version
        ),
        "The text's 64 sessions work on thousands of warehouses. Here fewer sessions work on many small warehouses, \
         so they do not wait for each other's rows either; foreign keys are left out."
            .to_owned(),
        "One load of each database with one seed; the sizes have no interval. The drives are new: garbage collection \
         does not run."
            .to_owned(),
    ];
    let unbounded = results.drives.iter().find_map(|outcome| outcome.unbounded.as_ref());
    limits.extend(unbounded.map(|why| format!("The server's memory was not limited, so all data was cached: {why}.")));
    let not_apart = results.drives.iter().find_map(|outcome| outcome.not_apart.as_ref());
    limits.extend(not_apart.map(|why| attached::behind_flushes(why)));
    limits
}
