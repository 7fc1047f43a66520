//! Where a series changes its level.
//!
//! The series is cut into segments so that Σ |x − median of its segment| + β · segments is smallest. PELT finds the
//! optimum and drops starts that can no longer win. Absolute deviations, because single late requests must not look
//! like a change.
//!
//! β = 3 · σ · ln n, with σ from the median absolute difference of neighbours, which a few changes of level do not
//! move. Each cut is then confirmed by a rank test and the size of the effect ([`confirmed`]).
//!
//! Source: Killick, Fearnhead, Eckley, JASA 107 (2012).

use super::median;
use super::rank::{CHANCE_PROBABILITY, compare};

/// Cliff's δ, the difference of the shares of pairs, from which on two segments differ in nearly all pairs.
const SURE_DELTA: f64 = 0.8;
/// Shortest segment, in points.
const SEGMENT_MIN: usize = 5;
/// Factor on the penalty noise · ln n of one more cut. At 3 white noise is cut in fewer than one series of a hundred
/// (see the test).
const PENALTY_FACTOR: f64 = 3.0;

/// First points of the second and all further segments.
pub(crate) fn changes(series: &[f64]) -> Vec<usize> {
    let n = series.len();
    if n < 2 * SEGMENT_MIN {
        return Vec::new();
    }
    let penalty = PENALTY_FACTOR * noise(series) * (n as f64).ln();
    let mut best = vec![f64::INFINITY; n + 1];
    let mut previous = vec![0; n + 1];
    best[0] = -penalty;
    let mut starts = vec![0];
    for end in SEGMENT_MIN..=n {
        let costs: Vec<f64> = starts.iter().map(|&start| best[start] + deviation(&series[start..end])).collect();
        if let Some(i) = (0..starts.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])) {
            (best[end], previous[end]) = (costs[i] + penalty, starts[i]);
        }
        let keep: Vec<usize> = (0..starts.len()).filter(|&i| costs[i] <= best[end]).map(|i| starts[i]).collect();
        starts = keep;
        // A segment that starts here ends at the earliest SEGMENT_MIN points later.
        let start = end + 1 - SEGMENT_MIN;
        if start >= SEGMENT_MIN {
            starts.push(start);
        }
    }
    let mut cuts = Vec::new();
    let mut at = previous[n];
    while at > 0 {
        cuts.push(at);
        at = previous[at];
    }
    cuts.reverse();
    cuts
}

/// The cuts at which the level really differs: by ranks with p < 1 %, Cliff's |δ| ≥ 0.8, and `share` of the level.
pub(crate) fn confirmed(series: &[f64], share: f64) -> Vec<usize> {
    let cuts = changes(series);
    let ends = cuts.iter().copied().skip(1).chain([series.len()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let real = |(start, (cut, end)): (usize, (usize, usize))| {
        let (before, after) = (&series[start..cut], &series[cut..end]);
        let test = compare(before, after);
        let (a, b) = (median(before.to_vec()), median(after.to_vec()));
        let sure = test.p_greater.min(1.0 - test.p_greater) < CHANCE_PROBABILITY && test.delta.abs() >= SURE_DELTA;
        (sure && (a - b).abs() >= share * a.abs().max(b.abs())).then_some(cut)
    };
    starts.zip(cuts.iter().copied().zip(ends)).filter_map(real).collect()
}

/// Mean absolute deviation of one point, told from neighbours.
fn noise(series: &[f64]) -> f64 {
    let steps: Vec<f64> = series.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    // For normal noise the median step is 0.954 σ and the mean absolute deviation 0.798 σ.
    let scale = median(series.iter().map(|y| y.abs()).collect());
    (median(steps) * 0.798 / 0.954).max(1e-9 * scale)
}

fn deviation(segment: &[f64]) -> f64 {
    let middle = median(segment.to_vec());
    segment.iter().map(|y| (y - middle).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    fn levels(levels: &[(usize, f64)], noise: f64, seed: u64) -> Vec<f64> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut series = Vec::new();
        for &(points, level) in levels {
            series.extend((0..points).map(|_| level + noise * random.random_range(-1.0..1.0)));
        }
        series
    }

    /// The best cut into segments by trying all of them.
    fn naive(series: &[f64]) -> f64 {
        let penalty = PENALTY_FACTOR * noise(series) * (series.len() as f64).ln();
        let mut best = vec![f64::INFINITY; series.len() + 1];
        best[0] = -penalty;
        for end in SEGMENT_MIN..=series.len() {
            let starts = (0..=end - SEGMENT_MIN).filter(|&start| start == 0 || start >= SEGMENT_MIN);
            best[end] = starts.map(|s| best[s] + deviation(&series[s..end]) + penalty).fold(f64::INFINITY, f64::min);
        }
        best[series.len()]
    }

    fn cost_of(series: &[f64], cuts: &[usize]) -> f64 {
        let penalty = PENALTY_FACTOR * noise(series) * (series.len() as f64).ln();
        let bounds: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([series.len()]).collect();
        let segments = bounds.windows(2).map(|pair| deviation(&series[pair[0]..pair[1]]));
        segments.sum::<f64>() + penalty * cuts.len() as f64
    }

    #[test]
    fn pruning_loses_nothing_against_trying_all_cuts() {
        for seed in 0..40 {
            let jump = 1.0 + seed as f64 / 10.0;
            let series = levels(&[(17, 10.0), (23, 10.0 + jump), (12, 9.0)], 1.0, seed);
            let found = cost_of(&series, &changes(&series));
            assert!((found - naive(&series)).abs() < 1e-9, "seed {seed}: {found} against {}", naive(&series));
        }
    }

    #[test]
    fn levels_are_told_apart_at_the_point_where_they_change() {
        let series = levels(&[(40, 100.0), (60, 60.0), (30, 75.0)], 2.0, 3);
        assert_eq!(confirmed(&series, 0.05), [40, 100]);
    }

    #[test]
    fn noise_and_single_outliers_are_no_change() {
        let cut = (0..200).filter(|&seed| !confirmed(&levels(&[(100, 50.0)], 5.0, seed), 0.0).is_empty()).count();
        assert!(cut <= 2, "{cut} of 200 series of noise were cut");
        let mut series = levels(&[(100, 50.0)], 1.0, 1);
        series[30] = 500.0;
        series[70] = 1.0;
        assert!(changes(&series).is_empty());
    }
}
