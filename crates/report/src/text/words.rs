//! Words that are not separated by a line break.

/// A space at which no line breaks.
pub(crate) const KEPT_SPACE: char = '\u{a0}';

/// The text with its numbers tied to their units.
pub(crate) fn kept_together(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut previous = "";
    for word in text.split_inclusive(' ') {
        if binds(previous, word) {
            kept.pop();
            kept.push(KEPT_SPACE);
        }
        kept += word;
        previous = word;
    }
    kept
}

/// Whether two words must stay on one line; the first still has its space.
fn binds(first: &str, second: &str) -> bool {
    let first = first.trim_end();
    let letters = |c: char| c.is_alphabetic() || c == '%';
    let unit = &second[..second.find(|c| !letters(c)).unwrap_or(second.len())];
    let measure = ["%", "B", "KiB", "MiB", "GiB", "TiB", "ns", "µs", "ms", "s"].contains(&unit);
    let sum = first == "+" || second.trim_end() == "+";
    sum || matches!(first, "–" | "≈" | "±") || (measure && first.ends_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_with_its_unit_and_a_sum_with_its_parts() {
        let text = kept_together("set 64 KiB pages at 64 KiB·i + 32 KiB, 29.1 % more in 5 ms. ± 0 and a B");
        assert_eq!(
            text.replace(KEPT_SPACE, "_"),
            "set 64_KiB pages at 64_KiB·i_+_32_KiB, 29.1_% more in 5_ms. ±_0 and a B"
        );
    }
}
