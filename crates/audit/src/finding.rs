//! What an audit says.

use flashwise_block::Operation;
use flashwise_trace::FileRole;
use flashwise_truth::learned::Calibrated;
use serde::{Deserialize, Serialize};

use crate::Rule;
use crate::partitions::PartitionAudit;

/// What fixing a rule's violations would save over the simulated window: the unmodified requests minus the requests
/// with the violations fixed, on a drive made from the profile. Negative if the fix loses more than it saves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Drive time, or time that the program waits for its calls ([`Simulated::machine`]), ns; `None` if not simulated.
    pub time_ns: Option<i64>,
    /// Flash bytes programmed; `None` if not simulated.
    pub flash_bytes: Option<i64>,
    /// Whether both were replayed on the drive in its steady state, with garbage collection running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_steady_state: bool,
    /// Whether the time is that of the volume's budget instead: it is computed from the limits, without a drive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_budget: bool,
    /// Whether the time is that of a memory card's merges: it is computed from the card's units, without a drive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_merges: bool,
    /// Whether the time is what the program waits for its calls, and not the drive's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_calls: bool,
}

impl Cost {
    /// Whether the time was computed, without a simulated drive.
    pub fn is_computed(&self) -> bool {
        self.is_of_budget || self.is_of_merges
    }
}

/// What an audit concludes from the requests that break a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// Keeping the rule saves drive time or flash bytes; or no cost was simulated.
    #[default]
    Violation,
    /// Keeping the rule would save something, but no setting of this database system does it.
    Observation,
    /// Keeping the rule costs as much as it saves, or more: the requests are better left as they are.
    LeaveIt,
    /// No request breaks the rule.
    Kept,
}

impl Judgement {
    /// Of so many requests that break the rule, and their cost; `can_change` if a setting of the database or a
    /// technique can keep the rule.
    ///
    /// Time and flash bytes are compared as shares of the window's, so a remedy that loses 5 % of the drive time is
    /// worth it if it saves more than 5 % of the flash bytes.
    pub(crate) fn of(violations: u64, can_change: bool, cost: &Cost, simulated: Option<&Simulated>) -> Self {
        if violations == 0 {
            return Self::Kept;
        }
        let broken = if can_change { Self::Violation } else { Self::Observation };
        let totals = simulated.map(|simulated| simulated.window_totals(cost));
        let (Some(time), Some(bytes), Some((time_total, bytes_total))) = (cost.time_ns, cost.flash_bytes, totals)
        else {
            return broken;
        };
        let share = |part: i64, whole: u64| part as f64 / whole.max(1) as f64;
        match share(time, time_total) + share(bytes, bytes_total) > 0.0 {
            true => broken,
            false => Self::LeaveIt,
        }
    }
}

/// One request that violates a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The operation.
    pub operation: Operation,
    /// The file's role in a database, if known.
    pub role: FileRole,
    /// The file's name, if the trace has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u64,
    /// Which request of the trace; the first is 1.
    pub request: u64,
}

/// A part of the requests' addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A file or a disk by its name.
    File(String),
    /// All files that do the same for a database.
    Role(FileRole),
    /// A range of a device.
    Region {
        /// The device's number, if the trace has it.
        device: Option<u32>,
        /// First byte.
        start_bytes: u64,
        /// First byte behind it.
        end_bytes: u64,
    },
    /// All places beyond those with a counter of their own.
    Elsewhere,
}

/// How many of the violations are in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceShare {
    /// Where.
    pub place: Place,
    /// Requests there that violate the rule.
    pub violations: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How many of the violations are of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessShare {
    /// Its number.
    pub process: u32,
    /// Its requests that violate the rule.
    pub violations: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The result of one rule on one trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// What is concluded.
    #[serde(default)]
    pub judgement: Judgement,
    /// The rule in a sentence, with the drive's own figures in it.
    pub statement: String,
    /// Requests that violate it.
    pub violations: u64,
    /// Requests that it applies to.
    pub requests: u64,
    /// Bytes of the requests that violate it.
    pub bytes: u64,
    /// The first requests that violate it, at most three.
    pub examples: Vec<Example>,
    /// Where they are, most violations first, at most five.
    #[serde(default)]
    pub places: Vec<PlaceShare>,
    /// By process, most violations first, at most five; empty if the trace has no processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessShare>,
    /// Their cost.
    pub cost: Cost,
    /// The remedy, with the name of the setting or technique.
    pub remedy: String,
}

/// A rule that was not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UncheckedRule {
    /// Which.
    pub rule: Rule,
    /// Why.
    pub reason: String,
}

/// The unmodified window, replayed again and again on a drive in its steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyState {
    /// Drive time of one window, ns.
    pub time_ns: u64,
    /// Flash bytes that one window programs, including those that garbage collection moves.
    pub flash_bytes: u64,
    /// Host bytes that one window writes.
    pub host_bytes: u64,
}

impl Simulated {
    /// Drive time and flash bytes of the unmodified window, on the drive that a cost was simulated on.
    pub fn window_totals(&self, cost: &Cost) -> (u64, u64) {
        match self.steady_state.filter(|_| cost.is_in_steady_state) {
            Some(aged) => (aged.time_ns, aged.flash_bytes),
            None => (self.time_ns, self.flash_bytes),
        }
    }
}

/// What is between a program and its drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The file system.
    pub file_system: String,
    /// Memory that the page cache may fill. It is empty at first.
    pub memory_bytes: u64,
}

/// How the costs were simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulated {
    /// The first so many requests of the trace were simulated.
    pub window_requests: u64,
    /// Requests of the whole trace.
    pub trace_requests: u64,
    /// Of a trace that was taken above the page cache: what was between the program and the drive. Without it the
    /// window was replayed on the bare drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Time of the unmodified window, ns, without the program's own between requests: drive time, or with a `machine`
    /// the time of the calls.
    pub time_ns: u64,
    /// Flash bytes that the unmodified window programs.
    pub flash_bytes: u64,
    /// Host bytes that the unmodified window writes.
    pub host_bytes: u64,
    /// The same on the drive in its steady state, if a rule needed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<SteadyState>,
    /// How close the simulated drive is to the learned one.
    pub calibrated: Vec<Calibrated>,
}

/// One mark of the picture: requests at about one time and about one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Column, from the left.
    pub x: u16,
    /// Row, from the lowest address.
    pub y: u16,
    /// The costliest rule that one of them violates.
    pub rule: Option<Rule>,
    /// How many requests.
    pub requests: u32,
}

/// A run of rows of the picture that belongs to one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Which place.
    pub place: Place,
    /// Its first row.
    pub first_row: u16,
    /// The first row behind it.
    pub end_row: u16,
}

/// The requests of the window, by time and by address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
    /// Length of the time axis, ns; `None` where the trace has no times and a column is a number of requests.
    pub duration_ns: Option<u64>,
    /// Requests on it.
    pub requests: u64,
    /// Mean bytes of a row; addresses without requests are left out.
    pub row_bytes: u64,
    /// What belongs to what, lowest row first.
    pub bands: Vec<Band>,
    /// What is to be seen.
    pub marks: Vec<Mark>,
}

/// The result of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// One finding for each rule that could be checked: violations, costliest first; then rules that nothing can
    /// change, rules that are better broken, and those that no request breaks.
    pub findings: Vec<Finding>,
    /// The rules that were not checked.
    pub unjudged: Vec<UncheckedRule>,
    /// How the costs were simulated; `None` if they were not.
    pub simulated: Option<Simulated>,
    /// Why they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_simulated: Option<String>,
    /// The requests by time and address.
    pub picture: Picture,
    /// Alignment of the drive's partitions, if a drive or an image was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<PartitionAudit>,
}

impl Audit {
    /// Of a drive of which only the partitions are checked.
    pub fn from_partitions(partitions: PartitionAudit) -> Self {
        Self {
            findings: Vec::new(),
            unjudged: Vec::new(),
            simulated: None,
            not_simulated: None,
            picture: Picture::default(),
            partitions: Some(partitions),
        }
    }

    /// Whether only partitions were checked.
    pub fn is_partitions_only(&self) -> bool {
        self.partitions.is_some() && self.findings.is_empty() && self.unjudged.is_empty()
    }

    /// Whether a rule is violated, including by a partition.
    pub fn is_violated(&self) -> bool {
        let is_off = self.partitions.as_ref().is_some_and(PartitionAudit::is_violated);
        is_off || self.findings.iter().any(|finding| finding.judgement == Judgement::Violation)
    }
}
