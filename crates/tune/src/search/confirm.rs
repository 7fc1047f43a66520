//! The winner, the checklist and the stock configuration in fresh runs.

use super::{Bench, CONFIRM_SEEDS, Costs, Interval, Search, Stage, WORTH_IT, confident, statistics};
use crate::TuneError;

/// Runs of each configuration: at least three, since an interval of two pairs is six times as wide as they scatter.
const RUNS_MIN: usize = 3;
/// At most as many: from here on the interval shrinks by less than a tenth for each further run.
const RUNS_MAX: usize = 8;
/// Configurations that are confirmed.
const ARMS: usize = 3;

/// The figures that are announced.
#[derive(Clone, Debug)]
pub(crate) struct Confirmation<C> {
    /// The recommended configuration; the stock one where no gain was seen.
    pub(crate) best: C,
    /// Whether a gain was seen.
    pub(crate) is_gain: bool,
    /// The candidate that was confirmed, which differs from `best` where the checklist was better or nothing gains.
    pub(crate) candidate: C,
    /// The candidate over the stock configuration, by objective.
    pub(crate) over_stock: [Interval; 2],
    /// The checklist over the stock configuration.
    pub(crate) checklist: [Interval; 2],
    /// The candidate over the checklist.
    pub(crate) over_checklist: [Interval; 2],
    /// Runs of each.
    pub(crate) runs: usize,
}

impl<B: Bench> Search<'_, B> {
    /// The share of the budget that the shortest confirmation takes.
    pub(super) fn confirmation_needs(&self) -> f64 {
        let at_once = self.bench.width(Stage::Confirm).max(1);
        (RUNS_MIN * ARMS).div_ceil(at_once) as f64 * self.bench.expected(Stage::Confirm)
    }

    /// How many runs the rest of the budget allows.
    fn confirmation_runs(&self) -> usize {
        let left = (1.0 - self.bench.spent()).max(0.0);
        let one = self.confirmation_needs() / RUNS_MIN as f64;
        let runs = if one > 0.0 { (left / one).floor().min(RUNS_MAX as f64) as usize } else { RUNS_MAX };
        runs.clamp(RUNS_MIN, RUNS_MAX)
    }

    /// Confirms a candidate.
    pub(super) fn confirm(&mut self, candidate: B::Configuration) -> Result<Confirmation<B::Configuration>, TuneError> {
        let arms = [candidate.clone(), self.start.checklist.clone()];
        let runs = self.confirmation_runs();
        let mut gains: [Vec<Costs>; 2] = [Vec::new(), Vec::new()];
        for n in 0..runs as u64 {
            let seed = self.seed.wrapping_add(CONFIRM_SEEDS).wrapping_add(n);
            self.bench.report(Stage::Confirm, None);
            let [a, b] = self.paired_once(&arms, seed)?;
            gains[0].push(a);
            gains[1].push(b);
        }
        let of =
            |logs: &[Costs]| std::array::from_fn(|n| confident(&logs.iter().map(|log| log[n]).collect::<Vec<_>>()));
        let [over_stock, checklist]: [[Interval; 2]; 2] = [of(&gains[0]), of(&gains[1])];
        let difference: Vec<Costs> =
            gains[0].iter().zip(&gains[1]).map(|(a, b)| std::array::from_fn(|n| a[n] - b[n])).collect();
        let over_checklist = of(&difference);
        let gains_at = |interval: &[Interval; 2]| interval.iter().any(|gain| gain.low > WORTH_IT);
        let candidate_gains = gains_at(&over_stock) && candidate != self.start.stock;
        let checklist_is_better = statistics::means(&difference)[0] < 0.0;
        let (best, is_gain) = match (candidate_gains, gains_at(&checklist)) {
            (true, false) => (candidate.clone(), true),
            (true, true) if !checklist_is_better => (candidate.clone(), true),
            (_, true) => (self.start.checklist.clone(), true),
            (false, false) => (self.start.stock.clone(), false),
        };
        Ok(Confirmation { best, is_gain, candidate, over_stock, checklist, over_checklist, runs })
    }

    /// The arms beside the stock configuration; the same configuration is run once.
    fn paired_once(&mut self, arms: &[B::Configuration; 2], seed: u64) -> Result<[Costs; 2], TuneError> {
        let stock = self.start.stock.clone();
        let mut different: Vec<B::Configuration> = Vec::new();
        for arm in arms {
            if *arm != stock && !different.contains(arm) {
                different.push(arm.clone());
            }
        }
        let gains = self.paired(&different, Stage::Confirm, seed)?;
        let gain =
            |arm: &B::Configuration| different.iter().position(|other| other == arm).map_or([0.0; 2], |n| gains[n]);
        Ok([gain(&arms[0]), gain(&arms[1])])
    }
}
