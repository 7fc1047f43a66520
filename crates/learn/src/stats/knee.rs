//! Where throughput stops growing with the requests in flight.
//!
//! The model has two segments: up to the knee each request in flight adds as much as the first (Little's law at
//! constant latency), from there on throughput stays. Both segments are fitted to the logarithms by least squares, and
//! the knee k is where they meet:
//!
//! ```text
//!   ln y(d) = min(ln a + ln d, ln P)        k = P / a
//! ```
//!
//! A soft knee, as random requests over a few flash dies give it, is told by where its asymptotes meet.

/// Both segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Knee {
    /// Requests a second that each request in flight adds before the knee.
    pub(crate) slope: f64,
    /// Requests a second from the knee on.
    pub(crate) plateau: f64,
}

impl Knee {
    /// Requests in flight where the segments meet.
    pub(crate) fn depth(&self) -> f64 {
        self.plateau / self.slope
    }

    #[cfg(test)]
    fn at(&self, depth: f64) -> f64 {
        (self.slope * depth).min(self.plateau)
    }
}

/// Fits both segments to throughput over depth; `None` where throughput still grows at the last depth, or there are
/// fewer than three points.
///
/// Every split of the points into a rising and a flat part is tried; the best one by the error of the whole model wins.
pub(crate) fn fit(depths: &[f64], throughput: &[f64]) -> Option<Knee> {
    let fits = fits(depths, throughput);
    let (_, knee) = *fits.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    (knee.depth() < 0.99 * *depths.last()?).then_some(knee)
}

/// The smallest and the largest depth of the knees of all splits that fit nearly as well as the best one: where a curve
/// bends gently the next split may be the best one of another day.
pub(crate) fn rivals(depths: &[f64], throughput: &[f64]) -> Option<(f64, f64)> {
    let fits = fits(depths, throughput);
    let best = fits.iter().map(|fit| fit.0).min_by(f64::total_cmp)?;
    let near = fits.iter().filter(|fit| fit.0 <= NEARLY_AS_GOOD_FACTOR * best).map(|fit| fit.1.depth());
    Some(near.fold((f64::MAX, f64::MIN), |(low, high), depth| (low.min(depth), high.max(depth))))
}

/// Factor on the squared error of the best split up to which another split fits nearly as well.
const NEARLY_AS_GOOD_FACTOR: f64 = 1.1;

/// Each split of the points with the squared error of its model.
fn fits(depths: &[f64], throughput: &[f64]) -> Vec<(f64, Knee)> {
    let points: Vec<(f64, f64)> =
        std::iter::zip(depths, throughput).map(|(d, y)| (d.ln(), y.max(f64::MIN_POSITIVE).ln())).collect();
    if points.len() < 3 {
        return Vec::new();
    }
    let fit = |rising: usize| {
        let (up, flat) = points.split_at(rising);
        let (ln_a, ln_p) = (mean(up.iter().map(|(d, y)| y - d)), mean(flat.iter().map(|(_, y)| *y)));
        let error = points.iter().map(|(d, y)| (y - (ln_a + d).min(ln_p)).powi(2)).sum();
        (error, Knee { slope: ln_a.exp(), plateau: ln_p.exp() })
    };
    (1..points.len()).map(fit).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / n
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEPTHS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0, 128.0];

    #[test]
    fn a_curve_that_bends_gently_has_rivals_and_one_that_breaks_has_none() {
        let depths = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0];
        let curve = |y: &dyn Fn(f64) -> f64| depths.map(y);
        let breaks = curve(&|d: f64| d.min(9.0));
        let (low, high) = rivals(&depths, &breaks).unwrap();
        assert!(high / low < 1.001, "{low} {high}");
        // In between lies one point that belongs to the rise as well as to the plateau.
        let depths = [1.0, 2.0, 4.0, 12.0, 32.0, 64.0, 128.0];
        let (low, high) = rivals(&depths, &[1.0, 2.0, 4.0, 12.0 * 0.75, 12.0, 12.0, 12.0]).unwrap();
        assert!(low < 11.5 && high > 12.5, "{low} {high}");
    }

    proptest! {
        #[test]
        fn the_knee_of_two_segments_is_where_they_meet(slope in 1.0_f64..1e6, knee in 1.0_f64..60.0) {
            let model = Knee { slope, plateau: slope * knee };
            let throughput = DEPTHS.map(|depth| model.at(depth));
            let found = fit(&DEPTHS, &throughput).unwrap();
            prop_assert!((found.depth() / knee - 1.0).abs() < 1e-9, "{} for {knee}", found.depth());
        }

        #[test]
        fn a_little_noise_moves_it_little(knee in 2.0_f64..40.0, noise in prop::collection::vec(0.99_f64..1.01, 10)) {
            let model = Knee { slope: 10.0, plateau: 10.0 * knee };
            let throughput: Vec<f64> = std::iter::zip(DEPTHS, noise).map(|(d, n)| model.at(d) * n).collect();
            let found = fit(&DEPTHS, &throughput).unwrap();
            prop_assert!((found.depth() / knee - 1.0).abs() < 0.04, "{} for {knee}", found.depth());
        }
    }

    #[test]
    fn throughput_that_still_grows_has_no_knee() {
        assert_eq!(fit(&DEPTHS, &DEPTHS), None);
        assert_eq!(fit(&DEPTHS[..2], &[1.0, 1.0]), None);
    }

    #[test]
    fn one_request_at_a_time_is_a_knee_at_one() {
        assert!((fit(&DEPTHS, &[7.0; 10]).unwrap().depth() - 1.0).abs() < 1e-9);
    }
}
