//! Rule 11: a flush follows at least one write unit of writes.
//!
//! A flush before a unit is full makes the drive pad it and wait for the program. A *storm* is a series of such
//! flushes, one after the other. The threshold is the unit itself: from there on a flush costs no padding. On a drive
//! whose flushes cost nothing (power-loss protection) the rule is not applied. The first flush of a trace is left out:
//! what precedes it may are before the recording.

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_profile::DeviceProfile;

use super::{Check, known, known_size};
use crate::fix::flush_by;
use crate::play::Step;
use crate::request::ObservedRequest;
use crate::tally::Tally;

struct SyncLessOften {
    unit: u64,
    flush: Nanos,
    /// Bytes written since the last flush; `None` before the first.
    written: Option<u64>,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let unit = known_size(&profile.parameters.write_unit_bytes, "write unit")?;
    let flush = known(&profile.parameters.flush_ns, "time of a flush")?;
    Ok(Box::new(SyncLessOften { unit, flush: Nanos(flush), written: None }))
}

impl Check for SyncLessOften {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        if seen.is_write() {
            self.written = self.written.map(|bytes| bytes.saturating_add(seen.record.length.0));
        }
        if seen.record.operation != Operation::Flush && !(seen.is_write() && seen.record.fua) {
            return;
        }
        if let Some(bytes) = self.written.replace(0) {
            tally.speaks();
            if bytes < self.unit {
                tally.breaks(seen);
            }
        }
    }

    fn statement(&self) -> String {
        format!("a flush (it takes {}) should follow at least {} of writes", self.flush, ByteSize(self.unit))
    }

    fn remedy(&self) -> String {
        "commit several transactions with one flush. SQLite: longer transactions, or, if a power cut may lose the \
         last commits, journal_mode=WAL with synchronous=NORMAL; PostgreSQL: commit_delay or, on the same condition, \
         synchronous_commit=off; MariaDB: binlog_commit_wait_count or, on the same condition, \
         innodb_flush_log_at_trx_commit=2"
            .to_owned()
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        flush_by(steps, self.unit)
    }
}
