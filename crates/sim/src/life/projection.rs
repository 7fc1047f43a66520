//! When a drive dies whose superblocks wear at known rates.
//!
//! Time is counted in *n*, the P/E cycles that the mean superblock has been through. Superblock *b* wears at the rate λ
//! (1 for the mean one): its cycles at *n* are λ·n, with a variance of φ·λ·n that chance adds. It endures L cycles,
//! with a standard deviation of σ·L. Both taken as normal, it is dead at *n* with the probability
//!
//! ```text
//!   p = Φ( (λ·n − L) ÷ √(σ²·L² + φ·λ·n) )
//! ```
//!
//! A unit with *s* spare superblocks lives while no more than *s* are dead; the drive lives while all units do. Deaths
//! of a unit are a sum of independent events, taken as normal, too: P(unit lives) = Φ( (s + ½ − Σp) ÷ √Σp·(1−p) ). The
//! drive is taken to die where all units live with a probability of one half: the median.
//!
//! A page of a medium that is written in place and is replaced by a spare one wears out again: it dies at L, 2·L, ….

/// Superblocks of a parallel unit, or pages of a medium that is written in place.
#[derive(Clone, Debug)]
pub(crate) struct WornUnit {
    /// So many may die.
    pub(crate) spares: u64,
    /// Rate of wear, and how many wear at it.
    pub(crate) rates: Vec<(f64, u64)>,
}

/// What ends them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mortality {
    /// L.
    pub(crate) limit: f64,
    /// σ.
    pub(crate) spread: f64,
    /// φ.
    pub(crate) chance: f64,
    /// Cycles that static wear levelling lets a superblock be ahead of the mean one.
    pub(crate) ahead_max: Option<f64>,
    /// What died is replaced where it stood, and dies again.
    pub(crate) is_replaced: bool,
}

/// What is left of the limit, as factors whose product is (mean cycles at the end) ÷ limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evenness {
    /// All blocks endured the same and the first to die ended it.
    pub(crate) wear_levelling: f64,
    /// Blocks differ, too.
    pub(crate) endurance_spread: f64,
    /// Spares are in, too.
    pub(crate) spare_superblocks: f64,
}

/// The factors of a drive.
pub(crate) fn evenness(units: &[WornUnit], mortality: Mortality) -> Evenness {
    let none: Vec<WornUnit> = units.iter().map(|unit| WornUnit { spares: 0, rates: unit.rates.clone() }).collect();
    let alike = Mortality { spread: 0.0, ..mortality };
    let (first, spread) = (mean_cycles_at_end(&none, alike), mean_cycles_at_end(&none, mortality));
    let spares = mean_cycles_at_end(units, mortality);
    Evenness {
        wear_levelling: first / mortality.limit,
        endurance_spread: spread / first,
        spare_superblocks: spares / spread,
    }
}

/// *n* at the drive's death, by bisection.
fn mean_cycles_at_end(units: &[WornUnit], mortality: Mortality) -> f64 {
    let lives =
        |n: f64| units.iter().map(|unit| log_survival(unit, mortality, n)).sum::<f64>() > -std::f64::consts::LN_2;
    let (mut low, mut high) = (0.0, mortality.limit);
    while lives(high) && high < mortality.limit * 1e6 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if lives(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Logarithm of the probability that a unit lives at *n*.
fn log_survival(unit: &WornUnit, mortality: Mortality, n: f64) -> f64 {
    let (mut deaths, mut variance) = (0.0, 0.0);
    for &(rate, count) in &unit.rates {
        for death in 1.. {
            let p = mortality.dead(rate, n, f64::from(death));
            (deaths, variance) = (deaths + p * count as f64, variance + p * (1.0 - p) * count as f64);
            if !mortality.is_replaced || p < 1e-9 || deaths > unit.spares as f64 + 1.0 + 10.0 * variance.sqrt() {
                break;
            }
        }
    }
    let room = unit.spares as f64 + 0.5 - deaths;
    libm::log(normal_below(room, variance.sqrt()).max(1e-300))
}

impl Mortality {
    /// The probability that what wears at a rate has died so many times at *n*.
    fn dead(&self, rate: f64, n: f64, times: f64) -> f64 {
        let ahead = self.ahead_max.unwrap_or(f64::INFINITY);
        let (cycles, limit) = ((rate * n).min(n + ahead), times * self.limit);
        let deviation = (self.spread * self.spread * self.limit * limit + self.chance * cycles).sqrt();
        normal_below(cycles - limit, deviation)
    }
}

/// P(X < x) for a normal X about 0; with a deviation of 0 a step, which is 1 at 0.
fn normal_below(x: f64, deviation: f64) -> f64 {
    if deviation == 0.0 {
        return f64::from(u8::from(x >= 0.0));
    }
    0.5 * libm::erfc(-x / (deviation * std::f64::consts::SQRT_2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: Mortality = Mortality { limit: 1_000.0, spread: 0.0, chance: 0.0, ahead_max: None, is_replaced: false };

    fn unit(spares: u64, rates: &[(f64, u64)]) -> WornUnit {
        WornUnit { spares, rates: rates.to_vec() }
    }

    fn at_end(units: &[WornUnit], mortality: Mortality) -> f64 {
        mean_cycles_at_end(units, mortality)
    }

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-6
    }

    #[test]
    fn where_nothing_is_left_to_chance_the_block_behind_the_last_spare_ends_it() {
        let rates = [(2.0, 2), (1.0, 3), (0.5, 5)];
        for (spares, expected) in [(0, 500.0), (1, 500.0), (2, 1_000.0), (4, 1_000.0), (5, 2_000.0)] {
            let found = at_end(&[unit(spares, &rates)], SURE);
            assert!(close(found, expected), "{spares} spares: {found}");
        }
        let worst = at_end(&[unit(9, &rates), unit(0, &[(4.0, 1), (0.1, 9)])], SURE);
        assert!(close(worst, 250.0), "the first unit to die ends it: {worst}");
    }

    #[test]
    fn even_wear_uses_the_whole_limit_and_every_factor_is_one() {
        let even = evenness(&[unit(3, &[(1.0, 50)]), unit(3, &[(1.0, 50)])], SURE);
        assert!(close(even.wear_levelling, 1.0) && close(even.endurance_spread, 1.0), "{even:?}");
        assert!(close(even.spare_superblocks, 1.0), "{even:?}");
    }

    #[test]
    fn one_block_alone_dies_at_the_median_of_what_it_endures() {
        let found = at_end(&[unit(0, &[(1.0, 1)])], Mortality { spread: 0.2, ..SURE });
        // Of one event the normal is in poorly: P = Φ((½ − p) ÷ √p(1−p)) is ½ where p is.
        assert!(close(found, 1_000.0), "{found}");
    }

    #[test]
    fn with_blocks_that_differ_the_end_comes_at_an_order_statistic_of_their_limits() {
        // The kth smallest of 1,000 normal limits lies where 1,000·Φ = k − ½, here k = 101: Φ⁻¹(0.1005) = −1.2788.
        let found = at_end(&[unit(100, &[(1.0, 1_000)])], Mortality { spread: 0.1, ..SURE });
        assert!((found - (1_000.0 - 127.88)).abs() < 1.0, "{found}");
        let factors = evenness(&[unit(100, &[(1.0, 1_000)])], Mortality { spread: 0.1, ..SURE });
        let product = factors.wear_levelling * factors.endurance_spread * factors.spare_superblocks;
        assert!(close(product, found / 1_000.0) && factors.spare_superblocks > 1.1, "{factors:?}");
    }

    #[test]
    fn chance_that_adds_up_matters_less_the_longer_blocks_live() {
        let share = |limit| at_end(&[unit(0, &[(1.0, 100)])], Mortality { limit, chance: 1.0, ..SURE }) / limit;
        assert!(share(100.0) < share(10_000.0) && share(100.0) < 0.85 && share(10_000.0) > 0.97);
    }

    #[test]
    fn static_wear_levelling_keeps_the_most_worn_block_within_its_threshold() {
        let levelled = Mortality { ahead_max: Some(10.0), ..SURE };
        let found = at_end(&[unit(0, &[(5.0, 1), (0.5, 8)])], levelled);
        assert!(close(found, 990.0), "{found}");
    }

    #[test]
    fn a_replaced_page_takes_a_spare_each_time_that_it_wears_out() {
        let replaced = Mortality { is_replaced: true, ..SURE };
        let found = at_end(&[unit(3, &[(1.0, 1)])], replaced);
        assert!(close(found, 4_000.0), "three spares live after it: {found}");
    }
}
