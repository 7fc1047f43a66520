//! A drive's hidden parameters: a row for each figure, group by group, and why some are inconclusive.

use std::borrow::Cow;

use flashwise_profile::{AtSize, DeviceProfile, Entry, Evidence, Figure, HotLocation, Quantity, Verdict};

use super::groups::{ASYMMETRY, GROUPS, Group, OTHER_SIZES};
use super::numbers::{bytes, grouped, percentage, significant, time, two_decimals};

/// Verdict of a figure that no probe examined.
pub(crate) const NOT_TRIED: &str = "not tried";

/// A figure in words.
pub(crate) struct ParameterRow {
    pub(crate) key: &'static str,
    /// Its name below the title of its group.
    pub(crate) name: Cow<'static, str>,
    pub(crate) value: String,
    pub(crate) interval: String,
    pub(crate) verdict: Verdict,
    /// The verdict in a word or two.
    pub(crate) verdict_text: &'static str,
    /// Why; empty where the profile does not say.
    reason: String,
}

impl ParameterRow {
    fn new(entry: &Entry, name: &'static str, evidence: Option<&Evidence>) -> Self {
        Self::of(entry.key, &entry.figure, name.into(), evidence)
    }

    fn of(key: &'static str, figure: &Figure<Quantity>, name: Cow<'static, str>, evidence: Option<&Evidence>) -> Self {
        let is_not_tried = figure.verdict == Verdict::Inconclusive
            && figure.value.is_none()
            && evidence.is_some_and(|evidence| evidence.left_out || evidence.not_tried);
        let reason = evidence.map_or_else(String::new, |evidence| evidence.reason.clone());
        let interval = match (figure.low, figure.high) {
            (Some(low), Some(high)) => interval(low, high),
            _ => "–".to_owned(),
        };
        let value = value_in_words(figure.verdict, figure.value);
        let verdict_text = if is_not_tried { NOT_TRIED } else { verdict_in_words(figure.verdict, figure.value) };
        Self { key, name, value, interval, verdict: figure.verdict, verdict_text, reason }
    }

    /// Whether it is inconclusive and the profile has a reason.
    fn is_inconclusive(&self) -> bool {
        self.verdict == Verdict::Inconclusive && !self.reason.is_empty()
    }

    fn is_listed_in(&self, list: &InconclusiveFigures) -> bool {
        self.is_inconclusive() && self.verdict_text == list.verdict && self.reason == list.reason
    }
}

/// A value with its unit; `≈` is before a best guess.
pub(crate) fn value_in_words(verdict: Verdict, value: Option<Quantity>) -> String {
    match (verdict, value) {
        (Verdict::Absent, _) => "none".to_owned(),
        (_, None) => "?".to_owned(),
        (Verdict::Certain, Some(value)) => quantity(value),
        (Verdict::Inconclusive, Some(value)) => format!("≈ {}", quantity(value)),
    }
}

/// The verdict in a word or two.
pub(crate) fn verdict_in_words(verdict: Verdict, value: Option<Quantity>) -> &'static str {
    match (verdict, value) {
        (Verdict::Certain, _) => "certain",
        (Verdict::Inconclusive, None) => "inconclusive",
        (Verdict::Inconclusive, Some(_)) => "best guess",
        (Verdict::Absent, _) => "absent",
    }
}

/// Both ends of an interval, the unit said once where both have it: `3.84 … 4.1 MiB`.
fn interval(low: Quantity, high: Quantity) -> String {
    if low == high {
        return "± 0".to_owned();
    }
    let (first, last) = match (low, high) {
        // Sizes that are equal in a large unit are printed in a smaller one.
        (Quantity::Bytes(low), Quantity::Bytes(high)) if bytes(low) == bytes(high) => finer_sizes(low, high),
        _ => (quantity(low), quantity(high)),
    };
    match (first.split_once(' '), last.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} … {last}"),
        _ => format!("{first} … {last}"),
    }
}

fn finer_sizes(low: u64, high: u64) -> (String, String) {
    let (unit, name) = if low.is_multiple_of(1024) && high.is_multiple_of(1024) { (1024, "KiB") } else { (1, "B") };
    (format!("{} {name}", grouped(low / unit)), format!("{} {name}", grouped(high / unit)))
}

/// A figure with its interval, in a cell of a table: `3.02, 2.95 … 3.10`.
pub(crate) fn interval_in_words(figure: &Figure<Quantity>) -> String {
    let value = match (figure.verdict, figure.value) {
        (Verdict::Absent, _) => return "–".to_owned(),
        (_, None) => return "?".to_owned(),
        (Verdict::Certain, Some(value)) => quantity(value),
        (Verdict::Inconclusive, Some(value)) => format!("≈ {}", quantity(value)),
    };
    match (figure.low, figure.high) {
        (Some(low), Some(high)) if low == high => format!("{value} ± 0"),
        (Some(low), Some(high)) => format!("{value}, {} … {}", quantity(low), quantity(high)),
        _ => value,
    }
}

/// `64 KiB·i + 32 KiB`.
pub(crate) fn location(hot: HotLocation) -> String {
    match hot.offset_bytes {
        0 => format!("{}·i", bytes(hot.period_bytes)),
        offset => format!("{}·i + {}", bytes(hot.period_bytes), bytes(offset)),
    }
}

/// A value of any figure with its unit.
pub(crate) fn quantity(value: Quantity) -> String {
    match value {
        Quantity::Bytes(n) => bytes(n),
        Quantity::Count(n) => grouped(n),
        Quantity::Nanos(n) => time(n),
        Quantity::BytesPerSecond(n) => format!("{}/s", bytes(n)),
        Quantity::PerSecond(n) => format!("{}/s", grouped(n)),
        Quantity::Ratio(x) => two_decimals(x),
        Quantity::Share(x) => percentage(x),
        Quantity::Years(x) => format!("{} years", significant(x)),
        Quantity::AddressBits(mask) => address_bits(mask),
        Quantity::Flag(true) => "yes".to_owned(),
        Quantity::Flag(false) => "no".to_owned(),
        Quantity::Location(hot) => location(hot),
    }
}

/// `12, 13, 17` for a mask.
fn address_bits(mask: u64) -> String {
    let bits: Vec<String> = (0..u64::BITS).filter(|bit| mask >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
    bits.join(", ")
}

/// The figures that are letters.
pub(crate) const LEGEND: &str = "α: reads a second ÷ writes a second, 4 KiB each; k_r, k_w: reads, writes in flight at \
                                 which throughput stops growing.";

/// The figures that settings follow from.
const MAIN: [(&str, &str); 7] = [
    ("write_unit_bytes", "write unit"),
    ("chunk_bytes", "chunk"),
    ("hot_location", "hot locations"),
    ("asymmetry_4k", "α"),
    ("read_concurrency_4k", "k_r"),
    ("write_concurrency_4k", "k_w"),
    ("flush_ns", "flush"),
];

/// The main figures in a sentence.
pub(crate) fn short_sentence(profile: &DeviceProfile) -> String {
    let entries: Vec<Entry> = profile.probed_entries().collect();
    let of = |(key, name): &(&str, &str)| {
        let figure = entries.iter().find(|entry| entry.key == *key)?.figure;
        Some(format!("{name} {}", value_in_words(figure.verdict, figure.value)))
    };
    super::findings::sentence(&MAIN.iter().filter_map(of).collect::<Vec<_>>().join(", "))
}

/// The figures of a profile that were probed, group by group; groups without any are left out.
pub(crate) fn parameter_groups(profile: &DeviceProfile) -> Vec<(&'static Group, Vec<ParameterRow>)> {
    let entries: Vec<Entry> = profile.probed_entries().collect();
    let evidence = |key: &str| profile.evidence.iter().find(|evidence| evidence.figure == key);
    let row =
        |group: &Group, entry: &Entry| Some(ParameterRow::new(entry, group.name_of(entry.key)?, evidence(entry.key)));
    let rows = |group: &'static Group| {
        let members = group.sort_out(&entries, |entry| entry.key);
        (group, members.into_iter().filter_map(|entry| row(group, entry)).collect::<Vec<_>>())
    };
    let mut groups: Vec<_> = GROUPS.iter().map(rows).collect();
    let place = groups.iter().position(|(group, _)| group.title == ASYMMETRY).map_or(groups.len(), |at| at + 1);
    groups.insert(place, (&OTHER_SIZES, profile.at_sizes.iter().flat_map(rows_at_size).collect()));
    groups.retain(|(_, rows)| !rows.is_empty());
    groups
}

fn rows_at_size(at: &AtSize) -> [ParameterRow; 4] {
    let size = bytes(at.request_bytes);
    let row = |name: &str, figure: Figure<Quantity>| {
        ParameterRow::of(OTHER_SIZES.title, &figure, format!("{name}, {size}").into(), None)
    };
    [
        row("α", at.asymmetry.map(Quantity::Ratio)),
        row("k_r", at.read_concurrency.map(Quantity::Count)),
        row("k_w", at.write_concurrency.map(Quantity::Count)),
        row("α by latency", at.latency_asymmetry.map(Quantity::Ratio)),
    ]
}

/// How many figures have which verdict: `28 certain, 6 absent, 1 inconclusive`.
pub(crate) fn verdict_counts(groups: &[(&Group, Vec<ParameterRow>)]) -> String {
    let verdicts: Vec<_> = groups.iter().flat_map(|(_, rows)| rows).map(|row| row.verdict_text).collect();
    let count = |verdict: &str| verdicts.iter().filter(|other| **other == verdict).count();
    let order = ["certain", "absent", "best guess", "inconclusive", NOT_TRIED];
    let counts = order.into_iter().map(|verdict| (count(verdict), verdict)).filter(|(n, _)| *n > 0);
    counts.map(|(n, verdict)| format!("{n} {verdict}")).collect::<Vec<_>>().join(", ")
}

/// Figures that are inconclusive for one reason.
#[derive(Debug, PartialEq)]
pub(crate) struct InconclusiveFigures {
    pub(crate) verdict: &'static str,
    /// `Layout: superblock. Garbage collection: everything.`
    pub(crate) what: String,
    pub(crate) reason: String,
}

/// Why figures are inconclusive; those with the same verdict and reason are listed together.
pub(crate) fn open_figures(groups: &[(&Group, Vec<ParameterRow>)]) -> Vec<InconclusiveFigures> {
    let mut lists: Vec<InconclusiveFigures> = Vec::new();
    for row in groups.iter().flat_map(|(_, rows)| rows).filter(|row| row.is_inconclusive()) {
        if !lists.iter().any(|list| row.is_listed_in(list)) {
            let (what, reason) = (String::new(), row.reason.clone());
            lists.push(InconclusiveFigures { verdict: row.verdict_text, what, reason });
        }
    }
    for list in &mut lists {
        let names = groups.iter().filter_map(|(group, rows)| names_in(group, rows, list));
        list.what = names.collect::<Vec<_>>().join(" ");
    }
    lists
}

/// The group's figures that are in `list`.
fn names_in(group: &Group, rows: &[ParameterRow], list: &InconclusiveFigures) -> Option<String> {
    let names: Vec<&str> = rows.iter().filter(|row| row.is_listed_in(list)).map(|row| &*row.name).collect();
    match names.len() {
        0 => None,
        n if n == rows.len() && n > 1 => Some(format!("{}: all.", group.title)),
        _ => Some(format!("{}: {}.", group.title, names.join("; "))),
    }
}

/// The atomic writes that the drive promises.
pub(crate) fn promise_sentence(profile: &DeviceProfile) -> Option<String> {
    let unit = profile.device.promised_atomic_write_bytes?;
    Some(format!("Atomic writes: up to {}, promised by the drive, not measured.", bytes(unit)))
}

/// How the figures were measured, in a sentence.
pub(crate) fn recipe_sentence(profile: &DeviceProfile) -> String {
    let recipe = &profile.recipe;
    let clock = match profile.device.clock {
        flashwise_block::Clock::Virtual => "of simulated time",
        flashwise_block::Clock::Wall => "of wall-clock time",
    };
    format!(
        "Measured in a region of {} on {} ({}), seed {}: {} written and {} read in {} {clock}.",
        bytes(recipe.region_bytes),
        profile.device.target,
        bytes(profile.device.capacity_bytes),
        recipe.seed,
        bytes(recipe.bytes_written),
        bytes(recipe.bytes_read),
        time(recipe.device_time_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_ends_of_an_interval_share_their_unit_and_differ() {
        let size = |low, high| interval(Quantity::Bytes(low), Quantity::Bytes(high));
        assert_eq!(size(4096, 4096), "± 0");
        assert_eq!(size(16 << 10, 64 << 10), "16 … 64 KiB");
        assert_eq!(size(512, 4096), "512 B … 4 KiB");
        assert_eq!(size(8 << 20, (8 << 20) + 4096), "8,192 … 8,196 KiB");
        assert_eq!(size(8 << 20, (8 << 20) + 1), "8,388,608 … 8,388,609 B");
        assert_eq!(interval(Quantity::Share(0.26), Quantity::Share(0.29)), "26.0 … 29.0 %");
        assert_eq!(interval(Quantity::Count(18), Quantity::Count(21)), "18 … 21");
    }

    #[test]
    fn inconclusive_figures_with_one_reason_are_listed_together_and_a_whole_group_by_its_title() {
        let mut profile = sample::samsung().profile;
        let left_out = |figure: &str| Evidence {
            figure: figure.to_owned(),
            recipe: "collection".to_owned(),
            reason: "too many writes".to_owned(),
            left_out: true,
            not_tried: true,
            curve: None,
        };
        profile.evidence.extend(["superblock_bytes", "trim_gain", "collection_cost"].map(left_out));
        let open = open_figures(&parameter_groups(&profile));
        let told: Vec<_> = open.iter().map(|o| (o.verdict, o.what.as_str(), o.reason.as_str())).collect();
        assert_eq!(
            told,
            [
                ("not tried", "Layout: superblock. Garbage collection: all.", "too many writes"),
                (
                    "inconclusive",
                    "Asymmetry and concurrency: k_w, 8 KiB.",
                    "throughput still grew at the largest depth"
                ),
            ]
        );
    }

    #[test]
    fn promised_atomic_writes_are_shown_as_a_promise_and_an_absent_promise_is_not_shown() {
        let mut profile = sample::samsung().profile;
        assert_eq!(promise_sentence(&profile), None);
        profile.device.promised_atomic_write_bytes = Some(16 << 10);
        let line = "Atomic writes: up to 16 KiB, promised by the drive, not measured.";
        assert_eq!(promise_sentence(&profile).as_deref(), Some(line));
        let printed = crate::render_profile(&profile, crate::Style::default()).to_string();
        assert!(printed.lines().any(|shown| shown.trim() == line), "{printed}");
        let page = crate::profile_page(&profile);
        assert!(page.contains("promised by the drive"), "{page}");
    }

    #[test]
    fn verdicts_are_counted() {
        let counts = verdict_counts(&parameter_groups(&sample::samsung().profile));
        assert_eq!(counts, "11 certain, 1 absent, 2 best guess, 1 inconclusive");
    }
}
