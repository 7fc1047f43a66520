//! Power cuts of an attached drive.
//!
//! ```text
//!   requests that the drive has done       complete normally
//!   other requests                         fail with an I/O error: they may be done, or not
//!   volatile data                          as in [`flashwise_ssd`]'s contract: each page as it last became durable
//! ```
//!
//! The drive serves again at once. Connections and the mounted file stay, as a host keeps its name for a drive that was
//! reset; injected faults stay too, because they belong to the medium.

use std::time::Instant;

use flashwise_block::{BlockError, Nanos};
use serde::{Deserialize, Serialize};

use super::{Active, Engine};
use crate::AttachError;

/// `EIO`.
const INPUT_OUTPUT: i32 = 5;

/// The effect of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerCut {
    /// When, on the drive's clock from the start on, ns.
    pub at_ns: u64,
    /// Requests in flight; they failed with I/O errors.
    pub lost_requests: u64,
    /// Cuts so far, with this one.
    pub power_cuts: u64,
}

impl Engine {
    /// Cuts the drive's power at a time, and restores it.
    ///
    /// # Errors
    /// [`AttachError::NoPowerCuts`] if power cuts are not enabled ([`flashwise_ssd::SimulatedSsd::allow_power_cuts`]).
    pub fn power_cut(&mut self, at: Instant) -> Result<PowerCut, AttachError> {
        self.catch_up(at)?;
        let cut_at = self.drive.now();
        let mut answers = std::mem::take(&mut self.refused);
        while let Some(completion) = self.ready.pop_front() {
            self.completed(completion, at, &mut answers);
        }
        self.refused = answers;
        self.revert_content()?;
        self.drive.power_cut()?;
        self.delayed.clear();
        let under_way = self.active.indexes();
        under_way.iter().for_each(|&index| self.lose(index, cut_at));
        self.power_cuts += 1;
        let lost_requests = under_way.len() as u64;
        Ok(PowerCut { at_ns: cut_at.since(self.baseline.at).0, lost_requests, power_cuts: self.power_cuts })
    }

    /// A command is lost with the power.
    fn lose(&mut self, index: u32, cut_at: Nanos) {
        let Some(active) = self.active.remove(index) else { return };
        let Active { command, captured, submitted, .. } = active;
        if let Some(capture) = &mut self.capture {
            capture.answered(captured, cut_at.since(submitted));
        }
        self.times.failed += 1;
        self.turnarounds.lost(command.client);
        let message = "the request was in flight".to_owned();
        let error = BlockError::Os { context: "the power was cut".to_owned(), message, errno: INPUT_OUTPUT };
        self.refused.push(command.completed(Err(error), None));
    }
}
