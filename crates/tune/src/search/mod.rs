//! Finds the best of many configurations whose costs are measured, within a budget.
//!
//! Settings interact: a larger cache can hide what a longer page gains. So no setting is fixed before the others are
//! tried, and no figure that helped to choose a configuration is announced.
//!
//! ```text
//!   screen    every combination of the settings that interact most, one short run each; then the neighbours of the
//!             best few, until none of them is better; where a run repeated differs, the better half of all that again
//!   race      the best of those, in full runs with fresh seeds: each round has more runs and drops the worse half
//!   prune     the winner without each of its changes: a change that does not bring its price is left out; changes that
//!             cost their user something once, whichever of them he makes, have to bring that together
//!   confirm   the winner, the checklist and the stock configuration, in fresh runs; where the checklist is better,
//!             what each of its changes brings, as far as time is left
//! ```
//!
//! *Screening* is a beam search that starts from a factorial design (R. A. Fisher, The Design of Experiments, 1935),
//! which sees interactions that a search along one setting at a time does not.
//!
//! The *race* is sequential halving: Z. Karnin, T. Koren, O. Somekh, Almost Optimal Exploration in Multi-Armed Bandits,
//! ICML 2013. Within a round the order is shuffled, so that a drift of the machine favours nobody, and configurations
//! are compared by their ratios to the stock configuration under the same seed.
//!
//! *Multiplicity*: the best of 40 equal configurations looks better than the stock one. Therefore data are split (D. R.
//! Cox, A note on data-splitting for the evaluation of significance levels, Biometrika 62, 1975): the confirmation uses
//! none of the runs that chose the winner, has its number of runs fixed before it starts, and compares two
//! configurations with the stock one (Student's t on the logarithms of paired ratios). An interval misses on the side
//! of a gain with half its error, so that 99 % with one objective (two tests of 0.5 %) and 99.5 % with two (four of
//! 0.25 %) keep the chance that a search among equal configurations announces a gain below 1 %.
//!
//! Two objectives are ranked by the number of configurations that are better in both (C. M. Fonseca, P. J. Fleming,
//! Genetic Algorithms for Multiobjective Optimization, ICGA 1993), then by the first. The winner is the best one that
//! loses in neither; the front shows what more could be had of one at the cost of the other.

mod confirm;
mod race;
mod screen;
mod statistics;
#[cfg(test)]
mod tests;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::TuneError;

pub(crate) use confirm::{Confirmation, HARDLY_ANY_LEFT, is_usable};
pub(crate) use race::Part;
use statistics::runs_for;
pub(crate) use statistics::{Interval, confidence, confident, likely, log_gain};

/// A difference below this is not worth a change, be it a gain or a loss: 1 %.
pub(crate) const WORTH_IT: f64 = 1.01;

/// Costs of one run by objective, lower is better. With a single objective both are the same.
pub(crate) type Costs = [f64; 2];

/// How far a configuration has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Short runs.
    Screen,
    Race,
    Prune,
    Confirm,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Job<C> {
    pub(crate) configuration: C,
    pub(crate) stage: Stage,
    pub(crate) seed: u64,
}

/// A configuration without one of its changes, or without several that share a price.
#[derive(Clone, Debug)]
pub(crate) struct Simpler<C> {
    /// The changes.
    pub(crate) names: Vec<String>,
    pub(crate) without: C,
    /// The least ratio that they have to bring together.
    pub(crate) price: f64,
}

/// What is measured.
pub(crate) trait Bench {
    type Configuration: Clone + PartialEq;

    /// Objectives: one, or two.
    fn objectives(&self) -> usize;

    /// The costs of runs, in the order of the jobs; as many at once as the target allows.
    fn measure(&mut self, jobs: &[Job<Self::Configuration>]) -> Result<Vec<Costs>, TuneError>;

    /// Configurations that differ in one setting and can differ in costs.
    fn neighbours(&self, of: &Self::Configuration) -> Vec<Self::Configuration>;

    /// Short runs rank the configurations of a class as full ones do; among classes they may not.
    fn class(&self, of: &Self::Configuration) -> u64;

    /// Configurations that run as this one does in a short run, but not in a full one.
    fn seen_in_full_runs(&self, of: &Self::Configuration) -> Vec<Self::Configuration>;

    /// The configuration without each of its changes, the costliest to its user first; those that share a price come
    /// together, too, before each of them.
    fn simpler(&self, than: &Self::Configuration) -> Vec<Simpler<Self::Configuration>>;

    /// Whether a run of a stage costs the same when it is repeated with its seed. Where it does not, what time is left
    /// is for more runs.
    fn is_repeatable(&self, stage: Stage) -> bool;

    /// The share of the budget that is used.
    fn spent(&self) -> f64;

    /// The share that so many runs of a stage take.
    fn share_of(&self, stage: Stage, runs: usize) -> f64;

    /// How many runs of a stage take at most a share.
    fn runs_within(&self, share: f64, stage: Stage) -> usize;

    /// How many runs of a stage are asked for at a time, where there are many.
    fn batch(&self, stage: Stage) -> usize;

    /// Reports the best configuration so far and its gain in the first objective.
    fn report(&mut self, stage: Stage, best: Option<(&Self::Configuration, f64)>);
}

/// Where a search starts.
pub(crate) struct Start<C> {
    /// What is compared with.
    pub(crate) stock: C,
    /// What everybody recommends.
    pub(crate) checklist: C,
    /// Combinations to start from, those with the fewest changes first.
    pub(crate) first: Vec<C>,
}

/// A configuration that was measured.
#[derive(Clone, Debug)]
pub(crate) struct Tried<C> {
    pub(crate) configuration: C,
    /// The logarithm of the ratio of the stock costs to its own in each run of screening; none if it only raced.
    pub(crate) screened: Vec<Costs>,
    /// The same of each full run of the race.
    pub(crate) raced: Vec<Costs>,
}

impl<C> Tried<C> {
    /// The best estimate of the logarithms of its gains.
    pub(crate) fn gain(&self) -> Costs {
        statistics::means(if self.raced.is_empty() { &self.screened } else { &self.raced })
    }
}

/// The result of a search.
pub(crate) struct Outcome<C> {
    pub(crate) tried: Vec<Tried<C>>,
    /// What the winner's changes bring, measured while it was pruned.
    pub(crate) parts: Vec<Part>,
    /// The winner of the race, before it was pruned; the stock configuration if no other one was tried.
    pub(crate) winner: C,
    /// Configurations of the race that none beats in both objectives, as far as it measured them.
    pub(crate) front: Vec<Tried<C>>,
    pub(crate) confirmation: Confirmation<C>,
    /// What the checklist's changes bring, where it is recommended in place of the winner.
    pub(crate) checklist_parts: Vec<Part>,
    /// Whether the budget ended screening or race early.
    pub(crate) is_cut_short: bool,
}

/// A search under way.
pub(crate) struct Search<'a, B: Bench> {
    bench: &'a mut B,
    start: Start<B::Configuration>,
    seed: u64,
    /// For the order of runs.
    random: Pcg64Mcg,
    tried: Vec<Tried<B::Configuration>>,
    is_cut_short: bool,
}

/// Seeds of the stages, apart from one another: no run of a stage is a run of another one.
const RACE_SEEDS: u64 = 1_000;
const PRUNE_SEEDS: u64 = 2_000;
const CONFIRM_SEEDS: u64 = 3_000;

/// Shares of the budget at which stages end at the latest. Each stage needs about as many runs as the next one,
/// and those of screening are short; the rest is for the confirmation, which is never cut. Where a full run takes a
/// fortieth of the budget and one is made at a time, there are eight runs of the race.
pub(crate) const SCREEN_UNTIL: f64 = 0.35;
const RACE_UNTIL: f64 = 0.55;
const PRUNE_UNTIL: f64 = 0.75;

/// Searches.
pub(crate) fn search<B: Bench>(
    bench: &mut B,
    start: Start<B::Configuration>,
    seed: u64,
) -> Result<Outcome<B::Configuration>, TuneError> {
    let random = Pcg64Mcg::seed_from_u64(seed);
    let mut search = Search { bench, start, seed, random, tried: Vec::new(), is_cut_short: false };
    let hopeful = search.screen()?;
    let (winner, front) = search.race(&hopeful)?;
    let seems_to_gain = search.position(&winner).is_some_and(|n| search.tried[n].gain().iter().any(|&log| log > 0.0));
    let (pruned, parts) = match seems_to_gain {
        true => search.prune(winner.clone())?,
        false => (search.start.stock.clone(), Vec::new()),
    };
    let confirmation = search.confirm(pruned, &winner)?;
    let checklist_parts = match confirmation.is_of_checklist() {
        true => search.parts_of(&confirmation.best)?,
        false => Vec::new(),
    };
    let Search { tried, is_cut_short, .. } = search;
    Ok(Outcome { tried, parts, winner, front, confirmation, checklist_parts, is_cut_short })
}

impl<B: Bench> Search<'_, B> {
    /// Whether some runs still end before a share of the budget is used, and leave enough for the confirmation.
    fn has_time(&mut self, until: f64, runs: usize, stage: Stage) -> bool {
        let has_time = runs <= self.runs_left(until, stage);
        self.is_cut_short |= !has_time;
        has_time
    }

    /// How many runs end before a share of the budget is used, and leave enough for the confirmation.
    fn runs_left(&self, until: f64, stage: Stage) -> usize {
        self.runs_before(until.min(1.0 - self.confirmation_needs()), stage)
    }

    /// How many runs end before a share of the budget is used.
    fn runs_before(&self, until: f64, stage: Stage) -> usize {
        let left = until - self.bench.spent();
        if left > 0.0 { self.bench.runs_within(left, stage) } else { 0 }
    }

    /// Places of tried configurations, the best first, so that the best of each class come before all others.
    fn spread(&self, ranking: Vec<usize>) -> Vec<usize> {
        let mut classes = Vec::new();
        let (mut first, others): (Vec<usize>, Vec<usize>) = ranking.into_iter().partition(|&n| {
            let class = self.bench.class(&self.tried[n].configuration);
            let is_new = !classes.contains(&class);
            if is_new {
                classes.push(class);
            }
            is_new
        });
        first.extend(others);
        first
    }

    /// Measures configurations beside the stock one under one seed, and returns the logarithms of their gains.
    fn paired(
        &mut self,
        configurations: &[B::Configuration],
        stage: Stage,
        seed: u64,
    ) -> Result<Vec<Costs>, TuneError> {
        let stock = self.start.stock.clone();
        let all = std::iter::once(&stock).chain(configurations);
        let costs = self.shuffled(&all.cloned().collect::<Vec<_>>(), stage, seed)?;
        Ok(costs[1..].iter().map(|own| statistics::log_gain(costs[0], *own)).collect())
    }

    /// Measures configurations in random order; the costs are in the order of the configurations.
    fn shuffled(
        &mut self,
        configurations: &[B::Configuration],
        stage: Stage,
        seed: u64,
    ) -> Result<Vec<Costs>, TuneError> {
        use rand::seq::SliceRandom;
        let mut order: Vec<usize> = (0..configurations.len()).collect();
        order.shuffle(&mut self.random);
        let job = |&n: &usize| Job { configuration: configurations[n].clone(), stage, seed };
        let measured = self.bench.measure(&order.iter().map(job).collect::<Vec<_>>())?;
        let mut costs = vec![[f64::NAN; 2]; configurations.len()];
        order.iter().zip(measured).for_each(|(&n, cost)| costs[n] = cost);
        Ok(costs)
    }

    /// The places of all that were tried.
    fn all(&self) -> Vec<usize> {
        (0..self.tried.len()).collect()
    }

    /// Reports the best of some in the first objective.
    fn report_best(&mut self, stage: Stage, of: &[usize]) {
        let best = of.iter().map(|&n| &self.tried[n]).max_by(|a, b| a.gain()[0].total_cmp(&b.gain()[0]));
        self.bench.report(stage, best.map(|best| (&best.configuration, best.gain()[0].exp())));
    }

    fn position(&self, of: &B::Configuration) -> Option<usize> {
        self.tried.iter().position(|tried| tried.configuration == *of)
    }
}

/// Whether a gain is a loss in none of the objectives, as far as it was measured.
fn loses_nowhere(gain: Costs) -> bool {
    gain.into_iter().all(|log| log >= -WORTH_IT.ln())
}

/// Places of gains, the best first: by how many others are better in both, then by the first.
fn ranked(gains: &[Costs]) -> Vec<usize> {
    let is_better = |a: Costs, b: Costs| a[0] >= b[0] && a[1] >= b[1] && (a[0] > b[0] || a[1] > b[1]);
    let beaten_by = |n: usize| gains.iter().filter(|other| is_better(**other, gains[n])).count();
    let mut order: Vec<usize> = (0..gains.len()).collect();
    order.sort_by(|&a, &b| beaten_by(a).cmp(&beaten_by(b)).then(gains[b][0].total_cmp(&gains[a][0])));
    order
}
