//! Open blocks, one a group, and the emptying of a block into them.

use flashwise_ssd::NONE;

use super::Drive;

/// The open block of each group. It always has a clean slot: what is full is sealed at once.
pub(super) struct Frontier {
    open: Vec<u32>,
    /// The list of the drive's that a group's blocks are sealed into.
    list: Vec<u32>,
}

impl Frontier {
    /// No open blocks yet; one list for each group.
    pub(super) fn new(list: Vec<u32>) -> Self {
        Self { open: vec![NONE; list.len()], list }
    }

    /// The group's open block, opened if more than `kept` blocks are clean.
    #[inline]
    pub(super) fn block(&mut self, drive: &mut Drive, group: usize, kept: usize) -> Option<u32> {
        match self.open[group] {
            NONE if drive.clean_blocks() > kept => {
                let block = drive.open()?;
                self.open[group] = block;
                Some(block)
            }
            NONE => None,
            block => Some(block),
        }
    }

    /// Any group that has an open block, the last one first: in the lists of the algorithms, that of the longest lives.
    pub(super) fn any(&self) -> Option<usize> {
        self.open.iter().rposition(|&block| block != NONE)
    }

    /// The open block of a group that has one ([`Frontier::any`]).
    pub(super) fn opened(&self, group: usize) -> u32 {
        self.open[group]
    }

    /// Seals a group's block if it is full; gives it then.
    #[inline]
    pub(super) fn seal_full(&mut self, drive: &mut Drive, group: usize) -> Option<u32> {
        let block = self.open[group];
        if block == NONE || drive.room(block) > 0 {
            return None;
        }
        self.open[group] = NONE;
        drive.seal(block, self.list[group]);
        Some(block)
    }

    /// Gives up a group's open block, full or not.
    pub(super) fn abandon(&mut self, group: usize) -> Option<u32> {
        let block = std::mem::replace(&mut self.open[group], NONE);
        (block != NONE).then_some(block)
    }

    /// Empties a block into the groups that its pages are told, and erases it. `placed` is told each page, the block
    /// that it went to, and the group of that block if it is full now and was sealed.
    ///
    /// Where a group has no open block and none is clean, the page goes to any open block. There is one: a block is
    /// emptied only while another one is clean, whose slots alone are as many as the pages to be moved.
    pub(super) fn empty(
        &mut self,
        drive: &mut Drive,
        victim: u32,
        mut group_of: impl FnMut(u32) -> usize,
        mut placed: impl FnMut(u32, u32, Option<usize>),
    ) {
        drive.take(victim);
        for n in 0..drive.shape().slots_per_block() {
            if drive.valid(victim) == 0 {
                break;
            }
            let Some(page) = drive.page_at(victim, n) else { continue };
            let wish = group_of(page);
            let group = match self.block(drive, wish, 0) {
                Some(_) => wish,
                None => self.any().unwrap_or(wish),
            };
            let block = self.open[group];
            drive.relocate(page, block);
            placed(page, block, self.seal_full(drive, group).map(|_| group));
        }
        drive.erase(victim);
    }
}
