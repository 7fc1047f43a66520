//! From numbers with a fraction to whole ones, without cutting off what does not fit.

/// 2^63, the first number that TOML does not have.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// The whole part of a number from 0 on and below 2^63.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(super) fn floor(value: f64) -> Option<u64> {
    (0.0..LIMIT).contains(&value).then_some(value as u64)
}

/// The nearest whole number, likewise.
pub(super) fn round(value: f64) -> Option<u64> {
    floor(value.round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_place_in_63_bits_is_none() {
        assert_eq!([0.0, 1.9, 1e18].map(floor), [Some(0), Some(1), Some(1_000_000_000_000_000_000)]);
        assert_eq!([-1.0, 1e19, 1e308, f64::NAN, f64::INFINITY, LIMIT].map(floor), [None; 6]);
        assert_eq!([0.5, 1.4].map(round), [Some(1), Some(1)]);
    }
}
