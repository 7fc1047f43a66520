//! What AWS's volumes report, log page D0h: 4,096 bytes.
//!
//! ```text
//!   0 magic   8 reads   16 writes   24 bytes read   32 written   40 time of reads, µs   48 of writes
//!   56, 64 µs of demand above the volume's IOPS, throughput   72, 80 above the instance's   88 queue
//!   96 or 512 histograms
//! ```
//!
//! Instance storage has its own limits where EBS has those of the instance, and nothing where EBS has the volume's:
//! they are the local volume's, as AWS's guide calls them.
//!
//! Source: Amazon EBS User Guide, "Amazon EBS detailed performance statistics"; Amazon EC2 User Guide, "Amazon EC2
//! instance store detailed performance statistics"; layout in AWS's CloudWatch agent.

use serde::Serialize;

use super::{ByteCounter, short};

/// First four bytes of the page of an EBS volume.
const EBS_MAGIC: u64 = 0x3c23_b510;
/// The same of instance storage.
const INSTANCE_STORE_MAGIC: u64 = 0xec2c_0d7e;
/// Bytes of the page that is requested.
pub(super) const BYTES: usize = 4096;
/// Where EBS's histograms start: a count of bins, then as many places as there may be.
const EBS_HISTOGRAMS_AT: [usize; 2] = [512, 512 + 8 + EBS_BINS * EBS_BIN];
const EBS_BINS: usize = 64;
/// Lower and upper bound, count, padding.
const EBS_BIN: usize = 24;
/// Where the bounds of instance storage's bins are, then one table each for reads and writes by size of request.
const STORE_BOUNDS_AT: usize = 136;
const STORE_TABLES_AT: usize = STORE_BOUNDS_AT + STORE_BINS * 16;
const STORE_BINS: usize = 32;
const STORE_SIZES: usize = 5;

/// Which kind of volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AwsVolume {
    /// Over the network.
    Ebs,
    /// In the machine.
    InstanceStore,
}

/// Requests of a range of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyBin {
    /// From here on, µs.
    pub lower: u64,
    /// Up to here, µs.
    pub upper: u64,
    /// Requests.
    pub count: u64,
}

/// The page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AwsLog {
    /// Kind.
    pub volume: AwsVolume,
    /// Completed reads.
    pub total_read_ops: u64,
    /// Completed writes.
    pub total_write_ops: u64,
    /// Bytes read.
    pub total_read_bytes: u64,
    /// Bytes written.
    pub total_write_bytes: u64,
    /// Time of all reads, µs.
    pub total_read_time: u64,
    /// Time of all writes, µs.
    pub total_write_time: u64,
    /// Time in which demand exceeded the volume's IOPS, µs.
    pub volume_performance_exceeded_iops: u64,
    /// Time in which demand exceeded the volume's throughput, µs.
    pub volume_performance_exceeded_tp: u64,
    /// Time in which demand exceeded the instance's IOPS for all of its volumes, µs.
    pub instance_performance_exceeded_iops: u64,
    /// Time in which demand exceeded the instance's throughput for all of its volumes, µs.
    pub instance_performance_exceeded_tp: u64,
    /// Requests in flight.
    pub volume_queue_length: u64,
    /// Latencies of reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_latency_us: Vec<LatencyBin>,
    /// Latencies of writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write_latency_us: Vec<LatencyBin>,
}

impl AwsLog {
    /// Number of the page.
    pub const ID: u8 = 0xd0;

    /// What the host wrote.
    pub fn host_written(&self) -> ByteCounter {
        ByteCounter { units: self.total_write_bytes.into(), unit_bytes: 1 }
    }

    /// Time in which demand exceeded a limit of the volume, µs.
    pub fn volume_exceeded_us(&self) -> u64 {
        self.volume_performance_exceeded_iops.saturating_add(self.volume_performance_exceeded_tp)
    }

    /// Time in which demand exceeded a limit of the instance, µs.
    pub fn instance_exceeded_us(&self) -> u64 {
        self.instance_performance_exceeded_iops.saturating_add(self.instance_performance_exceeded_tp)
    }

    /// A volume of which nothing is known.
    pub(super) fn empty(volume: AwsVolume) -> Self {
        Self {
            volume,
            total_read_ops: 0,
            total_write_ops: 0,
            total_read_bytes: 0,
            total_write_bytes: 0,
            total_read_time: 0,
            total_write_time: 0,
            volume_performance_exceeded_iops: 0,
            volume_performance_exceeded_tp: 0,
            instance_performance_exceeded_iops: 0,
            instance_performance_exceeded_tp: 0,
            volume_queue_length: 0,
            read_latency_us: Vec::new(),
            write_latency_us: Vec::new(),
        }
    }

    /// Reads the page; `None` without its magic, or cut off in front of its histograms.
    pub(super) fn parse(page: &[u8]) -> Option<Self> {
        let volume = match short::<4>(page, 0)? {
            EBS_MAGIC => AwsVolume::Ebs,
            INSTANCE_STORE_MAGIC => AwsVolume::InstanceStore,
            _ => return None,
        };
        let word = |n: usize| short::<8>(page, 8 + 8 * n);
        let (of_volume, of_instance) = ((word(6)?, word(7)?), (word(8)?, word(9)?));
        let (volume_exceeded, instance_exceeded) = match volume {
            AwsVolume::Ebs => (of_volume, of_instance),
            AwsVolume::InstanceStore => (of_instance, (0, 0)),
        };
        // A page may be recorded without its histograms.
        let [read_latency_us, write_latency_us] = match volume {
            AwsVolume::Ebs => EBS_HISTOGRAMS_AT.map(|at| ebs_histogram(page, at).unwrap_or_default()),
            AwsVolume::InstanceStore => [0, 1].map(|kind| store_histogram(page, kind).unwrap_or_default()),
        };
        Some(Self {
            volume,
            total_read_ops: word(0)?,
            total_write_ops: word(1)?,
            total_read_bytes: word(2)?,
            total_write_bytes: word(3)?,
            total_read_time: word(4)?,
            total_write_time: word(5)?,
            volume_performance_exceeded_iops: volume_exceeded.0,
            volume_performance_exceeded_tp: volume_exceeded.1,
            instance_performance_exceeded_iops: instance_exceeded.0,
            instance_performance_exceeded_tp: instance_exceeded.1,
            volume_queue_length: word(10)?,
            read_latency_us,
            write_latency_us,
        })
    }
}

/// A histogram of an EBS volume; `None` where it says that it has more bins than places, or is cut off.
fn ebs_histogram(page: &[u8], at: usize) -> Option<Vec<LatencyBin>> {
    let bins = usize::try_from(short::<8>(page, at)?).ok().filter(|&bins| bins <= EBS_BINS)?;
    let bin = |n: usize| {
        let at = at + 8 + n * EBS_BIN;
        let (lower, upper) = (short::<8>(page, at)?, short::<8>(page, at + 8)?);
        Some(LatencyBin { lower, upper, count: short::<4>(page, at + 16)? })
    };
    (0..bins).map(bin).collect()
}

/// A histogram of instance storage over all sizes of requests; `kind` is 0 for reads and 1 for writes.
fn store_histogram(page: &[u8], kind: usize) -> Option<Vec<LatencyBin>> {
    let limited = |at: usize, most: usize| usize::try_from(short::<4>(page, at)?).ok().filter(|&n| n <= most);
    let (sizes, bins) = (limited(96, STORE_SIZES)?, limited(100, STORE_BINS)?);
    let bin = |n: usize| {
        let count = |size: usize| short::<8>(page, STORE_TABLES_AT + ((size * 2 + kind) * STORE_BINS + n) * 8);
        let (at, counts) = (STORE_BOUNDS_AT + n * 16, (0..sizes).map(count).collect::<Option<Vec<_>>>()?);
        let count = counts.into_iter().fold(0, u64::saturating_add);
        Some(LatencyBin { lower: short::<8>(page, at)?, upper: short::<8>(page, at + 8)?, count })
    };
    (0..bins).map(bin).collect()
}
