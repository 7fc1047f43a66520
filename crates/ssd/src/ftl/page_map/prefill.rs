//! Putting a drive into a state at once: what writing would do to the maps, without requests and without time.
//!
//! - *In order*: every logical page once, as one sequential write of the whole drive places them.
//! - *Steady state*: the sealed superblocks hold as many valid pages as a long random overwrite leaves in them, the
//!   emptier the older; which logical pages they are is drawn at random. The superblocks that the host and garbage
//!   collection fill are half full, as they are on average.
//!
//! An SLC cache is empty in both: what is in it is moved when the drive has time.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::row_order::RowOrder;
use super::{PageMap, Stream};
use crate::ftl::KeptAs;
use crate::ftl::placement::{Phase, PlacementPolicy};
use crate::ftl::streams::StreamPolicy;
use crate::ftl::superblock::BlockState;
use crate::list::NONE;

/// Where the next page of a unit goes while its steady state is laid out.
struct Cursor {
    /// Valid pages of each of the unit's superblocks that will be sealed, ascending: the oldest first.
    counts: Vec<u32>,
    /// The superblock that is being laid out, as a position in `counts`.
    at: usize,
    /// The present superblock and the slot in it that is decided next.
    block: u32,
    slot: u32,
    /// Valid pages that the present superblock still needs.
    needed: u32,
}

/// How far a fill in order is.
struct Fill {
    /// Logical pages that are to be written, and rows, as far as there is space.
    pages: u32,
    rows: u32,
    /// The row that is next.
    row: u32,
    /// No die has commands.
    loads: Vec<u32>,
}

/// A row that a fill has written.
struct Row {
    unit: u32,
    block: u32,
    /// Its number in its superblock.
    row: u32,
    /// Whether its unit has space as before.
    keeps_space: bool,
}

/// Rows among which a turn is looked for before they are noted one by one, which takes 4 bytes a row while it is looked
/// for: half a megabyte.
const TURN_MAX: usize = 1 << 17;

impl PageMap {
    /// Writes the logical pages below `pages` in order.
    pub(crate) fn fill_in_order(&mut self, pages: u32, kept: KeptAs) {
        self.pass_slc_cache_by(true);
        // Of a page that nobody has written, foresight alone knows something: then rows go to several streams.
        match kept == KeptAs::Entries || self.streams.foresees() {
            true => self.fill_row_by_row(pages),
            false => self.fill_in_turns(pages, kept),
        }
        self.pass_slc_cache_by(false);
    }

    fn fill_row_by_row(&mut self, pages: u32) {
        let loads = vec![0; self.geometry.dies() as usize];
        for first in (0..pages).step_by(self.geometry.slots as usize) {
            let Some(Row { block, row, .. }) = self.fill_row(first, pages, &loads) else { return };
            let slot = self.geometry.first_slot(block, row);
            self.mapping.map_run(first, slot, self.geometry.slots.min(pages - first));
        }
    }

    /// Does the same to all but the map, row by row only while anything happens but that rows are added to open
    /// superblocks; where the rows are is a rule.
    fn fill_in_turns(&mut self, pages: u32, kept: KeptAs) {
        let rows = pages.div_ceil(self.geometry.slots);
        let mut fill = Fill { pages, rows, row: 0, loads: vec![0; self.geometry.dies() as usize] };
        let mut order = RowOrder::new(&self.geometry);
        let mut turn = Vec::new();
        while self.find_turn(&mut fill, &mut turn, &mut order) {
            let first = fill.row - turn.len() as u32;
            let next = self.repeat_turn(&mut fill, &turn, &mut order);
            order.add(first, fill.row - next.len() as u32, &turn);
            turn = next;
        }
        let filled = pages.min(fill.row * self.geometry.slots);
        self.mapping.fill(filled, Box::new(order.holding(filled)), kept);
    }

    /// Writes rows until the next choices are those of a row before, and notes them; `turn` has the units of those that
    /// are written already, and then those of the rows that come again. `false` when all rows are written, or as many
    /// as there is space for.
    fn find_turn(&mut self, fill: &mut Fill, turn: &mut Vec<u32>, order: &mut RowOrder) -> bool {
        // Brent's way to find a cycle: the phase of one row is compared with those behind it, of which there are twice
        // as many each time.
        let (mut start, mut phase, mut compared) = (turn.len(), self.phase(fill), 1);
        let mut is_found = false;
        while !is_found && let Some(Row { unit, .. }) = self.fill_next_row(fill, order) {
            turn.push(unit);
            let next = self.phase(fill);
            is_found = next.state == phase.state;
            if !is_found && turn.len() == TURN_MAX {
                order.add(fill.row - turn.len() as u32, fill.row, turn);
                turn.clear();
                (start, phase, compared) = (0, next, 1);
            } else if !is_found && turn.len() - start == compared {
                (start, phase, compared) = (turn.len(), next, 2 * compared);
            }
        }
        let before = if is_found { start } else { turn.len() };
        let first = fill.row - turn.len() as u32;
        order.add(first, first + before as u32, &turn[..before]);
        turn.drain(..before);
        is_found
    }

    /// Writes rows as long as they are those of a turn, again and again; gives the unit of the first row that is not.
    fn repeat_turn(&mut self, fill: &mut Fill, turn: &[u32], order: &mut RowOrder) -> Vec<u32> {
        let mut rows_a_turn = vec![0; self.geometry.units as usize];
        turn.iter().for_each(|&unit| rows_a_turn[unit as usize] += 1);
        let rows_of_units: Vec<(u32, u32)> = (0..).zip(rows_a_turn).filter(|&(_, rows)| rows > 0).collect();
        let phase = self.phase(fill).state;
        // In the turn that was found a unit may have come to its end.
        let mut is_same = false;
        loop {
            if is_same && self.phase(fill).state == phase {
                self.skip_turns(fill, turn.len() as u32, &rows_of_units);
            }
            is_same = true;
            for &unit in turn {
                let Some(row) = self.fill_next_row(fill, order) else { return Vec::new() };
                if row.unit != unit {
                    return vec![row.unit];
                }
                is_same &= row.keeps_space;
            }
        }
    }

    /// Writes as many whole turns as add rows to open superblocks, of which each keeps one: the choices are the same as
    /// long as no unit opens a superblock or fills one.
    fn skip_turns(&mut self, fill: &mut Fill, turn: u32, rows_of_units: &[(u32, u32)]) {
        let stream = self.stream_of_fill(0);
        let rows_left = fill.rows.min(self.phase(fill).until / self.geometry.slots) - fill.row;
        // The last row may hold less, and ends a write.
        let mut turns = rows_left.saturating_sub(1) / turn;
        for &(unit, rows) in rows_of_units {
            let block = self.point(unit, stream).block;
            let left = if block == NONE { 1 } else { self.geometry.rows - self.superblocks[block].allocated_rows };
            turns = turns.min((left - 1) / rows);
        }
        for &(unit, rows) in rows_of_units.iter().filter(|_| turns > 0) {
            let block = self.point(unit, stream).block;
            let state = &mut self.superblocks[block];
            state.allocated_rows += turns * rows;
            state.programmed_rows += turns * rows;
            state.valid += turns * rows * self.geometry.slots;
        }
        fill.row += turns * turn;
    }

    /// What the choice for the next row depends on, beside the space of the units.
    fn phase(&self, fill: &Fill) -> Phase {
        self.placement.phase(fill.row * self.geometry.slots)
    }

    /// What nobody has written is of one class, whatever the policy goes by, unless deaths are foreseen.
    fn stream_of_fill(&self, logical_page: u32) -> Stream {
        Stream::host(self.streams.class_of_written(logical_page, 0, self.clock))
    }

    fn fill_next_row(&mut self, fill: &mut Fill, order: &mut RowOrder) -> Option<Row> {
        if fill.row == fill.rows {
            return None;
        }
        let Some(row) = self.fill_row(fill.row * self.geometry.slots, fill.pages, &fill.loads) else {
            fill.rows = fill.row;
            return None;
        };
        fill.row += 1;
        if row.row == 0 {
            order.take(row.block);
        }
        Some(row)
    }

    /// Writes a row of the logical pages from `first` on that are below `pages`, in all but the map; `None` when no
    /// unit has space.
    fn fill_row(&mut self, first: u32, pages: u32, loads: &[u32]) -> Option<Row> {
        let count = self.geometry.slots.min(pages - first);
        let stream = self.stream_of_fill(first);
        let unit = self.unit_with_room(first, stream, loads)?;
        let space = |ftl: &Self| (ftl.has_room(unit, stream), ftl.is_overfull(unit, stream));
        let before = space(self);
        (0..count).for_each(|n| self.placement.placed(unit, first + n, pages));
        let (block, row) = self.take_row(unit, stream)?;
        self.superblocks[block].valid += count;
        self.row_is_on_flash(block, row, stream);
        Some(Row { unit, block, row, keeps_space: space(self) == before })
    }

    /// The unit that a write would choose; where each holds its share already, any that has room.
    fn unit_with_room(&self, logical_page: u32, stream: Stream, loads: &[u32]) -> Option<u32> {
        let choices = || (0..).map_while(|attempt| self.placement.unit(logical_page, attempt, loads));
        let mut with_room = choices().filter(|&unit| self.has_room(unit, stream));
        with_room.clone().find(|&unit| !self.is_overfull(unit, stream)).or_else(|| with_room.next())
    }

    /// The next row of the superblock that a stream of the host's fills in a unit.
    fn take_row(&mut self, unit: u32, stream: Stream) -> Option<(u32, u32)> {
        let open = self.point(unit, stream).block;
        let block = if open == NONE { self.open_superblock(unit, stream, true)? } else { open };
        let row = self.superblocks[block].allocated_rows;
        self.superblocks[block].allocated_rows += 1;
        if row + 1 == self.geometry.rows {
            self.point(unit, stream).block = NONE;
        }
        Some((block, row))
    }

    /// Lays out the steady state of the logical pages below `pages`. `counts_of` gives the valid pages of each of so
    /// many superblocks that hold so many pages together, ascending; `false` when it finds no space.
    pub(crate) fn lay_out(
        &mut self,
        pages: u32,
        seed: u64,
        counts_of: &mut dyn FnMut(u32, u64) -> Option<Vec<u32>>,
    ) -> bool {
        self.pass_slc_cache_by(true);
        let laid_out = self.lay_out_beside_slc_cache(pages, seed, counts_of);
        self.pass_slc_cache_by(false);
        laid_out
    }

    fn lay_out_beside_slc_cache(
        &mut self,
        pages: u32,
        seed: u64,
        counts_of: &mut dyn FnMut(u32, u64) -> Option<Vec<u32>>,
    ) -> bool {
        let units = self.geometry.units;
        let loads = vec![0; self.geometry.dies() as usize];
        let mut pages_of_unit = vec![0_u64; units as usize];
        let choose = |ftl: &Self, page: u32, turn: u32| ftl.nth_unit(page, turn, &loads);
        (0..pages).for_each(|page| pages_of_unit[choose(self, page, page) as usize] += 1);
        let mut cursors = Vec::with_capacity(units as usize);
        let open = self.open_in_steady_state();
        let in_use = self.geometry.superblocks - self.free_in_steady_state() - open.len() as u32;
        let in_open = u64::from(open.len() as u32 * (self.geometry.rows / 2) * self.geometry.slots);
        for unit in 0..units {
            let Some(in_sealed) = pages_of_unit[unit as usize].checked_sub(in_open) else { return false };
            let unused = self.units[unit as usize].bad + self.dedicated_of_unit(unit);
            let Some(sealed) = in_use.checked_sub(unused) else { return false };
            let Some(counts) = counts_of(sealed, in_sealed) else { return false };
            cursors.push(Cursor { counts, at: 0, block: NONE, slot: 0, needed: 0 });
        }
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let order = Permutation::new(pages, &mut random);
        for n in 0..pages {
            let page = order.at(n);
            let unit = choose(self, page, page);
            let left = open.iter().try_fold(page, |page, &stream| self.fill_open(unit, stream, page));
            if let Some(page) = left {
                self.lay_out_page(unit, page, &mut cursors[unit as usize], &mut random);
            }
        }
        cursors.iter_mut().enumerate().for_each(|(unit, cursor)| self.finish_unit(unit as u32, cursor));
        true
    }

    /// The streams whose superblocks are open in steady state when the host names none.
    fn open_in_steady_state(&self) -> &'static [Stream] {
        const APART: [Stream; 2] = [Stream::HOST, Stream::gc(0)];
        // Moved pages may go to the superblock that the host fills.
        if self.gc_streams().any(|stream| stream == Stream::HOST) { &APART[..1] } else { &APART }
    }

    /// The unit of a logical page; where it is free to choose, `turn` chooses.
    fn nth_unit(&self, logical_page: u32, turn: u32, loads: &[u32]) -> u32 {
        self.placement
            .bound_unit(logical_page)
            .unwrap_or_else(|| self.placement.unit(logical_page, self.placement.attempt(turn), loads).unwrap_or(0))
    }

    /// Opens a superblock for a stream and fills half of it; gives the logical page back when it is filled already.
    fn fill_open(&mut self, unit: u32, stream: Stream, page: u32) -> Option<u32> {
        let half = self.geometry.rows / 2;
        let block = match self.point(unit, stream).block {
            NONE if half > 0 => self.open_superblock(unit, stream, false)?,
            block => block,
        };
        if block == NONE || self.superblocks[block].valid == half * self.geometry.slots {
            return Some(page);
        }
        let slot = self.geometry.first_slot(block, 0) + self.superblocks[block].valid;
        self.mapping.map(page, slot);
        let state = &mut self.superblocks[block];
        state.valid += 1;
        (state.allocated_rows, state.programmed_rows) = (half, half);
        None
    }

    fn lay_out_page(&mut self, unit: u32, page: u32, cursor: &mut Cursor, random: &mut Pcg64Mcg) {
        let slots = self.geometry.slots_per_superblock();
        while cursor.needed == 0 {
            self.next_block(unit, cursor);
        }
        // Selection sampling (Knuth, TAOCP 3.4.2 S): each slot is valid with probability needed ÷ left.
        while random.random_range(0..slots - cursor.slot) >= cursor.needed {
            cursor.slot += 1;
        }
        let slot = cursor.block * slots + cursor.slot;
        self.mapping.map(page, slot);
        (cursor.slot, cursor.needed) = (cursor.slot + 1, cursor.needed - 1);
    }

    /// Seals the present superblock and continues with the next one of a unit.
    fn next_block(&mut self, unit: u32, cursor: &mut Cursor) {
        self.seal_laid_out(cursor);
        let Some(block) = self.take_free(unit, Stream::HOST, false) else { return };
        let valid = cursor.counts[cursor.at];
        (cursor.block, cursor.slot, cursor.needed) = (block, 0, valid);
        cursor.at += 1;
        let state = &mut self.superblocks[block];
        (state.state, state.valid) = (BlockState::Open, valid);
        (state.allocated_rows, state.programmed_rows) = (self.geometry.rows, self.geometry.rows - 1);
    }

    fn seal_laid_out(&mut self, cursor: &mut Cursor) {
        let block = std::mem::replace(&mut cursor.block, NONE);
        if block != NONE {
            self.row_is_on_flash(block, self.geometry.rows - 1, Stream::HOST);
        }
    }

    /// The superblocks that hold no valid page at all are sealed, too.
    fn finish_unit(&mut self, unit: u32, cursor: &mut Cursor) {
        while cursor.at < cursor.counts.len() {
            self.next_block(unit, cursor);
        }
        self.seal_laid_out(cursor);
    }
}

/// A pseudo-random order of the numbers below `count`: a Feistel network over the next even power of two, walked until
/// it falls below `count` (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, section 4).
struct Permutation {
    count: u32,
    half_bits: u32,
    keys: [u32; 4],
}

impl Permutation {
    fn new(count: u32, random: &mut Pcg64Mcg) -> Self {
        let bits = 32 - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| random.random()) }
    }

    fn at(&self, n: u32) -> u32 {
        let mut value = self.once(n);
        while value >= self.count {
            value = self.once(value);
        }
        value
    }

    fn once(&self, value: u32) -> u32 {
        let mask = (1_u32 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0x9E37_79B1);
            (left, right) = (right, left ^ ((mixed ^ (mixed >> 15)) & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_gives_every_number_once() {
        for count in [1_u32, 2, 3, 100, 1024, 5000] {
            let order = Permutation::new(count, &mut Pcg64Mcg::seed_from_u64(u64::from(count)));
            let mut all: Vec<u32> = (0..count).map(|n| order.at(n)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
