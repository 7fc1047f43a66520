//! The FTL of a drive as a part of it: the map, what is kept beside the map, and what pages take.
//!
//! ```text
//!   logical page ─▶ (stored page, where pages are compressed or shared: reduction) ─▶ slot: the page map, or another FTL
//!                     its entry looked up first, where the map does not fit memory: translator
//!                     which granules of it hold data, where that is known: sectors
//! ```

use std::collections::BTreeMap;

use crate::config::{DeviceConfig, DomainConfig, WritePath};
use crate::flash::FlashAddress;
use crate::ftl::geometry::Geometry;
use crate::ftl::mapping_cache::{MappingCache, Rules, Split};
use crate::ftl::sectors::Sectors;
use crate::ftl::translator::Translator;
use crate::ftl::{AnyFtl, Ftl, KeptAs, Location, PageMap, Step};
use crate::reduction::{Reduction, Sharing};

/// The FTL of a drive.
pub(crate) struct Translation {
    /// The page map; an idle one where an FTL of another kind maps the logical pages.
    pub(crate) pages: PageMap,
    pub(crate) kind: AnyFtl,
    pub(crate) sectors: Sectors,
    /// The look-up of a page map that does not fit controller memory.
    pub(crate) translator: Option<Translator>,
    /// What is done to store less than is written, where anything is.
    pub(crate) reduction: Option<Box<Reduction>>,
    /// Scratch space: the flash work of one write.
    pub(crate) steps: Vec<Step>,
}

impl Translation {
    /// An empty drive's; `seed` drives what is left to chance.
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Self {
        let pages = match config.ftl.mapping.write_path() {
            WritePath::Buffer => PageMap::new(config, seed),
            WritePath::InPlace | WritePath::Elements => PageMap::idle(config, Geometry::trivial()),
            WritePath::Steps => PageMap::idle(config, Geometry::new(config)),
        };
        Self {
            kind: AnyFtl::build(config, &pages.geometry, seed),
            sectors: Sectors::new(config),
            translator: translator(config, &pages.geometry),
            reduction: Reduction::new(config, seed),
            steps: Vec::new(),
            pages,
        }
    }

    /// The FTL that maps the logical pages, whichever kind it is.
    #[inline(always)]
    fn ftl(&self) -> &dyn Ftl {
        match &self.kind {
            AnyFtl::Buffer => &self.pages,
            AnyFtl::Steps(ftl) => &**ftl,
            AnyFtl::InPlace(ftl) => ftl,
            AnyFtl::Elements(ftl) => &**ftl,
        }
    }

    #[inline(always)]
    fn ftl_mut(&mut self) -> &mut dyn Ftl {
        match &mut self.kind {
            AnyFtl::Buffer => &mut self.pages,
            AnyFtl::Steps(ftl) => &mut **ftl,
            AnyFtl::InPlace(ftl) => ftl,
            AnyFtl::Elements(ftl) => &mut **ftl,
        }
    }

    /// Whether the page map maps the logical pages.
    #[inline(always)]
    pub(crate) fn is_page_map(&self) -> bool {
        matches!(self.kind, AnyFtl::Buffer)
    }

    /// Whether the FTL hands out steps.
    pub(crate) fn hands_out_steps(&self) -> bool {
        matches!(self.kind, AnyFtl::Steps(_))
    }

    /// The page that is stored for a logical page; `None` where none is.
    #[inline(always)]
    fn stored(&self, logical_page: u32) -> Option<u32> {
        match &self.reduction {
            Some(reduction) => reduction.stored(logical_page),
            None => Some(logical_page),
        }
    }

    /// Where a logical page is.
    #[inline]
    pub(crate) fn locate(&self, logical_page: u32) -> Location {
        match &self.kind {
            AnyFtl::Buffer => self.stored(logical_page).map_or(Location::Nowhere, |page| self.pages.locate(page)),
            _ => self.ftl().locate(logical_page),
        }
    }

    /// The slot whose bytes are a logical page's.
    pub(crate) fn slot_of(&self, logical_page: u32) -> Option<u32> {
        match &self.kind {
            AnyFtl::Buffer => self.pages.slot_of(self.stored(logical_page)?),
            _ => self.ftl().slot_of(logical_page),
        }
    }

    /// Forgets a logical page; gives the slot whose bytes go with it.
    pub(crate) fn forget(&mut self, logical_page: u32) -> Option<u32> {
        match &mut self.reduction {
            Some(reduction) => self.pages.trim(reduction.forget(logical_page)?),
            None => self.ftl_mut().forget(logical_page),
        }
    }

    /// Where a slot is, with everything that is sensed by one command with it.
    #[inline]
    pub(crate) fn address_of(&self, slot: u32) -> FlashAddress {
        match &self.kind {
            AnyFtl::Buffer => self.pages.geometry.address_of(slot),
            _ => self.ftl().address_of(slot, &self.pages.geometry),
        }
    }

    /// The slot that a page which nobody has written would have, had the drive been filled in order.
    pub(crate) fn nominal_slot(&self, logical_page: u32) -> u32 {
        self.pages.geometry.nominal_slot(logical_page, self.pages.bound_unit(logical_page))
    }

    /// Whether no logical page has a place yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.ftl().is_empty()
    }

    /// Maps the logical pages, those of the map itself among them, as one sequential write would.
    pub(crate) fn fill_in_order(&mut self, pages: u32, kept: KeptAs) {
        self.ftl_mut().fill_in_order(pages, kept);
        if let Some(translator) = &mut self.translator {
            translator.all_stored();
        }
    }

    /// See [`Ftl::erase_histogram`].
    pub(crate) fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        self.ftl().erase_histogram()
    }

    /// See [`Ftl::mapped_and_valid_pages`].
    pub(crate) fn mapped_and_valid_pages(&self) -> (u64, u64) {
        self.ftl().mapped_and_valid_pages()
    }

    /// Checks the FTL's invariants, and that what is stored is what the logical pages share.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.ftl().check()?;
        self.reduction.as_ref().map_or(Ok(()), |reduction| reduction.check(&self.pages))
    }

    #[inline(always)]
    fn sharing(&self) -> Option<&Sharing> {
        self.reduction.as_ref()?.sharing.as_deref()
    }

    /// The places where the tables hold what they know of a page will be asked for.
    pub(crate) fn prefetch_places(&self, logical_page: u32) {
        self.pages.prefetch_place(logical_page);
        self.sectors.prefetch_place(logical_page);
        if let Some(translator) = &self.translator {
            translator.prefetch_place(logical_page);
        }
        if let Some(sharing) = self.sharing() {
            sharing.prefetch_place(logical_page);
        }
    }

    /// What the tables know of a page will be needed, its places being here by now.
    #[inline(always)]
    pub(crate) fn prefetch_entries(&self, logical_page: u32) {
        self.pages.prefetch_page(logical_page);
        self.sectors.prefetch_page(logical_page);
        if let Some(translator) = &self.translator {
            translator.prefetch_page(logical_page);
        }
        if let Some(sharing) = self.sharing() {
            sharing.prefetch_page(logical_page);
        }
    }

    /// What the entries of a page lead to will be needed.
    #[inline(always)]
    pub(crate) fn prefetch_contents(&self, logical_page: u32, is_write: bool) {
        self.pages.prefetch_slot_of(logical_page, is_write);
        if let Some(sharing) = self.sharing().filter(|_| is_write) {
            sharing.prefetch_fingerprint(logical_page);
        }
    }
}

/// The look-up of a drive whose page map is on flash.
fn translator(config: &DeviceConfig, geometry: &Geometry) -> Option<Translator> {
    let cache = config.ftl.mapping_cache.as_ref()?;
    let (pages, entries) = (config.logical_pages() as u32, cache.entries_per_page(config) as u32);
    let capacity = cache.capacity_entries() as u32;
    let load_bytes = cache.load_bytes.unwrap_or(config.ftl.logical_page_bytes as u32);
    let domains = &config.ftl.domains;
    let split = match domains.len() {
        several @ 2.. if several == cache.partitions as usize => Split::At(ends_of(domains, config)),
        _ => Split::evenly(pages, cache.partitions),
    };
    let room = (capacity, split);
    let rules = Rules {
        stored_at_start: cache.stored_at_start,
        deferred_write_back: cache.deferred_write_back,
        write_back_renews: cache.write_back_renews,
    };
    let cache = MappingCache::new(pages, entries, room, rules);
    Some(Translator::new(cache, pages, load_bytes, geometry.units))
}

/// The logical page behind the last of each domain.
fn ends_of(domains: &[DomainConfig], config: &DeviceConfig) -> Box<[u32]> {
    let mut end = 0;
    let ends = domains.iter().map(|domain| {
        end += domain.capacity_bytes / config.ftl.logical_page_bytes;
        end as u32
    });
    ends.collect()
}
