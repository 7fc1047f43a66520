//! Division by a number that stays the same: a multiplication, a third of the time of a division.

/// Divides by a fixed number.
///
/// With m = ⌊(2⁶⁴ − 1) ÷ d⌋, n ÷ d rounded down is (n + 1) · m ÷ 2⁶⁴ rounded down for all n below 2³²: m falls short of
/// 2⁶⁴ ÷ d by less than 1, so that the product falls short of (n + 1) ÷ d by at least nothing and less than 2⁻³², which
/// is less than 1 ÷ d, and does fall short of it where d divides n + 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    divisor: u32,
    multiplier: u64,
}

impl Divisor {
    /// `divisor` is not 0.
    pub(crate) fn new(divisor: u32) -> Self {
        Self { divisor, multiplier: u64::MAX / u64::from(divisor) }
    }

    /// The number itself.
    pub(crate) fn value(self) -> u32 {
        self.divisor
    }

    /// `n` divided by it.
    #[inline]
    pub(crate) fn quotient(self, n: u32) -> u32 {
        (((u128::from(n) + 1) * u128::from(self.multiplier)) >> 64) as u32
    }

    /// `n` divided by it, and what is left.
    #[inline]
    pub(crate) fn divide(self, n: u32) -> (u32, u32) {
        let quotient = self.quotient(n);
        (quotient, n - quotient * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_borders_divide_as_they_should() {
        for divisor in [1, 2, 3, 7, 576, 65_535, 65_536, 1 << 31, u32::MAX - 1, u32::MAX] {
            for n in [0, 1, divisor - 1, divisor, u32::MAX - 1, u32::MAX] {
                assert_eq!(Divisor::new(divisor).divide(n), (n / divisor, n % divisor), "{n} ÷ {divisor}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_divides(n: u32, divisor in 1_u32.., shift in 0_u32..32) {
            let divisor = (divisor >> shift).max(1);
            prop_assert_eq!(Divisor::new(divisor).divide(n), (n / divisor, n % divisor));
        }
    }
}
