//! Rule 20: on a memory card, a commit creates, deletes and truncates no file.
//!
//! Each change of the list of files makes the file system write its own journal, in units of its own: on ext4, a commit
//! with a rollback journal takes 4 flushes where the journal is deleted and 6 where it is truncated or kept, and one
//! with a write-ahead log 1 (`docs/guide/sd-card.md`). A trace of requests does not show such changes by themselves. It
//! shows a rollback journal, which is restarted for each transaction: a write to its start behind writes to the
//! database; and a file that is seen for the first time, written from its start, and flushed.

use std::collections::BTreeSet;

use flashwise_block::Operation;
use flashwise_profile::DeviceProfile;
use flashwise_trace::FileRole;

use super::{Check, SET_ALREADY, known_size};
use crate::play::Step;
use crate::request::{Facts, ObservedRequest, Space};
use crate::system::{DatabaseSystem, Shown};
use crate::tally::Tally;

/// Files that are remembered.
const FILES_MAX: usize = 1 << 16;

struct CommitToOneFile {
    /// Whether the rollback journal was started for the transaction that runs.
    is_journaled: bool,
    seen: BTreeSet<u32>,
    /// A file that is new and was not flushed yet.
    new: Option<u32>,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    known_size(&profile.card.allocation_unit_bytes, "allocation unit")?;
    Ok(Box::new(CommitToOneFile { is_journaled: false, seen: BTreeSet::new(), new: None }))
}

impl CommitToOneFile {
    /// Whether a request starts a rollback journal, or flushes a file that is new.
    fn is_change(&mut self, seen: &ObservedRequest) -> bool {
        let record = &seen.record;
        if record.role == FileRole::Journal {
            let starts = seen.is_write() && record.offset.0 == 0 && !self.is_journaled;
            self.is_journaled |= starts;
            return starts;
        }
        if record.role == FileRole::Database && seen.is_write() {
            self.is_journaled = false;
        }
        let Space::File(file) = seen.space() else { return false };
        if self.seen.len() < FILES_MAX && self.seen.insert(file) && seen.is_write() && record.offset.0 == 0 {
            self.new = Some(file);
        }
        let flushes = record.operation == Operation::Flush && self.new == Some(file);
        if flushes {
            self.new = None;
        }
        flushes && self.seen.len() > 1
    }
}

impl Check for CommitToOneFile {
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
        let is_change = self.is_change(seen);
        if is_change || seen.record.operation == Operation::Flush {
            tally.speaks();
        }
        if is_change {
            tally.breaks(seen);
        }
    }

    fn hidden(&self, facts: &Facts) -> Option<String> {
        (facts.requests > 0 && facts.files == 0).then(|| "the trace does not show files".to_owned())
    }

    fn statement(&self) -> String {
        "commits should create, delete and truncate no file: on a card the file system's journal costs more than the \
         data"
            .to_owned()
    }

    fn remedy(&self, shown: &Shown) -> String {
        if shown.is_sqlite_in_wal_mode() {
            return SET_ALREADY.to_owned();
        }
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, "journal_mode=WAL"),
            (DatabaseSystem::Postgres, "wal_recycle=on"),
            (DatabaseSystem::MariaDb, "sync_binlog with a large max_binlog_size"),
        ]);
        format!("keep one log file and write it in place ({settings})")
    }

    fn can_change(&self, shown: &Shown) -> bool {
        !shown.is_sqlite_in_wal_mode()
    }

    /// As with a log: each page once, and one flush.
    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        steps.iter().filter(|step| step.role != FileRole::Journal).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;
    use crate::tests::golden::golden;
    use crate::tests::{card, check, flush, on_device, one_by_one, record, why_open, write};
    use flashwise_trace::TraceRecord;

    /// A transaction with a rollback journal.
    fn transaction(n: u64) -> Vec<TraceRecord> {
        let journal = |offset, length| record(Operation::Write, FileRole::Journal, offset, length);
        let flush_journal = record(Operation::Flush, FileRole::Journal, 0, 0);
        vec![
            journal(0, 512),
            journal(512, 4096),
            flush_journal,
            journal(0, 512),
            flush_journal,
            write(n * 4, 4),
            flush(),
        ]
    }

    #[test]
    fn a_rollback_journal_is_started_once_a_transaction() {
        let all: Vec<_> = (0..10).flat_map(transaction).collect();
        check(Rule::CommitToOneFile, &card(), &[(&all, 10, 40)]);
    }

    #[test]
    fn a_file_a_commit_is_counted_and_one_that_stays_is_not() {
        let of = |file, operation, offset, length| TraceRecord {
            file: Some(file),
            ..record(operation, FileRole::Unknown, offset, length)
        };
        let files: Vec<_> =
            (0..5).flat_map(|n| [of(n, Operation::Write, 0, 4096), of(n, Operation::Flush, 0, 0)]).collect();
        let one: Vec<_> =
            (0..5).flat_map(|n| [of(0, Operation::Write, n * 4096, 4096), of(0, Operation::Flush, 0, 0)]).collect();
        check(Rule::CommitToOneFile, &card(), &[(&files, 4, 5), (&one, 0, 5)]);
        let why = why_open(Rule::CommitToOneFile, &card(), &[on_device(0, 4096)]);
        assert_eq!(why, "the trace does not show files");
    }

    #[test]
    fn a_journal_costs_its_writes_and_its_flushes() {
        let work: Vec<_> = (0..100).flat_map(transaction).collect();
        let logged: Vec<_> = (0..100).flat_map(|n| [write(n * 4, 4), flush()]).collect();
        let found = golden(Rule::CommitToOneFile, &card(), &one_by_one(&work), &one_by_one(&logged));
        assert!(found.cost.time_ns.unwrap() > 0 && found.cost.flash_bytes.unwrap() > 0, "{found:?}");
    }
}
