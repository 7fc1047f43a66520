//! The profile of a drive: each hidden parameter with its interval and verdict, and the curves behind it.
//!
//! `learn` writes a [`DeviceProfile`]; the other commands read it. It is saved as TOML for people and as JSON
//! (`"schema": "flashwise.profile"`) for programs.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod card;
mod figure;
mod limits;
mod parameters;
mod published;
mod toml_format;
mod wear;

pub use card::Card;
pub use figure::{Figure, Verdict};
pub use limits::Limits;
pub use parameters::{Entry, Figures, HotLocation, Parameters, Quantity};
pub use published::{
    PublishedAsymmetry, PublishedConcurrency, PublishedDrive, PublishedHotLocation, PublishedThroughput,
    published_asymmetries, published_drives,
};
pub use toml_format::ProfileError;
pub use wear::Wear;

use flashwise_block::Clock;
use serde::{Deserialize, Serialize};

/// `schema` of a profile document.
pub const SCHEMA: &str = "flashwise.profile";
/// `schema_version` of a profile document; changes are additive within a version.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that was learned about one drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of flashwise that learned it.
    pub flashwise_version: String,
    /// Which drive.
    pub device: DeviceIdentity,
    /// How it was learned, so that it can be repeated.
    pub recipe: Recipe,
    /// The figures.
    pub parameters: Parameters,
    /// The limits of what stands in front of the drive, if they were probed.
    #[serde(default, skip_serializing_if = "Limits::is_unknown")]
    pub limits: Limits,
    /// The units of a memory card, if they were probed.
    #[serde(default, skip_serializing_if = "Card::is_unknown")]
    pub card: Card,
    /// What its own counters show, if they were read.
    #[serde(default, skip_serializing_if = "Wear::is_unknown")]
    pub wear: Wear,
    /// Asymmetry and concurrency at further request sizes, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_sizes: Vec<AtSize>,
    /// How each figure came about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The curves that the figures were read from.
    #[serde(default)]
    pub curves: Curves,
}

/// Asymmetry and concurrency of one request size; those of 4 and 8 KiB are in [`Parameters`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtSize {
    /// Bytes of a request.
    pub request_bytes: u64,
    /// α: saturated reads ÷ saturated writes.
    pub asymmetry: Figure<f64>,
    /// α of single requests: median write latency ÷ median read latency.
    pub latency_asymmetry: Figure<f64>,
    /// k_r: reads in flight at which throughput stops growing.
    pub read_concurrency: Figure<u64>,
    /// k_w: the same of writes.
    pub write_concurrency: Figure<u64>,
}

/// Which drive a profile is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceIdentity {
    /// The target as the user named it, such as `sim:samsung-960-evo`.
    pub target: String,
    /// Model or path.
    pub name: String,
    /// Addressable bytes of the target.
    pub capacity_bytes: u64,
    /// Smallest addressable unit.
    pub logical_block_bytes: u64,
    /// The clock of the times.
    pub clock: Clock,
    /// Longest aligned write that the drive promises to do whole, also when its power fails: as the drive reports it,
    /// not measured. Absent where nothing is promised or known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised_atomic_write_bytes: Option<u64>,
}

/// How a profile was learned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Seed of every random choice.
    pub seed: u64,
    /// Bytes of the device that the probes wrote to and read from.
    pub region_bytes: u64,
    /// Bytes that all probes together wrote.
    pub bytes_written: u64,
    /// Bytes that all probes together read.
    pub bytes_read: u64,
    /// Time that the probes took on the device's clock, ns.
    pub device_time_ns: u64,
    /// Probes that finished, in order; a run that continues from this profile skips them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<String>,
}

/// How one figure came about, so that anyone can repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Key of the figure in [`Parameters`], [`Limits`] or [`Card`].
    pub figure: String,
    /// What was done to the drive.
    pub recipe: String,
    /// What was read off, and why that gives the verdict.
    pub reason: String,
    /// Whether the probe was not started because this kind of drive is not written so much unasked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    /// Whether no probe for the figure ran to its end: a budget was spent, or the drive may not be written so much. If
    /// the figure has no value, its verdict is "not tried".
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_tried: bool,
    /// Name of the curve in [`Curves::probes`] that it was read from; `None` where another list of [`Curves`] holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
}

/// A median with its 95 % interval, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MedianNs {
    /// The median.
    pub median: u64,
    /// Lower end of its interval.
    pub low: u64,
    /// Upper end of its interval.
    pub high: u64,
}

/// The curves behind the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// Request-size profile: how long a durable write of a size takes.
    #[serde(default)]
    pub durable_write: Vec<DurableWritePoint>,
    /// Request-size profile: how fast data reads back that was written in pieces of a size.
    #[serde(default)]
    pub read_back: Vec<ReadBackPoint>,
    /// Location profiles, one for each read length.
    #[serde(default)]
    pub location: Vec<LocationCurve>,
    /// Throughput by requests in flight.
    #[serde(default)]
    pub throughput: Vec<ThroughputCurve>,
    /// What the other probes saw, each with its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeCurve>,
}

/// What one probe saw: something measured over something varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeCurve {
    /// Its name, for [`Evidence::curve`].
    pub name: String,
    /// What was varied, with its unit.
    pub x: String,
    /// What was measured, with its unit.
    pub y: String,
    /// The points.
    pub points: Vec<ProbePoint>,
    /// The fitted model as a line through these points; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fit: Vec<(f64, f64)>,
}

/// One point of a [`ProbeCurve`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbePoint {
    /// What was varied.
    pub x: f64,
    /// Median of what was measured.
    pub y: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
}

/// One point of the durable-write curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurableWritePoint {
    /// Length of each write.
    pub write_bytes: u64,
    /// Latency of one write that is durable at completion, one at a time.
    pub latency_ns: MedianNs,
}

/// One point of the read-back curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBackPoint {
    /// Length of the durable writes that wrote the data, one after the other.
    pub write_bytes: u64,
    /// Length of the reads.
    pub read_bytes: u64,
    /// Latency of a read.
    pub latency_ns: MedianNs,
}

/// Latency of reads of one length by where they start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocationCurve {
    /// Length of each read.
    pub read_bytes: u64,
    /// Distance from one point to the next.
    pub step_bytes: u64,
    /// Point `i` is at offset `i · step_bytes` from an aligned base.
    pub latency_ns: Vec<MedianNs>,
}

/// Throughput of random requests by how many are in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughputCurve {
    /// `read` or `write`.
    pub operation: flashwise_block::Operation,
    /// Length of each request.
    pub request_bytes: u64,
    /// One point for each depth.
    pub points: Vec<ThroughputPoint>,
}

/// One point of a [`ThroughputCurve`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughputPoint {
    /// Requests in flight (one job, this depth).
    pub in_flight: u32,
    /// Median requests a second over the batches.
    pub iops: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
}
