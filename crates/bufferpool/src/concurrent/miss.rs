//! A page without a frame: what is evicted for it, what is written, what is read.
//!
//! ```text
//!   decide (locked) ─▶ images copied ─▶ before_write ─▶ PageStore::exchange ─▶ ends of writes (locked) ─▶ pages resident
//! ```
//!
//! A dirty page that is evicted is taken out: nobody reaches it until it is written, but its frame keeps its bytes, so
//! that a write that fails loses nothing. Other pages of its batch stay where they are; their images are copied under a
//! shared latch, and who wants to write them does not wait for the drive.

use flashwise_block::BlockError;

use super::store::{Exchanged, PageStore};
use super::word::Hold;
use super::write_back::{Placed, Write};
use super::{BufferPool, Core};
use crate::directory::Page;
use crate::error::PoolError;

/// Why a page is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To be read.
    Read,
    /// To be changed.
    Write,
    /// To be filled again.
    New,
    /// Not yet.
    Ahead,
}

/// What one miss does.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// Where the page that missed goes.
    frame: u32,
    /// Pages that are read along with it.
    prefetched: Vec<Placed>,
    /// What is written; nothing where the victim was clean.
    write: Option<Write>,
}

/// The victim, out of reach.
enum Victim {
    /// A frame is free as it is.
    NotNeeded,
    Clean(Placed),
    Dirty(Placed),
}

impl<S: PageStore> BufferPool<S> {
    /// Brings a page into a frame, whose word the caller has taken for loading. In case of an error the word is given
    /// up.
    #[cold]
    pub(super) fn load(&self, page: Page, hold: Hold, asked: Asked) -> Result<u32, PoolError> {
        let decided = self.decide(page, asked, true);
        let mut decided = match decided.and_then(|decided| decided.ok_or(PoolError::NoFrames)) {
            Ok(decided) => decided,
            Err(error) => {
                self.words[page.0 as usize].abandon(&self.waiters);
                return Err(error);
            }
        };
        let frame = decided.frame;
        let reads = if asked == Asked::New { None } else { Some((page, frame)) };
        let reads: Vec<Placed> = reads.into_iter().chain(decided.prefetched.iter().copied()).collect();
        let write = decided.write.take();
        let Exchanged { written, read } = self.exchange(write.as_ref(), &reads);
        let written = self.end_write(write, written);
        self.end_reads((page, frame), &decided.prefetched, read)?;
        if written.is_err() && asked == Asked::New {
            // Nothing was read: what is in the frame is another page's.
            self.forget(&[(page, frame)]);
            return written.map(|()| frame);
        }
        // Who is told of a failure holds nothing.
        let hold = written.is_ok().then_some(hold);
        self.words[page.0 as usize].loaded(frame, hold, &self.waiters);
        written.map(|()| frame)
    }

    /// Reads pages ahead, as many together as there are frames for; those that are there already are left alone. They
    /// are the first to be evicted if they are not requested.
    ///
    /// # Errors
    /// When there is no such page, a read fails, or the write of what had to be evicted fails. Other pages may have
    /// been read.
    pub fn read_ahead(&self, pages: &[Page]) -> Result<(), PoolError> {
        let mut rest = pages;
        while !rest.is_empty() {
            let (mut placed, mut writes, mut refused) = (Vec::new(), Vec::new(), None);
            while let Some((&page, others)) = rest.split_first() {
                let word = self.word(page)?;
                if word.begin_load() {
                    // Only the first may wait: the others would wait for what this thread is going to write.
                    match self.decide(page, Asked::Ahead, placed.is_empty()) {
                        Ok(Some(mut decided)) => {
                            placed.push((page, decided.frame));
                            writes.extend(decided.write.take());
                        }
                        other => {
                            word.abandon(&self.waiters);
                            refused = other.err();
                            break;
                        }
                    }
                }
                rest = others;
            }
            self.carry_out_ahead(&placed, writes)?;
            if let Some(error) = refused {
                return Err(error);
            }
        }
        Ok(())
    }

    fn carry_out_ahead(&self, placed: &[Placed], writes: Vec<Write>) -> Result<(), PoolError> {
        let Some((&(first, frame), others)) = placed.split_first() else { return Ok(()) };
        let write = Write::joined(writes);
        let Exchanged { written, read } = self.exchange(write.as_ref(), placed);
        let written = self.end_write(write, written);
        self.end_reads((first, frame), others, read)?;
        self.words[first.0 as usize].loaded(frame, None, &self.waiters);
        written
    }

    /// What was read is there for everybody, but for the first page, which the caller has. What could not be read along
    /// with it is forgotten; where the first could not be read either, its word is given up.
    fn end_reads(&self, first: Placed, others: &[Placed], read: Result<(), BlockError>) -> Result<(), PoolError> {
        let read = match read {
            Ok(()) => {
                others.iter().for_each(|&(page, frame)| self.words[page.0 as usize].loaded(frame, None, &self.waiters));
                return Ok(());
            }
            Err(_) if !others.is_empty() => {
                self.forget(others);
                self.transfer(Vec::new(), &[first]).read
            }
            Err(error) => Err(error),
        };
        read.map_err(|error| {
            self.forget(&[first]);
            PoolError::ReadFailed { page: first.0.0, reason: error.to_string() }
        })
    }

    /// Takes back the frames of pages that could not be read.
    fn forget(&self, pages: &[Placed]) {
        let mut core = self.lock();
        for &(page, frame) in pages {
            core.policy.unload(page);
            core.free.push(frame);
            self.words[page.0 as usize].abandon(&self.waiters);
        }
        self.changed.notify_all();
    }

    /// Decides what a miss does; `None` where that would have to wait and the caller cannot.
    fn decide(&self, page: Page, asked: Asked, is_patient: bool) -> Result<Option<Decided>, PoolError> {
        let mut core = self.lock();
        loop {
            self.sweep_orphans(&mut core);
            if core.free.len() >= self.options.evictions() {
                core.drain(&self.hits);
                match self.decide_with(&mut core, page, asked) {
                    // Pages on their way are held by nobody for long.
                    Err(PoolError::AllPinned { .. }) if !core.under_way.is_empty() || !is_patient => {}
                    decided => return decided.map(Some),
                }
            }
            if !is_patient {
                return Ok(None);
            }
            if core.under_way.is_empty() {
                drop(core);
                self.rescue_orphans()?;
                core = self.lock();
            } else {
                core = self.changed.wait(core).unwrap_or_else(|broken| broken.into_inner());
            }
        }
    }

    fn decide_with(&self, core: &mut Core, page: Page, asked: Asked) -> Result<Decided, PoolError> {
        if asked != Asked::Ahead {
            core.policy.miss(page)?;
        }
        let made = self.make_room(core, page);
        for passed_over in std::mem::take(&mut core.passed_over) {
            core.policy.unpin(passed_over)?;
        }
        let write = made.inspect_err(|_| core.policy.cancel_load(page))?;
        let together = core.plan.reading.len().max(1);
        match asked {
            Asked::Ahead => {
                core.plan.reading.clear();
                core.policy.load_prefetched(page)?;
            }
            _ => core.policy.load(page, asked != Asked::Read, together)?,
        }
        let frame = core.take_frame(page)?;
        let prefetched = self.place_prefetched(core)?;
        Ok(Decided { frame, prefetched, write })
    }

    /// Evicts pages so that a frame is free, and says what is to be written.
    fn make_room(&self, core: &mut Core, missing: Page) -> Result<Option<Write>, PoolError> {
        core.plan.reading.clear();
        match self.take_victim(core)? {
            Victim::NotNeeded => Ok(None),
            Victim::Clean((page, frame)) => {
                core.policy.evict(page);
                core.free.push(frame);
                Ok(None)
            }
            Victim::Dirty(victim) => Ok(Some(self.take_batch(core, victim, missing))),
        }
    }

    /// Takes the page that is evicted next out of everybody's reach. Pinned pages are skipped.
    fn take_victim(&self, core: &mut Core) -> Result<Victim, PoolError> {
        while let Some((page, is_dirty)) = core.policy.victim()? {
            let word = &self.words[page.0 as usize];
            let view = word.view();
            if !view.is_held && view.is_resident {
                if view.is_dirty != is_dirty {
                    // The policy had not heard of it.
                    core.policy.set_dirty(page, view.is_dirty);
                    continue;
                }
                let taken = match is_dirty {
                    true => word.take_out(&self.waiters).map(|frame| Victim::Dirty((page, frame))),
                    false => word.evict(&self.waiters).map(|frame| Victim::Clean((page, frame))),
                };
                match taken {
                    Some(victim) => return Ok(victim),
                    // Somebody was faster.
                    None if word.view() != view => continue,
                    None => {}
                }
            }
            // Somebody holds it, or has announced that he reads it, which only shows when it is taken.
            core.policy.pin(page);
            core.passed_over.push(page);
        }
        Ok(Victim::NotNeeded)
    }

    /// Takes what is written with a dirty victim, and evicts what is evicted with it.
    fn take_batch(&self, core: &mut Core, victim: Placed, missing: Page) -> Write {
        let Core { policy, plan, free, .. } = core;
        let is_free = |page: Page| {
            let view = self.words[page.0 as usize].view();
            view.is_resident && !view.is_held
        };
        policy.plan_eviction(victim.0, missing, &mut |page| is_free(page), plan);
        let mut write = Write { tickets: Vec::new(), out: vec![victim], staying: Vec::new() };
        let taken = |page: &Page, write: &mut Write| {
            let word = &self.words[page.0 as usize];
            if plan.victims.contains(page) {
                let frame = word.take_out(&self.waiters);
                write.out.extend(frame.map(|frame| (*page, frame)));
                frame.is_some()
            } else {
                let frame = word.begin_write();
                write.staying.extend(frame.map(|frame| (*page, frame)));
                frame.is_some()
            }
        };
        plan.batch.retain(|page| *page == victim.0 || taken(page, &mut write));
        let batch = &plan.batch;
        let mut falls = |page: &Page| {
            if write.out.iter().any(|(out, _)| out == page) {
                return true;
            }
            // A page of the batch that somebody was faster with stays; so does a clean one.
            let frame = if batch.contains(page) { None } else { self.words[page.0 as usize].evict(&self.waiters) };
            free.extend(frame);
            frame.is_some()
        };
        plan.victims.retain(|page| falls(page));
        policy.write_started(&plan.batch);
        for &page in &plan.victims {
            // The policy may not have heard that it was written.
            policy.set_dirty(page, false);
            policy.evict(page);
        }
        plan.reading.truncate(plan.victims.len());
        write.tickets = core.begin_write();
        write
    }

    /// Gives the pages that are prefetched their frames.
    fn place_prefetched(&self, core: &mut Core) -> Result<Vec<Placed>, PoolError> {
        let wanted: Vec<Page> = core.plan.reading.iter().skip(1).copied().collect();
        let mut placed = Vec::with_capacity(wanted.len());
        for page in wanted {
            // Somebody else may read it just now.
            if self.words[page.0 as usize].begin_load() {
                core.policy.load_prefetched(page)?;
                placed.push((page, core.take_frame(page)?));
            }
        }
        Ok(placed)
    }

    /// Writes and reads, everything together.
    fn exchange(&self, write: Option<&Write>, reads: &[Placed]) -> Exchanged {
        let images = write.map(|write| self.images(write)).unwrap_or_default();
        match self.may_write(&images) {
            Ok(()) => self.transfer(images, reads),
            Err(error) => Exchanged { written: Err(error), ..self.transfer(Vec::new(), reads) },
        }
    }
}
