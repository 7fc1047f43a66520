//! Where requests spend their time: waiting in the host's queue, arriving, waiting for flash, being served.
//!
//! ```text
//!   submitted ─ waiting ─▶ taken ─ arriving ─▶ ready ─ before flash ─▶ first flash command ─▶ completed
//!                          └────────────────────────── service ────────────────────────────┘
//! ```
//!
//! Only sums are kept; a mean is a sum over its number of requests.

use flashwise_block::Nanos;

use crate::host::Active;

/// Sums of the time that completed requests of a kind spent in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Completed requests.
    pub requests: u64,
    /// From submission until the drive took them.
    pub waiting: Nanos,
    /// From then to their first effect: command and written data over the link, firmware.
    pub arriving: Nanos,
    /// From being taken to completion.
    pub service: Nanos,
    /// Requests for which the flash worked before they completed.
    pub with_flash: u64,
    /// Of those, from the first effect to the first flash command.
    pub before_flash: Nanos,
}

impl StageTimes {
    /// Adds a request that completes now.
    #[inline(always)]
    pub(crate) fn add(&mut self, active: &Active, now_ns: u64) {
        self.requests += 1;
        self.waiting.0 += active.taken_ns - active.submitted_at.0;
        self.arriving.0 += active.ready_ns - active.taken_ns;
        self.service.0 += now_ns - active.taken_ns;
        if let Some(flash_ns) = active.flash_ns {
            self.with_flash += 1;
            self.before_flash.0 += flash_ns - active.ready_ns;
        }
    }
}

crate::state::state! {
    StageTimes { saved { requests, waiting, arriving, service, with_flash, before_flash } }
}
