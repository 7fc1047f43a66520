//! The mean field of garbage collection when the host's traffic is spread unevenly and blocks mix zones.
//!
//! The pages of a block at its sealing are taken as drawn independently from what its frontier receives: zone `k` with
//! probability `pi(k)`. Then a page is still valid at the block's age `t` with probability
//!
//! ```text
//!   S(t) = sum over k of  pi(k) · e^(-rate(k) · t)        rate(k) = traffic(k) / size(k)
//! ```
//!
//! independently of the others, and as long as a policy looks at valid counts and ages only, age and valid count tell
//! all about a block: its survivors are of zone `k` with probability `pi(k) · e^(-rate(k)·t) / S(t)`, whatever the
//! number of zones. So the state is (count, age) for each frontier. Unknown is the rate at which pages of each zone are
//! moved; it feeds a frontier and comes out of the victims. [`numeric::fixed_point`] finds the rates that agree.
//!
//! Frontiers as in Van Houdt 2014. With [`Frontier::Double`], one block gets the host's pages and another the moved
//! ones, which separates hot from cold a little and so lowers write amplification. With [`Frontier::Single`], they
//! share a block, as in SSD-iq's simulator; a real block there begins with the survivors of one victim and goes on with
//! the host's pages, in numbers that vary less than if drawn, which the model neglects: it is exact for FIFO, random
//! and large blocks, and a little high for greedy with small ones.
//!
//! Ties among the emptiest blocks go by chance here; it does not matter much.

use super::closed_form::fifo_age_zones;
use super::numeric::{self, Binomial};
use super::{Frontier, Policy, SteadyState, TheoryError, Zone, check, check_zones};

/// The long run of a policy under uneven traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonedSteadyState {
    /// All zones together.
    pub all: SteadyState,
    /// Pages of the zone that are programmed ÷ pages of the zone that the host wrote, for each zone.
    pub write_amplification: Vec<f64>,
}

/// The steady state of a policy when each zone is written uniformly, with its share of the traffic.
///
/// # Errors
/// When the fill is not between 0 and 1, the block or the policy is degenerate, or the zones are not shares; also when
/// the iteration does not settle, as it may with zones that are hardly ever written.
pub fn mean_field_zones(
    rho: f64,
    b: u32,
    policy: Policy,
    zones: &[Zone],
    frontier: Frontier,
) -> Result<ZonedSteadyState, TheoryError> {
    check(rho, b, policy)?;
    check_zones(zones)?;
    let model = Model { rho, b, policy, zones, frontier };
    let moved = numeric::fixed_point(model.moved_by_fifo(), 1e-11, |moved| model.collect(moved).moved)
        .ok_or(TheoryError::NotConverged)?;
    let Collected { valid, victims, .. } = model.collect(&moved);
    let (host, turnover) = (rho * f64::from(b), rho + moved.iter().sum::<f64>() / f64::from(b));
    let victim_counts = victims.iter().map(|rate| rate / turnover).collect();
    let all = SteadyState { write_amplification: turnover / rho, valid_counts: valid, victim_counts };
    let by_zone = zones.iter().zip(&moved).map(|(zone, moved)| 1.0 + moved / (host * zone.traffic)).collect();
    Ok(ZonedSteadyState { all, write_amplification: by_zone })
}

struct Model<'a> {
    rho: f64,
    b: u32,
    policy: Policy,
    zones: &'a [Zone],
    frontier: Frontier,
}

/// What garbage collection makes of what it is fed. Rates are for each sealed block.
struct Collected {
    /// Pages of each zone that are moved, a rate.
    moved: Vec<f64>,
    /// Share of sealed blocks by valid count.
    valid: Vec<f64>,
    /// Victims by valid count, a rate.
    victims: Vec<f64>,
}

impl Collected {
    fn new(zones: usize, b: u32) -> Self {
        let levels = b as usize + 1;
        Self { moved: vec![0.0; zones], valid: vec![0.0; levels], victims: vec![0.0; levels] }
    }

    fn take(&mut self, rate: f64, count: usize, mix: &[f64]) {
        self.victims[count] += rate;
        let pages = rate * count as f64;
        self.moved.iter_mut().zip(mix).for_each(|(moved, mix)| *moved += pages * mix);
    }

    /// Whatever share of the blocks is not accounted for has no valid page.
    fn with_empty_blocks(mut self) -> Self {
        self.valid[0] = (1.0 - self.valid[1..].iter().sum::<f64>()).max(0.0);
        self
    }
}

/// Blocks that a frontier seals.
struct Stream {
    /// Blocks sealed in a time unit, for each sealed block.
    rate: f64,
    /// Share of each zone in the pages of a new block.
    mix: Vec<f64>,
}

/// A block's pages at an age.
struct Moment {
    age: f64,
    /// Weight of the moment in an integral over age.
    weight: f64,
    /// Probability that a page is still valid.
    survival: f64,
    /// Rate at which a valid page is overwritten.
    hazard: f64,
    /// Share of each zone in the valid pages.
    mix: Vec<f64>,
    /// Valid pages of the block.
    counts: Binomial,
}

impl Moment {
    /// Rate at which the logarithm of the share of invalid pages grows.
    fn arriving(&self) -> f64 {
        self.hazard * self.survival / (1.0 - self.survival)
    }
}

impl Model<'_> {
    fn rates(&self) -> impl Iterator<Item = f64> + '_ {
        self.zones.iter().map(|zone| zone.traffic / zone.size)
    }

    /// Where the search begins: what FIFO moves.
    fn moved_by_fifo(&self) -> Vec<f64> {
        let age = fifo_age_zones(self.rho, self.zones);
        let moved = |(zone, rate): (&Zone, f64)| self.rho * f64::from(self.b) * zone.traffic / (rate * age).exp_m1();
        self.zones.iter().zip(self.rates()).map(moved).map(|moved| moved.max(1e-9)).collect()
    }

    fn streams(&self, moved: &[f64]) -> Vec<Stream> {
        let host: Vec<f64> = self.zones.iter().map(|zone| zone.traffic * self.rho * f64::from(self.b)).collect();
        match self.frontier {
            Frontier::Single => vec![self.stream(host.iter().zip(moved).map(|(host, moved)| host + moved).collect())],
            Frontier::Double => vec![self.stream(host), self.stream(moved.to_vec())],
        }
    }

    fn stream(&self, pages: Vec<f64>) -> Stream {
        let sum: f64 = pages.iter().sum();
        Stream { rate: sum / f64::from(self.b), mix: pages.iter().map(|pages| pages / sum).collect() }
    }

    fn collect(&self, moved: &[f64]) -> Collected {
        let streams = self.streams(moved);
        match self.policy {
            Policy::Greedy => self.windowed(&streams, 1.0),
            Policy::WindowedGreedy { share } => self.windowed(&streams, share),
            Policy::Fifo => self.windowed(&streams, 0.0),
            Policy::Random => self.random_greedy(&streams, 1.0),
            Policy::RandomGreedy { d } => self.random_greedy(&streams, f64::from(d)),
        }
    }

    /// A block of a stream at an age.
    fn moment(&self, stream: &Stream, age: f64, weight: f64) -> Moment {
        let mut mix: Vec<f64> =
            stream.mix.iter().zip(self.rates()).map(|(mix, rate)| mix * (-rate * age).exp()).collect();
        let survival: f64 = mix.iter().sum();
        mix.iter_mut().for_each(|mix| *mix /= survival);
        let hazard = mix.iter().zip(self.rates()).map(|(mix, rate)| mix * rate).sum();
        Moment { age, weight, survival, hazard, mix, counts: Binomial::new(self.b, survival) }
    }

    /// Moments from one age to another, or to where hardly a page is valid: Gauss's points in steps that are small
    /// against what changes, which is the distribution of counts (its width is `1 / (2 · sqrt(b))` in
    /// `asin(sqrt(survival))`) and the mix of zones.
    fn moments(&self, stream: &Stream, from: f64, to: f64) -> Vec<Moment> {
        /// Gauss–Legendre, five points on (0, 1).
        const POINTS: [(f64, f64); 5] = [
            (0.046_910_077_030_668, 0.118_463_442_528_094_5),
            (0.230_765_344_947_158_5, 0.239_314_335_249_683_2),
            (0.5, 0.284_444_444_444_444_4),
            (0.769_234_655_052_841_5, 0.239_314_335_249_683_2),
            (0.953_089_922_969_332, 0.118_463_442_528_094_5),
        ];
        let mut moments = Vec::new();
        let mut age = from;
        while age < to {
            let here = self.moment(stream, age, 0.0);
            if here.survival * f64::from(self.b) < 1e-13 {
                break;
            }
            let step = self.step(&here).min(to - age);
            moments.extend(POINTS.map(|(at, weight)| self.moment(stream, age + at * step, weight * step)));
            age += step;
        }
        moments
    }

    fn step(&self, here: &Moment) -> f64 {
        // Zones that still count in the hazard.
        let alive = self.rates().zip(&here.mix).filter(|(rate, mix)| rate * *mix > 1e-13 * here.hazard);
        let by_mix = 1.0 / alive.map(|(rate, _)| rate).fold(0.0, f64::max);
        let width = 0.5 / f64::from(self.b).sqrt();
        let angle = here.survival.min(1.0).sqrt().asin();
        let lost = here.survival - (angle - width).max(0.0).sin().powi(2);
        by_mix.min(lost / (here.hazard * here.survival))
    }

    /// Windowed greedy, with greedy and FIFO as its ends; see the uniform case.
    ///
    /// Blocks in levels above the last that fits into the window have met no choice so far, so how long they are there,
    /// and when they leave, is binomial.
    fn windowed(&self, streams: &[Stream], share: f64) -> Collected {
        let mut collected = Collected::new(self.zones.len(), self.b);
        let turnover: f64 = streams.iter().map(|stream| stream.rate).sum();
        let entry_age = (1.0 - share) / turnover;
        let in_window = |stream| if share > 0.0 { self.moments(stream, entry_age, f64::INFINITY) } else { Vec::new() };
        let window: Vec<(&Stream, Vec<Moment>)> = streams.iter().map(|stream| (stream, in_window(stream))).collect();
        let mut unchosen = vec![0.0; self.b as usize + 1];
        for (stream, moments) in &window {
            add_time(&mut unchosen, stream, moments);
            add_time(&mut collected.valid, stream, &self.moments(stream, 0.0, entry_age));
        }
        let kept = kept(&unchosen, share);
        for (valid, (kept, unchosen)) in collected.valid.iter_mut().zip(kept.iter().zip(&unchosen)) {
            *valid += kept * unchosen;
        }
        for (stream, moments) in &window {
            let entry = self.moment(stream, entry_age, 0.0);
            for (i, probability) in entry.counts.iter() {
                collected.take((1.0 - kept[i]) * stream.rate * probability, i, &entry.mix);
            }
            let passes = |i: &usize| kept[*i] > 0.0 && kept[*i - 1] < 1.0;
            for i in (1..=self.b as usize).filter(passes) {
                for at in moments {
                    let lost = stream.rate * at.weight * kept[i] * i as f64 * at.hazard * at.counts.probability(i);
                    collected.take((1.0 - kept[i - 1]) * lost, i - 1, &at.mix);
                }
            }
        }
        collected.with_empty_blocks()
    }

    /// The emptiest of `d` drawn; see the uniform case.
    ///
    /// A block with `i` valid pages is taken at a rate `kappa(i)`. Levels are solved from the top; in each, `kappa` is
    /// the rate that takes as many as the policy does. It changes at which ages blocks are in the level and so, a
    /// little, how fast they lose pages, which is found by iteration.
    fn random_greedy(&self, streams: &[Stream], d: f64) -> Collected {
        let mut collected = Collected::new(self.zones.len(), self.b);
        let turnover: f64 = streams.iter().map(|stream| stream.rate).sum();
        let mut walks: Vec<Walk> = streams.iter().map(|s| Walk::new(s, self.moments(s, 0.0, f64::INFINITY))).collect();
        let (mut above, mut kappa) = (0.0, turnover);
        for i in (1..=self.b).rev() {
            walks.iter_mut().for_each(|walk| walk.enter(i as usize, self.b));
            for _ in 0..40 {
                let last = kappa;
                kappa = taking_rate(&walks, above, d, turnover, last);
                walks.iter_mut().for_each(|walk| walk.fill(kappa));
                if (kappa - last).abs() <= 1e-12 * kappa {
                    break;
                }
            }
            let mut share = 0.0;
            for walk in &mut walks {
                share += walk.leave(kappa, |time, mix| collected.take(kappa * time, i as usize, mix));
            }
            collected.valid[i as usize] = share;
            above += share;
        }
        collected.victims[0] = (turnover - collected.victims[1..].iter().sum::<f64>()).max(0.0);
        collected.with_empty_blocks()
    }
}

/// Adds, for each count, the time that blocks of a stream spend there in the moments.
fn add_time(time: &mut [f64], stream: &Stream, moments: &[Moment]) {
    for at in moments {
        for (i, probability) in at.counts.iter() {
            time[i] += stream.rate * at.weight * probability;
        }
    }
}

/// Share of what arrives in each level that stays there, when the levels are filled from the top until `room` is used
/// up. Blocks without a valid page are always taken.
fn kept(time: &[f64], mut room: f64) -> Vec<f64> {
    let mut kept = vec![0.0; time.len()];
    for i in (1..time.len()).rev() {
        kept[i] = match time[i] {
            time if time < room => 1.0,
            time if time > 0.0 => room / time,
            _ => 0.0,
        };
        room -= kept[i] * time[i];
    }
    kept
}

/// The rate at which random greedy takes a block of the present level, when it loses pages at the rates found last.
fn taking_rate(walks: &[Walk], above: f64, d: f64, turnover: f64, guess: f64) -> f64 {
    let share = |kappa: f64| walks.iter().map(|walk| walk.inflow / (kappa + walk.losing)).sum::<f64>();
    let excess = |kappa: f64| kappa * share(kappa) - turnover * ((above + share(kappa)).powf(d) - above.powf(d));
    let (mut low, mut high) = (0.0, guess.max(f64::MIN_POSITIVE));
    while excess(high) < 0.0 && high < 1e100 {
        (low, high) = (high, high * 4.0);
    }
    numeric::root(low, high, excess)
}

/// Blocks of a stream on their way down the levels, under random greedy.
///
/// The share of blocks not yet taken, among those that have `i` valid pages at an age, relaxes to that of the level
/// above as blocks arrive from there: `v'(i) = (b-i) · hazard · S/(1-S) · (v(i+1) - v(i)) - kappa(i) · v(i)`. This
/// gives its course; its height is such that as many blocks leave the level as enter it.
struct Walk {
    moments: Vec<Moment>,
    /// The level, and the valid pages that a block in it has lost.
    level: usize,
    lost: f64,
    /// Blocks that enter the level, a rate.
    inflow: f64,
    /// Rate at which a block in the level loses a page.
    losing: f64,
    /// The moments at which a block can be in the level.
    start: usize,
    end: usize,
    /// For each moment, the share not yet taken, in the level above and in this one.
    above: Vec<f64>,
    here: Vec<f64>,
    /// Rate at which the logarithm of the share in the level above changes.
    above_slope: Vec<f64>,
}

impl Walk {
    fn new(stream: &Stream, moments: Vec<Moment>) -> Self {
        let (above, here) = (vec![1.0; moments.len()], vec![1.0; moments.len()]);
        let (inflow, above_slope) = (stream.rate, vec![0.0; moments.len()]);
        Self { moments, level: 0, lost: 0.0, inflow, losing: 0.0, start: 0, end: 0, above, here, above_slope }
    }

    /// Goes to a level, which must be the next lower one.
    fn enter(&mut self, level: usize, b: u32) {
        let can_be_there = |at: &&Moment| at.counts.probability(level) > 0.0;
        self.start += self.moments[self.start..].iter().take_while(|at| !can_be_there(at)).count();
        self.end = self.start + self.moments[self.start..].iter().take_while(can_be_there).count();
        (self.level, self.lost) = (level, f64::from(b) - level as f64);
        let untaken: f64 = self.times().map(|(at, time)| time * at.hazard).sum();
        self.losing = level as f64 * untaken / self.times().map(|(_, time)| time).sum::<f64>();
    }

    /// The moments in the level with the time that blocks spend there, but for a factor.
    fn times(&self) -> impl Iterator<Item = (&Moment, f64)> {
        let moments = self.moments[self.start..self.end].iter().zip(&self.here[self.start..self.end]);
        moments.map(|(at, untaken)| (at, at.weight * at.counts.probability(self.level) * untaken))
    }

    /// Follows the level when blocks are taken at a rate.
    fn fill(&mut self, kappa: f64) {
        for n in self.start..self.end {
            let age = self.moments[n].age;
            self.here[n] = if n == self.start {
                // Shortly after sealing, shares fall linearly.
                ((self.lost * self.above[n].ln() - kappa * age) / (self.lost + 1.0)).exp()
            } else {
                self.relax(n, kappa)
            }
            .max(1e-300);
        }
        let (mut time, mut lost) = (0.0, 0.0);
        for (at, spent) in self.times() {
            time += spent;
            lost += spent * at.hazard * self.level as f64;
        }
        self.losing = lost / time;
    }

    /// From one moment to the next.
    ///
    /// Integrates `v(i+1) · e^(-kappa · (time to go)) · d(1-S)^(b-i)` over `ln(1-S)`, the logarithm of the integrand
    /// taken as quadratic between the two moments; the quadratic part is small.
    fn relax(&self, n: usize, kappa: f64) -> f64 {
        let (from, to) = (&self.moments[n - 1], &self.moments[n]);
        let step = ((1.0 - to.survival) / (1.0 - from.survival)).ln();
        let leaving = self.lost * step + kappa * (to.age - from.age);
        let slope = |n: usize| (self.above_slope[n] + kappa) / self.moments[n].arriving();
        let linear = leaving + (self.above[n] / self.above[n - 1]).ln();
        let quadratic = (step * (slope(n - 1) - slope(n)) / 2.0).clamp(-1.0, 1.0);
        (-leaving).exp() * self.here[n - 1] + self.lost * step * self.above[n] * exponential_average(linear, quadratic)
    }

    /// Goes on to the next lower level; tells the time spent at each moment with the mix of zones then, gives the sum.
    fn leave(&mut self, kappa: f64, mut visit: impl FnMut(f64, &[f64])) -> f64 {
        let share = self.inflow / (kappa + self.losing);
        let factor = share / self.times().map(|(_, time)| time).sum::<f64>();
        self.times().for_each(|(at, time)| visit(factor * time, &at.mix));
        let last = self.here[self.start..self.end].last().copied().unwrap_or(1e-300);
        self.here[self.end..].fill(last);
        for n in self.start..self.end {
            let arriving = self.lost * self.moments[n].arriving();
            self.above_slope[n] = arriving * (self.above[n] / self.here[n] - 1.0) - kappa;
        }
        self.above_slope[self.end..].fill(0.0);
        self.inflow = share * self.losing;
        self.above.clone_from(&self.here);
        share
    }
}

/// The integral of `e^(-linear · w) · (1 + quadratic · w · (1 - w))` over `w` from 0 to 1.
fn exponential_average(linear: f64, quadratic: f64) -> f64 {
    if linear.abs() < 0.5 {
        // The power series of the two integrals.
        let (mut average, mut bend, mut term) = (0.0, 0.0, 1.0);
        for n in (0_u32..12).map(f64::from) {
            average += term / (n + 1.0);
            bend += term / ((n + 2.0) * (n + 3.0));
            term *= -linear / (n + 1.0);
        }
        return average + quadratic * bend;
    }
    let average = -(-linear).exp_m1() / linear;
    average + quadratic * ((1.0 + (-linear).exp()) / linear - 2.0 * average / linear) / linear
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn dbg() {
        let zones = [Zone { size: 0.5, traffic: 0.5 }, Zone { size: 0.5, traffic: 0.5 }];
        let (rho, b) = (0.875, 8);
        let m = Model { rho, b, policy: Policy::RandomGreedy { d: 8 }, zones: &zones, frontier: Frontier::Single };
        let u = super::super::mean_field(rho, b, m.policy).unwrap();
        let g = (u.write_amplification - 1.0) * rho * b as f64 / 2.0;
        let c = m.collect(&[g, g]);
        let t = u.write_amplification * rho;
        println!("{:?} {:?}", c.moved, g);
        for i in 0..=b as usize {
            println!("{i} {} {} {} {}", c.valid[i], u.valid_counts[i], c.victims[i] / t, u.victim_counts[i]);
        }
    }
}
