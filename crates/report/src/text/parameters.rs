//! What the drive hides: one row a figure.

use flashwise_profile::{DeviceProfile, Figure, HotLocation, Verdict};

use super::numbers::{bytes, grouped, time, two_decimals};

/// A figure in words.
pub(crate) struct ParameterRow {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) interval: String,
    pub(crate) verdict: Verdict,
}

impl ParameterRow {
    fn new<T: Copy + PartialEq>(name: &'static str, figure: &Figure<T>, show: impl Fn(T) -> String) -> Self {
        let value = match (figure.verdict, figure.value) {
            (Verdict::Absent, _) => "– (the drive shows none)".to_owned(),
            (_, None) => "?".to_owned(),
            (Verdict::Certain, Some(value)) => show(value),
            (Verdict::Inconclusive, Some(value)) => format!("≈ {}", show(value)),
        };
        let interval = match (figure.low, figure.high) {
            (Some(low), Some(high)) if low == high => "± 0".to_owned(),
            (Some(low), Some(high)) => format!("{} … {}", show(low), show(high)),
            _ => "–".to_owned(),
        };
        Self { name, value, interval, verdict: figure.verdict }
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

/// `64 KiB·i + 32 KiB`.
pub(crate) fn location(hot: HotLocation) -> String {
    match hot.offset_bytes {
        0 => format!("{}·i", bytes(hot.period_bytes)),
        offset => format!("{}·i + {}", bytes(hot.period_bytes), bytes(offset)),
    }
}

/// All figures of a profile in the order of the rules that use them.
pub(crate) fn parameter_rows(profile: &DeviceProfile) -> Vec<ParameterRow> {
    let p = &profile.parameters;
    vec![
        ParameterRow::new("write unit", &p.write_unit_bytes, bytes),
        ParameterRow::new("stripe", &p.stripe_bytes, bytes),
        ParameterRow::new("chunk", &p.chunk_bytes, bytes),
        ParameterRow::new("hot locations", &p.hot_location, location),
        ParameterRow::new("flash page", &p.page_bytes, bytes),
        ParameterRow::new("asymmetry α, 4 KiB", &p.asymmetry_4k, two_decimals),
        ParameterRow::new("concurrency k_r, 4 KiB", &p.read_concurrency_4k, grouped),
        ParameterRow::new("concurrency k_w, 4 KiB", &p.write_concurrency_4k, grouped),
        ParameterRow::new("asymmetry α, 8 KiB", &p.asymmetry_8k, two_decimals),
        ParameterRow::new("concurrency k_r, 8 KiB", &p.read_concurrency_8k, grouped),
        ParameterRow::new("concurrency k_w, 8 KiB", &p.write_concurrency_8k, grouped),
    ]
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
