//! A drive of fixed latencies with a volatile cache, and helpers.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};

/// Sectors of 512 bytes by their number.
type Sectors = BTreeMap<u64, [u8; 512]>;

/// What is on a drive, and survives it.
#[derive(Debug, Default)]
pub(crate) struct Medium {
    durable: Sectors,
    /// Completed, not flushed, in the order of completion.
    volatile: Vec<(u64, [u8; 512])>,
}

impl Medium {
    fn read(&self, sector: u64) -> [u8; 512] {
        let cached = self.volatile.iter().rev().find(|(at, _)| *at == sector).map(|(_, bytes)| *bytes);
        cached.or_else(|| self.durable.get(&sector).copied()).unwrap_or([0; 512])
    }

    /// The power goes: of what was not flushed, sectors survive as `keep` says.
    pub(crate) fn cut(&mut self, mut keep: impl FnMut() -> bool) {
        for (sector, bytes) in std::mem::take(&mut self.volatile) {
            if keep() {
                self.durable.insert(sector, bytes);
            }
        }
    }
}

/// A request that reached the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) operation: Operation,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) fua: bool,
}

#[derive(Debug)]
struct InFlight {
    request: Request,
    submitted_at: Nanos,
    done_at: Nanos,
}

/// A drive that serves one request after another.
#[derive(Debug)]
pub(crate) struct TestDrive {
    info: DeviceInfo,
    now: Nanos,
    free_at: Nanos,
    access: Nanos,
    flush: Nanos,
    queue: VecDeque<InFlight>,
    counters: DeviceCounters,
    pub(crate) medium: Rc<RefCell<Medium>>,
    pub(crate) seen: Rc<RefCell<Vec<Seen>>>,
    /// Requests after so many are never served: the power has gone.
    pub(crate) power_for: u64,
    served: u64,
}

impl TestDrive {
    pub(crate) fn new(capacity: ByteSize) -> Self {
        Self {
            info: DeviceInfo {
                name: "test drive".into(),
                capacity,
                logical_block: ByteSize(512),
                max_transfer: ByteSize::mib(1),
                queue_depth: 128,
                clock: Clock::Virtual,
                atomic_write: None,
            },
            now: Nanos(0),
            free_at: Nanos(0),
            access: Nanos::micros(20),
            flush: Nanos::micros(100),
            queue: VecDeque::new(),
            counters: DeviceCounters::default(),
            medium: Rc::default(),
            seen: Rc::default(),
            power_for: u64::MAX,
            served: 0,
        }
    }

    pub(crate) fn with_latencies(self, access: Nanos, flush: Nanos) -> Self {
        Self { access, flush, ..self }
    }

    /// Whether a request has met a drive without power.
    pub(crate) fn is_off(&self) -> bool {
        self.served > self.power_for
    }

    /// The same medium in a drive that comes up.
    pub(crate) fn again(&self) -> Self {
        let new = Self::new(self.info.capacity);
        Self { medium: Rc::clone(&self.medium), ..new }
    }

    fn serve(&mut self, request: &mut Request) {
        let Request { operation, offset, length, fua, .. } = *request;
        self.counters.count(operation, length);
        let mut medium = self.medium.borrow_mut();
        let (first, count) = (offset.0 / 512, length.0 / 512);
        match operation {
            Operation::Flush => {
                for (sector, bytes) in std::mem::take(&mut medium.volatile) {
                    medium.durable.insert(sector, bytes);
                }
            }
            Operation::Read => {
                if let Some(buffer) = &mut request.buffer {
                    for number in 0..count {
                        let at = number as usize * 512;
                        buffer[at..at + 512].copy_from_slice(&medium.read(first + number));
                    }
                }
            }
            Operation::Write => {
                if let Some(buffer) = &request.buffer {
                    for number in 0..count {
                        let at = number as usize * 512;
                        let bytes: [u8; 512] = buffer[at..at + 512].try_into().unwrap();
                        if fua {
                            medium.volatile.retain(|(sector, _)| *sector != first + number);
                            medium.durable.insert(first + number, bytes);
                        } else {
                            medium.volatile.push((first + number, bytes));
                        }
                    }
                }
            }
            Operation::Trim | Operation::WriteZeroes => {
                let end = first + count;
                medium.volatile.retain(|(sector, _)| !(first..end).contains(sector));
                let gone: Vec<u64> = medium.durable.range(first..end).map(|(&sector, _)| sector).collect();
                gone.iter().for_each(|sector| {
                    medium.durable.remove(sector);
                });
            }
        }
    }

    fn finish(&mut self) -> Completion {
        let InFlight { mut request, submitted_at, done_at } = self.queue.pop_front().unwrap();
        self.served += 1;
        let has_power = self.served <= self.power_for;
        if has_power {
            self.serve(&mut request);
        }
        let result = if has_power {
            Ok(())
        } else {
            Err(BlockError::Os { context: "test drive".into(), message: "the power is off".into(), errno: 5 })
        };
        Completion {
            tag: request.tag,
            operation: request.operation,
            submitted_at,
            started_at: submitted_at,
            completed_at: done_at,
            result,
            buffer: request.buffer,
        }
    }
}

impl BlockDevice for TestDrive {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        assert!(self.queue.len() < self.info.queue_depth as usize, "more requests than the drive has tags");
        let Request { operation, offset, length, fua, .. } = request;
        let overlaps = self.queue.iter().any(|other| {
            let writes = other.request.operation.writes() || operation.writes();
            let end = |request: &Request| request.offset.0 + request.length.0;
            writes && other.request.offset < offset + length && offset.0 < end(&other.request)
        });
        assert!(!overlaps, "two requests to one place are under way: {operation:?} of {length} at {}", offset.0);
        self.seen.borrow_mut().push(Seen { operation, offset: offset.0, bytes: length.0, fua });
        let latency = if operation == Operation::Flush { self.flush } else { self.access };
        let done_at = self.free_at.max(self.now) + latency;
        self.free_at = done_at;
        self.queue.push_back(InFlight { request, submitted_at: self.now, done_at });
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        let Some(first) = self.queue.front() else { return Ok(None) };
        self.now = self.now.max(first.done_at);
        Ok(Some(self.finish()))
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        let is_done = self.queue.front().is_some_and(|first| first.done_at <= self.now);
        Ok(is_done.then(|| self.finish()))
    }

    fn outstanding(&self) -> usize {
        self.queue.len()
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        self.now += duration;
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }
}

/// Random numbers that are the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 >> 33) ^ self.0;
        ((u128::from(mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(end)) >> 64) as u64
    }
}
