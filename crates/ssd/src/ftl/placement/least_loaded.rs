//! Least loaded: a page goes to the unit whose dies have the fewest commands waiting or running.
//!
//! A superpage that has been begun is filled first. Among equally loaded units the one behind the last choice is
//! taken, so that an idle drive is filled round robin.

use super::PlacementPolicy;
use crate::ftl::geometry::Geometry;

/// The unit with the least work.
pub(crate) struct LeastLoaded {
    geometry: Geometry,
    /// The last choice, and how many pages were placed there, up to a superpage's worth.
    last: u32,
    filled: u32,
}

impl LeastLoaded {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { geometry: geometry.clone(), last: geometry.units - 1, filled: 0 }
    }

    /// The unit `turns` behind the last choice, channel by channel.
    fn behind(&self, turns: u32) -> u32 {
        let Geometry { units, units_per_group, .. } = self.geometry;
        let groups = self.geometry.groups();
        let turn_of_last = self.last % units_per_group * groups + self.last / units_per_group;
        let turn = (turn_of_last + turns) % units;
        turn % groups * units_per_group + turn / groups
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
        let units = self.geometry.units;
        match attempt {
            0 if self.filled > 0 => Some(self.last),
            0 => (1..=units).map(|turns| self.behind(turns)).min_by_key(|&unit| self.load(unit, commands_of_die)),
            _ if attempt <= units => Some(self.behind(attempt)),
            _ => None,
        }
    }

    fn attempt(&self, turn: u32) -> u32 {
        1 + turn % self.geometry.units
    }

    fn set_of_units(&self, _: u32) -> u32 {
        0
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
        built { geometry }
    }
    checked check_restored
}

impl LeastLoaded {
    fn check_restored(&self) -> Result<(), String> {
        let is_possible = self.last < self.geometry.units && self.filled < self.geometry.pages;
        if is_possible { Ok(()) } else { Err(format!("there is no unit {}", self.last)) }
    }
}
