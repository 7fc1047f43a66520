//! One round over all units, from any of them on; channels change fastest.

use crate::ftl::geometry::Geometry;

/// The units in the order of a round, written down: a page that finds no space anywhere asks each of them.
pub(super) struct Round {
    units: Vec<u32>,
    groups: u32,
    units_per_group: u32,
}

impl Round {
    pub(super) fn new(geometry: &Geometry) -> Self {
        Self::of(geometry.groups(), geometry.units_per_group)
    }

    /// Of so many groups of channels.
    pub(super) fn of(groups: u32, units_per_group: u32) -> Self {
        let turns = 0..groups * units_per_group;
        Self {
            units: turns.map(|turn| turn % groups * units_per_group + turn / groups).collect(),
            groups,
            units_per_group,
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.units.len() as u32
    }

    /// The turn of a unit.
    pub(super) fn turn_of(&self, unit: u32) -> u32 {
        unit % self.units_per_group * self.groups + unit / self.units_per_group
    }

    /// The unit of a turn below two rounds.
    #[inline]
    pub(super) fn unit(&self, turn: u32) -> u32 {
        let turn = turn as usize;
        self.units[if turn < self.units.len() { turn } else { turn - self.units.len() }]
    }

    /// All units, from a turn of the round on.
    #[inline(always)]
    pub(super) fn from(&self, turn: u32) -> impl Iterator<Item = u32> {
        let (later, first) = self.units.split_at(turn as usize);
        first.iter().chain(later).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_change_first_and_a_unit_knows_its_turn() {
        let round = Round::of(3, 2);
        let turns: Vec<_> = (0..6).map(|turn| round.unit(turn)).collect();
        assert_eq!(turns, [0, 2, 4, 1, 3, 5]);
        assert!(turns.iter().zip(0..).all(|(&unit, turn)| round.turn_of(unit) == turn && round.unit(turn + 6) == unit));
        assert_eq!(round.from(4).collect::<Vec<_>>(), [3, 5, 0, 2, 4, 1]);
    }
}
