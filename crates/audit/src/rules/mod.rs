//! The rules, a file each.
//!
//! # Adding a rule
//!
//! 1. A file here with a type behind [`Check`], or behind [`PerRequest`] where a request alone says whether it breaks
//!    the rule; `write_whole_units.rs` is the shortest. It says too how the requests look when the rule is kept
//!    ([`crate::fix`]), so that the difference on a simulated drive is what the violations cost. Below it a table test
//!    (`check`) and a golden trace (`golden`), both of `crate::tests`; a test fails without the latter.
//! 2. Its `mod` and its line in the list below: what it says, its variant of [`Rule`], its file, its name.
//! 3. Its row in `docs/guide/audit.md`, with the figures that must be certain; a test fails without it.

mod align_partition;
mod append_in_fresh_pages;
mod commit_to_one_file;
mod fill_request_units;
mod keep_burst_credits;
mod keep_hot_locations;
mod keep_units_open;
mod pace_checkpoints;
mod pages_of_write_unit;
mod read_chunks_at_hot_locations;
mod read_in_parallel;
mod separate_hot_and_cold;
mod spare_first_unit;
mod start_writes_on_stripes;
mod sync_less_often;
mod touch_few_pages;
mod trim_dead_data;
mod write_back_in_parallel;
mod write_once;
mod write_whole_units;

use flashwise_block::{ByteSize, Nanos};
use flashwise_profile::{DeviceProfile, Figure, HotLocation, Verdict};
use flashwise_trace::TraceRecord;
use serde::{Deserialize, Serialize};

use crate::play::Step;
use crate::request::{Facts, ObservedRequest};
use crate::system::{Shown, Technique};
use crate::tally::Tally;

/// One rule with the drive's figures filled in, checked against a trace request by request.
pub(crate) trait Check {
    /// Checks the next request, and counts the violations that it or earlier ones turn out to be.
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally);

    /// Counts the violations that show only at the end of the trace.
    fn finish(&mut self, _tally: &mut Tally) {}

    /// Why the trace does not allow the rule to be judged, if so.
    fn hidden(&self, _facts: &Facts) -> Option<String> {
        None
    }

    /// The rule in a sentence, with the drive's figures.
    fn statement(&self) -> String;

    /// What would help, in a sentence, by the name of the setting or the technique; of the system that the trace shows.
    fn remedy(&self, shown: &Shown) -> String;

    /// Whether a setting of the system that the trace shows, or a technique, can keep the rule.
    fn can_change(&self, _shown: &Shown) -> bool {
        true
    }

    /// The window with the violations fixed; steps whose requests violate the rule are marked.
    fn fix(&self, steps: &[Step]) -> Vec<Step>;

    /// Whether violations cost something only where superblocks are collected: then they are played on the drive in its
    /// steady state, again and again.
    fn is_paid_in_collection(&self) -> bool {
        false
    }

    /// Of a rule about a volume's limits: time of its budget that the steps take, or that reads wait for it. The
    /// difference is the cost then, without a simulated drive, which has no limits.
    fn budget_time(&self, _steps: &[Step]) -> Option<Nanos> {
        None
    }

    /// Whether that time is not of a budget, but of merges of a memory card, which the simulated drive does not make.
    fn is_paid_in_merges(&self) -> bool {
        false
    }
}

/// A rule that needs nothing but the request itself.
pub(crate) trait PerRequest {
    /// Whether the rule speaks about this request.
    fn applies(&self, seen: &ObservedRequest) -> bool;

    /// Whether a request that the rule speaks about keeps it.
    fn obeys(&self, record: &TraceRecord) -> bool;

    /// As [`Check::statement`].
    fn statement(&self) -> String;

    /// As [`Check::remedy`].
    fn remedy(&self, shown: &Shown) -> String;

    /// As [`Check::can_change`].
    fn can_change(&self, _shown: &Shown) -> bool {
        true
    }

    /// As [`Check::fix`].
    fn fix(&self, steps: &[Step]) -> Vec<Step>;
}

/// Makes a [`Check`] of it.
struct Each<R>(R);

impl<R: PerRequest> Check for Each<R> {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
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

    fn remedy(&self, shown: &Shown) -> String {
        self.0.remedy(shown)
    }

    fn can_change(&self, shown: &Shown) -> bool {
        self.0.can_change(shown)
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        self.0.fix(steps)
    }
}

/// The rule made ready for a drive, or why it cannot be judged.
pub(crate) type Prepare = fn(&DeviceProfile) -> Result<Box<dyn Check>, String>;

macro_rules! rules {
    ($($(#[$about:meta])* $rule:ident $module:ident $name:literal,)*) => {
        /// A rule: the paper's five, and those that follow from other figures of a profile.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Rule {
            $($(#[$about])* #[serde(rename = $name)] $rule,)*
        }

        impl Rule {
            /// All rules in the order of their numbers.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$rule),*];

            /// The rule's name in documents and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$rule => $name,)* }
            }
        }

        /// Every rule, in the order of their numbers.
        pub(crate) static REGISTRY: [(Rule, Prepare); Rule::ALL.len()] = [$((Rule::$rule, $module::prepare)),*];

        /// The text of every rule's file.
        #[cfg(test)]
        pub(crate) const SOURCES: [(Rule, &str); Rule::ALL.len()] =
            [$((Rule::$rule, include_str!(concat!(stringify!($module), ".rs")))),*];
    };
}

rules! {
    /// 1: write lengths are multiples of the write unit.
    WriteWholeUnits write_whole_units "write-whole-units",
    /// 2: reads are chunk-sized and start at hot locations.
    ReadChunksAtHotLocations read_chunks_at_hot_locations "read-chunks-at-hot-locations",
    /// 3: writes start on a stripe boundary.
    StartWritesOnStripes start_writes_on_stripes "start-writes-on-stripes",
    /// 4: no chunk-sized write off the chunk's alignment: it wipes out hot locations.
    KeepHotLocations keep_hot_locations "keep-hot-locations",
    /// 5: a write touches as few flash pages as its length allows.
    TouchFewPages touch_few_pages "touch-few-pages",
    /// 6: a flushed append does not rewrite the flash page that an earlier flush made durable.
    AppendInFreshPages append_in_fresh_pages "append-in-fresh-pages",
    /// 7: data is written once, not first to a log or double-write area and then in place.
    WriteOnce write_once "write-once",
    /// 8: dirty pages are written back k_w at a time.
    WriteBackInParallel write_back_in_parallel "write-back-in-parallel",
    /// 9: reads are submitted k_r at a time.
    ReadInParallel read_in_parallel "read-in-parallel",
    /// 10: a page of the database is no shorter than the write unit.
    PagesOfWriteUnit pages_of_write_unit "pages-of-write-unit",
    /// 11: a flush closes at least one write unit.
    SyncLessOften sync_less_often "sync-less-often",
    /// 12: dead data is trimmed.
    TrimDeadData trim_dead_data "trim-dead-data",
    /// 13: partition and file system start on a flash page.
    AlignPartition align_partition "align-partition",
    /// 14: short-lived and long-lived data are written to different superblocks.
    SeparateHotAndCold separate_hot_and_cold "separate-hot-and-cold",
    /// 15: commits do not spend the I/O credits of a volume.
    KeepBurstCredits keep_burst_credits "keep-burst-credits",
    /// 16: adjacent requests fill the unit that a volume charges.
    FillRequestUnits fill_request_units "fill-request-units",
    /// 17: checkpoints leave reads their part of a budget that both share.
    PaceCheckpoints pace_checkpoints "pace-checkpoints",
    /// 18: writes stay within the allocation units that a memory card keeps open.
    KeepUnitsOpen keep_units_open "keep-units-open",
    /// 19: no bulk data in a card's first unit, which it keeps open for small writes.
    SpareFirstUnit spare_first_unit "spare-first-unit",
    /// 20: on a card, a commit creates, deletes and truncates no file.
    CommitToOneFile commit_to_one_file "commit-to-one-file",
}

impl Rule {
    /// The rule's number; the first five are the paper's.
    pub const fn number(self) -> u32 {
        self as u32 + 1
    }

    /// The rule of a name or a number.
    pub fn of_name(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == text || rule.number().to_string() == text)
    }
}

/// A figure that is certain, or the reason why it cannot be used.
fn known<T: Copy>(figure: &Figure<T>, what: &str) -> Result<T, String> {
    match figure.verdict {
        Verdict::Absent => Err(format!("the drive has no {what}")),
        Verdict::Inconclusive if figure.value.is_none() => Err(format!("the profile has no {what}")),
        _ => figure.known().ok_or_else(|| format!("the drive's {what} is inconclusive")),
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
        0 => Err(format!("the profile has a {what} of 0 B")),
        bytes if bytes > SIZE_MAX => Err(format!("the profile has a {what} of {}", ByteSize(bytes))),
        bytes => Ok(bytes),
    }
}

/// A concurrency that is certain and above one: with one there is nothing to do in parallel.
fn known_concurrency(figure: &Figure<u64>, what: &str) -> Result<u32, String> {
    match known(figure, what)? {
        0 | 1 => Err(format!("the drive gains nothing from more than one request in flight ({what} is 1)")),
        count => Ok(u32::try_from(count).unwrap_or(u32::MAX).min(1024)),
    }
}

/// A hot location that is certain and is within its period.
fn known_hot_location(profile: &DeviceProfile) -> Result<HotLocation, String> {
    let hot = known(&profile.parameters.hot_location, "hot location")?;
    if hot.offset_bytes >= hot.period_bytes {
        return Err(format!("the profile's hot location {} is outside its period", location(hot)));
    }
    Ok(hot)
}

/// What requests take of a limit in one second of the trace after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Seconds {
    first: Option<Nanos>,
    last: Nanos,
    taken: f64,
}

impl Seconds {
    /// Adds a request; returns what its second has taken so far, this request included.
    fn take(&mut self, at: Nanos, units: f64) -> f64 {
        self.first.get_or_insert(at);
        if self.second(at) != self.second(self.last) {
            self.taken = 0.0;
        }
        self.last = self.last.max(at);
        self.taken += units;
        self.taken
    }

    /// Which second of the trace a time is in.
    fn second(&self, at: Nanos) -> u64 {
        at.since(self.first.unwrap_or_default()).0 / Nanos::secs(1).0
    }

    /// Why a rule about a rate cannot be judged, if so.
    fn hidden(&self, facts: &Facts) -> Option<String> {
        let has_times = self.first.is_some_and(|first| first < self.last);
        (!has_times && self.first.is_some())
            .then(|| "the trace has no times".to_owned())
            .or_else(|| hides_charges(facts))
    }
}

/// Why a trace does not show what a volume charges, if so.
fn hides_charges(facts: &Facts) -> Option<String> {
    let why = "the trace was taken above the page cache and does not show which requests the volume charges";
    facts.is_above_page_cache.then(|| why.to_owned())
}

/// How many requests a volume charges for one of so many bytes.
fn charged(bytes: u64, unit: Option<u64>) -> u64 {
    unit.map_or(1, |unit| bytes.div_ceil(unit.max(1)).max(1))
}

/// The time of the refill of so many tokens.
fn refill_time(tokens: f64, per_second: f64) -> Nanos {
    Nanos((tokens / per_second * 1e9) as u64)
}

/// The remedy where what would help is on already.
const SET_ALREADY: &str = "what would help is set already; no other setting changes these";

/// The remedy where only a technique of flashwise's VFS keeps the rule, which is for SQLite.
fn with_vfs(shown: &Shown, technique: Technique, remedy: String) -> String {
    match () {
        () if !shown.may_use_vfs() => "no setting of this database system changes where it reads and writes".to_owned(),
        () if shown.is_on(technique) => SET_ALREADY.to_owned(),
        () => remedy,
    }
}

/// The settings in brackets behind a remedy, if there are any.
fn in_brackets(settings: &str) -> String {
    if settings.is_empty() { String::new() } else { format!(" ({settings})") }
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
