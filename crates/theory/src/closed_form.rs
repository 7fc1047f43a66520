//! Write amplification in closed form, or as the root of one equation.
//!
//! Time is counted so that the average logical page is overwritten once in a unit. Under FIFO every block is collected
//! at the same age `T`, when a page that is overwritten at rate 1 is still valid with probability `e^-T`. Each block is
//! a turn of `T`; turns × freed share = host's writes: `(1 - e^-T) / T = rho`. That is the equation
//! `rho = (1 - p) / (-ln p)` with `p = e^-T`, and write amplification is `1 / (1 - p)`.

use super::{Zone, check_zones, lambert::lambert_w0, numeric};

/// Write amplification of FIFO under uniform random writes, at any block size.
///
/// With `a = 1 / rho`: `a / (a + W0(-a · e^-a))`. The block size does not matter, because the age at which a block is
/// collected does not depend on what is valid in it. 1 for an empty drive, infinite for a full one.
pub fn write_amplification_fifo(rho: f64) -> f64 {
    -1.0 / (-fifo_age(rho)).exp_m1()
}

/// Write amplification of greedy under uniform random writes, for large blocks.
///
/// Equal to [`write_amplification_fifo`]: by the law of large numbers all blocks of an age have the same share of valid
/// pages, so the emptiest is the oldest. For the block size of a drive see [`super::mean_field`], which is lower.
pub fn write_amplification_greedy(rho: f64) -> f64 {
    write_amplification_fifo(rho)
}

/// Write amplification when the block is drawn at random: `1 / (1 - rho)`, at any block size and under any traffic.
pub fn write_amplification_random(rho: f64) -> f64 {
    match rho {
        rho if rho <= 0.0 => 1.0,
        rho if rho >= 1.0 => f64::INFINITY,
        rho => 1.0 / (1.0 - rho),
    }
}

/// The age at which FIFO collects a block: `1 - e^-T = rho · T`.
fn fifo_age(rho: f64) -> f64 {
    if rho <= 0.0 {
        return f64::INFINITY;
    }
    if rho >= 1.0 {
        return 0.0;
    }
    let a = 1.0 / rho;
    let mut age = a + lambert_w0(-a * (-a).exp());
    // Near a full drive the sum above loses digits; Newton's iteration gets them back.
    for _ in 0..3 {
        let step = (-(-age).exp_m1() - rho * age) / ((-age).exp() - rho);
        if step.is_finite() && step.abs() < 0.5 * age {
            age -= step;
        }
    }
    age
}

/// Write amplification of FIFO when the host's traffic is spread unevenly and blocks mix zones, at any block size.
///
/// A page of a zone with overwrite rate `r` gets a new copy when it is overwritten and when its copy reaches the age
/// `T`: it is written at the rate `r / (1 - e^(-r·T))`. All pages written in `T` fill the drive. Desnoyers gives this
/// for two zones. It does not matter whether garbage collection has a frontier of its own. Not a number where the zones
/// are not shares.
pub fn write_amplification_fifo_zones(rho: f64, zones: &[Zone]) -> f64 {
    if check_zones(zones).is_err() {
        return f64::NAN;
    }
    if rho <= 0.0 {
        return 1.0;
    }
    if rho >= 1.0 {
        return f64::INFINITY;
    }
    1.0 / (rho * fifo_age_zones(rho, zones))
}

/// The age at which FIFO collects a block that mixes zones.
pub(super) fn fifo_age_zones(rho: f64, zones: &[Zone]) -> f64 {
    let room = |age: f64| zones.iter().map(|z| z.size * turn(z.traffic / z.size * age)).sum::<f64>() - 1.0 / rho;
    // A page is written at least once in a time unit, and turn(x) >= 1 + x / 2.
    numeric::root(0.0, 1.0 / rho, room)
}

/// `x / (1 - e^-x)`: room that a page needs, in pages, when `x` is its overwrites in the life of a block.
fn turn(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { -x / (-x).exp_m1() }
}

/// Write amplification when each zone has blocks of its own and the best share of the reserve, for large blocks.
///
/// The least that a policy which knows the zones can reach, short of knowing when each page is overwritten. A zone with
/// age `T` at collection has `turn(T)` pages of room for each page and a write amplification of `1 / (1 - e^-T)`; the
/// sum weighted by traffic is least where `(traffic / size) / (e^T - 1 - T)` is equal for all zones. Desnoyers (TOS
/// 2014) and Yang & Zhu. Not a number where the zones are not shares.
pub fn write_amplification_separated(rho: f64, zones: &[Zone]) -> f64 {
    if check_zones(zones).is_err() {
        return f64::NAN;
    }
    if rho <= 0.0 {
        return 1.0;
    }
    if rho >= 1.0 {
        return f64::INFINITY;
    }
    let age = |zone: &Zone, log_price: f64| age_of_gain(zone.traffic / zone.size / log_price.exp());
    let room = |log_price| zones.iter().map(|z| z.size * turn(age(z, log_price))).sum::<f64>() - 1.0 / rho;
    let log_price = numeric::root(-700.0, 200.0, room);
    zones.iter().map(|zone| -zone.traffic / (-age(zone, log_price)).exp_m1()).sum()
}

/// The `T` with `e^T - 1 - T = gain`.
fn age_of_gain(gain: f64) -> f64 {
    let small = (2.0 * gain).sqrt();
    if small < 1e-4 {
        return small - small * small / 6.0;
    }
    // The left side is convex, so Newton's iteration from above does not overshoot.
    let mut age = small.min((1.0 + gain).ln() + (1.0 + (1.0 + gain).ln()).ln());
    for _ in 0..60 {
        let step = (age.exp_m1() - age - gain) / age.exp_m1();
        age -= step;
        if step.abs() <= 1e-15 * age {
            break;
        }
    }
    age
}

/// Fill of the sealed blocks of a drive in its steady state, the `rho` to ask this module for.
///
/// Of its blocks, `free` are erased and `open` are being filled, which are half full of valid pages on average.
pub fn fill_of_sealed(logical_pages: u64, blocks: u64, pages_per_block: u64, free: f64, open: f64) -> f64 {
    let pages = pages_per_block as f64;
    let sealed = blocks as f64 - free - open;
    (logical_pages as f64 - open / 2.0 * pages) / (sealed * pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEWS: [(f64, f64); 5] = [(0.5, 0.5), (0.7, 0.3), (0.8, 0.2), (0.9, 0.1), (0.95, 0.05)];

    fn two_zones((traffic, size): (f64, f64)) -> [Zone; 2] {
        [Zone { size, traffic }, Zone { size: 1.0 - size, traffic: 1.0 - traffic }]
    }

    #[test]
    fn ssd_iq_simulated_greedy_under_uniform_traffic() {
        // SSD-iq (PVLDB 18(11), 2025), simulator, blocks of 2048 pages.
        let simulated = [(0.5, 1.25), (0.6, 1.48), (0.7, 1.87), (0.75, 2.20), (0.8, 2.69), (0.85, 3.51), (0.9, 5.17)];
        for (rho, wa) in simulated {
            let ours = write_amplification_greedy(rho);
            assert!((ours / wa - 1.0).abs() < 0.01, "{rho}: {ours} for {wa}");
        }
        assert!((write_amplification_greedy(0.875) - 4.18).abs() < 0.005);
    }

    #[test]
    fn xiang_and_kurkoski_print_236_for_an_over_provisioning_of_03() {
        assert!((write_amplification_greedy(1.0 / 1.3) - 2.36).abs() < 0.005);
    }

    #[test]
    fn the_fixed_point_holds_up_to_a_nearly_full_drive() {
        for rho in [1e-6, 0.01, 0.3, 0.9, 0.99, 0.999_9, 0.999_999] {
            let p = 1.0 - 1.0 / write_amplification_fifo(rho);
            let back = if p > 0.0 { (1.0 - p) / -p.ln() } else { 0.0 };
            assert!((back - rho).abs() < 1e-9 || rho < 0.02, "{rho}: {back}");
        }
        assert_eq!((write_amplification_fifo(0.0), write_amplification_fifo(1.0)), (1.0, f64::INFINITY));
        assert!((write_amplification_fifo(0.999_999) * 2e-6 - 1.0).abs() < 1e-5);
        assert!(write_amplification_fifo(f64::NAN).is_nan());
    }

    #[test]
    fn random_is_the_worst() {
        assert_eq!(write_amplification_random(0.75), 4.0);
        assert!(
            (1..100)
                .map(|n| f64::from(n) / 100.0)
                .all(|rho| write_amplification_random(rho) > write_amplification_fifo(rho))
        );
    }

    #[test]
    fn zones_with_equal_rates_are_no_zones() {
        for rho in [0.1, 0.5, 0.9, 0.99] {
            let whole = write_amplification_fifo(rho);
            for zones in [two_zones((0.5, 0.5)), two_zones((0.2, 0.2))] {
                assert!((write_amplification_fifo_zones(rho, &zones) / whole - 1.0).abs() < 1e-12);
                assert!((write_amplification_separated(rho, &zones) / whole - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn ssd_iq_simulated_skew() {
        // Greedy with a single frontier and blocks of 2048 pages, which FIFO is near to; and the optimum.
        let greedy = [4.17, 4.30, 4.52, 5.11, 5.90];
        let optimal = [4.17, 3.63, 2.94, 1.99, 1.44];
        for (skew, (greedy, optimal)) in SKEWS.into_iter().zip(greedy.into_iter().zip(optimal)) {
            let zones = two_zones(skew);
            let (fifo, separated) =
                (write_amplification_fifo_zones(0.875, &zones), write_amplification_separated(0.875, &zones));
            assert!((fifo / greedy - 1.0).abs() < 0.01, "{skew:?}: {fifo} for {greedy}");
            assert!((separated / optimal - 1.0).abs() < 0.01, "{skew:?}: {separated} for {optimal}");
        }
    }

    #[test]
    fn separation_never_hurts_and_bad_zones_have_no_answer() {
        for rho in [0.05, 0.5, 0.9, 0.999] {
            for skew in SKEWS {
                let zones = two_zones(skew);
                let (mixed, apart) =
                    (write_amplification_fifo_zones(rho, &zones), write_amplification_separated(rho, &zones));
                assert!(apart >= 1.0 && apart <= mixed * (1.0 + 1e-9), "{rho} {skew:?}: {apart} {mixed}");
            }
        }
        assert!(write_amplification_fifo_zones(0.5, &[]).is_nan());
        assert!(write_amplification_separated(0.5, &[Zone { size: 1.0, traffic: 0.9 }]).is_nan());
    }

    #[test]
    fn free_and_open_blocks_do_not_count() {
        assert_eq!(fill_of_sealed(640, 20, 64, 4.0, 0.0), 0.625);
        assert_eq!(fill_of_sealed(640, 20, 64, 3.0, 1.0), (640.0 - 32.0) / 1024.0);
    }
}
