//! Arrays of simulated drives: RAID-0, 1, 10, 5 and 6 behind one controller, as a [`BlockDevice`].
//!
//! ```text
//!   Request ──▶ controller ──▶ write cache ──▶ jobs: pieces of work on ranges of the array      requests.rs, cache.rs
//!                                               │  lock · read · compute parity · write         plain.rs, row.rs
//!                                               ▼
//!                                             members, in step on one clock                     members.rs
//!                                               ▼
//!   Completion ◀── controller ◀──────────────  all jobs of the request are done
//! ```
//!
//! **Levels.** Stripe (row) `r` of an array is chunk `r` of every member; a level defines which member holds which data
//! of it ([`level`]).
//!
//! **Writes with parity.** A full stripe is written without reading. For a partial stripe, parity is computed in the
//! way that reads the fewest bytes: from the overwritten data and the old parity (read-modify-write), from the data
//! that is not overwritten (reconstruct-write), or, if neither is possible because a member is missing, from all
//! remaining members. At a tie it is read-modify-write, whose reads go to the members that are written anyway. Parity
//! is read and written over the hull of the bytes that change in the chunks of the stripe.
//!
//! **Locking.** A write to a stripe with parity locks the stripe; a write to copies locks its own bytes, so that copies
//! cannot diverge ([`locks`]).
//!
//! **Failure.** [`SimulatedArray::fail_drive`] removes a drive at once. Its reads in flight are reconstructed from the
//! others; writes continue without it. A member whose writes fail is removed in the same way; one that cannot read some
//! bytes stays, and these bytes are reconstructed from the others. After more failures than its level survives, an
//! array completes requests that it cannot serve with [`BlockError::ArrayFailed`], and serves the rest.
//!
//! **Rebuild.** A spare replaces a failed drive, automatically or by [`SimulatedArray::replace_drive`], and is rebuilt
//! stripe by stripe, a few stripes at a time, at no more than the configured rate. Rebuilt stripes count as present. If
//! a stripe cannot be restored, the rebuild ends and the slot has failed again.
//!
//! **Bytes.** Requests with buffers carry data, of which parity is computed; requests without buffers take the same
//! time. Once any data has been written, a write without a buffer writes zeros, so that parity is always correct.
//!
//! **Flush.** A flush is sent to every member. Data in the controller's write cache is durable: it is battery-backed.
//!
//! **Not modelled.** Power cuts in the middle of a write to several members (the write hole), a journal or bitmap
//! against it, read verification, a limit on the controller's concurrent requests.
//!
//! # Example
//! ```
//! use flashwise_block::{BlockDevice, ByteSize, IoBuffer, Request, execute};
//! use flashwise_ssd::DeviceConfig;
//! use flashwise_array::{ArrayConfig, Level, SimulatedArray};
//!
//! let config = ArrayConfig::new(Level::Raid6, 6, 64 << 10);
//! let mut array = SimulatedArray::new(config, DeviceConfig::preset("micron-m500")?, 1)?;
//! let data = IoBuffer::copy_of(&[7; 4096]);
//! execute(&mut array, Request::write(ByteSize(0), ByteSize::kib(4)).with_buffer(data))?;
//! array.fail_drive(0);
//! array.fail_drive(2);
//! let read = Request::read(ByteSize(0), ByteSize::kib(4)).with_buffer(IoBuffer::zeroed(4096));
//! let read = execute(&mut array, read)?;
//! assert!(read.buffer.is_some_and(|bytes| bytes.iter().all(|&byte| byte == 7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod activity;
mod cache;
mod check;
mod config;
mod controller;
mod galois;
mod level;
mod locks;
mod members;
mod parity;
mod plain;
mod rebuild;
mod requests;
mod row;
mod stripes;
mod totals;
mod work;

use std::collections::{BTreeMap, VecDeque};

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, IoBuffer, Nanos, Operation,
    Request,
};

pub use activity::{
    Accesses, ArrayActivity, ControllerActivity, ControllerLimit, MemberAccesses, MemberActivity, MemberFailure,
    PlaceState, Rebuild, RebuildEnd, RowWrites,
};
pub use check::ParityError;
pub use config::{ArrayCacheConfig, ArrayConfig, ArrayControllerConfig, FailureConfig, Level};

use activity::Tally;

use cache::WriteCache;
use controller::{Controller, Timer};
use locks::Locks;
use members::{Members, State};
use requests::HostRequest;
use stripes::Stripes;
use work::{Child, Job, MemberRequest, Parent, Work};

use flashwise_ssd::SimulatedSsd;
use flashwise_ssd::SsdError;
use flashwise_ssd::config::{DeviceConfig, QueuePriority};
use flashwise_ssd::host::CompletionRecord;
use flashwise_ssd::reduction::ContentModel;

/// What a place among an array's members is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It holds all that it should.
    Whole,
    /// Its drive has failed.
    Failed,
    /// A new drive is being filled; so many rows from the first on are done.
    Rebuilding {
        /// Rows that are done.
        rows: u64,
    },
}

/// An array of simulated drives in virtual time.
///
/// Time moves only in [`wait`](BlockDevice::wait) and [`pause`](BlockDevice::pause), for all members alike.
pub struct SimulatedArray {
    config: ArrayConfig,
    member_config: DeviceConfig,
    info: DeviceInfo,
    stripes: Stripes,
    seed: u64,
    now_ns: u64,
    members: Members,
    controller: Controller,
    cache: Option<WriteCache>,
    locks: Locks,
    /// By number, which only grows: what is iterated comes in the order in which it started.
    hosts: BTreeMap<u64, HostRequest>,
    jobs: BTreeMap<u64, Job>,
    children: BTreeMap<u64, Child>,
    next_number: u64,
    completed: VecDeque<Completion>,
    outstanding: usize,
    counters: DeviceCounters,
    spares: u32,
    /// What new drives in places of the array are told.
    queue_classes: Vec<(u16, QueuePriority)>,
    content: Option<ContentModel>,
    tally: Tally,
    /// A request has carried bytes.
    has_bytes: bool,
    /// What the last check of a row found.
    checked: Result<(), ParityError>,
    /// The array is lost as a whole.
    fault: Option<BlockError>,
}

impl SimulatedArray {
    /// New, empty drives in an array; the first has this seed, each further one the next.
    ///
    /// # Errors
    /// When the configuration describes no possible array.
    pub fn new(config: ArrayConfig, member: DeviceConfig, seed: u64) -> Result<Self, SsdError> {
        let drive = |index| SimulatedSsd::new(member.clone(), seed.wrapping_add(u64::from(index)));
        let drives = (0..config.members).map(drive).collect::<Result<Vec<_>, _>>()?;
        Self::of_drives(config, drives, seed)
    }

    /// Drives of one configuration in an array, in the state in which they are; their clocks are brought to the latest.
    /// They must hold no bytes: parity is computed only of what is written from now on. `seed` is that of spares.
    ///
    /// # Errors
    /// When the configuration describes no possible array of these drives.
    pub fn of_drives(config: ArrayConfig, drives: Vec<SimulatedSsd>, seed: u64) -> Result<Self, SsdError> {
        let found = drives.len();
        let impossible = |reason: &str| SsdError::Impossible {
            path: config.name.clone(),
            key: "members",
            value: found.to_string(),
            reason: reason.to_owned(),
        };
        let Some(first) = drives.first() else { return Err(impossible("an array needs at least one drive")) };
        if found != config.members as usize || drives.iter().any(|drive| drive.config() != first.config()) {
            return Err(impossible("an array needs one drive per member, all of the same configuration"));
        }
        let member_config = first.config().clone();
        config.check(&member_config, &config.name)?;
        let stripes = Stripes::new(config.level, found, config.chunk_bytes, member_config.capacity_bytes);
        let max_transfer = config.controller.max_transfer_bytes.unwrap_or(member_config.host.max_transfer_bytes);
        let info = DeviceInfo {
            name: config.name.clone(),
            capacity: ByteSize(stripes.capacity_bytes()),
            logical_block: first.info().logical_block,
            max_transfer: ByteSize(max_transfer),
            queue_depth: first.info().queue_depth.saturating_mul(config.members),
            clock: Clock::Virtual,
            // A write goes to several members, and nothing keeps them together.
            atomic_write: None,
        };
        let (members, now_ns) = Members::new(drives).map_err(|error| impossible(&error.to_string()))?;
        let cache = config.controller.write_cache.as_ref();
        Ok(Self {
            cache: cache.map(|cache| WriteCache::new(cache.bytes, cache.destage_from(max_transfer))),
            controller: Controller::new(config.controller.clone()),
            spares: config.spares,
            config,
            member_config,
            info,
            stripes,
            seed,
            now_ns,
            members,
            locks: Locks::default(),
            hosts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            children: BTreeMap::new(),
            next_number: 0,
            completed: VecDeque::new(),
            outstanding: 0,
            counters: DeviceCounters::default(),
            queue_classes: Vec::new(),
            content: None,
            tally: Tally::default(),
            has_bytes: false,
            checked: Ok(()),
            fault: None,
        })
    }

    /// What the array is built of.
    pub fn config(&self) -> &ArrayConfig {
        &self.config
    }

    /// What its members are built of.
    pub fn member_config(&self) -> &DeviceConfig {
        &self.member_config
    }

    /// What each place is in.
    pub fn member_states(&self) -> Vec<MemberState> {
        let state = |member: &members::Member| match &member.state {
            State::Whole => MemberState::Whole,
            State::Failed => MemberState::Failed,
            State::Rebuilding(rebuilt) => MemberState::Rebuilding { rows: rebuilt.below },
        };
        self.members.iter().map(state).collect()
    }

    /// What the drive in a place has counted; `None` where it has failed.
    pub fn member_counters(&self, member: usize) -> Option<DeviceCounters> {
        self.members.iter().nth(member)?.drive.as_ref().map(SimulatedSsd::counters)
    }

    /// Rows of the array: chunks of each member.
    pub fn rows(&self) -> u64 {
        self.stripes.rows
    }

    /// Bytes that wait in the write cache.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, |cache| cache.used_bytes)
    }

    /// The drive in a place fails now, with all that it has not completed; a spare takes its place, if there is one.
    /// Nothing happens where the place has failed already, or where there is none of that number.
    pub fn fail_drive(&mut self, member: usize) {
        if member >= self.members.len() || matches!(self.members.get(member).state, State::Failed) {
            return;
        }
        let lost: Vec<u64> =
            self.children.iter().filter(|(_, child)| child.member == member).map(|(&id, _)| id).collect();
        if let State::Rebuilding(rebuilt) = &self.members.get(member).state {
            let rows_done = rebuilt.below;
            self.tally.rebuild_goes_on(member, rows_done, Some((RebuildEnd::Failed, self.now_ns)));
        }
        self.tally.failures.push(MemberFailure { member: member as u32, at_ns: self.now_ns });
        self.members.fail(member);
        for child in lost {
            self.child_done(child, Err(()), None);
        }
        if self.spares > 0 {
            self.spares -= 1;
            self.replace_drive(member);
        }
    }

    /// A number that nothing else has.
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Starts a piece of work, once it may.
    fn add_job(&mut self, parent: Parent, range: (u64, u64), avoid: u64, work: Work) {
        let id = self.number();
        if let Parent::Host(host) = parent
            && let Some(host) = self.hosts.get_mut(&host)
        {
            host.pending += 1;
        }
        let locked = self.locked_range(&work, range);
        let carries_bytes = self.carries_bytes(parent, &work);
        self.jobs.insert(id, Job::new(parent, range, avoid, work, carries_bytes));
        if locked.is_none_or(|(start, end)| self.locks.acquire(start, end, id)) {
            self.begin_job(id);
        }
    }

    /// The range that a piece of work holds while it lasts; `None` where it may continue beside any other.
    fn locked_range(&self, work: &Work, (start, end): (u64, u64)) -> Option<(u64, u64)> {
        match work {
            Work::Read | Work::Flush => None,
            // Nothing can come to differ where nothing is held twice, and a drive takes its writes as they come.
            Work::Write if self.stripes.copies + self.stripes.parities == 1 && self.cache.is_none() => None,
            Work::Write if self.stripes.parities == 0 => Some((start, end)),
            _ => {
                let row = self.stripes.row_bytes();
                Some((start / row * row, end.div_ceil(row) * row))
            }
        }
    }

    /// A job has its lock, or needs none, or must restart.
    fn begin_job(&mut self, id: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let requests = match &job.work {
            Work::Read => self.plan_read(job),
            Work::Write => self.plan_write(job),
            Work::Flush => Some(self.plan_flush()),
            Work::ReadRow(_) | Work::WriteRow(_) | Work::Rebuild(..) | Work::Check(_) => self.plan_row_reads(id),
        };
        self.launch(id, requests);
    }

    /// Hands a job's requests to the members; none means that it cannot be done.
    fn launch(&mut self, id: u64, requests: Option<Vec<MemberRequest>>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(requests) = requests else {
            job.is_broken = true;
            return self.batch_done(id);
        };
        job.pending = requests.len() as u32;
        let parent = job.parent;
        self.tally_commands(id, &requests);
        let (fua, queue, stream) = match parent {
            Parent::Host(host) => self.hosts.get(&host).map_or((false, 0, 0), HostRequest::marks),
            _ => (false, 0, 0),
        };
        let is_empty = requests.is_empty();
        for MemberRequest { operation, extent, buffer } in requests {
            let tag = self.number();
            let (offset, length) = (ByteSize(extent.offset), ByteSize(extent.length));
            let fua = fua && operation.writes();
            let request = Request { tag, operation, offset, length, fua, queue, stream, buffer };
            let child = Child { job: id, member: extent.member, operation, spans: extent.spans };
            self.children.insert(tag, child);
            if let Err(error) = self.members.submit(extent.member, request, self.now_ns) {
                self.fault.get_or_insert(error);
            }
        }
        if is_empty {
            self.batch_done(id);
        }
    }

    /// A member has completed, or has failed without.
    fn child_done(&mut self, id: u64, result: Result<(), ()>, buffer: Option<IoBuffer>) {
        let Some(child) = self.children.remove(&id) else { return };
        let (member, is_present) = (child.member, self.members.get(child.member).drive.is_some());
        match (result, child.operation) {
            (Ok(()), Operation::Read) => self.take_in(&child, buffer),
            (Ok(()), _) => {}
            (Err(()), operation) => {
                if is_present && operation != Operation::Read {
                    self.fail_drive(member);
                }
                if let Some(job) = self.jobs.get_mut(&child.job) {
                    match operation {
                        Operation::Read => {
                            job.must_retry = true;
                            job.avoid |= if is_present { 1 << member } else { 0 };
                        }
                        _ => job.missed_write = true,
                    }
                }
            }
        }
        let Some(job) = self.jobs.get_mut(&child.job) else { return };
        job.pending -= 1;
        if job.pending == 0 {
            self.batch_done(child.job);
        }
    }

    /// All that a job asked of the members is completed.
    fn batch_done(&mut self, id: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.is_broken {
            return self.end_job(id);
        }
        let must_retry = std::mem::take(&mut job.must_retry);
        match (&job.work, job.is_writing) {
            (Work::Read, _) if must_retry => {
                let (parent, start, end, avoid) = (job.parent, job.start, job.end, job.avoid);
                self.split_read(parent, start, end, avoid);
                self.end_job(id);
            }
            (Work::Read | Work::Flush, _) => self.end_job(id),
            (_, false) if must_retry => self.begin_job(id),
            (Work::ReadRow(_) | Work::Check(_), false) => {
                self.row_is_read(id);
                self.end_job(id);
            }
            (Work::WriteRow(_) | Work::Rebuild(..), false) => {
                job.is_writing = true;
                let requests = self.plan_row_writes(id);
                self.launch(id, requests);
            }
            _ => {
                let survives = !job.missed_write || self.is_kept(id);
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.is_broken = !survives;
                }
                self.end_job(id);
            }
        }
    }

    /// A job is done, or cannot be: its lock goes to others.
    fn end_job(&mut self, id: u64) {
        let Some(job) = self.jobs.remove(&id) else { return };
        // First what is known of the row from now on, then those who waited for it and go by that.
        match job.parent {
            Parent::Host(host) => self.part_done(host, job.is_broken),
            Parent::Destage(number) => self.destaged(number, job.is_broken),
            Parent::Rebuild(member, epoch) => self.row_rebuilt(member, epoch, job.start, job.is_broken),
            Parent::Check => {}
        }
        for next in self.locks.release(id) {
            self.begin_job(next);
        }
    }

    /// Lets one thing happen, not after `deadline_ns`; `false` when there is nothing.
    fn step(&mut self, deadline_ns: u64) -> Result<bool, BlockError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let (members, timers) = (self.members.next_time(), self.controller.next_time());
        let next = members.into_iter().chain(timers).min();
        if next.is_none_or(|next_ns| next_ns > deadline_ns) {
            return Ok(false);
        }
        // What happens on a drive at the time of a timer comes first: the timer finds free what becomes free then.
        if members.is_some() && members <= Some(timers.unwrap_or(u64::MAX)) {
            let limit_ns = deadline_ns.min(timers.unwrap_or(u64::MAX));
            if let Some((_, done)) = self.members.go_on(limit_ns)? {
                self.answered(done);
            }
        } else if let Some((time_ns, timer)) = self.controller.pop() {
            self.now_ns = self.now_ns.max(time_ns);
            match timer {
                Timer::Taken(host) => self.taken(host),
                Timer::Begin(host) => self.begin(host),
                Timer::Complete(host) => self.complete(host),
                Timer::Rebuild(member) => self.rebuild_more(member),
                Timer::Fail(member) => self.fail_drive(member),
            }
        }
        Ok(true)
    }

    /// A drive has completed a request.
    fn answered(&mut self, done: Completion) {
        self.now_ns = self.now_ns.max(done.completed_at.0);
        if let Some(child) = self.children.get(&done.tag) {
            self.members.get_mut(child.member).busy -= 1;
        }
        self.child_done(done.tag, done.result.map_err(|_| ()), done.buffer);
    }
}

impl SimulatedArray {
    /// The next completion up to a deadline; without one, the clock is advanced to the deadline.
    pub fn complete_until(&mut self, deadline_ns: u64) -> Option<CompletionRecord> {
        while self.completed.is_empty() {
            match self.step(deadline_ns) {
                Ok(true) => {}
                // Without a deadline there is no time to wait for.
                Ok(false) if deadline_ns == u64::MAX => return None,
                Ok(false) => {
                    self.now_ns = self.now_ns.max(deadline_ns);
                    return None;
                }
                Err(fault) => {
                    self.fault.get_or_insert(fault);
                    return None;
                }
            }
        }
        let done = self.completed.pop_front()?;
        self.outstanding -= 1;
        Some(CompletionRecord {
            tag: done.tag,
            operation: done.operation,
            submitted_ns: done.submitted_at.0,
            taken_ns: done.started_at.0,
            completed_ns: done.completed_at.0,
            error: done.result.err().map(Box::new),
        })
    }

    /// Why the array will never complete a request again.
    pub fn fault(&self) -> Option<BlockError> {
        self.fault.clone()
    }
}

impl BlockDevice for SimulatedArray {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.now_ns)
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        self.accept(request);
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        if self.outstanding == 0 {
            return Ok(None);
        }
        while self.completed.is_empty() {
            if !self.step(u64::MAX)? {
                return Err(flashwise_ssd::host::LOST);
            }
        }
        self.outstanding -= 1;
        Ok(self.completed.pop_front())
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        while self.completed.is_empty() && self.step(self.now_ns)? {}
        let done = self.completed.pop_front();
        self.outstanding -= usize::from(done.is_some());
        Ok(done)
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        let end_ns = self.now_ns.saturating_add(duration.0);
        while self.step(end_ns)? {}
        self.now_ns = end_ns;
        self.members.catch_all_up(end_ns)?;
        // What the drives answered while their clocks were brought here.
        while self.step(end_ns)? {}
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        DeviceCounters { flash: Some(self.members.flash_counters()), ..self.counters }
    }
}
