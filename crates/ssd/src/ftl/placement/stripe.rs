//! Stripes: a write is cut into pieces from its start; each piece goes to the next group of channels.
//!
//! ```text
//!   unit = group(round robin by piece) · units of a group + (logical page ÷ pages of a superpage) mod units of a group
//! ```
//!
//! So a piece is spread over the dies of its group without conflict, and successive pieces go to different channels.
//! With one channel a group, a piece of 64 KiB is on one channel: a read that starts in the middle of it is served by
//! that channel and the next one. With all channels in one group, a piece is on all of them. When the unit that is due
//! has no space, the piece goes to the next group that has some.
//!
//! Where groups and units of a group have a factor in common, pieces of one superpage at successive addresses meet one
//! unit of each group for ever, and the others are idle: the Samsung of eight channels with two dies each takes 355
//! MB/s in 32 KiB and 709 MB/s in 64 KiB. To pass over a channel now and then would spread them, and put two of eight
//! successive pieces on one channel, against what the text measured of reads of such data
//! (`tests/hidden_parameters.rs`).
//!
//! Source of the parts: static (way) and dynamic (channel) allocation as surveyed in Tavakkol et al., "Performance
//! Evaluation of Dynamic Page Allocation Strategies in SSDs", ACM TOMPECS 1(2), 2016. The combination is chosen because
//! it shows what Kakaraparthy et al. (PVLDB 13(4), 2019) measured: chunks, hot locations, and their loss through
//! chunk-sized writes off alignment.

use super::{Phase, PlacementPolicy};
use crate::config::DeviceConfig;
use crate::ftl::geometry::Geometry;
use crate::reciprocal::Divisor;

/// Round robin over channel groups by piece.
pub(crate) struct Stripe {
    /// The group that the present or next piece goes to.
    group: u32,
    groups: u32,
    units_per_group: Divisor,
    superpage_pages: Divisor,
    stripe_pages: u32,
}

impl Stripe {
    pub(super) fn new(config: &DeviceConfig, geometry: &Geometry) -> Self {
        let stripe_pages = (config.ftl.stripe_bytes / config.ftl.logical_page_bytes) as u32;
        let Geometry { units_per_group, pages, .. } = *geometry;
        Self {
            group: 0,
            groups: geometry.groups(),
            units_per_group: Divisor::new(units_per_group),
            superpage_pages: Divisor::new(pages),
            stripe_pages,
        }
    }

    /// The group that comes after one.
    #[inline(always)]
    fn behind(&self, group: u32) -> u32 {
        if group + 1 == self.groups { 0 } else { group + 1 }
    }

    /// Pages whose addresses go round the units of a group once.
    fn round_pages(&self) -> u32 {
        self.superpage_pages.value() * self.units_per_group.value()
    }
}

impl PlacementPolicy for Stripe {
    #[inline]
    fn unit(&self, logical_page: u32, attempt: u32, _: &[u32]) -> Option<u32> {
        if attempt == self.groups {
            return None;
        }
        Some((self.group + attempt) % self.groups * self.units_per_group.value() + self.set_of_units(logical_page))
    }

    /// The address is divided once, and the groups are gone round without dividing.
    #[inline(always)]
    fn first_fit(&self, logical_page: u32, _: &[u32], mut fit: impl FnMut(u32) -> bool) -> Option<u32> {
        let (in_group, per_group) = (self.set_of_units(logical_page), self.units_per_group.value());
        let mut group = self.group;
        for _ in 0..self.groups {
            let unit = group * per_group + in_group;
            if fit(unit) {
                return Some(unit);
            }
            group = self.behind(group);
        }
        None
    }

    /// One unit of each group, the same in all of them.
    #[inline]
    fn set_of_units(&self, logical_page: u32) -> u32 {
        self.units_per_group.divide(self.superpage_pages.quotient(logical_page)).1
    }

    /// Of a superpage's pages each may go to another group. Where that leaves some groups out, the group changes when
    /// the address has gone round the units of one: if it changed with each page, a unit would meet the same groups for
    /// ever.
    fn attempt(&self, turn: u32) -> u32 {
        let meets_all = self.superpage_pages.value().is_multiple_of(self.groups);
        let turn = if meets_all { turn } else { turn / self.round_pages() };
        turn % self.groups
    }

    /// Units of a group go round with the address, groups with the pieces.
    fn phase(&self, logical_page: u32) -> Phase {
        let place = |of: u32| logical_page % of;
        Phase::of([self.group, place(self.stripe_pages), place(self.round_pages())])
    }

    #[inline]
    fn placed(&mut self, _: u32, n: u32, pages: u32) {
        self.overwritten(n, pages);
    }

    /// A piece ends where it ends, however its pages were placed.
    #[inline]
    fn overwritten(&mut self, n: u32, pages: u32) {
        if n + 1 == pages || (n + 1).is_multiple_of(self.stripe_pages) {
            self.group = self.behind(self.group);
        }
    }
}

crate::state::state! {
    Stripe {
        saved { group }
        built { groups, units_per_group, superpage_pages, stripe_pages }
    }
    checked check_restored
}

impl Stripe {
    fn check_restored(&self) -> Result<(), String> {
        if self.group < self.groups { Ok(()) } else { Err(format!("group {} does not exist", self.group)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successive_turns_meet_all_units_equally_often_whatever_factors_the_counts_share() {
        for (groups, units_per_group, superpage_pages) in [(2, 2, 4), (4, 2, 1), (8, 2, 4), (3, 3, 2), (6, 4, 4)] {
            let [units_of_group, pages] = [units_per_group, superpage_pages].map(Divisor::new);
            let policy = Stripe {
                group: 0,
                groups,
                units_per_group: units_of_group,
                superpage_pages: pages,
                stripe_pages: superpage_pages,
            };
            let units = groups * units_per_group;
            let mut pages_of_unit = vec![0; units as usize];
            for page in 0..units * superpage_pages * 10 {
                let unit = policy.unit(page, policy.attempt(page), &[]).unwrap();
                pages_of_unit[unit as usize] += 1;
            }
            assert!(pages_of_unit.iter().all(|&n| n == superpage_pages * 10), "{groups}: {pages_of_unit:?}");
        }
    }
}
