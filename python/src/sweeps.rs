//! Sweeps: the cells of a grid, run here on all cores or wherever an executor sends them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flashwise_sim::sweep::{Cell, Grid, Journal, SweepOptions, SweepRow, collect, run_cell, sweep_into};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::document::{Content, Document};
use crate::failure::Failure;
use crate::running;

/// A sweep that is under way.
#[pyclass(frozen, module = "flashwise._native")]
pub(crate) struct Sweeping {
    grid: Grid,
    state: Mutex<State>,
}

struct State {
    journal: Journal,
    /// Cells that were finished before.
    resumed: u64,
    /// Why cells have no rows, by their places.
    failed: BTreeMap<u64, String>,
}

/// A cell on its way to another process.
#[derive(Serialize, Deserialize)]
struct Sent<C> {
    cell: C,
    /// The folder that traces are relative to, from the root.
    base: PathBuf,
}

impl Sweeping {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, place: usize) -> Result<&Cell, Failure> {
        self.grid.cells.get(place).ok_or_else(|| Failure::usage(format!("there is no cell {place}")))
    }
}

#[pymethods]
impl Sweeping {
    /// Reads a grid and checks every cell; finished ones are taken from `results`.
    #[new]
    fn new(py: Python<'_>, grid: PathBuf, results: Option<PathBuf>) -> PyResult<Self> {
        running::run(py, None, move |_| {
            let mut grid = Grid::read(&grid)?;
            // The folder of a grid in the current one has no name.
            grid.base = std::path::absolute(PathBuf::from(".").join(&grid.base))
                .map_err(|error| Failure::file(&grid.base.display().to_string(), &error))?;
            let journal = results.map_or_else(|| Ok(Journal::in_memory()), |path| Journal::open(&path))?;
            let resumed = grid.cells.iter().filter(|cell| journal.has(&cell.key)).count() as u64;
            Ok(Self { grid, state: Mutex::new(State { journal, resumed, failed: BTreeMap::new() }) })
        })
    }

    /// Places of the cells that are not finished.
    fn pending(&self) -> Vec<usize> {
        let state = self.state();
        let cells = self.grid.cells.iter().enumerate();
        cells.filter(|(_, cell)| !state.journal.has(&cell.key)).map(|(place, _)| place).collect()
    }

    /// A cell for another process.
    fn cell(&self, py: Python<'_>, place: usize) -> PyResult<String> {
        let sent = || -> Result<String, Failure> {
            Ok(serde_json::to_string(&Sent { cell: self.at(place)?, base: self.grid.base.clone() })?)
        };
        sent().map_err(|failure| failure.raise(py))
    }

    /// What came of a cell: its rows, or why there are none.
    fn add(&self, py: Python<'_>, place: usize, rows: Option<&str>, error: Option<String>) -> PyResult<()> {
        let add = || -> Result<(), Failure> {
            let cell = self.at(place)?;
            let mut state = self.state();
            if let Some(rows) = rows {
                let rows: Vec<SweepRow> = serde_json::from_str(rows)?;
                state.journal.add(&cell.key, rows)?;
            }
            if let Some(error) = error.clone() {
                state.failed.insert(cell.index, error);
            }
            Ok(())
        };
        add().map_err(|failure| failure.raise(py))
    }

    /// Runs the cells that are not finished, in this process.
    #[pyo3(signature = (jobs, listener = None))]
    fn run(&self, py: Python<'_>, jobs: usize, listener: Option<&Bound<'_, PyAny>>) -> PyResult<Document> {
        running::run(py, listener, |mut reporter| {
            let mut state = self.state();
            let sweep = sweep_into(&self.grid, &mut state.journal, SweepOptions { jobs }, &mut reporter)?;
            Ok(Document(Content::Sweep(Box::new(sweep))))
        })
    }

    /// Closes the results file, whoever still has this object, such as the traceback of an exception.
    fn close(&self) {
        self.state().journal = Journal::in_memory();
    }

    /// The result.
    fn finish(&self) -> Document {
        let state = self.state();
        Document(Content::Sweep(Box::new(collect(&self.grid, &state.journal, state.resumed, &state.failed))))
    }
}

/// Runs a cell that another process has sent; its rows.
#[pyfunction]
pub(crate) fn run_sent(py: Python<'_>, sent: &str) -> PyResult<String> {
    let sent: Sent<Cell> = serde_json::from_str(sent).map_err(|error| Failure::from(error).raise(py))?;
    running::run(py, None, move |mut reporter| {
        let rows = run_cell(&sent.cell, &sent.base, &mut reporter)?;
        Ok(serde_json::to_string(&rows)?)
    })
}
