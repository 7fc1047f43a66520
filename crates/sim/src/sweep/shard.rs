//! A part of a grid, for machines that share nothing: batch schedulers run one shard each, and the results are merged.

use std::path::Path;
use std::str::FromStr;

use super::{Grid, Journal, Sweep, SweepError, collect};

/// The n-th of so many parts of a grid: every so-many-th cell, so that slow neighbours are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not NUMBER/SHARDS, such as 3/64 for the third of 64");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let (number, of) = (number.parse::<u64>().map_err(|_| wrong())?, of.parse::<u64>().map_err(|_| wrong())?);
        if (1..=of).contains(&number) { Ok(Self { number, of }) } else { Err(wrong()) }
    }
}

impl Grid {
    /// Keeps the cells of one shard, with their places in the whole grid.
    pub fn keep(&mut self, shard: Shard) {
        self.cells.retain(|cell| cell.index % shard.of == shard.number - 1);
    }
}

/// Puts the finished cells of other runs' files into a results file; the result is that of a run of the whole grid.
///
/// # Errors
/// When a file is no results file, or a cell is in none of them; those that are have been added.
pub fn merge(grid: &Grid, results: &Path, files: &[impl AsRef<Path>]) -> Result<Sweep, SweepError> {
    let mut journal = Journal::open(results)?;
    for file in files.iter().map(AsRef::as_ref).filter(|file| !is_same(file, results)) {
        let finished = Journal::open_existing(file)?;
        for cell in grid.cells.iter().filter(|cell| finished.has(&cell.key)) {
            if !journal.has(&cell.key) {
                journal.add(&cell.key, finished.rows(&cell.key))?;
            }
        }
    }
    let missing = grid.cells.iter().filter(|cell| !journal.has(&cell.key)).count();
    match missing {
        0 => Ok(collect(grid, &journal, grid.cells.len() as u64, &[].into())),
        missing => Err(SweepError::Missing { missing, cells: grid.cells.len() }),
    }
}

/// Whether two names are of one file, such as the results file among those that a pattern names.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.canonicalize().ok();
    place(one).is_some_and(|one| Some(one) == place(other))
}
