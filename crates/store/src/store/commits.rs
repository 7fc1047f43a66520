//! Commits: from a batch to the log, and what is taken back after a failure.
//!
//! ```text
//!   batch ─▶ prefetch ─▶ [writer's lock: space, conflicts, Group ─▶ Log::append] ─▶ growth ─▶ wait for the level
//! ```

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use flashwise_block::ByteSize;

use super::{Shared, WriterState};
use crate::batch::Batch;
use crate::commit::{Pending, Ticket};
use crate::engine::Index;
use crate::error::{Result, StoreError};
use crate::hash::{Counted, Table};
use crate::options::Durability;
use crate::pages::cache::lock;
use crate::pages::{Group, GroupUndo, take_back};
use crate::transaction::ReadSet;
use crate::value::Value;

/// Bytes of groups that wait for the log without anybody who waits for them.
pub(super) const UNSEEN_WAITING: usize = 64 << 10;

impl Shared {
    pub(crate) fn commit(&self, batch: Batch, until: Durability, reads: Option<&ReadSet>) -> Result<()> {
        self.check_batch(&batch)?;
        self.prefetch(&batch);
        let mut writer = self.lock_writer()?;
        if batch.operations.values().any(|operation| operation.value.is_some()) {
            self.restore_reserve(&mut writer)?;
        }
        self.make_space(&mut writer)?;
        self.go_on_dropping(&mut writer)?;
        if let Some(reads) = reads
            && reads.is_changed(self)?
        {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::Conflict);
        }
        // A keyspace may have been dropped since the check; its root may belong to something else by now.
        self.check_batch(&batch)?;
        let (mut user_bytes, mut growing) = (0, Vec::new());
        let ticket = self.apply(&mut writer, until, |group, seq| {
            let mut counted: Vec<(&Arc<Table>, Counted)> = Vec::new();
            for ((number, sort_key), operation) in &batch.operations {
                let index = &operation.keyspace.index;
                let value = operation.value.as_deref();
                user_bytes += (sort_key.len() - index.prefix_bytes() + value.map_or(0, <[u8]>::len)) as u64;
                let note = &mut |old| self.note_old(seq, *number, sort_key, old);
                let added = index.change(group, sort_key, value, note)?;
                let Index::Table(table) = index else { continue };
                match counted.last_mut() {
                    Some((last, counted)) if last.id == table.id => *counted += added,
                    _ => counted.push((table, added)),
                }
            }
            for (table, added) in counted {
                group.count(table, added)?;
                if added.bytes > 0 {
                    growing.push((Arc::clone(table), added.bytes.unsigned_abs()));
                }
            }
            Ok(())
        })?;
        for (table, added) in growing {
            // The batch is committed whether its table grows or not; a later one tries again.
            if self.grow(&mut writer, &table, added, until).is_err() {
                table.stuck(table.counts(&self.pages).map_or(1, |counts| counts.bytes));
            }
        }
        drop(writer);
        self.wait(ticket, until)?;
        self.user_bytes.fetch_add(user_bytes, Ordering::Relaxed);
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Refuses what cannot be stored.
    fn check_batch(&self, batch: &Batch) -> Result<()> {
        if batch.is_mixed {
            return Err(StoreError::Invalid("a batch has keyspaces of several stores: make one for each".to_owned()));
        }
        for ((_, sort_key), operation) in &batch.operations {
            self.owns(&operation.keyspace)?;
            operation.keyspace.exists()?;
            let index = &operation.keyspace.index;
            let (length, max) =
                (sort_key.len() - index.prefix_bytes(), index.key_max(self.geometry.page_bytes as usize));
            if length > max {
                let page = ByteSize(self.geometry.page_bytes);
                return Err(StoreError::KeyTooLong { length, page, max });
            }
        }
        Ok(())
    }

    /// Loads what a batch changes, several pages at once.
    fn prefetch(&self, batch: &Batch) {
        let operations: Vec<_> = batch.operations.iter().collect();
        for own in operations.chunk_by(|a, b| a.0.0 == b.0.0) {
            if let Some((_, operation)) = own.first() {
                operation.keyspace.index.prefetch(&self.pages, own.iter().map(|((_, key), _)| key.as_slice()));
            }
        }
    }

    /// Runs changes as one group. Without changes nothing is committed.
    pub(super) fn run(&self, until: Durability, changes: impl FnOnce(&mut Group<'_>, u64) -> Result<()>) -> Result<()> {
        let mut writer = self.lock_writer()?;
        self.make_space(&mut writer)?;
        let ticket = self.apply(&mut writer, until, changes)?;
        drop(writer);
        self.wait(ticket, until)
    }

    /// Runs changes that nobody waits for as one group: [`Shared::sync`] makes them durable. Nobody sees them before
    /// they are in the log, so that a medium without space for them is no reason to close the store.
    pub(super) fn run_unseen(&self, changes: impl FnOnce(&mut Group<'_>, u64) -> Result<()>) -> Result<()> {
        let mut writer = self.lock_writer()?;
        self.make_space(&mut writer)?;
        let ticket = self.apply(&mut writer, Durability::Flushed, changes)?;
        drop(writer);
        self.wait_for_many(ticket)
    }

    /// Waits for a group that nobody needs now only where many bytes wait for the log: until they are written, their
    /// pages stay in the cache.
    pub(super) fn wait_for_many(&self, ticket: Option<Ticket>) -> Result<()> {
        match ticket {
            Some(ticket) if self.log.waiting_bytes() > UNSEEN_WAITING => self.wait(Some(ticket), Durability::Flushed),
            _ => Ok(()),
        }
    }

    /// Applies a group and appends it to the log. After an error the pages are as before.
    pub(super) fn apply(
        &self,
        writer: &mut WriterState,
        until: Durability,
        changes: impl FnOnce(&mut Group<'_>, u64) -> Result<()>,
    ) -> Result<Option<Ticket>> {
        let seq = self.log.appended_seq() + 1;
        let mut group = Group::new(&self.pages, &mut writer.pages, seq);
        if let Err(error) = changes(&mut group, seq) {
            drop(group);
            self.versions.take_back(seq);
            return Err(error);
        }
        let (records, undo) = group.finish();
        if records.is_empty() {
            return Ok(None);
        }
        if let Err(error) = self.log.append(seq, &records) {
            take_back(&self.pages, &mut writer.pages, undo);
            self.versions.take_back(seq);
            return Err(error);
        }
        let ticket = Ticket::default();
        self.queue.push(Pending { seq, level: until, ticket: Arc::clone(&ticket), undo });
        Ok(Some(ticket))
    }

    pub(super) fn note_old(&self, seq: u64, number: u32, sort_key: &[u8], old: Option<Value>) -> Result<()> {
        self.versions.replace(seq, (number, sort_key.to_vec()), old);
        Ok(())
    }

    /// Waits until a commit has reached its level; one that changes nothing, until all before it have.
    fn wait(&self, ticket: Option<Ticket>, until: Durability) -> Result<()> {
        let Some(ticket) = ticket else {
            return match until {
                Durability::Buffered => Ok(()),
                Durability::Flushed | Durability::Synced if self.log.synced_seq() == self.log.appended_seq() => Ok(()),
                Durability::Flushed | Durability::Synced => self.sync(),
            };
        };
        let done = loop {
            match self.queue.wait(&ticket) {
                Some(done) => break done,
                None => drop(self.lock_writer()),
            }
        };
        self.versions.purge(self.queue.visible());
        self.pages.cache.shrink();
        self.pace();
        if done.is_ok() && self.log.waiting_bytes() as u64 > self.options.buffer.0 {
            // A failure ends a later commit, or poisons the store: this one was to be buffered only.
            let _ = self.queue.write_out();
        }
        done
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.disk.healthy()?;
        if let Err(error) = self.queue.sync_to(self.log.appended_seq()) {
            // Takes back what was not written.
            drop(self.lock_writer());
            return Err(error);
        }
        self.versions.purge(self.queue.visible());
        Ok(())
    }

    /// The writer's lock; commits whose log write has failed are taken back first.
    pub(super) fn lock_writer(&self) -> Result<MutexGuard<'_, WriterState>> {
        let mut writer = lock(&self.writer);
        if let Some((error, unwritten)) = self.queue.failed() {
            self.resolve(&mut writer, &error, unwritten);
        }
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StoreError::Invalid("the store is closed; open it again".to_owned()));
        }
        self.disk.healthy()?;
        Ok(writer)
    }

    /// After a failed write of the log: takes its commits back, and goes on in a new epoch, so that no block of the
    /// failed write counts. Where that is impossible, the store is poisoned.
    fn resolve(&self, writer: &mut WriterState, error: &StoreError, unwritten: Vec<Pending<GroupUndo>>) {
        let is_lost = self.queue.visible() > self.log.written_seq();
        let is_hopeless = self.disk.healthy().is_err() || is_lost || self.geometry.is_packed;
        let mut tickets: Vec<Ticket> = Vec::new();
        for Pending { seq, ticket, undo, .. } in unwritten {
            if !is_hopeless {
                take_back(&self.pages, &mut writer.pages, undo);
                self.versions.take_back(seq);
            }
            tickets.push(ticket);
        }
        if !is_hopeless {
            self.log.forget_after(self.log.written_seq());
        }
        if error.is_full() {
            self.pages.cache.reserve.release();
        }
        let goes_on = !is_hopeless && self.start_epoch(writer).is_ok();
        if !goes_on {
            self.disk.poison(error);
        }
        for ticket in tickets {
            let _ = ticket.set(Err(error.clone()));
        }
        self.queue.resolved((!goes_on).then_some(error));
    }

    fn start_epoch(&self, writer: &mut WriterState) -> Result<()> {
        let mut superblock = writer.superblock;
        superblock.epoch += 1;
        superblock.epoch_start = self.log.next_block();
        self.write_superblock(writer, superblock)?;
        self.log.start_epoch(superblock.epoch);
        Ok(())
    }
}
