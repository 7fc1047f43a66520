//! One file a rule. A rule is added with a file and a line in [`REGISTRY`].

mod align_partition;
mod append_in_fresh_pages;
mod keep_hot_locations;
mod pages_of_write_unit;
mod read_chunks_at_hot_locations;
mod read_in_parallel;
mod separate_hot_and_cold;
mod start_writes_on_stripes;
mod sync_less_often;
mod touch_few_pages;
mod trim_dead_data;
mod write_back_in_parallel;
mod write_once;
mod write_whole_units;

use flashwise_block::ByteSize;
use flashwise_profile::{DeviceProfile, Figure, HotLocation, Verdict};
use flashwise_trace::TraceRecord;

use crate::Rule;
use crate::play::Step;
use crate::request::{Facts, Seen};
use crate::tally::Tally;

/// One rule with the drive's own figures in it, held against a trace request by request.
pub(crate) trait Check {
    /// Looks at the next request, and counts what it can say of it or of earlier ones.
    fn observe(&mut self, seen: &Seen, tally: &mut Tally);

    /// Counts what only the end of the trace tells.
    fn finish(&mut self, _tally: &mut Tally) {}

    /// Why the trace does not allow the rule to be judged, if so.
    fn hidden(&self, _facts: &Facts) -> Option<String> {
        None
    }

    /// The rule in a sentence, with the drive's figures.
    fn statement(&self) -> String;

    /// What would help, in a sentence, by the name of the knob or the technique.
    fn remedy(&self) -> String;

    /// The window with the violations mended; steps whose requests break the rule are marked.
    fn mend(&self, steps: &[Step]) -> Vec<Step>;

    /// Whether violations cost something only where superblocks are collected: then they are played on the drive in its
    /// steady state, again and again.
    fn is_paid_in_collection(&self) -> bool {
        false
    }
}

/// A rule that needs nothing but the request itself.
pub(crate) trait PerRequest {
    /// Whether the rule speaks about this request.
    fn applies(&self, seen: &Seen) -> bool;

    /// Whether a request that the rule speaks about keeps it.
    fn obeys(&self, record: &TraceRecord) -> bool;

    /// As [`Check::statement`].
    fn statement(&self) -> String;

    /// As [`Check::remedy`].
    fn remedy(&self) -> String;

    /// As [`Check::mend`].
    fn mend(&self, steps: &[Step]) -> Vec<Step>;
}

/// Makes a [`Check`] of it.
struct Each<R>(R);

impl<R: PerRequest> Check for Each<R> {
    fn observe(&mut self, seen: &Seen, tally: &mut Tally) {
        if !self.0.applies(seen) {
            return;
        }
        tally.speaks();
        if !self.0.obeys(&seen.record) {
            tally.breaks(seen);
        }
    }

    fn statement(&self) -> String {
        self.0.statement()
    }

    fn remedy(&self) -> String {
        self.0.remedy()
    }

    fn mend(&self, steps: &[Step]) -> Vec<Step> {
        self.0.mend(steps)
    }
}

/// The rule made ready for a drive, or why it cannot be judged.
pub(crate) type Prepare = fn(&DeviceProfile) -> Result<Box<dyn Check>, String>;

/// Every rule, in the order of their numbers.
pub(crate) static REGISTRY: [(Rule, Prepare); 14] = [
    (Rule::WriteWholeUnits, write_whole_units::prepare),
    (Rule::ReadChunksAtHotLocations, read_chunks_at_hot_locations::prepare),
    (Rule::StartWritesOnStripes, start_writes_on_stripes::prepare),
    (Rule::KeepHotLocations, keep_hot_locations::prepare),
    (Rule::TouchFewPages, touch_few_pages::prepare),
    (Rule::AppendInFreshPages, append_in_fresh_pages::prepare),
    (Rule::WriteOnce, write_once::prepare),
    (Rule::WriteBackInParallel, write_back_in_parallel::prepare),
    (Rule::ReadInParallel, read_in_parallel::prepare),
    (Rule::PagesOfWriteUnit, pages_of_write_unit::prepare),
    (Rule::SyncLessOften, sync_less_often::prepare),
    (Rule::TrimDeadData, trim_dead_data::prepare),
    (Rule::AlignPartition, align_partition::prepare),
    (Rule::SeparateHotAndCold, separate_hot_and_cold::prepare),
];

/// A figure that is certain, or a sentence that says why there is none.
fn known<T: Copy>(figure: &Figure<T>, what: &str) -> Result<T, String> {
    match figure.verdict {
        Verdict::Absent => Err(format!("the drive shows no {what}")),
        _ => figure.known().ok_or_else(|| format!("the evidence does not settle the drive's {what}")),
    }
}

/// A size that need not be exact: certain, or a best guess whose interval is within a tenth of it.
fn about(figure: &Figure<u64>, what: &str) -> Result<u64, String> {
    let guess = match (figure.verdict, figure.value, figure.low, figure.high) {
        (Verdict::Inconclusive, Some(value), Some(low), Some(high)) => {
            let tenth = value / 10;
            (low >= value - tenth && high <= value.saturating_add(tenth)).then_some(value)
        }
        _ => None,
    };
    guess.map_or_else(|| known(figure, what), Ok)
}

/// Sizes that a rule may round to: no drive that is known programs or lays out more at once.
const SIZE_MAX: u64 = 64 << 20;

/// A size that is certain and not zero, and not beyond what any drive has.
fn known_size(figure: &Figure<u64>, what: &str) -> Result<u64, String> {
    match known(figure, what)? {
        0 => Err(format!("the profile says that the drive's {what} is 0 B")),
        bytes if bytes > SIZE_MAX => Err(format!("the profile says that the drive's {what} is {}", ByteSize(bytes))),
        bytes => Ok(bytes),
    }
}

/// A concurrency that is certain and above one: with one there is nothing to do in parallel.
fn known_concurrency(figure: &Figure<u64>, what: &str) -> Result<u32, String> {
    match known(figure, what)? {
        0 | 1 => Err(format!("the drive gains nothing from more than one request at a time ({what} is 1)")),
        count => Ok(u32::try_from(count).unwrap_or(u32::MAX).min(1024)),
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

/// How many `unit`s a request touches more than one of its length has to.
fn units_touched_in_vain(record: &TraceRecord, unit: u64) -> u64 {
    let touched = (record.offset.0 % unit).saturating_add(record.length.0).div_ceil(unit);
    touched - record.length.0.div_ceil(unit)
}
