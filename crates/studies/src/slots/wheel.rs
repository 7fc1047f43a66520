//! Groups by time of death: a hierarchical timing wheel.
//!
//! Time is counted in writes and cut into epochs of `epoch` writes. Level 0 has a group for each of the next epochs,
//! level 1 one for each span of `fan_out` epochs, level 2 for `fan_out²`, and so on:
//!
//! ```text
//!   now
//!   │ level 0:  epochs 0 … f away, one group each
//!   ├─┬─┬─┬─┐
//!           │ level 1:  up to f spans of f epochs
//!           ├───────┬───────┬───────┬───────┐
//!                                           │ level 2 …                      and one group of what is beyond
//! ```
//!
//! A page belongs to the lowest level that reaches its death. Spans are counted from time 0, not from now, so that all
//! pages of a group die in the *same* span, whenever they were written.
//!
//! # A page of a high level lives long
//! Level *i* > 0 is needed only where level *i* − 1 does not reach: where the spans of `f^(i−1)` epochs of now and of
//! the death are more than *f* apart. Then the epochs are more than `f^i` apart, and death is more than `f^i · epoch`
//! writes away:
//!
//! ```text
//!   level ≥ i  ⇒  life > f^i · epoch                                        (1)
//! ```
//!
//! Source: G. Varghese, T. Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, for the wheel.

use super::NEVER;

/// The groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// Writes of an epoch, *L*.
    pub epoch: u32,
    /// Spans that a level reaches, *f*, and how many of its spans are one of the next level.
    pub fan_out: u32,
    /// Levels, *ℓ*.
    pub levels: u32,
}

impl Wheel {
    /// How many groups there are, some of them never in use at the same time.
    pub fn groups(&self) -> usize {
        self.levels as usize * self.ring() + 1
    }

    /// Most groups that hold pages at the same time: *f* + 1 of level 0, *f* of each other level, and what is beyond.
    pub fn groups_in_use(&self) -> u64 {
        u64::from(self.levels) * u64::from(self.fan_out) + 2
    }

    /// Writes that the highest level reaches for certain.
    pub fn reach(&self) -> u64 {
        u64::from(self.fan_out).saturating_pow(self.levels).saturating_mul(u64::from(self.epoch))
    }

    /// Groups of a level: one for each span that it reaches, with the present one.
    fn ring(&self) -> usize {
        self.fan_out as usize + 1
    }

    /// Level of the group of what dies at `death`, seen at `time`; the number of levels for what is beyond.
    #[inline]
    pub fn level(&self, time: u32, death: u32) -> u32 {
        let (mut now, mut then) = (time / self.epoch, death / self.epoch);
        let mut level = 0;
        while level < self.levels && (death == NEVER || then - now > self.fan_out) {
            (now, then) = (now / self.fan_out, then / self.fan_out);
            level += 1;
        }
        level
    }

    /// The group of what dies at `death`, seen at `time`, which is not later.
    #[inline]
    pub fn group(&self, time: u32, death: u32) -> usize {
        let level = self.level(time, death);
        if level == self.levels { self.beyond() } else { self.group_at(level, death / self.epoch) }
    }

    /// The group of a level that an epoch is in.
    #[inline]
    pub fn group_at(&self, level: u32, epoch: u32) -> usize {
        let span = epoch / self.fan_out.pow(level);
        level as usize * self.ring() + (span % (self.fan_out + 1)) as usize
    }

    /// The group of what no level reaches.
    pub fn beyond(&self) -> usize {
        self.groups() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_belongs_to_the_lowest_level_that_reaches_its_death() {
        let wheel = Wheel { epoch: 10, fan_out: 3, levels: 2 };
        // Epoch 5 is now; level 0 reaches epoch 8, level 1 the spans 1 (epochs 3 to 5) to 4 (12 to 14).
        let groups = [50, 89, 90, 149, 150].map(|death| (wheel.level(50, death), wheel.group(50, death)));
        assert_eq!(groups, [(0, 1), (0, 0), (1, 4 + 3), (1, 4), (2, 8)]);
        assert_eq!(wheel.group(50, NEVER), wheel.beyond());
    }

    proptest! {
        #[test]
        fn what_is_in_a_level_lives_longer_than_the_level_below_reaches(
            epoch in 1_u32..50, fan_out in 2_u32..9, levels in 1_u32..5, time in 0_u32..100_000, life in 1_u32..1_000_000,
        ) {
            let wheel = Wheel { epoch, fan_out, levels };
            let level = wheel.level(time, time + life);
            if level > 0 {
                prop_assert!(u64::from(life) > u64::from(fan_out).pow(level) * u64::from(epoch));
            }
            if u64::from(life) <= wheel.reach() {
                prop_assert!(level < levels);
            }
        }

        #[test]
        fn the_pages_of_a_group_die_in_the_same_span(
            fan_out in 2_u32..6, time in 0_u32..5_000, lives in prop::collection::vec(1_u32..5_000, 2),
        ) {
            let wheel = Wheel { epoch: 7, fan_out, levels: 3 };
            let (a, b) = (time + lives[0], time + lives[1]);
            let level = wheel.level(time, a);
            if level < 3 && wheel.group(time, a) == wheel.group(time, b) {
                let span = |death: u32| death / 7 / fan_out.pow(level);
                prop_assert_eq!(span(a), span(b));
            }
        }
    }
}
