//! The drive's clock: what time it is, and what happens next.

use crate::event::{Event, EventQueue};

/// Virtual time and the events that are still to come.
#[derive(Default)]
pub(crate) struct Clock {
    pub(crate) now_ns: u64,
    pub(crate) events: EventQueue,
}

impl Clock {
    /// Lets `event` happen at a time that is not over.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, at_ns: u64, event: Event) {
        self.events.schedule(at_ns, event);
    }
}
