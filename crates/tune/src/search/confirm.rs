//! The winner, the checklist and the stock configuration in fresh runs.
//!
//! The winner is confirmed as it was pruned. Where none of its changes brought its price, it is confirmed whole: not to
//! be recommended, but to measure how close the stock configuration is to the best of those that were tried.

use super::statistics::{confident, likely, means};
use super::{Bench, CONFIRM_SEEDS, Costs, Interval, Search, Stage, WORTH_IT};
use crate::TuneError;

/// Runs of each configuration: at least three, since an interval of two pairs is six times as wide as they scatter.
const RUNS_MIN: usize = 3;
/// At most as many: from here on the interval shrinks by less than a tenth for each further run.
const RUNS_MAX: usize = 8;
/// At most as many where a run repeated differs. On a virtual disk runs scatter by a tenth: with 8 of them no gain
/// below 17 % is certain, with so many one of 8 %.
const RUNS_MAX_NOISY: usize = 32;
/// The most that the upper end of an announced interval may be above the lower one. ×1.5 to ×3 can be planned with;
/// ×4.9 to ×153, which three runs on a busy disk once gave, cannot.
const USABLE: f64 = 2.0;
/// From this gain on its size makes no difference: the drive is no longer what a statement waits for. Of 5 ms, 5 µs are
/// left, about what SQLite itself takes for a point SELECT.
pub(crate) const HARDLY_ANY_LEFT: f64 = 1_000.0;
/// Configurations that are confirmed.
const ARMS: usize = 3;

/// The figures that are announced.
#[derive(Clone, Debug)]
pub(crate) struct Confirmation<C> {
    /// The recommended configuration; the stock one where no gain was seen.
    pub(crate) best: C,
    /// The objective in which it gains, the first of them if it gains in both; `None` where no gain was seen.
    pub(crate) gains_in: Option<usize>,
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

impl<C: PartialEq> Confirmation<C> {
    /// Whether the checklist is recommended, and not the candidate.
    pub(crate) fn is_of_checklist(&self) -> bool {
        self.gains_in.is_some() && self.best != self.candidate
    }
}

/// Whether a reader can plan with a gain of which the interval is known.
pub(crate) fn is_usable(low: f64, high: f64) -> bool {
    high <= USABLE * low || low >= HARDLY_ANY_LEFT
}

/// The first objective in which a gain over the stock configuration is certain and known well enough; `None` where a
/// loss in another one is likely. A loss that was not announced costs more than a gain that was missed, so that 90 %
/// suffice for it.
fn gains_in(over_stock: &[Interval; 2], likely: &[Interval; 2]) -> Option<usize> {
    let loses = likely.iter().any(|gain| gain.ratio < 1.0 / WORTH_IT && gain.high < 1.0);
    over_stock.iter().position(|gain| gain.low > WORTH_IT && is_usable(gain.low, gain.high)).filter(|_| !loses)
}

impl<B: Bench> Search<'_, B> {
    /// The share of the budget that the shortest confirmation takes.
    pub(super) fn confirmation_needs(&self) -> f64 {
        self.bench.share_of(Stage::Confirm, RUNS_MIN * ARMS)
    }

    /// How many runs the rest of the budget allows.
    fn confirmation_runs(&self) -> usize {
        let left = (1.0 - self.bench.spent()).max(0.0);
        let one = self.confirmation_needs() / RUNS_MIN as f64;
        let most = if self.bench.is_repeatable(Stage::Confirm) { RUNS_MAX } else { RUNS_MAX_NOISY };
        let runs = if one > 0.0 { (left / one).floor().min(most as f64) as usize } else { most };
        runs.clamp(RUNS_MIN, most)
    }

    /// Confirms the winner without the changes that were pruned.
    pub(super) fn confirm(
        &mut self,
        pruned: B::Configuration,
        winner: &B::Configuration,
    ) -> Result<Confirmation<B::Configuration>, TuneError> {
        let is_offered = pruned != self.start.stock;
        let candidate = if is_offered { pruned } else { winner.clone() };
        let arms = [candidate.clone(), self.start.checklist.clone()];
        let objectives = self.bench.objectives();
        let planned = self.confirmation_runs();
        let mut gains: [Vec<Costs>; 2] = [Vec::new(), Vec::new()];
        while self.goes_on(gains[0].len(), planned) || self.needs_more(&gains) {
            let seed = self.seed.wrapping_add(CONFIRM_SEEDS).wrapping_add(gains[0].len() as u64);
            self.bench.report(Stage::Confirm, None);
            let [a, b] = self.paired_once(&arms, seed)?;
            gains[0].push(a);
            gains[1].push(b);
        }
        let runs = gains[0].len();
        let column = |logs: &[Costs], n: usize| logs.iter().map(|log| log[n]).collect::<Vec<_>>();
        let of = |logs: &[Costs]| std::array::from_fn(|n| confident(&column(logs, n), objectives));
        let gains_in = |logs: &[Costs]| gains_in(&of(logs), &std::array::from_fn(|n| likely(&column(logs, n))));
        let [over_stock, checklist]: [[Interval; 2]; 2] = [of(&gains[0]), of(&gains[1])];
        let difference: Vec<Costs> =
            gains[0].iter().zip(&gains[1]).map(|(a, b)| std::array::from_fn(|n| a[n] - b[n])).collect();
        let over_checklist = of(&difference);
        let candidate_gains = gains_in(&gains[0]).filter(|_| is_offered);
        let takes_candidate = |own: usize, of_checklist: Option<usize>| match of_checklist {
            // A gain in the first objective comes before one in the second.
            Some(other) if other != own => own < other,
            Some(_) => means(&difference)[own] >= 0.0,
            None => true,
        };
        let (best, gains_in) = match (candidate_gains, gains_in(&gains[1])) {
            (Some(own), of_checklist) if takes_candidate(own, of_checklist) => (candidate.clone(), Some(own)),
            (_, Some(n)) => (self.start.checklist.clone(), Some(n)),
            (_, None) => (self.start.stock.clone(), None),
        };
        Ok(Confirmation { best, gains_in, candidate, over_stock, checklist, over_checklist, runs })
    }

    /// Whether another one of the planned runs is made: the first ones are, and later ones as long as time is left. A
    /// machine that gets busy takes longer for them than was expected.
    fn goes_on(&self, runs: usize, planned: usize) -> bool {
        runs < RUNS_MIN || (runs < planned && self.bench.spent() < 1.0)
    }

    /// Whether an interval is too wide to be used, and time is left for one more run. How wide it is says nothing of
    /// where it is (C. Stein, A Two-Sample Test for a Linear Hypothesis Whose Power Is Independent of the Variance,
    /// 1945), so that a gain becomes no more likely to be announced where there is none.
    fn needs_more(&self, gains: &[Vec<Costs>; 2]) -> bool {
        let objectives = self.bench.objectives();
        let is_wide = |logs: &Vec<Costs>| {
            let of = |n: usize| confident(&logs.iter().map(|log| log[n]).collect::<Vec<_>>(), objectives);
            (0..objectives).map(of).any(|gain| !is_usable(gain.low, gain.high))
        };
        let has_time = self.bench.spent() + self.bench.share_of(Stage::Confirm, ARMS) <= 1.0;
        has_time && gains[0].len() < RUNS_MAX_NOISY && gains.iter().any(is_wide)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_in_the_other_objective_that_is_likely_but_not_certain_vetoes_a_gain() {
        let logs = |other: [f64; 3]| [[0.70, 0.71, 0.72], other];
        let gains_in = |other| {
            let logs = logs(other);
            gains_in(&logs.each_ref().map(|logs| confident(logs, 2)), &logs.each_ref().map(|logs| likely(logs)))
        };
        let uncertain = [-0.5, -0.2, -0.35];
        assert!(confident(&uncertain, 2).high > 1.0);
        assert_eq!(gains_in(uncertain), None);
        assert_eq!(gains_in([-0.02, 0.03, -0.03]), Some(0), "noise is no loss");
        assert_eq!(gains_in([-0.001, -0.001, -0.001]), Some(0), "a loss below what is worth a change");
    }
}
