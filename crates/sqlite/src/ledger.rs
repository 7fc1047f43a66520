//! The requests to the drive and their latencies.

use flashwise_block::Nanos;
use flashwise_trace::{IoRecord, IoTrace};

/// The record of a VFS: one entry a request while recording is on, and the time spent in all of them.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub recording: bool,
    records: Vec<IoRecord>,
    io_time: Nanos,
}

impl Ledger {
    pub(crate) fn new(recording: bool) -> Self {
        Self { recording, records: Vec::new(), io_time: Nanos(0) }
    }

    /// Adds finished requests in the order of their submission.
    pub(crate) fn record(&mut self, records: impl IntoIterator<Item = IoRecord>) {
        if self.recording {
            self.records.extend(records);
        }
    }

    /// Adds time spent waiting for the drive.
    pub(crate) fn spend(&mut self, time: Nanos) {
        self.io_time += time;
    }

    pub(crate) fn io_time(&self) -> Nanos {
        self.io_time
    }

    /// Gives the trace away and starts a new one.
    pub(crate) fn take(&mut self) -> IoTrace {
        IoTrace { records: std::mem::take(&mut self.records) }
    }
}
