//! Many configurations in one short run each, and the better ones in more where runs differ by themselves.

use super::race::FINALISTS;
use super::statistics::log_gain;
use super::{Bench, Costs, SCREEN_UNTIL, Search, Stage, Tried, ranked};
use crate::TuneError;

/// Configurations whose neighbours are tried: the best with each of five page sizes, and one more.
const BEAM: usize = 6;
/// Steps from the start; each changes one setting.
const STEPS: usize = 4;
/// A step that improves the best by less than this, as a logarithm, is the last one: what short runs resolve.
const IMPROVEMENT: f64 = 0.005;

impl<B: Bench> Search<'_, B> {
    /// Tries combinations, then the neighbours of the best; gives the places of those that may race.
    pub(super) fn screen(&mut self) -> Result<Vec<usize>, TuneError> {
        let (stock, checklist) = (self.start.stock.clone(), self.start.checklist.clone());
        self.bench.report(Stage::Screen, None);
        let stock_costs = self.shuffled(std::slice::from_ref(&stock), Stage::Screen, self.seed)?[0];
        let mut wanted = vec![checklist];
        wanted.extend(std::mem::take(&mut self.start.first));
        self.try_all(wanted, stock_costs)?;
        for _ in 0..STEPS {
            let gains: Vec<Costs> = self.tried.iter().map(Tried::gain).collect();
            let order = ranked(&gains);
            let best = order.first().map_or(0.0, |&n| gains[n][0]);
            // The stock configuration, too, may have the best neighbour.
            let mut beam: Vec<B::Configuration> =
                self.spread(order).into_iter().take(BEAM).map(|n| self.tried[n].configuration.clone()).collect();
            beam.push(stock.clone());
            let near = beam.iter().flat_map(|configuration| self.bench.neighbours(configuration)).collect();
            let is_complete = self.try_all(near, stock_costs)?;
            let now = self.tried.iter().map(|tried| tried.gain()[0]).fold(0.0, f64::max);
            // With two objectives the front may have grown though its first end has not.
            if !is_complete || (self.bench.objectives() == 1 && now < best + IMPROVEMENT) {
                break;
            }
        }
        let all = (0..self.tried.len()).collect();
        if self.bench.is_repeatable(Stage::Screen) { Ok(all) } else { self.screen_again(all) }
    }

    /// Halves those that were tried by another run of the better half, until as many are left as can race. The first
    /// run of the best is one of its lucky ones.
    fn screen_again(&mut self, mut hopeful: Vec<usize>) -> Result<Vec<usize>, TuneError> {
        let mut seed = self.seed;
        while hopeful.len() > FINALISTS {
            let half = hopeful.len().div_ceil(2).max(FINALISTS);
            let order = self.ranking(&hopeful);
            hopeful = self.spread(order);
            hopeful.truncate(half);
            // Without these runs a search is as complete as it needs to be.
            if 1 + half > self.runs_left(SCREEN_UNTIL, Stage::Screen) {
                break;
            }
            seed = seed.wrapping_add(1);
            let configurations: Vec<_> = hopeful.iter().map(|&n| self.tried[n].configuration.clone()).collect();
            let gains = self.paired(&configurations, Stage::Screen, seed)?;
            hopeful.iter().zip(gains).for_each(|(&n, gain)| self.tried[n].screened.push(gain));
            let best = hopeful.iter().map(|&n| &self.tried[n]).max_by(|a, b| a.gain()[0].total_cmp(&b.gain()[0]));
            self.bench.report(Stage::Screen, best.map(|best| (&best.configuration, best.gain()[0].exp())));
        }
        Ok(hopeful)
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
            let best = self.tried.iter().max_by(|a, b| a.gain()[0].total_cmp(&b.gain()[0]));
            self.bench.report(Stage::Screen, best.map(|best| (&best.configuration, best.gain()[0].exp())));
        }
        Ok(true)
    }
}
