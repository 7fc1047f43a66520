//! Many configurations in one short run each, and the better ones in more where runs differ by themselves.

use super::race::FINALISTS;
use super::statistics::log_gain;
use super::{Bench, Costs, SCREEN_UNTIL, Search, Stage, Tried, ranked};
use crate::TuneError;

/// Configurations whose neighbours are tried: the best with each of five page sizes, and one more.
const BEAM: usize = 6;
/// Where a run repeated differs, so many run once more before the beam is chosen among them.
const BEAM_REPEATED: usize = 2 * BEAM;
/// Runs of the stock configuration there: one is in every comparison of screening.
const STOCK_RUNS: usize = 3;
/// Steps from the start; each changes one setting.
const STEPS: usize = 4;
/// A step that improves the best by less than this, as a logarithm, is the last one: what short runs resolve.
const IMPROVEMENT: f64 = 0.005;

impl<B: Bench> Search<'_, B> {
    /// Tries combinations, then the neighbours of the best; gives the places of those that may race.
    pub(super) fn screen(&mut self) -> Result<Vec<usize>, TuneError> {
        let (stock, checklist) = (self.start.stock.clone(), self.start.checklist.clone());
        self.bench.report(Stage::Screen, None);
        let stock_costs = self.stock_costs()?;
        let is_repeatable = self.bench.is_repeatable(Stage::Screen);
        let mut wanted = vec![checklist];
        wanted.extend(std::mem::take(&mut self.start.first));
        self.try_all(wanted, stock_costs)?;
        for _ in 0..STEPS {
            if !is_repeatable {
                let likely_beam = self.best_of_classes(self.all(), BEAM_REPEATED);
                self.repeat(&likely_beam, stock_costs)?;
            }
            let gains: Vec<Costs> = self.tried.iter().map(Tried::gain).collect();
            let best = ranked(&gains).first().map_or(0.0, |&n| gains[n][0]);
            // The stock configuration, too, may have the best neighbour.
            let beam = self.best_of_classes(self.all(), BEAM);
            let mut beam: Vec<B::Configuration> = beam.iter().map(|&n| self.tried[n].configuration.clone()).collect();
            beam.push(stock.clone());
            let near = beam.iter().flat_map(|configuration| self.bench.neighbours(configuration)).collect();
            let is_complete = self.try_all(near, stock_costs)?;
            let now = self.tried.iter().map(|tried| tried.gain()[0]).fold(0.0, f64::max);
            // With two objectives the front may have grown though its first end has not; noise hides whether it has.
            let is_last = is_repeatable && self.bench.objectives() == 1 && now < best + IMPROVEMENT;
            if !is_complete || is_last {
                break;
            }
        }
        if is_repeatable { Ok(self.all()) } else { self.screen_again(stock_costs) }
    }

    /// The costs of the stock configuration, which all of screening is compared with.
    fn stock_costs(&mut self) -> Result<Costs, TuneError> {
        let runs = if self.bench.is_repeatable(Stage::Screen) { 1 } else { STOCK_RUNS };
        let all = self.shuffled(&vec![self.start.stock.clone(); runs], Stage::Screen, self.seed)?;
        let mean = |n: usize| all.iter().map(|costs| costs[n].max(1.0).ln()).sum::<f64>() / runs as f64;
        Ok(if runs == 1 { all[0] } else { [mean(0).exp(), mean(1).exp()] })
    }

    /// Halves those that were tried by another run of the better half, until as many are left as can race. The first
    /// run of the best is one of its lucky ones.
    fn screen_again(&mut self, stock: Costs) -> Result<Vec<usize>, TuneError> {
        let mut hopeful = self.all();
        while hopeful.len() > FINALISTS {
            let half = hopeful.len().div_ceil(2).max(FINALISTS);
            hopeful = self.best_of_classes(hopeful, half);
            if !self.repeat(&hopeful, stock)? {
                break;
            }
        }
        Ok(hopeful)
    }

    /// The places of the best `count` of some, the best of each class before others.
    fn best_of_classes(&self, of: Vec<usize>, count: usize) -> Vec<usize> {
        let mut best = self.spread(self.ranking(&of));
        best.truncate(count);
        best
    }

    /// Runs some again; `false` if time ran out. Without these runs a search is as complete as it needs to be.
    fn repeat(&mut self, places: &[usize], stock: Costs) -> Result<bool, TuneError> {
        if places.len() > self.runs_left(SCREEN_UNTIL, Stage::Screen) {
            return Ok(false);
        }
        let configurations: Vec<_> = places.iter().map(|&n| self.tried[n].configuration.clone()).collect();
        let costs = self.shuffled(&configurations, Stage::Screen, self.seed)?;
        places.iter().zip(costs).for_each(|(&n, own)| self.tried[n].screened.push(log_gain(stock, own)));
        self.report_best(Stage::Screen, &self.all());
        Ok(true)
    }

    /// Tries configurations that were not tried before; `false` if time ran out.
    fn try_all(&mut self, wanted: Vec<B::Configuration>, stock: Costs) -> Result<bool, TuneError> {
        let mut new: Vec<B::Configuration> = Vec::new();
        for configuration in wanted {
            let is_known = configuration == self.start.stock || self.position(&configuration).is_some();
            if !is_known && !new.contains(&configuration) {
                new.push(configuration);
            }
        }
        for some in new.chunks(self.bench.batch(Stage::Screen).max(1)) {
            // The checklist is in the table of every report.
            if !self.tried.is_empty() && !self.has_time(SCREEN_UNTIL, some.len(), Stage::Screen) {
                return Ok(false);
            }
            let costs = self.shuffled(some, Stage::Screen, self.seed)?;
            let tried = some.iter().zip(costs).map(|(configuration, own)| Tried {
                configuration: configuration.clone(),
                screened: vec![log_gain(stock, own)],
                raced: Vec::new(),
            });
            self.tried.extend(tried);
            self.report_best(Stage::Screen, &self.all());
        }
        Ok(true)
    }
}
