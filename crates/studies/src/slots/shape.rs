//! How large a drive of the model is, and what that alone says about its rewrites.

use super::DeathTimeError;

/// The size of a drive, and of what is stored on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    blocks: u32,
    slots_per_block: u32,
    pages: u32,
}

impl Shape {
    /// `blocks` blocks of `slots_per_block` slots, and `pages` logical pages.
    ///
    /// # Errors
    /// When there are 2³² slots or more, or when the pages fill all blocks but one: then every other block may be
    /// full of valid pages, and nothing can ever be gained.
    pub fn new(blocks: u32, slots_per_block: u32, pages: u32) -> Result<Self, DeathTimeError> {
        let shape = Self { blocks, slots_per_block, pages };
        let slots = u64::from(blocks) * u64::from(slots_per_block);
        let usable = u64::from(blocks.saturating_sub(1)) * u64::from(slots_per_block);
        if slots >= u64::from(u32::MAX) || u64::from(pages) >= usable || pages == 0 {
            return Err(DeathTimeError::Shape { blocks, slots_per_block, pages });
        }
        Ok(shape)
    }

    /// As many pages as fill this share of the slots.
    ///
    /// # Errors
    /// As [`Shape::new`].
    pub fn with_fill(blocks: u32, slots_per_block: u32, fill: f64) -> Result<Self, DeathTimeError> {
        let slots = f64::from(blocks) * f64::from(slots_per_block);
        Self::new(blocks, slots_per_block, (slots * fill) as u32)
    }

    /// Blocks.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Slots of a block, *B*.
    pub fn slots_per_block(&self) -> u32 {
        self.slots_per_block
    }

    /// Logical pages, *U*.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Slots, *N*.
    pub fn slots(&self) -> u32 {
        self.blocks * self.slots_per_block
    }

    /// Logical pages ÷ slots, ρ.
    pub fn fill(&self) -> f64 {
        f64::from(self.pages) / f64::from(self.slots())
    }

    /// Most valid pages that the emptiest block can have when all blocks but one are sealed, `v*`: the mean, rounded
    /// down.
    pub fn worst_victim(&self) -> u32 {
        self.pages / (self.blocks - 1)
    }

    /// Most rewrites of greedy in `writes` writes, whatever they are: `v* · (1 + ⌊n ÷ (B − v*)⌋)`. The proof is in
    /// [`Greedy`](super::Greedy).
    pub fn greedy_guarantee(&self, writes: u64) -> u64 {
        let worst = u64::from(self.worst_victim());
        worst * (1 + writes / (u64::from(self.slots_per_block) - worst))
    }

    /// Most rewrites of the online algorithm in `writes` writes, whatever the writes and the predictions are: greedy's,
    /// and one block. The proof is in [`Online`](super::Online).
    pub fn online_guarantee(&self, writes: u64) -> u64 {
        self.greedy_guarantee(writes) + u64::from(self.slots_per_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_without_room_to_gain_is_refused_and_told() {
        assert!(Shape::new(4, 8, 23).is_ok());
        let error = Shape::new(4, 8, 24).unwrap_err().to_string();
        assert!(error.contains("24 pages") && error.contains("4 blocks"), "{error}");
        assert!(Shape::new(1, 8, 1).is_err() && Shape::new(0, 0, 0).is_err() && Shape::new(4, 8, 0).is_err());
        assert!(Shape::new(1 << 16, 1 << 16, 5).is_err(), "too many slots");
    }

    #[test]
    fn the_guarantee_tends_to_rho_over_one_less_rho_of_all_blocks_but_one() {
        let shape = Shape::new(1001, 64, 56_000).unwrap();
        let n = 1_000_000_000;
        assert_eq!(shape.worst_victim(), 56);
        assert!((shape.greedy_guarantee(n) as f64 / n as f64 - 0.875 / 0.125).abs() < 1e-6);
    }
}
