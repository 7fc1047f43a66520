//! Random draws, the same on every machine and in every version.
//!
//! The generator is PCG64-MCG (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
//! Random Number Generation", HMC-CS-2014-0905, 2014) from `rand_pcg`. The draws from it are written here, because
//! `rand` changes how it makes them between versions.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// The stream of one flow: two flows of a workload, and one flow under two seeds, are unrelated.
pub(super) fn stream(seed: u64, index: usize) -> Pcg64Mcg {
    let mut state = split_mix(seed).wrapping_add(index as u64);
    let mut word = || {
        state = split_mix(state);
        u128::from(state)
    };
    Pcg64Mcg::new(word() << 64 | word())
}

/// One step of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
fn split_mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A whole number below `bound`, each with exactly the same probability; 0 where `bound` is 0.
///
/// Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29(1), 2019: one multiplication, and a division
/// only where the product falls among the few that would be one too many.
#[inline]
pub(super) fn below(random: &mut Pcg64Mcg, bound: u64) -> u64 {
    let mut product = u128::from(random.next_u64()) * u128::from(bound);
    if (product as u64) < bound {
        let surplus = bound.wrapping_neg() % bound;
        while (product as u64) < surplus {
            product = u128::from(random.next_u64()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// A number above 0, up to 1, in steps of 2^-53.
#[inline]
pub(super) fn unit(random: &mut Pcg64Mcg) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_pinned() {
        let mut random = stream(1, 0);
        let drawn: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(drawn, [12_863_220_574_687_914_359, 3_769_727_940_978_368_583, 14_351_402_458_917_593_431]);
    }

    #[test]
    fn streams_of_neighbouring_seeds_and_flows_differ() {
        let mut first: Vec<u64> =
            (0..50).flat_map(|seed| (0..50).map(move |index| stream(seed, index).next_u64())).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 2500);
    }

    #[test]
    fn a_bounded_draw_is_below_its_bound_and_even() {
        let mut random = stream(7, 0);
        for bound in [1, 2, 3, 1000, u64::MAX] {
            assert!((0..1000).all(|_| below(&mut random, bound) < bound));
        }
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[below(&mut random, 6) as usize] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
    }
}
