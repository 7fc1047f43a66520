//! Measured requests to a device, with a count of what they wrote, the budget they must keep, and a record of each
//! sample for whoever wants it.

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, IoBuffer, Nanos, Operation, Progress,
    Request, execute,
};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::place::Sections;
pub(crate) use crate::place::{Origin, SECTION};
use crate::{Effort, LearnError, LearnOptions, QuickLimits};

/// What Linux answers of a drive or file system that does not know a request.
const EOPNOTSUPP: i32 = 95;

/// Time without requests after which an SLC cache is taken to be empty, and what was written to be where it stays; in
/// virtual time, which costs nothing, and on a real drive. How long drives wait before they empty theirs, and how long
/// that takes them, is in no data sheet: this is an assumption. Of a drive that takes longer, the cache is taken to be
/// smaller, or not there, and reads are of what still is in it.
const AT_REST: (Nanos, Nanos) = (Nanos::secs(30), Nanos::secs(5));

/// Where the data of the region came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    /// Something else.
    Scattered,
    /// One pass of large writes in order.
    InOrder,
}

/// One measurement, as it was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct RawSample {
    /// The probe that took it.
    pub probe: &'static str,
    /// What was varied.
    pub x: f64,
    /// What was measured.
    pub y: f64,
}

/// A device with the region that is probed.
pub(crate) struct Prober<'a> {
    device: &'a mut dyn BlockDevice,
    region: ByteSize,
    sections: Sections,
    state: Region,
    max_write: Option<ByteSize>,
    quick_limits: QuickLimits,
    deadline: Option<Nanos>,
    written: ByteSize,
    read: ByteSize,
    raw: Option<Vec<RawSample>>,
    /// Whether anything may be written; the data that is there is then probed as it lies.
    pub(crate) may_write: bool,
    /// Whether the whole drive may be written over and over.
    pub(crate) may_wear: bool,
    pub(crate) random: Pcg64Mcg,
    pub(crate) effort: Effort,
    /// What the drive had programmed at first, where it tells.
    programmed_before: Option<u64>,
}

impl<'a> Prober<'a> {
    pub(crate) fn new(device: &'a mut dyn BlockDevice, region: ByteSize, options: &LearnOptions) -> Self {
        let random = Pcg64Mcg::seed_from_u64(options.seed);
        let may_write = options.may_write && device.writable() >= region;
        let deadline = options.time_budget.map(|budget| Nanos(device.now().0.saturating_add(budget.0)));
        let sections = Sections::of(device.extents(), region);
        let programmed_before = device.counters().flash.map(|flash| flash.bytes_programmed.bytes());
        Self {
            programmed_before,
            device,
            region,
            sections,
            state: Region::Scattered,
            max_write: options.max_write,
            quick_limits: options.quick_limits,
            deadline,
            written: ByteSize(0),
            read: ByteSize(0),
            raw: options.keep_raw.then(Vec::new),
            may_write,
            may_wear: false,
            random,
            effort: options.effort,
        }
    }

    pub(crate) fn logical_block(&self) -> ByteSize {
        self.device.info().logical_block
    }

    /// Bytes of the whole device.
    pub(crate) fn capacity(&self) -> ByteSize {
        self.device.info().capacity
    }

    /// Bytes from the start on that the probes of a fresh drive use.
    pub(crate) fn region(&self) -> ByteSize {
        self.region
    }

    /// The largest power of two that the device takes at once, at most one section.
    pub(crate) fn longest(&self) -> ByteSize {
        let most = self.device.info().max_transfer.min(SECTION).bytes().max(1);
        ByteSize(1 << most.ilog2())
    }

    /// Requests that the device takes at once.
    pub(crate) fn queue_depth(&self) -> u32 {
        self.device.info().queue_depth
    }

    pub(crate) fn written(&self) -> ByteSize {
        self.written
    }

    pub(crate) fn read_total(&self) -> ByteSize {
        self.read
    }

    /// Whose time it is.
    pub(crate) fn clock(&self) -> Clock {
        self.device.info().clock
    }

    pub(crate) fn now(&self) -> Nanos {
        self.device.now()
    }

    pub(crate) fn counters(&self) -> DeviceCounters {
        self.device.counters()
    }

    /// Whether the drive counts erases and has none yet.
    pub(crate) fn never_erased(&self) -> bool {
        self.device.counters().flash.is_some_and(|flash| flash.erases == 0)
    }

    /// Bytes programmed so far, where the drive tells.
    pub(crate) fn programmed(&self) -> Option<u64> {
        self.device.counters().flash.map(|flash| flash.bytes_programmed.bytes())
    }

    /// Bytes written from the first request on that are not programmed yet: negative where more was programmed than
    /// that.
    pub(crate) fn unprogrammed(&self) -> Option<i64> {
        let programmed = self.programmed()?.saturating_sub(self.programmed_before?);
        Some(self.written.bytes().cast_signed() - programmed.cast_signed())
    }

    /// Keeps one measurement for `--raw`.
    pub(crate) fn sample(&mut self, probe: &'static str, x: f64, y: f64) {
        if let Some(raw) = &mut self.raw {
            raw.push(RawSample { probe, x, y });
        }
    }

    /// The measurements kept since the last call.
    pub(crate) fn take_raw(&mut self) -> Vec<RawSample> {
        self.raw.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Tells how far a probe is.
    ///
    /// # Errors
    /// When the user or the time budget ends the work.
    pub(crate) fn advance(&self, progress: &mut dyn Progress, stage: &str, fraction: f64) -> Result<(), LearnError> {
        progress.advance(stage, fraction)?;
        match self.deadline {
            Some(deadline) if self.now() > deadline => Err(self.out_of_time()),
            _ => Ok(()),
        }
    }

    /// Start of a random section of the drive whose `length` bytes lie wholly in the region.
    pub(crate) fn random_section(&mut self, length: ByteSize) -> ByteSize {
        self.sections.random(length, &mut self.random)
    }

    /// The same, with where it is on the drive.
    pub(crate) fn random_section_of_drive(&mut self, length: ByteSize) -> (ByteSize, ByteSize) {
        self.sections.random_of_drive(length, &mut self.random)
    }

    /// A place that is a multiple of `length` on the drive.
    pub(crate) fn random_multiple(&mut self, length: ByteSize) -> ByteSize {
        self.sections.random_multiple(length, &mut self.random)
    }

    /// The longest piece of the region that is in one piece on the drive, from a whole section on: where it is in the
    /// region, where on the drive, and its length.
    pub(crate) fn longest_piece(&self) -> (ByteSize, ByteSize, ByteSize) {
        self.sections.longest()
    }

    /// What offsets of the layout count from.
    pub(crate) fn origin(&self) -> &Origin {
        self.sections.origin()
    }

    /// So many areas of a length that is one of whole sections, in the first part of the region, and where they end: on
    /// whole sections of the drive, where these leave room behind.
    pub(crate) fn areas(&self, length: ByteSize, count: usize) -> (Vec<ByteSize>, ByteSize) {
        let end_of = |areas: &[ByteSize]| areas.last().map_or(ByteSize(0), |&last| last + length);
        let leaves_room = |areas: &Vec<ByteSize>| end_of(areas) + length <= self.region;
        let in_a_row = || (0..count as u64).map(|n| length * n).collect();
        let areas = self.sections.stretches(length, count).filter(leaves_room).unwrap_or_else(in_a_row);
        let end = end_of(&areas);
        (areas, end)
    }

    /// A random offset in the region, a multiple of `length`.
    pub(crate) fn random_offset(&mut self, length: ByteSize) -> ByteSize {
        length * self.random.random_range(0..self.region / length)
    }

    /// `items` in random order.
    pub(crate) fn shuffled<T>(&mut self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut items: Vec<T> = items.into_iter().collect();
        items.shuffle(&mut self.random);
        items
    }

    fn out_of_time(&self) -> LearnError {
        if self.quick_limits.time { LearnError::QuickTime } else { LearnError::TimeBudget }
    }

    /// Counts a write against the limit.
    fn spend(&mut self, length: ByteSize) -> Result<(), LearnError> {
        let after = self.written + length;
        if let Some(limit) = self.max_write.filter(|&limit| after > limit) {
            return Err(LearnError::WriteLimit {
                is_quick: self.quick_limits.write,
                limit,
                written: self.written,
                next: length,
            });
        }
        self.written = after;
        self.state = Region::Scattered;
        Ok(())
    }

    /// Bytes that may still be written; `None` for any number.
    pub(crate) fn writes_left(&self) -> Option<ByteSize> {
        self.max_write.map(|limit| ByteSize(limit.bytes().saturating_sub(self.written.bytes())))
    }

    /// Time until the end of the budget; `None` where there is none.
    pub(crate) fn time_left(&self) -> Option<Nanos> {
        self.deadline.map(|deadline| deadline.since(self.now()))
    }

    /// Lets time pass; nothing is flushed.
    pub(crate) fn pause(&mut self, duration: Nanos) -> Result<(), LearnError> {
        Ok(self.device.pause(duration)?)
    }

    /// Fails before anything is done where `bytes` more are not allowed.
    pub(crate) fn afford(&self, bytes: ByteSize) -> Result<(), LearnError> {
        match self.max_write {
            Some(limit) if self.written + bytes > limit => Err(LearnError::WriteLimit {
                is_quick: self.quick_limits.write,
                limit,
                written: self.written,
                next: bytes,
            }),
            _ => Ok(()),
        }
    }

    /// Latency of one read, nothing else in flight.
    pub(crate) fn read(&mut self, offset: ByteSize, length: ByteSize) -> Result<Nanos, LearnError> {
        self.read += length;
        Ok(execute(self.device, Request::read(offset, length))?.latency())
    }

    /// Latency of two reads submitted together: that of the later one.
    pub(crate) fn read_pair(&mut self, offsets: [ByteSize; 2], length: ByteSize) -> Result<Nanos, LearnError> {
        let started = self.now();
        for offset in offsets {
            self.submit(Request::read(offset, length))?;
        }
        let mut last = started;
        while let Some(completion) = self.wait()? {
            last = last.max(completion.completed_at);
        }
        Ok(last.since(started))
    }

    /// Latency of one write that need not be durable, nothing else in flight.
    pub(crate) fn write(&mut self, offset: ByteSize, length: ByteSize) -> Result<Nanos, LearnError> {
        self.spend(length)?;
        Ok(execute(self.device, Request::write(offset, length))?.latency())
    }

    /// Latency of one write that is durable at completion, nothing else in flight.
    pub(crate) fn durable_write(&mut self, offset: ByteSize, length: ByteSize) -> Result<Nanos, LearnError> {
        self.spend(length)?;
        Ok(execute(self.device, Request::write(offset, length).with_fua())?.latency())
    }

    /// Latency of a flush, nothing else in flight.
    pub(crate) fn flush_latency(&mut self) -> Result<Nanos, LearnError> {
        Ok(execute(self.device, Request::flush())?.latency())
    }

    /// Trims `length` bytes from `offset` on; returns whether the drive supports it.
    ///
    /// # Errors
    /// When the drive fails.
    pub(crate) fn trim(&mut self, offset: ByteSize, length: ByteSize) -> Result<bool, LearnError> {
        self.state = Region::Scattered;
        match execute(self.device, Request::trim(offset, length)) {
            Ok(_) => Ok(true),
            Err(BlockError::Os { errno: EOPNOTSUPP, .. }) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    /// Makes everything durable and lets the drive do what it does in the background.
    pub(crate) fn rest(&mut self, duration: Nanos) -> Result<(), LearnError> {
        self.flush()?;
        Ok(self.device.pause(duration)?)
    }

    /// The same, for as long as a drive may take that moves what was written to where it stays. Ends at once where that
    /// would be after the end of the time.
    pub(crate) fn come_to_rest(&mut self) -> Result<(), LearnError> {
        let duration = if self.clock() == Clock::Virtual { AT_REST.0 } else { AT_REST.1 };
        self.flush()?;
        match self.deadline {
            Some(deadline) if self.now().0.saturating_add(duration.0) > deadline.0 => Err(self.out_of_time()),
            _ => self.rest(duration),
        }
    }

    /// Writes the region in order, in large writes, flushes, and lets the data come to rest, unless that is how it was
    /// written last.
    pub(crate) fn fill_region(&mut self, progress: &mut dyn Progress) -> Result<(), LearnError> {
        if self.state == Region::InOrder || !self.may_write {
            return Ok(());
        }
        self.fill(self.region, progress)?;
        self.state = Region::InOrder;
        Ok(())
    }

    /// Writes at least the first `bytes` of the region in order, in large writes, flushes, and lets the data come to
    /// rest.
    pub(crate) fn fill(&mut self, bytes: ByteSize, progress: &mut dyn Progress) -> Result<(), LearnError> {
        let longest = self.longest();
        let pieces: Vec<(ByteSize, ByteSize)> =
            self.sections.in_order(self.region).into_iter().filter(|&(at, _)| at < bytes).collect();
        for (n, &(at, length)) in pieces.iter().enumerate() {
            if n.is_multiple_of(16) {
                self.advance(progress, "filling the region", n as f64 / pieces.len() as f64)?;
            }
            for part in (0..length.bytes()).step_by(longest.bytes() as usize).map(ByteSize) {
                let part_length = longest.min(length - part);
                self.spend(part_length)?;
                execute(self.device, Request::write(at + part, part_length))?;
            }
        }
        self.come_to_rest()
    }

    /// Writes the region in order, over and over, until the drive must have used all of its flash: from then on it
    /// erases for what is written, as any drive in use does.
    pub(crate) fn use_all_flash(&mut self, progress: &mut dyn Progress) -> Result<(), LearnError> {
        let (length, passes) = (self.longest(), (self.capacity().bytes() * 3 / 2).div_ceil(self.region.bytes()));
        let writes = (self.region / length) as usize;
        for pass in 0..passes {
            self.advance(progress, "writing the drive's capacity", pass as f64 / passes as f64)?;
            let mut next = 0;
            let mut in_order = |_: &mut Pcg64Mcg| {
                next = (next + 1) % writes as u64;
                length * next
            };
            self.keep_in_flight(Operation::Write, length, 8, writes, &mut in_order)?;
        }
        self.flush()
    }

    /// Overwrites the region in blocks in random order, flushes, and lets the data come to rest.
    pub(crate) fn scatter_region(&mut self, progress: &mut dyn Progress) -> Result<(), LearnError> {
        if !self.may_write {
            return Ok(());
        }
        self.fill_region(progress)?;
        let block = ByteSize::kib(4).max(self.logical_block());
        let blocks = self.shuffled(0..self.region() / block);
        for (n, &i) in blocks.iter().enumerate() {
            if n.is_multiple_of(1000) {
                self.advance(progress, "overwriting block by block", n as f64 / blocks.len() as f64)?;
            }
            self.write(block * i, block)?;
        }
        self.come_to_rest()
    }

    /// Submits a request without waiting.
    pub(crate) fn submit(&mut self, request: Request) -> Result<(), LearnError> {
        match request.operation {
            Operation::Write => self.spend(request.length)?,
            Operation::Read => self.read += request.length,
            _ => {}
        }
        Ok(self.device.submit(request)?)
    }

    /// Submits a write with content.
    pub(crate) fn submit_content(&mut self, offset: ByteSize, content: IoBuffer) -> Result<(), LearnError> {
        self.submit(Request::write(offset, ByteSize(0)).with_buffer(content))
    }

    /// Waits for one completion; `None` when nothing is in flight.
    pub(crate) fn wait(&mut self) -> Result<Option<Completion>, LearnError> {
        match self.device.wait()? {
            Some(completion) => {
                completion.result.clone()?;
                Ok(Some(completion))
            }
            None => Ok(None),
        }
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.device.outstanding()
    }

    /// Waits for everything in flight, and takes what fails by default; for leaving a probe that was stopped.
    pub(crate) fn settle(&mut self) {
        while let Ok(Some(_)) = self.device.wait() {}
    }

    /// Makes everything durable.
    pub(crate) fn flush(&mut self) -> Result<(), LearnError> {
        while self.wait()?.is_some() {}
        if !self.may_write {
            return Ok(());
        }
        execute(self.device, Request::flush())?;
        Ok(())
    }

    /// Lets `completions` requests complete while `depth` are kept in flight, each at the offset that `place` gives;
    /// they stay in flight at the end.
    pub(crate) fn keep_in_flight(
        &mut self,
        operation: Operation,
        length: ByteSize,
        depth: usize,
        completions: usize,
        place: &mut dyn FnMut(&mut Pcg64Mcg) -> ByteSize,
    ) -> Result<(), LearnError> {
        for _ in 0..completions {
            while self.in_flight() < depth {
                let offset = place(&mut self.random);
                let request = match operation {
                    Operation::Write => Request::write(offset, length),
                    _ => Request::read(offset, length),
                };
                self.submit(request)?;
            }
            self.wait()?;
        }
        Ok(())
    }

    /// Requests a second of `completions` requests while `depth` are kept in flight.
    pub(crate) fn rate(
        &mut self,
        operation: Operation,
        length: ByteSize,
        depth: usize,
        completions: usize,
        place: &mut dyn FnMut(&mut Pcg64Mcg) -> ByteSize,
    ) -> Result<f64, LearnError> {
        let started = self.now();
        self.keep_in_flight(operation, length, depth, completions, place)?;
        let seconds = self.now().since(started).as_secs_f64();
        Ok(completions as f64 / seconds.max(1e-9))
    }
}

/// Random offsets below `bytes`, multiples of `length`.
pub(crate) fn anywhere(bytes: ByteSize, length: ByteSize) -> impl FnMut(&mut Pcg64Mcg) -> ByteSize {
    let places = bytes / length;
    move |random| length * random.random_range(0..places)
}
