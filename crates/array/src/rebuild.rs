//! Filling a new drive with what the one before it held, row by row, while requests continue.
//!
//! A few rows are in progress at once, each holding its row as a write does. With a rate, a row starts no earlier than
//! the bytes of those before it take at that rate.

use super::SimulatedArray;
use super::activity::RebuildEnd;
use super::controller::Timer;
use super::members::State;
use super::work::{Parent, RowWork, Work};

/// Rows that are rebuilt at once: so many that reads of the others and writes of the spare overlap.
const AT_ONCE: u32 = 8;

impl SimulatedArray {
    /// Puts a new drive in the place of one that has failed, and starts to fill it; `false` where the place has not
    /// failed, or where the level holds nothing to fill it from.
    pub fn replace_drive(&mut self, member: usize) -> bool {
        let has_failed = member < self.members.len() && matches!(self.members.get(member).state, State::Failed);
        if !has_failed || self.stripes.copies + self.stripes.parities == 1 {
            return false;
        }
        let epoch = self.number();
        let seed = self.seed.wrapping_add(self.config.members.into()).wrapping_add(epoch);
        let Ok(drive) = self.new_drive(seed) else { return false };
        if let Err(error) = self.members.replace(member, drive, epoch, self.now_ns) {
            self.fault.get_or_insert(error);
            return false;
        }
        self.tally.rebuild_begins(member, self.stripes.rows, self.now_ns);
        self.rebuild_more(member);
        true
    }

    /// Starts rows of a place, as many as may be in progress.
    pub(super) fn rebuild_more(&mut self, member: usize) {
        let (rows, now_ns, chunk) = (self.stripes.rows, self.now_ns, self.stripes.chunk_bytes);
        loop {
            let rate = self.config.rebuild_bytes_per_s;
            let State::Rebuilding(rebuilt) = &mut self.members.get_mut(member).state else { return };
            if rebuilt.under_way >= AT_ONCE || rebuilt.next >= rows {
                return;
            }
            if now_ns < rebuilt.next_ns {
                // One timer is enough: it is set by the row that came before.
                return;
            }
            let (row, epoch) = (rebuilt.next, rebuilt.epoch);
            (rebuilt.next, rebuilt.under_way) = (row + 1, rebuilt.under_way + 1);
            if rate > 0 {
                let takes_ns = u128::from(chunk) * 1_000_000_000 / u128::from(rate);
                rebuilt.next_ns = rebuilt.next_ns.max(now_ns) + takes_ns as u64;
                self.controller.set(rebuilt.next_ns, Timer::Rebuild(member));
            }
            let (row_bytes, parent) = (self.stripes.row_bytes(), Parent::Rebuild(member, epoch));
            let work = Work::Rebuild(RowWork { row, ..RowWork::default() }, member);
            self.add_job(parent, (row * row_bytes, (row + 1) * row_bytes), 0, work);
        }
    }

    /// A row of a place is rebuilt, or could not be.
    pub(super) fn row_rebuilt(&mut self, member: usize, epoch: u64, start: u64, is_broken: bool) {
        let row = start / self.stripes.row_bytes();
        let place = self.members.get_mut(member);
        let State::Rebuilding(rebuilt) = &mut place.state else { return };
        if rebuilt.epoch != epoch {
            return;
        }
        if is_broken {
            return self.fail_drive(member);
        }
        rebuilt.under_way -= 1;
        rebuilt.also.insert(row);
        while rebuilt.also.remove(&rebuilt.below) {
            rebuilt.below += 1;
        }
        let below = rebuilt.below;
        if below == self.stripes.rows {
            place.state = State::Whole;
            self.tally.rebuild_goes_on(member, below, Some((RebuildEnd::Whole, self.now_ns)));
        } else {
            self.tally.rebuild_goes_on(member, below, None);
            self.rebuild_more(member);
        }
    }
}
