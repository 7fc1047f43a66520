//! A drive with injected faults, for tests of everything that must survive a failing drive.
//!
//! ```text
//!   submit ─▶ the n-th? ─▶ fails · hangs · is late · the drive shrinks · the drive is gone
//!                     └──▶ the drive itself
//! ```
//!
//! Requests are counted from 1 in the order of submission, so a sweep over n reaches every place where a caller can be
//! hit, and the same n reaches the same place again. Only the delay of a late request depends on a clock, the device's
//! own.

use std::collections::VecDeque;

use crate::{BlockDevice, BlockError, ByteSize, Completion, Nanos, Operation, Request};

/// The injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request completes with this `errno`, and the drive has not done it.
    Fail(i32),
    /// The request completes this much later than on the drive.
    Delay(Nanos),
    /// The request never completes. When nothing else is left to wait for, the drive counts as lost, after
    /// [`crate::FileDevice::TIME_LIMIT`] on its clock.
    Hang,
    /// From this request on, the drive ends here. [`DeviceInfo::capacity`] still reports the old size, as a real drive
    /// does.
    Shrink(ByteSize),
    /// From this request on, the drive is gone, with all requests in flight.
    Disconnect,
}

/// When it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// The `nth` request of this kind, or of any kind if `None`.
    operation: Option<Operation>,
    nth: u64,
    fault: Fault,
}

/// A request that the drive has.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    ours: u64,
    theirs: u64,
    delay: Nanos,
}

/// A drive with faults in it.
///
/// ```
/// use flashwise_block::{BlockDevice, ByteSize, Fault, FaultyDevice, Operation, Request, execute};
/// # fn test(drive: impl BlockDevice) {
/// let mut drive = FaultyDevice::new(drive).with_nth_of(Operation::Read, 2, Fault::Fail(5));
/// assert!(execute(&mut drive, Request::read(ByteSize(0), ByteSize(4096))).is_ok());
/// assert!(execute(&mut drive, Request::read(ByteSize(0), ByteSize(4096))).is_err());
/// # }
/// ```
#[derive(Debug)]
pub struct FaultyDevice<D> {
    drive: D,
    plans: Vec<Plan>,
    /// Requests so far: of any kind, and of each.
    submitted: u64,
    submitted_of: [u64; 5],
    /// Requests on the drive, under tags of this device: several requests may have the same tag from the caller.
    in_flight: Vec<InFlight>,
    /// Completed, to be given back at this time.
    held: VecDeque<Completion>,
    hanging: usize,
    capacity: ByteSize,
    lost: Option<BlockError>,
}

impl<D: BlockDevice> FaultyDevice<D> {
    /// A drive without faults so far.
    pub fn new(drive: D) -> Self {
        let capacity = drive.info().capacity;
        Self {
            drive,
            plans: Vec::new(),
            submitted: 0,
            submitted_of: [0; 5],
            in_flight: Vec::new(),
            held: VecDeque::new(),
            hanging: 0,
            capacity,
            lost: None,
        }
    }

    /// The `nth` request, counted from 1, meets `fault`.
    pub fn with_nth(mut self, nth: u64, fault: Fault) -> Self {
        self.plans.push(Plan { operation: None, nth, fault });
        self
    }

    /// The `nth` request of this kind, counted from 1, meets `fault`.
    pub fn with_nth_of(mut self, operation: Operation, nth: u64, fault: Fault) -> Self {
        self.plans.push(Plan { operation: Some(operation), nth, fault });
        self
    }

    /// Requests submitted so far; a sweep goes up to this.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// The drive below.
    pub fn into_inner(self) -> D {
        self.drive
    }

    /// Counts a request and returns the fault that it meets.
    fn count(&mut self, operation: Operation) -> Option<Fault> {
        let of_kind = &mut self.submitted_of[operation as usize];
        *of_kind += 1;
        self.submitted += 1;
        let (any, of_kind) = (self.submitted, *of_kind);
        let is_met = |plan: &&Plan| match plan.operation {
            None => plan.nth == any,
            Some(kind) => kind == operation && plan.nth == of_kind,
        };
        self.plans.iter().find(is_met).map(|plan| plan.fault)
    }

    /// A completion of the drive's, or one made up, that is given back when its time has come.
    fn hold(&mut self, completion: Completion) {
        let behind = self.held.iter().position(|held| held.completed_at > completion.completed_at);
        self.held.insert(behind.unwrap_or(self.held.len()), completion);
    }

    fn fail(&mut self, request: Request, errno: i32, why: &str) {
        let now = self.drive.now();
        let result = Err(failure(&request, errno, why));
        let Request { tag, operation, buffer, .. } = request;
        self.hold(Completion { tag, operation, submitted_at: now, started_at: now, completed_at: now, result, buffer });
    }

    /// Takes one completion from the drive.
    fn collect(&mut self) -> Result<(), BlockError> {
        if let Some(completion) = self.drive.wait()? {
            self.take(completion);
        }
        Ok(())
    }

    /// Holds a completion of the drive's, delayed if its fault says so.
    fn take(&mut self, mut completion: Completion) {
        if let Some(index) = self.in_flight.iter().position(|flight| flight.ours == completion.tag) {
            let InFlight { theirs, delay, .. } = self.in_flight.swap_remove(index);
            completion.tag = theirs;
            completion.completed_at = Nanos(completion.completed_at.0.saturating_add(delay.0));
        }
        self.hold(completion);
    }

    /// Nothing is left but requests that never come back.
    fn give_up(&mut self) -> BlockError {
        let limit = crate::FileDevice::TIME_LIMIT;
        let error = match self.drive.pause(limit) {
            Ok(()) => BlockError::TimedOut { device: self.drive.info().name.clone(), limit },
            Err(error) => error,
        };
        self.lost.insert(error).clone()
    }
}

fn failure(request: &Request, errno: i32, why: &str) -> BlockError {
    let Request { operation, offset, length, .. } = request;
    let context = format!("{operation:?} of {length} at byte {} of a faulty drive", offset.0);
    BlockError::Os { context, message: why.to_owned(), errno }
}

impl<D: BlockDevice> BlockDevice for FaultyDevice<D> {
    crate::forward!(drive: info now counters writable extents);

    fn submit(&mut self, mut request: Request) -> Result<(), BlockError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        self.drive.info().check(&request)?;
        let mut delay = Nanos(0);
        match self.count(request.operation) {
            Some(Fault::Fail(errno)) => {
                self.fail(request, errno, "injected fault");
                return Ok(());
            }
            Some(Fault::Delay(by)) => delay = by,
            Some(Fault::Hang) => {
                self.hanging += 1;
                return Ok(());
            }
            Some(Fault::Shrink(capacity)) => self.capacity = capacity,
            Some(Fault::Disconnect) => {
                let gone = failure(&request, libc::ENODEV, "the drive is gone");
                return Err(self.lost.insert(gone).clone());
            }
            None => {}
        }
        if request.operation != Operation::Flush && request.end().is_none_or(|end| end > self.capacity) {
            let why = format!("the drive has shrunk to {}; the bytes beyond that are gone", self.capacity);
            self.fail(request, libc::EIO, &why);
            return Ok(());
        }
        let theirs = std::mem::replace(&mut request.tag, self.submitted);
        self.drive.submit(request)?;
        self.in_flight.push(InFlight { ours: self.submitted, theirs, delay });
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        loop {
            let due = self.held.front().map(|completion| completion.completed_at);
            match due {
                Some(due) if due <= self.drive.now() => return Ok(self.held.pop_front()),
                _ if self.drive.outstanding() > 0 => {
                    self.collect()?;
                }
                Some(due) => self.drive.pause(due.since(self.drive.now()))?,
                None if self.hanging > 0 => return Err(self.give_up()),
                None => return Ok(None),
            }
        }
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        while let Some(completion) = self.drive.poll()? {
            self.take(completion);
        }
        let is_due = self.held.front().is_some_and(|completion| completion.completed_at <= self.drive.now());
        Ok(if is_due { self.held.pop_front() } else { None })
    }

    fn outstanding(&self) -> usize {
        self.drive.outstanding() + self.held.len() + self.hanging
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        match &self.lost {
            Some(lost) => Err(lost.clone()),
            None => self.drive.pause(duration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, DeviceCounters, DeviceInfo, POLL_INTERVAL, execute};

    /// A drive that takes 10 us for each request, one after the other.
    struct Simple {
        info: DeviceInfo,
        now: Nanos,
        free_at: Nanos,
        queue: VecDeque<Completion>,
    }

    const SERVICE: Nanos = Nanos::micros(10);

    impl BlockDevice for Simple {
        fn info(&self) -> &DeviceInfo {
            &self.info
        }
        fn now(&self) -> Nanos {
            self.now
        }
        fn submit(&mut self, request: Request) -> Result<(), BlockError> {
            self.free_at = Nanos(self.free_at.0.max(self.now.0) + SERVICE.0);
            let Request { tag, operation, buffer, .. } = request;
            let (submitted_at, completed_at) = (self.now, self.free_at);
            let started_at = submitted_at;
            let completion =
                Completion { tag, operation, submitted_at, started_at, completed_at, result: Ok(()), buffer };
            self.queue.push_back(completion);
            Ok(())
        }
        fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
            let next = self.queue.pop_front();
            if let Some(next) = &next {
                self.now = self.now.max(next.completed_at);
            }
            Ok(next)
        }
        fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
            let is_done = self.queue.front().is_some_and(|next| next.completed_at <= self.now);
            Ok(if is_done { self.queue.pop_front() } else { None })
        }
        fn outstanding(&self) -> usize {
            self.queue.len()
        }
        fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
            self.now = Nanos(self.now.0 + duration.0);
            Ok(())
        }
        fn counters(&self) -> DeviceCounters {
            DeviceCounters::default()
        }
    }

    fn drive() -> FaultyDevice<Simple> {
        let info = DeviceInfo {
            name: "simple".into(),
            capacity: ByteSize::mib(1),
            logical_block: ByteSize(512),
            max_transfer: ByteSize::mib(1),
            queue_depth: 8,
            clock: Clock::Virtual,
            atomic_write: None,
        };
        FaultyDevice::new(Simple { info, now: Nanos(0), free_at: Nanos(0), queue: VecDeque::new() })
    }

    fn read(tag: u64) -> Request {
        Request::read(ByteSize(4096 * tag), ByteSize(4096)).tagged(tag)
    }

    /// Tags, times and results of `count` reads in flight at once, in the order of completion.
    fn completed(drive: &mut FaultyDevice<Simple>, count: u64) -> Vec<(u64, u64, bool)> {
        (1..=count).for_each(|tag| drive.submit(read(tag)).unwrap());
        assert_eq!(drive.outstanding() as u64, count);
        let next = || drive.wait().unwrap();
        std::iter::from_fn(next).map(|done| (done.tag, done.completed_at.0, done.result.is_ok())).collect()
    }

    #[test]
    fn a_drive_without_faults_is_the_drive_itself() {
        assert_eq!(completed(&mut drive(), 3), [(1, 10_000, true), (2, 20_000, true), (3, 30_000, true)]);
    }

    #[test]
    fn the_chosen_request_fails_and_no_other() {
        for n in 1..=4 {
            let mut drive = drive().with_nth(n, Fault::Fail(5));
            let failed: Vec<_> =
                completed(&mut drive, 4).into_iter().filter(|done| !done.2).map(|done| done.0).collect();
            assert_eq!(failed, [n]);
        }
    }

    #[test]
    fn requests_of_one_kind_are_counted_apart() {
        let mut drive = drive().with_nth_of(Operation::Flush, 2, Fault::Fail(libc::EIO));
        let mut works = |request: Request| execute(&mut drive, request).is_ok();
        assert!(works(Request::flush()) && works(read(1)) && works(read(2)));
        assert!(!works(Request::flush()));
        assert!(works(Request::flush()));
    }

    #[test]
    fn a_late_request_is_overtaken_and_is_as_late_as_told() {
        let mut drive = drive().with_nth(1, Fault::Delay(Nanos::micros(15)));
        assert_eq!(completed(&mut drive, 3), [(2, 20_000, true), (1, 25_000, true), (3, 30_000, true)]);
        let mut alone = self::drive().with_nth(1, Fault::Delay(Nanos::millis(1)));
        assert_eq!(execute(&mut alone, read(1)).unwrap().latency(), Nanos(1_010_000));
        assert_eq!(alone.now(), Nanos(1_010_000));
    }

    #[test]
    fn what_has_completed_is_polled_and_the_clock_stands_still() {
        let mut drive = drive().with_nth(1, Fault::Delay(Nanos::micros(15))).with_nth(3, Fault::Fail(5));
        (1..=4).for_each(|tag| drive.submit(read(tag)).unwrap());
        let polled = |drive: &mut FaultyDevice<Simple>| -> Vec<u64> {
            std::iter::from_fn(|| drive.poll().unwrap()).map(|done| done.tag).collect()
        };
        assert_eq!(polled(&mut drive), [3], "what fails does so at once");
        drive.pause(Nanos::micros(22)).unwrap();
        assert_eq!(polled(&mut drive), [2]);
        drive.pause(Nanos::micros(3)).unwrap();
        assert_eq!(polled(&mut drive), [1]);
        assert_eq!((drive.now(), drive.outstanding()), (Nanos::micros(25), 1));
        let mut gone = self::drive().with_nth(1, Fault::Disconnect);
        assert!(gone.submit(read(1)).is_err() && gone.poll().is_err());
    }

    #[test]
    fn a_deadline_ends_a_wait_and_a_completion_before_it_too() {
        let mut drive = drive();
        assert!(drive.wait_until(Nanos::micros(7)).unwrap().is_none());
        drive.submit(read(1)).unwrap();
        assert!(drive.wait_until(Nanos::micros(12)).unwrap().is_none());
        let done = drive.wait_until(Nanos::millis(1)).unwrap().map(|done| (done.tag, done.completed_at));
        assert_eq!(done, Some((1, Nanos::micros(17))));
        assert!(
            drive.now() < Nanos::micros(17) + POLL_INTERVAL,
            "it waits no longer than one interval: {}",
            drive.now()
        );
    }

    #[test]
    fn a_request_that_hangs_ends_the_drive_when_all_others_are_back() {
        let mut drive = drive().with_nth(2, Fault::Hang);
        (1..=3).for_each(|tag| drive.submit(read(tag)).unwrap());
        assert_eq!((drive.wait().unwrap().unwrap().tag, drive.wait().unwrap().unwrap().tag), (1, 3));
        let lost = drive.wait().unwrap_err();
        assert!(matches!(lost, BlockError::TimedOut { .. }), "{lost:?}");
        assert!(drive.now() >= crate::FileDevice::TIME_LIMIT);
        assert_eq!(drive.submit(read(1)).unwrap_err(), lost);
    }

    #[test]
    fn a_drive_that_shrinks_fails_behind_its_new_end_and_works_before_it() {
        let mut drive = drive().with_nth(2, Fault::Shrink(ByteSize(8192)));
        execute(&mut drive, read(100)).unwrap();
        let error = execute(&mut drive, read(100)).unwrap_err().to_string();
        assert!(error.contains("shrunk to 8 KiB"), "{error}");
        execute(&mut drive, read(1)).unwrap();
        assert_eq!(drive.info().capacity, ByteSize::mib(1));
        execute(&mut drive, Request::flush()).unwrap();
    }

    #[test]
    fn a_drive_that_is_gone_answers_nothing_any_more() {
        let mut drive = drive().with_nth(2, Fault::Disconnect);
        drive.submit(read(1)).unwrap();
        let gone = drive.submit(read(2)).unwrap_err();
        assert!(matches!(gone, BlockError::Os { errno: libc::ENODEV, .. }), "{gone:?}");
        assert_eq!(drive.wait().unwrap_err(), gone);
        assert_eq!(drive.pause(Nanos(1)).unwrap_err(), gone);
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_not_counted() {
        let mut drive = drive().with_nth(1, Fault::Fail(5));
        assert!(matches!(drive.submit(read(1000)), Err(BlockError::InvalidRequest { .. })));
        assert_eq!(drive.submitted(), 0);
        assert!(execute(&mut drive, read(1)).is_err());
    }
}
