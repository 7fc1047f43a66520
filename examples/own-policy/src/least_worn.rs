//! Least worn: the sealed superblock with the fewest valid pages; among equals, the one that was erased least often.
//!
//! A scan over the superblocks of the unit, which is simple and slow; the built-in policies keep lists instead.

use flashwise_ssd::ftl::gc::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};

/// The valid pages of every sealed superblock.
pub struct LeastWorn {
    valid: Vec<Option<u32>>,
    shape: Shape,
}

impl LeastWorn {
    /// For a drive of this shape, in which nothing is sealed yet.
    pub fn new(shape: Shape) -> Self {
        Self { valid: vec![None; (shape.units * shape.superblocks) as usize], shape }
    }
}

impl VictimPolicy for LeastWorn {
    fn candidates(&self) -> Vec<Candidate> {
        let sealed = (0..).zip(&self.valid).filter(|(_, valid)| valid.is_some());
        sealed.map(|(block, &valid)| Candidate { block, valid }).collect()
    }

    fn sealed(&mut self, block: u32, valid: u32, _: Origin, _: u64) {
        self.valid[block as usize] = Some(valid);
    }

    fn invalidated(&mut self, block: u32, valid: u32, _: u64) {
        self.valid[block as usize] = Some(valid);
    }

    fn removed(&mut self, block: u32) {
        self.valid[block as usize] = None;
    }

    fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
        let first = unit * self.shape.superblocks;
        let valid = |&block: &u32| Some((self.valid[block as usize]?, context.erase_count(block)));
        let sealed = (first..first + self.shape.superblocks).filter(|block| valid(block).is_some());
        let victim = sealed.min_by_key(valid)?;
        self.valid[victim as usize] = None;
        Some(victim.into())
    }
}
