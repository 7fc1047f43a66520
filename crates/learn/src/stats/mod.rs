//! Medians, their intervals, and what can be read off curves of them.
//!
//! | file | question | method |
//! |---|---|---|
//! | `mod.rs` | how sure is an estimate? | the same estimate on resampled data |
//! | `graded.rs` | how sure is a ratio, a time, a speed? | the width of its interval |
//! | `period.rs` | does a curve repeat itself? | share of variance that the phase explains, against permutations |
//! | `knee.rs` | where does throughput stop growing? | two-segment fit |
//! | `pelt.rs` | where does a series change its level? | PELT with absolute deviations |
//! | `rank.rs` | is one sample larger than another? | Mann–Whitney, Cliff's δ |
//! | `steady.rs` | has a series settled? | SNIA's rule |
//! | `holm.rs` | which of many findings are chance? | Holm's correction |

pub(crate) mod graded;
pub(crate) mod holm;
pub(crate) mod knee;
pub(crate) mod pelt;
mod period;
pub(crate) mod rank;
pub(crate) mod steady;

pub(crate) use period::{best_period, explained, fold, period_test};

use flashwise_profile::{Figure, MedianNs};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Share of resampled estimates that must agree before a figure is certain: 95 %, as in all intervals here.
const AGREEING_SHARE_MIN: f64 = 0.95;
/// How often an estimate is repeated on resampled data.
const RESAMPLES: usize = 200;

/// The samples of one point, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<u64>);

impl Samples {
    pub(crate) fn new(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        Self(values)
    }

    /// Median; 0 of nothing.
    pub(crate) fn median(&self) -> f64 {
        let n = self.0.len();
        match n {
            0 => 0.0,
            _ if n.is_multiple_of(2) => (self.0[n / 2 - 1] + self.0[n / 2]) as f64 / 2.0,
            _ => self.0[n / 2] as f64,
        }
    }

    /// Mean of the middle half: as deaf to outliers and to what a cache answers as a median, and steady where pages of
    /// several speeds are mixed, of which a median takes now one and now the other. 0 of nothing.
    pub(crate) fn midmean(&self) -> f64 {
        let middle = self.middle_half();
        middle.iter().sum::<u64>() as f64 / middle.len().max(1) as f64
    }

    fn middle_half(&self) -> &[u64] {
        let cut = self.0.len() / 4;
        &self.0[cut..self.0.len() - cut]
    }

    /// The value that a share of the others is below; 0 of nothing. Where pages of several speeds are mixed, an eighth
    /// and less are of the fastest sort alone.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let at = (self.0.len().saturating_sub(1) as f64 * share).round() as usize;
        self.0.get(at).map_or(0.0, |&value| value as f64)
    }

    /// Median with its 95 % interval from order statistics: ranks n/2 ± 1.96·√n/2.
    pub(crate) fn interval(&self) -> MedianNs {
        let n = self.0.len();
        if n == 0 {
            return MedianNs { median: 0, low: 0, high: 0 };
        }
        let half_width = 1.96 * (n as f64).sqrt() / 2.0;
        let low = (n as f64 / 2.0 - half_width).floor().max(0.0) as usize;
        let high = ((n as f64 / 2.0 + half_width).ceil() as usize).min(n - 1);
        MedianNs { median: self.median().round() as u64, low: self.0[low], high: self.0[high] }
    }

    /// As many values drawn from these with replacement.
    pub(crate) fn resampled(&self, random: &mut Pcg64Mcg) -> Self {
        let draw = |_| self.0[random.random_range(0..self.0.len())];
        Self::new((0..self.0.len()).map(draw).collect())
    }
}

/// Standard error of a median, from its 95 % interval.
pub(crate) fn standard_error(median: &MedianNs) -> f64 {
    (median.high - median.low) as f64 / (2.0 * 1.96)
}

/// Median of some numbers.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n.is_multiple_of(2) => (values[n / 2 - 1] + values[n / 2]) / 2.0,
        n => values[n / 2],
    }
}

/// Slope of the least-squares line, and its height at 0; `None` of fewer than two places.
pub(crate) fn line_through(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let (mx, my) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let (sxy, sxx) =
        points.iter().fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + (x - mx) * (y - my), xx + (x - mx).powi(2)));
    (sxx > 0.0).then(|| (sxy / sxx, my - sxy / sxx * mx))
}

/// The rate of batches of equal length, one after the other: the harmonic mean of theirs.
pub(crate) fn joined_rate(rates: &[f64]) -> f64 {
    rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>()
}

/// The `low` and `high` quantiles of 95 % of some numbers.
pub(crate) fn interval95(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    if values.is_empty() { (0.0, 0.0) } else { (at(0.025), at(0.975)) }
}

/// Turns an estimate into a figure: the same estimate on resampled points says how far it can be trusted.
///
/// `estimate` gives `None` where the points show nothing. Without a first estimate the figure is absent if
/// `would_be_seen`, and unknown otherwise.
pub(crate) fn figure<T: Copy + PartialOrd>(
    points: &[Samples],
    random: &mut Pcg64Mcg,
    would_be_seen: bool,
    estimate: impl Fn(&[Samples]) -> Option<T>,
) -> Figure<T> {
    let first = estimate(points);
    let again: Vec<Option<T>> = (0..RESAMPLES)
        .map(|_| {
            let resampled: Vec<Samples> = points.iter().map(|point| point.resampled(random)).collect();
            estimate(&resampled)
        })
        .collect();
    let agreeing = again.iter().filter(|other| **other == first).count() as f64 / RESAMPLES as f64;
    let mut values: Vec<T> = again.into_iter().flatten().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    match first {
        None if agreeing >= AGREEING_SHARE_MIN && would_be_seen => Figure::absent(),
        None => Figure::unknown(),
        Some(value) => {
            let at = |share: f64| values.get((values.len().saturating_sub(1) as f64 * share).round() as usize);
            let (low, high) = (*at(0.025).unwrap_or(&value), *at(0.975).unwrap_or(&value));
            if agreeing >= AGREEING_SHARE_MIN {
                Figure::certain(value, low, high)
            } else {
                Figure::inconclusive(value, low, high)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    #[test]
    fn an_estimate_that_resampling_changes_is_inconclusive() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let clear = [Samples::new(vec![10; 30]), Samples::new(vec![20; 30])];
        let unclear = [Samples::new((0..30).collect()), Samples::new((0..30).collect())];
        let faster = |p: &[Samples]| Some(u64::from(p[0].median() >= p[1].median()));
        assert_eq!(figure(&clear, &mut random, true, faster), Figure::certain(0, 0, 0));
        assert_eq!(figure(&unclear, &mut random, true, faster).verdict, flashwise_profile::Verdict::Inconclusive);
        assert_eq!(figure(&clear, &mut random, true, |_| None::<u64>), Figure::absent());
        assert_eq!(figure(&clear, &mut random, false, |_| None::<u64>), Figure::unknown());
    }

    proptest! {
        #[test]
        fn the_interval_of_a_median_contains_it(values in prop::collection::vec(0_u64..1_000_000, 1..200)) {
            let interval = Samples::new(values).interval();
            prop_assert!(interval.low <= interval.median && interval.median <= interval.high);
        }
    }
}
