//! A fixed permutation of positions, so that popular ones do not lie side by side.
//!
//! Each step (add, multiply by an odd number, xor with the high bits shifted down) is a bijection of the b-bit numbers,
//! b the bits that the last position needs; they are the steps of the usual integer hashes, such as SplitMix64's.
//! A result beyond the last position goes through the steps again until it is inside ("cycle walking": Black and
//! Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002), less than once on average. The result is a bijection
//! of the positions, without a table.

/// A permutation of 0 … n − 1 that depends on n only.
#[derive(Debug)]
pub(super) struct Scatter {
    positions: u64,
    mask: u64,
    shift: u32,
}

impl Scatter {
    /// A permutation of `positions` (at least one).
    pub(super) fn new(positions: u64) -> Self {
        let bits = u64::BITS - (positions - 1).leading_zeros();
        let mask = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
        Self { positions, mask, shift: (bits / 2).max(1) }
    }

    /// Where `rank` is.
    #[inline]
    pub(super) fn place(&self, rank: u64) -> u64 {
        let mut x = rank;
        loop {
            x = self.step(x, 0x9E37_79B9_7F4A_7C15);
            x = self.step(x, 0xBF58_476D_1CE4_E5B9);
            x = self.step(x, 0x94D0_49BB_1331_11EB);
            if x < self.positions {
                return x;
            }
        }
    }

    #[inline]
    fn step(&self, x: u64, odd: u64) -> u64 {
        let x = x.wrapping_add(odd).wrapping_mul(odd) & self.mask;
        x ^ x >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_taken_exactly_once() {
        for positions in (1..300).chain([4095, 4096, 4097, 100_003]) {
            let scatter = Scatter::new(positions);
            let mut places: Vec<u64> = (0..positions).map(|rank| scatter.place(rank)).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..positions), "{positions} positions");
        }
    }

    #[test]
    fn popular_positions_spread_over_the_region() {
        for positions in [1 << 20, (1 << 20) + 1, 3_000_000, 1 << 40] {
            let scatter = Scatter::new(positions);
            let mut tenths = [0_u32; 10];
            for rank in 0..10_000 {
                tenths[(u128::from(scatter.place(rank)) * 10 / u128::from(positions)) as usize] += 1;
            }
            assert!(tenths.iter().all(|count| count.abs_diff(1000) < 150), "{positions}: {tenths:?}");
            let close = (0..10_000).filter(|&r| scatter.place(r).abs_diff(scatter.place(r + 1)) < positions / 1000);
            assert!(close.count() < 60, "{positions}: neighbours in rank are neighbours in place");
        }
    }

    #[test]
    fn the_largest_domain_has_no_overflow() {
        let scatter = Scatter::new(u64::MAX);
        assert!((0..1000).all(|rank| scatter.place(rank) < u64::MAX));
    }
}
