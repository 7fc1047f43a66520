//! The sealed superblocks of each unit as a dense array, so that one can be drawn at random in constant time.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::state::{Carried, Carrier, Layout, State, StateError};

/// A set of superblocks for each unit.
pub(crate) struct SealedSet {
    /// `unit · superblocks + n`: the `n`th member.
    members: Vec<u32>,
    /// Where each superblock stands among its unit's members.
    position: Vec<u32>,
    len: Vec<u32>,
    superblocks: u32,
}

impl SealedSet {
    /// Empty sets of `units` units of `superblocks` superblocks.
    pub(crate) fn new(units: u32, superblocks: u32) -> Self {
        let all = (units * superblocks) as usize;
        Self { members: vec![0; all], position: vec![0; all], len: vec![0; units as usize], superblocks }
    }

    fn put(&mut self, unit: u32, at: u32, block: u32) {
        self.members[(unit * self.superblocks + at) as usize] = block;
        self.position[block as usize] = at;
    }

    fn member(&self, unit: u32, at: u32) -> u32 {
        self.members[(unit * self.superblocks + at) as usize]
    }

    /// Adds a superblock.
    pub(crate) fn insert(&mut self, block: u32) {
        let unit = block / self.superblocks;
        self.put(unit, self.len[unit as usize], block);
        self.len[unit as usize] += 1;
    }

    /// Takes a superblock out.
    pub(crate) fn remove(&mut self, block: u32) {
        let unit = block / self.superblocks;
        self.len[unit as usize] -= 1;
        let last = self.member(unit, self.len[unit as usize]);
        self.put(unit, self.position[block as usize], last);
    }

    /// Draws up to `count` different superblocks of a unit and gives each to `look`.
    pub(crate) fn draw(&mut self, unit: u32, count: u32, random: &mut Pcg64Mcg, mut look: impl FnMut(u32)) {
        let len = self.len[unit as usize];
        for drawn in 0..count.min(len) {
            // What is drawn goes behind what is not, so that nothing is drawn twice.
            let (at, end) = (random.random_range(0..len - drawn), len - drawn - 1);
            let (block, other) = (self.member(unit, at), self.member(unit, end));
            self.put(unit, end, block);
            self.put(unit, at, other);
            look(block);
        }
    }
}

/// The members of each set in the order in which they stand there, which draws go by.
impl State for SealedSet {
    fn layout(layout: &mut Layout) {
        layout.word("SealedSet");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let members = self.members();
        let mut count = members.len() as u64;
        carrier.number(&mut count)?;
        if !carrier.is_restoring() {
            return members.into_iter().try_for_each(|mut block| block.carry(carrier));
        }
        let mut is_member = vec![false; self.position.len()];
        for _ in 0..count {
            let mut block = 0_u32;
            block.carry(carrier)?;
            if is_member.get_mut(block as usize).is_none_or(|seen| std::mem::replace(seen, true)) {
                return Err(StateError::damaged(format!("superblock {block} is in a set twice, or does not exist")));
            }
            self.insert(block);
        }
        Ok(())
    }
}

impl SealedSet {
    /// All members, unit by unit.
    pub(crate) fn members(&self) -> Vec<u32> {
        let of_unit = |(unit, &len): (u32, &u32)| (0..len).map(move |at| self.member(unit, at));
        (0..).zip(&self.len).flat_map(of_unit).collect()
    }
}
