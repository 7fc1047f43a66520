//! Whether a gain that was measured is one.

use crate::Gain;

/// A gain below this is none: 1 %.
pub(crate) const WORTH_IT: f64 = 1.01;

/// `pays`, `costs`, or `no-gain-seen` where the interval allows both.
pub(crate) fn verdict(gain: &Gain) -> &'static str {
    match gain {
        gain if gain.low > WORTH_IT => "pays",
        gain if gain.high < 1.0 / WORTH_IT => "costs",
        _ => "no-gain-seen",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_one_only_where_its_whole_interval_is() {
        let of = |low, high| {
            verdict(&Gain {
                metric: String::new(),
                from: String::new(),
                to: String::new(),
                ratio: (low + high) / 2.0,
                low,
                high,
            })
        };
        assert_eq!(
            (of(1.02, 1.5), of(1.0, 1.5), of(0.5, 0.9), of(0.5, 1.0)),
            ("pays", "no-gain-seen", "costs", "no-gain-seen")
        );
    }
}
