//! From values to places: linear and binary-logarithmic axes with ticks at round numbers.

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
    /// Equal steps for equal factors of two.
    Log2,
}

impl Axis {
    /// From zero to a little above `high`, ticks at decimal numbers.
    pub(crate) fn from_zero(label: impl Into<String>, high: f64, write: fn(f64) -> String) -> Self {
        let step = decimal_step(high / 4.0);
        let top = if high > 0.0 { (high / step).ceil() * step } else { 1.0 };
        Self { label: label.into(), low: 0.0, high: top, kind: Kind::Decimal, write }
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

    /// Where a value lies, 0 at the low end and 1 at the high end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Log2 => (value.max(f64::MIN_POSITIVE) / self.low).log2() / (self.high / self.low).log2(),
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
        }
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
    fn equal_factors_are_equal_steps_on_a_logarithmic_axis() {
        let axis = Axis::log2("", 1.0, 16.0, plain);
        assert_eq!([1.0, 4.0, 16.0].map(|v| axis.place(v)), [0.0, 0.5, 1.0]);
    }
}
