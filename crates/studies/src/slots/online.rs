//! Online: predictions say when each page dies; they may be wrong in any way.
//!
//! # The algorithm
//! A page, written or moved, goes to the open block of the group of its predicted death in a [`Wheel`]. Nothing is
//! moved before room is needed: then, of the sealed blocks, the emptiest is emptied; among equals one whose predictions
//! have all passed. A page that is overdue is expected to stay so once more as long as it has been.
//!
//! Let `v*` and *B* be as for [`Greedy`](super::Greedy), *t* the writes so far and *R* the rewrites so far. When a
//! page's group has no open block and no block can be opened without using the last clean one:
//!
//! ```text
//!   v = valid pages of the chosen block
//!   if v < B and R + v ≤ v*·⌊t ÷ (B − v*)⌋ + B:   empty it, and ask again               a predicted step
//!   else if any block is open:                    the page goes there
//!   else:                                         empty the emptiest block of all        a greedy step
//! ```
//!
//! # What it costs at most, whatever the predictions say
//! ```text
//!   R ≤ v*·⌊t ÷ (B − v*)⌋ + v* + B     at any time: greedy's guarantee and one block      (1)
//! ```
//!
//! Only steps move pages. After a *predicted* step (1) holds by its condition. At a *greedy* step no block is open, one
//! is clean, and *M* − 1 are sealed; so the emptiest has `v*` valid pages at most, and at least `B − v*` clean slots
//! are left in open blocks afterwards. Look at a row of greedy steps with no predicted step between them. Before the
//! first, *R* is 0 or what a predicted step left, at most `v*·⌊t ÷ (B − v*)⌋ + B`, and it grows by `v*` at most: (1)
//! holds. Before each further one, no block is open: the host has written all those clean slots, `B − v*` writes or
//! more, so that the right side of (1) has grown by `v*` or more since the last step, and *R* grows by `v*` at most:
//! (1) holds again. ∎
//!
//! The guarantee is that of greedy's worst case, about ρ ÷ (1 − ρ) rewrites a write. On kinder traffic greedy itself
//! does better than its guarantee, and wrong predictions may cost anything in between.
//!
//! # What is whose
//! Lange, Naor and Yadgar (SIGMETRICS 2021): an online algorithm with predictions of each page's next write, which gets
//! better as their error shrinks and never does worse than greedy's guarantee. Its text was not at hand; groups, rule
//! and proof are our own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::frontier::Frontier;
use super::{Algorithm, Drive, NEVER, Shape, Wheel};

/// Lists of the drive: blocks with a predicted death to come, and those without.
const ALIVE: u32 = 0;
const EXPIRED: u32 = 1;

/// The online algorithm with predictions.
pub struct Online<P> {
    predict: P,
    shape: Shape,
    wheel: Wheel,
    frontier: Frontier,
    death_of: Vec<u32>,
    /// The last predicted death in each block.
    last_death: Vec<u32>,
    /// Sealed blocks by their last predicted death; what was erased since is still in it.
    expiring: BinaryHeap<Reverse<(u32, u32)>>,
    refused: u64,
    greedy_steps: u64,
}

impl<P: FnMut(u32, u32) -> u32> Online<P> {
    /// For a drive; `predict` is told the time and the page of each write, and says when the page is written next.
    pub fn new(shape: Shape, predict: P) -> Self {
        Self::with_wheel(shape, wheel(shape), predict)
    }

    /// The same with groups of one's own choice.
    pub fn with_wheel(shape: Shape, wheel: Wheel, predict: P) -> Self {
        Self {
            predict,
            shape,
            wheel,
            frontier: Frontier::new(vec![ALIVE; wheel.groups()]),
            death_of: vec![NEVER; shape.pages() as usize],
            last_death: vec![0; shape.blocks() as usize],
            expiring: BinaryHeap::new(),
            refused: 0,
            greedy_steps: 0,
        }
    }

    /// How often a page went to any open block, because a predicted step was not within the budget.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// How often a predicted step was not within the budget, and no block was open.
    pub fn greedy_steps(&self) -> u64 {
        self.greedy_steps
    }

    /// Blocks whose predictions have all passed get into their list.
    fn expire(&mut self, drive: &mut Drive, time: u32) {
        while let Some(&Reverse((death, block))) = self.expiring.peek() {
            if death > time {
                break;
            }
            self.expiring.pop();
            if self.last_death[block as usize] == death && drive.is_sealed(block) {
                drive.relist(block, EXPIRED);
            }
        }
    }

    /// The block that a predicted step empties, and its valid pages.
    fn victim(&self, drive: &mut Drive) -> Option<(u32, u32)> {
        let found = [EXPIRED, ALIVE].map(|list| drive.emptiest(list));
        found.into_iter().flatten().min_by_key(|&(_, valid)| valid)
    }

    /// Whether so many rewrites are within the budget; see the module.
    fn affords(&self, drive: &Drive, time: u32, valid: u32) -> bool {
        let (slots, worst) = (u64::from(self.shape.slots_per_block()), u64::from(self.shape.worst_victim()));
        let budget = worst * (u64::from(time) / (slots - worst)) + slots;
        u64::from(valid) < slots && drive.counts().rewrites + u64::from(valid) <= budget
    }

    /// Empties a block; its pages go by their predictions.
    fn empty(&mut self, drive: &mut Drive, victim: u32, time: u32) {
        let Self { wheel, death_of, last_death, expiring, frontier, .. } = self;
        let expected = |page: u32| match death_of[page as usize] {
            death if death > time => death,
            death => time.saturating_add((time - death).max(1)),
        };
        frontier.empty(
            drive,
            victim,
            |page| wheel.group(time, expected(page)),
            |page, block, sealed| {
                let death = expected(page);
                let last = &mut last_death[block as usize];
                *last = death.max(*last);
                if sealed.is_some() && *last != NEVER {
                    expiring.push(Reverse((*last, block)));
                }
            },
        );
        last_death[victim as usize] = 0;
    }

    /// A block for a page that would go to `wish`, and its group.
    fn block(&mut self, drive: &mut Drive, wish: usize, time: u32) -> (u32, usize) {
        loop {
            if let Some(block) = self.frontier.block(drive, wish, 1) {
                return (block, wish);
            }
            self.expire(drive, time);
            let affordable = self.victim(drive).filter(|&(_, valid)| self.affords(drive, time, valid));
            let (victim, _) = match (affordable, self.frontier.any()) {
                (Some(found), _) => found,
                (None, Some(group)) => {
                    self.refused += 1;
                    return (self.frontier.opened(group), group);
                }
                (None, None) => {
                    self.greedy_steps += 1;
                    let Some(found) = self.victim(drive) else { unreachable!("all blocks but a clean one are sealed") };
                    found
                }
            };
            self.empty(drive, victim, time);
        }
    }
}

impl<P: FnMut(u32, u32) -> u32> Algorithm for Online<P> {
    fn lists(&self) -> u32 {
        2
    }

    fn write(&mut self, drive: &mut Drive, time: u32, page: u32) {
        let death = (self.predict)(time, page).max(time.saturating_add(1));
        let (block, group) = self.block(drive, self.wheel.group(time, death), time);
        self.death_of[page as usize] = death;
        drive.write(page, block);
        let last = &mut self.last_death[block as usize];
        *last = death.max(*last);
        if self.frontier.seal_full(drive, group).is_some() && *last != NEVER {
            self.expiring.push(Reverse((*last, block)));
        }
    }
}

/// Groups for a drive: open blocks take a quarter of the spare blocks, half full on average, and an epoch kills half of
/// the spare slots. Two levels, so that long lives are told apart as well.
fn wheel(shape: Shape) -> Wheel {
    let spare = shape.slots() - shape.pages();
    let open = spare / shape.slots_per_block() / 4;
    Wheel { epoch: (spare / 2).max(1), fan_out: (open / 2).max(2) - 1, levels: 2 }
}
