//! A simulated drive as a medium: it has events and a clock of its own.

use std::collections::VecDeque;

use flashwise_block::{BlockDevice, BlockError, Completion, FlashCounters, Nanos, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd, SsdError};

use super::Done;

/// A drive. Its clock is at its last event; it is brought to the present when a request goes to it.
pub(crate) struct Drive {
    drive: SimulatedSsd,
    /// Completions that came while the drive's clock was brought to the present.
    early: VecDeque<Done>,
}

fn done(completion: Completion) -> Done {
    let Completion { tag, completed_at, result, buffer, .. } = completion;
    Done { tag, at_ns: completed_at.0, result, buffer }
}

impl Drive {
    pub(crate) fn new(config: DeviceConfig, seed: u64) -> Result<Self, SsdError> {
        Ok(Self { drive: SimulatedSsd::new(config, seed)?, early: VecDeque::new() })
    }

    pub(crate) fn get(&self) -> &SimulatedSsd {
        &self.drive
    }

    pub(crate) fn get_mut(&mut self) -> &mut SimulatedSsd {
        &mut self.drive
    }

    pub(crate) fn submit(&mut self, request: Request, now_ns: u64) -> Result<(), BlockError> {
        self.catch_up(now_ns)?;
        self.drive.submit(request)
    }

    pub(crate) fn next_time(&self) -> Option<u64> {
        if let Some(done) = self.early.front() {
            return Some(done.at_ns);
        }
        if self.drive.has_completions() {
            return Some(self.drive.now().0);
        }
        // An idle drive with completions pending runs garbage collection first.
        let at_rest = || (self.drive.outstanding() > 0).then(|| self.drive.now());
        self.drive.next_event().or_else(at_rest).map(|time| time.0)
    }

    pub(crate) fn advance(&mut self, limit_ns: u64) -> Result<Option<Done>, BlockError> {
        if let Some(early) = self.early.pop_front() {
            return Ok(Some(early));
        }
        match self.drive.wait_within(Nanos(limit_ns)) {
            Some(completion) => Ok(Some(done(completion))),
            None if self.drive.next_event().is_none() && self.drive.outstanding() > 0 => Err(flashwise_ssd::host::LOST),
            None => Ok(None),
        }
    }

    pub(crate) fn catch_up(&mut self, now_ns: u64) -> Result<(), BlockError> {
        while self.drive.now().0 < now_ns {
            match self.drive.wait_until(Nanos(now_ns))? {
                Some(completion) => self.early.push_back(done(completion)),
                None => break,
            }
        }
        Ok(())
    }

    pub(crate) fn flash_counters(&self) -> Option<FlashCounters> {
        self.drive.counters().flash
    }
}
