//! What pages are like that carry no bytes: how far they can be compressed, and which of them are equal.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The content of pages that are written without bytes, as fio's `buffer_compress_percentage` and `dedupe_percentage`
/// describe it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContentModel {
    /// What compression leaves of a page, 0 to 1; default 1, it leaves all of it.
    pub compressed_share: f64,
    /// By how much that differs from page to page: uniformly by ± this share of it; default 0.
    pub compressed_spread: f64,
    /// Share of pages that are zeros; default 0.
    pub zero_share: f64,
    /// Share of the others that are equal to one of the last [`Self::duplicate_window`] pages that were not; default 0.
    pub duplicate_share: f64,
    /// See there; default 65,536.
    pub duplicate_window: u32,
}

impl Default for ContentModel {
    fn default() -> Self {
        Self {
            compressed_share: 1.0,
            compressed_spread: 0.0,
            zero_share: 0.0,
            duplicate_share: 0.0,
            duplicate_window: 1 << 16,
        }
    }
}

impl ContentModel {
    /// What cannot be of a model that was restored.
    fn check(&self) -> Result<(), String> {
        let Self { compressed_share, compressed_spread, zero_share, duplicate_share, .. } = *self;
        let shares = [compressed_share, compressed_spread, zero_share, duplicate_share];
        match shares.into_iter().find(|share| !(0.0..=1.0).contains(share)) {
            Some(share) => Err(format!("{share} is not a share of pages or bytes")),
            None => Ok(()),
        }
    }
}

crate::state::state! {
    ContentModel {
        saved { compressed_share, compressed_spread, zero_share, duplicate_share, duplicate_window }
    }
    checked check
}

/// The content of one page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Content {
    pub(super) is_zero: bool,
    pub(super) compressed_share: f64,
    /// Equal for equal pages.
    pub(super) fingerprint: u128,
}

/// Makes the sequence of contents apart from that of the drive's other chances, which have the same seed.
const SEQUENCE: u64 = 0x1f83_d9ab_fb41_bd6b;

/// The contents of the pages that are written, one after the other.
pub(super) struct Contents {
    pub(super) model: ContentModel,
    random: Pcg64Mcg,
    seed: u64,
    /// Pages so far that were not equal to another.
    unique: u64,
}

crate::state::state! {
    Contents {
        saved { model, random, unique }
        built { seed }
    }
}

impl Contents {
    pub(super) fn new(seed: u64) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed ^ SEQUENCE);
        Self { model: ContentModel::default(), random, seed, unique: 0 }
    }

    /// The content of the next page.
    pub(super) fn next(&mut self) -> Content {
        let model = &self.model;
        if model.zero_share > 0.0 && self.random.random_bool(model.zero_share) {
            return Content { is_zero: true, compressed_share: 0.0, fingerprint: 0 };
        }
        let window = self.unique.min(u64::from(model.duplicate_window));
        let is_duplicate = window > 0 && model.duplicate_share > 0.0 && self.random.random_bool(model.duplicate_share);
        let nth = if is_duplicate { self.unique - 1 - self.random.random_range(0..window) } else { self.unique };
        self.unique += u64::from(!is_duplicate);
        self.content(nth)
    }

    /// The `nth` content that is unlike all before; the same whenever it is asked for.
    fn content(&self, nth: u64) -> Content {
        let model = &self.model;
        let spread = model.compressed_spread;
        let factor = if spread > 0.0 {
            Pcg64Mcg::seed_from_u64(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ nth)
                .random_range(1.0 - spread..=1.0 + spread)
        } else {
            1.0
        };
        let compressed_share = (model.compressed_share * factor).clamp(0.0, 1.0);
        Content { is_zero: false, compressed_share, fingerprint: u128::from(nth) + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_out_as_they_are_asked_for_and_equal_pages_are_equal_in_all() {
        let mut contents = Contents::new(7);
        contents.model = ContentModel {
            compressed_share: 0.4,
            compressed_spread: 0.5,
            zero_share: 0.1,
            duplicate_share: 0.3,
            duplicate_window: 50,
        };
        let pages: Vec<Content> = std::iter::repeat_with(|| contents.next()).take(100_000).collect();
        let zeros = pages.iter().filter(|page| page.is_zero).count() as f64 / 1e5;
        let unique = contents.unique as f64 / 1e5;
        // Four standard deviations of a share of 100,000 draws are below 0.006.
        assert!((zeros - 0.1).abs() < 0.006 && (unique - 0.9 * 0.7).abs() < 0.006, "{zeros} {unique}");
        let mut seen = std::collections::BTreeMap::new();
        for page in pages.iter().filter(|page| !page.is_zero) {
            let share = *seen.entry(page.fingerprint).or_insert(page.compressed_share);
            assert_eq!(share, page.compressed_share);
            assert!((0.2..=0.6).contains(&share));
        }
        assert_eq!(seen.len() as u64, contents.unique);
    }
}
