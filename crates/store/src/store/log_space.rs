//! The log's space: what keeps the log short, and what a medium that was full needs.

use std::sync::atomic::Ordering;

use super::{Shared, WriterState};
use crate::error::{Result, StoreError};
use crate::pages::cache::lock;
use crate::superblock::Superblock;

/// Shares of the log, in sixteenths. From the first on, each commit writes back some pages that hold the log's tail
/// when it is done; beyond the second it waits until there is space. A group takes up to four sixteenths, so the log
/// never overflows.
const PACED_FROM: u64 = 9;
const FORCED_FROM: u64 = 11;
/// What forced write-back leaves of the log.
const FORCED_TO: u64 = 7;
/// The tail moves, with two writes of the superblock, when it frees this much.
const TAIL_STEP: u64 = 1;
const SIXTEENTHS: u64 = 16;
/// Log blocks for which a paced commit writes back one batch of pages.
const BLOCKS_PER_BATCH: u64 = 4;

impl Shared {
    /// Keeps the log short: writes back pages that hold its tail.
    pub(super) fn make_space(&self, writer: &mut WriterState) -> Result<()> {
        self.pages.cache.write_new_pages()?;
        let (share, used) = (|sixteenths: u64| self.log_share(sixteenths), self.log.used_blocks());
        if used > share(FORCED_FROM) {
            self.queue.sync_to(self.log.appended_seq())?;
            if let Some(seq) = self.log.seq_behind(share(FORCED_TO)) {
                self.pages.cache.write_older_than(seq)?;
            }
            self.move_tail(writer, 1)?;
            if self.log.used_blocks() > share(FORCED_FROM) {
                let why = "the log has no space, and the pages that need it cannot be written; close the store and \
                           open it again";
                return Err(StoreError::Invalid(why.to_owned()));
            }
        } else if used > share(PACED_FROM) {
            self.move_tail(writer, share(TAIL_STEP).max(1))?;
        }
        Ok(())
    }

    fn log_share(&self, sixteenths: u64) -> u64 {
        self.log.ring_blocks() * sixteenths / SIXTEENTHS
    }

    /// Writes back some pages that hold the log's tail, so that no commit has to wait for many. Without the writer's
    /// lock: commits of other threads gather meanwhile, and share the next flush. There is space in the log still, so
    /// an error is left to the commit that needs some.
    pub(super) fn pace(&self) {
        let used = self.log.used_blocks();
        let grown = used.saturating_sub(self.used_before.swap(used, Ordering::Relaxed));
        if used <= self.log_share(PACED_FROM) {
            return;
        }
        let Some(seq) = self.log.seq_behind(self.log_share(FORCED_TO)) else { return };
        for _ in 0..1 + grown / BLOCKS_PER_BATCH {
            if !self.pages.cache.write_some_older_than(seq).is_ok_and(|written| written > 0) {
                break;
            }
        }
    }

    /// Frees the log's blocks that no page needs, if there are at least `least`.
    fn move_tail(&self, writer: &mut WriterState, least: u64) -> Result<()> {
        let cache = &self.pages.cache;
        cache.settle(&mut lock(&cache.write_back));
        let oldest = lock(&cache.ledger).oldest();
        let tail = self.log.block_of(oldest);
        if tail < writer.superblock.tail + least {
            return Ok(());
        }
        // The number of maps and the last sequence number are those of what was appended: it has to be durable.
        self.queue.sync_to(self.log.appended_seq())?;
        let mut superblock = writer.superblock;
        superblock.engine_word = writer.pages.maps;
        self.log.describe(&mut superblock, tail);
        self.write_superblock(writer, superblock)?;
        self.log.free_to(tail);
        Ok(())
    }

    /// Makes a superblock durable, which counts from then on.
    pub(super) fn write_superblock(&self, writer: &mut WriterState, mut superblock: Superblock) -> Result<()> {
        // Each attempt has a number of its own: of a failed one, a copy may be on the medium.
        writer.superblock.generation += 1;
        superblock.generation = writer.superblock.generation;
        superblock.write(&self.disk, &mut writer.copy)?;
        writer.superblock = superblock;
        Ok(())
    }

    /// Everything into the pages, and unused space back to the medium.
    pub(super) fn checkpoint(&self, writer: &mut WriterState) -> Result<()> {
        let appended = self.log.appended_seq();
        self.queue.sync_to(appended)?;
        let cache = &self.pages.cache;
        cache.write_older_than(appended)?;
        self.move_tail(writer, 1)?;
        cache.give_back(&mut lock(&cache.write_back))
    }

    /// After the medium was full: what deletes have freed becomes space, and the reserve is written again before
    /// anything else may take it.
    pub(super) fn restore_reserve(&self, writer: &mut WriterState) -> Result<()> {
        let reserve = &self.pages.cache.reserve;
        if !reserve.is_released() || reserve.restore().is_ok() {
            return Ok(());
        }
        self.checkpoint(writer)?;
        reserve.restore().map_err(|error| match error.is_full() {
            true => StoreError::MediumFull { place: self.disk.name() },
            false => error,
        })
    }
}
