//! From values to places: linear and logarithmic axes with ticks at round numbers.

/// One axis: what it shows, from where to where, and how its numbers are written.
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) low: f64,
    pub(crate) high: f64,
    kind: Kind,
    /// How a tick is written.
    write: fn(f64) -> String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Ticks at 1, 2 or 5 times a power of ten.
    Decimal,
    /// Ticks at powers of two times a number, as sizes want them.
    Binary,
    /// Equal steps for equal factors, ticks at powers of two.
    Log2,
    /// Equal steps for equal factors, ticks at powers of ten, or at 1, 2 and 5 times one.
    Log10,
}

/// Share of the highest value from which on the lowest one is far from zero: an axis from zero would leave more than
/// half of the plot empty, and flatten what it is there to show.
const FAR_FROM_ZERO_SHARE: f64 = 0.5;
/// Powers of ten on an axis from which on only these have ticks; on a shorter one 2 and 5 times a power have one too.
const ONLY_POWERS_FROM: usize = 3;

impl Axis {
    /// From zero to a little above `high`, ticks at decimal numbers.
    pub(crate) fn from_zero(label: impl Into<String>, high: f64, write: fn(f64) -> String) -> Self {
        let step = decimal_step(high / 4.0);
        let top = if high > 0.0 { (high / step).ceil() * step } else { 1.0 };
        Self { label: label.into(), low: 0.0, high: top, kind: Kind::Decimal, write }
    }

    /// Up to a little above `high`, from zero, or from a little below `low` if that is far from zero; ticks at decimal
    /// numbers. For lines: a bar has to start at zero.
    pub(crate) fn around(label: impl Into<String>, low: f64, high: f64, write: fn(f64) -> String) -> Self {
        if !(low.is_finite() && low > high * FAR_FROM_ZERO_SHARE && high > low) {
            return Self::from_zero(label, high, write);
        }
        let step = decimal_step((high - low) / 5.0);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { label: label.into(), low, high, kind: Kind::Decimal, write }
    }

    /// From `low` to `high` exactly, ticks at decimal numbers.
    pub(crate) fn between(label: impl Into<String>, low: f64, high: f64, write: fn(f64) -> String) -> Self {
        Self { label: label.into(), low, high: if high > low { high } else { low + 1.0 }, kind: Kind::Decimal, write }
    }

    /// From zero to `high` exactly, ticks at powers of two.
    pub(crate) fn of_offsets(label: impl Into<String>, high: f64, write: fn(f64) -> String) -> Self {
        Self { label: label.into(), low: 0.0, high: if high > 0.0 { high } else { 1.0 }, kind: Kind::Binary, write }
    }

    /// Equal steps for equal factors, ticks at powers of two.
    pub(crate) fn log2(label: impl Into<String>, low: f64, high: f64, write: fn(f64) -> String) -> Self {
        let low = if low > 0.0 { low } else { 1.0 };
        Self { label: label.into(), low, high: if high > low { high } else { low * 2.0 }, kind: Kind::Log2, write }
    }

    /// Equal steps for equal factors, ticks at 1, 2 and 5 times a power of ten.
    pub(crate) fn log10(label: impl Into<String>, low: f64, high: f64, write: fn(f64) -> String) -> Self {
        Self { kind: Kind::Log10, ..Self::log2(label, low, high, write) }
    }

    /// Where a value lies, 0 at the low end and 1 at the high end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Log2 | Kind::Log10 => {
                (value.max(f64::MIN_POSITIVE) / self.low).log2() / (self.high / self.low).log2()
            }
            _ => (value - self.low) / (self.high - self.low),
        }
    }

    /// Whether a value is on the axis.
    pub(crate) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The values that get a tick, at most about ten.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Decimal => steps(self.low, self.high, decimal_step((self.high - self.low) / 5.0)),
            Kind::Binary => steps(self.low, self.high, 2_f64.powf(((self.high - self.low) / 8.0).log2().ceil())),
            Kind::Log2 => {
                let (first, last) = (self.low.log2().ceil() as i32, self.high.log2().floor() as i32);
                let every = ((last - first) / 10 + 1) as usize;
                (first..=last).step_by(every).map(|power| 2_f64.powi(power)).collect()
            }
            Kind::Log10 => self.decimal_log_ticks(),
        }
    }

    /// Powers of ten on the axis, with 2 and 5 times each where that are few.
    fn decimal_log_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        // Binary fractions of a power of ten are not it: 10⁻³ is written, and compared with the ends of the axis.
        let power = |exponent: i32| format!("1e{exponent}").parse::<f64>().unwrap_or(1.0);
        let is_on = |tick: &f64| self.contains(*tick);
        let powers: Vec<f64> = (first..=last).map(power).filter(is_on).collect();
        if powers.len() >= ONLY_POWERS_FROM {
            return powers;
        }
        (first..=last).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * power(exponent))).filter(is_on).collect()
    }

    /// A value as its tick is written.
    pub(crate) fn write(&self, value: f64) -> String {
        (self.write)(value)
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `least`.
fn decimal_step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].map(|digit| digit * power).into_iter().find(|&s| s >= least * 0.999).unwrap_or(10.0 * power)
}

fn steps(low: f64, high: f64, step: f64) -> Vec<f64> {
    let (first, last) = ((low / step).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(value: f64) -> String {
        value.to_string()
    }

    #[test]
    fn ticks_stand_at_round_numbers() {
        assert_eq!(Axis::from_zero("", 315.0, plain).ticks(), [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert_eq!(Axis::from_zero("", 0.0, plain).ticks().len(), 6);
        let offsets = Axis::of_offsets("", 128.0 * 1024.0, plain).ticks();
        assert_eq!(offsets.len(), 9);
        assert_eq!(offsets[1], 16384.0);
        assert_eq!(Axis::log2("", 1024.0, 8192.0, plain).ticks(), [1024.0, 2048.0, 4096.0, 8192.0]);
    }

    #[test]
    fn a_decimal_logarithmic_axis_has_ticks_at_powers_of_ten_or_between_them() {
        assert_eq!(Axis::log10("", 12.0, 80_000.0, plain).ticks(), [100.0, 1_000.0, 10_000.0]);
        assert_eq!(Axis::log10("", 1.0, 80_000.0, plain).ticks(), [1.0, 10.0, 100.0, 1_000.0, 10_000.0]);
        assert_eq!(Axis::log10("", 60.0, 900.0, plain).ticks(), [100.0, 200.0, 500.0]);
        assert_eq!(Axis::log10("", 0.001, 0.01, plain).ticks(), [0.001, 0.002, 0.005, 0.01]);
    }

    #[test]
    fn an_axis_of_values_far_from_zero_does_not_start_there() {
        let of = |low, high| Axis::around("", low, high, plain);
        let near = of(141.0, 222.0);
        assert_eq!((near.low, near.high), (140.0, 240.0));
        assert_eq!(
            (of(60.0, 222.0).low, of(0.0, 5.0).low, of(7.0, 7.0).low, of(f64::INFINITY, 0.0).low),
            (0.0, 0.0, 0.0, 0.0)
        );
    }

    #[test]
    fn equal_factors_are_equal_steps_on_a_logarithmic_axis() {
        let axis = Axis::log2("", 1.0, 16.0, plain);
        assert_eq!([1.0, 4.0, 16.0].map(|v| axis.place(v)), [0.0, 0.5, 1.0]);
    }
}
