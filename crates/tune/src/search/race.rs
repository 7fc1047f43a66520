//! The best configurations in full runs, and the winner without its changes.

use super::{
    Bench, Costs, Interval, PRUNE_SEEDS, PRUNE_UNTIL, RACE_SEEDS, RACE_UNTIL, Search, Simpler, Stage, Tried, WORTH_IT,
    likely, log_gain, loses_nowhere, ranked, runs_for,
};
use crate::TuneError;

/// Configurations that start in the race, without the checklist: three rounds of halving. The best in full runs of the
/// default workload has the tenth place of 24 in short ones, but is the best of its class there
/// (`cargo test -p flashwise-tune --lib short_runs -- --include-ignored --nocapture`).
pub(super) const FINALISTS: usize = 8;
/// Of these, the variants that differ only in full runs join at once; those of the best one after each round.
const FINALISTS_VARIED: usize = 2;
/// The most runs of a round: where one differs from the next by a tenth, the mean of so many is known to 2.5 %, about
/// half of what a technique has to bring.
const RACE_RUNS_MAX: usize = 16;
/// The fewest runs that show how far runs differ by themselves.
const RUNS_THAT_DECIDE: usize = 3;
/// Runs of the winner with and without each change.
const PRUNE_RUNS: usize = 3;
/// As many where those leave open whether a change brings its price, and time is left. On a virtual disk three pairs
/// gave a technique that gained 12 % in the end an interval of 0.95 to 1.30, so that it was left out; with twelve an
/// interval is a third as wide.
const PRUNE_RUNS_MAX: usize = 12;
/// At most as many where a run repeated differs, and twelve leave it open, too. Where runs differ by a tenth, what a
/// change brings is known to 2.4 % with so many, about half of what a technique has to bring.
const PRUNE_RUNS_MAX_NOISY: usize = 60;
/// How well it has to be known then what a change brings, as a logarithm.
const RESOLUTION: f64 = 0.024;

/// The winner of a race, and the configurations that none beats.
type Raced<C> = (C, Vec<Tried<C>>);

/// What one change of the winner brings, or several that share a price.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) names: Vec<String>,
    /// How many times the costs are without it, by objective; not a number where it was not measured.
    pub(crate) gains: [Interval; 2],
    /// Whether it stays.
    pub(crate) is_kept: bool,
    /// The least ratio it had to bring, in one objective.
    pub(crate) price: f64,
}

impl Part {
    /// Whether it is this change alone.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        self.names.len() == 1 && self.names[0] == name
    }

    /// Whether time sufficed to measure it.
    pub(crate) fn is_measured(&self) -> bool {
        self.gains[0].ratio.is_finite()
    }

    /// Whether it may bring its price all the same: more runs would show.
    fn is_open(&self) -> bool {
        let price = self.price.max(WORTH_IT);
        self.is_measured() && !self.is_kept && self.gains.iter().any(|gain| gain.high >= price)
    }

    /// Whether its interval leaves open whether it brings its price.
    fn is_around_its_price(&self) -> bool {
        let price = self.price.max(WORTH_IT);
        self.is_measured() && self.gains.iter().any(|gain| gain.low < price && gain.high >= price)
    }

    /// Whether it makes one objective worse and none better.
    fn costs(&self) -> bool {
        let is_worse = self.gains.iter().any(|gain| gain.ratio < 1.0 / WORTH_IT);
        is_worse && self.gains.iter().all(|gain| gain.ratio < 1.0)
    }
}

impl<B: Bench> Search<'_, B> {
    /// Races the best of some by sequential halving, and returns the winner and the front.
    pub(super) fn race(&mut self, among: &[usize]) -> Result<Raced<B::Configuration>, TuneError> {
        let (mut alive, mut varied) = self.finalists(among);
        let (mut runs, mut seed) = (1, self.seed.wrapping_add(RACE_SEEDS));
        while alive.len() + varied.len() > 1 {
            for n in 0..self.runs_of_round(runs, alive.len() + varied.len()) {
                if n >= runs && self.is_decided(&alive) {
                    break;
                }
                if !self.has_time(RACE_UNTIL, 1 + alive.len() + varied.len(), Stage::Race) {
                    return Ok(self.result_of_race(&alive));
                }
                let mut configurations: Vec<_> = alive.iter().map(|&n| self.tried[n].configuration.clone()).collect();
                configurations.extend(varied.iter().cloned());
                let gains = self.paired(&configurations, Stage::Race, seed)?;
                seed = seed.wrapping_add(1);
                for configuration in varied.drain(..) {
                    alive.push(self.tried.len());
                    self.tried.push(Tried { configuration, screened: Vec::new(), raced: Vec::new() });
                }
                alive.iter().zip(gains).for_each(|(&n, gain)| self.tried[n].raced.push(gain));
                self.report_best(Stage::Race, &alive);
            }
            let half = self.best_of(&alive, alive.len().div_ceil(2));
            let best: Vec<usize> = half.first().copied().into_iter().collect();
            varied = self.varied(&best);
            if half.len() == alive.len() && varied.is_empty() {
                break;
            }
            alive = half;
            runs *= 2;
        }
        Ok(self.result_of_race(&alive))
    }

    /// How many runs a round has: at least as many as planned. Where runs differ by themselves, the rounds that are
    /// left share the time that is left, as sequential halving has it.
    fn runs_of_round(&self, planned: usize, alive: usize) -> usize {
        if self.bench.is_repeatable(Stage::Race) {
            return planned;
        }
        let rounds_left = alive.next_power_of_two().ilog2().max(1) as usize;
        let share = self.runs_left(RACE_UNTIL, Stage::Race) / (rounds_left * (1 + alive));
        share.min(RACE_RUNS_MAX).max(planned)
    }

    /// Whether the best of a round is likely to be better than each of those that would be dropped now.
    fn is_decided(&self, alive: &[usize]) -> bool {
        let order = self.ranking(alive);
        let dropped = order.iter().skip(order.len().div_ceil(2));
        let gains = |n: usize| self.tried[n].raced.iter().rev().map(|gain| gain[0]);
        let is_worse = |n: &usize| {
            let differences: Vec<f64> = gains(order[0]).zip(gains(*n)).map(|(best, own)| best - own).collect();
            differences.len() >= RUNS_THAT_DECIDE && likely(&differences).low > 1.0
        };
        self.bench.objectives() == 1 && dropped.into_iter().all(is_worse)
    }

    /// The best of those that were screened, those of each class before others, as many as can run once in the time of
    /// the race; and the variants of the first few.
    fn finalists(&mut self, among: &[usize]) -> (Vec<usize>, Vec<B::Configuration>) {
        let mut best = self.spread(self.ranking(among));
        let mut varied = self.varied(&best[..FINALISTS_VARIED.min(best.len())]);
        best.truncate(FINALISTS);
        let keeper = self.keeper(among);
        let mut alive: Vec<usize> = [keeper, self.position(&self.start.checklist)].into_iter().flatten().collect();
        alive.dedup();
        best.retain(|n| !alive.contains(n));
        // Those two, and the stock configuration, run in any case.
        let others = self.runs_left(RACE_UNTIL, Stage::Race).saturating_sub(1 + alive.len());
        self.is_cut_short |= best.len() + varied.len() > others;
        varied.truncate(others / 2);
        best.truncate((others - varied.len()).max(usize::from(keeper.is_none())));
        alive.extend(best);
        (alive, varied)
    }

    /// Variants that differ in full runs only, and were not tried yet. They have no short run: they are among the tried
    /// once they have run beside the others.
    fn varied(&self, of: &[usize]) -> Vec<B::Configuration> {
        let mut varied: Vec<B::Configuration> = Vec::new();
        for configuration in of.iter().flat_map(|&n| self.bench.seen_in_full_runs(&self.tried[n].configuration)) {
            if self.position(&configuration).is_none() && !varied.contains(&configuration) {
                varied.push(configuration);
            }
        }
        varied
    }

    /// The places of some of the tried configurations, the best first.
    pub(super) fn ranking(&self, of: &[usize]) -> Vec<usize> {
        let gains: Vec<Costs> = of.iter().map(|&n| self.tried[n].gain()).collect();
        ranked(&gains).into_iter().map(|n| of[n]).collect()
    }

    /// The best `count`; with them the best one that loses in no objective, which may gain less in the first.
    fn best_of(&self, of: &[usize], count: usize) -> Vec<usize> {
        let mut best: Vec<usize> = self.ranking(of).into_iter().take(count).collect();
        best.extend(self.keeper(of).filter(|n| !best.contains(n)));
        best
    }

    /// The best one that loses in no objective.
    fn keeper(&self, of: &[usize]) -> Option<usize> {
        self.ranking(of).into_iter().find(|&n| loses_nowhere(self.tried[n].gain()))
    }

    /// The winner: the best one that loses in no objective, or else the best.
    fn result_of_race(&self, alive: &[usize]) -> Raced<B::Configuration> {
        let has_raced: Vec<usize> = (0..self.tried.len()).filter(|&n| !self.tried[n].raced.is_empty()).collect();
        let among = if has_raced.is_empty() { alive.to_vec() } else { has_raced };
        let gains: Vec<Costs> = among.iter().map(|&n| self.tried[n].gain()).collect();
        let is_beaten = |own: Costs| gains.iter().any(|other| other[0] > own[0] && other[1] > own[1]);
        let front = among.iter().filter(|&&n| !is_beaten(self.tried[n].gain()));
        let winner = self.keeper(alive).or(self.ranking(alive).first().copied());
        let winner = winner.map_or(&self.start.stock, |n| &self.tried[n].configuration);
        (winner.clone(), front.map(|&n| self.tried[n].clone()).collect())
    }

    /// Leaves out the changes of the winner that do not bring their price, one after the other: those that cost first,
    /// then the costliest to their user.
    pub(super) fn prune(&mut self, winner: B::Configuration) -> Result<(B::Configuration, Vec<Part>), TuneError> {
        let (mut best, mut dropped) = (winner, Vec::<Part>::new());
        let mut earlier = Vec::<Part>::new();
        let mut measured = Measured { of: Vec::new() };
        let is_noisy = !self.bench.is_repeatable(Stage::Prune);
        loop {
            if is_noisy {
                // Runs of minutes ago are of another machine: by the time that a busy disk had become faster, a
                // technique that gained 15 % beside runs of its own time seemed to lose 3 %.
                measured = Measured { of: Vec::new() };
            }
            let changes = self.bench.simpler(&best);
            if changes.is_empty() {
                return Ok((best, dropped));
            }
            let all: Vec<_> =
                std::iter::once(best.clone()).chain(changes.iter().map(|change| change.without.clone())).collect();
            self.bench.report(Stage::Prune, None);
            let all_of_it = (PRUNE_RUNS, PRUNE_UNTIL);
            self.is_cut_short |= !self.measure_for_pruning(&all, all_of_it, &mut measured)?;
            self.measure_what_is_open(&best, &changes, &mut measured)?;
            // Where time ended, what a change brought beside one that was left out since is the best that is known.
            let of = |change: &Simpler<B::Configuration>| {
                let pairs = measured.logs(change, &best).len();
                let is_known_better = pairs == 0 || (is_noisy && pairs < PRUNE_RUNS);
                let known = earlier.iter().find(|known| is_known_better && known.names == change.names);
                known.cloned().unwrap_or_else(|| measured.part(change, &best))
            };
            let parts: Vec<Part> = changes.iter().map(of).collect();
            // A change that costs hides what the others bring.
            let costs = parts.iter().position(|part| part.names.len() == 1 && !part.is_kept && part.costs());
            match costs.or_else(|| parts.iter().position(|part| !part.is_kept)) {
                Some(n) => {
                    best = changes[n].without.clone();
                    dropped.extend(left_out(&parts, n));
                    earlier = parts;
                }
                None => {
                    let kept = parts.into_iter().filter(|part| part.names.len() == 1);
                    return Ok((best, kept.chain(dropped).collect()));
                }
            }
        }
    }

    /// What each change of a configuration brings that is recommended as it is, as far as time is left.
    pub(super) fn parts_of(&mut self, best: &B::Configuration) -> Result<Vec<Part>, TuneError> {
        let changes: Vec<_> = self.bench.simpler(best).into_iter().filter(|change| change.names.len() == 1).collect();
        let mut all: Vec<_> = changes.iter().map(|change| change.without.clone()).collect();
        all.push(best.clone());
        let mut measured = Measured { of: Vec::new() };
        for n in 0..PRUNE_RUNS as u64 {
            if all.len() > self.runs_before(1.0, Stage::Prune) {
                break;
            }
            let costs = self.shuffled(&all, Stage::Prune, self.seed.wrapping_add(PRUNE_SEEDS).wrapping_add(n))?;
            all.iter().zip(costs).for_each(|(own, cost)| measured.add(own.clone(), cost));
        }
        Ok(changes.iter().map(|change| Part { is_kept: true, ..measured.part(change, best) }).collect())
    }

    /// Runs the best again beside itself without each change of which it is open whether it brings its price; where
    /// runs differ by themselves, three pairs decide nothing. All of these runs are made before they are looked at, so
    /// that no lucky one of them ends them.
    fn measure_what_is_open(
        &mut self,
        best: &B::Configuration,
        changes: &[Simpler<B::Configuration>],
        measured: &mut Measured<B::Configuration>,
    ) -> Result<(), TuneError> {
        let is_noisy = !self.bench.is_repeatable(Stage::Prune);
        let open = changes.iter().filter(|change| is_noisy || measured.part(change, best).is_open());
        let without: Vec<_> = open.map(|change| change.without.clone()).collect();
        if without.is_empty() {
            return Ok(());
        }
        let all: Vec<_> = std::iter::once(best.clone()).chain(without).collect();
        // Without all of these runs a search is as complete as it needs to be.
        if self.measure_for_pruning(&all, (PRUNE_RUNS_MAX, PRUNE_UNTIL), measured)? && is_noisy {
            self.measure_what_stays_open(best, changes, measured)?;
        }
        Ok(())
    }

    /// The same once more where runs differ by themselves, for each change whose price lies within its interval, be it
    /// that its pairs so far bring the price or not. Their scatter alone sets how many there have to be, and not their
    /// mean, so that none is favoured (Stein, as in the confirmation). They take their share of the time alone: each
    /// change may be left out, and the others are then measured anew.
    fn measure_what_stays_open(
        &mut self,
        best: &B::Configuration,
        changes: &[Simpler<B::Configuration>],
        measured: &mut Measured<B::Configuration>,
    ) -> Result<(), TuneError> {
        let open = changes.iter().filter(|change| measured.part(change, best).is_around_its_price());
        let (without, pairs): (Vec<_>, Vec<_>) =
            open.map(|change| (change.without.clone(), measured.pairs_that_decide(change, best))).unzip();
        let Some(pairs) = pairs.into_iter().max() else { return Ok(()) };
        let all: Vec<_> = std::iter::once(best.clone()).chain(without).collect();
        let spent = self.bench.spent();
        let share = (PRUNE_UNTIL - spent).max(0.0) / changes.len() as f64;
        self.measure_for_pruning(&all, (pairs, spent + share), measured).map(drop)
    }

    /// Runs configurations under the same seeds, as many as there have to be and time allows until a share of the
    /// budget is used; gives whether that was all of them.
    fn measure_for_pruning(
        &mut self,
        all: &[B::Configuration],
        (runs, until): (usize, f64),
        measured: &mut Measured<B::Configuration>,
    ) -> Result<bool, TuneError> {
        for n in 0..runs {
            let new: Vec<_> = all.iter().filter(|own| measured.costs(own).len() <= n).cloned().collect();
            if new.is_empty() {
                continue;
            }
            if new.len() > self.runs_left(until, Stage::Prune) {
                return Ok(false);
            }
            let seed = self.seed.wrapping_add(PRUNE_SEEDS).wrapping_add(n as u64);
            let costs = self.shuffled(&new, Stage::Prune, seed)?;
            new.into_iter().zip(costs).for_each(|(own, cost)| measured.add(own, cost));
        }
        Ok(true)
    }
}

/// The changes that go with a part, each by itself, with the price that they would have had to bring together.
fn left_out(parts: &[Part], n: usize) -> impl Iterator<Item = Part> {
    let Part { names, price, .. } = &parts[n];
    let singles = names.iter().filter_map(|name| parts.iter().find(|part| part.is_of(name)));
    singles.map(|part| Part { is_kept: false, price: part.price.max(*price), ..part.clone() })
}

/// Costs under the seeds of pruning, in their order.
struct Measured<C> {
    of: Vec<(C, Vec<Costs>)>,
}

impl<C: PartialEq> Measured<C> {
    fn costs(&self, of: &C) -> &[Costs] {
        self.of.iter().find(|(known, _)| known == of).map_or(&[], |(_, costs)| costs)
    }

    fn add(&mut self, of: C, cost: Costs) {
        match self.of.iter_mut().find(|(known, _)| *known == of) {
            Some((_, costs)) => costs.push(cost),
            None => self.of.push((of, vec![cost])),
        }
    }

    /// What a change of the best configuration brought under each seed, as logarithms.
    fn logs(&self, change: &Simpler<C>, best: &C) -> Vec<Costs> {
        let pairs = self.costs(&change.without).iter().zip(self.costs(best));
        pairs.map(|(without, with)| log_gain(*without, *with)).collect()
    }

    /// How many pairs of runs show what a change brings, by how far those that were made scatter.
    fn pairs_that_decide(&self, change: &Simpler<C>, best: &C) -> usize {
        let logs = self.logs(change, best);
        let needed = |n: usize| runs_for(&logs.iter().map(|log| log[n]).collect::<Vec<_>>(), RESOLUTION);
        needed(0).max(needed(1)).min(PRUNE_RUNS_MAX_NOISY)
    }

    /// What a change of the best configuration brings.
    fn part(&self, change: &Simpler<C>, best: &C) -> Part {
        let logs = self.logs(change, best);
        let (names, price) = (change.names.clone(), change.price);
        if logs.is_empty() {
            // What costs its user little stays with the winner of the race; what costs more has to be seen to gain.
            let unknown = Interval { ratio: f64::NAN, low: 0.0, high: f64::INFINITY };
            return Part { names, gains: [unknown; 2], is_kept: price <= WORTH_IT, price };
        }
        let gains: [Interval; 2] = std::array::from_fn(|n| likely(&logs.iter().map(|log| log[n]).collect::<Vec<_>>()));
        let pays = |gain: Interval| gain.ratio >= price.max(WORTH_IT) && (gain.low > 1.0 || logs.len() < 2);
        Part { names, gains, is_kept: gains.into_iter().any(pays), price }
    }
}
