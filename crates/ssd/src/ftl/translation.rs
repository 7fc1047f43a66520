//! The FTL of a drive with what it keeps beside the map.

use super::Ftl;
use super::blocks::{BlockFtl, BlockSpace, Fast, Replacement, Step};
use super::element::Elements;
use super::geometry::Geometry;
use super::mapping_cache::{MappingCache, Rules, Split};
use super::sectors::Sectors;
use super::translator::Translator;
use crate::config::{DeviceConfig, DomainConfig, Mapping};

/// The FTL of a drive.
pub(crate) struct Translation {
    /// The page map; an idle one where something else maps the logical pages.
    pub(crate) pages: Ftl,
    /// The FTL where it maps blocks.
    pub(crate) blocks: Option<Box<dyn BlockFtl + Send>>,
    /// The elements where they map pages by themselves.
    pub(crate) elements: Option<Box<Elements>>,
    pub(crate) sectors: Sectors,
    /// The look-up of a page map that does not fit controller memory.
    pub(crate) translator: Option<Translator>,
    /// Scratch space: the flash work of one write.
    pub(crate) steps: Vec<Step>,
}

impl Translation {
    /// An empty drive's; `seed` drives what is left to chance.
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Self {
        let pages = match config.ftl.mapping {
            Mapping::Page => Ftl::new(config, seed),
            Mapping::InPlace | Mapping::Element => Ftl::idle(config, Geometry::trivial()),
            Mapping::Block | Mapping::Fast => Ftl::idle(config, Geometry::new(config)),
        };
        Self {
            blocks: block_ftl(config, &pages.geometry),
            elements: (config.ftl.mapping == Mapping::Element).then(|| Box::new(Elements::new(config, seed))),
            sectors: Sectors::new(config),
            translator: translator(config, &pages.geometry),
            steps: Vec::new(),
            pages,
        }
    }
}

/// The look-up of a drive whose page map lies on flash.
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

/// The FTL of a drive that maps blocks.
fn block_ftl(config: &DeviceConfig, geometry: &Geometry) -> Option<Box<dyn BlockFtl + Send>> {
    let space = || BlockSpace::new(geometry, config.capacity_bytes / config.ftl.logical_page_bytes);
    match config.ftl.mapping {
        Mapping::Page | Mapping::InPlace | Mapping::Element => None,
        Mapping::Block => Some(Box::new(Replacement::new(space(), config.ftl.replacement_blocks))),
        Mapping::Fast => Some(Box::new(Fast::new(space(), config.ftl.log_blocks))),
    }
}
