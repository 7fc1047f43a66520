//! A trace of all requests to an attached drive.
//!
//! ```text
//!   engine ── submitted, completed ─▶ in the order of submission ─ batches ─▶ capture thread ─▶ TraceWriter ─▶ file
//! ```
//!
//! A trace is in the order of submission, but completions come in another: a record waits for those before it. Times
//! are those of the drive's clock, from the first request on; each record has the time of submission and the latency.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use flashwise_block::Nanos;
use flashwise_trace::{Losses, TraceError, TraceFormat, TraceRecord, TraceWriter};
use serde::Serialize;

use crate::AttachError;
use crate::error::spawn;

/// The name in errors.
const THREAD: &str = "the capture's thread";
/// Records that are handed over together.
const BATCH: usize = 1024;
/// Capacity of a batch: some more records may be completed before it is handed over.
const ROOM: usize = 4 * BATCH;
/// Batches that may wait for the file; then the drive waits too.
const WAITING: usize = 64;

/// A trace that is being written.
#[derive(Debug)]
pub struct Capture {
    name: String,
    /// The number of the first record that waits.
    first: u64,
    waiting: VecDeque<(TraceRecord, bool)>,
    batch: Vec<TraceRecord>,
    /// The drive's time when the first request was submitted.
    began: Option<Nanos>,
    /// `None` once the writer has ended.
    sender: Option<SyncSender<Vec<TraceRecord>>>,
    /// Batches that are written, to be filled again.
    empty: Receiver<Vec<TraceRecord>>,
    writer: Option<JoinHandle<Result<(u64, Losses), TraceError>>>,
}

/// A trace that is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// The file.
    pub trace: String,
    /// Requests in it.
    pub requests: u64,
    /// Losses of the trace format.
    pub losses: Losses,
}

impl Capture {
    /// Starts a trace; `name` is for messages.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(format: TraceFormat, out: impl Write + Send + 'static, name: &str) -> Result<Self, AttachError> {
        let (sender, receiver) = sync_channel::<Vec<TraceRecord>>(WAITING);
        // One is being filled and one is being written.
        let (emptied, empty) = sync_channel::<Vec<TraceRecord>>(WAITING + 2);
        (0..WAITING + 1).for_each(|_| drop(emptied.try_send(Vec::with_capacity(ROOM))));
        let of_writer = name.to_owned();
        let write = move || {
            let mut writer = TraceWriter::new(format, out, &of_writer)?;
            for mut batch in receiver {
                batch.iter().try_for_each(|record| writer.write(record))?;
                batch.clear();
                // If the queue is full or its reader has gone, the batch is dropped.
                let _ = emptied.try_send(batch);
            }
            writer.finish()
        };
        let writer = spawn("capture", write).map_err(AttachError::system(THREAD))?;
        Ok(Self {
            name: name.to_owned(),
            first: 0,
            waiting: VecDeque::with_capacity(BATCH),
            batch: Vec::with_capacity(ROOM),
            began: None,
            sender: Some(sender),
            empty,
            writer: Some(writer),
        })
    }

    /// Records a submitted request; returns its number, for [`Self::answered`].
    pub(crate) fn submitted(&mut self, record: TraceRecord) -> u64 {
        let began = *self.began.get_or_insert(record.at);
        self.waiting.push_back((TraceRecord { at: record.at.since(began), ..record }, false));
        self.first + self.waiting.len() as u64 - 1
    }

    /// Records a completion.
    pub(crate) fn answered(&mut self, number: u64, latency: Nanos) {
        let Some((record, is_answered)) = self.waiting.get_mut((number - self.first) as usize) else { return };
        (record.latency, *is_answered) = (Some(latency), true);
        while let Some(&(record, true)) = self.waiting.front() {
            self.waiting.pop_front();
            self.first += 1;
            self.batch.push(record);
        }
    }

    /// Hands over completed records, if there are enough.
    pub(crate) fn flush(&mut self) -> Result<(), AttachError> {
        if self.batch.len() < BATCH { Ok(()) } else { self.hand_over() }
    }

    fn hand_over(&mut self) -> Result<(), AttachError> {
        let empty = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(ROOM));
        let batch = std::mem::replace(&mut self.batch, empty);
        match self.sender.as_ref().map(|sender| sender.send(batch)) {
            Some(Ok(())) => Ok(()),
            _ => self.end().map(drop),
        }
    }

    /// Lets the writer come to its end.
    fn end(&mut self) -> Result<(u64, Losses), AttachError> {
        self.sender = None;
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => Ok(written?),
            _ => Err(AttachError::system(THREAD)(std::io::Error::other("it ended before the capture did"))),
        }
    }

    /// Ends the trace; requests in flight are in it without a latency.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn finish(mut self) -> Result<Captured, AttachError> {
        self.batch.extend(self.waiting.drain(..).map(|(record, _)| record));
        self.hand_over()?;
        let (requests, losses) = self.end()?;
        Ok(Captured { trace: self.name, requests, losses })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use flashwise_block::{ByteSize, Operation};
    use flashwise_trace::{ReadOptions, TraceReader};

    use super::*;

    fn record(at: u64, fua: bool) -> TraceRecord {
        let record = TraceRecord::new(Nanos(at), Operation::Write, ByteSize(at << 12), ByteSize(4096));
        TraceRecord { fua, process: Some(7), ..record }
    }

    #[test]
    fn a_trace_is_in_the_order_of_submission_whatever_the_order_of_the_answers() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut capture = Capture::start(TraceFormat::Csv, file.reopen().unwrap(), "t.csv").unwrap();
        let numbers: Vec<_> = (0..3).map(|n| capture.submitted(record(100 + n, n == 1))).collect();
        capture.answered(numbers[2], Nanos(5));
        capture.answered(numbers[0], Nanos(9));
        let last = capture.submitted(record(110, false));
        capture.answered(last, Nanos(4));
        let captured = capture.finish().unwrap();
        assert_eq!((captured.requests, captured.trace.as_str()), (4, "t.csv"));

        file.rewind().unwrap();
        let mut reader = TraceReader::open(file.path(), &ReadOptions::of(TraceFormat::Csv)).unwrap();
        let mut told = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            told.push((record.at.0, record.latency.map(|latency| latency.0), record.fua, record.process));
        }
        let of = |at, latency, fua| (at, latency, fua, Some(7));
        let expected = [of(0, Some(9), false), of(1, None, true), of(2, Some(5), false), of(10, Some(4), false)];
        assert_eq!(told, expected, "the second one was never answered");
    }

    #[test]
    fn many_requests_go_through_without_being_kept() {
        let file = tempfile::tempfile().unwrap();
        let mut capture = Capture::start(TraceFormat::Csv, file, "t.csv").unwrap();
        for n in 0..10_000 {
            let number = capture.submitted(record(n, false));
            capture.answered(number, Nanos(1));
            capture.flush().unwrap();
            assert!(capture.waiting.is_empty() && capture.batch.len() < BATCH);
        }
        assert_eq!(capture.finish().unwrap().requests, 10_000);
    }

    #[test]
    fn a_file_that_takes_no_more_ends_the_capture_with_its_reason() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::from_raw_os_error(28))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut capture = Capture::start(TraceFormat::Csv, Full, "t.csv").unwrap();
        let number = capture.submitted(record(1, false));
        capture.answered(number, Nanos(1));
        let error = capture.finish().unwrap_err().to_string();
        assert!(error.contains("t.csv") && error.contains("No space left"), "{error}");
    }
}
