//! Group commit: batches wait together for one write and one flush of the log, and become visible in their order.
//!
//! ```text
//!   append (under the writer's lock) ─▶ pending ─▶ leader: log.write, log.flush ─▶ visible, in order ─▶ commit returns
//! ```
//!
//! The first waiter leads: it writes what all have appended, while later commits gather behind it. A batch is visible
//! to readers when it has reached its durability level and all batches before it have.
//!
//! **Failures.** A failed flush poisons the store: what is durable is unknown. After a failed *write* (a drive without
//! space) the batches that were not written are taken back in memory, in reverse order, and their commits fail; the log
//! goes on in a new epoch, so that blocks of the failed write do not count. That needs the writer's lock, so whoever
//! gets it next does it (`CommitQueue::failed`).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::{Result, StoreError};
use crate::log::Log;
use crate::options::Durability;

/// What became of a commit.
pub(crate) type Ticket = Arc<OnceLock<Result<()>>>;

/// A batch that is not visible yet.
pub(crate) struct Pending<U> {
    pub seq: u64,
    pub level: Durability,
    pub ticket: Ticket,
    /// How the batch is taken back.
    pub undo: U,
}

struct State<U> {
    pending: VecDeque<Pending<U>>,
    is_led: bool,
    failed: Option<StoreError>,
}

/// Batches between their application and their visibility.
pub(crate) struct CommitQueue<U> {
    log: Arc<Log>,
    state: Mutex<State<U>>,
    changed: Condvar,
    visible: AtomicU64,
}

impl<U> CommitQueue<U> {
    pub(crate) fn new(log: Arc<Log>) -> Self {
        let visible = AtomicU64::new(log.appended_seq());
        let state = State { pending: VecDeque::new(), is_led: false, failed: None };
        Self { log, state: Mutex::new(state), changed: Condvar::new(), visible }
    }

    fn state(&self) -> MutexGuard<'_, State<U>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last batch that readers see.
    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Adds a batch that was appended to the log. The writer's lock keeps the order.
    pub(crate) fn push(&self, pending: Pending<U>) {
        let mut state = self.state();
        state.pending.push_back(pending);
        self.publish(&mut state);
    }

    /// Makes batches visible that have reached their level.
    fn publish(&self, state: &mut State<U>) {
        let (written, synced) = (self.log.written_seq(), self.log.synced_seq());
        let is_ready = |pending: &Pending<U>| match pending.level {
            Durability::Buffered => true,
            Durability::Flushed => pending.seq <= written,
            Durability::Synced => pending.seq <= synced,
        };
        while state.pending.front().is_some_and(is_ready) {
            let Some(ready) = state.pending.pop_front() else { break };
            self.visible.store(ready.seq, Ordering::Release);
            let _ = ready.ticket.set(Ok(()));
        }
    }

    /// Waits for a commit; `None` if a log write has failed: the caller takes the writer's lock and asks again.
    pub(crate) fn wait(&self, ticket: &Ticket) -> Option<Result<()>> {
        let mut state = self.state();
        loop {
            if let Some(result) = ticket.get() {
                return Some(result.clone());
            }
            if state.failed.is_some() {
                return None;
            }
            state = if state.is_led {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                let flushes = state.pending.iter().any(|pending| pending.level == Durability::Synced);
                self.lead(state, flushes)
            };
        }
    }

    /// Makes every batch up to `seq` durable that was appended and is not taken back.
    pub(crate) fn sync_to(&self, seq: u64) -> Result<()> {
        let mut state = self.state();
        loop {
            // What was taken back meanwhile never comes; its commits have failed.
            if self.log.synced_seq() >= seq.min(self.log.appended_seq()) {
                return Ok(());
            }
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            state = if state.is_led {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.lead(state, true)
            };
        }
    }

    /// Writes the log without a flush.
    pub(crate) fn write_out(&self) -> Result<()> {
        let mut state = self.state();
        while state.is_led {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match &state.failed {
            Some(failed) => Err(failed.clone()),
            None => self.lead(state, false).failed.clone().map_or(Ok(()), Err),
        }
    }

    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State<U>>, flushes: bool) -> MutexGuard<'a, State<U>> {
        state.is_led = true;
        drop(state);
        let done = self.log.write().and_then(|()| if flushes { self.log.flush() } else { Ok(()) });
        let mut state = self.state();
        state.is_led = false;
        match done {
            Ok(()) => self.publish(&mut state),
            Err(error) => state.failed = Some(error),
        }
        self.changed.notify_all();
        state
    }

    /// After a failed write or flush: the error and the batches that were not written, newest first. The caller has the
    /// writer's lock, takes them back, and calls [`CommitQueue::resolved`].
    pub(crate) fn failed(&self) -> Option<(StoreError, Vec<Pending<U>>)> {
        // Nobody leads after a failure.
        let mut state = self.state();
        let error = state.failed.clone()?;
        let written = self.log.written_seq();
        let kept = state.pending.partition_point(|pending| pending.seq <= written);
        let unwritten = state.pending.split_off(kept);
        Some((error, unwritten.into_iter().rev().collect()))
    }

    /// Goes on after a failure; `error` ends all commits that still wait.
    pub(crate) fn resolved(&self, error: Option<&StoreError>) {
        let mut state = self.state();
        match error {
            None => state.failed = None,
            Some(error) => {
                for pending in state.pending.drain(..) {
                    let _ = pending.ticket.set(Err(error.clone()));
                }
            }
        }
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::empty_log;

    /// A reader waits for the last change of a page that it would write; the change is taken back meanwhile.
    #[test]
    fn a_number_that_was_taken_back_is_not_waited_for() {
        let queue = CommitQueue::<()>::new(Arc::new(empty_log()));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(queue.sync_to(5)));
        let done = receiver.recv_timeout(std::time::Duration::from_secs(30));
        assert_eq!(done, Ok(Ok(())), "nobody will ever append it");
    }
}
