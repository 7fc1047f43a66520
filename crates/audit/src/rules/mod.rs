//! One file a rule. A rule is added with a file and a line in [`REGISTRY`].

mod keep_hot_locations;
mod read_chunks_at_hot_locations;
mod start_writes_on_stripes;
mod touch_few_pages;
mod write_whole_units;

use flashwise_block::{ByteSize, Operation};
use flashwise_profile::{DeviceProfile, Figure, HotLocation, Verdict};
use flashwise_trace::{FileRole, IoRecord, IoTrace};

use crate::{Cost, Rule};

/// One rule with the drive's own figures in it.
pub(crate) trait Check {
    /// Whether the rule speaks about this request.
    fn applies(&self, record: &IoRecord) -> bool;

    /// Whether a request that the rule speaks about keeps it.
    fn obeys(&self, record: &IoRecord) -> bool;

    /// What all requests that break the rule cost over the trace.
    fn cost(&self, trace: &IoTrace) -> Cost;

    /// The rule in a sentence, with the drive's figures.
    fn statement(&self) -> String;

    /// What would help, in a sentence.
    fn remedy(&self) -> String;

    /// Whether a request breaks the rule.
    fn breaks(&self, record: &IoRecord) -> bool {
        self.applies(record) && !self.obeys(record)
    }
}

/// The rule made ready for a drive, or why it cannot be judged.
type Prepare = fn(&DeviceProfile) -> Result<Box<dyn Check + '_>, String>;

/// Every rule, in the order of their numbers.
pub(crate) static REGISTRY: [(Rule, Prepare); 5] = [
    (Rule::WriteWholeUnits, write_whole_units::prepare),
    (Rule::ReadChunksAtHotLocations, read_chunks_at_hot_locations::prepare),
    (Rule::StartWritesOnStripes, start_writes_on_stripes::prepare),
    (Rule::KeepHotLocations, keep_hot_locations::prepare),
    (Rule::TouchFewPages, touch_few_pages::prepare),
];

/// A figure that is certain, or a sentence that says why there is none.
fn known<T: Copy>(figure: &Figure<T>, what: &str) -> Result<T, String> {
    match figure.verdict {
        Verdict::Absent => Err(format!("the drive shows no {what}")),
        _ => figure.known().ok_or_else(|| format!("the evidence does not settle the drive's {what}")),
    }
}

/// A size that is certain and not zero.
fn known_size(figure: &Figure<u64>, what: &str) -> Result<u64, String> {
    match known(figure, what)? {
        0 => Err(format!("the profile says that the drive's {what} is 0 B")),
        bytes => Ok(bytes),
    }
}

/// A hot location that is certain and lies within its period.
fn known_hot_location(profile: &DeviceProfile) -> Result<HotLocation, String> {
    let hot = known(&profile.parameters.hot_location, "hot location")?;
    if hot.offset_bytes >= hot.period_bytes {
        return Err(format!("the profile's hot location {} lies outside its period", location(hot)));
    }
    Ok(hot)
}

/// `64 KiB·i + 32 KiB`.
fn location(hot: HotLocation) -> String {
    let period = ByteSize(hot.period_bytes);
    match hot.offset_bytes {
        0 => format!("{period}·i"),
        offset => format!("{period}·i + {}", ByteSize(offset)),
    }
}

fn is_write(record: &IoRecord) -> bool {
    record.operation == Operation::Write && record.length.0 > 0
}

/// A read of the database, or of a file that nobody knows.
fn is_database_read(record: &IoRecord) -> bool {
    let whose = matches!(record.role, FileRole::Database | FileRole::Unknown);
    record.operation == Operation::Read && record.length.0 > 0 && whose
}

/// How many `unit`s a request touches more than one of its length has to.
fn units_touched_in_vain(record: &IoRecord, unit: u64) -> u64 {
    let touched = (record.offset.0 % unit).saturating_add(record.length.0).div_ceil(unit);
    touched - record.length.0.div_ceil(unit)
}
