//! The mean field of garbage collection under uniform random writes, at any block size.
//!
//! Time is counted so that a logical page is overwritten at rate 1. Of the sealed blocks, let `m(i)` be the share with
//! `i` valid pages, `gamma` the rate at which a sealed block is collected, and `p(i)` the probability that a collected
//! block has `i` valid pages. A block with `i` valid pages loses one at rate `i`; one that is collected is replaced by
//! one with `b`:
//!
//! ```text
//!   dm(i)/dt = (i+1) · m(i+1) - i · m(i) - gamma · p(i)            i < b
//!   dm(b)/dt = -b · m(b) - gamma · p(b) + gamma
//! ```
//!
//! In the steady state what flows from `i` to `i-1` is what is collected below `i`: `i · m(i) = gamma · P(victim < i)`
//! (Van Houdt 2013). The policy gives `p` for `m`, so both follow from `gamma`, from `i = b` downwards. The mean of `m`
//! rises with `gamma`; it must be `rho · b`. Write amplification is `gamma / rho`, programs ÷ host's writes of a block.
//!
//! A page is as likely to be overwritten wherever it is, so it does not matter which frontier garbage collection uses.
//! Pages that are overwritten while their block is still open are neglected: an open block is one of many.

use super::numeric::{self, Binomial};
use super::{Policy, SteadyState, TheoryError, check};

/// Shares of sealed blocks, and probabilities of victims, by valid count.
pub(super) type Counts = (Vec<f64>, Vec<f64>);

/// The steady state of a policy under uniform random writes.
///
/// # Errors
/// When the fill is not between 0 and 1, or the block or the policy is degenerate.
pub fn mean_field(rho: f64, b: u32, policy: Policy) -> Result<SteadyState, TheoryError> {
    check(rho, b, policy)?;
    let at = |turnover| match policy {
        Policy::Greedy => windowed(b, 1.0, turnover),
        Policy::WindowedGreedy { share } => windowed(b, share, turnover),
        Policy::Fifo => windowed(b, 0.0, turnover),
        Policy::Random => random_greedy(b, 1.0, turnover),
        Policy::RandomGreedy { d } => random_greedy(b, f64::from(d), turnover),
    };
    // Between no page moved and a block drawn at random; a little more for rounding.
    let (least, most) = (rho * (1.0 - 1e-9), rho / (1.0 - rho) * (1.0 + 1e-9));
    let turnover = numeric::root(least, most, |turnover| numeric::mean(&at(turnover).0) - rho * f64::from(b));
    let (valid_counts, victim_counts) = at(turnover);
    Ok(SteadyState { write_amplification: turnover / rho, valid_counts, victim_counts })
}

/// Windowed greedy, with greedy (window of all) and FIFO (window of none) as its ends.
///
/// Outside of the window blocks only age, until they enter it at the age `(1 - share) / turnover`. Inside, the emptiest
/// is taken: seen from the top, the levels fill with what comes from above and from outside, as long as the window has
/// room. Where it ends, the rest of what arrives is taken at once, and everything below.
fn windowed(b: u32, share: f64, turnover: f64) -> Counts {
    let age = (1.0 - share) / turnover;
    let entering = Binomial::new(b, (-age).exp());
    let levels = b as usize + 1;
    let (mut valid, mut victims) = (vec![0.0; levels], vec![0.0; levels]);
    let (mut room, mut from_above) = (share, 0.0);
    // Share of blocks that have not entered the window, and of them those that enter with at least `i` valid pages.
    let (mut young, mut entered_above) = (1.0 - share, 0.0);
    for i in (1..levels).rev() {
        let entry = entering.probability(i);
        entered_above += entry;
        let outside = (turnover * (1.0 - entered_above) / i as f64).clamp(0.0, young);
        young -= outside;
        let arriving = from_above + turnover * entry;
        let inside = (arriving / i as f64).min(room);
        room -= inside;
        from_above = i as f64 * inside;
        victims[i] = ((arriving - from_above) / turnover).max(0.0);
        valid[i] = outside + inside;
    }
    valid[0] = young + room;
    victims[0] = from_above / turnover + entering.probability(0);
    (valid, victims)
}

/// The emptiest of `d` drawn: a victim has `i` or more valid pages if all drawn have.
///
/// With `M` the share of blocks that have `i+1` or more, `i · m = turnover · (1 - (M + m)^d)`.
fn random_greedy(b: u32, d: f64, turnover: f64) -> Counts {
    let levels = b as usize + 1;
    let (mut valid, mut victims) = (vec![0.0; levels], vec![0.0; levels]);
    let (mut above, mut above_power) = (0.0_f64, 0.0);
    for i in (1..levels).rev() {
        let m = level(i as f64, d, turnover, above, above_power);
        let power = (above + m).powf(d).max(above_power);
        valid[i] = m;
        victims[i] = power - above_power;
        (above, above_power) = (above + m, power);
    }
    valid[0] = (1.0 - above).max(0.0);
    victims[0] = (1.0 - above_power).max(0.0);
    (valid, victims)
}

/// The `m` with `i · m = turnover · (1 - (above + m)^d)`. The difference of the sides is convex and grows with `m`, so
/// that Newton's iteration from above does not overshoot.
fn level(i: f64, d: f64, turnover: f64, above: f64, above_power: f64) -> f64 {
    let mut m = (turnover * (1.0 - above_power) / i).min(1.0 - above).max(0.0);
    for _ in 0..100 {
        let reach = above + m;
        let power = reach.powf(d);
        let slope = i + turnover * d * power / reach.max(f64::MIN_POSITIVE);
        let step = (i * m - turnover * (1.0 - power)) / slope;
        m = (m - step).max(0.0);
        if step <= 1e-15 * reach {
            break;
        }
    }
    m
}

#[cfg(test)]
mod tests {
    use super::super::{write_amplification_fifo, write_amplification_random};
    use super::*;

    const FILLS: [f64; 6] = [0.1, 0.5, 0.75, 0.875, 0.95, 0.99];
    const POLICIES: [Policy; 9] = [
        Policy::Greedy,
        Policy::Fifo,
        Policy::Random,
        Policy::RandomGreedy { d: 1 },
        Policy::RandomGreedy { d: 3 },
        Policy::RandomGreedy { d: 100_000 },
        Policy::WindowedGreedy { share: 0.0 },
        Policy::WindowedGreedy { share: 0.3 },
        Policy::WindowedGreedy { share: 1.0 },
    ];

    fn wa(rho: f64, b: u32, policy: Policy) -> f64 {
        mean_field(rho, b, policy).unwrap().write_amplification
    }

    fn near(a: f64, b: f64, tolerance: f64) -> bool {
        (a / b - 1.0).abs() < tolerance
    }

    #[test]
    fn distributions_sum_to_one_and_fit_the_fill() {
        for rho in FILLS {
            for b in [1, 2, 7, 64, 1024] {
                for policy in POLICIES {
                    let state = mean_field(rho, b, policy).unwrap();
                    let case = format!("{rho} {b} {policy:?} {state:?}");
                    for counts in [&state.valid_counts, &state.victim_counts] {
                        assert_eq!(counts.len(), b as usize + 1);
                        assert!(
                            counts.iter().all(|&p| p >= 0.0) && (counts.iter().sum::<f64>() - 1.0).abs() < 1e-9,
                            "{case}"
                        );
                    }
                    assert!((state.mean_valid() - rho * f64::from(b)).abs() < 1e-8 * f64::from(b), "{case}");
                    let pages = f64::from(b);
                    assert!(near(state.write_amplification, pages / (pages - state.mean_victim()), 1e-6), "{case}");
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_families_meet() {
        for rho in FILLS {
            for b in [1, 16, 256] {
                let (greedy, fifo, random) =
                    (wa(rho, b, Policy::Greedy), wa(rho, b, Policy::Fifo), wa(rho, b, Policy::Random));
                assert!(near(fifo, write_amplification_fifo(rho), 1e-9), "{rho} {b}: {fifo}");
                assert!(near(random, write_amplification_random(rho), 1e-9), "{rho} {b}: {random}");
                assert!(near(wa(rho, b, Policy::RandomGreedy { d: 1 }), random, 1e-12));
                assert!(near(wa(rho, b, Policy::RandomGreedy { d: 1_000_000 }), greedy, 1e-3));
                assert!(near(wa(rho, b, Policy::WindowedGreedy { share: 1.0 }), greedy, 1e-12));
                assert!(near(wa(rho, b, Policy::WindowedGreedy { share: 1e-9 }), fifo, 1e-6));
            }
        }
    }

    #[test]
    fn more_choice_is_never_worse() {
        let by_d: Vec<f64> = [1, 2, 4, 8, 16, 64].map(|d| wa(0.875, 64, Policy::RandomGreedy { d })).to_vec();
        let by_share: Vec<f64> =
            (0..=10).map(|n| wa(0.875, 64, Policy::WindowedGreedy { share: f64::from(n) / 10.0 })).collect();
        assert!(by_d.is_sorted_by(|a, b| a > b) && by_share.is_sorted_by(|a, b| a >= b), "{by_d:?} {by_share:?}");
    }

    #[test]
    fn greedy_grows_with_the_block_towards_fifo() {
        let by_block: Vec<f64> = [1, 4, 16, 64, 256, 4096, 65536].map(|b| wa(0.875, b, Policy::Greedy)).to_vec();
        assert!(by_block.is_sorted_by(|a, b| a < b), "{by_block:?}");
        assert!(near(by_block[6], write_amplification_fifo(0.875), 2e-4), "{by_block:?}");
        assert!(near(wa(0.875, 2048, Policy::Greedy), 4.17, 0.002), "SSD-iq's simulator, blocks of 2048 pages");
        assert!(near(by_block[0], 1.0, 1e-9), "with one page to a block, an invalid page is a free block");
    }

    #[test]
    fn the_equations_are_stationary() {
        for policy in POLICIES {
            let (rho, b) = (0.8, 32);
            let SteadyState { write_amplification, valid_counts: m, victim_counts: p } =
                mean_field(rho, b, policy).unwrap();
            let turnover = write_amplification * rho;
            for i in 0..=b as usize {
                let above = m.get(i + 1).map_or(turnover, |m| (i + 1) as f64 * m);
                assert!((above - i as f64 * m[i] - turnover * p[i]).abs() < 1e-8, "{policy:?} {i}");
            }
        }
    }

    #[test]
    fn degenerate_questions_are_refused() {
        assert_eq!(mean_field(1.0, 64, Policy::Greedy), Err(TheoryError::Fill(1.0)));
        assert!(mean_field(f64::NAN, 64, Policy::Greedy).is_err());
        assert_eq!(mean_field(0.5, 0, Policy::Greedy), Err(TheoryError::BlockSize));
        assert_eq!(mean_field(0.5, 4, Policy::RandomGreedy { d: 0 }), Err(TheoryError::Choices));
        assert_eq!(mean_field(0.5, 4, Policy::WindowedGreedy { share: 1.5 }), Err(TheoryError::Window(1.5)));
    }
}
