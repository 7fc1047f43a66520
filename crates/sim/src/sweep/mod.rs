//! Many simulations: every combination of a few values, on all cores, and again from where it was interrupted.
//!
//! ```text
//!   grid.toml ── Grid ──▶ cells, in order ──▶ workers, one a core ──▶ journal (a line a finished cell)
//!                                   ▲                                     │
//!                                   └── already in the journal: not run ──┘──▶ Sweep: rows in the order of the cells
//! ```
//!
//! **Order.** The result has the cells in the order of the grid, whichever finished first, so that two runs of one grid
//! give the same file to the byte.
//!
//! **Resuming.** A finished cell is one line in the journal, under a hash of everything that decides its result: the
//! whole configuration of drive and workload, the state of the drive before, the traces' contents, and the version of
//! flashwise. A cell whose hash is found there is not run again. What was running when the sweep stopped is run again.
//!
//! **Before the first simulation** every cell is checked: a grid with an impossible combination is refused as a whole.

mod grid;
mod journal;
mod row;
mod shard;
mod workers;

pub use grid::{Axis, Cell, Grid, SweepError, set_value};
pub use journal::Journal;
pub use row::{SWEEP_SCHEMA, SWEEP_SCHEMA_VERSION, Sweep, SweepCell, SweepRow};
pub use shard::{Shard, merge};
pub use workers::run_cell;

use std::collections::BTreeMap;
use std::path::Path;

use flashwise_block::Progress;

/// How a sweep is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepOptions {
    /// Simulations at a time; 0 for one a core.
    pub jobs: usize,
}

/// Runs a grid; `results` is its journal, created where it is missing.
///
/// A cell whose simulation fails has its error in the result instead of rows, is not in the journal, and is tried again
/// the next time.
///
/// # Errors
/// When the journal is somebody else's file or cannot be written, or when `progress` wants to stop; what is finished by
/// then is in the journal.
pub fn sweep(
    grid: &Grid,
    results: &Path,
    options: SweepOptions,
    progress: &mut dyn Progress,
) -> Result<Sweep, SweepError> {
    sweep_into(grid, &mut Journal::open(results)?, options, progress)
}

/// The same with a journal that is open.
///
/// # Errors
/// As [`sweep`].
pub fn sweep_into(
    grid: &Grid,
    journal: &mut Journal,
    options: SweepOptions,
    progress: &mut dyn Progress,
) -> Result<Sweep, SweepError> {
    let pending: Vec<&Cell> = grid.cells.iter().filter(|cell| !journal.has(&cell.key)).collect();
    let resumed = (grid.cells.len() - pending.len()) as u64;
    let mut failed = BTreeMap::new();
    workers::run(&pending, &grid.base, options.jobs, progress, &mut |cell, outcome| {
        match outcome {
            Ok(rows) => journal.add(&cell.key, rows)?,
            Err(error) => {
                failed.insert(cell.index, error.to_string());
            }
        }
        Ok(())
    })?;
    Ok(collect(grid, journal, resumed, &failed))
}

/// The result of a grid whose cells were run by whoever: their rows from the journal, and by index why there are none.
pub fn collect(grid: &Grid, journal: &Journal, resumed: u64, failed: &BTreeMap<u64, String>) -> Sweep {
    let cell = |cell: &Cell| SweepCell {
        index: cell.index,
        key: cell.key.clone(),
        values: cell.values.clone(),
        rows: journal.rows(&cell.key),
        error: failed.get(&cell.index).cloned(),
    };
    Sweep::new(grid.name.clone(), resumed, grid.cells.iter().map(cell).collect())
}

#[cfg(test)]
mod tests;
