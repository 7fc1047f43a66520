//! The flash translation layer's side of a configuration.

use std::fmt;

use flashwise_block::ByteSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DeviceConfig;
use super::check::Checker;
use super::choices::{choices, is_default};
use super::domains::DomainConfig;
use super::element::ElementConfig;
use super::gc::{BadBlocksConfig, GcConfig, WearLevellingConfig};
use super::slc_cache::SlcCacheConfig;
use super::streams::StreamsConfig;
use crate::error::SsdError;

/// Every FTL: what it is, its name, and in brackets its write path ([`WritePath`]) and its type in `ftl/`. This is the
/// one list of them; [`crate::ftl`] says how to add one.
macro_rules! ftl_kinds {
    ($then:ident) => {
        $then! {
            /// Address mapping.
            pub enum Mapping {
                /// Log-structured page mapping: a write goes to a clean page, the old one becomes invalid.
                Page = "page" [Buffer, page_map::PageMap],
                /// Each logical page has a fixed address; for media without erase.
                InPlace = "in-place" [InPlace, in_place::InPlace],
                /// Block mapping with replacement blocks.
                Block = "block" [Steps, blocks::Replacement],
                /// FAST: block mapping with log blocks that all logical blocks of a unit share.
                Fast = "fast" [Steps, blocks::Fast],
                /// Page mapping inside elements, flash packages that are log-structured drives of their own.
                Element = "element" [Elements, element::Elements],
            }
        }
    };
}

/// How a write gets from the controller to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WritePath {
    /// Into the write buffer, where the page map places it; programmed a superpage at a time.
    Buffer,
    /// Page by page, as the steps that the FTL hands out: copies, erases, and the program of the page. A write cache
    /// may are before it.
    Steps,
    /// Granule by granule, in its place.
    InPlace,
    /// Over the link as a whole request, then page by page to elements that do it in their own time.
    Elements,
}

macro_rules! write_paths {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$about:meta])* $name:ident = $text:literal [$path:ident, $($ftl:tt)+]),* $(,)?
        }
    ) => {
        impl $type {
            /// How a write gets to flash under this mapping.
            pub(crate) fn write_path(self) -> WritePath {
                match self { $(Self::$name => WritePath::$path,)* }
            }
        }
    };
}

ftl_kinds!(choices);
ftl_kinds!(write_paths);
pub(crate) use ftl_kinds;

/// How much of a page's place its logical address decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundTo {
    /// The one unit that it may go to.
    Unit,
    /// The unit inside a group of channels, each of which has one for it.
    UnitInGroup,
    /// Nothing: it may go to any unit.
    Nothing,
}

/// Every placement: what it is, its name, and in brackets the type in `ftl/placement/` and what it binds an address to.
macro_rules! placements {
    ($then:ident) => {
        $then! {
            /// Which parallel unit a written page goes to.
            #[derive(Default)]
            pub enum Placement {
                /// A write is cut into pieces of `stripe_bytes`; each piece goes to the next group of channels, and
                /// inside the group to the unit that follows from the logical address.
                #[default]
                Stripe = "stripe" [stripe::Stripe, UnitInGroup],
                /// The unit follows from the logical address alone, in the order of `static_order`.
                Static = "static" [static_order::Static, Unit],
                /// Each page goes to the next unit, whatever its address: channels first, then ways, then planes.
                RoundRobin = "round-robin" [round_robin::RoundRobin, Nothing],
                /// Each page goes to the channel, and on it to the die, with the least work waiting.
                LeastLoaded = "least-loaded" [least_loaded::LeastLoaded, Nothing],
            }
        }
    };
}

macro_rules! binding {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$about:meta])* $name:ident = $text:literal [$policy:path, $binds:ident]),* $(,)?
        }
    ) => {
        impl $type {
            /// What it binds a logical address to.
            pub const fn binds_to(self) -> BoundTo {
                match self { $(Self::$name => BoundTo::$binds,)* }
            }
        }
    };
}

placements!(choices);
placements!(binding);
pub(crate) use placements;

/// A level of parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// C: channels.
    Channel,
    /// W: ways, the chips of a channel.
    Way,
    /// D: dies of a chip.
    Die,
    /// P: planes of a die.
    Plane,
}

/// In which order successive logical pages go over the levels of parallelism; the first level changes fastest.
///
/// Written as four letters, such as `CWDP`. Source: Tavakkol et al., ACM TOMPECS 1(2), 2016, which compares all 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct StaticOrder(pub [Level; 4]);

impl Default for StaticOrder {
    fn default() -> Self {
        Self([Level::Channel, Level::Way, Level::Die, Level::Plane])
    }
}

impl Level {
    /// All levels with their letters.
    pub const ALL: [(char, Self); 4] = [('C', Self::Channel), ('W', Self::Way), ('D', Self::Die), ('P', Self::Plane)];

    fn letter(self) -> char {
        Self::ALL[self as usize].0
    }
}

impl StaticOrder {
    /// All 24 orders.
    pub fn all() -> Vec<Self> {
        let levels = Level::ALL.map(|(_, level)| level);
        let mut orders = Vec::with_capacity(24);
        for n in 0..256_usize {
            let order = [n >> 6, (n >> 4) & 3, (n >> 2) & 3, n & 3].map(|i| levels[i]);
            if levels.iter().all(|level| order.contains(level)) {
                orders.push(Self(order));
            }
        }
        orders
    }
}

impl fmt::Display for StaticOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|level| write!(f, "{}", level.letter()))
    }
}

impl From<StaticOrder> for String {
    fn from(order: StaticOrder) -> Self {
        order.to_string()
    }
}

impl TryFrom<String> for StaticOrder {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let found = Self::all().into_iter().find(|order| order.to_string() == text);
        found.ok_or_else(|| {
            format!("static_order = {text:?}: must be the letters C, W, D and P in some order, such as CWDP")
        })
    }
}

choices! {
    /// What happens when a write covers a logical page in part.
    #[derive(Default)]
    pub enum PartialPages {
        /// The page is read first, so that all of it is written again.
        #[default]
        Fill = "fill",
        /// The FTL tracks which sixteenths of a page (at least 512 bytes each) hold data. The page is read first only
        /// if the write leaves some of them uncovered, and only the data written crosses the channel and takes space in
        /// the write buffer.
        Sectors = "sectors",
    }
}

/// A page map stored on flash, with the part in use cached in controller memory (DFTL).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MappingCacheConfig {
    /// Controller memory for the cached entries, bytes.
    pub capacity_bytes: u64,
    /// Controller memory that one cached entry takes, bytes; default 8 (logical and physical page number).
    #[serde(default = "eight")]
    pub cached_entry_bytes: u32,
    /// Bytes of one entry in a translation page on flash; default 4. A translation page has the length of a logical
    /// page.
    #[serde(default = "four")]
    pub stored_entry_bytes: u32,
    /// Bytes that a look-up moves over the channel; by default the whole translation page.
    #[serde(default)]
    pub load_bytes: Option<u32>,
    /// Whether a new drive has its translation pages on flash; default no: an unmodified part of the map needs no read.
    #[serde(default)]
    pub stored_at_start: bool,
    /// Whether a translation page that is written back stays in controller memory until the drive is idle for long; it
    /// then needs no further read, and is not programmed during the simulation. Default no.
    #[serde(default)]
    pub deferred_write_back: bool,
    /// Whether the other entries that a write-back makes clean count as just used, as in MQSim; default no.
    #[serde(default)]
    pub write_back_renews: bool,
    /// Number of ranges into which the logical pages are split, each with `capacity_bytes` of its own: ranges of equal
    /// length, or the domains if `ftl.domains` has as many; default 1.
    #[serde(default = "one")]
    pub partitions: u32,
}

impl MappingCacheConfig {
    /// Entries in controller memory.
    pub fn capacity_entries(&self) -> u64 {
        self.capacity_bytes / u64::from(self.cached_entry_bytes.max(1))
    }

    /// Entries in a translation page.
    pub fn entries_per_page(&self, config: &DeviceConfig) -> u64 {
        (config.ftl.logical_page_bytes / u64::from(self.stored_entry_bytes.max(1))).max(1)
    }

    fn check(&self, logical_page_bytes: u64, checker: &Checker<'_>) -> Result<(), SsdError> {
        const ENTRY: &str = "must be between 1 and 64";
        checker.count("ftl.mapping_cache.cached_entry_bytes", self.cached_entry_bytes, 64, ENTRY)?;
        checker.count("ftl.mapping_cache.stored_entry_bytes", self.stored_entry_bytes, 64, ENTRY)?;
        let (capacity, entries) = (self.capacity_bytes, self.capacity_entries());
        let possible = entries > 0 && u32::try_from(entries).is_ok();
        checker.require("ftl.mapping_cache.capacity_bytes", capacity, possible, "must be 1 to 2^32 entries")?;
        checker.count("ftl.mapping_cache.partitions", self.partitions, 1024, "must be between 1 and 1024")?;
        let load = self.load_bytes.map_or(logical_page_bytes, u64::from);
        let possible = (1..=logical_page_bytes).contains(&load);
        let reason = format!("must be at most a translation page, {logical_page_bytes} bytes");
        checker.require("ftl.mapping_cache.load_bytes", load, possible, reason)
    }
}

/// The flash translation layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FtlConfig {
    /// Address mapping.
    pub mapping: Mapping,
    /// Bytes of a logical page, the unit that the FTL maps; a power of two.
    #[serde(default = "default_logical_page_bytes")]
    pub logical_page_bytes: u64,
    /// Parallel unit of a written page. If the address leaves a choice, a unit without free space, or with more than
    /// its share of the valid data, is skipped.
    #[serde(default)]
    pub placement: Placement,
    /// The order of levels for `placement = "static"`.
    #[serde(default)]
    pub static_order: StaticOrder,
    /// For `placement = "static"`: successive ranges of logical addresses, each on a part of the flash; by default
    /// there is one, on all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainConfig>,
    /// For `placement = "stripe"`: a write is cut into pieces of this length from its start.
    pub stripe_bytes: u64,
    /// Channels that program one superpage together; the channels form groups of this size.
    #[serde(default = "one")]
    pub superpage_channels: u32,
    /// Dies on each of these channels that program one superpage together.
    #[serde(default = "one")]
    pub superpage_ways: u32,
    /// Planes of each of these dies that program one superpage together; by default all of them.
    #[serde(default)]
    pub superpage_planes: Option<u32>,
    /// For `mapping = "page"`: flash pages of each superpage that hold the parity of the others, so that a page which
    /// cannot be read is restored (Micron: RAIN, redundant array of independent NAND). They are programmed with the
    /// rest, count as programmed, and hold none of the host's data. Default: 0.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = 0))]
    pub parity_pages: u32,
    /// For `mapping = "page"`: whether a write to a page that waits in a superpage which is not full yet replaces it
    /// there; otherwise it takes a slot of its own, as if the earlier one were on flash. Default: yes.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    #[schemars(extend("default" = true))]
    pub replaces_in_buffer: bool,
    /// For `mapping = "page"`: the page map is on flash and is cached; by default all of it is in controller memory.
    #[serde(default)]
    pub mapping_cache: Option<MappingCacheConfig>,
    /// For `mapping = "block"`: logical blocks of a unit that may occupy two physical blocks at a time.
    #[serde(default = "one")]
    pub replacement_blocks: u32,
    /// For `mapping = "block"`: of these, how many may be written in any order. On a memory card, a logical block is
    /// an allocation unit, and both are its open units. Default: 0.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = 0))]
    pub random_replacement_blocks: u32,
    /// For `mapping = "block"`: pages that are written to such a block until it is merged; by default all of a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_log_pages: Option<u32>,
    /// For `mapping = "block"`: whether the first logical block of each unit has a block of its own for writes in any
    /// order, beside the others. Default: no.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub first_block_log: bool,
    /// For `mapping = "fast"`: random log blocks of a unit, beside the sequential one.
    #[serde(default = "one")]
    pub log_blocks: u32,
    /// What happens when a write covers a logical page in part.
    #[serde(default)]
    pub partial_pages: PartialPages,
    /// For `mapping = "element"`: what an element does by itself.
    #[serde(default)]
    pub element: ElementConfig,
    /// Data that is kept apart because it is overwritten at different rates.
    #[serde(default)]
    pub streams: StreamsConfig,
    /// Superblocks that take the host's writes with one bit a cell; by default there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCacheConfig>,
    /// Garbage collection.
    #[serde(default)]
    pub gc: GcConfig,
    /// Wear levelling.
    #[serde(default)]
    pub wear_levelling: WearLevellingConfig,
    /// Superblocks that cannot be used.
    #[serde(default)]
    pub bad_blocks: BadBlocksConfig,
}

fn default_logical_page_bytes() -> u64 {
    4096
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

fn four() -> u32 {
    4
}

fn eight() -> u32 {
    8
}

fn one() -> u32 {
    1
}

impl FtlConfig {
    pub(super) fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let page = self.logical_page_bytes;
        let possible = page.is_power_of_two() && (512..=1 << 20).contains(&page);
        checker.require("ftl.logical_page_bytes", page, possible, "must be a power of two between 512 and 1 MiB")?;
        let (channels, together) = (config.flash.channels, self.superpage_channels);
        let reason = format!("must divide the {channels} channels");
        checker.require("ftl.superpage_channels", together, divides(together, channels), reason)?;
        let (ways, together) = (config.ways(), self.superpage_ways);
        let reason = format!("must divide the {ways} dies of a channel");
        checker.require("ftl.superpage_ways", together, divides(together, ways), reason)?;
        let (planes, together) = (config.flash.planes_per_die, config.superpage_planes());
        let reason = format!("must divide the {planes} planes of a die");
        checker.require("ftl.superpage_planes", together, divides(together, planes), reason)?;
        let (parity, pages) = (self.parity_pages, config.flash_pages_per_superpage());
        let reason = format!("must be below the {pages} flash pages of a superpage");
        checker.require("ftl.parity_pages", parity, u64::from(parity) < pages, reason)?;
        let reason = "requires mapping = \"page\"";
        checker.require("ftl.parity_pages", parity, parity == 0 || self.mapping == Mapping::Page, reason)?;
        let reason = "requires mapping = \"page\"";
        let possible = self.replaces_in_buffer || self.mapping == Mapping::Page;
        checker.require("ftl.replaces_in_buffer", self.replaces_in_buffer, possible, reason)?;
        if let Some(cache) = &self.mapping_cache {
            cache.check(page, checker)?;
            let reason = "requires mapping = \"page\"";
            checker.require("ftl.mapping_cache", "present", self.mapping == Mapping::Page, reason)?;
        }
        let of_blocks = [
            ("ftl.random_replacement_blocks", self.random_replacement_blocks > 0),
            ("ftl.random_log_pages", self.random_log_pages.is_some()),
            ("ftl.first_block_log", self.first_block_log),
        ];
        for (key, is_set) in of_blocks {
            let possible = !is_set || self.mapping == Mapping::Block;
            checker.require(key, "set", possible, "requires mapping = \"block\"")?;
        }
        let reason = "requires mapping = \"page\"";
        let possible = self.partial_pages == PartialPages::Fill || self.mapping == Mapping::Page;
        checker.require("ftl.partial_pages", "sectors", possible, reason)?;
        let alone = self.superpage_channels == 1 && self.superpage_ways == 1;
        let reason = "requires superpages of one die (superpage_channels = 1, superpage_ways = 1)";
        checker.require("ftl.placement", "static", alone || self.placement != Placement::Static, reason)
    }

    /// Blocks of a unit that a block-mapping FTL needs beside the data blocks: those that hold a second copy, and one
    /// clean block for a merge.
    pub(crate) fn spare_blocks(&self) -> u32 {
        match self.mapping {
            Mapping::Block => self.replacement_blocks.saturating_add(1 + u32::from(self.first_block_log)),
            _ => self.log_blocks.saturating_add(2),
        }
    }

    pub(super) fn check_block_mapping(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (superpage, page) = (config.superpage_bytes(), self.logical_page_bytes);
        let reason = format!(
            "block mapping writes single logical pages, but a superpage has {}: set superpage_planes = 1 and \
             logical_page_bytes = flash.page_bytes",
            ByteSize(superpage)
        );
        checker.require("ftl.logical_page_bytes", page, superpage == page, reason)?;
        let (key, count) = match self.mapping {
            Mapping::Block => ("ftl.replacement_blocks", self.replacement_blocks),
            _ => ("ftl.log_blocks", self.log_blocks),
        };
        checker.count(key, count, 1 << 16, "must be at least 1")?;
        let (blocks, spare) = (config.flash.blocks_per_plane, self.spare_blocks());
        let reason = format!("leaves no data block of the {blocks} blocks of a plane");
        checker.require(key, count, spare < blocks, reason)?;
        self.check_random_blocks(config.flash.pages_per_block, checker)?;
        let block = page * u64::from(config.flash.pages_per_block);
        let usable = config.units() * u64::from(blocks - spare) * block;
        let reason = format!("each unit needs {spare} spare blocks: must be at most {usable} bytes");
        checker.require("capacity_bytes", config.capacity_bytes, config.capacity_bytes <= usable, reason)
    }

    fn check_random_blocks(&self, pages: u32, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (random, all) = (self.random_replacement_blocks, self.replacement_blocks);
        let reason = format!("must be at most ftl.replacement_blocks, {all}");
        checker.require("ftl.random_replacement_blocks", random, random <= all, reason)?;
        let log = self.random_log_pages.unwrap_or(pages);
        let reason = format!("must be between 1 and the {pages} pages of a block");
        checker.require("ftl.random_log_pages", log, (1..=pages).contains(&log), reason)
    }

    pub(super) fn check_page_mapping(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let page = config.flash.page_bytes;
        checker.multiple("flash.page_bytes", page, self.logical_page_bytes)?;
        let superpage = config.superpage_bytes();
        let superblock = superpage * u64::from(config.flash.pages_per_block);
        let usable_of_superblock = superblock.saturating_sub(config.superblock_waste_bytes());
        let stripe = self.stripe_bytes;
        let reason = format!("must be a multiple of the superpage's {}", ByteSize(superpage));
        let possible = stripe > 0 && stripe.is_multiple_of(superpage);
        checker.require("ftl.stripe_bytes", stripe, possible || self.placement != Placement::Stripe, reason)?;
        self.streams.check_room(config, checker)?;
        config.check_gc_room(checker)?;
        let free_for_data = u64::from(config.flash.blocks_per_plane) - config.superblocks_kept();
        let usable = config.units() * usable_of_superblock * free_for_data;
        let raw = config.raw_bytes();
        let reason = format!(
            "the flash has {}, of which garbage collection needs {}: must be at most {usable} bytes",
            ByteSize(raw),
            ByteSize(raw - usable)
        );
        let needed = config.physical_bytes() + u64::from(config.translation_pages()) * self.logical_page_bytes;
        let key = if config.reduction.is_some() { "reduction.physical_bytes" } else { "capacity_bytes" };
        checker.require(key, config.physical_bytes(), needed <= usable, reason)?;
        config.check_room_of_domains(usable_of_superblock * free_for_data, checker)
    }
}

fn divides(part: u32, whole: u32) -> bool {
    part > 0 && whole.is_multiple_of(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_24_static_orders_and_each_is_read_back_from_its_letters() {
        let orders = StaticOrder::all();
        assert_eq!(orders.len(), 24);
        for order in orders {
            assert_eq!(StaticOrder::try_from(order.to_string()), Ok(order));
        }
        assert!(StaticOrder::try_from("CWDD".to_owned()).is_err());
    }
}
