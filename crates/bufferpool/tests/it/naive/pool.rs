//! A pool around a model: hits, misses, pins, dirty bits, write-backs in batches.

use std::collections::{BTreeMap, BTreeSet};

use super::{Model, Page};

/// What a model may ask about pages.
#[derive(Clone, Default)]
pub struct State {
    pub frames: usize,
    /// Most pages of a batch.
    pub batch: usize,
    pub resident: BTreeSet<Page>,
    pub dirty: BTreeSet<Page>,
    pub pinned: BTreeSet<Page>,
    /// Write-backs so far of each block of 64 pages.
    pub block_writes: BTreeMap<Page, u64>,
}

impl State {
    pub fn is_dirty(&self, page: Page) -> bool {
        self.dirty.contains(&page)
    }

    pub fn is_free(&self, page: Page) -> bool {
        !self.pinned.contains(&page)
    }

    pub fn wear(&self, page: Page) -> u64 {
        self.block_writes.get(&(page / 64)).copied().unwrap_or(0)
    }
}

pub struct NaivePool<M> {
    pub model: M,
    pub state: State,
    pub batch: usize,
    pub misses: u64,
    pub operations: u64,
    pub written: u64,
    pub last_victim: Option<Page>,
    pub last_batch: Vec<Page>,
}

impl<M: Model> NaivePool<M> {
    pub fn new(model: M, frames: usize, batch: usize) -> Self {
        let state = State { frames, batch, ..State::default() };
        Self { model, state, batch, misses: 0, operations: 0, written: 0, last_victim: None, last_batch: Vec::new() }
    }

    /// One access; false where every page is pinned.
    pub fn access(&mut self, page: Page, write: bool) -> bool {
        self.last_victim = None;
        self.last_batch.clear();
        if self.state.resident.contains(&page) {
            self.model.hit(page, write, &self.state);
        } else {
            self.misses += 1;
            self.model.miss(page, &self.state);
            if self.state.resident.len() == self.state.frames && !self.make_room() {
                return false;
            }
            self.state.resident.insert(page);
            self.model.load(page, write, &self.state);
        }
        if write {
            self.state.dirty.insert(page);
        }
        true
    }

    fn make_room(&mut self) -> bool {
        let Some(victim) = self.model.victim(&self.state) else { return false };
        if self.state.is_dirty(victim) {
            let batch = self.batch_of(victim);
            self.operations += 1;
            self.written += batch.len() as u64;
            for &page in &batch {
                *self.state.block_writes.entry(page / 64).or_default() += 1;
            }
            for &page in &batch {
                self.state.dirty.remove(&page);
                if page != victim {
                    self.model.clean(page, &self.state);
                }
            }
            self.last_batch = batch;
        }
        self.model.evict(victim, &self.state);
        self.state.resident.remove(&victim);
        self.last_victim = Some(victim);
        true
    }

    fn batch_of(&mut self, victim: Page) -> Vec<Page> {
        let mut batch = vec![victim];
        if self.batch == 1 {
            return batch;
        }
        let mut order = self.model.order(&self.state).unwrap_or_else(|| self.future());
        order.extend(self.model.rest());
        for page in order {
            let is_wanted = self.state.is_dirty(page) && self.state.is_free(page) && !batch.contains(&page);
            if is_wanted && batch.len() < self.batch {
                batch.push(page);
            }
        }
        batch
    }

    /// Who is evicted while every coming request misses on a new page and writes it.
    pub fn future(&self) -> Vec<Page> {
        let (mut model, mut state, mut order) = (self.model.clone(), self.state.clone(), Vec::new());
        let (mut dirty, mut new_in_a_row) = (0, 0);
        for new in (0..Page::MAX).rev() {
            let Some(victim) = model.victim(&state) else { break };
            model.evict(victim, &state);
            state.resident.remove(&victim);
            if self.state.resident.contains(&victim) {
                order.push(victim);
                dirty += usize::from(self.state.is_dirty(victim));
                new_in_a_row = 0;
            } else {
                new_in_a_row += 1;
            }
            if dirty == self.batch || order.len() == self.state.resident.len() || new_in_a_row > 8 * self.state.frames {
                break;
            }
            model.miss(new, &state);
            state.resident.insert(new);
            model.load(new, true, &state);
            state.dirty.insert(new);
        }
        order
    }
}
