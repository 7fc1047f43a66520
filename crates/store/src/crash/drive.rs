//! A drive in memory that records what changes it, and whose power can be cut at any point of the record.
//!
//! What a drive promises: data is durable after a completed flush. Of what came after the last flush, any part may be
//! there after a cut, torn at the drive's atomic unit; two writes of one block keep their order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};
use rustc_hash::FxHashMap;

const BLOCK: usize = 4096;

/// splitmix64 (Sebastiano Vigna), as a generator.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// The bytes of a drive. A block that was never written is not stored, and reads as rubbish or zeros.
#[derive(Clone, Default)]
pub(crate) struct Bytes {
    blocks: FxHashMap<u64, Arc<[u8; BLOCK]>>,
}

impl Bytes {
    fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let at = offset + done as u64;
            let within = (at % BLOCK as u64) as usize;
            let range = done..length.min(done + BLOCK - within);
            done = range.end;
            (!range.is_empty()).then_some((at / BLOCK as u64, within, range))
        })
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        for (block, within, range) in Self::pieces(offset, into.len()) {
            let piece = &mut into[range];
            match self.blocks.get(&block) {
                Some(bytes) => piece.copy_from_slice(&bytes[within..within + piece.len()]),
                None => piece.fill(0),
            }
        }
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (block, within, range) in Self::pieces(offset, bytes.len()) {
            let stored = self.blocks.entry(block).or_insert_with(|| Arc::new([0; BLOCK]));
            Arc::make_mut(stored)[within..within + range.len()].copy_from_slice(&bytes[range]);
        }
    }

    fn clear(&mut self, offset: u64, length: usize) {
        for (block, within, range) in Self::pieces(offset, length) {
            if range.len() == BLOCK {
                self.blocks.remove(&block);
            } else if let Some(stored) = self.blocks.get_mut(&block) {
                Arc::make_mut(stored)[within..within + range.len()].fill(0);
            }
        }
    }

    /// Blocks that are stored, in order.
    pub(crate) fn stored(&self) -> Vec<u64> {
        let mut stored: Vec<u64> = self.blocks.keys().copied().collect();
        stored.sort_unstable();
        stored
    }
}

/// A request that changes what is on the drive, or what is durable.
#[derive(Clone)]
pub(crate) enum Event {
    Write(u64, Arc<[u8]>),
    Trim(u64, usize),
    Flush,
}

/// What a test sees and changes while the store has the drive.
#[derive(Clone, Default)]
pub(crate) struct Control {
    pub bytes: Bytes,
    /// What came since the drive was made, oldest first.
    pub events: Vec<Event>,
    /// The content when it was made.
    pub start: Bytes,
    /// Requests of any kind; the one with this number, from 1, fails, and all after it if `fails_on`.
    pub requests: u64,
    pub fail_at: Option<u64>,
    pub fails_on: bool,
    /// Blocks that may be written for the first time, if the drive is short of space.
    pub space_blocks: Option<usize>,
    /// Requests of these kinds fail with this error number.
    pub refused: Option<(Operation, i32)>,
    /// How long a flush takes, by the clock of this machine.
    pub flush_time: Option<std::time::Duration>,
}

impl Control {
    fn fails(&mut self) -> bool {
        self.requests += 1;
        self.fail_at.is_some_and(|at| self.requests == at || self.fails_on && self.requests > at)
    }

    fn refuses(&self, operation: Operation) -> Option<i32> {
        self.refused.filter(|refused| refused.0 == operation).map(|refused| refused.1)
    }

    fn has_space(&self, offset: u64, length: usize) -> bool {
        let Some(space) = self.space_blocks else { return true };
        let new = Bytes::pieces(offset, length).filter(|piece| !self.bytes.blocks.contains_key(&piece.0)).count();
        self.bytes.blocks.len() + new <= space
    }
}

/// The drive. Requests are done when they are submitted, and complete in reverse.
pub(crate) struct Drive {
    info: DeviceInfo,
    now: Nanos,
    queue: VecDeque<Completion>,
    counters: DeviceCounters,
    control: Arc<Mutex<Control>>,
}

pub(crate) type SharedControl = Arc<Mutex<Control>>;

pub(crate) fn locked(control: &SharedControl) -> std::sync::MutexGuard<'_, Control> {
    control.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drive {
    /// A drive with this content.
    pub(crate) fn new(capacity: ByteSize, bytes: Bytes) -> (Box<Self>, SharedControl) {
        Self::again(capacity, Control { start: bytes.clone(), bytes, ..Control::default() })
    }

    /// The drive of a process that was killed: what it had in flight or in its cache is still there.
    pub(crate) fn again(capacity: ByteSize, control: Control) -> (Box<Self>, SharedControl) {
        let control = Arc::new(Mutex::new(control));
        let info = DeviceInfo {
            name: "drive".into(),
            capacity,
            logical_block: ByteSize(512),
            max_transfer: ByteSize::kib(128),
            queue_depth: 32,
            clock: Clock::Virtual,
            atomic_write: None,
        };
        let (queue, counters) = (VecDeque::new(), DeviceCounters::default());
        (Box::new(Self { info, now: Nanos(0), queue, counters, control: Arc::clone(&control) }), control)
    }
}

impl BlockDevice for Drive {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, mut request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        let flush_time = locked(&self.control).flush_time;
        if let Some(time) = flush_time.filter(|_| request.operation == Operation::Flush) {
            std::thread::sleep(time);
        }
        let mut control = locked(&self.control);
        let (offset, length) = (request.offset.0, request.length.0 as usize);
        let errno = control.fails().then_some(5).or_else(|| control.refuses(request.operation));
        let result = match request.operation {
            _ if errno.is_some() => {
                let (context, message) = ("drive".to_owned(), "injected fault".to_owned());
                Err(BlockError::Os { context, message, errno: errno.unwrap_or_default() })
            }
            Operation::Write if !control.has_space(offset, length) => Err(BlockError::NoSpace),
            _ => Ok(()),
        };
        if result.is_ok() {
            match (request.operation, request.buffer.as_mut()) {
                (Operation::Read, Some(buffer)) => control.bytes.read(offset, buffer),
                (Operation::Write, Some(buffer)) => {
                    control.bytes.write(offset, buffer);
                    control.events.push(Event::Write(offset, (&**buffer).into()));
                }
                (Operation::Trim, _) => {
                    control.bytes.clear(offset, length);
                    control.events.push(Event::Trim(offset, length));
                }
                (Operation::Flush, _) => control.events.push(Event::Flush),
                other => panic!("the store does not do this: {other:?}"),
            }
            self.counters.count(request.operation, request.length);
        }
        let (tag, operation, buffer, at) = (request.tag, request.operation, request.buffer, self.now);
        let completion =
            Completion { tag, operation, submitted_at: at, started_at: at, completed_at: at, result, buffer };
        self.queue.push_back(completion);
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        Ok(self.queue.pop_back())
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

/// A record of events, and the content that is durable at a moving point of it.
pub(crate) struct Record {
    events: Vec<Event>,
    durable: Bytes,
    /// The event behind the last flush that is in `durable`.
    flushed: usize,
}

/// How much of what was not flushed is there after a cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    Nothing,
    Everything,
    /// Each unit by the toss of a coin.
    Units(u64),
    /// Whole requests by the toss of a coin.
    Requests,
    /// All but one unit.
    AllButOne(u64),
}

impl Kept {
    pub(crate) fn choose(random: &mut Random) -> Self {
        let unit = if random.below(2) == 0 { 512 } else { 4096 };
        match random.below(8) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 => Self::Requests,
            3 | 4 => Self::AllButOne(unit),
            _ => Self::Units(unit),
        }
    }
}

impl Record {
    pub(crate) fn new(control: &SharedControl) -> Self {
        let control = locked(control);
        Self { events: control.events.clone(), durable: control.start.clone(), flushed: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// What is on the drive after a cut at which `cut` events were done; cuts come in ascending order.
    pub(crate) fn image(&mut self, cut: usize, kept: Kept, random: &mut Random) -> Bytes {
        let last_flush = self.events[self.flushed..cut].iter().rposition(|event| matches!(event, Event::Flush));
        if let Some(behind) = last_flush {
            let flushed = self.flushed + behind + 1;
            for event in &self.events[self.flushed..flushed] {
                apply(&mut self.durable, event, &mut |_| true, 4096);
            }
            self.flushed = flushed;
        }
        let mut image = self.durable.clone();
        let volatile = &self.events[self.flushed..cut];
        let total: u64 = volatile.iter().map(|event| units(event, 512)).sum();
        let lost = random.below(total);
        let mut unit = 0;
        for event in volatile {
            let is_kept = random.below(2) == 0;
            let mut keep = |n: u64| match kept {
                Kept::Nothing => false,
                Kept::Everything => true,
                Kept::Units(_) => random.below(2) == 0,
                Kept::Requests => is_kept,
                Kept::AllButOne(size) => !(unit + n * size / 512..unit + (n + 1) * size / 512).contains(&lost),
            };
            let size = match kept {
                Kept::Units(size) | Kept::AllButOne(size) => size,
                _ => 4096,
            };
            apply(&mut image, event, &mut keep, size as usize);
            unit += units(event, 512);
        }
        image
    }
}

fn units(event: &Event, unit: usize) -> u64 {
    match event {
        Event::Write(_, bytes) => bytes.len().div_ceil(unit) as u64,
        Event::Trim(_, length) => length.div_ceil(unit) as u64,
        Event::Flush => 0,
    }
}

/// Applies the units of an event that are kept.
fn apply(to: &mut Bytes, event: &Event, keep: &mut dyn FnMut(u64) -> bool, unit: usize) {
    match event {
        Event::Write(offset, bytes) => {
            for (n, piece) in bytes.chunks(unit).enumerate() {
                if keep(n as u64) {
                    to.write(offset + (n * unit) as u64, piece);
                }
            }
        }
        Event::Trim(offset, length) => {
            for n in 0..length.div_ceil(unit) {
                if keep(n as u64) {
                    to.clear(offset + (n * unit) as u64, unit.min(length - n * unit));
                }
            }
        }
        Event::Flush => {}
    }
}
