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
use crate::system::{DatabaseSystem, Shown};
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

    fn remedy(&self, shown: &Shown) -> String {
        let normal = match shown.is_sqlite_in_wal_mode() {
            true => "longer transactions, or with that risk synchronous=NORMAL",
            false => "longer transactions, or with that risk journal_mode=WAL and synchronous=NORMAL",
        };
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, normal),
            (DatabaseSystem::Postgres, "commit_delay, or with that risk synchronous_commit=off"),
            (DatabaseSystem::MariaDb, "binlog_commit_wait_count, or with that risk innodb_flush_log_at_trx_commit=2"),
        ]);
        format!(
            "commit several transactions with one flush, or accept that a power cut loses the last commits \
             ({settings})"
        )
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        flush_by(steps, self.unit)
    }
}
