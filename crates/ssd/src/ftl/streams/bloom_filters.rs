//! Bloom filters: a page is hot when it was written often and of late.
//!
//! Four Bloom filters are in a ring. A write of a page enters it into the next filter of the ring that does not know it
//! yet, so that the filters which know a page count its writes. After every `decay_share` of the logical pages written,
//! the filter that was emptied longest ago is emptied, so that what is old is forgotten. Filters weigh the more the
//! later they were emptied before; a page is hot when those that know it weigh enough.
//!
//! ```text
//!   weight   0.5 ─ 1 ─ 1.5 ─ 2        a page is hot from 4 on: known to three or four filters, the late ones among them
//!            next to be emptied └ emptied last
//! ```
//!
//! Source: Park and Du, "Hot data identification for flash-based storage systems using multiple bloom filters", MSST
//! 2011: four filters, two hash functions, these weights. Left open: a write counts for its
//! own page; the filters grow with the drive, so that there are four bits for each write between two decays, as there.
//! The same bit of all filters is in one byte, so that a look-up reads two bytes. Hot and cold pages stay apart when
//! they are moved.

use super::{Shape, Stream, StreamPolicy};
use crate::config::StreamsConfig;

const FILTERS: u32 = 4;
/// Bits of a filter for each write between two decays.
const BITS_PER_WRITE: u64 = 4;
/// The class of pages that are hot, and of the others.
const HOT: u8 = 0;
const COLD: u8 = 1;

/// The policy of multiple Bloom filters.
pub(crate) struct BloomFilters {
    /// Bit `n` of a byte belongs to filter `n`.
    cells: Vec<u8>,
    /// Length of `cells`, a power of two, as an exponent.
    bits: u32,
    /// The filter that is emptied next.
    oldest: u32,
    /// The filter that the next page is entered into.
    turn: u32,
    /// Writes from one decay to the next, and left until the next.
    decay_pages: u64,
    left: u64,
}

impl BloomFilters {
    /// For a drive of so many logical pages, a share of which is written between two decays.
    pub(super) fn new(config: &StreamsConfig, shape: Shape) -> Self {
        let decay_pages = ((shape.logical_pages as f64 * config.decay_share) as u64).max(1);
        let cells = (BITS_PER_WRITE * decay_pages).next_power_of_two();
        Self {
            cells: vec![0; cells as usize],
            bits: cells.trailing_zeros(),
            oldest: 0,
            turn: 0,
            decay_pages,
            left: decay_pages,
        }
    }

    /// Where a page's two bits are: multiplicative hashes (Knuth, TAOCP 6.4).
    #[inline]
    fn cells_of(&self, logical_page: u32) -> [usize; 2] {
        let hash = |factor: u64| (u64::from(logical_page) + 1).wrapping_mul(factor) >> (64 - self.bits);
        [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F].map(|factor| hash(factor) as usize)
    }

    /// The filters that know a page.
    #[inline]
    fn known(&self, logical_page: u32) -> u8 {
        let [a, b] = self.cells_of(logical_page);
        self.cells[a] & self.cells[b]
    }

    /// The filter that the next write of a page is entered into, given those that know it.
    #[inline]
    fn next_filter(&self, known: u8) -> Option<u32> {
        (0..FILTERS).map(|n| (self.turn + n) % FILTERS).find(|&filter| known >> filter & 1 == 0)
    }

    /// The class of a page that these filters know.
    #[inline]
    fn class(&self, known: u8) -> u8 {
        // The filters by age, the oldest first: half weights of 1, 2, 3 and 4.
        let known = u32::from(known);
        let by_age = (known | known << FILTERS) >> self.oldest;
        let half_weights: u32 = (0..FILTERS).map(|age| (by_age >> age & 1) * (age + 1)).sum();
        if half_weights >= 8 { HOT } else { COLD }
    }

    /// Forgets what the oldest filter knows.
    fn decay(&mut self) {
        let kept = !(1 << self.oldest);
        self.cells.iter_mut().for_each(|cell| *cell &= kept);
        self.oldest = (self.oldest + 1) % FILTERS;
        self.left = self.decay_pages;
    }
}

impl StreamPolicy for BloomFilters {
    #[inline(never)]
    fn class_of_written(&self, logical_page: u32, _: u16, _: u64) -> u8 {
        let known = self.known(logical_page);
        self.class(self.next_filter(known).map_or(known, |filter| known | 1 << filter))
    }

    #[inline(never)]
    fn class_of_moved(&self, logical_page: u32, _: Stream, _: u64) -> u8 {
        self.class(self.known(logical_page))
    }

    #[inline(never)]
    fn written(&mut self, logical_page: u32, _: u64) {
        let known = self.known(logical_page);
        if let Some(filter) = self.next_filter(known) {
            self.cells_of(logical_page).into_iter().for_each(|cell| self.cells[cell] |= 1 << filter);
            self.turn = (filter + 1) % FILTERS;
        }
        self.left -= 1;
        if self.left == 0 {
            self.decay();
        }
    }
}

crate::state::state! {
    BloomFilters {
        saved { cells, oldest, turn, left }
        built { bits, decay_pages }
    }
    checked check_restored
}

impl BloomFilters {
    fn check_restored(&self) -> Result<(), String> {
        let Self { oldest, turn, left, decay_pages, .. } = *self;
        let is_possible = oldest < FILTERS && turn < FILTERS && (1..=decay_pages).contains(&left);
        if is_possible { Ok(()) } else { Err("filters out of their turn".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(logical_pages: u64, decay_share: f64) -> BloomFilters {
        BloomFilters::new(&StreamsConfig { decay_share, ..StreamsConfig::default() }, Shape::of(logical_pages))
    }

    fn write(policy: &mut BloomFilters, page: u32, times: u32) {
        (0..times).for_each(|_| policy.written(page, 0));
    }

    #[test]
    fn a_page_is_hot_when_the_filters_that_know_it_weigh_four() {
        let mut policy = filters(1000, 0.5);
        // The first three writes go to filters 0, 1 and 2, which weigh 0.5, 1 and 1.5 before any decay.
        write(&mut policy, 7, 2);
        assert_eq!(policy.class_of_written(7, 0, 0), COLD);
        write(&mut policy, 7, 1);
        let moved = |policy: &BloomFilters| policy.class_of_moved(7, Stream::HOST, 0);
        assert_eq!((moved(&policy), policy.class_of_written(7, 0, 0)), (COLD, HOT), "the fourth write counts");
        write(&mut policy, 7, 1);
        assert_eq!((moved(&policy), policy.class_of_written(8, 0, 0)), (HOT, COLD));
    }

    #[test]
    fn what_is_not_written_again_cools_down() {
        let mut policy = filters(1000, 0.5);
        write(&mut policy, 7, 4);
        let cools: Vec<u8> = (0..4)
            .map(|_| {
                policy.decay();
                policy.class_of_moved(7, Stream::HOST, 0)
            })
            .collect();
        // Known to filters 1 to 3, then 2 and 3, then 3: weights of 0.5 + 1 + 1.5 and less.
        assert_eq!(cools, [COLD; 4]);
        assert_eq!(policy.known(7), 0);
    }

    #[test]
    fn pages_written_as_often_as_all_others_are_hardly_ever_hot() {
        let mut policy = filters(10_000, 0.125);
        let mut state = 1_u64;
        for _ in 0..40_700 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            policy.written(((state >> 33) % 10_000) as u32, 0);
        }
        let hot = (0..10_000).filter(|&page| policy.class_of_written(page, 0, 0) == HOT).count();
        assert!(hot < 500, "{hot} of 10000 pages are hot");
    }

    #[test]
    fn pages_written_nine_times_as_often_are_hot() {
        let mut policy = filters(10_000, 0.125);
        let mut state = 1_u64;
        for n in 0..40_700 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = (state >> 33) as u32;
            policy.written(if n % 10 < 9 { random % 1_000 } else { 1_000 + random % 9_000 }, 0);
        }
        let hot =
            |pages: std::ops::Range<u32>| pages.filter(|&page| policy.class_of_written(page, 0, 0) == HOT).count();
        let (of_hot, of_cold) = (hot(0..1_000), hot(1_000..10_000));
        assert!(of_hot > 500 && of_cold < 180, "{of_hot} of 1000 and {of_cold} of 9000");
    }
}
