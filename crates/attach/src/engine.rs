//! All timing of an attached drive: when a command arrived, and when its answer is due.
//!
//! ```text
//!   submit(command, arrived)     the drive's clock is brought to `arrived`, the command's requests begin there
//!   next_wake()                  when there is something to do again
//!   poll(now)                    events up to now happen; what the drive has done is answered
//! ```
//!
//! The engine has no thread and no clock of its own: whoever owns it says what time it is. So it is tested without one.
//!
//! **The way to the client** takes time that the drive's own does not have. An answer is therefore given early by as much
//! as the way takes there and back, the *head start*: the drive's events may happen up to it before their time. A command
//! that arrives meanwhile begins at the last event that has happened, at most the head start late, and its own answer is
//! early by the same.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Completion, DeviceCounters, DeviceInfo, IoBuffer, LatencySummary, Nanos,
    Operation, Request,
};
use flashwise_ssd::SimulatedSsd;
use flashwise_trace::TraceRecord;

use crate::capture::Capture;
use crate::pace::{Clocks, Pace, Pacing};
use crate::report::RequestTimes;
use crate::{AttachError, AttachReport};

/// What a client asks for.
#[derive(Debug)]
pub struct Command {
    /// The client's connection; handed back untouched.
    pub client: u32,
    /// The client's own mark; handed back untouched.
    pub cookie: u64,
    /// The client's process, for the capture.
    pub process: Option<u32>,
    /// What to do.
    pub operation: Operation,
    /// First byte on the drive.
    pub offset: ByteSize,
    /// How many bytes; 0 for a flush.
    pub length: ByteSize,
    /// Durable when it is answered.
    pub fua: bool,
    /// The bytes of a write, exactly `length`.
    pub payload: Option<IoBuffer>,
}

/// What the client is told.
#[derive(Debug)]
pub struct Answer {
    /// The command's connection.
    pub client: u32,
    /// The command's mark.
    pub cookie: u64,
    /// What was asked.
    pub operation: Operation,
    /// Of how many bytes.
    pub length: ByteSize,
    /// Whether it is done.
    pub result: Result<(), BlockError>,
    /// The bytes of a read.
    pub payload: Option<IoBuffer>,
}

/// When [`Engine::poll`] has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Now.
    Now,
    /// At a moment of the machine's.
    At(Instant),
    /// Not before the next command.
    Never,
}

/// A command under way.
#[derive(Debug)]
struct Active {
    command: Command,
    arrived: Instant,
    submitted: Nanos,
    /// Its place in the capture.
    captured: u64,
    /// Requests that are not done; a command that is longer than the drive's longest request is several.
    pending: u32,
    /// When the last of those that are done was.
    completed: Nanos,
    result: Result<(), BlockError>,
    /// The bytes of a read.
    read: Option<IoBuffer>,
}

/// A drive that follows the machine's clock.
#[derive(Debug)]
pub struct Engine {
    drive: Drive,
    /// `None` where answers come at once.
    clocks: Option<Clocks>,
    round_trip: Duration,
    active: Vec<Option<Active>>,
    free: Vec<u32>,
    /// Answered by the drive while its clock was brought forward, with when.
    ready: VecDeque<Completion>,
    /// Commands that make no sense to the drive.
    refused: Vec<Answer>,
    capture: Option<Capture>,
    times: Times,
    /// The drive's time and counters at the start.
    began: (Nanos, DeviceCounters),
}

/// The drive, which has no words for itself.
struct Drive(SimulatedSsd);

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Drive({})", self.0.info().name)
    }
}

/// Latencies of commands on the drive's clock, and of the answers on the machine's.
#[derive(Debug, Default)]
struct Times {
    reads: LatencySummary,
    writes: LatencySummary,
    flushes: LatencySummary,
    trims: LatencySummary,
    /// On the machine's clock, of all.
    machine: LatencySummary,
    late: LatencySummary,
    failed: u64,
}

impl Engine {
    /// A drive whose time begins to run at `began`. `round_trip` is what the way to the client and back takes.
    ///
    /// # Errors
    /// [`AttachError::TimeScale`] for a pace that makes no sense.
    pub fn new(
        drive: SimulatedSsd,
        pace: Pace,
        round_trip: Duration,
        capture: Option<Capture>,
        began: Instant,
    ) -> Result<Self, AttachError> {
        let clocks = match pace {
            Pace::Free => None,
            Pace::Scaled(scale) => {
                Pace::scaled(scale)?;
                Some(Clocks::new(began, drive.now(), scale))
            }
        };
        let began = (drive.now(), drive.counters());
        Ok(Self {
            began,
            drive: Drive(drive),
            clocks,
            round_trip,
            active: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            refused: Vec::new(),
            capture,
            times: Times::default(),
        })
    }

    /// What the drive tells about itself.
    pub fn info(&self) -> &DeviceInfo {
        self.drive.0.info()
    }

    /// Commands that are not answered.
    pub fn outstanding(&self) -> usize {
        self.active.len() - self.free.len() + self.refused.len()
    }

    /// Takes a command that arrived at a moment, not before one that was taken earlier.
    ///
    /// # Errors
    /// When the drive is lost as a whole. A command that makes no sense is answered with why.
    pub fn submit(&mut self, command: Command, arrived: Instant) -> Result<(), AttachError> {
        if let Err(error) = self.check(&command) {
            let Command { client, cookie, operation, length, .. } = command;
            self.refused.push(Answer { client, cookie, operation, length, result: Err(error), payload: None });
            return Ok(());
        }
        if let Some(clocks) = self.clocks {
            let now = clocks.simulated(arrived);
            while let Some(completion) = self.drive.0.wait_until(now)? {
                self.ready.push_back(completion);
            }
        }
        let index = self.take(command, arrived);
        if let Err(error) = self.send(index) {
            // The check before has let nothing through that the drive does not take; what it refuses now is its state.
            self.fail(index, error);
        }
        Ok(())
    }

    /// Whether the drive can do it, as a whole.
    fn check(&self, command: &Command) -> Result<(), BlockError> {
        let Command { operation, offset, length, ref payload, .. } = *command;
        let fail =
            |reason: &str| Err(BlockError::InvalidRequest { operation, offset, length, reason: reason.to_owned() });
        let info = self.info();
        if operation == Operation::Flush {
            return Ok(());
        }
        if !offset.is_multiple_of(info.logical_block) || !length.is_multiple_of(info.logical_block) || length.0 == 0 {
            return fail("offset and length must be multiples of the logical block, and not zero");
        }
        if offset.0.checked_add(length.0).is_none_or(|end| end > info.capacity.0) {
            return fail("it reaches behind the drive");
        }
        match (operation, payload) {
            (Operation::Write, Some(payload)) if payload.len() as u64 == length.0 => Ok(()),
            (Operation::Write, _) => fail("a write without its bytes"),
            _ => Ok(()),
        }
    }

    fn take(&mut self, command: Command, arrived: Instant) -> u32 {
        let submitted = self.drive.0.now();
        let Command { operation, offset, length, fua, process, .. } = command;
        let record = TraceRecord { fua, process, ..TraceRecord::new(submitted, operation, offset, length) };
        let captured = self.capture.as_mut().map_or(0, |capture| capture.submitted(record));
        let read = (operation == Operation::Read && length > self.info().max_transfer).then(|| buffer(length));
        let active =
            Active { command, arrived, submitted, captured, pending: 0, completed: submitted, result: Ok(()), read };
        match self.free.pop() {
            Some(index) => {
                self.active[index as usize] = Some(active);
                index
            }
            None => {
                self.active.push(Some(active));
                self.active.len() as u32 - 1
            }
        }
    }

    /// Hands the drive the requests of a command.
    fn send(&mut self, index: u32) -> Result<(), BlockError> {
        let longest = self.info().max_transfer.0.max(1);
        let Some(active) = self.active[index as usize].as_mut() else { return Ok(()) };
        let Command { operation, offset, length, fua, .. } = active.command;
        let whole = matches!(operation, Operation::Flush | Operation::Trim) || length.0 <= longest;
        let mut payload = active.command.payload.take();
        let pieces = if whole { 1 } else { length.0.div_ceil(longest) };
        for piece in 0..pieces {
            let from = piece * longest;
            let size = if whole { length.0 } else { longest.min(length.0 - from) };
            let mut request = match operation {
                Operation::Flush => Request::flush(),
                Operation::Read => Request::read(offset, length).with_buffer(buffer(ByteSize(size))),
                Operation::Write if whole => Request { buffer: payload.take(), ..Request::write(offset, length) },
                Operation::Write => {
                    let bytes = payload.as_deref().and_then(|bytes| bytes.get(from as usize..(from + size) as usize));
                    Request::write(offset, length).with_buffer(IoBuffer::copy_of(bytes.unwrap_or_default()))
                }
                Operation::Trim => Request::trim(offset, length),
                Operation::WriteZeroes => Request::write_zeroes(offset, ByteSize(size)),
            };
            if operation != Operation::Flush {
                request.offset = ByteSize(offset.0 + from);
            }
            request.fua = fua && operation.writes();
            self.drive.0.submit(request.tagged(piece << 32 | u64::from(index)))?;
            active.pending += 1;
        }
        Ok(())
    }

    /// A command that the drive did not take is answered with why, once what it took of it is done.
    fn fail(&mut self, index: u32, error: BlockError) {
        let Some(active) = self.active[index as usize].as_mut() else { return };
        active.result = Err(error);
        if active.pending == 0 {
            let Some(active) = self.release(index) else { return };
            let Command { client, cookie, operation, length, .. } = active.command;
            if let Some(capture) = &mut self.capture {
                capture.answered(active.captured, Nanos(0));
            }
            self.refused.push(Answer { client, cookie, operation, length, result: active.result, payload: None });
        }
    }

    fn release(&mut self, index: u32) -> Option<Active> {
        let active = self.active[index as usize].take()?;
        self.free.push(index);
        Some(active)
    }

    /// When there is something to do again.
    pub fn next_wake(&self) -> Wake {
        if !self.ready.is_empty() || !self.refused.is_empty() {
            return Wake::Now;
        }
        match (self.clocks, self.drive.0.next_event()) {
            _ if self.outstanding() == 0 => Wake::Never,
            (Some(clocks), Some(event)) => {
                let at = clocks.machine(event);
                Wake::At(at.checked_sub(self.round_trip).unwrap_or(at))
            }
            _ => Wake::Now,
        }
    }

    /// Lets the drive do what it does up to `now`, and puts what is answered into `answers`.
    ///
    /// # Errors
    /// When the drive is lost as a whole, or the capture cannot be written.
    pub fn poll(&mut self, now: Instant, answers: &mut Vec<Answer>) -> Result<(), AttachError> {
        answers.append(&mut self.refused);
        while let Some(completion) = self.ready.pop_front() {
            self.completed(completion, now, answers);
        }
        match self.clocks {
            None => {
                while let Some(completion) = self.drive.0.wait()? {
                    self.completed(completion, now, answers);
                }
            }
            Some(clocks) => {
                let head_start = clocks.simulated_span(self.round_trip);
                let until = Nanos(clocks.simulated(now).0.saturating_add(head_start.0));
                while let Some(completion) = self.drive.0.wait_within(until) {
                    self.completed(completion, now, answers);
                }
                if self.drive.0.outstanding() > 0 && self.drive.0.next_event().is_none() {
                    return Err(BlockError::Protocol("the simulated drive lost a request").into());
                }
            }
        }
        if let Some(capture) = &mut self.capture {
            capture.flush()?;
        }
        Ok(())
    }

    /// A request is done; with the last of a command's, the command is.
    fn completed(&mut self, completion: Completion, now: Instant, answers: &mut Vec<Answer>) {
        let (index, piece) = (completion.tag as u32, completion.tag >> 32);
        let longest = self.info().max_transfer.0;
        let Some(active) = self.active[index as usize].as_mut() else { return };
        active.pending -= 1;
        active.completed = active.completed.max(completion.completed_at);
        if let (Err(error), true) = (completion.result, active.result.is_ok()) {
            active.result = Err(error);
        }
        if active.command.operation == Operation::Read {
            match (&mut active.read, completion.buffer) {
                (Some(read), Some(bytes)) => {
                    let from = (piece * longest) as usize;
                    read[from..from + bytes.len()].copy_from_slice(&bytes);
                }
                (read, bytes) => *read = bytes,
            }
        }
        if active.pending == 0
            && let Some(active) = self.release(index)
        {
            self.account(&active, now);
            let Active { command: Command { client, cookie, operation, length, .. }, result, read, .. } = active;
            let payload = read.filter(|_| result.is_ok());
            answers.push(Answer { client, cookie, operation, length, result, payload });
        }
    }

    /// Notes how long a command took, and how late its answer is.
    fn account(&mut self, active: &Active, now: Instant) {
        let latency = active.completed.since(active.submitted);
        if let Some(capture) = &mut self.capture {
            capture.answered(active.captured, latency);
        }
        if active.result.is_err() {
            self.times.failed += 1;
            return;
        }
        self.times.of(active.command.operation).record(latency);
        if let Some(clocks) = self.clocks {
            let due = clocks.machine(active.completed);
            let due = due.checked_sub(self.round_trip).unwrap_or(due).max(active.arrived);
            self.times.late.record(nanos(now.saturating_duration_since(due)));
            self.times.machine.record(nanos(now.saturating_duration_since(active.arrived) + self.round_trip));
        }
    }

    /// What was done from the start to now; ends the capture.
    ///
    /// # Errors
    /// When the capture cannot be written to its end.
    pub fn finish(self) -> Result<AttachReport, AttachError> {
        let captured = self.capture.map(Capture::finish).transpose()?;
        let drive = &self.drive.0;
        let Times { reads, writes, flushes, trims, machine, late, failed } = &self.times;
        let requests = RequestTimes {
            reads: reads.percentiles(),
            writes: writes.percentiles(),
            flushes: flushes.percentiles(),
            trims: trims.percentiles(),
        };
        let pacing = self.clocks.map(|_| Pacing::new(late, machine, self.round_trip));
        Ok(AttachReport::new(drive, &self.began, requests, *failed, pacing, captured))
    }
}

impl Times {
    fn of(&mut self, operation: Operation) -> &mut LatencySummary {
        match operation {
            Operation::Read => &mut self.reads,
            Operation::Write | Operation::WriteZeroes => &mut self.writes,
            Operation::Flush => &mut self.flushes,
            Operation::Trim => &mut self.trims,
        }
    }
}

fn buffer(length: ByteSize) -> IoBuffer {
    IoBuffer::zeroed(length.0 as usize)
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use flashwise_block::execute;
    use flashwise_ssd::DeviceConfig;
    use proptest::prelude::*;

    use super::*;

    fn drive() -> SimulatedSsd {
        SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap()
    }

    fn command(operation: Operation, offset: u64, length: u64) -> Command {
        let payload = (operation == Operation::Write).then(|| IoBuffer::zeroed(length as usize));
        let (offset, length) = (ByteSize(offset), ByteSize(length));
        Command { client: 1, cookie: offset.0, process: None, operation, offset, length, fua: false, payload }
    }

    fn engine(pace: Pace, round_trip: Duration, began: Instant) -> Engine {
        Engine::new(drive(), pace, round_trip, None, began).unwrap()
    }

    /// Sleeps exactly as long as the engine says, until everything is answered: the answers and their moments.
    fn play(engine: &mut Engine, mut now: Instant) -> Vec<(Answer, Instant)> {
        let (mut played, mut answers) = (Vec::new(), Vec::new());
        loop {
            engine.poll(now, &mut answers).unwrap();
            played.extend(answers.drain(..).map(|answer| (answer, now)));
            match engine.next_wake() {
                Wake::Never => return played,
                Wake::Now => {}
                Wake::At(at) => now = now.max(at),
            }
        }
    }

    /// The latencies of a write and of a read after it, each alone on a new drive.
    fn alone() -> (Duration, Duration) {
        let mut drive = drive();
        let write = execute(&mut drive, Request::write(ByteSize(0), ByteSize(65_536)).with_fua()).unwrap();
        let read = execute(&mut drive, Request::read(ByteSize(0), ByteSize(4096))).unwrap();
        (Duration::from_nanos(write.latency().0), Duration::from_nanos(read.latency().0))
    }

    #[test]
    fn an_answer_comes_exactly_when_the_drive_has_done_it() {
        let (write, read) = alone();
        for scale in [1.0, 10.0] {
            let began = Instant::now();
            let mut engine = engine(Pace::Scaled(scale), Duration::ZERO, began);
            engine.submit(Command { fua: true, ..command(Operation::Write, 0, 65_536) }, began).unwrap();
            let written = play(&mut engine, began);
            assert_eq!(written[0].1 - began, write.mul_f64(scale), "scale {scale}");
            let later = began + Duration::from_secs(1);
            engine.submit(command(Operation::Read, 0, 4096), later).unwrap();
            assert_eq!(play(&mut engine, later)[0].1 - later, read.mul_f64(scale), "scale {scale}");
            let pacing = engine.finish().unwrap().pacing.unwrap();
            assert_eq!((pacing.error.count, pacing.error.max_ns, pacing.spoils_the_result), (2, 0, false));
        }
    }

    #[test]
    fn the_way_to_the_client_is_taken_off() {
        let (_, read) = alone();
        let (began, trip) = (Instant::now(), Duration::from_micros(15));
        let mut engine = engine(Pace::Scaled(1.0), trip, began);
        engine.submit(Command { fua: true, ..command(Operation::Write, 0, 65_536) }, began).unwrap();
        play(&mut engine, began);
        let later = began + Duration::from_secs(1);
        engine.submit(command(Operation::Read, 0, 4096), later).unwrap();
        assert_eq!(play(&mut engine, later)[0].1 - later, read - trip);
    }

    #[test]
    fn an_answer_that_is_given_late_is_told_as_late() {
        let (write, _) = alone();
        let (began, late) = (Instant::now(), Duration::from_millis(7));
        let mut engine = engine(Pace::Scaled(1.0), Duration::ZERO, began);
        engine.submit(Command { fua: true, ..command(Operation::Write, 0, 65_536) }, began).unwrap();
        let mut answers = Vec::new();
        engine.poll(began + write - Duration::from_nanos(1), &mut answers).unwrap();
        assert!(answers.is_empty(), "not a nanosecond early");
        engine.poll(began + write + late, &mut answers).unwrap();
        assert_eq!(answers.len(), 1);
        let pacing = engine.finish().unwrap().pacing.unwrap();
        assert!(pacing.error.p50_ns.abs_diff(7_000_000) < 7_000, "three digits: {}", pacing.error.p50_ns);
        assert!(pacing.spoils_the_result);
    }

    #[test]
    fn requests_that_come_together_are_served_side_by_side() {
        let began = Instant::now();
        let time_of = |depth: u64| {
            let mut engine = engine(Pace::Scaled(1.0), Duration::ZERO, began);
            (0..depth).for_each(|n| engine.submit(command(Operation::Read, n << 16, 4096), began).unwrap());
            play(&mut engine, began).iter().map(|(_, at)| *at - began).max().unwrap()
        };
        assert!(time_of(4) < 3 * time_of(1), "{:?} for four, {:?} for one", time_of(4), time_of(1));
    }

    #[test]
    fn without_pacing_everything_is_answered_at_once_and_accounted_in_the_drive_s_time() {
        let began = Instant::now();
        let mut engine = engine(Pace::Free, Duration::ZERO, began);
        (0..8).for_each(|n| engine.submit(command(Operation::Write, n << 16, 65_536), began).unwrap());
        engine.submit(command(Operation::Flush, 0, 0), began).unwrap();
        let mut answers = Vec::new();
        engine.poll(began, &mut answers).unwrap();
        assert_eq!((answers.len(), engine.outstanding(), engine.next_wake()), (9, 0, Wake::Never));
        let report = engine.finish().unwrap();
        assert_eq!((report.counters.host_writes, report.counters.flushes, report.pacing), (8, 1, None));
        assert!(report.simulated_ns > 0 && report.latency.writes.count == 8);
    }

    #[test]
    fn what_makes_no_sense_is_answered_and_the_drive_never_sees_it() {
        let began = Instant::now();
        let mut engine = engine(Pace::Scaled(1.0), Duration::ZERO, began);
        let capacity = engine.info().capacity.0;
        let wrong = [
            command(Operation::Read, 100, 4096),
            command(Operation::Write, 0, 100),
            command(Operation::Trim, capacity, 4096),
            command(Operation::Read, u64::MAX - 511, 512),
            command(Operation::Read, 0, 0),
            Command { payload: None, ..command(Operation::Write, 0, 4096) },
        ];
        let count = wrong.len();
        wrong.into_iter().for_each(|command| engine.submit(command, began).unwrap());
        let played = play(&mut engine, began);
        assert!(played.iter().all(|(answer, _)| answer.result.is_err()), "{played:?}");
        assert_eq!((played.len(), engine.outstanding()), (count, 0));
    }

    proptest! {
        /// Against an array of bytes, with requests that are longer than the drive's longest.
        #[test]
        fn what_is_read_is_what_was_written_last(
            steps in prop::collection::vec((0_u8..4, 0_u64..64, 1_u64..64, any::<u8>()), 1..30), paced: bool
        ) {
            let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
            config.host.max_transfer_bytes = 16 << 10;
            let began = Instant::now();
            let pace = if paced { Pace::Scaled(1.0) } else { Pace::Free };
            let drive = SimulatedSsd::new(config, 1).unwrap();
            let mut engine = Engine::new(drive, pace, Duration::ZERO, None, began).unwrap();
            let mut model = vec![0_u8; 128 << 12];
            for (kind, page, pages, byte) in steps {
                let (offset, length) = (page << 12, pages << 12);
                let range = offset as usize..(offset + length) as usize;
                let operation = [Operation::Read, Operation::Write, Operation::WriteZeroes, Operation::Trim][kind as usize];
                let mut command = command(operation, offset, length);
                if let Some(payload) = &mut command.payload {
                    payload.iter_mut().enumerate().for_each(|(n, place)| *place = byte ^ (n >> 9) as u8);
                    model[range.clone()].copy_from_slice(payload);
                } else if operation != Operation::Read {
                    model[range.clone()].fill(0);
                }
                engine.submit(command, began).unwrap();
                let mut played = play(&mut engine, began);
                let (answer, _) = played.pop().unwrap();
                prop_assert!(played.is_empty() && answer.result.is_ok());
                if operation == Operation::Read {
                    prop_assert!(answer.payload.unwrap()[..] == model[range], "offset {offset}, length {length}");
                }
            }
        }
    }
}
