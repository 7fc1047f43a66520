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
    /// the rate that takes as many as the policy does.
    fn random_greedy(&self, streams: &[Stream], d: f64) -> Collected {
        let mut collected = Collected::new(self.zones.len(), self.b);
        let turnover: f64 = streams.iter().map(|stream| stream.rate).sum();
        let mut walks: Vec<Walk<'_>> =
            streams.iter().map(|s| Walk::new(s, self.moments(s, 0.0, f64::INFINITY), self.b)).collect();
        let (mut above, mut above_power, mut guess) = (0.0_f64, 0.0, turnover);
        for i in (1..=self.b as usize).rev() {
            walks.iter_mut().for_each(|walk| walk.enter(i));
            let time = |kappa: f64| walks.iter().map(|walk| walk.level(kappa, |_, _| ())).sum::<f64>();
            let excess = |kappa: f64| {
                let time = time(kappa);
                kappa * time - turnover * ((above + time).powf(d) - above_power)
            };
            let kappa = rate_of(excess, guess);
            let mut share = 0.0;
            for walk in &mut walks {
                share += walk.level(kappa, |at, time| collected.take(kappa * time, i, &at.mix));
                walk.advance(kappa);
            }
            collected.valid[i] = share;
            above += share;
            (above_power, guess) = (above.powf(d), kappa);
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

/// The positive rate at which an increasing function vanishes, near a guess.
fn rate_of(excess: impl Fn(f64) -> f64, guess: f64) -> f64 {
    let (mut low, mut high) = (0.0, guess.max(1e-300));
    while excess(high) < 0.0 && high < 1e300 {
        (low, high) = (high, high * 4.0);
    }
    numeric::root(low, high, excess)
}

/// Blocks of a stream on their way down the levels, under random greedy.
///
/// The share of blocks not yet taken, among those that have `i` valid pages at an age, relaxes to that of the level
/// above as blocks arrive from there: `v'(i) = (b-i) · hazard · S/(1-S) · (v(i+1) - v(i)) - kappa(i) · v(i)`.
struct Walk<'a> {
    stream: &'a Stream,
    moments: Vec<Moment>,
    b: usize,
    /// The level, and the moments at which a block can be there.
    level: usize,
    start: usize,
    end: usize,
    /// The share not yet taken in the level above, for each moment.
    above: Vec<f64>,
}

impl<'a> Walk<'a> {
    fn new(stream: &'a Stream, moments: Vec<Moment>, b: u32) -> Self {
        let above = vec![1.0; moments.len()];
        Self { stream, moments, b: b as usize, level: b as usize, start: 0, end: 0, above }
    }

    /// Goes to a level, which must be the next lower one.
    fn enter(&mut self, level: usize) {
        self.level = level;
        let can_be_there = |at: &Moment| at.counts.probability(level) > 0.0;
        self.start += self.moments[self.start..].iter().take_while(|at| !can_be_there(at)).count();
        self.end = self.start + self.moments[self.start..].iter().take_while(|at| can_be_there(at)).count();
    }

    /// The share not yet taken at each moment in the level, when blocks are taken at the rate `kappa`.
    fn untaken(&self, kappa: f64) -> impl Iterator<Item = f64> + '_ {
        let empty_places = (self.b - self.level) as f64;
        let mut last = None;
        (self.start..self.end).map(move |n| {
            let at = &self.moments[n];
            let share = match last {
                None if empty_places == 0.0 => (-kappa * at.age).exp(),
                None => self.above[n],
                Some(last) => self.relax(n, kappa, empty_places, last),
            };
            last = Some(share);
            share
        })
    }

    /// From one moment to the next: exact for constant rates and a level above that changes exponentially.
    fn relax(&self, n: usize, kappa: f64, empty_places: f64, last: f64) -> f64 {
        let (from, to) = (&self.moments[n - 1], &self.moments[n]);
        let arriving = empty_places * ((1.0 - to.survival) / (1.0 - from.survival)).ln();
        let leaving = arriving + kappa * (to.age - from.age);
        let (above, above_now) = (self.above[n - 1].max(1e-300), self.above[n].max(1e-300));
        let change = leaving + (above_now / above).ln();
        let average = if change.abs() < 1e-9 { 1.0 } else { -(-change).exp_m1() / change };
        (-leaving).exp() * last + arriving * above_now * average
    }

    /// Time spent in the level, in all and at each moment.
    fn level(&self, kappa: f64, mut visit: impl FnMut(&Moment, f64)) -> f64 {
        let mut sum = 0.0;
        for (at, untaken) in self.moments[self.start..self.end].iter().zip(self.untaken(kappa)) {
            let time = self.stream.rate * at.weight * at.counts.probability(self.level) * untaken;
            visit(at, time);
            sum += time;
        }
        sum
    }

    /// Makes this level the one above.
    fn advance(&mut self, kappa: f64) {
        let untaken: Vec<f64> = self.untaken(kappa).collect();
        self.above[self.start..self.end].copy_from_slice(&untaken);
        let last = untaken.last().copied().unwrap_or(0.0);
        self.above[self.end..].fill(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn dbg() {
        let zones = [Zone { size: 0.5, traffic: 0.5 }, Zone { size: 0.5, traffic: 0.5 }];
        let (rho, b) = (0.875, 8);
        let m = Model { rho, b, policy: Policy::Random, zones: &zones, frontier: Frontier::Single };
        let g = 6.125 * b as f64 / 2.0;
        let c = m.collect(&[g, g]);
        println!("{:?} {:?}", c.moved, g);
        let u = super::super::mean_field(rho, b, Policy::Random).unwrap();
        for i in 0..=b as usize {
            println!("{i} {} {} {} {}", c.valid[i], u.valid_counts[i], c.victims[i] / 7.0, u.victim_counts[i]);
        }
    }
}
