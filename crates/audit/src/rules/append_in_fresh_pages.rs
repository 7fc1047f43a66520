//! Rule 6: a flushed append does not rewrite the flash page that an earlier flush made durable.
//!
//! A packed redo log appends some hundred bytes, flushes, and appends the next bytes to the same page: each flush
//! programs that page again, and the drive must read it first if the write is shorter. Source of the pattern and of the
//! remedy, a sparse log that starts each commit in a fresh page: Qiao et al., FAST 2022 (the B⁻-tree), section on redo
//! logging.
//!
//! A write violates the rule if it starts in the page in which the last write of its file ended, and that page has been
//! made durable since. Only a file's last write is remembered, so that pages of a table that happen to be written twice
//! do not count: they are not appends.

use std::collections::BTreeMap;

use flashwise_block::{ByteSize, Operation};
use flashwise_profile::DeviceProfile;

use super::{Check, known_size};
use crate::fix::relocate;
use crate::play::Step;
use crate::request::{ObservedRequest, Space};
use crate::system::{DatabaseSystem, Shown};
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
    fn observe(&mut self, seen: &ObservedRequest, tally: &mut Tally) {
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
        format!("each flushed append should start in a fresh page of {}", ByteSize(self.page))
    }

    fn remedy(&self, shown: &Shown) -> String {
        let page = ByteSize(self.page);
        let settings = shown.settings([
            (DatabaseSystem::Sqlite, "longer transactions"),
            (DatabaseSystem::Postgres, "commit_delay"),
            (DatabaseSystem::MariaDb, "innodb_log_write_ahead_size, binlog_commit_wait_count"),
        ]);
        format!("pad each log commit to {page}, or make one commit of several ({settings})")
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        relocate(steps, self.page, true)
    }
}
