//! Sizes and times, with the spellings that storage people use.
//!
//! Sizes follow fio's habit made strict: `4k = 4K = 4KiB = 4096`. A decimal `KB`/`MB` is refused, because half of the
//! field's tools read it one way and half the other. Times are `10m 30s 5ms 20us 7ns`; a bare number is seconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A size or a byte offset on a device, in bytes.
///
/// ```
/// use flashwise_block::ByteSize;
/// assert_eq!("4k".parse(), Ok(ByteSize::kib(4)));
/// assert_eq!("64KiB".parse(), Ok(ByteSize::kib(64)));
/// assert_eq!(ByteSize::kib(1536).to_string(), "1.5 MiB");
/// assert!("4KB".parse::<ByteSize>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

/// A point in time or a duration on a device's clock, in nanoseconds.
///
/// ```
/// use flashwise_block::Nanos;
/// assert_eq!("20us".parse(), Ok(Nanos(20_000)));
/// assert_eq!(Nanos(1_234_567).to_string(), "1.23 ms");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// Why a size or a time could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a {what}: {hint}")]
pub struct ParseUnitError {
    text: String,
    what: &'static str,
    hint: &'static str,
}

impl ByteSize {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Whether this is a whole multiple of `unit`; of zero, nothing but zero is.
    pub const fn is_multiple_of(self, unit: Self) -> bool {
        // Units are powers of two almost always, and a division takes ten times as long as this.
        if unit.0.is_power_of_two() { self.0 & (unit.0 - 1) == 0 } else { self.0.is_multiple_of(unit.0) }
    }
}

impl Nanos {
    /// `n` microseconds.
    pub const fn micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// The duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - earlier`, or zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

const SIZE_UNITS: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const TIME_UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1)];

fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let last = units.len() - 1;
    let (name, scale) = units.iter().copied().find(|&(_, s)| value >= s).unwrap_or(units[last]);
    if value.is_multiple_of(scale) {
        return write!(f, "{} {name}", value / scale);
    }
    let scaled = value as f64 / scale as f64;
    match scaled {
        s if s >= 100.0 => write!(f, "{s:.0} {name}"),
        s if s >= 10.0 => write!(f, "{s:.1} {name}"),
        s => {
            let text = format!("{s:.2}");
            write!(f, "{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &SIZE_UNITS)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &TIME_UNITS)
    }
}

/// `1234567` as `1,234,567`, for people.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Splits `12.5ms` into its number and its unit.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// `number × scale` as a whole number, or `None` if it is not a number, not whole or too large.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale);
    }
    let value = number.parse::<f64>().ok()? * scale as f64;
    (value.fract() == 0.0 && value >= 0.0 && value < 2f64.powi(63)).then_some(value as u64)
}

impl FromStr for ByteSize {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |hint| ParseUnitError { text: text.to_owned(), what: "size", hint };
        let (number, unit) = split_number(text.trim());
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "ki" | "kib" => 10,
            "m" | "mi" | "mib" => 20,
            "g" | "gi" | "gib" => 30,
            "t" | "ti" | "tib" => 40,
            "kb" | "mb" | "gb" | "tb" => {
                return Err(fail("kB, MB and GB are ambiguous; write 4k or 4KiB for 4096 bytes"));
            }
            _ => return Err(fail("write a number of bytes, or 4k, 16M, 2GiB")),
        };
        scaled(number, 1 << shift).map(Self).ok_or_else(|| fail("write a whole number of bytes, or 4k, 16M, 2GiB"))
    }
}

impl FromStr for Nanos {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |hint| ParseUnitError { text: text.to_owned(), what: "time", hint };
        let (number, unit) = split_number(text.trim());
        let scale = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "" | "s" => 1_000_000_000,
            "m" => 60 * 1_000_000_000,
            "h" => 3600 * 1_000_000_000,
            _ => return Err(fail("write 10m, 30s, 5ms, 20us or 7ns")),
        };
        scaled(number, scale).map(Self).ok_or_else(|| fail("write 10m, 30s, 5ms, 20us or 7ns"))
    }
}

macro_rules! arithmetic {
    ($t:ty) => {
        impl Add for $t {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $t {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $t {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl Mul<u64> for $t {
            type Output = Self;
            fn mul(self, factor: u64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl Div for $t {
            type Output = u64;
            fn div(self, other: Self) -> u64 {
                self.0 / other.0
            }
        }
        impl Rem for $t {
            type Output = Self;
            fn rem(self, other: Self) -> Self {
                Self(self.0 % other.0)
            }
        }
    };
}
arithmetic!(ByteSize);
arithmetic!(Nanos);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_fio_users_write_them() {
        for text in ["4096", "4k", "4K", "4KiB", "4ki", "4 KiB"] {
            assert_eq!(text.parse(), Ok(ByteSize(4096)), "{text}");
        }
        assert_eq!("1.5m".parse(), Ok(ByteSize::kib(1536)));
    }

    #[test]
    fn ambiguous_or_impossible_sizes_are_refused() {
        for text in ["4KB", "", "k", "-1", "0.3", "4x", "99999999999T"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_with_their_unit_and_bare_numbers_are_seconds() {
        assert_eq!("20us".parse(), Ok(Nanos::micros(20)));
        assert_eq!("5ms".parse(), Ok(Nanos::millis(5)));
        assert_eq!("10m".parse(), Ok(Nanos::secs(600)));
        assert_eq!("2".parse(), Ok(Nanos::secs(2)));
        assert!("3 fortnights".parse::<Nanos>().is_err());
    }

    #[test]
    fn both_are_printed_for_people() {
        assert_eq!(ByteSize(0).to_string(), "0 B");
        assert_eq!(ByteSize::kib(32).to_string(), "32 KiB");
        assert_eq!(ByteSize(1500).to_string(), "1.46 KiB");
        assert_eq!(Nanos(45_000).to_string(), "45 µs");
        assert_eq!(Nanos(182_400).to_string(), "182 µs");
    }
}
