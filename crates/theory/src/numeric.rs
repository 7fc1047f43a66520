//! Numerical tools: roots, fixed points, the binomial distribution.

/// A zero of a continuous function between two points where its signs differ, or the end that is nearer to one.
///
/// False position with halving of the end that stays (the Illinois rule), and a bisection now and then, so that the
/// interval always shrinks.
pub(super) fn root(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (mut at_low, mut at_high) = (function(low), function(high));
    if at_low * at_high > 0.0 {
        return if at_low.abs() < at_high.abs() { low } else { high };
    }
    for step in 0..200 {
        if (high - low).abs() <= 2e-15 * high.abs() || at_low == at_high {
            break;
        }
        let secant = high - at_high * (high - low) / (at_high - at_low);
        let middle = if step % 4 == 3 { f64::midpoint(low, high) } else { secant };
        let at_middle = function(middle);
        if at_middle == 0.0 {
            return middle;
        }
        if at_middle * at_high < 0.0 {
            (low, at_low) = (high, at_high);
        } else {
            at_low /= 2.0;
        }
        (high, at_high) = (middle, at_middle);
    }
    high
}

/// Mean of a distribution over 0, 1, 2, ….
pub(super) fn mean(probabilities: &[f64]) -> f64 {
    probabilities.iter().zip(0_u32..).map(|(p, i)| p * f64::from(i)).sum()
}

/// A binomial distribution without its negligible tails.
#[derive(Clone, Debug)]
pub(super) struct Binomial {
    /// The count that the first probability belongs to.
    pub(super) first: usize,
    pub(super) probabilities: Vec<f64>,
}

impl Binomial {
    /// Probabilities below this part of the greatest one are left out.
    const NEGLIGIBLE: f64 = 1e-18;

    /// How many of `n` succeed, each with probability `p`. Walks from the mode outwards, so that nothing underflows.
    pub(super) fn new(n: u32, p: f64) -> Self {
        if p <= 0.0 || p >= 1.0 {
            return Self { first: if p > 0.0 { n as usize } else { 0 }, probabilities: vec![1.0] };
        }
        let odds = p / (1.0 - p);
        let mode = ((f64::from(n) + 1.0) * p).min(f64::from(n)) as u32;
        let above = Self::walk(mode..n, |k| f64::from(n - k) / f64::from(k + 1) * odds);
        let below = Self::walk((1..=mode).rev(), |k| f64::from(k) / f64::from(n - k + 1) / odds);
        let sum = 1.0 + above.iter().sum::<f64>() + below.iter().sum::<f64>();
        let ascending = below.iter().rev().chain(std::iter::once(&1.0)).chain(&above);
        Self { first: mode as usize - below.len(), probabilities: ascending.map(|p| p / sum).collect() }
    }

    /// Multiplies ratios of neighbours until the rest is negligible.
    fn walk(counts: impl Iterator<Item = u32>, ratio: impl Fn(u32) -> f64) -> Vec<f64> {
        let product = counts.scan(1.0, |product, k| {
            *product *= ratio(k);
            Some(*product)
        });
        product.take_while(|&product| product > Self::NEGLIGIBLE).collect()
    }

    pub(super) fn probability(&self, count: usize) -> f64 {
        count.checked_sub(self.first).and_then(|n| self.probabilities.get(n)).copied().unwrap_or(0.0)
    }

    /// Counts with their probabilities.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.first..).zip(self.probabilities.iter().copied())
    }
}

/// A positive point from which nothing changes, up to an error of each component; `None` when none is reached.
///
/// By Anderson's acceleration: each step extrapolates from the last few so that the change, if it were linear, would
/// vanish. Source: H. Walker, P. Ni, "Anderson Acceleration for Fixed-Point Iterations", SIAM J. Numerical Analysis
/// 49(4), 2011.
pub(super) fn fixed_point(start: Vec<f64>, tolerance: f64, change: impl Fn(&[f64]) -> Vec<f64>) -> Option<Vec<f64>> {
    let depth = start.len().min(5);
    let mut at = start;
    // Differences of successive points and of their changes.
    let mut history: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let mut last: Option<(Vec<f64>, Vec<f64>)> = None;
    for _ in 0..100 {
        let change = change(&at);
        if !change.iter().all(|change| change.is_finite()) {
            return None;
        }
        if change.iter().all(|change| change.abs() <= tolerance) {
            return Some(at);
        }
        if let Some((last_at, last_change)) = last {
            history.push((difference(&at, &last_at), difference(&change, &last_change)));
            if history.len() > depth {
                history.remove(0);
            }
        }
        let next = extrapolate(&at, &change, &history);
        last = Some((std::mem::replace(&mut at, next), change));
    }
    None
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn extrapolate(at: &[f64], change: &[f64], history: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
    let weights = least_squares(change, history);
    let step = |n: usize| {
        let known: f64 = weights.iter().zip(history).map(|(w, (point, change))| w * (point[n] + change[n])).sum();
        change[n] - known
    };
    // Far from the solution a step may overshoot; the quantities are positive.
    (0..at.len()).map(|n| (at[n] + step(n)).clamp(at[n] / 4.0, (4.0 * at[n]).max(at[n] + change[n]))).collect()
}

/// The combination of the history's changes that comes nearest to `change`.
fn least_squares(change: &[f64], history: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
    let scale: f64 = history.iter().map(|(_, c)| dot(c, c)).fold(f64::MIN_POSITIVE, f64::max);
    let row = |(n, (_, a)): (usize, &(Vec<f64>, Vec<f64>))| {
        let mut row: Vec<f64> = history.iter().map(|(_, b)| dot(a, b) / scale).collect();
        row[n] += 1e-15;
        row.push(dot(a, change) / scale);
        row
    };
    solve(history.iter().enumerate().map(row).collect())
}

/// Solves linear equations, each a row of coefficients with the right side at its end, by Gauss–Jordan elimination with
/// row pivoting.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let n = rows.len();
    for column in 0..n {
        let best = (column..n).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()));
        rows.swap(column, best.unwrap_or(column));
        let pivot = rows[column].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|&(n, _)| n != column) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    (0..n).map(|row| rows[row][n] / rows[row][row]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_found() {
        assert!((root(0.0, 2.0, |x| x * x - 2.0) - 2.0_f64.sqrt()).abs() < 1e-14);
        assert!((root(0.0, 1000.0, |x| (-x).exp() - 1e-3) - 1000.0_f64.ln()).abs() < 1e-12);
        assert_eq!(root(1.0, 2.0, |x| x), 1.0);
    }

    #[test]
    fn binomials_sum_to_one_and_have_their_mean() {
        for (n, p) in [(1, 0.3), (10, 0.0), (10, 1.0), (64, 0.999), (4096, 0.5), (100_000, 1e-4)] {
            let binomial = Binomial::new(n, p);
            let sum: f64 = binomial.probabilities.iter().sum();
            let mean: f64 = binomial.iter().map(|(k, p)| k as f64 * p).sum();
            assert!((sum - 1.0).abs() < 1e-12 && (mean - f64::from(n) * p).abs() < 1e-9 * f64::from(n));
        }
        assert!((Binomial::new(3, 0.5).probability(2) - 0.375).abs() < 1e-15);
        assert_eq!(Binomial::new(3, 1.0).probability(2), 0.0);
    }

    #[test]
    fn a_slow_fixed_point_is_reached() {
        let change = |x: &[f64]| vec![0.01 * (2.0 - 0.5 * x[1] - x[0]), 0.1 * (x[0].sqrt() - x[1])];
        let found = fixed_point(vec![1.0, 1.0], 1e-13, change).unwrap();
        assert!((found[0] + 0.5 * found[1] - 2.0).abs() < 1e-9 && (found[1] * found[1] - found[0]).abs() < 1e-9);
        assert_eq!(fixed_point(vec![1.0], 1e-9, |_| vec![1.0]), None);
    }
}
