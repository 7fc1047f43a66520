//! The state of the model: which slot holds which page, which blocks are clean, open and sealed.
//!
//! ```text
//!   clean ──open──▶ open ──seal──▶ sealed ──take──▶ taken ──erase──▶ clean
//!                    ▲ write, relocate                │ its valid pages are relocated
//!                    └────────────────────────────────┘
//! ```
//!
//! An algorithm works with nothing else than these steps, and each of them refuses to break the model: a page goes to a
//! clean slot only, and a block with a valid page is not erased. So what is counted here is what the algorithm costs.

use flashwise_ssd::NONE;
use flashwise_ssd::ftl::CountLists;

use super::Shape;

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages that the host wrote, *n*.
    pub writes: u64,
    /// Pages that were moved, each time counted.
    pub rewrites: u64,
    /// Blocks that were erased.
    pub erases: u64,
}

impl Counts {
    /// Pages programmed ÷ pages the host wrote.
    pub fn write_amplification(&self) -> f64 {
        (self.writes + self.rewrites) as f64 / self.writes as f64
    }

    /// What was done since an earlier count.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            writes: self.writes - before.writes,
            rewrites: self.rewrites - before.rewrites,
            erases: self.erases - before.erases,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Clean,
    Open,
    Sealed,
    Taken,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    state: State,
    /// Slots that are not clean; they are used in order.
    used: u32,
    valid: u32,
}

/// A drive of the model.
pub struct Drive {
    shape: Shape,
    /// The slot of each page's newest version, [`NONE`] before its first write.
    slot_of: Vec<u32>,
    /// The page in each slot, [`NONE`] where it is invalid or clean.
    page_in: Vec<u32>,
    blocks: Vec<Block>,
    /// Sealed blocks by their list and their valid pages.
    sealed: CountLists,
    /// Invalid pages in the sealed blocks of each list.
    invalid: Vec<u64>,
    clean: Vec<u32>,
    counts: Counts,
}

impl Drive {
    /// An empty drive whose sealed blocks are kept in so many lists.
    pub fn new(shape: Shape, lists: u32) -> Self {
        let blocks = shape.blocks();
        Self {
            shape,
            slot_of: vec![NONE; shape.pages() as usize],
            page_in: vec![NONE; shape.slots() as usize],
            blocks: vec![Block { state: State::Clean, used: 0, valid: 0 }; blocks as usize],
            sealed: CountLists::new(lists, blocks, shape.slots_per_block()),
            invalid: vec![0; lists as usize],
            clean: (0..blocks).rev().collect(),
            counts: Counts::default(),
        }
    }

    /// Its size.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Blocks that are erased and not open.
    pub fn clean_blocks(&self) -> usize {
        self.clean.len()
    }

    /// Valid pages of a block.
    pub fn valid(&self, block: u32) -> u32 {
        self.blocks[block as usize].valid
    }

    /// Clean slots of a block.
    pub fn room(&self, block: u32) -> u32 {
        self.shape.slots_per_block() - self.blocks[block as usize].used
    }

    /// The block that holds the newest version of a page.
    pub fn block_of(&self, page: u32) -> Option<u32> {
        let slot = self.slot_of[page as usize];
        (slot != NONE).then(|| slot / self.shape.slots_per_block())
    }

    /// The sealed block of a list with the fewest valid pages, and their number; among equals, the one that came to
    /// that number first.
    pub fn emptiest(&mut self, list: u32) -> Option<(u32, u32)> {
        self.sealed.emptiest(list)
    }

    /// Takes a clean block to write to.
    pub fn open(&mut self) -> Option<u32> {
        let block = self.clean.pop()?;
        self.blocks[block as usize].state = State::Open;
        Some(block)
    }

    /// Ends the writing to an open block; it becomes a candidate of a list.
    ///
    /// # Panics
    /// When it is not open.
    pub fn seal(&mut self, block: u32, list: u32) {
        let Block { state, valid, .. } = &mut self.blocks[block as usize];
        assert_eq!(*state, State::Open, "block {block} is sealed");
        *state = State::Sealed;
        self.invalid[list as usize] += u64::from(self.shape.slots_per_block() - *valid);
        self.sealed.append(list, block, *valid);
    }

    /// Takes a sealed block out of its list; gives its valid pages.
    fn unlist(&mut self, block: u32) -> u32 {
        let list = self.sealed.group_of(block);
        let valid = self.sealed.remove(block);
        self.invalid[list as usize] -= u64::from(self.shape.slots_per_block() - valid);
        valid
    }

    /// Slots of a list's sealed blocks that hold no valid page.
    pub fn invalid(&self, list: u32) -> u64 {
        self.invalid[list as usize]
    }

    /// Puts a sealed block into another list.
    ///
    /// # Panics
    /// When it is not sealed.
    pub fn relist(&mut self, block: u32, list: u32) {
        assert_eq!(self.blocks[block as usize].state, State::Sealed, "block {block} changes its list");
        let valid = self.unlist(block);
        self.invalid[list as usize] += u64::from(self.shape.slots_per_block() - valid);
        self.sealed.append(list, block, valid);
    }

    /// Whether a block is sealed.
    pub fn is_sealed(&self, block: u32) -> bool {
        self.blocks[block as usize].state == State::Sealed
    }

    /// Takes an open or sealed block, to empty it.
    ///
    /// # Panics
    /// When it is neither.
    pub fn take(&mut self, block: u32) {
        match self.blocks[block as usize].state {
            State::Sealed => {
                self.unlist(block);
            }
            state => assert_eq!(state, State::Open, "block {block} is taken"),
        }
        self.blocks[block as usize].state = State::Taken;
    }

    /// The valid page in the `n`-th slot of a block.
    #[inline]
    pub fn page_at(&self, block: u32, n: u32) -> Option<u32> {
        let page = self.page_in[(block * self.shape.slots_per_block() + n) as usize];
        (page != NONE).then_some(page)
    }

    /// The host writes a page; it goes to this block, and its older version becomes invalid.
    ///
    /// # Panics
    /// When the block is not open or has no clean slot.
    #[inline]
    pub fn write(&mut self, page: u32, block: u32) {
        self.counts.writes += 1;
        self.put(page, block);
    }

    /// Moves a valid page to a block.
    ///
    /// # Panics
    /// When the block is not open or has no clean slot, or when nobody has written the page yet.
    #[inline]
    pub fn relocate(&mut self, page: u32, block: u32) {
        assert_ne!(self.slot_of[page as usize], NONE, "page {page} is moved and was never written");
        self.counts.rewrites += 1;
        self.put(page, block);
    }

    #[inline]
    fn put(&mut self, page: u32, block: u32) {
        let slots = self.shape.slots_per_block();
        let target = &mut self.blocks[block as usize];
        assert!(target.state == State::Open && target.used < slots, "page {page} goes to block {block}: {target:?}");
        let slot = block * slots + target.used;
        target.used += 1;
        target.valid += 1;
        self.page_in[slot as usize] = page;
        let old = std::mem::replace(&mut self.slot_of[page as usize], slot);
        if old != NONE {
            self.invalidate(old);
        }
    }

    #[inline]
    fn invalidate(&mut self, slot: u32) {
        self.page_in[slot as usize] = NONE;
        let block = slot / self.shape.slots_per_block();
        let holder = &mut self.blocks[block as usize];
        holder.valid -= 1;
        if holder.state == State::Sealed {
            self.sealed.decrement(block);
            self.invalid[self.sealed.group_of(block) as usize] += 1;
        }
    }

    /// Erases a block that was taken and emptied.
    ///
    /// # Panics
    /// When it was not, or holds a valid page.
    pub fn erase(&mut self, block: u32) {
        let Block { state, valid, .. } = self.blocks[block as usize];
        assert!(state == State::Taken && valid == 0, "block {block} is erased: {state:?}, {valid} valid pages");
        self.blocks[block as usize] = Block { state: State::Clean, used: 0, valid: 0 };
        self.clean.push(block);
        self.counts.erases += 1;
    }

    /// Holds every array against the others: each page that was written is in exactly one slot, blocks count right,
    /// clean blocks are clean, and slots add up.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&self) -> Result<(), String> {
        let slots = self.shape.slots_per_block();
        for (page, &slot) in self.slot_of.iter().enumerate() {
            if slot != NONE && self.page_in[slot as usize] as usize != page {
                return Err(format!("page {page} is not in its slot {slot}"));
            }
        }
        let mut valid_pages = 0;
        for (n, block) in self.blocks.iter().enumerate() {
            let at = n * slots as usize;
            let valid = self.page_in[at..at + block.used as usize].iter().filter(|&&page| page != NONE).count();
            let beyond = self.page_in[at + block.used as usize..at + slots as usize].iter().any(|&page| page != NONE);
            if valid != block.valid as usize || beyond {
                return Err(format!("block {n}: {block:?}, but {valid} valid pages"));
            }
            if block.state == State::Clean && (block.used != 0 || !self.clean.contains(&(n as u32))) {
                return Err(format!("block {n} is clean and is not: {block:?}"));
            }
            valid_pages += valid;
        }
        let written = self.slot_of.iter().filter(|&&slot| slot != NONE).count();
        let clean = self.blocks.iter().filter(|block| block.state == State::Clean).count();
        if valid_pages != written || clean != self.clean.len() {
            return Err(format!("{valid_pages} valid slots for {written} pages; {clean} clean blocks"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive() -> Drive {
        Drive::new(Shape::new(3, 2, 3).unwrap(), 1)
    }

    #[test]
    fn a_write_makes_the_older_version_invalid_and_a_move_does_too() {
        let mut drive = drive();
        let first = drive.open().unwrap();
        drive.write(0, first);
        drive.write(1, first);
        drive.seal(first, 0);
        let second = drive.open().unwrap();
        drive.write(0, second);
        assert_eq!((drive.valid(first), drive.valid(second), drive.emptiest(0)), (1, 1, Some((first, 1))));
        drive.take(first);
        drive.relocate(1, second);
        drive.erase(first);
        assert_eq!(drive.counts(), Counts { writes: 3, rewrites: 1, erases: 1 });
        assert_eq!((drive.block_of(1), drive.clean_blocks(), drive.emptiest(0)), (Some(second), 2, None));
        drive.check().unwrap();
    }

    #[test]
    #[should_panic(expected = "block 0 is erased: Taken, 1 valid pages")]
    fn a_block_with_a_valid_page_is_not_erased() {
        let mut drive = drive();
        let block = drive.open().unwrap();
        drive.write(0, block);
        drive.take(block);
        drive.erase(block);
    }

    #[test]
    #[should_panic(expected = "page 2 goes to block 0")]
    fn a_page_goes_to_a_clean_slot_only() {
        let mut drive = drive();
        let block = drive.open().unwrap();
        (0..3).for_each(|page| drive.write(page, block));
    }

    #[test]
    fn the_check_finds_a_page_that_is_lost() {
        let mut drive = drive();
        let block = drive.open().unwrap();
        drive.write(0, block);
        drive.page_in[0] = NONE;
        assert!(drive.check().is_err());
    }
}
