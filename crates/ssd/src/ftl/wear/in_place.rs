//! Wear of a medium that is written in place, such as 3D XPoint: writes to each page are counted.
//!
//! ```text
//!   write ─▶ its page's count + 1 ─▶ at the limit: a spare page takes its place, at 0 ─▶ no spare left: read-only
//! ```
//!
//! What is assumed: a write of any length wears the whole page; a page that reaches its limit is replaced without cost
//! while it can still be read; and nothing levels wear, so that a page which is written often wears out while its
//! neighbours are new. Products of this kind do level it (Qureshi et al., "Enhancing Lifetime and Security of PCM-Based
//! Main Memory with Start-Gap Wear Leveling", MICRO 2009, show how); their lives are nearer to that of even wear, which
//! the projection tells as a factor of its own.

use std::collections::BTreeMap;

use crate::config::{DeviceConfig, Mapping};
use crate::sparse::SparseTable;

/// Writes to each page.
pub struct InPlaceWear {
    /// To the page that is at a place now.
    writes: SparseTable,
    places: u32,
    limit: u32,
    spares_left: u64,
    replaced: u64,
    /// To all pages.
    total: u64,
}

impl InPlaceWear {
    /// A new medium; `None` where it does not wear out, or is not written in place.
    pub(crate) fn new(config: &DeviceConfig) -> Option<Self> {
        let limit = config.pe_cycles_limit().filter(|_| config.ftl.mapping == Mapping::InPlace)?;
        let places = config.logical_pages() as u32;
        let spares_left = config.raw_bytes() / config.ftl.logical_page_bytes - u64::from(places);
        Some(Self { writes: SparseTable::new(places as usize), places, limit, spares_left, replaced: 0, total: 0 })
    }

    /// A page is written; gives whether the medium can take no more after that.
    pub(crate) fn written(&mut self, page: u32) -> bool {
        self.total += 1;
        let writes = self.writes.get(page) + 1;
        if writes < self.limit {
            self.writes.replace(page, writes);
            return false;
        }
        if self.spares_left == 0 {
            self.writes.replace(page, self.limit);
            return true;
        }
        self.writes.replace(page, 0);
        (self.spares_left, self.replaced) = (self.spares_left - 1, self.replaced + 1);
        false
    }

    /// Pages that are left to replace others.
    pub fn spares_left(&self) -> u64 {
        self.spares_left
    }

    /// Pages that have been replaced.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Writes to all pages.
    pub fn writes(&self) -> u64 {
        self.total
    }

    /// Pages that the host can address.
    pub fn places(&self) -> u32 {
        self.places
    }

    /// How many places have taken how many writes since a page was last replaced there.
    pub fn histogram_of_places(&self) -> BTreeMap<u32, u64> {
        let mut histogram = BTreeMap::new();
        for page in 0..self.places {
            *histogram.entry(self.writes.get(page)).or_default() += 1;
        }
        histogram
    }

    /// How many pages have taken how many writes, replaced ones and spares included.
    pub fn histogram(&self) -> BTreeMap<u32, u64> {
        let mut histogram = self.histogram_of_places();
        for (writes, pages) in [(0, self.spares_left), (self.limit, self.replaced)] {
            if pages > 0 {
                *histogram.entry(writes).or_default() += pages;
            }
        }
        histogram
    }
}

crate::state::state! {
    InPlaceWear {
        saved { writes, spares_left, replaced, total }
        built { places, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EnduranceConfig;

    /// Eight places, two spare pages.
    fn wear(limit: u32) -> InPlaceWear {
        let mut config = DeviceConfig::preset("intel-optane-905p").unwrap();
        (config.flash.channels, config.flash.chips_per_channel) = (1, 1);
        (config.flash.blocks_per_plane, config.flash.pages_per_block, config.capacity_bytes) = (1, 10, 8 * 4096);
        config.flash.endurance = Some(EnduranceConfig { pe_cycles: Some(limit), ..EnduranceConfig::default() });
        config.check("wear").unwrap();
        InPlaceWear::new(&config).unwrap()
    }

    #[test]
    fn spares_replace_worn_pages_until_there_are_none() {
        let mut wear = wear(3);
        let ends: Vec<bool> = (0..9).map(|_| wear.written(5)).collect();
        assert_eq!(ends, [false, false, false, false, false, false, false, false, true], "3 pages of 3 writes");
        assert_eq!((wear.replaced(), wear.spares_left()), (2, 0));
        assert_eq!(wear.histogram(), BTreeMap::from([(0, 7), (3, 3)]), "ten pages in all");
    }

    #[test]
    fn even_writes_wear_every_page_alike() {
        let mut wear = wear(100);
        (0..80).for_each(|n| assert!(!wear.written(n % 8)));
        assert_eq!(wear.histogram(), BTreeMap::from([(0, 2), (10, 8)]));
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        assert!(InPlaceWear::new(&DeviceConfig::preset("intel-optane-905p").unwrap()).is_none());
    }
}
