//! Where throughput stops growing with the requests in flight.
//!
//! The model has two segments: up to the knee each request in flight adds as much as the first (Little's law at constant
//! latency), from there on throughput stays. Both segments are fitted to the logarithms by least squares, and the knee k
//! is where they meet:
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
    let points: Vec<(f64, f64)> =
        std::iter::zip(depths, throughput).map(|(d, y)| (d.ln(), y.max(f64::MIN_POSITIVE).ln())).collect();
    if points.len() < 3 {
        return None;
    }
    let candidates = (1..points.len()).map(|rising| {
        let (up, flat) = points.split_at(rising);
        (mean(up.iter().map(|(d, y)| y - d)), mean(flat.iter().map(|(_, y)| *y)))
    });
    let error =
        |&(ln_a, ln_p): &(f64, f64)| -> f64 { points.iter().map(|(d, y)| (y - (ln_a + d).min(ln_p)).powi(2)).sum() };
    let (ln_a, ln_p) = candidates.min_by(|a, b| error(a).total_cmp(&error(b)))?;
    let knee = Knee { slope: ln_a.exp(), plateau: ln_p.exp() };
    (knee.depth() < 0.99 * *depths.last()?).then_some(knee)
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
