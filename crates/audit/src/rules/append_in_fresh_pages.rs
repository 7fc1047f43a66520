//! Rule 6: what is appended and made durable does not rewrite the flash page that was made durable before.
//!
//! A packed redo log appends some hundred bytes, flushes, and appends the next ones into the same page: each flush
//! programs that page again, and the drive must have read it where the write was shorter. Source of the pattern and of
//! its cure, the sparse log that begins each commit in a fresh page: Qiao et al., FAST 2022 (the B⁻-tree), section on
//! redo logging.
//!
//! A write breaks the rule if the page that it begins in is the one that the last write of its file ended in, and that
//! one has been made durable since. A file's last write alone is remembered, so that pages of a table that happen to be
//! written twice do not count: they are no appends.

use std::collections::BTreeMap;

use flashwise_block::{ByteSize, Operation};
use flashwise_profile::DeviceProfile;

use super::{Check, known_size};
use crate::mend::relocate;
use crate::play::Step;
use crate::request::{Seen, Space};
use crate::tally::Tally;

/// Files whose last write is remembered.
const FILES_MAX: usize = 1 << 14;

struct AppendInFreshPages {
    page: u64,
    /// For each file, the page that its last write ended in, and how many flushes there had been.
    last: BTreeMap<Space, (u64, u64)>,
    flushes: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let page = known_size(&profile.parameters.page_bytes, "flash page")?;
    Ok(Box::new(AppendInFreshPages { page, last: BTreeMap::new(), flushes: 0 }))
}

impl Check for AppendInFreshPages {
    fn observe(&mut self, seen: &Seen, tally: &mut Tally) {
        self.flushes += u64::from(seen.record.operation == Operation::Flush);
        if !seen.is_write() {
            return;
        }
        let (first, last) = (seen.record.offset.0 / self.page, (seen.end() - 1) / self.page);
        let space = seen.space();
        let before = self.last.get(&space).copied();
        if before.is_some() || self.last.len() < FILES_MAX {
            // A write that is durable at completion counts as flushed at once.
            let at = if seen.record.fua { self.flushes.wrapping_sub(1) } else { self.flushes };
            self.last.insert(space, (last, at));
        }
        if seen.record.length.0 >= self.page {
            return;
        }
        tally.speaks();
        if before.is_some_and(|(page, flushes)| page == first && flushes != self.flushes) {
            tally.breaks(seen);
        }
    }

    fn statement(&self) -> String {
        format!("appends that are flushed should each begin in a page of {} of their own", ByteSize(self.page))
    }

    fn remedy(&self) -> String {
        let page = ByteSize(self.page);
        format!(
            "pad each commit of the log to {page} (in MariaDB innodb_log_write_ahead_size), or commit several transactions \
             together (in PostgreSQL commit_delay, in MariaDB binlog_commit_wait_count)"
        )
    }

    fn mend(&self, steps: &[Step]) -> Vec<Step> {
        relocate(steps, self.page, true)
    }
}
