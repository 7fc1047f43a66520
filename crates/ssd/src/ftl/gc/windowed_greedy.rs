//! Windowed greedy: the emptiest of the superblocks that were sealed first.
//!
//! ```text
//!   sealed first ─▶ ■ ■ ■ ■ │ ■ ■ ■ ■ ■ ■ ─▶ sealed last
//!                   window  │ not examined yet; the oldest enters when one leaves the window
//! ```
//!
//! Young superblocks get time to lose pages. Among equals, the one that came to that count in the window first. A
//! window of one superblock is FIFO, one of all is greedy.
//!
//! Source: Hu et al., "Write Amplification Analysis in Flash-Based Solid State Drives", SYSTOR 2009, section 3.

use super::count_lists::CountLists;
use super::order::Order;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;
use crate::list::NONE;

/// The windowed greedy policy.
pub(crate) struct WindowedGreedy {
    order: Order,
    /// The superblocks in the windows.
    lists: CountLists,
    valid: Vec<u32>,
    is_inside: Vec<bool>,
    units: Vec<Window>,
    window: u32,
    superblocks: u32,
}

#[derive(Clone, Copy)]
struct Window {
    filled: u32,
    /// The oldest superblock outside.
    outside: u32,
}

impl WindowedGreedy {
    /// `window_share` of a unit's superblocks, at least one, is examined.
    pub(super) fn new(gc: &GcConfig, shape: Shape) -> Self {
        let Shape { units, superblocks, pages } = shape;
        let all = units * superblocks;
        Self {
            order: Order::new(units, all),
            lists: CountLists::new(units, all, pages),
            valid: vec![0; all as usize],
            is_inside: vec![false; all as usize],
            units: vec![Window { filled: 0, outside: NONE }; units as usize],
            window: ((gc.window_share * f64::from(superblocks)).ceil() as u32).max(1),
            superblocks,
        }
    }

    fn enter(&mut self, unit: u32, block: u32) {
        self.lists.append(unit, block, self.valid[block as usize]);
        self.is_inside[block as usize] = true;
        self.units[unit as usize].filled += 1;
    }

    /// Takes a superblock out; the oldest outside takes its place in the window.
    fn leave(&mut self, block: u32) {
        let unit = block / self.superblocks;
        let outside = self.units[unit as usize].outside;
        if std::mem::take(&mut self.is_inside[block as usize]) {
            self.lists.remove(block);
            self.units[unit as usize].filled -= 1;
            if outside != NONE {
                self.units[unit as usize].outside = self.order.next(outside);
                self.enter(unit, outside);
            }
        } else if outside == block {
            self.units[unit as usize].outside = self.order.next(block);
        }
        self.order.remove(unit, block);
    }
}

impl VictimPolicy for WindowedGreedy {
    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |(_, block): (u32, u32)| Candidate { block, valid: Some(self.valid[block as usize]) };
        self.order.members().into_iter().map(candidate).collect()
    }

    fn sealed(&mut self, block: u32, valid: u32, _: Origin, _: u64) {
        let unit = block / self.superblocks;
        self.valid[block as usize] = valid;
        self.order.append(unit, block);
        let window = &mut self.units[unit as usize];
        if window.filled < self.window {
            self.enter(unit, block);
        } else if window.outside == NONE {
            window.outside = block;
        }
    }

    #[inline]
    fn invalidated(&mut self, block: u32, valid: u32, _: u64) {
        self.valid[block as usize] = valid;
        if self.is_inside[block as usize] {
            self.lists.decrement(block);
        }
    }

    fn removed(&mut self, block: u32) {
        self.leave(block);
    }

    fn take_victim(&mut self, unit: u32, _: &mut Context<'_>) -> Option<Choice> {
        let (block, _) = self.lists.emptiest(unit)?;
        self.leave(block);
        Some(block.into())
    }
}

crate::state::state! { Window { saved { filled, outside } } }

crate::state::state! {
    WindowedGreedy {
        saved { order, lists, valid, is_inside, units }
        built { window, superblocks }
    }
    checked check_restored
}

impl WindowedGreedy {
    /// Checks that the window of each unit is what is oldest of it.
    fn check_restored(&self) -> Result<(), String> {
        let broken = || "the windows hold other superblocks than they count".to_owned();
        let mut inside = self.lists.counts();
        inside.sort_unstable();
        let mut expected = Vec::new();
        let mut outside = vec![NONE; self.units.len()];
        for (unit, block) in self.order.members() {
            let first_outside = &mut outside[unit as usize];
            match (self.is_inside[block as usize], *first_outside) {
                (true, NONE) => expected.push((block, unit, self.valid[block as usize])),
                (true, _) => return Err(broken()),
                (false, NONE) => *first_outside = block,
                (false, _) => {}
            }
        }
        expected.sort_unstable();
        let filled = |unit: u32| expected.iter().filter(|&&(_, of, _)| of == unit).count() as u32;
        let windows = (0..).zip(&self.units).all(|(unit, window)| window.filled == filled(unit));
        let ends = self.units.iter().map(|window| window.outside).eq(outside);
        let only_inside = self.is_inside.iter().filter(|&&inside| inside).count() == expected.len();
        if inside == expected && windows && ends && only_inside { Ok(()) } else { Err(broken()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{agrees, steps};
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    fn looking_at(window_share: f64) -> GcConfig {
        GcConfig { window_share, ..GcConfig::default() }
    }

    proptest! {
        #[test]
        fn it_takes_the_emptiest_of_the_window_that_a_scan_finds(steps in steps(), window in 1_usize..=8) {
            let share = window as f64 / 8.0;
            // When each superblock came to its count in the window is not what `changed_step` says, so only the count
            // is compared, and that the choice is in the window.
            let mut bench = super::super::naive::Bench::new(WindowedGreedy::new(&looking_at(share), SHAPE), SHAPE);
            for &step in &steps {
                let mut inside = bench.sealed.clone();
                inside.sort_by_key(|s| s.sealed_step);
                inside.truncate(window);
                if let Some(choice) = bench.play(step, SHAPE.pages) {
                    let least = inside.iter().map(|s| s.valid).min();
                    let valid = inside.iter().find(|s| Some(s.block) == choice).map(|s| s.valid);
                    prop_assert_eq!(valid, least);
                }
            }
        }

        #[test]
        fn a_window_of_one_is_fifo_and_one_of_all_is_greedy(steps in steps()) {
            agrees(WindowedGreedy::new(&looking_at(0.0), SHAPE), SHAPE, &steps, |sealed, _| {
                sealed.iter().min_by_key(|s| s.sealed_step).map(|s| s.block)
            })?;
            agrees(WindowedGreedy::new(&looking_at(1.0), SHAPE), SHAPE, &steps, |sealed, _| {
                sealed.iter().min_by_key(|s| (s.valid, s.changed_step)).map(|s| s.block)
            })?;
        }
    }
}
