//! The adapter for SQLite: run it, audit it, search for the best settings, confirm them, apply them.
//!
//! - [`fit`]: the whole job; `knobs.rs` has the settings that can be changed, `crate::search` how the best is found;
//! - [`capture`]: a workload with default settings, for an audit;
//! - [`hot_locations`]: the published experiment;
//! - [`tpcc`]: table traffic of TPC-C.

mod answers;
mod apply;
mod audited;
mod bench;
mod budget;
mod by_hand;
mod fit;
mod hot_locations;
mod knobs;
mod loaded;
mod made;
mod notes;
mod objective;
mod places;
mod play;
mod program;
mod record;
mod run;
mod script;
mod seen;
mod session;
mod settings;
mod tpcc;
mod uri;
mod user;
mod weaker;
mod workload;

pub use audited::{audit_options, flush_remark, with_flush};
pub use fit::{FitOptions, PAGE_CACHE_LIMIT, TimeBudget, fit};
pub use hot_locations::{HotLocationRuns, hot_locations};
pub use objective::Objective;
pub use program::Program;
pub use record::{Recorded, Recording, record};
pub use run::Workload;
pub use settings::DEFAULT_PAGE_CACHE;
pub use tpcc::{TPCC_PAGE, TableTraffic, TpccRun, TpccTransaction, TpccWorkload, tpcc};
pub use user::{DatabaseBefore, Statements, UserWorkload};
pub use workload::KeyValueWorkload;

use std::path::Path;

use flashwise_block::output::{Access, OutputFile, directory_of};
use flashwise_block::{ByteSize, Clock, Progress};
use flashwise_learn::{CARD_REGION, Effort, LearnOptions, Scope, learn};
use flashwise_profile::DeviceProfile;
use flashwise_sqlite::{SqliteError, check_target};
use flashwise_trace::IoTrace;

use crate::learning::is_simulated_card;
use crate::{Target, TuneError};
use run::RunConfig;

/// Bytes of a target that learning uses.
pub const LEARN_REGION: ByteSize = ByteSize::mib(256);

/// How a target is learned by default: the parameters that decide the layout of a database.
pub fn learn_options(target: &Target, seed: u64, clock: Clock) -> LearnOptions {
    LearnOptions {
        seed,
        region: LEARN_REGION,
        effort: Effort::suiting(clock),
        whole_drive: target.is_simulated() && !target.is_file(),
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
    let mut options = LearnOptions { max_write, ..learn_options(target, seed, device.info().clock) };
    if is_simulated_card(target) {
        (options.scope, options.region) = (Scope::Card, CARD_REGION);
    }
    Ok(learn(&mut *device, &options, progress)?)
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
    workload.check()?;
    let settings = workload.settings(workload.page_size()?);
    let config = RunConfig { label: "captured".to_owned(), settings, techniques: Vec::new(), is_checked: true };
    Ok(run::run(target, &config, (workload, None), seed, None, progress)?.trace)
}

/// Refuses a path where no new file can be created: the name exists, if only as a broken link, or its directory does
/// not.
fn check_new(path: &Path) -> Result<(), TuneError> {
    if path.symlink_metadata().is_ok() {
        return Err(TuneError::Refused(format!("{}: exists; existing files are never written to", path.display())));
    }
    let parent = directory_of(path);
    if parent.is_dir() {
        return Ok(());
    }
    let message = format!("there is no directory {}", parent.display());
    Err(TuneError::File { path: path.to_owned(), message })
}

/// The same for a database: a journal or a log that an earlier one of the name has left would be read as a part of it.
fn check_new_database(path: &Path) -> Result<(), TuneError> {
    check_new(path)?;
    check_target(path).map_err(|error| match error {
        SqliteError::Exists(_) | SqliteError::Leftover { .. } => TuneError::Refused(error.to_string()),
        error => error.into(),
    })
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
