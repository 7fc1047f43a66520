//! What the drive hides: one row a figure.

use flashwise_profile::{DeviceProfile, Entry, Figure, HotLocation, Quantity, Verdict};

use super::numbers::{bytes, grouped, percentage, time, two_decimals};

/// A figure in words.
pub(crate) struct ParameterRow {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) interval: String,
    pub(crate) verdict: Verdict,
}

impl ParameterRow {
    fn new(entry: &Entry) -> Self {
        let figure = &entry.figure;
        let value = match (figure.verdict, figure.value) {
            (Verdict::Absent, _) => "– (the drive shows none)".to_owned(),
            (_, None) => "?".to_owned(),
            (Verdict::Certain, Some(value)) => quantity(value),
            (Verdict::Inconclusive, Some(value)) => format!("≈ {}", quantity(value)),
        };
        let interval = match (figure.low, figure.high) {
            (Some(low), Some(high)) if low == high => "± 0".to_owned(),
            (Some(low), Some(high)) => format!("{} … {}", quantity(low), quantity(high)),
            _ => "–".to_owned(),
        };
        Self { name: entry.title, value, interval, verdict: figure.verdict }
    }

    /// The verdict in a word or two.
    pub(crate) fn verdict_text(&self) -> &'static str {
        match self.verdict {
            Verdict::Certain => "certain",
            Verdict::Inconclusive if self.value == "?" => "cannot tell",
            Verdict::Inconclusive => "best guess",
            Verdict::Absent => "absent",
        }
    }
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
        Quantity::Ratio(x) => two_decimals(x),
        Quantity::Share(x) => percentage(x),
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

/// The figures of a profile that somebody looked for.
pub(crate) fn parameter_rows(profile: &DeviceProfile) -> Vec<ParameterRow> {
    profile.looked_for().map(|entry| ParameterRow::new(&entry)).collect()
}

/// What was learned from, in a sentence.
pub(crate) fn recipe_sentence(profile: &DeviceProfile) -> String {
    let recipe = &profile.recipe;
    let clock = match profile.device.clock {
        flashwise_block::Clock::Virtual => "of simulated time",
        flashwise_block::Clock::Wall => "of real time",
    };
    format!(
        "Learned on {} of {} ({}) with seed {}: {} written and {} read in {} {clock}.",
        bytes(recipe.region_bytes),
        profile.device.target,
        bytes(profile.device.capacity_bytes),
        recipe.seed,
        bytes(recipe.bytes_written),
        bytes(recipe.bytes_read),
        time(recipe.device_time_ns),
    )
}
