//! SepBIT: pages are told apart by when they will probably be overwritten, inferred from when they were before.
//!
//! Time is counted in pages that the host has written. Let ℓ be the mean life of the superblocks of the host's
//! short-lived stream, from their first page to their collection.
//!
//! ```text
//!   written by the host   its old version lived shorter than ℓ ─▶ host stream 0, else host stream 1
//!   moved by collection   out of host stream 0                 ─▶ GC stream 0
//!                         its age below 4ℓ, below 16ℓ, above   ─▶ GC stream 1, 2, 3
//! ```
//!
//! Source: Wang et al., "Separating Data via Block Invalidation Time Inference for Write Amplification Reduction in
//! Log-Structured Storage", FAST 2022, section 3 and algorithm 1 (six classes; ℓ over the last 16 collected segments).

use super::StreamPolicy;

/// Collected superblocks that a new value of ℓ is computed from.
const WINDOW: u32 = 16;

/// The SepBIT policy.
pub(crate) struct SepBit {
    clock: u64,
    /// When the host wrote each logical page last: the low bits of the clock, plus one; zero for never.
    written_at: Vec<u32>,
    /// ℓ; without limit until the first superblocks were collected.
    mean_life: u64,
    lives: u64,
    collected: u32,
}

impl SepBit {
    pub(crate) fn new(logical_pages: u32) -> Self {
        let written_at = vec![0; logical_pages as usize];
        Self { clock: 0, written_at, mean_life: u64::MAX, lives: 0, collected: 0 }
    }

    /// Pages written since the host wrote a logical page.
    fn age(&self, logical_page: u32) -> Option<u64> {
        let stamp = self.written_at[logical_page as usize];
        (stamp != 0).then(|| u64::from((self.clock as u32 | 1).wrapping_sub(stamp)))
    }
}

impl StreamPolicy for SepBit {
    fn host_streams(&self) -> u32 {
        2
    }

    fn gc_streams(&self) -> u32 {
        4
    }

    fn written(&mut self, logical_page: u32, _: u32) -> u32 {
        self.clock += 1;
        let lived = self.age(logical_page);
        self.written_at[logical_page as usize] = self.clock as u32 | 1;
        u32::from(lived.is_none_or(|lived| lived >= self.mean_life))
    }

    fn moved(&self, logical_page: u32, from: u32) -> u32 {
        if from == 0 {
            return 0;
        }
        let age = self.age(logical_page).unwrap_or(u64::MAX);
        match age {
            _ if age < self.mean_life.saturating_mul(4) => 1,
            _ if age < self.mean_life.saturating_mul(16) => 2,
            _ => 3,
        }
    }

    fn collected(&mut self, stream: u32, opened_at: u64) {
        if stream != 0 {
            return;
        }
        (self.lives, self.collected) = (self.lives + (self.clock - opened_at), self.collected + 1);
        if self.collected == WINDOW {
            self.mean_life = self.lives / u64::from(WINDOW);
            (self.lives, self.collected) = (0, 0);
        }
    }

    fn clock(&self) -> u64 {
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy that has learned that short-lived superblocks live for 100 pages.
    fn learned() -> SepBit {
        let mut policy = SepBit::new(1000);
        (0..200).for_each(|page| assert_eq!(policy.written(page, 0), 1, "nothing is known of a new page"));
        (0..WINDOW).for_each(|_| policy.collected(0, policy.clock() - 100));
        policy
    }

    #[test]
    fn a_page_whose_old_version_lived_short_goes_to_the_short_lived_stream() {
        let mut policy = learned();
        assert_eq!(policy.written(199, 0), 0);
        assert_eq!(policy.written(10, 0), 1);
    }

    #[test]
    fn moved_pages_are_told_apart_by_their_age() {
        let mut policy = learned();
        (500..900).for_each(|page| _ = policy.written(page, 0));
        assert_eq!(policy.moved(850, 0), 0, "it comes out of the short-lived stream");
        assert_eq!((policy.moved(850, 1), policy.moved(10, 1), policy.moved(999, 1)), (1, 2, 3));
    }
}
