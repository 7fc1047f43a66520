//! Keeps a program below the limits of a drive or cloud volume, so that the limiter behind it never acts.
//!
//! ```text
//!   submit ─▶ reads  ─┐
//!             writes ─┴─▶ every bucket has its tokens? ─▶ the drive
//!                         flushes and trims ────────────▶
//! ```
//!
//! A limiter that holds a request for some milliseconds costs far more than the request waits for its turn here: on a
//! public instance's NVMe drive, p99.9 of reads drops from 3,252 to 413 µs at 95 % of the limit.
//!
//! Requests of one direction leave in the order of submission; reads and writes overtake each other, as NVMe permits.
//! Where reads and writes share a budget and both wait, reads get [`RateLimits::read_share`] of it; where one direction
//! has nothing to do, the other one gets all of it.

use std::collections::VecDeque;

use crate::{BlockDevice, BlockError, Completion, DeviceCounters, Nanos, Operation, Request};

/// What a request takes from a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// For the request itself.
    pub per_request: f64,
    /// For each of its bytes.
    pub per_byte: f64,
}

impl Cost {
    /// Nothing.
    pub const NONE: Self = Self { per_request: 0.0, per_byte: 0.0 };

    /// `units` for each request.
    pub const fn per_request(units: f64) -> Self {
        Self { per_request: units, per_byte: 0.0 }
    }

    /// `units` for each byte.
    pub const fn per_byte(units: f64) -> Self {
        Self { per_request: 0.0, per_byte: units }
    }

    /// For a request of so many bytes.
    pub fn of(&self, bytes: u64) -> f64 {
        self.per_request + self.per_byte * bytes as f64
    }
}

/// A limit: what reads and writes cost, and how much of it the drive grants each second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Granted each second.
    pub per_second: f64,
    /// Cost of a read.
    pub read: Cost,
    /// Cost of a write.
    pub write: Cost,
}

impl Budget {
    /// A limit of read IOPS.
    pub const fn read_iops(iops: f64) -> Self {
        Self { per_second: iops, read: Cost::per_request(1.0), write: Cost::NONE }
    }

    /// A limit of write IOPS.
    pub const fn write_iops(iops: f64) -> Self {
        Self { per_second: iops, read: Cost::NONE, write: Cost::per_request(1.0) }
    }

    /// A limit of bytes read each second.
    pub const fn read_bandwidth(bytes: f64) -> Self {
        Self { per_second: bytes, read: Cost::per_byte(1.0), write: Cost::NONE }
    }

    /// A limit of bytes written each second.
    pub const fn write_bandwidth(bytes: f64) -> Self {
        Self { per_second: bytes, read: Cost::NONE, write: Cost::per_byte(1.0) }
    }

    /// Reads and writes share it.
    pub fn is_shared(&self) -> bool {
        self.read != Cost::NONE && self.write != Cost::NONE
    }

    fn cost(&self, is_write: bool, bytes: u64) -> f64 {
        if is_write { self.write.of(bytes) } else { self.read.of(bytes) }
    }
}

/// The limits that a program keeps below.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimits {
    /// All limits; a request needs tokens of each that it draws on.
    pub budgets: Vec<Budget>,
    /// What is used of each limit.
    pub share_of_limit: f64,
    /// How much a bucket holds, as a time of its refill.
    pub burst: Nanos,
    /// What reads get of a shared budget while writes wait too.
    pub read_share: f64,
}

impl RateLimits {
    /// Used of a limit by default. Measured on Azure's local NVMe by EloqStore (`docs/design/io_qos.md`): at 100.5 % of
    /// the fitted limit requests are held, at 95 % none are, for 5 % of throughput.
    pub const SHARE_OF_LIMIT: f64 = 0.95;
    /// A bucket by default, from the same source: 1, 2 and 4 ms of refill cost no throughput; 2 ms are in use there.
    pub const BURST: Nanos = Nanos::millis(2);
    /// Share of reads by default, from the same source: 75 to 25.
    pub const READ_SHARE: f64 = 0.75;

    /// Limits at the default share and burst.
    pub fn new(budgets: Vec<Budget>) -> Self {
        Self { budgets, share_of_limit: Self::SHARE_OF_LIMIT, burst: Self::BURST, read_share: Self::READ_SHARE }
    }
}

/// One bucket, as the time at which it is full again (the generic cell rate algorithm, ITU-T I.371): integers, so that
/// nothing is lost over a long run.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    budget: Budget,
    full_at_ps: u128,
    /// What it holds, as a time of refill.
    depth_ps: u64,
}

const PS_PER_NS: u128 = 1_000;

impl Bucket {
    /// A request's cost as a time of refill.
    fn time_ps(&self, is_write: bool, bytes: u64) -> u64 {
        let seconds = self.budget.cost(is_write, bytes) / self.budget.per_second;
        // A cast saturates, and of a limit of 0 nothing is ever granted.
        (seconds * 1e12).ceil() as u64
    }
}

/// Token buckets, full at first. A request that costs more than a bucket holds takes a full one, and leaves a debt.
#[derive(Clone, Debug)]
pub struct TokenBuckets {
    buckets: Vec<Bucket>,
}

impl TokenBuckets {
    /// A bucket for each budget.
    pub fn new(limits: &RateLimits) -> Self {
        let bucket = |budget: &Budget| Bucket {
            budget: Budget { per_second: budget.per_second * limits.share_of_limit, ..*budget },
            full_at_ps: 0,
            depth_ps: limits.burst.0.saturating_mul(PS_PER_NS as u64),
        };
        Self { buckets: limits.budgets.iter().map(bucket).collect() }
    }

    /// When every bucket has the tokens of a request, if nothing else takes them; it may be in the past.
    pub fn due(&self, is_write: bool, bytes: u64) -> Nanos {
        self.due_of(is_write, bytes, |_| true)
    }

    fn due_of(&self, is_write: bool, bytes: u64, is_asked: impl Fn(&Budget) -> bool) -> Nanos {
        let due = |bucket: &Bucket| match bucket.time_ps(is_write, bytes) {
            0 => 0,
            time => bucket.full_at_ps.saturating_sub(u128::from(bucket.depth_ps - time.min(bucket.depth_ps))),
        };
        let due_ps = self.buckets.iter().filter(|bucket| is_asked(&bucket.budget)).map(due).max().unwrap_or(0);
        Nanos(u64::try_from(due_ps.div_ceil(PS_PER_NS)).unwrap_or(u64::MAX))
    }

    /// Takes a request's tokens; gives back what it takes of the shared buckets, as a time of refill.
    pub fn take(&mut self, now: Nanos, is_write: bool, bytes: u64) -> Nanos {
        let mut shared_ps = 0;
        for bucket in &mut self.buckets {
            let time = bucket.time_ps(is_write, bytes);
            bucket.full_at_ps = bucket.full_at_ps.max(u128::from(now.0) * PS_PER_NS) + u128::from(time);
            if bucket.budget.is_shared() {
                shared_ps = shared_ps.max(time);
            }
        }
        Nanos(shared_ps / PS_PER_NS as u64)
    }
}

/// A request on its way, under a tag of the governor's: several requests may have the same tag from the caller.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    tag: u64,
    submitted_at: Nanos,
}

/// Requests of one direction that wait for tokens.
#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<Request>,
    /// What this direction took of the shared budgets ÷ its share of them, ns (start-time fair queueing).
    taken: f64,
}

/// A drive whose limits the program stays below.
///
/// ```
/// use flashwise_block::{BlockDevice, Budget, Governor, RateLimits};
/// # fn test(volume: impl BlockDevice) {
/// let limits = RateLimits::new(vec![Budget::read_iops(3000.0), Budget::write_iops(3000.0)]);
/// let volume = Governor::new(volume, &limits);
/// # }
/// ```
#[derive(Debug)]
pub struct Governor<D> {
    drive: D,
    buckets: TokenBuckets,
    /// Reads, writes.
    waiting: [Waiting; 2],
    shares: [f64; 2],
    in_flight: Vec<Option<InFlight>>,
    free: Vec<usize>,
    /// Requests that the drive refused when their turn had come.
    refused: VecDeque<Completion>,
    delayed: u64,
}

impl<D: BlockDevice> Governor<D> {
    /// A drive, and its limits.
    pub fn new(drive: D, limits: &RateLimits) -> Self {
        // Neither direction waits for ever.
        let reads = limits.read_share.clamp(0.01, 0.99);
        Self {
            drive,
            buckets: TokenBuckets::new(limits),
            waiting: Default::default(),
            shares: [reads, 1.0 - reads],
            in_flight: Vec::new(),
            free: Vec::new(),
            refused: VecDeque::new(),
            delayed: 0,
        }
    }

    /// Requests that had to wait for tokens so far.
    pub fn delayed(&self) -> u64 {
        self.delayed
    }

    /// The drive below.
    pub fn drive(&self) -> &D {
        &self.drive
    }

    /// The drive back; requests that still wait are dropped.
    pub fn into_inner(self) -> D {
        self.drive
    }

    fn waiting_requests(&self) -> usize {
        self.waiting.iter().map(|direction| direction.requests.len()).sum()
    }

    /// The direction whose turn is next, and when: of those whose own limits allow it by then, the one that took less
    /// of the shared budgets for its share.
    fn next(&self) -> Option<(usize, Nanos)> {
        let now = self.drive.now();
        let head = |direction: usize| {
            let request = self.waiting[direction].requests.front()?;
            let (is_write, bytes) = (direction == 1, request.length.0);
            let own = self.buckets.due_of(is_write, bytes, |budget| !budget.is_shared());
            Some((direction, own.max(now), self.buckets.due(is_write, bytes).max(now)))
        };
        match (head(0), head(1)) {
            (Some((_, read_own, read)), Some((_, write_own, write))) => {
                // A direction that a limit of its own keeps beyond the other one's turn does not block it.
                let is_read = match () {
                    () if read_own > write => false,
                    () if write_own > read => true,
                    () => self.waiting[0].taken <= self.waiting[1].taken,
                };
                Some(if is_read { (0, read) } else { (1, write) })
            }
            (Some((direction, _, due)), None) | (None, Some((direction, _, due))) => Some((direction, due)),
            (None, None) => None,
        }
    }

    /// Sends every request whose turn has come; a refusal of the drive's becomes its completion.
    fn release(&mut self) {
        while let Some((direction, due)) = self.next()
            && due <= self.drive.now()
            && let Some(request) = self.waiting[direction].requests.pop_front()
        {
            let (slot, operation, now) = (request.tag as usize, request.operation, self.drive.now());
            if let Err(error) = self.start(direction, request)
                && let Some(InFlight { tag, submitted_at }) = self.leave(slot)
            {
                let (started_at, completed_at, result) = (now, now, Err(error));
                let refused =
                    Completion { tag, operation, submitted_at, started_at, completed_at, result, buffer: None };
                self.refused.push_back(refused);
            }
        }
    }

    /// Sends a request that has its tokens.
    fn start(&mut self, direction: usize, request: Request) -> Result<(), BlockError> {
        let taken = self.buckets.take(self.drive.now(), direction == 1, request.length.0);
        self.waiting[direction].taken += taken.0 as f64 / self.shares[direction];
        self.drive.submit(request)
    }

    fn enter(&mut self, tag: u64) -> usize {
        let slot = self.free.pop().unwrap_or(self.in_flight.len());
        if slot == self.in_flight.len() {
            self.in_flight.push(None);
        }
        self.in_flight[slot] = Some(InFlight { tag, submitted_at: self.drive.now() });
        slot
    }

    fn leave(&mut self, slot: usize) -> Option<InFlight> {
        let request = self.in_flight.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(request)
    }

    /// The drive's completion under the caller's tag, from the caller's time of submission.
    fn returned(&mut self, completion: Completion) -> Result<Completion, BlockError> {
        let request = self.leave(completion.tag as usize);
        let request = request.ok_or(BlockError::Protocol("the drive completed a request that it did not have"))?;
        Ok(Completion { tag: request.tag, submitted_at: request.submitted_at, ..completion })
    }

    /// Waits for a completion, or until `deadline`; `None` where nothing is outstanding and no deadline is set.
    fn wait_for(&mut self, deadline: Option<Nanos>) -> Result<Option<Completion>, BlockError> {
        loop {
            self.release();
            if let Some(refused) = self.refused.pop_front() {
                return Ok(Some(refused));
            }
            let due = self.next().map(|(_, due)| due);
            let Some(until) = due.into_iter().chain(deadline).min() else {
                let completion = self.drive.wait()?;
                return completion.map(|completion| self.returned(completion)).transpose();
            };
            if let Some(completion) = self.drive.wait_until(until)? {
                return self.returned(completion).map(Some);
            }
            if deadline.is_some_and(|deadline| self.drive.now() >= deadline) {
                self.release();
                return Ok(self.refused.pop_front());
            }
        }
    }
}

impl<D: BlockDevice> BlockDevice for Governor<D> {
    crate::forward!(drive: info now writable extents);

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.drive.info().check(&request)?;
        self.release();
        let slot = self.enter(request.tag);
        let request = request.tagged(slot as u64);
        let direction = match request.operation {
            Operation::Read => 0,
            Operation::Write | Operation::WriteZeroes => 1,
            // No limit is known that counts them, and a flush is for writes that have completed.
            Operation::Flush | Operation::Trim => {
                return self.drive.submit(request).inspect_err(|_| {
                    self.leave(slot);
                });
            }
        };
        if self.waiting[direction].requests.is_empty() {
            // A direction that was idle has not saved anything.
            let other = self.waiting[1 - direction].taken;
            self.waiting[direction].taken = self.waiting[direction].taken.max(other);
        }
        self.waiting[direction].requests.push_back(request);
        let is_alone = self.waiting[direction].requests.len() == 1;
        let is_due = self.next().is_some_and(|(next, due)| next == direction && due <= self.drive.now());
        if is_alone
            && is_due
            && let Some(request) = self.waiting[direction].requests.pop_front()
        {
            return self.start(direction, request).inspect_err(|_| {
                self.leave(slot);
            });
        }
        self.delayed += 1;
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        self.wait_for(None)
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        self.release();
        if let Some(refused) = self.refused.pop_front() {
            return Ok(Some(refused));
        }
        let completion = self.drive.poll()?;
        completion.map(|completion| self.returned(completion)).transpose()
    }

    fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        self.wait_for(Some(deadline))
    }

    fn outstanding(&self) -> usize {
        self.drive.outstanding() + self.waiting_requests() + self.refused.len()
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        let end = Nanos(self.now().0.saturating_add(duration.0));
        loop {
            self.release();
            let now = self.now();
            if now >= end {
                return Ok(());
            }
            let until = self.next().map_or(end, |(_, due)| due.min(end));
            self.drive.pause(until.since(now))?;
        }
    }

    fn counters(&self) -> DeviceCounters {
        self.drive.counters()
    }
}

#[cfg(test)]
mod tests;
