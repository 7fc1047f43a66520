//! Offline: when every page dies is known; pages of one time of death share blocks, and hardly anything is moved.
//!
//! # The algorithm
//! Each group of a [`Wheel`] has blocks of its own. A page goes to the group of its death.
//!
//! - When an epoch has passed, all pages in the blocks of its group have died: they are erased.
//! - When an epoch starts with which a span of a higher level starts, the blocks of that span's group are emptied one
//!   after the other: their pages, which all die within the span, go to groups of lower levels. These are all the
//!   rewrites.
//!
//! Pages that nobody writes again have a group that is never emptied.
//!
//! # What it costs at most
//! Let *n* be the writes, *U* the pages, *L* the writes of an epoch, *f* the fan-out, and let the wheel reach
//! `f^ℓ·L ≥ n` ([`Wheel::reach`]), so that nothing that dies is beyond it.
//!
//! *Each emptying moves a page at least one level down.* A span of level *i* that starts now covers `f` spans of level
//! *i* − 1, the first of which is now's; the death of each of its pages is at most `f − 1` of them away, so that level
//! *i* − 1 reaches it. Hence a page is moved at most as often as the level says that it was written to, and with (1) of
//! the wheel
//!
//! ```text
//!   rewrites ≤ Σ over writes of level(write)                                (2)
//!            = Σ over i ≥ 1 of #{writes of level ≥ i}
//!            ≤ Σ over i ≥ 1 of #{writes whose page lives for more than f^i·L}
//! ```
//!
//! The versions of one page live one after the other, so all lives that end sum up to less than `U·n`, and fewer than
//! `U·n ÷ X` of them are longer than *X*:
//!
//! ```text
//!   rewrites < U·n ÷ ((f − 1)·L)                                            (3)
//! ```
//!
//! # How much room it takes
//! Only the present epoch's group has pages that died but for a block that is being emptied, because a page dies in its
//! own epoch and no earlier. All that was ever written to the present epoch's group dies in this epoch, and an epoch
//! has *L* writes, each of which kills one page at most. So valid and invalid pages are `U + L` at most, beside one
//! block that is being emptied; of the groups in use, `G = ℓ·f + 2` ([`Wheel::groups_in_use`]), each has at most one
//! block that is not full. There is always a clean block where one is needed if
//!
//! ```text
//!   U + L + G·(B − 1) + B ≤ N                                               (4)
//! ```
//!
//! # Why that is near the optimum
//! Half of the spare slots `S = N − U` for *L*, and the other half for the groups of two levels, make `f ≈ S ÷ 4B`, and
//! `rewrites ÷ n` at most about `8·U·B ÷ S² = 8ρ ÷ ((1 − ρ)²·M)` with *M* blocks: nothing in comparison with *n* when
//! *M* is large, at any fill below 1. No algorithm programs fewer than *n* pages, so that the pages programmed are
//! within this share of the least possible. For small drives (4) leaves no space, and [`Offline::new`] says so.
//!
//! *L*, *f* and *ℓ* are chosen, among those that (4) allows, so that (2) is least.
//!
//! # What is whose
//! Lange, Naor and Yadgar (SIGMETRICS 2021) have a near-optimal offline algorithm whose rewrites are negligible in
//! comparison with *n*; its text was not at hand. This algorithm, its bound and the proofs are our own; they may differ
//! from theirs in constants.

use super::frontier::Frontier;
use super::{Algorithm, DeathTimeError, Drive, NEVER, Shape, Wheel};

/// The offline algorithm.
pub struct Offline<'a> {
    deaths: &'a [u32],
    wheel: Wheel,
    death_of: Vec<u32>,
    frontier: Frontier,
    /// The full blocks of each group.
    held: Vec<Vec<u32>>,
    bound: u64,
}

impl<'a> Offline<'a> {
    /// For a drive, told when what each write writes dies ([`deaths`](super::deaths())).
    ///
    /// # Errors
    /// When the drive has too few spare blocks for so many writes; see (4) in the module.
    pub fn new(shape: Shape, deaths: &'a [u32]) -> Result<Self, DeathTimeError> {
        let (wheel, bound) = choose(shape, deaths).ok_or(DeathTimeError::NoRoom {
            blocks: shape.blocks(),
            pages: shape.pages(),
            writes: deaths.len(),
        })?;
        Ok(Self {
            deaths,
            wheel,
            death_of: vec![NEVER; shape.pages() as usize],
            frontier: Frontier::new(vec![0; wheel.groups()]),
            held: vec![Vec::new(); wheel.groups()],
            bound,
        })
    }

    /// Its groups.
    pub fn wheel(&self) -> Wheel {
        self.wheel
    }

    /// (2): no more rewrites than this on these writes.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Starts an epoch.
    fn turn(&mut self, drive: &mut Drive, epoch: u32) {
        let time = epoch * self.wheel.epoch;
        let passed = self.wheel.group_at(0, epoch - 1);
        for block in self.blocks_of(passed) {
            drive.take(block);
            drive.erase(block);
        }
        for level in (1..self.wheel.levels).rev() {
            if epoch.is_multiple_of(self.wheel.fan_out.pow(level)) {
                self.refine(drive, self.wheel.group_at(level, epoch), time);
            }
        }
    }

    /// Empties a group into those of lower levels.
    fn refine(&mut self, drive: &mut Drive, group: usize, time: u32) {
        for block in self.blocks_of(group) {
            let Self { wheel, death_of, frontier, held, .. } = self;
            let group_of = |page: u32| wheel.group(time, death_of[page as usize]);
            frontier.empty(drive, block, group_of, |_, full, group| {
                if let Some(group) = group {
                    held[group].push(full);
                }
            });
        }
    }

    /// Takes the blocks of a group from it.
    fn blocks_of(&mut self, group: usize) -> Vec<u32> {
        let mut blocks = std::mem::take(&mut self.held[group]);
        blocks.extend(self.frontier.abandon(group));
        blocks
    }
}

impl Algorithm for Offline<'_> {
    fn write(&mut self, drive: &mut Drive, time: u32, page: u32) {
        if time > 0 && time.is_multiple_of(self.wheel.epoch) {
            self.turn(drive, time / self.wheel.epoch);
        }
        let death = self.deaths[time as usize];
        let group = self.wheel.group(time, death);
        let Some(block) = self.frontier.block(drive, group, 0) else {
            unreachable!("(4) leaves a clean block for every group")
        };
        self.death_of[page as usize] = death;
        drive.write(page, block);
        if let Some(full) = self.frontier.seal_full(drive, group) {
            self.held[group].push(full);
        }
    }
}

/// The wheel for which (2) is least among those for which there is room, and (2).
fn choose(shape: Shape, deaths: &[u32]) -> Option<(Wheel, u64)> {
    let mut lives: Vec<u32> = (0_u32..).zip(deaths).filter(|&(_, &d)| d != NEVER).map(|(t, &d)| d - t).collect();
    lives.sort_unstable();
    let longer_than = |life: u64| (lives.len() - lives.partition_point(|&other| u64::from(other) <= life)) as u64;
    let bound = |wheel: &Wheel| -> u64 {
        let reach = |level| u64::from(wheel.fan_out).pow(level) * u64::from(wheel.epoch);
        (1..wheel.levels).map(|level| longer_than(reach(level))).sum()
    };
    let wheels = fan_outs(shape).filter_map(|fan_out| smallest(shape, fan_out, deaths.len() as u64));
    wheels.map(|wheel| (wheel, bound(&wheel))).min_by_key(|&(wheel, bound)| (bound, wheel.levels, wheel.fan_out))
}

/// Fan-outs to be tried: each about an eighth above the one before.
fn fan_outs(shape: Shape) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(2_u32), |&fan_out| Some(fan_out + (fan_out / 8).max(1)))
        .take_while(move |&fan_out| fan_out <= shape.blocks())
}

/// The wheel of the fewest levels with this fan-out that reaches all writes, and the longest epoch that (4) allows.
fn smallest(shape: Shape, fan_out: u32, writes: u64) -> Option<Wheel> {
    (1..=16).find_map(|levels| {
        let slots = u64::from(shape.slots_per_block());
        let partial = Wheel { epoch: 1, fan_out, levels }.groups_in_use() * (slots - 1);
        let epoch = u64::from(shape.slots()).checked_sub(u64::from(shape.pages()) + partial + slots)?;
        let wheel = Wheel { epoch: u32::try_from(epoch).ok().filter(|&epoch| epoch > 0)?, fan_out, levels };
        (wheel.reach() >= writes).then_some(wheel)
    })
}
