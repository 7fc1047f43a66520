//! Cleaning: which block of a plane is emptied, and what it costs.
//!
//! - *Greedy* takes the sealed block with the fewest valid pages, the highest row among equals.
//! - *Wear-aware* starts there and walks back through the candidates ([`super::fullness`]). A candidate whose remaining
//!   life is below `migration_ratio` of the plane's average is emptied and takes the plane's coldest data, that of the
//!   block which was erased longest ago; that block is erased in its place. One at or below `skip_ratio` is passed over
//!   with probability 1 − (life ÷ average) ÷ `skip_ratio`. The last one left is taken without a test. Since the first
//!   ratio is the larger one in the shipped model, its second rule hardly ever acts.
//!
//! A clean costs read and program of each valid page, the summary pages if a move fills a block, and the erase. A block
//! without life left is never a candidate.

use rand::RngExt;

use super::{Block, Effects, Elements, State};
use crate::config::{CleaningPolicy, ElementConfig};
use crate::flash::OpClass;

/// A share in millionths, so that comparisons are exact.
#[derive(Clone, Copy, Debug)]
struct Ratio(u64);

impl Ratio {
    fn new(share: f64) -> Self {
        Self((share * 1e6).round() as u64)
    }

    /// `part` ÷ (`sum` ÷ `count`) as compared with the share.
    fn compare(self, part: u32, sum: u64, count: u32) -> std::cmp::Ordering {
        let left = u128::from(part) * u128::from(count) * 1_000_000;
        left.cmp(&(u128::from(self.0) * u128::from(sum)))
    }
}

/// What an element's cleaning goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct CleaningRules {
    policy: CleaningPolicy,
    per_operation_max: Option<u32>,
    migration: Ratio,
    skip: Ratio,
    skip_ratio: f64,
}

impl CleaningRules {
    pub(super) fn new(config: &ElementConfig) -> Self {
        Self {
            policy: config.cleaning_policy,
            per_operation_max: config.cleanings_per_operation_max,
            migration: Ratio::new(config.migration_ratio),
            skip: Ratio::new(config.skip_ratio),
            skip_ratio: config.skip_ratio,
        }
    }
}

impl Elements {
    /// The time at which an element starts an operation that arrives now: behind the ones before it, and behind the
    /// cleaning that is due.
    pub(super) fn begin(&mut self, element: u32, now_ns: u64, effects: &mut Effects<'_>) -> u64 {
        let mut free_at_ns = self.elements[element as usize].free_at_ns;
        if self.elements[element as usize].low_planes == 0 {
            return free_at_ns.max(now_ns);
        }
        while self.background && free_at_ns < now_ns {
            let Some(cost_ns) = self.clean_low_plane(element, free_at_ns, effects) else { break };
            free_at_ns += cost_ns;
        }
        let mut at_ns = free_at_ns.max(now_ns);
        let mut left = self.rules.per_operation_max.unwrap_or(u32::MAX);
        while left > 0 {
            let Some(cost_ns) = self.clean_low_plane(element, at_ns, effects) else { break };
            at_ns += cost_ns;
            left -= 1;
        }
        at_ns
    }

    /// Cleans one block of the next plane that is low; gives the time that it takes. `None` when none is low, or when
    /// there is nothing to gain.
    fn clean_low_plane(&mut self, element: u32, at_ns: u64, effects: &mut Effects<'_>) -> Option<u64> {
        let planes = self.shape.planes;
        let state = self.elements.get(element as usize).filter(|state| state.low_planes > 0)?;
        let cursor = state.clean_cursor;
        for n in 0..planes {
            let nth = if cursor + n < planes { cursor + n } else { cursor + n - planes };
            let plane = element * planes + nth;
            if self.planes[plane as usize].free <= self.low_blocks && self.can_gain(plane) {
                self.elements[element as usize].clean_cursor = if nth + 1 == planes { 0 } else { nth + 1 };
                return self.clean_plane(plane, at_ns, effects);
            }
        }
        None
    }

    /// Whether cleaning a block of a plane frees anything; where the number of cleanings is limited, it does not have
    /// to.
    fn can_gain(&mut self, plane: u32) -> bool {
        let limited = self.rules.per_operation_max.is_some();
        self.fullness.last(plane).is_some_and(|(_, valid)| limited || valid < self.shape.data_pages)
    }

    /// Cleans where no plane has space for the host; gives a plane that has.
    pub(super) fn force_room(&mut self, element: u32, at_ns: &mut u64, effects: &mut Effects<'_>) -> Option<u32> {
        let first = element * self.shape.planes;
        for plane in first..first + self.shape.planes {
            while !self.has_room(&self.planes[plane as usize]) {
                let gains = self.fullness.last(plane).is_some_and(|(_, valid)| valid < self.shape.data_pages);
                if !gains {
                    break;
                }
                *at_ns += self.clean_plane(plane, *at_ns, effects)?;
            }
            if self.has_room(&self.planes[plane as usize]) {
                return Some(plane);
            }
        }
        None
    }

    /// Cleans one block of a plane; gives the time that it takes.
    fn clean_plane(&mut self, plane: u32, at_ns: u64, effects: &mut Effects<'_>) -> Option<u64> {
        let (row, _) = self.fullness.last(plane)?;
        Some(match self.rules.policy {
            CleaningPolicy::Greedy => self.clean(plane, row, at_ns, effects),
            CleaningPolicy::WearAware => self.clean_wear_aware(plane, row, at_ns, effects),
        })
    }

    fn clean_wear_aware(&mut self, plane: u32, last: u32, at_ns: u64, effects: &mut Effects<'_>) -> u64 {
        let (mut row, mut cost_ns) = (last, 0);
        while let Some((before, _)) = self.fullness.before(plane, row) {
            let (life, sum) = (self.life(plane, row), self.planes[plane as usize].life);
            if self.rules.migration.compare(life, sum, self.shape.blocks).is_lt()
                && let Some(cold) = self.coldest(plane, at_ns)
            {
                self.statistics.migrations += 1;
                cost_ns += self.clean(plane, row, at_ns, effects);
                if cold != row {
                    return cost_ns + self.migrate(plane, cold, row, at_ns, effects);
                }
            }
            let (life, sum) = (self.life(plane, row), self.planes[plane as usize].life);
            let worn = self.rules.skip.compare(life, sum, self.shape.blocks).is_le();
            let share = f64::from(life) * f64::from(self.shape.blocks) / (self.rules.skip_ratio * sum as f64);
            if !worn || self.random.random::<f64>() < share {
                break;
            }
            row = before;
        }
        cost_ns + self.clean(plane, row, at_ns, effects)
    }

    fn life(&self, plane: u32, row: u32) -> u32 {
        self.wear[(plane * self.shape.blocks + row) as usize].life
    }

    /// The block with valid pages that was erased longest ago, before now; the lowest row among equals. The active
    /// block stays where it is.
    fn coldest(&self, plane: u32, now_ns: u64) -> Option<u32> {
        let first = plane * self.shape.blocks;
        let active = self.planes[plane as usize].active;
        let candidates = (first..first + self.shape.blocks)
            .filter(|&block| self.blocks[block as usize].valid > 0 && block != active)
            .map(|block| (self.wear[block as usize].erased_at_ns, block - first));
        candidates.filter(|&(erased_at_ns, _)| erased_at_ns < now_ns).min().map(|(_, row)| row)
    }

    /// Empties and erases a block; gives the time that it takes. The block counts as erased so much behind `at_ns`.
    fn clean(&mut self, plane: u32, row: u32, at_ns: u64, effects: &mut Effects<'_>) -> u64 {
        let block = plane * self.shape.blocks + row;
        self.take_out(plane, block);
        let first = block * self.shape.pages;
        let mut cost_ns = 0;
        for from in first..first + self.shape.data_pages {
            if let Some(page) = self.mapping.page_in(from) {
                let (to, summary_ns) = self.append(plane, page, effects);
                effects.payload.relocate(from, to);
                effects.counters.gc_bytes_moved.0 += self.page_bytes;
                effects.counters.gc_pages_moved += 1;
                effects.counters.bytes_read.0 += self.page_bytes;
                self.statistics.pages_moved += 1;
                cost_ns += self.move_ns(plane, effects) + summary_ns;
            }
        }
        self.statistics.cleans += 1;
        effects.counters.gc_runs += 1;
        cost_ns += effects.in_array(self.shape.element_and_plane(plane), OpClass::Erase, self.times.erase_ns);
        self.erase(plane, row, at_ns + cost_ns, effects);
        cost_ns
    }

    /// Moves a page inside its plane; gives the time that it takes.
    fn move_ns(&self, plane: u32, effects: &mut Effects<'_>) -> u64 {
        let at = self.shape.element_and_plane(plane);
        effects.in_array(at, OpClass::GcRead, self.times.sense_ns)
            + effects.in_array(at, OpClass::GcProgram, self.times.program_ns)
    }

    /// From now on a block is no candidate.
    fn take_out(&mut self, plane: u32, block: u32) {
        let state = &mut self.blocks[block as usize];
        let was_candidate = state.state == State::Sealed && self.wear[block as usize].life > 0;
        if state.state != State::Free {
            state.state = State::Open;
        }
        if was_candidate {
            self.fullness.remove(plane, block % self.shape.blocks, u32::from(state.valid));
        }
    }

    fn erase(&mut self, plane: u32, row: u32, at_ns: u64, effects: &mut Effects<'_>) {
        let block = plane * self.shape.blocks + row;
        debug_assert_eq!(self.blocks[block as usize].valid, 0, "nothing valid is ever erased");
        if self.blocks[block as usize].state != State::Free {
            self.set_free(plane, row, true);
        }
        self.blocks[block as usize] = Block::default();
        let wear = &mut self.wear[block as usize];
        let used = u64::from(wear.life > 0);
        (wear.life, wear.erased_at_ns) = (wear.life.saturating_sub(1), at_ns);
        let state = &mut self.planes[plane as usize];
        state.life -= used;
        if state.active == block {
            state.sequence = 0;
        }
        effects.counters.erases += 1;
    }

    /// Brings the data of the block in row `cold` to the erased block in row `worn`, page for page, and erases the
    /// former; gives the time that it takes. As in the model, the time of that erase counts from the start of cleaning.
    fn migrate(&mut self, plane: u32, cold: u32, worn: u32, at_ns: u64, effects: &mut Effects<'_>) -> u64 {
        let first = plane * self.shape.blocks;
        let (from, to) = (first + cold, first + worn);
        let Block { sequence, state, valid } = self.blocks[from as usize];
        self.statistics.pages_migrated += u64::from(valid);
        let cost_ns: u64 = (0..valid).map(|_| self.move_ns(plane, effects)).sum();
        self.take_out(plane, from);
        self.set_free(plane, worn, false);
        for offset in 0..self.shape.data_pages {
            let (old, new) = (from * self.shape.pages + offset, to * self.shape.pages + offset);
            if let Some(page) = self.mapping.page_in(old) {
                self.mapping.map(page, new);
                effects.payload.relocate(old, new);
            }
        }
        let bytes = u64::from(valid) * self.page_bytes;
        effects.counters.bytes_programmed.0 += bytes;
        effects.counters.wear_levelling_bytes_moved.0 += bytes;
        effects.counters.wear_levelling_runs += 1;
        effects.counters.bytes_read.0 += bytes;
        self.blocks[from as usize].valid = 0;
        self.blocks[to as usize] = Block { sequence, valid, state };
        if self.planes[plane as usize].active == to {
            self.planes[plane as usize].sequence = sequence;
        }
        if state == State::Sealed && self.wear[to as usize].life > 0 {
            self.fullness.insert(plane, worn, u32::from(valid));
        }
        cost_ns + self.clean(plane, cold, at_ns, effects)
    }
}
