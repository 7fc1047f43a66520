//! Draws by name: each decision has a generator of its own, seeded with the drive's seed and the decision's key.
//!
//! So a decision that is added later leaves all the others as they were. Numbers are made from the generator's 64 bits
//! by integer arithmetic and `libm`, the same on every machine and with every version of the library that draws.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The decisions of one drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    seed: u64,
}

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    fn bits(&self, key: &str) -> u64 {
        Pcg64Mcg::seed_from_u64(xxh3_64_with_seed(key.as_bytes(), self.seed)).next_u64()
    }

    /// A number from 0 up to, not including, 1.
    fn unit(&self, key: &str) -> f64 {
        (self.bits(key) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Yes with a probability.
    pub(super) fn chance(&self, key: &str, probability: f64) -> bool {
        self.unit(key) < probability
    }

    /// Any of the values.
    pub(super) fn any<T: Copy>(&self, key: &str, values: &[T]) -> T {
        values[((u128::from(self.bits(key)) * values.len() as u128) >> 64) as usize]
    }

    /// One of the values, each as often as its weight says.
    pub(super) fn weighted<T: Copy>(&self, key: &str, values: &[(T, u32)]) -> T {
        let total: u32 = values.iter().map(|&(_, weight)| weight).sum();
        let mut left = ((u128::from(self.bits(key)) * u128::from(total)) >> 64) as u32;
        let mut chosen = values[0].0;
        for &(value, weight) in values {
            chosen = value;
            if left < weight {
                break;
            }
            left -= weight;
        }
        chosen
    }

    /// A share between two, evenly, in steps of a thousandth.
    pub(super) fn share(&self, key: &str, least: f64, most: f64) -> f64 {
        ((least + self.unit(key) * (most - least)) * 1000.0).round() / 1000.0
    }

    /// A number between two, evenly in its logarithm, rounded to two significant digits: the times and the rates of
    /// data sheets.
    pub(super) fn between(&self, key: &str, least: u64, most: u64) -> u64 {
        let (low, high) = (libm::log(least as f64), libm::log(most as f64));
        let value = libm::exp(low + self.unit(key) * (high - low));
        rounded(value as u64).clamp(least, most)
    }
}

/// Two significant digits.
pub(super) fn rounded(value: u64) -> u64 {
    let mut scale = 1;
    while value / scale >= 100 {
        scale *= 10;
    }
    (value + scale / 2) / scale * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_depends_on_its_seed_and_its_key_alone() {
        let of = |seed, key| Draws::new(seed).bits(key);
        assert_eq!(of(1, "a"), of(1, "a"));
        assert!(of(1, "a") != of(2, "a") && of(1, "a") != of(1, "b"));
    }

    #[test]
    fn values_come_as_often_as_their_weights_say() {
        let count = |n| (0..10_000).filter(|&s| Draws::new(s).weighted("k", &[(0, 1), (1, 0), (2, 3)]) == n).count();
        let counts = [0, 1, 2].map(count);
        assert!(counts[1] == 0 && counts[0].abs_diff(2_500) < 150 && counts[0] + counts[2] == 10_000, "{counts:?}");
        let heads = (0..10_000).filter(|&seed| Draws::new(seed).chance("k", 0.3)).count();
        assert!(heads.abs_diff(3_000) < 150, "{heads}");
        assert!((0..100).all(|seed| ["x", "y"].contains(&Draws::new(seed).any("k", &["x", "y"]))));
    }

    #[test]
    fn numbers_lie_in_their_range_and_as_often_in_each_octave() {
        let drawn: Vec<u64> = (0..10_000).map(|seed| Draws::new(seed).between("k", 1_000, 16_000)).collect();
        assert!(drawn.iter().all(|n| (1_000..=16_000).contains(n)));
        let low = drawn.iter().filter(|&&n| n < 4_000).count();
        assert!(low.abs_diff(5_000) < 250, "{low}");
        assert_eq!([7, 99, 104, 105, 12_345].map(rounded), [7, 99, 100, 110, 12_000]);
        assert!((0..100).all(|seed| (0.05..=0.4).contains(&Draws::new(seed).share("k", 0.05, 0.4))));
    }
}
