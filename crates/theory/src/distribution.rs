//! The steady state in the form that preconditioning needs: so many blocks with so many valid pages.

use super::{Policy, SteadyState, TheoryError, mean_field};

/// How full the sealed blocks of a drive are after a long overwrite.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidCountDistribution {
    /// Share of the sealed blocks that hold `i` valid pages, for `i` from 0 to `b`.
    pub fractions: Vec<f64>,
    /// Pages programmed ÷ pages the host wrote.
    pub write_amplification: f64,
}

/// The steady state under uniform random writes.
///
/// # Errors
/// As [`mean_field`].
pub fn valid_count_distribution(rho: f64, b: u32, policy: Policy) -> Result<ValidCountDistribution, TheoryError> {
    mean_field(rho, b, policy).map(Into::into)
}

impl From<SteadyState> for ValidCountDistribution {
    fn from(state: SteadyState) -> Self {
        Self { fractions: state.valid_counts, write_amplification: state.write_amplification }
    }
}

impl ValidCountDistribution {
    /// Valid pages for each of `blocks` sealed blocks, ascending, `valid_pages` in all; `None` when they have not the
    /// room.
    ///
    /// Under uniform traffic the emptier block is the older one, on average: seal the blocks in this order. Each count
    /// is a quantile; what rounding and the fill of the real drive leave over is spread evenly, a page a block.
    pub fn counts(&self, blocks: u32, valid_pages: u64) -> Option<Vec<u32>> {
        let full = self.fractions.len().checked_sub(1)? as u32;
        if valid_pages > u64::from(blocks) * u64::from(full) {
            return None;
        }
        let mut counts = self.quantiles(blocks);
        let mut sum: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        while sum != valid_pages {
            let left = sum.abs_diff(valid_pages);
            let raise = sum < valid_pages;
            let able = |count: u32| if raise { count < full } else { count > 0 };
            let changed = spread(&mut counts, left, able, |count| if raise { count + 1 } else { count - 1 });
            sum = if raise { sum + changed } else { sum - changed };
        }
        counts.sort_unstable();
        Some(counts)
    }

    fn quantiles(&self, blocks: u32) -> Vec<u32> {
        let (mut count, mut below) = (0, self.fractions[0]);
        let quantile = |n: u32| {
            let at = (f64::from(n) + 0.5) / f64::from(blocks);
            while below < at && count + 1 < self.fractions.len() {
                count += 1;
                below += self.fractions[count];
            }
            count as u32
        };
        (0..blocks).map(quantile).collect()
    }
}

/// Changes `wanted` of the blocks that can be changed, or all of them, evenly spaced; gives how many it changed.
fn spread(counts: &mut [u32], wanted: u64, able: impl Fn(u32) -> bool, change: impl Fn(u32) -> u32) -> u64 {
    let mut candidates: Vec<&mut u32> = counts.iter_mut().filter(|count| able(**count)).collect();
    let number = candidates.len() as u64;
    let wanted = wanted.min(number);
    for n in 0..wanted {
        let count = &mut candidates[(n * number / wanted) as usize];
        **count = change(**count);
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_sum_asked_for_and_the_shape_of_the_distribution() {
        for policy in [Policy::Greedy, Policy::Fifo, Policy::RandomGreedy { d: 4 }] {
            let distribution = valid_count_distribution(0.8, 64, policy).unwrap();
            for (blocks, valid) in [(1000, 51_200), (1000, 51_777), (1000, 50_000), (7, 300), (1, 64), (3, 0), (0, 0)] {
                let counts = distribution.counts(blocks, valid).unwrap();
                assert_eq!((counts.len(), counts.iter().map(|&c| u64::from(c)).sum()), (blocks as usize, valid));
                assert!(counts.is_sorted() && counts.iter().all(|&count| count <= 64));
            }
            let counts = distribution.counts(100_000, 64 * 80_000).unwrap();
            for (i, &fraction) in distribution.fractions.iter().enumerate() {
                let share = counts.iter().filter(|&&count| count as usize == i).count() as f64 / 1e5;
                assert!((share - fraction).abs() < 0.001, "{policy:?} {i}: {share} for {fraction}");
            }
            assert_eq!(distribution.counts(10, 641), None);
        }
    }
}
