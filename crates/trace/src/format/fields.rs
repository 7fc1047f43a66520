//! Fields of a line: split, and turned into numbers with checked arithmetic.

use flashwise_block::{ByteSize, Nanos};

use crate::error::shown;

/// A field for a message, in quotes.
pub(crate) fn quoted(field: &[u8]) -> String {
    format!("'{}'", shown(field, 40))
}

/// The fields of a line that stand between single `separator`s, without white space around them. More than `N` of them,
/// or fewer, are told.
#[inline]
pub(crate) fn separated<'a, const N: usize>(
    line: &'a [u8],
    separator: u8,
    layout: &str,
) -> Result<[&'a [u8]; N], String> {
    let mut found = [&line[..0]; N];
    let mut start = 0;
    for place in &mut found[..N - 1] {
        let Some(at) = position(&line[start..], separator) else { return Err(wrong_count(line, separator, N, layout)) };
        *place = &line[start..start + at];
        start += at + 1;
    }
    let last = &line[start..];
    if last.contains(&separator) {
        return Err(wrong_count(line, separator, N, layout));
    }
    found[N - 1] = last;
    Ok(found.map(trimmed))
}

/// Fields are short: a plain loop is faster than a call of `memchr`.
#[inline]
fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|&byte| byte == wanted)
}

#[inline]
fn trimmed(field: &[u8]) -> &[u8] {
    match (field.first(), field.last()) {
        (Some(first), Some(last)) if first.is_ascii_whitespace() || last.is_ascii_whitespace() => field.trim_ascii(),
        _ => field,
    }
}

#[cold]
fn wrong_count(line: &[u8], separator: u8, expected: usize, layout: &str) -> String {
    let count = line.split(|&byte| byte == separator).count();
    format!("it has {count} of {} fields: {layout}", spelled(expected))
}

/// The fields of a line that stand between any white space. More than `N` of them, or fewer, are told.
#[inline]
pub(crate) fn spaced<'a, const N: usize>(line: &'a [u8], layout: &str) -> Result<[&'a [u8]; N], String> {
    let mut found = [&line[..0]; N];
    let mut words = Words(line);
    for place in &mut found {
        let Some(word) = words.next() else { return Err(wrong_words(line, N, layout)) };
        *place = word;
    }
    if words.next().is_some() { Err(wrong_words(line, N, layout)) } else { Ok(found) }
}

#[cold]
fn wrong_words(line: &[u8], expected: usize, layout: &str) -> String {
    format!("it has {} of {} fields: {layout}", Words(line).count(), spelled(expected))
}

fn spelled(number: usize) -> String {
    let words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    words.get(number).map_or_else(|| number.to_string(), |&word| word.to_owned())
}

/// Words between white space.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Words<'a> {
    /// What follows the words that were taken, without white space around it.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0.trim_ascii()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let word = &self.0[start..];
        let end = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        self.0 = &word[end..];
        Some(&word[..end])
    }
}

/// A whole number that fits.
#[inline]
pub(crate) fn number<T: TryFrom<u64>>(what: &str, field: &[u8]) -> Result<T, String> {
    match digits(field).and_then(|number| T::try_from(number).ok()) {
        Some(number) => Ok(number),
        None => whole(field)
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| wrong_number(what, field, 8 * size_of::<T>())),
    }
}

/// A whole number with a point and zeros behind it: what pandas makes of a column in which a number is missing.
#[cold]
fn whole(field: &[u8]) -> Option<u64> {
    let point = field.iter().position(|&byte| byte == b'.')?;
    let zeros = &field[point + 1..];
    digits(&field[..point]).filter(|_| !zeros.is_empty() && zeros.iter().all(|&byte| byte == b'0'))
}

#[cold]
fn wrong_number(what: &str, field: &[u8], bits: usize) -> String {
    format!("{what} is {}; it must be a whole number, 0 or above, of at most {bits} bits", quoted(field))
}

/// Digits alone, as a number of 64 bits.
#[inline]
pub(crate) fn digits(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    // 19 digits always fit.
    if field.len() <= 19 {
        return field.iter().try_fold(0_u64, |number, &byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| number * 10 + u64::from(digit))
        });
    }
    field.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// A whole number of `unit` bytes each, as bytes.
#[inline]
pub(crate) fn bytes_of(what: &str, field: &[u8], unit: u64) -> Result<ByteSize, String> {
    sized(what, number(what, field)?, unit)
}

/// `count` units of `unit` bytes, as bytes.
#[inline]
pub(crate) fn sized(what: &str, count: u64, unit: u64) -> Result<ByteSize, String> {
    count.checked_mul(unit).map(ByteSize).ok_or_else(|| format!("{what} {count} exceeds 2^64 bytes"))
}

/// Units of time, each with its name and its length in ns.
#[derive(Clone, Copy)]
pub(crate) struct TimeUnit(&'static str, u64);

impl TimeUnit {
    /// A unit of `ns` nanoseconds.
    pub(crate) const fn new(name: &'static str, ns: u64) -> Self {
        Self(name, ns)
    }
}

pub(crate) const SECONDS: TimeUnit = TimeUnit("s", 1_000_000_000);
pub(crate) const MILLIS: TimeUnit = TimeUnit("ms", 1_000_000);
pub(crate) const MICROS: TimeUnit = TimeUnit("µs", 1_000);
pub(crate) const NANOS: TimeUnit = TimeUnit("ns", 1);

/// A whole number of `unit`s.
#[inline]
pub(crate) fn time(what: &str, field: &[u8], unit: TimeUnit) -> Result<Nanos, String> {
    digits(field)
        .and_then(|count| count.checked_mul(unit.1))
        .map(Nanos)
        .ok_or_else(|| wrong_whole_time(what, field, unit))
}

#[cold]
fn wrong_whole_time(what: &str, field: &[u8], unit: TimeUnit) -> String {
    format!("{what} in {} is {}; it must be a whole number, 0 or above, of at most 584 years", unit.0, quoted(field))
}

#[cold]
fn wrong_time(what: &str, field: &[u8], unit: TimeUnit) -> String {
    format!("{what} in {} is {}; it must be a number, 0 or above, of at most 584 years", unit.0, quoted(field))
}

/// A number of `unit`s with decimals, exact to the nanosecond; what is below is rounded to the nearest.
pub(crate) fn decimal_time(what: &str, field: &[u8], unit: TimeUnit) -> Result<Nanos, String> {
    exact_decimal(field, unit.1)
        .or_else(|| scientific(field, unit.1))
        .map(Nanos)
        .ok_or_else(|| wrong_time(what, field, unit))
}

/// Times of day, `23:59:59.123`, which restart at midnight: the times continue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DayTime {
    /// Midnights that passed, ns.
    midnight: u64,
    last: u64,
}

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

impl DayTime {
    /// The time since the first midnight before the recording; `None` where the field is no time of day.
    pub(crate) fn of(&mut self, field: &[u8]) -> Option<Nanos> {
        let mut parts = field.split(|&byte| byte == b':');
        let (hours, minutes, seconds) = (digits(parts.next()?)?, digits(parts.next()?)?, parts.next()?);
        let seconds = decimal_time("time", seconds, SECONDS).ok()?;
        let whole = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
        let of_day = whole.checked_mul(1_000_000_000)?.checked_add(seconds.0)?;
        if parts.next().is_some() || of_day >= DAY_NS + SECONDS.1 {
            return None;
        }
        // Lines are not quite in order: what lies half a day before is of the next day, and half a day after of the
        // last.
        if of_day > self.last + DAY_NS / 2 && self.midnight > 0 {
            return Some(Nanos(self.midnight - DAY_NS + of_day));
        }
        if self.last > of_day + DAY_NS / 2 {
            self.midnight = self.midnight.checked_add(DAY_NS)?;
        }
        self.last = of_day;
        self.midnight.checked_add(of_day).map(Nanos)
    }
}

fn exact_decimal(field: &[u8], scale: u64) -> Option<u64> {
    let point = field.iter().position(|&byte| byte == b'.').unwrap_or(field.len());
    let (whole, fraction) = (&field[..point], field.get(point + 1..).unwrap_or_default());
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)? };
    let (mut place, mut nanos) = (scale, 0);
    for (index, &byte) in fraction.iter().enumerate() {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        if place == 1 {
            let rest = fraction[index + 1..].iter().all(u8::is_ascii_digit);
            return rest.then(|| whole.checked_mul(scale)?.checked_add(nanos + u64::from(digit >= 5))).flatten();
        }
        place /= 10;
        nanos += digit * place;
    }
    whole.checked_mul(scale)?.checked_add(nanos)
}

/// `1.5e3`, as C's `%lf` reads it.
fn scientific(field: &[u8], scale: u64) -> Option<u64> {
    let value: f64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    let nanos = (value * scale as f64).round();
    (0.0..2f64.powi(63)).contains(&nanos).then_some(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_counted() {
        assert_eq!(separated::<3>(b"a, b ,c\r", b',', "x"), Ok([&b"a"[..], b"b", b"c"]));
        assert_eq!(separated::<3>(b"a,b", b',', "x,y,z"), Err("it has 2 of three fields: x,y,z".to_owned()));
        assert_eq!(separated::<2>(b"a,b,c", b',', "x,y"), Err("it has 3 of two fields: x,y".to_owned()));
        assert_eq!(spaced::<2>(b"  a\t b\r\n", "x y"), Ok([&b"a"[..], b"b"]));
        assert_eq!(spaced::<2>(b"a b c", "x y"), Err("it has 3 of two fields: x y".to_owned()));
    }

    #[test]
    fn decimals_are_exact_to_the_nanosecond() {
        let seconds = |field: &str| decimal_time("time", field.as_bytes(), SECONDS).map(|time| time.0).ok();
        assert_eq!(seconds("1.000000001"), Some(1_000_000_001));
        assert_eq!(seconds("18446744073.709551615"), Some(u64::MAX));
        assert_eq!(seconds("18446744073.709551616"), None);
        assert_eq!(
            [seconds(".5"), seconds("2."), seconds("1e-3")],
            [Some(500_000_000), Some(2_000_000_000), Some(1_000_000)]
        );
        assert_eq!([seconds("0.0000000004"), seconds("0.0000000005")], [Some(0), Some(1)]);
        assert_eq!(
            [seconds("."), seconds(""), seconds("-1"), seconds("NaN"), seconds("1.x"), seconds("1e300")],
            [None; 6]
        );
    }

    #[test]
    fn times_of_day_go_on_behind_midnight() {
        let mut day = DayTime::default();
        let times = ["23:59:59.5", "00:00:00.25", "00:00:01"].map(|time| day.of(time.as_bytes()).unwrap().0);
        assert_eq!([times[1] - times[0], times[2] - times[1]], [750_000_000, 750_000_000]);
        assert_eq!([day.of(b"1.5"), day.of(b"12:30"), day.of(b"99:00:00"), day.of(b"1:2:3:4")], [None; 4]);
    }

    #[test]
    fn a_whole_number_may_have_a_point_and_zeros() {
        assert_eq!(number::<u32>("x", b"4096.0"), Ok(4096));
        assert!(number::<u32>("x", b"4096.5").is_err() && number::<u32>("x", b"4096.").is_err());
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_the_standard_library_reads_them(field in "[0-9]{0,22}|[0-9a+-]{1,5}") {
            let standard = field.parse::<u64>().ok().filter(|_| !field.starts_with('+'));
            prop_assert_eq!(digits(field.as_bytes()), standard);
        }

        #[test]
        fn a_time_survives_as_decimals(nanos: u64) {
            let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
            prop_assert_eq!(decimal_time("t", text.as_bytes(), SECONDS), Ok(Nanos(nanos)));
            let text = format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
            prop_assert_eq!(decimal_time("t", text.as_bytes(), MILLIS), Ok(Nanos(nanos)));
        }
    }
}
