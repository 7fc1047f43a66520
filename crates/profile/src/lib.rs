//! What is known about a drive: each figure with its interval and its verdict, and the curves it was read from.
//!
//! A [`DeviceProfile`] is the value between `learn` and everything that follows. It is saved as TOML for people and as
//! JSON (`"schema": "flashwise.profile"`) for programs.

mod figure;
mod published;
mod toml_format;

pub use figure::{Figure, Verdict};
pub use published::{PublishedDrive, PublishedHotLocation, published_drives};
pub use toml_format::ProfileError;

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
    /// The curves that the figures were read from.
    #[serde(default)]
    pub curves: Curves,
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
    /// Whose clock the times are on.
    pub clock: Clock,
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
}

/// Where a read is served fastest: at `i · period + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotLocation {
    /// Distance from one hot location to the next.
    pub period_bytes: u64,
    /// The first one, below `period_bytes`.
    pub offset_bytes: u64,
}

/// The figures of a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Desirable write length: writes of a whole multiple of it waste nothing.
    pub write_unit_bytes: Figure<u64>,
    /// The length from which on what is written reads back fastest: the unit in which the drive lays data out.
    pub stripe_bytes: Figure<u64>,
    /// Contiguous bytes on one channel.
    pub chunk_bytes: Figure<u64>,
    /// The unit that a read cannot split: touching two costs more than touching one.
    pub page_bytes: Figure<u64>,
    /// Where chunk-sized reads are served fastest.
    pub hot_location: Figure<HotLocation>,
    /// α at 4 KiB: saturated read IOPS ÷ saturated write IOPS.
    pub asymmetry_4k: Figure<f64>,
    /// k_r at 4 KiB: reads in flight at which throughput stops growing.
    pub read_concurrency_4k: Figure<u64>,
    /// k_w at 4 KiB: writes in flight at which throughput stops growing.
    pub write_concurrency_4k: Figure<u64>,
    /// α at 8 KiB.
    pub asymmetry_8k: Figure<f64>,
    /// k_r at 8 KiB.
    pub read_concurrency_8k: Figure<u64>,
    /// k_w at 8 KiB.
    pub write_concurrency_8k: Figure<u64>,
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
