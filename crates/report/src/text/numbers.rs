//! Numbers for people: thousands separated, as many digits as mean something, a real minus sign.

pub(crate) use flashwise_block::grouped;
use flashwise_block::{ByteSize, Nanos};

/// Three significant digits, or all digits before the point: `0.0123`, `1.23`, `12.3`, `1,234`.
pub(crate) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let (sign, size) = (if value < 0.0 { "−" } else { "" }, value.abs());
    if size >= 99.95 {
        return format!("{sign}{}", grouped(size.round() as u64));
    }
    let decimals = match size {
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        s if s >= 0.09995 => 3,
        _ => 4,
    };
    let text = format!("{size:.decimals$}");
    if text.trim_matches(['0', '.']).is_empty() { "0".to_owned() } else { format!("{sign}{text}") }
}

/// A size in IEC units.
pub(crate) fn bytes(value: u64) -> String {
    ByteSize(value).to_string()
}

/// A time in the unit that suits it.
pub(crate) fn time(ns: u64) -> String {
    Nanos(ns).to_string()
}

/// A ratio as a change: `1.291` is `+29.1 %`, `0.5` is `−50.0 %`, `3.5` is `×3.50`.
pub(crate) fn change(ratio: f64) -> String {
    if !ratio.is_finite() || ratio < 0.0 {
        return "–".to_owned();
    }
    if ratio >= 2.995 {
        return format!("×{}", significant(ratio));
    }
    match percent(ratio) {
        0.0 => "0.0 %".to_owned(),
        p if p > 0.0 => format!("+{p:.1} %"),
        p => format!("−{:.1} %", -p),
    }
}

/// The two ends of an interval of ratios, in one unit: `+27.3…+30.8 %`, or `×2.05…×3.19` where the upper end is a
/// multiple.
pub(crate) fn change_interval(low: f64, high: f64) -> String {
    let (low_text, high_text) = (change(low), change(high));
    if high_text.starts_with('×') && low_text.ends_with('%') {
        return format!("×{}…{high_text}", significant(low));
    }
    let (low, high) = (low_text, high_text);
    match low.strip_suffix(" %") {
        Some(number) if high.ends_with('%') => format!("{number}…{high}"),
        _ => format!("{low}…{high}"),
    }
}

/// The two ends of an interval of ratios, behind a value that is one: `×1.37…×1.41`.
pub(crate) fn ratio_interval(low: f64, high: f64) -> String {
    format!("×{}…×{}", significant(low), significant(high))
}

/// Two decimals, as ratios of throughputs are written.
pub(crate) fn two_decimals(value: f64) -> String {
    format!("{value:.2}")
}

/// What a ratio is more or less, in percent, to one decimal.
fn percent(ratio: f64) -> f64 {
    let tenths = ((ratio - 1.0) * 1000.0).round();
    if tenths == 0.0 { 0.0 } else { tenths / 10.0 }
}

/// How much more or less, in words without a sign: `29.1 % more`, `3.2 % less`, `3.50 times as much`.
pub(crate) fn more_or(ratio: f64, less: &str) -> String {
    if ratio >= 2.995 {
        return format!("{} times as", significant(ratio));
    }
    match percent(ratio) {
        p if p >= 0.0 => format!("{p:.1} % more"),
        p => format!("{:.1} % {less}", -p),
    }
}

/// A share in percent, three digits of it: `0.274` is `27.4 %`.
pub(crate) fn percentage(share: f64) -> String {
    format!("{} %", significant(share * 100.0))
}

/// `part` of `whole` in percent.
pub(crate) fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        (_, 0) | (0, _) => "0 %".to_owned(),
        (part, whole) if part == whole => "100 %".to_owned(),
        (part, whole) => format!("{:.1} %", (part as f64 / whole as f64 * 100.0).clamp(0.1, 99.9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let numbers = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        let numbers = [0.0, 0.01234, 0.5, 1.0, 9.999, 12.345, 99.99, 1234.5, -2.5, f64::NAN].map(significant);
        assert_eq!(numbers, ["0", "0.0123", "0.500", "1.00", "10.0", "12.3", "100", "1,235", "−2.50", "–"]);
    }

    #[test]
    fn a_share_has_three_digits() {
        assert_eq!([0.2744, 0.07, 1.0, 0.0].map(percentage), ["27.4 %", "7.00 %", "100 %", "0 %"]);
    }

    #[test]
    fn ratios_are_told_as_changes() {
        let changes = [1.291, 0.5, 1.0, 0.9999, 3.5, 0.0, f64::INFINITY].map(change);
        assert_eq!(changes, ["+29.1 %", "−50.0 %", "0.0 %", "0.0 %", "×3.50", "−100.0 %", "–"]);
    }

    #[test]
    fn both_ends_of_an_interval_have_one_unit() {
        assert_eq!(change_interval(1.273, 1.308), "+27.3…+30.8 %");
        assert_eq!(change_interval(0.9, 1.05), "−10.0…+5.0 %");
        assert_eq!(change_interval(2.049, 3.19), "×2.05…×3.19");
        assert_eq!(change_interval(3.5, 4.25), "×3.50…×4.25");
    }

    #[test]
    fn a_share_is_full_or_empty_only_when_it_is() {
        assert_eq!(
            [share(0, 5), share(1, 100_000), share(99_999, 100_000), share(5, 5)],
            ["0 %", "0.1 %", "99.9 %", "100 %"]
        );
    }
}
