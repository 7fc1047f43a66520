//! 2R in its FIFO form: in [two regions](super::regions), the oldest superblock that is empty enough.
//!
//! ```text
//!   oldest ─ scanned, 70 % of the region ────────────────▶ ┃ younger: left to lose more
//!   is less than the limit valid? ─ yes ─▶ victim; the scan continues behind it
//!   at the end of a lap: from the oldest again, with a limit that is 5 % of a superblock higher
//! ```
//!
//! Each time that a region is chosen, the first lap starts with a limit of 5 %. Old superblocks with little to gain are
//! passed until nothing emptier is left that is as old, so that cold data is not moved again and again.
//!
//! The scan is not made: what it would pass is in a set for each twentieth of the valid share, by age.
//!
//! Source: Haas et al., "SSD-iq: Uncovering the Hidden Side of SSD Performance", PVLDB 18(11), 2025, and its simulator.
//! How the first limit and the region are chosen in this form is ours.

use std::collections::BTreeSet;

use super::order::Order;
use super::regions::Regions;
use super::{Candidate, Choice, Context, Origin, Shape, VictimPolicy};
use crate::config::GcConfig;
use crate::list::NONE;

/// Steps of the limit to a superblock that is all valid.
const STEPS: u32 = 20;
/// Tenths of a region, from the oldest on, that are scanned.
const DEPTH_TENTHS: u32 = 7;

/// The 2R-FIFO policy.
pub(crate) struct TwoRFifo {
    regions: Regions,
    /// The superblocks of each group by age.
    order: Order,
    groups: Vec<Group>,
    scans: Vec<Scan>,
    states: Vec<State>,
    sealed: u64,
    pages: u32,
}

/// What is scanned of a group.
#[derive(Clone, Debug)]
struct Group {
    superblocks: u32,
    scanned: u32,
    /// The youngest superblock that is scanned.
    last: u32,
    /// Those that are scanned by twentieths of their valid share, rounded down, the oldest first.
    by_share: [BTreeSet<(u64, u32)>; STEPS as usize + 1],
}

/// Where a unit's scan is.
#[derive(Clone, Copy, Debug)]
struct Scan {
    /// The limit in twentieths.
    limit: u32,
    /// The superblock that was taken last was sealed as the so-many-th; 0 at the start of a lap.
    behind: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// It was sealed as the so-many-th of all, from 1 on.
    sealed_as: u64,
    valid: u32,
    is_scanned: bool,
}

const FIRST_LAP: Scan = Scan { limit: 1, behind: 0 };

impl TwoRFifo {
    pub(super) fn new(_: &GcConfig, shape: Shape) -> Self {
        let (groups, all) = (2 * shape.units, shape.units * shape.superblocks);
        let group =
            Group { superblocks: 0, scanned: 0, last: NONE, by_share: std::array::from_fn(|_| BTreeSet::new()) };
        Self {
            regions: Regions::new(shape),
            order: Order::new(groups, all),
            groups: vec![group; groups as usize],
            scans: vec![FIRST_LAP; shape.units as usize],
            states: vec![State::default(); all as usize],
            sealed: 0,
            pages: shape.pages,
        }
    }

    /// The twentieth that a number of valid pages is in.
    fn share(&self, valid: u32) -> usize {
        (u64::from(valid) * u64::from(STEPS) / u64::from(self.pages)) as usize
    }

    /// Puts a superblock into what is scanned, or takes it out.
    fn set_scanned(&mut self, group: u32, block: u32, is_scanned: bool) {
        let State { sealed_as, valid, .. } = self.states[block as usize];
        let share = self.share(valid);
        let set = &mut self.groups[group as usize].by_share[share];
        if is_scanned {
            set.insert((sealed_as, block))
        } else {
            set.remove(&(sealed_as, block))
        };
        self.states[block as usize].is_scanned = is_scanned;
    }

    /// Moves the end of what is scanned to where it belongs.
    fn balance(&mut self, group: u32) {
        let Group { superblocks, .. } = self.groups[group as usize];
        let wanted = (superblocks * DEPTH_TENTHS).div_ceil(10);
        while self.groups[group as usize].scanned < wanted {
            let next = match self.groups[group as usize].last {
                NONE => self.order.first(group).unwrap_or(NONE),
                last => self.order.next(last),
            };
            self.set_scanned(group, next, true);
            (self.groups[group as usize].last, self.groups[group as usize].scanned) =
                (next, self.groups[group as usize].scanned + 1);
        }
        while self.groups[group as usize].scanned > wanted {
            self.drop_last(group);
        }
    }

    fn drop_last(&mut self, group: u32) {
        let last = self.groups[group as usize].last;
        self.set_scanned(group, last, false);
        self.groups[group as usize].last = self.order.previous(last);
        self.groups[group as usize].scanned -= 1;
    }

    /// A superblock leaves its group.
    fn forget(&mut self, block: u32) {
        let group = self.regions.group_of(block);
        if self.groups[group as usize].last == block {
            self.drop_last(group);
        } else if self.states[block as usize].is_scanned {
            self.set_scanned(group, block, false);
            self.groups[group as usize].scanned -= 1;
        }
        self.order.remove(group, block);
        self.groups[group as usize].superblocks -= 1;
        self.balance(group);
    }

    /// The next superblock of a group that a scan comes to.
    fn scan(&self, group: u32, scan: &mut Scan) -> Option<u32> {
        let by_share = &self.groups[group as usize].by_share;
        while scan.limit <= STEPS {
            let behind = (scan.behind + 1, 0)..;
            let sets = by_share[..scan.limit as usize].iter();
            if let Some(&(sealed_as, block)) = sets.filter_map(|set| set.range(behind.clone()).next()).min() {
                scan.behind = sealed_as;
                return Some(block);
            }
            *scan = Scan { limit: scan.limit + 1, behind: 0 };
        }
        None
    }
}

impl VictimPolicy for TwoRFifo {
    fn candidates(&self) -> Vec<Candidate> {
        self.regions.candidates()
    }

    fn sealed(&mut self, block: u32, valid: u32, origin: Origin, _: u64) {
        let group = self.regions.sealed(block, valid, origin);
        self.sealed += 1;
        self.states[block as usize] = State { sealed_as: self.sealed, valid, is_scanned: false };
        self.order.append(group, block);
        self.groups[group as usize].superblocks += 1;
        self.balance(group);
    }

    #[inline]
    fn invalidated(&mut self, block: u32, valid: u32, _: u64) {
        self.regions.invalidated(block);
        let State { sealed_as, valid: before, is_scanned } = self.states[block as usize];
        self.states[block as usize].valid = valid;
        let (from, to) = (self.share(before), self.share(valid));
        if is_scanned && from != to {
            let by_share = &mut self.groups[self.regions.group_of(block) as usize].by_share;
            by_share[from].remove(&(sealed_as, block));
            by_share[to].insert((sealed_as, block));
        }
    }

    fn removed(&mut self, block: u32) {
        self.forget(block);
        self.regions.remove(block);
    }

    fn take_victim(&mut self, unit: u32, _: &mut Context<'_>) -> Option<Choice> {
        let (group, is_new) = self.regions.group_to_clean(unit);
        let mut scan = if is_new { FIRST_LAP } else { self.scans[unit as usize] };
        let found = self.scan(group, &mut scan);
        self.scans[unit as usize] = scan;
        // Nothing that is old enough may have anything to gain.
        let block = found.or_else(|| self.regions.emptiest(group))?;
        self.forget(block);
        self.regions.take(unit, block);
        Some(block.into())
    }
}

crate::state::state! {
    Group {
        saved { superblocks, scanned, last }
        built { by_share }
    }
}

crate::state::state! { Scan { saved { limit, behind } } }

crate::state::state! { State { saved { sealed_as, valid, is_scanned } } }

crate::state::state! {
    TwoRFifo {
        saved { regions, order, groups, scans, states, sealed }
        built { pages }
    }
    checked sort_by_share
}

impl TwoRFifo {
    /// Sorts what was restored by share.
    fn sort_by_share(&mut self) -> Result<(), String> {
        let broken = || "what is scanned is not what the regions hold".to_owned();
        let (mut in_order, mut in_regions) = (self.order.members(), self.regions.groups());
        in_order.iter_mut().for_each(|member| *member = (member.1, member.0));
        in_order.sort_unstable();
        in_regions.sort_unstable();
        if in_order != in_regions {
            return Err(broken());
        }
        let mut counted = vec![(0, 0); self.groups.len()];
        for (block, group) in in_regions {
            let State { valid, is_scanned, .. } = self.states[block as usize];
            if valid > self.pages {
                return Err(broken());
            }
            let counted = &mut counted[group as usize];
            *counted = (counted.0 + 1, counted.1 + u32::from(is_scanned));
            if is_scanned {
                self.set_scanned(group, block, true);
            }
        }
        let is_last = |last: u32| last == NONE || (last as usize) < self.states.len();
        let are_counted = self.groups.iter().map(|group| (group.superblocks, group.scanned)).eq(counted);
        let limits = self.scans.iter().all(|scan| (1..=STEPS).contains(&scan.limit));
        if are_counted && limits && self.groups.iter().all(|group| is_last(group.last)) {
            Ok(())
        } else {
            Err(broken())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{Bench, steps};
    use super::super::regions::by_scan;
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape { units: 1, superblocks: 8, pages: 6 };

    #[test]
    fn the_oldest_below_the_limit_goes_first_and_the_limit_rises_after_a_lap() {
        let mut bench = Bench::new(TwoRFifo::new(&GcConfig::default(), SHAPE), SHAPE);
        // Seven of ten are scanned; the last two are the emptiest.
        for (block, valid) in [(0, 5), (1, 2), (2, 4), (3, 2), (4, 6), (5, 6), (6, 0), (7, 0)] {
            bench.seal(block, valid);
        }
        let order: Vec<_> = (0..4).filter_map(|_| bench.take(0)).collect();
        // Six of eight are scanned; what is taken leaves space for younger ones, which the same lap may come to.
        assert_eq!(order, [1, 3, 6, 2]);
    }

    proptest! {
        #[test]
        fn it_takes_what_a_scan_over_the_list_comes_to(steps in steps()) {
            let mut bench = Bench::new(TwoRFifo::new(&GcConfig::default(), SHAPE), SHAPE);
            let mut regions = by_scan::Regions::new(SHAPE.pages);
            let (mut limit, mut behind) = (1, 0);
            for &step in &steps {
                let before = bench.sealed.clone();
                let Some(choice) = bench.play(step, SHAPE.pages) else { continue };
                let (region, is_new) = regions.region_to_clean(&before);
                if is_new {
                    (limit, behind) = (1, 0);
                }
                let mut scanned: Vec<_> = before.iter().filter(|seen| seen.origin == region).collect();
                scanned.sort_by_key(|seen| seen.sealed_step);
                scanned.truncate((scanned.len() * 7).div_ceil(10));
                let mut found = None;
                while found.is_none() && limit <= 20 {
                    // The valid share is below so many twentieths.
                    found = scanned.iter().find(|s| s.sealed_step > behind && s.valid * 20 < limit * 6).copied();
                    (limit, behind) = found.map_or((limit + 1, 0), |s| (limit, s.sealed_step));
                }
                prop_assert_eq!(choice, regions.take(found.or_else(|| regions.emptiest(&before))));
            }
        }
    }
}
