//! One run: a trace on a drive of the model, and each algorithm on it.

use std::ops::Range;

use crate::slots::{
    Algorithm, DeathTimeError, Greedy, NoDaP, Offline, Online, PredictionError, Run, Shape, TwoR, Workload, deaths,
    run_part, search_nodap,
};

use super::Scale;
use crate::StudyError;

/// Writes of a run beyond the first of each page, in multiples of the pages.
const WRITES: usize = 16;
/// What is measured of it: not the start, where the drive is not in its steady state, nor the end, where an algorithm
/// that knows the future would see that it ends.
const MEASURED: Range<usize> = 7..13;

/// The algorithms, in the order of the tables.
pub(super) const NAMES: [&str; 5] = ["greedy", "2R", "NoDaP", "offline", "online"];
pub(super) const GREEDY: usize = 0;
pub(super) const TWO_R: usize = 1;
pub(super) const NODAP: usize = 2;
pub(super) const OFFLINE: usize = 3;
pub(super) const ONLINE: usize = 4;

/// The workload of a share of the writes on the rest of the pages.
pub(super) fn workload(traffic: Option<f64>) -> Workload {
    traffic.map_or(Workload::Uniform, |traffic| Workload::TwoZones { traffic, size: 1.0 - traffic })
}

/// A drive and what is written to it.
pub(super) struct Bed {
    pub(super) shape: Shape,
    trace: Vec<u32>,
    pub(super) deaths: Vec<u32>,
    seed: u64,
}

impl Bed {
    pub(super) fn new(shape: Shape, workload: Workload, seed: u64) -> Self {
        let trace = workload.trace(shape, WRITES * shape.pages() as usize, seed);
        Self { shape, deaths: deaths(&trace), trace, seed }
    }

    fn run(&self, mut algorithm: impl Algorithm) -> Result<Run, DeathTimeError> {
        let pages = self.shape.pages() as usize;
        run_part(self.shape, &mut algorithm, &self.trace, MEASURED.start * pages..MEASURED.end * pages)
    }

    fn amplification(&self, algorithm: impl Algorithm) -> Result<f64, StudyError> {
        Ok(self.run(algorithm)?.measured.write_amplification())
    }

    pub(super) fn greedy(&self) -> Result<f64, StudyError> {
        self.amplification(Greedy::new(self.shape))
    }

    /// The online algorithm with predictions of an error.
    pub(super) fn online(&self, error: PredictionError) -> Result<f64, StudyError> {
        let predictions = error.predictions(&self.deaths, self.seed);
        self.amplification(Online::new(self.shape, |time, _| predictions[time as usize]))
    }

    /// The offline algorithm; the run, and its bound on the rewrites of the whole trace.
    pub(super) fn offline(&self) -> Result<(Run, u64), StudyError> {
        let offline = Offline::new(self.shape, &self.deaths)?;
        let bound = offline.bound();
        Ok((self.run(offline)?, bound))
    }

    /// All algorithms, the online one with true predictions; NoDaP with these limits, in multiples of the pages.
    pub(super) fn all(&self, limits: &[f64]) -> Result<[f64; 5], StudyError> {
        let limits = in_writes(self.shape, limits);
        let offline = self.offline()?.0.measured.write_amplification();
        Ok([
            self.greedy()?,
            self.amplification(TwoR::new(self.shape))?,
            self.amplification(NoDaP::new(self.shape, &self.deaths, &limits))?,
            offline,
            self.online(PredictionError::default())?,
        ])
    }
}

fn in_writes(shape: Shape, limits: &[f64]) -> Vec<u32> {
    limits.iter().map(|limit| (limit * f64::from(shape.pages())) as u32).collect()
}

/// The limits of NoDaP's groups, in multiples of the pages, found on a drive of 512 blocks of 32 slots and another
/// trace.
pub(super) fn nodap_limits(scale: &Scale, fill: f64, workload: Workload, seed: u64) -> Result<Vec<f64>, StudyError> {
    let shape = Shape::with_fill(512, 32, fill)?;
    let trace = workload.trace(shape, 6 * shape.pages() as usize, seed ^ 0x5eed);
    let grid = in_writes(shape, scale.limits);
    let deaths = deaths(&trace);
    let found = search_nodap(shape, &trace, &deaths, 3 * shape.pages() as usize, &grid, grid.len())?;
    let known = |limit: &u32| grid.iter().position(|other| other == limit).map(|n| scale.limits[n]);
    Ok(found.iter().filter_map(known).collect())
}
