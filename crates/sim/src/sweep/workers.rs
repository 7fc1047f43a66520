//! Workers, one a core, that take the next cell as soon as they are free.
//!
//! The workers simulate; the calling thread alone writes results, tells progress and hears that it should stop. A stop
//! reaches every running simulation through its progress listener.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use flashwise_block::{BlockError, Progress};

use super::grid::{Cell, SweepError};
use super::row::{SweepRow, rows};
use crate::{SimulationError, SimulationOptions};

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);
/// A whole cell in the unit in which its progress is kept.
const WHOLE: f64 = 1e6;

/// What came of a cell.
type Outcome = Result<Vec<SweepRow>, SimulationError>;

/// Runs one cell, wherever it came from; traces are relative to `base`.
///
/// # Errors
/// When the simulation fails, or `progress` wants to stop.
pub fn run_cell(cell: &Cell, base: &Path, progress: &mut dyn Progress) -> Result<Vec<SweepRow>, SimulationError> {
    let options = SimulationOptions { precondition: cell.precondition, interval: None };
    cell.machine.simulate(&cell.workload, base, &options, progress).map(|simulation| rows(&simulation))
}

/// What all threads see.
struct Shared<'a> {
    cells: &'a [&'a Cell],
    base: &'a Path,
    next: AtomicUsize,
    stop: AtomicBool,
    /// How far each cell is, in millionths.
    done: Vec<AtomicU32>,
}

/// Runs all cells; `finished` is called on this thread for each.
pub(super) fn run(
    cells: &[&Cell],
    base: &Path,
    jobs: usize,
    progress: &mut dyn Progress,
    finished: &mut dyn FnMut(&Cell, Outcome) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = if jobs == 0 { cores } else { jobs }.min(cells.len());
    let shared = Shared {
        cells,
        base,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        done: cells.iter().map(|_| AtomicU32::new(0)).collect(),
    };
    std::thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..jobs {
            let (shared, sender) = (&shared, sender.clone());
            scope.spawn(move || shared.work(&sender));
        }
        drop(sender);
        let mut result = Ok(());
        loop {
            match results.recv_timeout(TICK) {
                // What a stopped worker was doing is no result.
                Ok((_, Err(error))) if error.is_interrupt() => {}
                Ok((index, outcome)) if result.is_ok() => result = finished(cells[index], outcome),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return result,
            }
            if result.is_ok() {
                result = progress.advance("sweeping", shared.fraction()).map_err(SweepError::from);
            }
            if result.is_err() {
                shared.stop.store(true, Ordering::Relaxed);
            }
        }
    })
}

impl Shared<'_> {
    fn work(&self, results: &Sender<(usize, Outcome)>) {
        while !self.stop.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = self.cells.get(index) else { return };
            let outcome = self.simulate(index, cell);
            self.done[index].store(WHOLE as u32, Ordering::Relaxed);
            if results.send((index, outcome)).is_err() {
                return;
            }
        }
    }

    fn simulate(&self, index: usize, cell: &Cell) -> Outcome {
        run_cell(cell, self.base, &mut Listener { shared: self, index })
    }

    fn fraction(&self) -> f64 {
        let done: f64 = self.done.iter().map(|part| f64::from(part.load(Ordering::Relaxed))).sum();
        done / WHOLE / self.cells.len().max(1) as f64
    }
}

/// Notes how far a cell is, and hears that all should stop.
struct Listener<'a> {
    shared: &'a Shared<'a>,
    index: usize,
}

impl Progress for Listener<'_> {
    fn advance(&mut self, stage: &str, fraction: f64) -> Result<(), BlockError> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return Err(BlockError::Interrupted);
        }
        // What comes before the workload has no share of its own.
        let fraction = if stage == "simulating" { fraction.clamp(0.0, 1.0) } else { 0.0 };
        self.shared.done[self.index].store((fraction * WHOLE) as u32, Ordering::Relaxed);
        Ok(())
    }
}
