//! Drives all flows of a workload against the drive.
//!
//! A closed flow keeps its queue depth: each completion is completed by the flow's next request, at once or after its
//! pause. A timed flow has one entry in the agenda, its next arrival. When nothing is on the agenda, the drive is
//! waited for without a deadline, which is the whole loop for a workload of closed flows without pauses.
//!
//! Each flow has a submission queue, of its class where the drive weights classes ([`super::flow_queues`]).
//!
//! A request's tag carries its flow and its length, so that a completion needs no table: flow in the low 16 bits, bytes
//! above.

use std::path::Path;

use flashwise_block::{BlockError, ByteSize, Nanos, Operation, Progress, Request};
use flashwise_trace::workload::{Flow, FlowRequest, FlowSource, SourcePacing, Workload};

use super::agenda::Agenda;
use super::recorder::{EndedFlow, FlowRecord, Record};
use super::target::Target;
use super::timeline::Timeline;
use super::{SimulationError, SimulationOptions, flow_queues};
use crate::life::History;
use flashwise_ssd::host::{CompletionRecord, LOST};

/// Completions between two calls of the progress listener.
const PROGRESS_EVERY: u64 = 1 << 14;
/// Bits of a tag that hold the flow; a workload has at most 1,024.
const FLOW_BITS: u32 = 16;
/// How many requests of a flow ahead the drive gets prefetch hints: two or three for each step from a logical page to
/// its block, which is how many pass during a memory access.
const AHEAD: usize = 8;
/// What is in a place that is filled part by part.
const BLANK: FlowRequest =
    FlowRequest { operation: Operation::Flush, offset: ByteSize(0), length: ByteSize(0), fua: false, at: Nanos(0) };

/// One flow on its way.
struct RunningFlow {
    name: String,
    source: FlowSource,
    /// Its submission queue.
    queue: u16,
    /// The stream that its writes name, 0 for none.
    stream: u16,
    /// When it starts, on the drive's clock.
    start_ns: u64,
    /// From when on it issues nothing, on the drive's clock; for closed flows, timed ones end by themselves.
    stop_ns: u64,
    /// The request that arrives next, where the source decides about the time.
    arriving: Option<FlowRequest>,
    /// A ring of the next requests, starting at `turn`; known early, for prefetch hints
    /// ([`Target::prefetch_hint`]).
    upcoming: [Option<FlowRequest>; AHEAD],
    turn: usize,
    started: bool,
    record: FlowRecord,
}

/// All flows and the drive that serves them.
pub(super) struct Driver<'a, D> {
    drive: &'a mut D,
    flows: Vec<RunningFlow>,
    agenda: Agenda,
    interval: Option<Nanos>,
    fraction: Fraction,
    /// Notes on wear, where the drive has a limit.
    life: Option<History>,
}

impl<'a, D: Target> Driver<'a, D> {
    /// Opens every flow for a drive.
    pub(super) fn open(
        drive: &'a mut D,
        workload: &Workload,
        base: &Path,
        options: &SimulationOptions,
    ) -> Result<Self, SimulationError> {
        let (queues, classes) = match drive.drive_config() {
            Some(config) => flow_queues::assign(&workload.flows, &config.host)?,
            None => (vec![0; workload.flows.len()], Vec::new()),
        };
        classes.into_iter().for_each(|(queue, class)| drive.set_queue_class(queue, class));
        let flow = |(index, flow): (usize, &Flow)| -> Result<RunningFlow, SimulationError> {
            let info = drive.info();
            let source = FlowSource::open(flow, index, workload.seed, info.capacity, info.logical_block, base)?;
            Ok(RunningFlow::new(flow, source, queues[index]))
        };
        let flows = workload.flows.iter().enumerate().map(flow).collect::<Result<Vec<_>, _>>()?;
        let fraction = Fraction::of(workload);
        Ok(Self { drive, flows, agenda: Agenda::default(), interval: options.interval, fraction, life: None })
    }

    /// The drive.
    pub(super) fn drive(&mut self) -> &mut D {
        self.drive
    }

    /// Runs the flows from the drive's present time to the last completion.
    pub(super) fn run(mut self, progress: &mut dyn Progress) -> Result<Record, SimulationError> {
        let origin_ns = self.drive.now().0;
        self.drive.begin();
        self.life = self.drive.history();
        let mut timeline = Timeline::new(origin_ns, self.interval, &self.drive.counters());
        for (index, flow) in self.flows.iter_mut().enumerate() {
            flow.begin_at(origin_ns);
            self.agenda.note(flow.start_ns, index as u32);
        }
        let mut completions = 0_u64;
        loop {
            while let Some(flow) = self.agenda.due(self.drive.now().0) {
                self.act(flow as usize)?;
            }
            let completion = match self.agenda.next_time() {
                Some(time_ns) => match self.drive.complete_until(time_ns) {
                    Some(completion) => completion,
                    None => match self.drive.fault() {
                        Some(fault) => return Err(fault.into()),
                        None => continue,
                    },
                },
                None if self.drive.is_idle() => break,
                None => match self.drive.next_completion() {
                    Some(completion) => completion,
                    None => return Err(self.drive.fault().unwrap_or(LOST).into()),
                },
            };
            self.completed(completion, &mut timeline)?;
            completions += 1;
            if completions.is_multiple_of(PROGRESS_EVERY) {
                let elapsed_ns = self.drive.now().0 - origin_ns;
                progress.advance("simulating", self.fraction.done(completions, elapsed_ns))?;
            }
        }
        self.end(origin_ns, timeline)
    }

    /// A flow starts, its next request arrives, or one of its pauses is over.
    fn act(&mut self, index: usize) -> Result<(), SimulationError> {
        let flow = &mut self.flows[index];
        match (flow.source.pacing(), flow.started) {
            (SourcePacing::Timed, false) => {
                flow.started = true;
                self.next_arrival(index)
            }
            (SourcePacing::Timed, true) => {
                if let Some(request) = flow.arriving.take() {
                    flow.submit(index, self.drive, request)?;
                }
                self.next_arrival(index)
            }
            (SourcePacing::Closed { queue_depth, .. }, false) => {
                flow.started = true;
                for _ in 0..queue_depth {
                    flow.issue(index, self.drive)?;
                }
                Ok(())
            }
            (SourcePacing::Closed { .. }, true) => flow.issue(index, self.drive),
        }
    }

    /// Notes a timed flow's next arrival.
    fn next_arrival(&mut self, index: usize) -> Result<(), SimulationError> {
        let flow = &mut self.flows[index];
        flow.arriving = flow.next(self.drive);
        match flow.arriving {
            Some(request) => {
                self.agenda.note(flow.start_ns.saturating_add(request.at.0), index as u32);
                Ok(())
            }
            None => flow.check_source(),
        }
    }

    #[inline(always)]
    fn completed(&mut self, completion: CompletionRecord, timeline: &mut Timeline) -> Result<(), SimulationError> {
        let index = (completion.tag & ((1 << FLOW_BITS) - 1)) as usize;
        let length = ByteSize(completion.tag >> FLOW_BITS);
        let (now_ns, response_ns) = (completion.completed_ns, completion.completed_ns - completion.submitted_ns);
        let flow = &mut self.flows[index];
        if let Some(reason) = completion.error {
            if *reason == BlockError::ReadOnly {
                return self.refused(index, response_ns, now_ns);
            }
            return Err(SimulationError::Request { flow: flow.name.clone(), reason: *reason });
        }
        flow.record.completed(completion.operation, length, response_ns, now_ns);
        flow.record.waited(completion.taken_ns - completion.submitted_ns);
        if timeline.is_past(now_ns) {
            timeline.advance(now_ns, &self.drive.counters())?;
            if let Some(life) = &mut self.life {
                self.drive.advance(life);
            }
        }
        timeline.completed(length, response_ns);
        flow.go_on(index, now_ns, self.drive, &mut self.agenda)
    }

    /// The drive's life has ended: a flow that reads continues, one that only writes has nothing left to do.
    #[cold]
    fn refused(&mut self, index: usize, response_ns: u64, now_ns: u64) -> Result<(), SimulationError> {
        let flow = &mut self.flows[index];
        if flow.record.refused(response_ns, now_ns) {
            return flow.go_on(index, now_ns, self.drive, &mut self.agenda);
        }
        flow.stop_ns = now_ns;
        Ok(())
    }

    fn end(self, origin_ns: u64, timeline: Timeline) -> Result<Record, SimulationError> {
        let counters = self.drive.counters();
        let queue_depth = |source: &FlowSource| match source.pacing() {
            SourcePacing::Closed { queue_depth, think: Nanos(0) } => Some(queue_depth),
            _ => None,
        };
        let flows: Vec<_> = self
            .flows
            .into_iter()
            .map(|flow| EndedFlow {
                notes: flow.source.notes(),
                ..flow.record.end(flow.name, queue_depth(&flow.source))
            })
            .collect();
        let end_ns = flows.iter().map(|flow| flow.last_completion_ns).max().unwrap_or(origin_ns).max(origin_ns);
        let time_series = timeline.end(end_ns, &counters);
        Ok(Record {
            origin_ns,
            end_ns,
            flows,
            time_series,
            life: self.life,
            outstanding: self.drive.outstanding() as u64,
        })
    }
}

impl RunningFlow {
    fn new(flow: &Flow, source: FlowSource, queue: u16) -> Self {
        Self {
            name: flow.name.clone(),
            source,
            queue,
            stream: flow.stream,
            start_ns: flow.start_ns,
            stop_ns: flow.duration_ns.unwrap_or(u64::MAX),
            arriving: None,
            upcoming: [None; AHEAD],
            turn: 0,
            started: false,
            record: FlowRecord::default(),
        }
    }

    /// Moves the flow's times to the drive's clock.
    fn begin_at(&mut self, origin_ns: u64) {
        self.start_ns = self.start_ns.saturating_add(origin_ns);
        self.stop_ns = self.stop_ns.saturating_add(self.start_ns);
        self.record.start(self.start_ns);
        self.upcoming = std::array::from_fn(|_| self.source.next());
    }

    /// The next request; the drive gets a prefetch hint for the one that replaces it in the ring.
    #[inline(always)]
    fn next(&mut self, drive: &mut impl Target) -> Option<FlowRequest> {
        let place = &mut self.upcoming[self.turn % AHEAD];
        self.turn += 1;
        let next = place.take();
        if let Some(FlowRequest { operation, offset, length, fua, at }) = self.source.next() {
            drive.prefetch_hint(operation, offset);
            // Part by part: copied as a whole, bytes that are just written would be read as words, for which a
            // processor waits until they are in its cache.
            let place = place.get_or_insert(BLANK);
            (place.operation, place.offset, place.length) = (operation, offset, length);
            (place.fua, place.at) = (fua, at);
        }
        next
    }

    /// Submits a closed flow's next request, if it has one and time for it.
    #[inline(always)]
    fn issue(&mut self, index: usize, drive: &mut impl Target) -> Result<(), SimulationError> {
        if drive.now().0 >= self.stop_ns {
            return Ok(());
        }
        match self.next(drive) {
            Some(request) => self.submit(index, drive, request),
            None => self.check_source(),
        }
    }

    #[inline(always)]
    fn submit(&mut self, index: usize, drive: &mut impl Target, request: FlowRequest) -> Result<(), SimulationError> {
        let FlowRequest { operation, offset, length, fua, .. } = request;
        let (tag, queue, stream) = (length.0 << FLOW_BITS | index as u64, self.queue, self.stream);
        drive
            .enter(Request { tag, operation, offset, length, fua, queue, stream, buffer: None })
            .map_err(|reason| SimulationError::Request { flow: self.name.clone(), reason })?;
        self.record.submitted(drive.now().0);
        Ok(())
    }

    /// A closed flow's next request, at once or after its pause.
    #[inline(always)]
    fn go_on(
        &mut self,
        index: usize,
        now_ns: u64,
        drive: &mut impl Target,
        agenda: &mut Agenda,
    ) -> Result<(), SimulationError> {
        match self.source.pacing() {
            SourcePacing::Closed { think: Nanos(0), .. } => self.issue(index, drive),
            SourcePacing::Closed { think, .. } => {
                agenda.note(now_ns.saturating_add(think.0), index as u32);
                Ok(())
            }
            SourcePacing::Timed => Ok(()),
        }
    }

    /// A source that has ended may have ended in the middle of its trace.
    fn check_source(&self) -> Result<(), SimulationError> {
        self.source.failure().map_or(Ok(()), |failure| Err(failure.clone().into()))
    }
}

/// How far a run is, from what the flows say of their ends.
struct Fraction {
    /// Requests of all flows, if each says.
    requests: Option<u64>,
    /// The latest end of a flow, ns after the start, if each says.
    end_ns: Option<u64>,
}

impl Fraction {
    fn of(workload: &Workload) -> Self {
        let ends = workload.flows.iter().map(|flow| flow.duration_ns.map(|ns| flow.start_ns.saturating_add(ns)));
        let requests = workload.flows.iter().map(|flow| flow.requests);
        Self {
            requests: requests.sum(),
            end_ns: ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max()),
        }
    }

    fn done(&self, completions: u64, elapsed_ns: u64) -> f64 {
        let share = |part: u64, whole: Option<u64>| whole.map_or(0.0, |whole| part as f64 / whole as f64);
        share(completions, self.requests).max(share(elapsed_ns, self.end_ns))
    }
}
