//! Where a fill in order has put the logical pages: a rule for the rows that it took, one after the other.
//!
//! The `n`th row of the fill holds the logical pages from `n · slots` on. As long as all units have space, placement
//! goes round them in the same *turn* again and again: the `k`th row of a turn is in the same unit each time. A unit's
//! rows lie in the superblocks that it took, one after the other.
//!
//! ```text
//!   logical page ─▶ row of the fill ─▶ turn, place in the turn ─▶ unit, row of the unit ─▶ its nth superblock, row there
//! ```
//!
//! When a unit is full the others go on in another turn. So the rule has *stretches* of turns: one, on nearly every
//! drive. It takes memory for each superblock and each place of a turn, and none for pages.

use crate::ftl::geometry::Geometry;
use crate::ftl::mapping::FillRule;
use crate::reciprocal::Divisor;

/// The rows of a fill.
pub(super) struct RowOrder {
    /// Logical pages that were filled.
    pages: u32,
    /// What numbers are divided by: slots of a row, rows of a superblock, superblocks of a unit.
    slots: Divisor,
    rows: Divisor,
    superblocks: Divisor,
    /// The superblocks that the fill took in a unit, in that order, from `unit · superblocks` on.
    taken: Box<[u32]>,
    /// Of each superblock, the how-manyeth of its unit's it is, from 1 on; 0 of one that was not taken.
    number: Box<[u32]>,
    /// At least one, once it is made.
    stretches: Vec<Stretch>,
    /// While it is made: superblocks taken, and rows written, by unit.
    taken_of_unit: Box<[u32]>,
    rows_of_unit: Box<[u32]>,
}

/// Rows in which the same turn comes again and again.
struct Stretch {
    /// Its first row of the fill, and the one behind its last.
    first: u32,
    end: u32,
    /// Rows of a turn.
    turn: Divisor,
    places: Box<[Place]>,
    units: Box<[OfUnit]>,
    /// The places in a turn that each unit has, unit by unit.
    places_of_units: Box<[u32]>,
}

/// A place in a turn.
#[derive(Clone, Copy)]
struct Place {
    /// Where the unit's superblocks start in `taken`.
    taken: u32,
    /// The unit's row, counted over those that it took, that it is in the first turn.
    row: u32,
    rows_a_turn: u32,
}

/// What a stretch means to a unit.
#[derive(Clone, Copy, Default)]
struct OfUnit {
    /// Rows that it had before.
    before: u32,
    /// Where its places start in `places_of_units`.
    places: u32,
    rows_a_turn: u32,
}

impl RowOrder {
    /// No rows yet.
    pub(super) fn new(geometry: &Geometry) -> Self {
        let superblocks = (geometry.units * geometry.superblocks) as usize;
        let of_units = || vec![0; geometry.units as usize].into_boxed_slice();
        Self {
            pages: 0,
            slots: Divisor::new(geometry.slots),
            rows: Divisor::new(geometry.rows),
            superblocks: Divisor::new(geometry.superblocks),
            taken: vec![0; superblocks].into_boxed_slice(),
            number: vec![0; superblocks].into_boxed_slice(),
            stretches: Vec::new(),
            taken_of_unit: of_units(),
            rows_of_unit: of_units(),
        }
    }

    /// A unit has taken its next superblock.
    pub(super) fn take(&mut self, block: u32) {
        let unit = self.superblocks.quotient(block);
        let taken = &mut self.taken_of_unit[unit as usize];
        self.taken[(unit * self.superblocks.value() + *taken) as usize] = block;
        *taken += 1;
        self.number[block as usize] = *taken;
    }

    /// The rows from `first` to `end` were written in turns over these units.
    pub(super) fn add(&mut self, first: u32, end: u32, turn: &[u32]) {
        if first == end {
            return;
        }
        let mut units = vec![OfUnit::default(); self.rows_of_unit.len()].into_boxed_slice();
        turn.iter().for_each(|&unit| units[unit as usize].rows_a_turn += 1);
        let mut places = 0;
        for (unit, &before) in units.iter_mut().zip(&self.rows_of_unit) {
            (unit.before, unit.places) = (before, places);
            places += unit.rows_a_turn;
        }
        let mut places_of_units = vec![0; turn.len()].into_boxed_slice();
        let mut seen = vec![0; units.len()];
        let place_of = |(at, &unit): (u32, &u32)| {
            let OfUnit { before, places, rows_a_turn } = units[unit as usize];
            let nth = &mut seen[unit as usize];
            places_of_units[(places + *nth) as usize] = at;
            *nth += 1;
            Place { taken: unit * self.superblocks.value(), row: before + *nth - 1, rows_a_turn }
        };
        let places = (0..).zip(turn).map(place_of).collect();
        let (whole, rest) = ((end - first) / turn.len() as u32, (end - first) % turn.len() as u32);
        let rows = self.rows_of_unit.iter_mut().zip(&units);
        rows.for_each(|(rows, unit)| *rows += whole * unit.rows_a_turn);
        turn[..rest as usize].iter().for_each(|&unit| self.rows_of_unit[unit as usize] += 1);
        let turn = Divisor::new(turn.len() as u32);
        self.stretches.push(Stretch { first, end, turn, places, units, places_of_units });
    }

    /// All rows are there; they hold so many logical pages.
    pub(super) fn holding(mut self, pages: u32) -> Self {
        self.pages = pages;
        (self.taken_of_unit, self.rows_of_unit) = Default::default();
        self
    }

    /// The stretch that a row of the fill is in.
    #[inline]
    fn stretch_of(&self, row: u32) -> Option<&Stretch> {
        match &self.stretches[..] {
            [all] => Some(all),
            several => several.get(several.partition_point(|stretch| stretch.end <= row)),
        }
    }
}

impl FillRule for RowOrder {
    fn slot_of(&self, logical_page: u32) -> Option<u32> {
        if logical_page >= self.pages {
            return None;
        }
        let (row, slot) = self.slots.divide(logical_page);
        let stretch = self.stretch_of(row)?;
        let (turn, place) = stretch.turn.divide(row - stretch.first);
        let Place { taken, row, rows_a_turn } = stretch.places[place as usize];
        let (nth, row) = self.rows.divide(row + turn * rows_a_turn);
        let block = self.taken[(taken + nth) as usize];
        Some((block * self.rows.value() + row) * self.slots.value() + slot)
    }

    fn page_in(&self, slot: u32) -> Option<u32> {
        let (row, slot) = self.slots.divide(slot);
        let (block, row) = self.rows.divide(row);
        let nth = self.number[block as usize].checked_sub(1)?;
        let (unit, row) = (self.superblocks.quotient(block) as usize, nth * self.rows.value() + row);
        // The last one that starts no later: those before it in which the unit has no rows start with the same one.
        let behind = self.stretches.partition_point(|stretch| stretch.units[unit].before <= row);
        let stretch = &self.stretches[behind.checked_sub(1)?];
        let OfUnit { before, places, rows_a_turn } = stretch.units[unit];
        let (turn, place) = ((row - before).checked_div(rows_a_turn)?, (row - before).checked_rem(rows_a_turn)?);
        let place = stretch.places_of_units[(places + place) as usize];
        // Of a row that the fill did not come to, this may be any number.
        let row = turn.saturating_mul(stretch.turn.value()).saturating_add(stretch.first + place);
        let page = if row < stretch.end { row * self.slots.value() + slot } else { self.pages };
        (page < self.pages).then_some(page)
    }

    /// To the end of the row.
    fn run_from(&self, logical_page: u32) -> u32 {
        self.slots.value() - self.slots.divide(logical_page).1
    }
}
