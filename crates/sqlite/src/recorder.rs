//! A drive that notes each request that it gets, while that is wanted.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Completion, Request};
use flashwise_trace::{FileRole, IoRecord};

/// A drive with a record of its requests.
pub(crate) struct Recorder {
    device: Box<dyn BlockDevice + Send>,
    pub recording: bool,
    /// Places of the requests under way, by tag.
    under_way: BTreeMap<u64, (ByteSize, ByteSize)>,
    done: Vec<IoRecord>,
}

impl Recorder {
    pub(crate) fn new(device: Box<dyn BlockDevice + Send>) -> Self {
        Self { device, recording: false, under_way: BTreeMap::new(), done: Vec::new() }
    }

    /// The requests that completed since the last call; whose bytes they are is not known here.
    pub(crate) fn take(&mut self) -> Vec<IoRecord> {
        std::mem::take(&mut self.done)
    }

    pub(crate) fn into_device(self) -> Box<dyn BlockDevice + Send> {
        self.device
    }

    fn note(&mut self, completion: Option<Completion>) -> Option<Completion> {
        if let Some(completion) = &completion
            && let Some((offset, length)) = self.under_way.remove(&completion.tag)
        {
            let (at, latency, operation) = (completion.submitted_at, completion.latency(), completion.operation);
            self.done.push(IoRecord { at, operation, role: FileRole::Unknown, offset, length, latency });
        }
        completion
    }
}

impl BlockDevice for Recorder {
    flashwise_block::forward!(device: info now outstanding pause counters writable extents);

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        if self.recording {
            self.under_way.insert(request.tag, (request.offset, request.length));
        }
        self.device.submit(request)
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        let completion = self.device.wait()?;
        Ok(self.note(completion))
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        let completion = self.device.poll()?;
        Ok(self.note(completion))
    }
}
