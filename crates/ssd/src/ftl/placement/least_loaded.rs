//! Least loaded: a page goes to the unit whose dies have the fewest commands waiting or running.
//!
//! A superpage that has been started is filled first. Among equally loaded units the one behind the last choice is
//! taken, so that an idle drive is filled round robin.

use super::round::Round;
use super::{Phase, PlacementPolicy};
use crate::config::DeviceConfig;
use crate::ftl::geometry::Geometry;

/// The unit with the least work.
pub(crate) struct LeastLoaded {
    geometry: Geometry,
    round: Round,
    /// The last choice, and how many pages were placed there, up to a superpage's worth.
    last: u32,
    filled: u32,
}

impl LeastLoaded {
    pub(super) fn new(_: &DeviceConfig, geometry: &Geometry) -> Self {
        Self { geometry: geometry.clone(), round: Round::new(geometry), last: geometry.units - 1, filled: 0 }
    }

    /// The turn of the unit behind the last choice.
    #[inline]
    fn next(&self) -> u32 {
        (self.round.turn_of(self.last) + 1) % self.round.len()
    }

    /// The unit that a page should go to.
    #[inline]
    fn preferred(&self, commands_of_die: &[u32]) -> Option<u32> {
        match self.filled {
            0 => self.round.from(self.next()).min_by_key(|&unit| self.load(unit, commands_of_die)),
            _ => Some(self.last),
        }
    }

    fn load(&self, unit: u32, commands_of_die: &[u32]) -> u32 {
        (0..self.geometry.dies_per_unit)
            .map(|n| commands_of_die[self.geometry.die_in_unit(unit, n) as usize])
            .max()
            .unwrap_or(0)
    }
}

impl PlacementPolicy for LeastLoaded {
    fn unit(&self, _: u32, attempt: u32, commands_of_die: &[u32]) -> Option<u32> {
        match attempt {
            0 => self.preferred(commands_of_die),
            _ if attempt <= self.round.len() => Some(self.round.unit(self.next() + attempt - 1)),
            _ => None,
        }
    }

    #[inline(always)]
    fn first_fit(&self, _: u32, commands_of_die: &[u32], mut fit: impl FnMut(u32) -> bool) -> Option<u32> {
        let preferred = self.preferred(commands_of_die).filter(|&unit| fit(unit));
        preferred.or_else(|| self.round.from(self.next()).find(|&unit| fit(unit)))
    }

    fn attempt(&self, turn: u32) -> u32 {
        1 + turn % self.geometry.units
    }

    fn set_of_units(&self, _: u32) -> u32 {
        0
    }

    fn phase(&self, _: u32) -> Phase {
        Phase::of([self.last, self.filled, 0])
    }

    fn placed(&mut self, unit: u32, _: u32, _: u32) {
        self.filled = if unit == self.last { self.filled + 1 } else { 1 };
        self.last = unit;
        if self.filled == self.geometry.pages {
            self.filled = 0;
        }
    }
}

crate::state::state! {
    LeastLoaded {
        saved { last, filled }
        built { geometry, round }
    }
    checked check_restored
}

impl LeastLoaded {
    fn check_restored(&self) -> Result<(), String> {
        let is_possible = self.last < self.geometry.units && self.filled < self.geometry.pages;
        if is_possible { Ok(()) } else { Err(format!("unit {} does not exist", self.last)) }
    }
}
