//! Lambert's W function.

use std::f64::consts::E;

/// The principal branch of Lambert's W: the `w >= -1` with `w · e^w = x`; not a number below `-1/e`.
///
/// Halley's iteration from a start that is good on each part of the axis. Source: R. Corless et al., "On the Lambert W
/// Function", Advances in Computational Mathematics 5, 1996, equations 4.22 (branch point), 4.19 (large `x`) and 5.9
/// (iteration).
pub fn lambert_w0(x: f64) -> f64 {
    let above_branch_point = E * x + 1.0;
    if above_branch_point.is_nan() || above_branch_point < -1e-15 {
        return f64::NAN;
    }
    if x == 0.0 || x == f64::INFINITY {
        return x;
    }
    let mut w = start(x, above_branch_point.max(0.0));
    for _ in 0..50 {
        let exp = w.exp();
        let error = w * exp - x;
        let slope = exp * (w + 1.0);
        if slope <= 0.0 {
            break;
        }
        let step = error / (slope - (w + 2.0) * error / (2.0 * w + 2.0));
        w = (w - step).max(-1.0);
        if step.abs() <= 4.0 * f64::EPSILON * w.abs() {
            break;
        }
    }
    w
}

fn start(x: f64, above_branch_point: f64) -> f64 {
    if x < -0.25 {
        let p = (2.0 * above_branch_point).sqrt();
        -1.0 + p * (1.0 - p * (1.0 / 3.0 - p * 11.0 / 72.0))
    } else if x < E {
        x.ln_1p() * (1.0 - 0.25 * x.ln_1p().max(0.0))
    } else {
        x.ln() - x.ln().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (x, w) in [(E, 1.0), (0.0, 0.0), (1.0, 0.567_143_290_409_783_8), (-0.5 * (-0.5_f64).exp(), -0.5)] {
            assert!((lambert_w0(x) - w).abs() < 1e-15, "{x}: {}", lambert_w0(x));
        }
        assert!((lambert_w0(-1.0 / E) + 1.0).abs() < 1e-7);
        assert!(lambert_w0(-0.4).is_nan() && lambert_w0(f64::NAN).is_nan());
        assert_eq!(lambert_w0(f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn it_is_the_inverse_of_w_exp_w() {
        for n in 0..4000 {
            let w = -0.999 + f64::from(n) * 0.01;
            let back = lambert_w0(w * w.exp());
            assert!((back - w).abs() < 1e-12 * (1.0 + w.abs() + 1.0 / (w + 1.0)), "{w}: {back}");
        }
    }
}
