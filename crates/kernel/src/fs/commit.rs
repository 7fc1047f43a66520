//! Committing a transaction: what is written, in which order, and what follows.
//!
//! Linux 6.18:
//! - `fs/jbd2/commit.c` `jbd2_journal_commit_transaction`: descriptor and metadata blocks are written and waited for;
//!   the commit block is written with PREFLUSH and FUA; then blocks that were freed are discarded and free, and the
//!   metadata is dirty in its place.
//! - `fs/jbd2/journal.c` `commit_timeout`: a transaction that has run for 5 seconds is committed.
//! - `fs/xfs/xfs_log_cil.c` `xlog_cil_push_work`, `xfs_log.c` `xfs_log_worker`: the records of a checkpoint, the last
//!   one with PREFLUSH and FUA; every 30 seconds the log is forced.
//! - `fs/jbd2/checkpoint.c` `__jbd2_log_wait_for_space`: when the log is three quarters full, metadata is written to
//!   its place, flushed, and the tail moves.
//!
//! With `data=ordered` and `dioread_nolock` (both default) a block of a file becomes part of it in the transaction that
//! follows its write (`ext4_end_io_end`, in XFS `xfs_end_ioend`): so no commit has to wait for data.
//!
//! Fast commits, which most syncs make instead where ext4 has them, are in `fs/ext4/fast_commit.rs`.
//!
//! Not here: asynchronous commits; an external log.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, BlockError, Nanos, Operation};

use crate::PAGE;
use crate::block::{Bio, Purpose};
use crate::config::{FileSystemKind, KernelConfig};
use crate::error::{KernelError, Result};
use crate::fs::inode::Ino;
use crate::fs::layout::LogWrite;
use crate::fs::transaction::{DurableInode, Touched, Transaction};
use crate::kernel::Kernel;

/// Which part of a commit is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Body,
    FlushBefore,
    Record,
    FlushBehind,
}

/// A transaction on its way to the log.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) transaction: Transaction,
    write: LogWrite,
    phase: Phase,
    /// Bytes, or flushes, that are on their way.
    pending: u64,
    snapshot: BTreeMap<Ino, Option<DurableInode>>,
    error: Option<BlockError>,
}

/// The log of a file system.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) running: Option<Transaction>,
    pub(crate) committing: Option<Box<Commit>>,
    last_tid: u64,
    /// The last transaction that changed the directory.
    pub(crate) directory_tid: u64,
    /// The last transaction that is in the log.
    pub(crate) committed: u64,
    /// Why nothing may be changed any more.
    pub(crate) aborted: Option<BlockError>,
}

/// What a power cut would leave of the metadata.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durable {
    pub(crate) names: BTreeMap<String, Ino>,
    pub(crate) inodes: BTreeMap<Ino, DurableInode>,
}

impl Durable {
    /// A commit is in the log.
    pub(crate) fn apply(
        &mut self,
        inodes: BTreeMap<Ino, Option<DurableInode>>,
        names: impl IntoIterator<Item = (String, Option<Ino>)>,
    ) {
        for (ino, inode) in inodes {
            match inode {
                Some(inode) => self.inodes.insert(ino, inode),
                None => self.inodes.remove(&ino),
            };
        }
        for (name, ino) in names {
            match ino {
                Some(ino) => self.names.insert(name, ino),
                None => self.names.remove(&name),
            };
        }
    }
}

impl Journal {
    /// The running transaction; one is started where there is none.
    pub(crate) fn transaction(&mut self, now: Nanos) -> &mut Transaction {
        let Self { running, last_tid, .. } = self;
        running.get_or_insert_with(|| {
            *last_tid += 1;
            Transaction::new(*last_tid, now)
        })
    }

    /// A name appears, or goes.
    pub(crate) fn note_name(&mut self, now: Nanos, name: &str, ino: Option<Ino>) {
        let transaction = self.transaction(now);
        transaction.names.insert(name.to_owned(), ino);
        self.directory_tid = transaction.tid;
    }

    /// The transaction that runs, or commits, or was the last.
    pub(crate) fn newest_tid(&self) -> u64 {
        let committing = self.committing.as_ref().map(|commit| commit.transaction.tid);
        self.running.as_ref().map(|running| running.tid).or(committing).unwrap_or(self.committed)
    }

    pub(crate) fn interval(config: &KernelConfig) -> Nanos {
        match config.file_system {
            FileSystemKind::Ext4 => config.commit_interval,
            FileSystemKind::Xfs => config.log_interval,
        }
    }

    /// When the running transaction is committed if nobody asks before.
    pub(crate) fn next_timer(&self, config: &KernelConfig) -> Option<Nanos> {
        let started = self.running.as_ref()?.started_at;
        self.aborted.is_none().then(|| Nanos(started.0.saturating_add(Self::interval(config).0)))
    }

    pub(crate) fn holds(&self, offset: u64) -> bool {
        let running = self.running.iter();
        let committing = self.committing.iter().map(|commit| &commit.transaction);
        running.chain(committing).any(|transaction| transaction.buffers.contains_key(&offset))
    }

    /// Space that will be free once everything is committed.
    pub(crate) fn frees(&self) -> bool {
        let running = self.running.iter();
        let committing = self.committing.iter().map(|commit| &commit.transaction);
        running.chain(committing).any(|transaction| !transaction.freed.is_empty())
    }
}

impl<D: BlockDevice> Kernel<D> {
    /// Metadata changes in the running transaction.
    pub(crate) fn log(&mut self, touched: &Touched) -> Result<()> {
        self.read_buffers(touched)?;
        let now = self.now();
        self.journal.transaction(now).add(touched);
        Ok(())
    }

    pub(crate) fn journal_tick(&mut self) -> Result<()> {
        let due = self.journal.next_timer(&self.config).is_some_and(|due| due <= self.now());
        if due && self.journal.committing.is_none() { self.start_commit() } else { Ok(()) }
    }

    /// Writes all committed metadata to its place and empties the log.
    fn checkpoint(&mut self) -> Result<()> {
        self.write_buffers(Nanos(u64::MAX), true)?;
        self.flush_drive()?;
        if let Some((offset, bytes)) = self.layout.log_superblock() {
            let ticket = self.new_ticket();
            self.submit_for(ticket, Bio::new(Operation::Write, offset, bytes, Purpose::Ticket(ticket)))?;
            self.redeem(ticket)?;
        }
        self.layout.log_emptied();
        Ok(())
    }

    /// What a commit keeps of inodes, where that matters; `None` for those that are gone.
    pub(crate) fn durable_inodes<'a>(
        &self,
        inodes: impl IntoIterator<Item = &'a Ino>,
    ) -> BTreeMap<Ino, Option<DurableInode>> {
        if self.durable.is_none() {
            return BTreeMap::new();
        }
        let kept = |ino: &Ino| {
            let inode = self.inodes.get(ino).filter(|inode| inode.links > 0)?;
            let (extents, tree) = (inode.extents.clone(), inode.tree.clone());
            Some(DurableInode { size: inode.disk_size, extents, tree })
        };
        inodes.into_iter().map(|ino| (*ino, kept(ino))).collect()
    }

    /// Starts to commit the running transaction. None may be committing.
    pub(crate) fn start_commit(&mut self) -> Result<()> {
        debug_assert!(self.journal.committing.is_none());
        let Some(transaction) = self.journal.running.take() else { return Ok(()) };
        if transaction.is_empty() {
            self.journal.committed = transaction.tid;
            return Ok(());
        }
        let snapshot = self.durable_inodes(transaction.inodes.keys().chain(&transaction.removed));
        self.fast_commits.start_over();
        let write = self.layout.log_write(&transaction);
        if write.checkpoint_first {
            self.checkpoint()?;
        }
        let pending = write.body.iter().map(|(_, bytes)| bytes).sum();
        let body = write.body.clone();
        let commit = Commit { transaction, write, phase: Phase::Body, pending, snapshot, error: None };
        self.journal.committing = Some(Box::new(commit));
        self.queue.plug();
        for (offset, bytes) in body {
            let mut bio = Bio::new(Operation::Write, offset, bytes, Purpose::Commit);
            bio.segments = bytes.div_ceil(PAGE) as u32;
            self.queue.submit(bio)?;
        }
        self.queue.unplug()?;
        self.advance_commit()
    }

    /// A request of the commit has completed.
    pub(crate) fn end_commit_request(
        &mut self,
        units: u64,
        result: &std::result::Result<(), BlockError>,
    ) -> Result<()> {
        let Some(commit) = &mut self.journal.committing else { return Ok(()) };
        commit.pending = commit.pending.saturating_sub(units);
        if let Err(error) = result {
            commit.error.get_or_insert_with(|| error.clone());
        }
        self.advance_commit()
    }

    /// Goes on to the next phase where nothing is on its way.
    fn advance_commit(&mut self) -> Result<()> {
        loop {
            let Some(commit) = &mut self.journal.committing else { return Ok(()) };
            if commit.pending > 0 {
                return Ok(());
            }
            if commit.error.is_some() {
                return self.abort_commit();
            }
            let limits = &self.config.queue;
            let record = commit.write.record;
            match (commit.phase, limits.volatile_cache) {
                (Phase::Body, true) => {
                    (commit.phase, commit.pending) = (Phase::FlushBefore, 1);
                    self.queue.submit(Bio::flush(Purpose::Commit))?;
                }
                (Phase::Body, false) | (Phase::FlushBefore, _) => {
                    (commit.phase, commit.pending) = (Phase::Record, record.1);
                    let fua = limits.fua && limits.volatile_cache;
                    let mut bio = Bio::new(Operation::Write, record.0, record.1, Purpose::Commit);
                    bio.fua = fua;
                    self.queue.submit(bio)?;
                }
                (Phase::Record, true) if !limits.fua => {
                    (commit.phase, commit.pending) = (Phase::FlushBehind, 1);
                    self.queue.submit(Bio::flush(Purpose::Commit))?;
                }
                (Phase::Record | Phase::FlushBehind, _) => return self.finish_commit(),
            }
        }
    }

    /// `jbd2_journal_abort`: the log cannot be written, so nothing may change any more.
    fn abort_commit(&mut self) -> Result<()> {
        if let Some(commit) = self.journal.committing.take() {
            self.journal.aborted = commit.error;
        }
        Ok(())
    }

    fn finish_commit(&mut self) -> Result<()> {
        let Some(commit) = self.journal.committing.take() else { return Ok(()) };
        let Commit { transaction, snapshot, .. } = *commit;
        self.journal.committed = transaction.tid;
        self.counters.commits += 1;
        let now = self.now();
        for (&offset, &(bytes, _)) in &transaction.buffers {
            self.buffers.mark_dirty(offset, bytes, now);
        }
        for &ino in transaction.inodes.keys() {
            if let Some((offset, bytes)) = self.layout.inode_writeback(ino) {
                self.buffers.mark_dirty(offset, bytes, now);
            }
        }
        if let Some(durable) = &mut self.durable {
            durable.apply(snapshot, transaction.names);
        }
        self.free_blocks(transaction.freed)
    }

    /// Blocks are free: discarded first where the file system is mounted so.
    fn free_blocks(&mut self, mut freed: Vec<(u64, u64)>) -> Result<()> {
        freed.sort_unstable();
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (first, blocks) in freed {
            match runs.last_mut() {
                Some(last) if last.0 + last.1 == first => last.1 += blocks,
                _ => runs.push((first, blocks)),
            }
        }
        for (first, blocks) in runs {
            if self.config.discard {
                self.discards += 1;
                let purpose = Purpose::Discard { first, blocks };
                self.queue.submit(Bio::new(Operation::Trim, first * PAGE, blocks * PAGE, purpose))?;
            } else {
                self.layout.release(first, blocks);
            }
        }
        Ok(())
    }

    /// Waits until a transaction is in the log, and starts that where it is needed.
    pub(crate) fn commit_and_wait(&mut self, tid: u64) -> Result<()> {
        while self.journal.committed < tid {
            if let Some(error) = &self.journal.aborted {
                return Err(KernelError::ReadOnly(error.clone()));
            }
            if self.journal.committing.is_none() {
                if self.journal.running.is_none() {
                    return Ok(());
                }
                // The journal's thread is woken.
                self.queue.charge(self.config.costs.wake_up);
                self.start_commit()?;
            }
            let waited_for = self.journal.committing.as_ref().map_or(tid, |commit| commit.transaction.tid);
            self.wait_until(|this| this.journal.committed >= waited_for || this.journal.aborted.is_some())?;
        }
        match &self.journal.aborted {
            Some(error) if self.journal.committed < tid => Err(KernelError::ReadOnly(error.clone())),
            _ => Ok(()),
        }
    }

    /// Commits all there is; whether there was anything.
    pub(crate) fn commit_running(&mut self) -> Result<bool> {
        let tid = self.journal.newest_tid();
        if tid > self.journal.committed { self.commit_and_wait(tid).map(|()| true) } else { Ok(false) }
    }
}
