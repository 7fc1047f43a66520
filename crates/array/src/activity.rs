//! What an array does with the requests that it is given: counted while it runs, told of a span of time.
//!
//! ```text
//!   requests to members ──▶ tally, chunk by chunk: data, parity, rebuilding ─┐
//!   writes to rows      ──▶ how their parity was found                       ├──▶ ArrayActivity, from a mark on
//!   controller, members ──▶ busy times, bytes, states, failures, rebuilding ─┘
//! ```
//!
//! An *access* is a part of one chunk of one member. Accesses that lie one behind the other on a member go there in one
//! command, so there are at most as many commands as accesses. A small write to RAID-5 is four accesses and four
//! commands.
//!
//! # Adding a figure
//!
//! Counted in [`Tally`], reported in [`ArrayActivity`]; its row in `crates/report/src/text/array.rs` and in
//! `docs/formats/simulation.md`.

use flashwise_block::{DeviceCounters, Operation};
use serde::{Deserialize, Serialize};

use super::SimulatedArray;
use super::config::{ArrayConfig, Level};
use super::controller::ControllerCounters;
use super::members::State;
use super::work::{Job, MemberRequest, Method, Place, Work};
use flashwise_ssd::SimulatedSsd;

/// Accesses of one kind to members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// Parts of chunks.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Accesses {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn since(&self, earlier: &Self) -> Self {
        Self { count: self.count - earlier.count, bytes: self.bytes - earlier.bytes }
    }
}

/// What the members were asked to read and to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberAccesses {
    /// Reads of data, for the host or to find a parity.
    pub data_reads: Accesses,
    /// Writes of data; of copies, each.
    pub data_writes: Accesses,
    /// Reads of parity.
    pub parity_reads: Accesses,
    /// Writes of parity.
    pub parity_writes: Accesses,
    /// Reads of what is left of a row that is rebuilt.
    pub rebuild_reads: Accesses,
    /// Writes to drives that are rebuilt.
    pub rebuild_writes: Accesses,
    /// Read commands.
    pub read_commands: u64,
    /// Write commands.
    pub write_commands: u64,
}

impl MemberAccesses {
    /// Bytes of all writes.
    pub fn bytes_written(&self) -> u64 {
        self.data_writes.bytes + self.parity_writes.bytes + self.rebuild_writes.bytes
    }

    /// Counts a command to a member; of a row with so many columns.
    fn count(&mut self, work: &Work, request: &MemberRequest, columns: usize) {
        let is_read = match request.operation {
            Operation::Read => true,
            Operation::Write => false,
            // They move no bytes.
            Operation::Trim | Operation::WriteZeroes | Operation::Flush => return,
        };
        *(if is_read { &mut self.read_commands } else { &mut self.write_commands }) += 1;
        let is_rebuild = matches!(work, Work::Rebuild(..));
        for span in &request.extent.spans {
            let is_parity = match span.place {
                Place::Array(_) => false,
                // A check goes by member.
                Place::Slot(slot, _) => slot >= columns && !matches!(work, Work::Check(_)),
                Place::Parity(..) => true,
            };
            let kind = match (is_rebuild, is_parity, is_read) {
                (true, _, true) => &mut self.rebuild_reads,
                (true, _, false) => &mut self.rebuild_writes,
                (false, true, true) => &mut self.parity_reads,
                (false, true, false) => &mut self.parity_writes,
                (false, false, true) => &mut self.data_reads,
                (false, false, false) => &mut self.data_writes,
            };
            kind.add(span.length);
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            data_reads: self.data_reads.since(&earlier.data_reads),
            data_writes: self.data_writes.since(&earlier.data_writes),
            parity_reads: self.parity_reads.since(&earlier.parity_reads),
            parity_writes: self.parity_writes.since(&earlier.parity_writes),
            rebuild_reads: self.rebuild_reads.since(&earlier.rebuild_reads),
            rebuild_writes: self.rebuild_writes.since(&earlier.rebuild_writes),
            read_commands: self.read_commands - earlier.read_commands,
            write_commands: self.write_commands - earlier.write_commands,
        }
    }
}

/// How writes to rows that have parity were done, row by row; all 0 on a level without parity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowWrites {
    /// Whole rows, which need no reads.
    pub full_stripe: u64,
    /// Parts whose parity was found from what they overwrite and the old parity.
    pub read_modify_write: u64,
    /// Parts whose parity was found from what they do not overwrite.
    pub reconstruct_write: u64,
    /// Parts for which all that was left of the row had to be read, because a member was missing.
    pub restore_write: u64,
    /// Parts of rows all of whose parities were missing.
    pub without_parity: u64,
}

impl RowWrites {
    fn count(&mut self, method: Method) {
        let kind = match method {
            Method::None => &mut self.without_parity,
            Method::Modify => &mut self.read_modify_write,
            Method::Reconstruct => &mut self.reconstruct_write,
            Method::Restore => &mut self.restore_write,
        };
        *kind += 1;
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            full_stripe: self.full_stripe - earlier.full_stripe,
            read_modify_write: self.read_modify_write - earlier.read_modify_write,
            reconstruct_write: self.reconstruct_write - earlier.reconstruct_write,
            restore_write: self.restore_write - earlier.restore_write,
            without_parity: self.without_parity - earlier.without_parity,
        }
    }
}

/// Which limit of the controller's was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerLimit {
    /// Commands a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
}

/// A limit is reached where what it limits was busy for at least this share of the time.
const REACHED: f64 = 0.95;

/// What the controller did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerActivity {
    /// Share of the time in which its processor was busy; `null` where its commands have no limit.
    pub processor_busy: Option<f64>,
    /// Commands that found it busy.
    pub processor_waits: u64,
    /// Share of the time in which its way to the host was busy; `null` where its bytes have no limit.
    pub bus_busy: Option<f64>,
    /// Transfers that found it busy.
    pub bus_waits: u64,
    /// The limit that was reached: the busier one, where it was busy for 95 % of the time at least.
    pub limit_reached: Option<ControllerLimit>,
    /// Bytes in the write cache at the end; `null` where there is none.
    pub cached_bytes: Option<u64>,
    /// Writes that found no space in it.
    pub cache_waits: u64,
}

/// What became of a place among the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceState {
    /// It holds all that it should.
    Whole,
    /// Its drive has failed.
    Failed,
    /// A new drive is being filled.
    Rebuilding,
}

/// What the drives in one place did, also those that have failed since.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberActivity {
    /// What the place is in at the end.
    pub state: PlaceState,
    /// Rows that are rebuilt; `null` unless it is being rebuilt.
    pub rebuilt_rows: Option<u64>,
    /// Read requests that the drives answered, and their bytes.
    pub reads: u64,
    /// Bytes that they gave.
    pub bytes_read: u64,
    /// Write requests that they answered.
    pub writes: u64,
    /// Bytes that were written to them.
    pub bytes_written: u64,
    /// Bytes that they programmed for any reason.
    pub flash_bytes_programmed: u64,
    /// The ratio of the last two; `null` where nothing was written.
    pub write_amplification: Option<f64>,
    /// Superblocks that they collected.
    pub gc_executions: u64,
    /// P/E cycles of the mean superblock of the drive that is there, over its whole life; `null` without a drive, and
    /// where nothing is erased.
    pub pe_cycles_mean: Option<f64>,
}

/// A drive that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberFailure {
    /// Its place.
    pub member: u32,
    /// When, ns after the workload's start.
    pub at_ns: u64,
}

/// How a rebuilding ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RebuildEnd {
    /// The place is whole.
    Whole,
    /// The new drive failed, or what it should hold could not be restored.
    Failed,
}

/// A new drive that was filled, or still is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// Its place.
    pub member: u32,
    /// When it started, ns after the workload's start.
    pub began_ns: u64,
    /// When it ended; `null` while it continues.
    pub ended_ns: Option<u64>,
    /// How it ended; `null` while it continues.
    pub end: Option<RebuildEnd>,
    /// Rows that were done.
    pub rows_done: u64,
    /// Rows in all.
    pub rows: u64,
}

/// What an array did over a span of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrayActivity {
    /// What it is built of.
    pub config: ArrayConfig,
    /// How data is spread.
    pub level: Level,
    /// Bytes that are together on one member.
    pub chunk_bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Bytes of data in a row.
    pub row_bytes: u64,
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// Bytes that were written to members ÷ bytes that the host wrote; `null` where it wrote nothing.
    pub member_bytes_per_host_byte: Option<f64>,
    /// What the members were asked.
    pub accesses: MemberAccesses,
    /// How writes to rows with parity were done.
    pub row_writes: RowWrites,
    /// The controller.
    pub controller: ControllerActivity,
    /// The members, place by place.
    pub members: Vec<MemberActivity>,
    /// Drives that failed, in the order in which they did.
    pub failures: Vec<MemberFailure>,
    /// Drives that were filled in the place of others, in the order in which that started.
    pub rebuilds: Vec<Rebuild>,
    /// Drives that still stand by.
    pub spares_left: u32,
}

/// What is counted while an array runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) accesses: MemberAccesses,
    pub(super) row_writes: RowWrites,
    /// Times are those of the array's clock.
    pub(super) failures: Vec<MemberFailure>,
    pub(super) rebuilds: Vec<Rebuild>,
    /// Writes that found no space in the write cache.
    pub(super) cache_waits: u64,
    /// Where the present span started.
    mark: Mark,
}

/// What had been counted at some moment.
#[derive(Clone, Debug, Default)]
struct Mark {
    at_ns: u64,
    accesses: MemberAccesses,
    row_writes: RowWrites,
    failures: usize,
    cache_waits: u64,
    host_bytes_written: u64,
    controller: ControllerCounters,
    members: Vec<DeviceCounters>,
}

impl Tally {
    /// A place has a new drive.
    pub(super) fn rebuild_begins(&mut self, member: usize, rows: u64, now_ns: u64) {
        let member = member as u32;
        self.rebuilds.push(Rebuild { member, began_ns: now_ns, ended_ns: None, end: None, rows_done: 0, rows });
    }

    /// The rebuilding of a place has come so far, or has ended.
    pub(super) fn rebuild_goes_on(&mut self, member: usize, rows_done: u64, end: Option<(RebuildEnd, u64)>) {
        let of_place = |rebuild: &&mut Rebuild| rebuild.member as usize == member && rebuild.end.is_none();
        let Some(rebuild) = self.rebuilds.iter_mut().rev().find(of_place) else { return };
        rebuild.rows_done = rebuild.rows_done.max(rows_done);
        (rebuild.end, rebuild.ended_ns) = (end.map(|(end, _)| end), end.map(|(_, at_ns)| at_ns));
    }
}

impl SimulatedArray {
    /// What the array has done since [`Self::mark`], or since it is new. `elapsed_ns` is what shares of time are of.
    pub fn activity(&self, elapsed_ns: u64) -> ArrayActivity {
        let (tally, mark) = (&self.tally, &self.tally.mark);
        let accesses = tally.accesses.since(&mark.accesses);
        let host_bytes = self.counters.host_bytes_written.bytes() - mark.host_bytes_written;
        let after = |at_ns: u64| at_ns.saturating_sub(mark.at_ns);
        let goes_on = |rebuild: &&Rebuild| rebuild.ended_ns.is_none_or(|ended_ns| ended_ns >= mark.at_ns);
        let rebuild = |rebuild: &Rebuild| Rebuild {
            began_ns: after(rebuild.began_ns),
            ended_ns: rebuild.ended_ns.map(after),
            ..*rebuild
        };
        ArrayActivity {
            config: self.config.clone(),
            level: self.config.level,
            chunk_bytes: self.config.chunk_bytes,
            rows: self.stripes.rows,
            row_bytes: self.stripes.row_bytes(),
            capacity_bytes: self.stripes.capacity_bytes(),
            member_bytes_per_host_byte: (host_bytes > 0).then(|| accesses.bytes_written() as f64 / host_bytes as f64),
            accesses,
            row_writes: tally.row_writes.since(&mark.row_writes),
            controller: self.controller_activity(elapsed_ns),
            members: (0..self.members.len()).map(|member| self.member_activity(member)).collect(),
            failures: tally.failures[mark.failures..]
                .iter()
                .map(|failure| MemberFailure { at_ns: after(failure.at_ns), ..*failure })
                .collect(),
            rebuilds: tally.rebuilds.iter().filter(goes_on).map(rebuild).collect(),
            spares_left: self.spares,
        }
    }

    /// Starts the span of time that [`Self::activity`] reports.
    pub fn mark(&mut self) {
        self.tally.mark = Mark {
            at_ns: self.now_ns,
            accesses: self.tally.accesses,
            row_writes: self.tally.row_writes,
            failures: self.tally.failures.len(),
            cache_waits: self.tally.cache_waits,
            host_bytes_written: self.counters.host_bytes_written.bytes(),
            controller: self.controller.counters(),
            members: self.members.iter().map(super::members::Member::counters).collect(),
        };
    }

    fn controller_activity(&self, elapsed_ns: u64) -> ControllerActivity {
        let (now, then) = (self.controller.counters(), self.tally.mark.controller);
        let limits = &self.config.controller;
        let share = |busy_ns: u64| if elapsed_ns == 0 { 0.0 } else { (busy_ns as f64 / elapsed_ns as f64).min(1.0) };
        let processor = (limits.iops_max > 0).then(|| share(now.processor_ns - then.processor_ns));
        let bus = (limits.bandwidth_bytes_per_s > 0).then(|| share(now.bus_ns - then.bus_ns));
        let busiest = match (processor.unwrap_or(0.0), bus.unwrap_or(0.0)) {
            (processor, bus) if processor >= bus => (ControllerLimit::Iops, processor),
            (_, bus) => (ControllerLimit::Bandwidth, bus),
        };
        ControllerActivity {
            processor_busy: processor,
            processor_waits: now.processor_waits - then.processor_waits,
            bus_busy: bus,
            bus_waits: now.bus_waits - then.bus_waits,
            limit_reached: (busiest.1 >= REACHED).then_some(busiest.0),
            cached_bytes: self.cache.as_ref().map(|cache| cache.used_bytes),
            cache_waits: self.tally.cache_waits - self.tally.mark.cache_waits,
        }
    }

    fn member_activity(&self, number: usize) -> MemberActivity {
        let member = self.members.get(number);
        let then = self.tally.mark.members.get(number).copied().unwrap_or_default();
        let counters = member.counters().since(&then);
        let flash = counters.flash.unwrap_or_default();
        let (state, rebuilt_rows) = match &member.state {
            State::Whole => (PlaceState::Whole, None),
            State::Failed => (PlaceState::Failed, None),
            State::Rebuilding(rebuilt) => (PlaceState::Rebuilding, Some(rebuilt.below)),
        };
        MemberActivity {
            state,
            rebuilt_rows,
            reads: counters.host_reads,
            bytes_read: counters.host_bytes_read.bytes(),
            writes: counters.host_writes,
            bytes_written: counters.host_bytes_written.bytes(),
            flash_bytes_programmed: flash.bytes_programmed.bytes(),
            write_amplification: counters.write_amplification(),
            gc_executions: flash.gc_runs,
            pe_cycles_mean: member.drive.as_ref().and_then(pe_cycles_mean),
        }
    }

    /// Counts the commands that a job makes.
    pub(super) fn tally_commands(&mut self, job: u64, requests: &[MemberRequest]) {
        let Some(job) = self.jobs.get(&job) else { return };
        let columns = self.stripes.columns;
        requests.iter().for_each(|request| self.tally.accesses.count(&job.work, request, columns));
        if let Some(method) = method_of_write(job) {
            self.tally.row_writes.count(method);
        }
        let writes = requests.iter().any(|request| request.operation == Operation::Write);
        if matches!(job.work, Work::Write) && self.stripes.parities > 0 && writes {
            self.tally.row_writes.full_stripe += (job.end - job.start) / self.stripes.row_bytes();
        }
    }
}

/// How a job on a part of a row, whose reads are done, found the parity that it now writes.
fn method_of_write(job: &Job) -> Option<Method> {
    match &job.work {
        Work::WriteRow(work) if job.is_writing => Some(work.method),
        _ => None,
    }
}

fn pe_cycles_mean(drive: &SimulatedSsd) -> Option<f64> {
    let histogram = drive.erase_histogram();
    let superblocks: u64 = histogram.values().sum();
    let cycles: u64 = histogram.iter().map(|(&cycles, &superblocks)| u64::from(cycles) * superblocks).sum();
    (superblocks > 0).then(|| cycles as f64 / superblocks as f64)
}
