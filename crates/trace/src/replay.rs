//! A flow replayed on any [`BlockDevice`], with the fidelity of it stated.
//!
//! ```text
//!   closed loop   queue_depth in flight; a completion makes room for the next request, after the think time
//!   open loop     each request at its time, whether or not the device keeps up: pause until then, submit
//! ```
//!
//! What a replay promises is *when* requests are issued, and no replay on a real machine keeps that to the nanosecond:
//! a thread wakes late, a submission takes time, a device falls behind. So an open-loop replay tells
//! its **error**: for each request, how much later than intended it was handed to the device. On a simulated drive it
//! is zero, because its clock moves only while somebody waits. A speed-up is the workload's `time_scale`; times of a
//! flow are scaled before they come here.
//!
//! Requests go without a buffer where the device takes that (simulated drives do); elsewhere `payload` gives them one.
//!
//! Source of the two loops and of why both are needed: Haghdoost, He, Fredin, Du, "On the Accuracy and Scalability of
//! Intensive I/O Workload Replay", FAST 2017.

use std::collections::VecDeque;

use flashwise_block::{
    BlockDevice, BlockError, Clock, Completion, IoBuffer, LatencySummary, Nanos, Percentiles, Progress, Request,
};
use serde::Serialize;

use crate::workload::{FlowRequest, FlowSource, SourcePacing, WorkloadError};

/// Requests between two looks at whether the user wants to stop.
const LOOK_EVERY: u64 = 256;
/// Requests that a replay by timestamps leaves with a device that falls behind; then it falls behind itself, and says
/// so.
const MOST_OUTSTANDING: usize = 1 << 16;

/// What a replay did, and how faithful it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// Requests that completed.
    pub requests: u64,
    /// Of those, requests that failed.
    pub failed: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// From the start to the last completion, on the device's clock, ns.
    pub elapsed_ns: u64,
    /// From submission to completion.
    pub latency: Percentiles,
    /// How much later than intended requests were issued; none in a closed loop, which intends no times.
    pub issue_error: Option<Percentiles>,
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The device refused a request or is lost.
    #[error("request {number} of the replay: {error}")]
    Device {
        /// Which request; the first is 1.
        number: u64,
        /// What the device said.
        error: BlockError,
    },
    /// The trace changed under the replay.
    #[error(transparent)]
    Source(#[from] WorkloadError),
}

/// Buffers for a device that must have them; `None` for a request that has none.
pub type Payload<'a> = &'a mut dyn FnMut(&FlowRequest) -> Option<IoBuffer>;

/// Replays a flow to its end.
///
/// # Errors
/// When the device refuses a request or is lost, and when the trace can no longer be read. A request that fails is
/// counted.
pub fn replay(
    source: &mut FlowSource,
    device: &mut dyn BlockDevice,
    payload: Payload<'_>,
    progress: &mut dyn Progress,
) -> Result<ReplayReport, ReplayError> {
    let pacing = source.pacing();
    let mut run = Run::new(device, payload, progress);
    match pacing {
        SourcePacing::Closed { queue_depth, think } => run.closed(source, queue_depth as usize, think)?,
        SourcePacing::Timed => run.open(source)?,
    }
    match source.failure() {
        Some(failure) => Err(failure.clone().into()),
        None => Ok(run.report(pacing)),
    }
}

/// A replay on its way.
struct Run<'a> {
    device: &'a mut dyn BlockDevice,
    payload: Payload<'a>,
    progress: &'a mut dyn Progress,
    start: Nanos,
    end: Nanos,
    issued: u64,
    completed: u64,
    failed: u64,
    bytes: u64,
    latency: LatencySummary,
    late: LatencySummary,
}

impl<'a> Run<'a> {
    fn new(device: &'a mut dyn BlockDevice, payload: Payload<'a>, progress: &'a mut dyn Progress) -> Self {
        let start = device.now();
        let (latency, late) = (LatencySummary::new(), LatencySummary::new());
        Self {
            device,
            payload,
            progress,
            start,
            end: start,
            issued: 0,
            completed: 0,
            failed: 0,
            bytes: 0,
            latency,
            late,
        }
    }

    fn open(&mut self, source: &mut FlowSource) -> Result<(), ReplayError> {
        let most = match self.device.info().clock {
            Clock::Virtual => MOST_OUTSTANDING,
            // Completions that are ready are taken at once; the others must not hold ever more buffers.
            Clock::Wall => (4 * self.device.info().queue_depth as usize).clamp(1, MOST_OUTSTANDING),
        };
        for request in source {
            let intended = Nanos(self.start.0.saturating_add(request.at.0));
            while self.device.outstanding() >= most {
                self.reap()?;
            }
            let early = intended.since(self.device.now());
            if early > Nanos(0) {
                self.device.pause(early).map_err(|error| self.told(error))?;
            }
            self.late.record(self.device.now().since(intended));
            self.submit(&request)?;
        }
        self.drain()
    }

    fn closed(&mut self, source: &mut FlowSource, depth: usize, think: Nanos) -> Result<(), ReplayError> {
        // When each free place in the queue may be used again.
        let mut free: VecDeque<Nanos> = (0..depth).map(|_| self.start).collect();
        for request in source {
            while free.is_empty() {
                let completed_at = self.reap()?;
                free.push_back(Nanos(completed_at.0.saturating_add(think.0)));
            }
            let ready = free.pop_front().unwrap_or(self.start).since(self.device.now());
            if ready > Nanos(0) {
                self.device.pause(ready).map_err(|error| self.told(error))?;
            }
            self.submit(&request)?;
        }
        self.drain()
    }

    fn submit(&mut self, told: &FlowRequest) -> Result<(), ReplayError> {
        if self.issued.is_multiple_of(LOOK_EVERY) {
            self.progress.advance("replaying", 0.0).map_err(|error| self.told(error))?;
        }
        self.issued += 1;
        self.bytes = self.bytes.saturating_add(told.length.0);
        let mut request =
            Request { operation: told.operation, offset: told.offset, length: told.length, ..Request::flush() };
        (request.fua, request.tag, request.buffer) = (told.fua, self.issued, (self.payload)(told));
        self.device.submit(request).map_err(|error| self.told(error))
    }

    /// Takes one completion; when it completed.
    fn reap(&mut self) -> Result<Nanos, ReplayError> {
        let completion = self.device.wait().map_err(|error| self.told(error))?;
        let lost =
            || ReplayError::Device { number: self.issued, error: BlockError::Protocol("the device lost a request") };
        let completion = completion.ok_or_else(lost)?;
        self.note(&completion);
        Ok(completion.completed_at)
    }

    fn drain(&mut self) -> Result<(), ReplayError> {
        while self.device.outstanding() > 0 {
            self.reap()?;
        }
        Ok(())
    }

    fn note(&mut self, completion: &Completion) {
        self.completed += 1;
        self.failed += u64::from(completion.result.is_err());
        self.latency.record(completion.completed_at.since(completion.submitted_at));
        self.end = self.end.max(completion.completed_at);
    }

    fn told(&self, error: BlockError) -> ReplayError {
        ReplayError::Device { number: self.issued.max(1), error }
    }

    fn report(&self, pacing: SourcePacing) -> ReplayReport {
        ReplayReport {
            requests: self.completed,
            failed: self.failed,
            bytes: self.bytes,
            elapsed_ns: self.end.since(self.start).0,
            latency: self.latency.percentiles(),
            issue_error: (pacing == SourcePacing::Timed).then(|| self.late.percentiles()),
        }
    }
}
