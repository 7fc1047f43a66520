//! Foresight: when each page will be overwritten, from a list of all writes to come.
//!
//! ```text
//!   the writes to come ─▶ for each page, when it is written: 3, 17, 40 …
//!   the kth write of a page so far ─▶ its version lives until the (k + 1)th ─▶ believed life = life · e^(error · z)
//! ```
//!
//! No drive has this. It is what predictions are measured against: without an error, the least that placement by death
//! times costs; with one, what a predictor of that quality would cost. *z* is drawn from the standard normal
//! distribution, anew for each version, and always the same for the same version.
//!
//! Source: Lange, Naor and Yadgar, "Offline and Online Algorithms for SSD Management", SIGMETRICS 2021, whose online
//! algorithm takes predictions of a given quality. The form of the error is our own.

use crate::state::AtRest;

/// Times are counted in pages that the host has written since the list was given.
pub(crate) struct Foresight {
    /// Where the times of each page start in `times`; one more than there are pages.
    first: Vec<u32>,
    times: Vec<u32>,
    /// How often each page has been written.
    written: Vec<u32>,
    /// Pages written.
    now: u32,
    error: f64,
}

/// What is known of a version's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// It is believed to live so many pages from its write on, and was written so many ago.
    Believed {
        /// At least 1.
        life: u32,
        /// Since it was written; of what was there before the list started, since then.
        age: u32,
    },
    /// Nobody will overwrite it.
    Never,
}

/// Most writes of pages that a list holds, for the memory that they take: 8 bytes each.
pub const WRITES_MAX: usize = 1 << 29;

impl Foresight {
    /// From the pages, below `logical_pages`, that the host writes from now on, at most [`WRITES_MAX`]. Others are left
    /// out.
    pub(crate) fn new(logical_pages: u64, writes: &[u32], error: f64) -> Self {
        let mut first = vec![0; logical_pages as usize + 1];
        let known = || writes.iter().zip(0_u32..).filter(|&(&page, _)| u64::from(page) < logical_pages);
        known().for_each(|(&page, _)| first[page as usize + 1] += 1);
        (1..first.len()).for_each(|page| first[page] += first[page - 1]);
        let mut next = first.clone();
        let mut times = vec![0; known().count()];
        for (&page, time) in known() {
            times[next[page as usize] as usize] = time;
            next[page as usize] += 1;
        }
        Self { first, times, written: vec![0; logical_pages as usize], now: 0, error }
    }

    /// The time of a page's `k`th write from the start of the list on.
    fn time(&self, page: u32, k: u32) -> Option<u32> {
        let (from, to) = (self.first[page as usize], self.first[page as usize + 1]);
        let at = from.checked_add(k)?;
        (at < to).then(|| self.times[at as usize])
    }

    /// The version that a write which comes now makes.
    pub(crate) fn of_written(&self, page: u32) -> Death {
        let k = self.written[page as usize];
        self.death(page, k + 1, self.time(page, k))
    }

    /// The present version of a page.
    pub(crate) fn of_present(&self, page: u32) -> Death {
        let k = self.written[page as usize];
        let written_at = k.checked_sub(1).and_then(|k| self.time(page, k));
        self.death(page, k, written_at)
    }

    /// A version, which was written at a time of the list or before it started, dies with the `k`th write.
    fn death(&self, page: u32, k: u32, written_at: Option<u32>) -> Death {
        let Some(dies_at) = self.time(page, k) else { return Death::Never };
        let from = written_at.unwrap_or(0);
        let life = f64::from(dies_at - from) * libm::exp(self.error * normal(page, k));
        Death::Believed { life: life.clamp(1.0, f64::from(u32::MAX)) as u32, age: self.now.saturating_sub(from) }
    }

    /// The host has written a page.
    pub(crate) fn written(&mut self, page: u32) {
        self.written[page as usize] += 1;
        self.now = self.now.saturating_add(1);
    }
}

/// A draw of the standard normal distribution for a page's `k`th version, the same every time (Box and Muller, Annals
/// of Mathematical Statistics 29(2), 1958; splitmix64 for the uniform numbers).
fn normal(page: u32, k: u32) -> f64 {
    let mut state = u64::from(page) << 32 | u64::from(k);
    let mut unit = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 * 0.5_f64.powi(53) + 0.5_f64.powi(54)
    };
    let (radius, angle) = (libm::sqrt(-2.0 * libm::log(unit())), 2.0 * std::f64::consts::PI * unit());
    radius * libm::cos(angle)
}

/// What is told beforehand belongs to one run of a workload.
impl AtRest for Box<Foresight> {
    fn is_at_rest(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_version_dies_when_the_list_says_so(writes in prop::collection::vec(0_u32..12, 0..80)) {
            let mut foresight = Foresight::new(10, &writes, 0.0);
            let next = |page: u32, from: usize| writes[from..].iter().position(|&p| p == page).map(|n| (from + n) as u32);
            for (now, &page) in writes.iter().enumerate() {
                for other in 0..10 {
                    let last = writes[..now].iter().rposition(|&p| p == other);
                    let from = last.map_or(0, |at| at as u32);
                    let expected = next(other, now).map_or(Death::Never, |dies_at| Death::Believed {
                        life: (dies_at - from).max(1),
                        age: now as u32 - from,
                    });
                    prop_assert_eq!(foresight.of_present(other), expected);
                }
                if page >= 10 {
                    // It is beyond the drive, and in no count; the time continues all the same.
                    foresight.now += 1;
                    continue;
                }
                let expected = next(page, now + 1)
                    .map_or(Death::Never, |dies_at| Death::Believed { life: dies_at - now as u32, age: 0 });
                prop_assert_eq!(foresight.of_written(page), expected);
                foresight.written(page);
            }
        }
    }

    #[test]
    fn an_error_spreads_beliefs_log_normally_and_each_is_held_to_the_end() {
        let writes: Vec<u32> = (0..40_000).map(|n| n % 20_000).collect();
        let mut foresight = Foresight::new(20_000, &writes, 0.5);
        (0..20_000).for_each(|page| foresight.written(page));
        let life = |page| match foresight.of_present(page) {
            Death::Believed { life, .. } => f64::from(life),
            Death::Never => panic!("{page} is written twice"),
        };
        let logs: Vec<f64> = (0..20_000).map(|page| (life(page) / 20_000.0).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 2e4;
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 2e4).sqrt();
        // Four standard errors: 4 · 0.5 ÷ √20,000 and 4 · 0.5 ÷ √40,000.
        assert!(mean.abs() < 0.015 && (deviation - 0.5).abs() < 0.011, "{mean} ± {deviation}");
        assert_eq!((0..100).map(life).collect::<Vec<_>>(), (0..100).map(life).collect::<Vec<_>>());
    }
}
