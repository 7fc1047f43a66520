//! The volume: how a request goes from limit to limit to the medium and back.
//!
//! Several volumes of one instance are one device on one clock: each has its addresses, limits, medium, network and
//! queue, and behind their own limits requests of all come to the instance's limits, in the order of their arrival.

use std::collections::VecDeque;
use std::ops::Range;

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};
use flashwise_ssd::host::LOST;
use flashwise_ssd::{SimulatedSsd, SsdError};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::config::{Volume, VolumeConfig};
use crate::events::Events;
use crate::limit::{Admission, BUCKETS_MAX, Limit, LimitActivity};
use crate::medium::{Done, Medium};
use crate::network::Delay;

/// A simulated volume in virtual time.
///
/// Time moves only in [`wait`](BlockDevice::wait) and [`pause`](BlockDevice::pause).
pub struct SimulatedVolume {
    volume: Volume,
    info: DeviceInfo,
    now_ns: u64,
    /// The limits of each volume, and behind them the instance's.
    limits: Vec<Limit>,
    /// The first of the instance's limits.
    of_instance: usize,
    /// The volumes of the instance: this one, and the others.
    parts: Vec<Part>,
    random: Pcg64Mcg,
    /// Requests in the volumes, by their place.
    active: Vec<Option<Active>>,
    free: Vec<usize>,
    events: Events,
    completed: VecDeque<Completion>,
    outstanding: usize,
    counters: DeviceCounters,
}

/// One of the volumes of an instance.
struct Part {
    /// Its addresses on the device.
    bytes: Range<u64>,
    /// Its own limits.
    limits: Range<usize>,
    medium: Medium,
    read_delay: Delay,
    write_delay: Delay,
    queue_depth: u32,
    in_volume: u32,
    /// Requests in the host's queue.
    waiting: VecDeque<(u64, Request)>,
}

/// A request in the volume.
struct Active {
    /// The volume that it is on; of a flush, which goes to all, the first.
    part: usize,
    /// Media that have not done it.
    pending: usize,
    /// What went wrong in one of several media.
    result: Result<(), BlockError>,
    /// Absent while the medium has it.
    request: Option<Request>,
    tag: u64,
    operation: Operation,
    length: ByteSize,
    submitted_ns: u64,
    started_ns: u64,
    step: Step,
}

/// Where a request is.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Before a limit.
    Limit(usize),
    /// Before, or waiting at, a limit's bucket, with what it takes, and since when.
    Bucket { limit: usize, bucket: usize, cost: i128, since_ns: u64 },
    /// Let through by a bucket at the time of its event.
    Passed { limit: usize, bucket: usize, cost: i128, since_ns: u64 },
    /// In the medium.
    Medium,
    /// On its way back.
    Return,
}

impl SimulatedVolume {
    /// A new volume; `seed` drives what is random in the network and in a drive.
    ///
    /// # Errors
    /// When the configuration describes no possible volume.
    pub fn new(volume: Volume, seed: u64) -> Result<Self, SsdError> {
        volume.check(&volume.config.name)?;
        let config = &volume.config;
        let (mut parts, mut limits): (Vec<Part>, Vec<Limit>) = (Vec::new(), Vec::new());
        for (number, one) in volume.all().enumerate() {
            let from = limits.len();
            limits.extend(one.config.limits.iter().map(|limit| match number {
                0 => Limit::new(limit, None),
                _ => Limit::new(limit, None).of_volume(&one.config.name),
            }));
            let start = parts.last().map_or(0, |before| before.bytes.end);
            parts.push(Part::new(one, start, from..limits.len(), seed.wrapping_add(number as u64))?);
        }
        let of_instance = limits.len();
        limits.extend(config.instance.limits.iter().map(|limit| Limit::new(limit, Some(&config.instance))));
        let info = DeviceInfo {
            name: config.name.clone(),
            capacity: volume.capacity(),
            logical_block: ByteSize(config.logical_block_bytes),
            max_transfer: ByteSize(volume.all().map(|one| one.config.max_transfer_bytes).min().unwrap_or(0)),
            queue_depth: parts.iter().map(|part| part.queue_depth).sum(),
            clock: Clock::Virtual,
            atomic_write: None,
        };
        Ok(Self {
            info,
            now_ns: 0,
            events: Events::new(limits.len() * BUCKETS_MAX),
            limits,
            of_instance,
            parts,
            random: Pcg64Mcg::seed_from_u64(seed),
            active: Vec::new(),
            free: Vec::new(),
            completed: VecDeque::new(),
            outstanding: 0,
            counters: DeviceCounters::default(),
            volume,
        })
    }

    /// What the volume is made of.
    pub fn config(&self) -> &VolumeConfig {
        &self.volume.config
    }

    /// The drive behind the volume, the first of several; `None` where its medium is none.
    pub fn drive(&self) -> Option<&SimulatedSsd> {
        match &self.parts[0].medium {
            Medium::Drive(drive) => Some(drive.get()),
            _ => None,
        }
    }

    /// The drive behind the volume, to be brought into a state before the first request.
    pub fn drive_mut(&mut self) -> Option<&mut SimulatedSsd> {
        match &mut self.parts[0].medium {
            Medium::Drive(drive) => Some(drive.get_mut()),
            _ => None,
        }
    }

    /// Brings the volume's clock to that of its drive, after the drive was used alone.
    pub fn follow_drive(&mut self) {
        let drive_ns = self.drive().map_or(0, |drive| drive.now().0);
        self.now_ns = self.now_ns.max(drive_ns);
    }

    /// What each limit did, the volume's first.
    pub fn limit_activity(&self) -> Vec<LimitActivity> {
        self.limits.iter().map(|limit| limit.activity.clone()).collect()
    }

    /// Counts from now on what limits do.
    pub fn reset_limit_activity(&mut self) {
        self.limits.iter_mut().for_each(Limit::reset_activity);
    }

    /// Tokens in the bucket of each limit, the volume's first; negative in debt.
    pub fn tokens(&self) -> Vec<f64> {
        self.limits.iter().map(|limit| limit.level(self.now_ns)).collect()
    }

    /// Whether no request is outstanding.
    pub fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    /// The next completion, at the latest at a time, to which the clock moves otherwise.
    ///
    /// # Errors
    /// When the volume is lost.
    pub fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        while self.completed.is_empty() {
            if !self.step(deadline.0)? {
                self.now_ns = self.now_ns.max(deadline.0);
                return Ok(None);
            }
        }
        Ok(self.take_completion())
    }

    /// The same, but where nothing completes the clock stays at the last event, so that what comes before the deadline
    /// can still be submitted at its time.
    ///
    /// # Errors
    /// When the volume is lost.
    pub fn wait_within(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        while self.completed.is_empty() && self.step(deadline.0)? {}
        Ok(self.take_completion())
    }

    /// When something happens in the volume next; `None` where nothing is scheduled.
    pub fn next_event(&self) -> Option<Nanos> {
        let event = self.events.next_time();
        let done = self.completed.front().map(|_| self.now_ns);
        let media = self.next_of_media().map(|(at_ns, _)| at_ns);
        event.into_iter().chain(media).chain(done).min().map(Nanos)
    }

    /// Whether the page of 4 KiB, or of a drive, that a byte is on was written with bytes.
    pub fn carries_bytes_of(&self, byte: ByteSize) -> bool {
        let part = &self.parts[self.part_of(byte.0)];
        part.medium.carries_bytes_of(ByteSize(byte.0.saturating_sub(part.bytes.start)))
    }

    /// The volume that an address is on.
    fn part_of(&self, byte: u64) -> usize {
        self.parts.partition_point(|part| part.bytes.end <= byte).min(self.parts.len() - 1)
    }

    /// When something happens in a medium next, and in that of which volume.
    fn next_of_media(&self) -> Option<(u64, usize)> {
        let times = self.parts.iter().enumerate().filter_map(|(part, one)| Some((one.medium.next_time()?, part)));
        times.min()
    }

    fn take_completion(&mut self) -> Option<Completion> {
        let done = self.completed.pop_front();
        self.outstanding -= usize::from(done.is_some());
        done
    }

    /// Lets the next thing happen, if it does until a time; gives whether it did.
    fn step(&mut self, limit_ns: u64) -> Result<bool, BlockError> {
        let event = self.events.next_time().unwrap_or(u64::MAX);
        if let Some((at_ns, part)) = self.next_of_media()
            && at_ns <= limit_ns.min(event)
        {
            let of_others = self.others_next(part);
            if let Some(done) = self.parts[part].medium.advance(limit_ns.min(event).min(of_others))? {
                self.now_ns = self.now_ns.max(done.at_ns);
                self.left_medium(part, done);
            }
            return Ok(true);
        }
        if event > limit_ns {
            return Ok(false);
        }
        let Some((at_ns, place)) = self.events.take() else { return Ok(false) };
        debug_assert!(at_ns >= self.now_ns);
        self.now_ns = at_ns;
        self.go_on(place)?;
        Ok(true)
    }

    /// When something happens next in the medium of another volume than one.
    fn others_next(&self, part: usize) -> u64 {
        let others = self.parts.iter().enumerate().filter(|&(other, _)| other != part);
        others.filter_map(|(_, other)| other.medium.next_time()).min().unwrap_or(u64::MAX)
    }

    /// Takes a request out of a volume's queue.
    fn enter(&mut self, part: usize, submitted_ns: u64, request: Request) -> Result<(), BlockError> {
        let Request { tag, operation, length, .. } = request;
        let active = Active {
            part,
            pending: 0,
            result: Ok(()),
            request: Some(request),
            tag,
            operation,
            length,
            submitted_ns,
            started_ns: self.now_ns,
            step: Step::Limit(self.parts[part].first_limit(self.of_instance)),
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.active.push(None);
            self.active.len() - 1
        });
        self.active[place] = Some(active);
        self.parts[part].in_volume += 1;
        self.go_on(place)
    }

    /// Leads a request on as far as it comes now.
    fn go_on(&mut self, place: usize) -> Result<(), BlockError> {
        let Some(active) = &mut self.active[place] else { return Ok(()) };
        let now_ns = self.now_ns;
        let (own_end, of_instance) = (self.parts[active.part].limits.end, self.of_instance);
        let after = |limit: usize| if limit + 1 == own_end { of_instance } else { limit + 1 };
        loop {
            active.step = match active.step {
                Step::Limit(limit) if limit == self.limits.len() => {
                    active.started_ns = now_ns;
                    active.step = Step::Medium;
                    return self.enter_medium(place);
                }
                Step::Limit(limit) => match &active.request {
                    Some(request) if self.limits[limit].covers(active.operation) => {
                        let cost = self.limits[limit].charge(active.operation, request.offset.0, request.length.0);
                        Step::Bucket { limit, bucket: 0, cost, since_ns: now_ns }
                    }
                    _ => Step::Limit(after(limit)),
                },
                Step::Bucket { limit, bucket, .. } if bucket == self.limits[limit].buckets() => {
                    Step::Limit(after(limit))
                }
                Step::Bucket { limit, bucket, cost, since_ns } => {
                    let at_ns = match self.limits[limit].admit(bucket, now_ns, cost) {
                        Admission::Now => {
                            active.step = Step::Passed { limit, bucket, cost, since_ns };
                            continue;
                        }
                        Admission::At(at_ns) => {
                            active.step = Step::Passed { limit, bucket, cost, since_ns };
                            at_ns
                        }
                        Admission::Again(at_ns) => at_ns,
                    };
                    self.events.at_bucket(limit * BUCKETS_MAX + bucket, at_ns, place);
                    return Ok(());
                }
                Step::Passed { limit, bucket, cost, since_ns } => {
                    if bucket + 1 == self.limits[limit].buckets() {
                        self.limits[limit].passed(since_ns, now_ns);
                    }
                    Step::Bucket { limit, bucket: bucket + 1, cost, since_ns }
                }
                Step::Medium | Step::Return => {
                    let Some(active) = self.active[place].take() else { return Ok(()) };
                    let part = active.part;
                    self.complete(active, Ok(()));
                    self.free.push(place);
                    return self.fill(part);
                }
            };
        }
    }

    /// Hands a request to the medium of its volume, and a flush to those of all.
    fn enter_medium(&mut self, place: usize) -> Result<(), BlockError> {
        let Some(active) = &mut self.active[place] else { return Ok(()) };
        let Some(request) = active.request.take() else { return Err(LOST) };
        let mut request = request.tagged(place as u64);
        if active.operation == Operation::Flush {
            active.pending = self.parts.len();
            let flush = |part: &mut Part| part.medium.submit(Request::flush().tagged(place as u64), self.now_ns);
            return self.parts.iter_mut().try_for_each(flush);
        }
        active.pending = 1;
        let part = &mut self.parts[active.part];
        request.offset = ByteSize(request.offset.0 - part.bytes.start);
        part.medium.submit(request, self.now_ns)
    }

    /// The medium of a volume has done a request.
    fn left_medium(&mut self, part: usize, done: Done) {
        let place = done.tag as usize;
        let Some(active) = &mut self.active[place] else { return };
        active.pending -= 1;
        active.result = std::mem::replace(&mut active.result, Ok(())).and(done.result);
        if active.pending > 0 {
            return;
        }
        let part = &self.parts[part];
        let delay = if active.operation == Operation::Read { &part.read_delay } else { &part.write_delay };
        let delay_ns = delay.draw(&mut self.random);
        let (operation, length) = (active.operation, active.length);
        active.step = Step::Return;
        // The request comes back in pieces: its buffer from the medium, the rest was kept.
        let mut request = Request::read(ByteSize(0), length);
        (request.operation, request.buffer) = (operation, done.buffer);
        active.request = Some(request);
        if let Err(error) = active.result.clone() {
            let failed = self.active[place].take();
            failed.into_iter().for_each(|active| self.complete(active, Err(error.clone())));
            self.free.push(place);
            return;
        }
        self.events.returns(self.now_ns + delay_ns, place);
    }

    fn complete(&mut self, active: Active, result: Result<(), BlockError>) {
        let Active { part, request, tag, operation, length, submitted_ns, started_ns, .. } = active;
        if result.is_ok() {
            self.counters.count(operation, length);
        }
        let (submitted_at, started_at, completed_at) = (Nanos(submitted_ns), Nanos(started_ns), Nanos(self.now_ns));
        let buffer = request.and_then(|request| request.buffer);
        self.completed.push_back(Completion { tag, operation, submitted_at, started_at, completed_at, result, buffer });
        self.parts[part].in_volume -= 1;
    }

    /// Takes requests out of a volume's queue as far as the volume takes more.
    fn fill(&mut self, part: usize) -> Result<(), BlockError> {
        while self.parts[part].in_volume < self.parts[part].queue_depth {
            let Some((submitted_ns, request)) = self.parts[part].waiting.pop_front() else { break };
            self.enter(part, submitted_ns, request)?;
        }
        Ok(())
    }

    /// The volume that a request goes to, which has all of it.
    fn check(&self, request: &Request) -> Result<usize, BlockError> {
        self.info.check(request)?;
        if request.operation == Operation::Flush {
            return Ok(0);
        }
        let part = self.part_of(request.offset.0);
        let end = self.parts[part].bytes.end;
        if request.offset.0 + request.length.0 > end {
            let reason = format!("it is on two volumes of the instance: split it at byte {end}");
            let Request { operation, offset, length, .. } = *request;
            return Err(BlockError::InvalidRequest { operation, offset, length, reason });
        }
        Ok(part)
    }
}

impl Part {
    fn new(volume: &Volume, start: u64, limits: Range<usize>, seed: u64) -> Result<Self, SsdError> {
        let config = &volume.config;
        Ok(Self {
            bytes: start..start + config.capacity_bytes,
            limits,
            medium: Medium::new(volume, seed)?,
            read_delay: Delay::new(&config.network.read),
            write_delay: Delay::new(&config.network.write),
            queue_depth: config.queue_depth,
            in_volume: 0,
            waiting: VecDeque::new(),
        })
    }

    /// The first limit of its requests.
    fn first_limit(&self, of_instance: usize) -> usize {
        if self.limits.is_empty() { of_instance } else { self.limits.start }
    }
}

impl BlockDevice for SimulatedVolume {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.now_ns)
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        let part = self.check(&request)?;
        // What happens at this time happened before the request came.
        while self.step(self.now_ns)? {}
        self.outstanding += 1;
        self.parts[part].waiting.push_back((self.now_ns, request));
        self.fill(part)
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        if self.outstanding == 0 {
            return Ok(None);
        }
        while self.completed.is_empty() {
            if !self.step(u64::MAX)? {
                return Err(LOST);
            }
        }
        Ok(self.take_completion())
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        while self.completed.is_empty() && self.step(self.now_ns)? {}
        Ok(self.take_completion())
    }

    fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        while self.completed.is_empty() && self.step(deadline.0)? {}
        if self.completed.is_empty() {
            self.pause(deadline.since(self.now()))?;
        }
        Ok(self.take_completion())
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        let end_ns = self.now_ns.saturating_add(duration.0);
        while self.step(end_ns)? {}
        self.now_ns = end_ns;
        self.parts.iter_mut().try_for_each(|part| part.medium.catch_up(end_ns))?;
        while self.step(end_ns)? {}
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        DeviceCounters { flash: self.parts[0].medium.flash_counters(), ..self.counters }
    }
}
