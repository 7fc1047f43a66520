//! The sealed superblocks of each unit as a dense array, so that one can be drawn at random in constant time.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

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
