//! SepBIT: pages are told apart by when they will probably be overwritten, inferred from when they were before.
//!
//! Time is counted in pages that the host has written. Let ℓ be the mean life of the superblocks of the host's
//! short-lived class, from their opening to their collection.
//!
//! ```text
//!   written by the host   its old version lived shorter than ℓ ─▶ host class 0, else host class 1
//!   moved by collection   out of host class 0                  ─▶ GC class 0
//!                         its age below 4ℓ, below 16ℓ, above   ─▶ GC class 1, 2, 3
//! ```
//!
//! Source: Wang et al., "Separating Data via Block Invalidation Time Inference for Write Amplification Reduction in
//! Log-Structured Storage", FAST 2022, section 3 and algorithm 1 (six classes; ℓ over the last 16 collected segments).
//! Left open there: ℓ is one for all units of the drive; a page that was laid out at once counts as never written.

use super::{Shape, Stream, StreamPolicy};
use crate::config::StreamsConfig;
use crate::state::{Carried, Carrier, Layout, State, carry_sparse};

/// Collected superblocks that a new value of ℓ is computed from.
const WINDOW: u32 = 16;
/// The host's class of pages whose old version lived short, and of the others.
const SHORT: u8 = 0;
const LONG: u8 = 1;

/// The SepBIT policy.
pub(crate) struct SepBit {
    /// When the host wrote each logical page last: the low bits of the clock, the lowest one set; zero for never.
    written_at: Vec<u32>,
    /// When each superblock was opened.
    opened_at: Vec<u64>,
    /// ℓ; without limit until the first superblocks were collected.
    mean_life: u64,
    lives: u64,
    collected: u32,
}

impl SepBit {
    pub(super) fn new(_: &StreamsConfig, shape: Shape) -> Self {
        Self {
            written_at: vec![0; shape.logical_pages as usize],
            opened_at: vec![0; shape.superblocks as usize],
            mean_life: u64::MAX,
            lives: 0,
            collected: 0,
        }
    }

    /// Pages written since the host wrote a logical page; `None` where it never did.
    #[inline]
    fn age(&self, logical_page: u32, clock: u64) -> Option<u64> {
        let stamp = self.written_at[logical_page as usize];
        (stamp != 0).then(|| u64::from((clock as u32 | 1).wrapping_sub(stamp)))
    }
}

impl StreamPolicy for SepBit {
    #[inline(never)]
    fn class_of_written(&self, logical_page: u32, _: u16, clock: u64) -> u8 {
        match self.age(logical_page, clock) {
            Some(lived) if lived < self.mean_life => SHORT,
            _ => LONG,
        }
    }

    #[inline(never)]
    fn class_of_moved(&self, logical_page: u32, from: Stream, clock: u64) -> u8 {
        if from == Stream::host(SHORT) {
            return 0;
        }
        match self.age(logical_page, clock).unwrap_or(u64::MAX) {
            age if age < self.mean_life.saturating_mul(4) => 1,
            age if age < self.mean_life.saturating_mul(16) => 2,
            _ => 3,
        }
    }

    #[inline(never)]
    fn written(&mut self, logical_page: u32, clock: u64) {
        self.written_at[logical_page as usize] = clock as u32 | 1;
    }

    fn opened(&mut self, block: u32, clock: u64) {
        self.opened_at[block as usize] = clock;
    }

    fn collected(&mut self, block: u32, stream: Stream, clock: u64) {
        if stream != Stream::host(SHORT) {
            return;
        }
        (self.lives, self.collected) = (self.lives + clock - self.opened_at[block as usize], self.collected + 1);
        if self.collected == WINDOW {
            self.mean_life = self.lives / u64::from(WINDOW);
            (self.lives, self.collected) = (0, 0);
        }
    }
}

impl State for SepBit {
    fn layout(layout: &mut Layout) {
        layout.word("SepBit { written_at opened_at mean_life lives collected }");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let Self { written_at, opened_at, mean_life, lives, collected } = self;
        carry_sparse(written_at, carrier)?;
        opened_at.carry(carrier)?;
        mean_life.carry(carrier)?;
        lives.carry(carrier)?;
        collected.carry(carrier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy that has seen pages 0 to 199 written, one a tick, and then that short-lived superblocks live for 100.
    fn learned() -> SepBit {
        let mut policy = SepBit::new(&StreamsConfig::default(), Shape::of(1000));
        for page in 0..200 {
            assert_eq!(policy.class_of_written(page, 0, u64::from(page)), LONG, "nothing is known of a new page");
            policy.written(page, u64::from(page));
        }
        assert_eq!(
            policy.class_of_written(0, 0, 200),
            SHORT,
            "before anything was collected all that lived lived short"
        );
        policy.opened(3, 100);
        (0..WINDOW).for_each(|_| policy.collected(3, Stream::host(SHORT), 200));
        policy
    }

    #[test]
    fn a_page_whose_old_version_lived_short_goes_to_the_short_lived_class() {
        let policy = learned();
        assert_eq!([199, 10, 999].map(|page| policy.class_of_written(page, 0, 200)), [SHORT, LONG, LONG]);
    }

    #[test]
    fn moved_pages_are_told_apart_by_their_age() {
        let policy = learned();
        let class = |page, clock| policy.class_of_moved(page, Stream::host(LONG), clock);
        assert_eq!(policy.class_of_moved(10, Stream::host(SHORT), 2_000), 0, "it comes out of the short-lived class");
        assert_eq!([class(10, 400), class(10, 420), class(10, 1_600), class(10, 1_620)], [1, 2, 2, 3]);
        assert_eq!(class(999, 400), 3, "nobody has written it");
    }

    #[test]
    fn only_superblocks_of_the_short_lived_class_tell_how_long_they_live() {
        let mut policy = learned();
        (0..WINDOW).for_each(|_| policy.collected(3, Stream::gc(SHORT), 10_000));
        (0..WINDOW).for_each(|_| policy.collected(3, Stream::host(LONG), 10_000));
        assert_eq!(policy.mean_life, 100);
    }
}
