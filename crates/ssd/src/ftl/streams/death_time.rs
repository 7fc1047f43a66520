//! Death time: pages go by when they will probably be overwritten, which is as long from now as it took the last time.
//!
//! A drive does not know the future; what it can know of each page is when the host wrote it last and how long the
//! version before lived. Time is counted in pages that the host has written. Let *m* be the median of the lives of what
//! was overwritten of late.
//!
//! ```text
//!   written by the host   expected to live as long as the version that it replaces; of a first write nothing is known
//!   moved by collection   expected to live what is left of that; if it has outlived it, once more its age
//!
//!   expected life left    below 2m   below 8m   above, or not known
//!   class                 0          1          2                      of written and of moved pages each
//! ```
//!
//! Ranges grow by a factor, because the longer a life, the less exact its prediction has to be: a superblock stays
//! until the last of its pages dies, and what counts is by how much this is longer than the others' lives. They follow
//! the median, because what is long depends on how much of the drive is in use and not on how large it is.
//!
//! Under random writes a short life says little of the next one, and what has outlived its prediction is often a page
//! that is written rarely: the older it is, the rarer.
//!
//! This is the rule of placement of the [`Online`](crate::death_time::Online) algorithm with what a drive can know as
//! prediction and with as few groups as a drive has open superblocks for. Which superblock is collected stays with
//! `ftl.gc.policy`: one whose pages are all dead is the emptiest, which greedy takes first anyhow.
//!
//! A simulation may tell the drive the future instead ([`foresight`](super::foresight)).
//!
//! Source: Lange, Naor and Yadgar, "Offline and Online Algorithms for SSD Management", SIGMETRICS 2021, for placement
//! by predicted death. The prediction, the last life once more, and the limits of the classes are our own.

use super::foresight::{Death, Foresight};
use super::{Shape, Stream, StreamPolicy};
use crate::config::StreamsConfig;
use crate::sparse::SparseTable;

/// What is left of a life that was expected, at some age: of one that was longer than expected, once more its age.
fn left(expected: u32, age: u32) -> u32 {
    if expected > age { expected - age } else { age }
}

/// Limits of the classes, in medians.
const LIMITS: [u64; 2] = [2, 8];
/// The median is kept in fractions of a page, and changes by as small a part of itself with each life.
const FRACTION: u64 = 256;

/// The death-time policy.
pub(crate) struct DeathTime {
    /// When the host wrote each logical page last: the low bits of the clock, the lowest one set; zero for never.
    written_at: SparseTable,
    /// How long what it wrote is expected to live, at least 1; zero where nothing is known.
    expected: SparseTable,
    /// Running median of lives, in fractions of a page.
    median: u64,
    /// When pages die, where the drive has been told.
    foresight: Option<Box<Foresight>>,
}

impl DeathTime {
    /// For a drive of so many logical pages. Until lives have been seen the median is that of uniform writes at most.
    pub(super) fn new(_: &StreamsConfig, shape: Shape) -> Self {
        let logical_pages = shape.logical_pages;
        let table = || SparseTable::new(logical_pages as usize);
        Self { written_at: table(), expected: table(), median: logical_pages.max(1) * FRACTION, foresight: None }
    }

    /// Pages written since the host wrote a logical page, at least 1; `None` where it never did.
    #[inline]
    fn age(&self, logical_page: u32, clock: u64) -> Option<u32> {
        let stamp = self.written_at.get(logical_page);
        (stamp != 0).then(|| (clock as u32 | 1).wrapping_sub(stamp).max(1))
    }

    /// The class of what is expected to live so long from now on.
    fn class(&self, left: Option<u32>) -> u8 {
        let Some(left) = left else { return LIMITS.len() as u8 };
        LIMITS.partition_point(|limit| limit * self.median <= u64::from(left) * FRACTION) as u8
    }

    /// Goes by what is foreseen from now on.
    pub(super) fn foresee(&mut self, foresight: Foresight) {
        self.foresight = Some(Box::new(foresight));
    }

    /// Whether it does.
    pub(super) fn foresees(&self) -> bool {
        self.foresight.is_some()
    }

    /// The class of a version of which this is believed.
    fn class_of(&self, death: Death) -> u8 {
        match death {
            Death::Never => LIMITS.len() as u8,
            Death::Believed { life, age } => self.class(Some(left(life, age))),
        }
    }

    /// Takes a life into account: the median goes up by a small part with each longer one, and down with each shorter.
    fn learn(&mut self, life: u32) {
        let step = self.median / FRACTION;
        let longer = u64::from(life) * FRACTION > self.median;
        self.median = if longer { self.median + step } else { (self.median - step).max(FRACTION) };
    }
}

impl StreamPolicy for DeathTime {
    #[inline(never)]
    fn class_of_written(&self, logical_page: u32, _: u16, clock: u64) -> u8 {
        match &self.foresight {
            Some(foresight) => self.class_of(foresight.of_written(logical_page)),
            None => self.class(self.age(logical_page, clock)),
        }
    }

    #[inline(never)]
    fn class_of_moved(&self, logical_page: u32, _: Stream, clock: u64) -> u8 {
        if let Some(foresight) = &self.foresight {
            return self.class_of(foresight.of_present(logical_page));
        }
        let expected = self.expected.get(logical_page);
        self.class(self.age(logical_page, clock).map(|age| left(expected, age)))
    }

    #[inline(never)]
    fn written(&mut self, logical_page: u32, clock: u64) {
        let lived = self.age(logical_page, clock);
        self.expected.set(logical_page, lived.unwrap_or(0));
        self.written_at.set(logical_page, clock as u32 | 1);
        if let Some(life) = lived {
            self.learn(life);
        }
        self.overwritten(logical_page);
    }

    #[inline]
    fn overwritten(&mut self, logical_page: u32) {
        if let Some(foresight) = &mut self.foresight {
            foresight.written(logical_page);
        }
    }
}

crate::state::state! {
    DeathTime {
        saved { written_at, expected, median }
        at_rest { foresight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy that takes lives around 100 for the usual ones, and has seen page 7 written at 1 and at `second`.
    fn learned(second: u64) -> DeathTime {
        let mut policy = DeathTime::new(&StreamsConfig::default(), Shape::of(1000));
        policy.written(7, 1);
        policy.written(7, second);
        policy.median = 100 * FRACTION;
        policy
    }

    #[test]
    fn a_page_is_expected_to_live_as_long_as_its_last_version() {
        let policy = learned(1001);
        assert_eq!(policy.class_of_written(8, 0, 1001), 2, "nothing is known of a new page");
        let classes = [1101, 1199, 1203, 1799, 1803].map(|clock| policy.class_of_written(7, 0, clock));
        assert_eq!(classes, [0, 0, 1, 1, 2], "limits at lives of 200 and 800");
    }

    #[test]
    fn a_moved_page_goes_by_what_is_left_of_its_expected_life() {
        let policy = learned(2001);
        let class = |clock| policy.class_of_moved(7, Stream::HOST, clock);
        // It is expected to live from 2001 to 4001.
        assert_eq!([2003, 3199, 3203, 3799, 3803, 3999].map(class), [2, 2, 1, 1, 0, 0]);
        assert_eq!(class(4003), 2, "it has outlived what was expected, and is old");
        assert_eq!(policy.class_of_moved(8, Stream::HOST, 2003), 2, "nobody has written it");
    }

    #[test]
    fn a_moved_page_that_has_outlived_its_expectation_goes_by_its_age() {
        let class = |clock| learned(101).class_of_moved(7, Stream::HOST, clock);
        // It was expected to die at 201.
        assert_eq!([103, 203, 299, 303, 899, 903].map(class), [0, 0, 0, 1, 1, 2]);
        let mut once = DeathTime::new(&StreamsConfig::default(), Shape::of(1000));
        once.written(7, 1);
        once.median = 100 * FRACTION;
        let class = |clock| once.class_of_moved(7, Stream::HOST, clock);
        assert_eq!([3, 203, 803].map(class), [0, 1, 2], "of a first version no more is known than its age");
    }

    #[test]
    fn the_limits_follow_the_median_of_what_is_written() {
        let mut policy = DeathTime::new(&StreamsConfig::default(), Shape::of(1_000_000));
        // Lives from 1 to 999 in an order that repeats no part of them for long: 389 and 999 have no common divisor.
        (0..20_000_u32).for_each(|n| policy.learn(1 + n * 389 % 999));
        let median = policy.median / FRACTION;
        assert!(median.abs_diff(500) < 25, "{median} instead of 500");
        (0..20_000).for_each(|_| policy.learn(1));
        assert!(policy.median < 2 * FRACTION && policy.median >= FRACTION, "{}", policy.median);
    }
}
