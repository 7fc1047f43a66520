//! Whether a series of measurements is steady, and at what.
//!
//! SNIA's rule (Solid State Storage Performance Test Specification 2.0.2, "steady state") asks that five rounds stay
//! within 20 % of their mean and that a line fitted to them moves by at most 10 % of it. A drive whose collection comes
//! in bursts never meets it, however long it runs, and one that creeps meets it too early for figures that are told to
//! within a tenth. So the rule here asks the same two things of more rounds: the later half of the series shows no
//! trend, or one of no account, and its mean is known well enough.
//!
//! A series may be level for a while and then move to another level, as where units fall into step while they collect.
//! The scatter of neighbours says nothing of that; means of longer stretches do ([`wandering`]). That is the method of
//! batch means (Conway, Management Science 10, 1963), with a few long batches for the slow part and neighbours for the
//! noise.

/// Rounds that are examined, at least.
const ROUNDS_MIN: usize = 5;
/// Share of the mean by which a fitted line may move and is of no account: half of the 4 % within which a steady mean
/// is known.
const EXCURSION_SHARE: f64 = 0.02;
/// Standard errors of its slope below which a fitted line has none: 95 in 100 lines through noise are below.
const SLOPE_STANDARD_ERRORS: f64 = 2.0;

/// What a series is steady at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    /// Mean of the later half.
    pub(crate) mean: f64,
    /// Lower end of its 95 % interval.
    pub(crate) low: f64,
    /// Upper end of its 95 % interval.
    pub(crate) high: f64,
}

/// What the later half of a series says of its level, whether it is steady or not.
pub(crate) fn level(series: &[f64]) -> Settled {
    let later = later_half(series);
    let (mean, deviation) = spread(later);
    // 2.3 stands for 1.96 where so few rounds tell the deviation (Student's t at 8 degrees of freedom).
    let half = 2.3 * deviation / (later.len().max(1) as f64).sqrt();
    Settled { mean, low: mean - half, high: mean + half }
}

/// The level of a series that is steady, its mean known to within `tolerance` of itself.
pub(crate) fn settled(series: &[f64], tolerance: f64) -> Option<Settled> {
    let later = later_half(series);
    if later.len() < ROUNDS_MIN {
        return None;
    }
    let level = level(series);
    let known = level.high - level.mean <= tolerance * level.mean;
    (known && !has_trend(later)).then_some(level)
}

/// The lowest and the highest mean of four stretches of the last two thirds of a series, where they are further apart
/// than the differences of neighbours explain.
pub(crate) fn wandering(series: &[f64]) -> Option<(f64, f64)> {
    let last = &series[series.len() / 3..];
    let length = last.len() / STRETCHES;
    if length < 2 {
        return None;
    }
    let steps = last.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>() / (last.len() - 1) as f64;
    let error = (steps / 2.0 / length as f64).sqrt();
    let means = last.chunks_exact(length).take(STRETCHES).map(|stretch| spread(stretch).0);
    let (low, high) = means.fold((f64::MAX, f64::MIN), |(low, high), mean| (low.min(mean), high.max(mean)));
    (high - low > APART_STANDARD_ERRORS * error).then_some((low, high))
}

/// Stretches, and standard errors of their means between the lowest and the highest: of four that differ by chance it
/// is more in fewer than one series of a hundred (the studentized range at 99 %, four means and many degrees of
/// freedom, is 4.4; few degrees make it larger).
const STRETCHES: usize = 4;
/// Standard errors of their means between the lowest and the highest stretch: of four that differ by chance it is
/// more in fewer than one series of a hundred (the studentized range at 99 %, four means and many degrees of freedom,
/// is 4.4; few degrees make it larger).
const APART_STANDARD_ERRORS: f64 = 5.0;

fn later_half(series: &[f64]) -> &[f64] {
    &series[series.len() / 2..]
}

fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|y| (y - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

fn has_trend(values: &[f64]) -> bool {
    let n = values.len() as f64;
    let (mean, _) = spread(values);
    let middle = (n - 1.0) / 2.0;
    let (sxy, sxx) = values.iter().enumerate().fold((0.0, 0.0), |(sxy, sxx), (i, y)| {
        let x = i as f64 - middle;
        (sxy + x * (y - mean), sxx + x * x)
    });
    let slope = sxy / sxx;
    let residuals = values.iter().enumerate().map(|(i, y)| (y - mean - slope * (i as f64 - middle)).powi(2));
    let error = (residuals.sum::<f64>() / (n - 2.0) / sxx).sqrt();
    slope.abs() * (n - 1.0) > EXCURSION_SHARE * mean.abs() && slope.abs() > SLOPE_STANDARD_ERRORS * error
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn a_level_is_steady_and_a_slope_is_not() {
        let level: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i % 3)).collect();
        let settled_at = settled(&level, 0.05).unwrap();
        assert!((settled_at.mean - 101.0).abs() < 0.5, "{settled_at:?}");
        let slope: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i)).collect();
        assert!(settled(&slope, 0.05).is_none());
        assert!(settled(&level[..8], 0.05).is_none(), "four rounds are too few");
    }

    #[test]
    fn a_bursty_level_is_steady_once_its_mean_is_known() {
        let mut random = Pcg64Mcg::seed_from_u64(3);
        let bursts: Vec<f64> = (0..600).map(|_| if random.random_range(0..4) == 0 { 20.0 } else { 3.0 }).collect();
        assert!(settled(&bursts[..20], 0.05).is_none());
        assert!((settled(&bursts, 0.15).unwrap().mean - 7.25).abs() < 1.0);
    }

    #[test]
    fn a_series_that_moves_to_another_level_wanders_and_noise_does_not() {
        let mut random = Pcg64Mcg::seed_from_u64(4);
        let mut noisy = |level: f64| level * random.random_range(0.9..1.1);
        let moves: Vec<f64> = (0..48).map(|i| noisy(if i < 24 { 12_000.0 } else { 9_000.0 })).collect();
        assert!(settled(&moves, 0.05).is_some(), "its later half is level");
        let (low, high) = wandering(&moves).unwrap();
        assert!((low / 9_000.0 - 1.0).abs() < 0.05 && (high / 12_000.0 - 1.0).abs() < 0.05, "{low} to {high}");
        let alarms = (0..200).filter(|_| {
            let level: Vec<f64> = (0..24).map(|_| noisy(100.0)).collect();
            wandering(&level).is_some()
        });
        assert!(alarms.count() <= 6);
        assert_eq!(wandering(&[1.0, 2.0, 1.0]), None, "too short");
    }

    #[test]
    fn the_start_of_a_series_is_forgotten() {
        let series: Vec<f64> = (0..40).map(|i| if i < 15 { 500.0 - f64::from(i) } else { 100.0 }).collect();
        assert!((settled(&series, 0.05).unwrap().mean - 100.0).abs() < 1e-9);
    }
}
