//! Ranks by Zipf's law, exactly, in constant time, whatever their number.
//!
//! Rejection from a step function (Devroye, "Non-Uniform Random Variate Generation", 1986, chapters II.3 and VIII.2;
//! Hörmann, Leydold and Derflinger, "Automatic Nonuniform Random Variate Generation", 2004, chapter 5): the ranks 1 … n
//! are cut into strips, each a sixteenth as wide as its first rank is large. Under the strip from a to b lies a
//! rectangle of height a^-θ. A strip is chosen by the area of its rectangle, a rank k in it uniformly, and k is kept
//! with probability (k ÷ a)^-θ. As k is hardly larger than a, that probability is nearly 1, and for nearly all draws a
//! constant of the strip is enough to decide (the "squeeze"): the power is computed for one draw in twenty.
//!
//! Rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996) needs no strips, but a logarithm and an
//! exponential for each draw; it took three times as long. The strips are few: 300 for 10^9 ranks, 700 for 2^64.

use rand_pcg::Pcg64Mcg;

use super::choice::Choice;
use super::random::{below, unit};

/// A strip from rank a is a ÷ this wide; ranks below it have a strip each.
const STRIPS_A_DOUBLING: u64 = 16;

/// Draws ranks by Zipf's law.
///
/// # Example
/// ```
/// use rand_pcg::Pcg64Mcg;
///
/// let (zipf, mut random) = (flashwise_trace::workload::Zipf::new(1000, 0.99), Pcg64Mcg::new(7));
/// let first = (0..1000).filter(|_| zipf.draw(&mut random) == 0).count();
/// assert!((100..160).contains(&first), "one in 7.7");
/// ```
#[derive(Debug)]
pub struct Zipf {
    theta: f64,
    choice: Choice,
    strips: Box<[Strip]>,
}

/// Ranks that are nearly equally popular.
#[derive(Clone, Copy, Debug)]
struct Strip {
    /// The first one, a; the most popular rank of all is 1.
    first: u64,
    /// How many.
    width: u64,
    /// (b ÷ a)^-θ, b the last one: every rank of the strip is kept at least this often.
    kept: f64,
}

impl Zipf {
    /// Ranks 0 to `ranks` − 1 (at least one), rank k − 1 with a probability proportional to k^-theta.
    pub fn new(ranks: u64, theta: f64) -> Self {
        let (mut strips, mut areas, mut behind) = (Vec::new(), Vec::new(), 0);
        while behind < ranks {
            let first = behind + 1;
            let width = (first / STRIPS_A_DOUBLING).clamp(1, ranks - behind);
            behind += width;
            strips.push(Strip { first, width, kept: power(behind as f64 / first as f64, theta) });
            areas.push(width as f64 * power(first as f64, theta));
        }
        Self { theta, choice: Choice::new(&areas), strips: strips.into() }
    }

    /// A rank, the most popular being 0.
    #[inline]
    pub fn draw(&self, random: &mut Pcg64Mcg) -> u64 {
        loop {
            let strip = self.strips[self.choice.draw(random)];
            let rank = strip.first + below(random, strip.width);
            let draw = unit(random);
            if draw <= strip.kept || draw <= power(rank as f64 / strip.first as f64, self.theta) {
                return rank - 1;
            }
        }
    }
}

/// x^-θ.
fn power(x: f64, theta: f64) -> f64 {
    libm::exp(-theta * libm::log(x))
}

#[cfg(test)]
mod tests {
    use super::super::random::stream;
    use super::*;

    /// χ² of ranks in cells that start at `starts`, as a standard normal (Wilson and Hilferty).
    fn chi_square_z(ranks: u64, theta: f64, starts: &[u64]) -> f64 {
        let (zipf, mut random, draws) = (Zipf::new(ranks, theta), stream(11, 0), 400_000);
        let cell = |rank: u64| starts.partition_point(|&start| start <= rank) - 1;
        let (mut weights, mut counts) = (vec![0.0; starts.len()], vec![0.0; starts.len()]);
        (0..ranks).for_each(|rank| weights[cell(rank)] += ((rank + 1) as f64).powf(-theta));
        for _ in 0..draws {
            let rank = zipf.draw(&mut random);
            assert!(rank < ranks);
            counts[cell(rank)] += 1.0;
        }
        let sum: f64 = weights.iter().sum();
        let expected = weights.iter().map(|weight| weight / sum * f64::from(draws));
        let likely = expected.zip(counts).filter(|(expected, _)| *expected >= 5.0);
        let (chi, cells) = likely.fold((0.0, 0.0), |(chi, n), (e, c): (f64, f64)| (chi + (c - e).powi(2) / e, n + 1.0));
        // Where a single cell is likely there is nothing to compare.
        let k: f64 = (cells - 1.0_f64).max(1.0);
        ((chi / k).cbrt() - (1.0 - 2.0 / (9.0 * k))) / (2.0 / (9.0 * k)).sqrt()
    }

    #[test]
    fn ranks_are_as_frequent_as_zipfs_law_says() {
        for theta in [0.01, 0.2, 0.5, 0.9, 0.99, 1.0, 1.000_000_1, 1.2, 2.0, 4.0] {
            for ranks in [2, 10, 1000, 100_000] {
                let each: Vec<u64> = (0..ranks.min(300)).collect();
                let wide: Vec<u64> =
                    (0..60).map(|i| (1.25_f64.powi(i) * 8.0) as u64 - 8).take_while(|&r| r < ranks).collect();
                for starts in [&each, &wide] {
                    let z = chi_square_z(ranks, theta, starts);
                    assert!(z < 4.5, "theta {theta}, {ranks} ranks, {} cells: z = {z}", starts.len());
                }
            }
        }
    }

    #[test]
    fn one_rank_is_always_drawn_and_vast_numbers_of_ranks_stay_in_bounds() {
        let mut random = stream(1, 1);
        assert!((0..100).all(|_| Zipf::new(1, 0.99).draw(&mut random) == 0));
        for theta in [1e-9, 0.5, 1.0, 10.0] {
            assert!(Zipf::new(u64::MAX, theta).strips.len() < 800);
            let zipf = Zipf::new(u64::MAX, theta);
            assert!((0..1000).all(|_| zipf.draw(&mut random) < u64::MAX));
        }
    }
}
