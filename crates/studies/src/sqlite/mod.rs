//! SQLite fitted to a drive: what is claimed of each technique, and what it brings on simulated drives.
//!
//! ```text
//!   real SQLite ─▶ VFS: one technique, or none ─▶ file system, or none ─▶ drive in virtual time ─▶ time, bytes
//!                                                                           ▲
//!                                               the text's, as presets; others that differ from it in one thing
//! ```
//!
//! - `hot`: use-hot-locations, by `flashwise fit`;
//! - `aligned`: write-aligned-stripes;
//! - `small_pages`: contain-write-in-flash-page, and the sparse log;
//! - `checkpoint`: concurrent write-back;
//! - `claims`: what is claimed beside it;
//! - [`bench`], [`compare`], [`drives`], [`scale`]: what they use.
//!
//! Sources: Kakaraparthy, Patel, Park, Kroth, "Optimizing Databases by Learning Hidden Parameters of Solid State
//! Drives", PVLDB 13(4), 2019; Qiao et al., FAST 2022 (the sparse log); Papon, Athanassoulis, ICDE 2023 (concurrent
//! write-back).

mod aligned;
mod bench;
mod checkpoint;
mod claims;
mod compare;
mod drives;
mod hot;
mod scale;
mod small_pages;

use flashwise_sqlite::LogLayout;
use flashwise_ssd::DeviceConfig;
use flashwise_tune::Host;

use crate::{Findings, Progress, StudyError, StudyOptions};
pub(crate) use drives::{one_page_a_program, survives};
use scale::Scale;

/// All that was measured.
struct Measurements {
    hot: hot::Hot,
    aligned: aligned::Aligned,
    small_pages: small_pages::SmallPages,
    checkpoints: checkpoint::Checkpoints,
}

/// What SQLite's log cost a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogCost {
    pub(crate) host_bytes: f64,
    pub(crate) flash_bytes: f64,
    /// Commits a second of the drive's time, checkpoints included.
    pub(crate) per_second: f64,
}

/// Runs SQLite on a new drive, one insert a transaction.
pub(crate) fn log_cost(
    drive: DeviceConfig,
    host: &Host,
    page: u32,
    log: LogLayout,
    inserts: u32,
    seed: u64,
) -> Result<LogCost, StudyError> {
    let setting = bench::Setting {
        drive,
        host: host.clone(),
        is_worn_in: false,
        page,
        log,
        depth: 1,
        rows: 0,
        inserts,
        per_transaction: 1,
    };
    let run = bench::run(&setting, seed)?;
    let [host_bytes, flash_bytes] = [run.log.host, run.log.flash].map(|bytes| bytes / run.commits);
    Ok(LogCost { host_bytes, flash_bytes, per_second: compare::rate(&run) })
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let scale = Scale::of(options);
    let m = Measurements {
        hot: hot::measure(options, progress)?,
        aligned: aligned::measure(&scale, options, progress)?,
        small_pages: small_pages::measure(&scale, options, progress)?,
        checkpoints: checkpoint::measure(&scale, options, progress)?,
    };
    let [contained, sparse] = m.small_pages.sections(&scale);
    let sections = vec![m.hot.section(), m.aligned.section(&scale), contained, sparse, m.checkpoints.section(&scale)];
    let limits = vec![
        "How the paper measured wear is unknown. Here it is the bytes programmed by the simulated flash, and erases \
         on a drive small enough to collect garbage."
            .to_owned(),
        "The paper's prototype of the aligned log neither syncs the headers of its frames nor recovers from them. \
         Here they are synced with each commit, and a log survives a power cut."
            .to_owned(),
        match &options.host {
            Host::Bare => "Databases are on the bare drive: SQLite's CPU time, system calls and the file system's \
                           writes are not included."
                .to_owned(),
            host => format!(
                "Databases are on {}, in the model of Linux; times include {}.",
                host.describe(),
                host.describe_program()
            ),
        },
        "MariaDB's binary log is in the study mariadb. No drive here compresses: the study transparent-compression \
         covers the sparse log on one that does."
            .to_owned(),
    ];
    Ok(Findings { claims: claims::all(&m), sections, limits })
}
