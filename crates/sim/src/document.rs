//! The result of a simulation, as it is saved, printed and compared.
//!
//! `docs/formats/simulation.md` describes it key by key. Every figure carries its unit in its name. What a drive cannot
//! tell is `null`, never zero.

use flashwise_trace::workload::{Priority, Workload};
use serde::{Deserialize, Serialize};

use super::{Invariant, Preconditioned};
use crate::life::Life;
use flashwise_array::ArrayActivity;
use flashwise_ssd::DeviceConfig;
use flashwise_volume::{LimitActivity, VolumeConfig};

/// `schema` of a result.
pub const SIMULATION_SCHEMA: &str = "flashwise.simulation";
/// `schema_version` of a result.
pub const SIMULATION_SCHEMA_VERSION: u32 = 1;

/// Everything that one simulation gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// Always [`SIMULATION_SCHEMA`].
    pub schema: String,
    /// Always [`SIMULATION_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of flashwise.
    pub flashwise_version: String,
    /// What the drive was built of, or each drive of the array; absent for a volume that is not on a simulated drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceConfig>,
    /// What the array is and did; `null` where the workload ran on a single drive.
    #[serde(default)]
    pub array: Option<ArrayActivity>,
    /// What the volume is, and what its limits did; absent where the workload did not run on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeActivity>,
    /// What it was asked.
    pub workload: Workload,
    /// Seed of every random choice.
    pub seed: u64,
    /// What was on the drive before.
    pub precondition: Preconditioned,
    /// From the workload's start to the last completion, ns of the drive's time.
    pub elapsed_ns: u64,
    /// All flows together.
    pub total: Responses,
    /// The flows in the order of the workload.
    pub flows: Vec<FlowResult>,
    /// What went over the host interface.
    pub host: HostActivity,
    /// What the flash did for it.
    pub flash: FlashActivity,
    /// How busy channels and dies were.
    pub utilisation: Utilisation,
    /// How long flash commands waited and were served, for each class that there was.
    pub flash_commands: Vec<CommandTimes>,
    /// Energy of all flash operations, mJ; `null` where the configuration tells no energies.
    pub flash_energy_mj: Option<f64>,
    /// What garbage collection did.
    pub gc: GarbageCollection,
    /// Bytes programmed into flash for any reason ÷ bytes written by the host; `null` where nothing was written.
    pub write_amplification: Option<f64>,
    /// The same by cause; the parts add up to the whole.
    pub write_amplification_by_cause: Option<WriteCauses>,
    /// What the drive did to store less than it was given; `null` where it stores everything by default.
    #[serde(default)]
    pub reduction: Option<DataReduction>,
    /// What went through the drive's SLC cache; `null` where there is none.
    #[serde(default)]
    pub slc_cache: Option<SlcCache>,
    /// P/E cycles over the whole life of the drive, preconditioning included; `null` where nothing is erased.
    pub erase_counts: Option<EraseCounts>,
    /// What the drive has lived through, and how much is left; `null` where nothing wears out.
    #[serde(default)]
    pub life: Option<Life>,
    /// Logical pages that were read although they had never been written: with many of these, the workload measures an
    /// empty drive.
    pub unwritten_pages_read: u64,
    /// The run in intervals.
    pub time_series: TimeSeries,
    /// What was checked, and held.
    pub invariants: Vec<Invariant>,
    /// What the simulation itself took; the only part that differs from run to run.
    pub process: Process,
}

/// Response times and rates of a set of requests; a response time runs from submission to completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Responses {
    /// Completed requests.
    pub requests: u64,
    /// Requests a second.
    pub iops: f64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Mean response time, ns; `null` without requests, as all that follows.
    pub mean_response_ns: Option<f64>,
    /// Shortest response time, ns.
    pub min_response_ns: Option<u64>,
    /// Longest response time, ns.
    pub max_response_ns: Option<u64>,
    /// Percentiles of the response time, ns, three significant digits.
    pub percentiles_ns: Option<Percentiles>,
    /// The distribution of the response time, ascending.
    pub distribution: Vec<DistributionPoint>,
}

/// Percentiles of a response time, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    #[serde(rename = "50")]
    pub p50: u64,
    /// 90 % are no longer.
    #[serde(rename = "90")]
    pub p90: u64,
    /// 95 % are no longer.
    #[serde(rename = "95")]
    pub p95: u64,
    /// 99 % are no longer.
    #[serde(rename = "99")]
    pub p99: u64,
    /// 99.9 % are no longer.
    #[serde(rename = "99.9")]
    pub p99_9: u64,
    /// 99.99 % are no longer.
    #[serde(rename = "99.99")]
    pub p99_99: u64,
    /// 99.999 % are no longer.
    #[serde(rename = "99.999")]
    pub p99_999: u64,
}

/// One point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionPoint {
    /// So many percent of all requests …
    pub percent: f64,
    /// … took no longer than this, ns.
    pub response_ns: u64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Its name in the workload.
    pub name: String,
    /// Its class.
    pub priority: Priority,
    /// When it started, ns after the workload's start.
    pub start_ns: u64,
    /// From its start to its last completion, ns.
    pub elapsed_ns: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Completed trims.
    pub trims: u64,
    /// Completed flushes.
    pub flushes: u64,
    /// Writes and trims that the drive refused because its life had ended; they are in no other figure.
    #[serde(default)]
    pub refused: u64,
    /// Mean time from submission until the drive took a request from its queue, ns; `null` without requests.
    pub mean_queueing_ns: Option<f64>,
    /// Mean time from then to completion, ns; `null` without requests.
    pub mean_service_ns: Option<f64>,
    /// Requests of every kind.
    #[serde(flatten)]
    pub all: Responses,
    /// Reads alone; `null` where there was none.
    pub read: Option<Responses>,
    /// Writes alone; `null` where there was none.
    pub write: Option<Responses>,
    /// What to know of its requests, a sentence each: devices of its trace that are laid over one another, events
    /// that were lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What went over the host interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostActivity {
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes written over data that was still in the write buffer, so that the flash never saw the older data.
    pub bytes_absorbed: u64,
}

/// What the flash did. Commands are counted in pages of flash: a command that names `n` planes counts `n`, so that a
/// superpage program over 2 planes of each of 8 dies counts 16. Bytes are counted when a command is issued, pages when
/// its die takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashActivity {
    /// Pages sensed, for the host, for partial pages, and for garbage collection.
    pub reads: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Blocks erased, plane by plane.
    pub erases: u64,
    /// Bytes moved out of the flash.
    pub bytes_read: u64,
    /// Bytes programmed, padding included.
    pub bytes_programmed: u64,
    /// Of these, bytes that hold no data.
    pub bytes_padded: u64,
    /// Times that a read interrupted a program.
    pub program_suspensions: u64,
    /// Times that a read interrupted an erase.
    pub erase_suspensions: u64,
    /// Times that a page was sensed again because it could not be corrected.
    pub read_retries: u64,
    /// Reads that could not be corrected in the end.
    pub uncorrectable_reads: u64,
    /// Programs that failed.
    pub failed_programs: u64,
    /// Erases that failed.
    pub failed_erases: u64,
}

/// How busy the parts of a drive were: shares of the elapsed time. What was started counts whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Channels: commands, addresses and data on them.
    pub channels: Busy,
    /// Chips: each the mean of its dies.
    #[serde(default)]
    pub chips: Busy,
    /// Dies: their arrays sensing, programming or erasing.
    pub dies: Busy,
    /// Planes: the same for the planes that commands name; plane `p` of die `d` is number `d · planes per die + p`.
    #[serde(default)]
    pub planes: Busy,
}

/// How busy parts of one kind were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Mean over all of them.
    pub mean: f64,
    /// Of the least busy one.
    pub min: f64,
    /// Of the busiest one.
    pub max: f64,
    /// Of each.
    pub each: Vec<f64>,
}

/// What the flash commands of a class saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandTimes {
    /// What they were for: `host read`, `gc program`, …
    pub class: String,
    /// Commands that ended.
    pub commands: u64,
    /// Mean time from a command's issue until its die took it: queueing, ns.
    pub mean_waiting_ns: f64,
    /// Mean time from then to its end: channel, array and waits for the channel between, ns.
    pub mean_service_ns: f64,
}

/// What garbage collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GarbageCollection {
    /// Superblocks that were collected.
    pub executions: u64,
    /// Logical pages that were moved.
    pub pages_moved: u64,
    /// Superblocks that were erased.
    pub superblocks_erased: u64,
    /// Superblocks that wear levelling emptied.
    pub wear_levelling_executions: u64,
    /// Superblocks that were retired because they failed or were worn out.
    pub superblocks_retired: u64,
}

/// What a drive did to store less than it was given. The bytes that were written are those of whole logical pages; each
/// page was zeros, or a duplicate, or unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataReduction {
    /// Bytes of the logical pages that were written.
    pub bytes_written: u64,
    /// Of those, bytes of zeros, of which nothing was stored.
    pub bytes_of_zeros: u64,
    /// Of those, bytes of pages that were stored already.
    pub bytes_duplicate: u64,
    /// Of those, bytes of all others, before compression.
    pub bytes_unique: u64,
    /// Bytes that these took on flash.
    pub bytes_stored: u64,
    /// Bytes of pages that were found to be equal after they had been written.
    pub bytes_merged: u64,
    /// Pages that were looked up among the fingerprints.
    pub lookups: u64,
    /// Bytes of logical pages on the drive at the end, zeros left out.
    pub logical_bytes: u64,
    /// Bytes that they take on flash.
    pub physical_bytes: u64,
    /// Bytes that they may take.
    pub physical_capacity_bytes: u64,
}

/// What went through an SLC cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlcCache {
    /// Bytes that it can hold at most: of its dynamic superblocks, as many as may be in SLC mode at a time.
    pub capacity_bytes: u64,
    /// Bytes programmed with one bit a cell, padding included.
    pub bytes_cached: u64,
    /// Bytes of the host's superpages that were programmed past it.
    pub bytes_bypassed: u64,
    /// Bytes moved out of it.
    pub bytes_folded: u64,
    /// Superblocks that were emptied for that.
    pub superblocks_folded: u64,
    /// Superblocks that hold one bit a cell at the end.
    pub superblocks: u32,
    /// Bytes of valid pages in the full ones among them.
    pub valid_bytes: u64,
}

/// Write amplification by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WriteCauses {
    /// What the host wrote; below 1 where the write buffer absorbed or still holds a part.
    pub host: f64,
    /// What garbage collection moved.
    pub gc: f64,
    /// What wear levelling moved.
    pub wear_levelling: f64,
    /// What was moved out of superblocks that are retired.
    pub retirement: f64,
    /// What was moved out of an SLC cache.
    #[serde(default)]
    pub folding: f64,
    /// Mapping tables.
    pub mapping: f64,
    /// What holds no data, because a flush or a collection could not wait for more.
    pub padding: f64,
}

/// How worn the drive is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EraseCounts {
    /// P/E cycles of the least worn superblock.
    pub min: u32,
    /// Mean over all superblocks.
    pub mean: f64,
    /// P/E cycles of the most worn superblock.
    pub max: u32,
    /// How many superblocks have gone through how many cycles, ascending.
    pub distribution: Vec<EraseCount>,
}

/// Superblocks that are worn alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseCount {
    /// P/E cycles.
    pub erases: u32,
    /// How many superblocks.
    pub superblocks: u64,
}

/// The run in intervals of equal length; the last one ends with the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSeries {
    /// Length of an interval, ns.
    pub interval_ns: u64,
    /// The intervals, without gaps.
    pub intervals: Vec<Interval>,
}

/// One interval; a request counts in the interval of its completion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its start, ns after the workload's start.
    pub start_ns: u64,
    /// Completed requests.
    pub requests: u64,
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Mean response time, ns; `null` where no request completed.
    pub mean_response_ns: Option<f64>,
    /// Write amplification; `null` where nothing was written.
    pub write_amplification: Option<f64>,
}

/// What the simulation took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Wall-clock seconds of the simulation, without preconditioning.
    pub wall_s: f64,
    /// Simulated requests a second of wall-clock time.
    pub requests_per_s: f64,
    /// Largest memory of the process so far, bytes; `null` where the system does not tell.
    pub peak_memory_bytes: Option<u64>,
}

/// A cloud volume, and what its limits did while the workload ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VolumeActivity {
    /// The volume.
    pub config: VolumeConfig,
    /// Its limits, and behind them its instance's.
    pub limits: Vec<LimitActivity>,
}

impl Simulation {
    /// The name of what the workload ran on.
    pub fn target_name(&self) -> &str {
        let array = self.array.as_ref().map(|array| &array.config.name);
        let volume = || self.volume.as_ref().map(|volume| &volume.config.name);
        array.or_else(volume).or_else(|| self.device.as_ref().map(|device| &device.name)).map_or("", String::as_str)
    }

    /// The result without what differs from run to run, for comparing two of them.
    pub fn without_process(&self) -> Self {
        Self { process: Process::default(), ..self.clone() }
    }
}
