//! Suspension: a read interrupts a program or an erase, is served, and the rest follows.
//!
//! ```text
//!   die   ── program ──┤ suspend ├─ sense ─ … data ─┤ rest of the program ──
//!                      ▲ a read arrives
//! ```
//!
//! A read that comes while the array programs or erases stops it, unless the operation is nearly over or has let as
//! many reads go before it as it may; then the read waits for its end. Reads that come while the operation is stopped
//! go before its rest too, and each counts. Only the array's work is interrupted: a read that comes while data is on
//! its way into the die, when the page register is taken, stops the array as soon as it starts.
//!
//! Source: Wu and He, "Reducing SSD Read Latency via NAND Flash Program and Erase Suspension", FAST 2012.

use super::die::Phase;
use super::{FlashArray, FlashOpKind};
use crate::config::Suspend;
use crate::event::{Event, EventQueue};
use crate::list::NONE;
use crate::state::AtRest;

/// A program or an erase that stands still.
#[derive(Clone, Copy)]
pub(super) struct Suspended {
    /// The first of its commands.
    pub(super) op: u32,
    /// Reads that may still go before its end.
    pub(super) reads_left: u32,
    /// What its array has still to do.
    left_ns: u64,
}

impl Default for Suspended {
    fn default() -> Self {
        Self { op: NONE, reads_left: 0, left_ns: 0 }
    }
}

impl FlashArray {
    /// Stops what a die does in favour of a waiting read; `false` when it continues.
    pub(super) fn interrupt(&mut self, die: u32, now_ns: u64) -> bool {
        if self.suspension.suspend == Suspend::None {
            return false;
        }
        let state = &mut self.dies[die as usize];
        let suspension = &self.suspension;
        let (allowed, delay_ns, left_min_ns) = match self.ops[state.current].kind {
            FlashOpKind::Read => return false,
            FlashOpKind::Program => {
                let allowed = suspension.suspend == Suspend::ProgramErase;
                (allowed, suspension.program_ns, suspension.program_left_min_ns)
            }
            FlashOpKind::Erase => (true, suspension.erase_ns, suspension.erase_left_min_ns),
        };
        let left_ns = state.array_end_ns.saturating_sub(now_ns);
        let runs = state.phase == Phase::Array && left_ns > left_min_ns;
        let read_waits = self.queues[die as usize].commands.has_any_of(self.ranks.of_reads());
        if !(allowed && runs && read_waits && state.suspended.reads_left > 0) {
            return false;
        }
        match self.ops[state.current].kind {
            FlashOpKind::Erase => self.statistics.erase_suspensions += 1,
            _ => self.statistics.program_suspensions += 1,
        }
        state.statistics.array_ns -= left_ns;
        (state.suspended.op, state.suspended.left_ns) = (state.current, left_ns);
        (state.current, state.phase, state.delay_ns) = (NONE, Phase::Idle, delay_ns);
        let suspended = state.suspended.op;
        if self.rules.planes_per_die > 1 {
            self.planes_work(suspended, -(left_ns as i64));
        }
        true
    }

    /// Whether a read goes before the rest of what is suspended; counts it.
    pub(super) fn read_goes_first(&mut self, die: u32) -> bool {
        let state = &mut self.dies[die as usize];
        if state.suspended.reads_left == 0 || !self.queues[die as usize].commands.has_any_of(self.ranks.of_reads()) {
            return false;
        }
        state.suspended.reads_left -= 1;
        true
    }

    /// Continues with what is suspended.
    pub(super) fn resume(&mut self, die: u32, now_ns: u64, events: &mut EventQueue) {
        let state = &mut self.dies[die as usize];
        state.current = std::mem::replace(&mut state.suspended.op, NONE);
        let left_ns = state.suspended.left_ns;
        (state.phase, state.array_end_ns) = (Phase::Array, now_ns + left_ns);
        state.statistics.array_ns += left_ns;
        let resumed = state.current;
        if self.rules.planes_per_die > 1 {
            self.planes_work(resumed, left_ns as i64);
        }
        events.schedule(now_ns + left_ns, Event::ArrayDone { die });
    }
}

impl AtRest for Suspended {
    fn is_at_rest(&self) -> bool {
        self.op == NONE
    }
}
