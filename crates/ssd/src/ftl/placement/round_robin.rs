//! Round robin: each superpage's worth of pages goes to the next unit, whatever its address; channels change fastest.
//!
//! Source: the dynamic allocation of Tavakkol et al., ACM TOMPECS 1(2), 2016, in its simplest form.

use super::round::Round;
use super::{Phase, PlacementPolicy};
use crate::config::DeviceConfig;
use crate::ftl::geometry::Geometry;

/// One unit after the other, channel by channel.
pub(crate) struct RoundRobin {
    /// Pages placed, modulo a whole round.
    turn: u32,
    round: Round,
    superpage_pages: u32,
}

impl RoundRobin {
    pub(super) fn new(_: &DeviceConfig, geometry: &Geometry) -> Self {
        Self { turn: 0, round: Round::new(geometry), superpage_pages: geometry.pages }
    }

    /// The turn of the unit that is due.
    #[inline]
    fn due(&self) -> u32 {
        self.turn / self.superpage_pages
    }
}

impl PlacementPolicy for RoundRobin {
    #[inline]
    fn unit(&self, _: u32, attempt: u32, _: &[u32]) -> Option<u32> {
        (attempt < self.round.len()).then(|| self.round.unit(self.due() + attempt))
    }

    #[inline(always)]
    fn first_fit(&self, _: u32, _: &[u32], mut fit: impl FnMut(u32) -> bool) -> Option<u32> {
        self.round.from(self.due()).find(|&unit| fit(unit))
    }

    fn attempt(&self, turn: u32) -> u32 {
        turn % self.round.len()
    }

    fn set_of_units(&self, _: u32) -> u32 {
        0
    }

    fn phase(&self, _: u32) -> Phase {
        Phase::of([self.turn, 0, 0])
    }

    fn placed(&mut self, _: u32, _: u32, _: u32) {
        self.turn += 1;
        if self.turn == self.round.len() * self.superpage_pages {
            self.turn = 0;
        }
    }
}

crate::state::state! {
    RoundRobin {
        saved { turn }
        built { round, superpage_pages }
    }
    checked check_restored
}

impl RoundRobin {
    fn check_restored(&self) -> Result<(), String> {
        let turns = self.round.len() * self.superpage_pages;
        if self.turn < turns { Ok(()) } else { Err(format!("turn {} of {turns}", self.turn)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_change_first_and_a_superpage_is_filled_before_the_next_unit_is_due() {
        let mut policy = RoundRobin { turn: 0, round: Round::of(2, 2), superpage_pages: 2 };
        let mut order = Vec::new();
        for _ in 0..10 {
            let unit = policy.unit(0, 0, &[]).unwrap();
            policy.placed(unit, 0, 1);
            order.push(unit);
        }
        assert_eq!(order, [0, 0, 2, 2, 1, 1, 3, 3, 0, 0]);
        assert_eq!((policy.unit(0, 3, &[]), policy.unit(0, 4, &[])), (Some(0), None));
    }
}
