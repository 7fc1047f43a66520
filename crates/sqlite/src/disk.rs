//! Requests to the device: submitted in batches, awaited, recorded.

use flashwise_block::{BlockDevice, BlockError, ByteSize, DeviceInfo, IoBuffer, Nanos, Operation, Request};
use flashwise_trace::{FileRole, IoRecord};
use libsqlite3_sys as sqlite;

use crate::error::Failure;
use crate::ledger::Ledger;
use crate::{SqliteError, volume};

/// The device with its ledger.
pub(crate) struct Disk {
    /// `None` once it was given back to the caller.
    device: Option<Box<dyn BlockDevice + Send>>,
    info: DeviceInfo,
    pub ledger: Ledger,
    /// Why no request can be made any more: after a device was lost, completions of old requests could be confused with
    /// new ones.
    lost: Option<String>,
}

/// A request that was handed to the device.
struct Asked {
    record: IoRecord,
    buffer: Option<IoBuffer>,
}

impl Disk {
    /// Accepts a device after checking its properties.
    pub(crate) fn new(device: Box<dyn BlockDevice + Send>, recording: bool) -> Result<Self, SqliteError> {
        let info = device.info().clone();
        let refuse = |reason: String| Err(SqliteError::Drive { name: info.name.clone(), reason });
        let block = info.logical_block.0;
        if !block.is_power_of_two() || block > 4096 {
            return refuse(format!("logical blocks of {}: a power of two up to 4 KiB is needed", info.logical_block));
        }
        if info.max_transfer.0 < 4096 || !info.max_transfer.0.is_multiple_of(4096) {
            return refuse(format!("requests of at most {}: a multiple of 4 KiB is needed", info.max_transfer));
        }
        if info.capacity.0 < volume::EXTENT {
            return refuse(format!("its {} hold no extent of 1 MiB", info.capacity));
        }
        Ok(Self { device: Some(device), info, ledger: Ledger::new(recording), lost: None })
    }

    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(crate) fn device(&self) -> Option<&(dyn BlockDevice + Send)> {
        self.device.as_deref()
    }

    pub(crate) fn take_device(&mut self) -> Option<Box<dyn BlockDevice + Send>> {
        self.device.take()
    }

    /// Makes every write that completed before durable.
    pub(crate) fn flush(&mut self, role: FileRole) -> Result<(), Failure> {
        self.run(role, vec![Request::flush()]).map(drop)
    }

    /// Lets time pass without requests.
    pub(crate) fn pause(&mut self, time: Nanos) -> Result<(), Failure> {
        let paused = self.device.as_deref_mut().map_or(Ok(()), |device| device.pause(time));
        paused.map_err(|error| Failure::block(Operation::Flush, &error))
    }

    /// Submits all requests, up to the device's queue depth at once, and waits for all of them.
    ///
    /// The result has one buffer per request, in the order of the requests. After a failure nothing more is submitted,
    /// requests in flight are awaited, and the first failure is returned.
    pub(crate) fn run(&mut self, role: FileRole, requests: Vec<Request>) -> Result<Vec<Option<IoBuffer>>, Failure> {
        if let Some(reason) = &self.lost {
            return Err(Failure::new(sqlite::SQLITE_IOERR, reason.clone()));
        }
        let Some(device) = self.device.as_deref_mut() else {
            return Err(Failure::new(sqlite::SQLITE_IOERR, "the device was given back to its owner"));
        };
        let began = device.now();
        let depth = self.info.queue_depth.max(1) as usize;
        let mut waiting = requests.into_iter();
        let mut asked: Vec<Asked> = Vec::with_capacity(waiting.len());
        let mut in_flight = 0;
        let mut failed: Option<Failure> = None;
        loop {
            while failed.is_none() && in_flight < depth {
                let Some(request) = waiting.next() else { break };
                let record = unanswered(device.now(), role, &request);
                match device.submit(request.tagged(asked.len() as u64)) {
                    Ok(()) => {
                        in_flight += 1;
                        asked.push(Asked { record, buffer: None });
                    }
                    Err(error) => failed = Some(Failure::block(record.operation, &error)),
                }
            }
            if in_flight == 0 {
                break;
            }
            let answer = match device.wait() {
                Ok(Some(completion)) => Ok(completion),
                Ok(None) => Err(BlockError::Protocol("the device lost a request")),
                Err(error) => Err(error),
            };
            let answer = answer.and_then(|completion| match usize::try_from(completion.tag) {
                Ok(tag) if tag < asked.len() => Ok((tag, completion)),
                _ => Err(BlockError::Protocol("the device completed a request that was not submitted")),
            });
            match answer {
                Ok((tag, completion)) => {
                    in_flight -= 1;
                    let asked = &mut asked[tag];
                    asked.record.at = completion.submitted_at;
                    asked.record.latency = completion.latency();
                    if let Err(error) = &completion.result {
                        failed.get_or_insert_with(|| Failure::block(asked.record.operation, error));
                    }
                    asked.buffer = completion.buffer;
                }
                Err(error) => {
                    self.lost = Some(format!("the drive is lost: {error}"));
                    failed.get_or_insert_with(|| Failure::block(asked[0].record.operation, &error));
                    break;
                }
            }
        }
        self.ledger.spend(device.now().since(began));
        self.ledger.record(asked.iter().map(|asked| asked.record));
        match failed {
            Some(failure) => Err(failure),
            None => Ok(asked.into_iter().map(|asked| asked.buffer).collect()),
        }
    }

    /// Reads spans of the device into one buffer after another.
    pub(crate) fn read(&mut self, role: FileRole, requests: Vec<Request>) -> Result<Vec<IoBuffer>, Failure> {
        debug_assert!(requests.iter().all(|request| request.operation == Operation::Read));
        self.run(role, requests)?
            .into_iter()
            .map(|buffer| buffer.ok_or_else(|| Failure::new(sqlite::SQLITE_IOERR_READ, DATA_LESS)))
            .collect()
    }
}

const DATA_LESS: &str = "the device returned no data: a database needs a device that stores every byte";

fn unanswered(at: Nanos, role: FileRole, request: &Request) -> IoRecord {
    let Request { operation, offset, length, .. } = *request;
    IoRecord { at, operation, role, offset, length, latency: Nanos(0) }
}

/// A read request that brings its own memory.
pub(crate) fn read_request(start: u64, length: u64) -> Request {
    Request::read(ByteSize(start), ByteSize(length)).with_buffer(IoBuffer::zeroed(length as usize))
}
