//! The table `[ftl.element]`: a drive whose elements are log-structured drives of their own, for `mapping = "element"`.
//!
//! Source: Agrawal et al., "Design Tradeoffs for SSD Performance", USENIX ATC 2008, sections 3 and 5, whose simulator
//! is the SSD model of DiskSim 4.0. Its terms: an *element* is a flash package with its own bus, the *allocation pool*
//! is what a write may choose from, *cleaning* is garbage collection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DeviceConfig;
use super::check::Checker;
use super::choices::choices;
use crate::error::SsdError;

choices! {
    /// From which planes of its element a write may choose.
    #[derive(Default)]
    pub enum AllocationPool {
        /// All: the one with the most free pages, among those where the page's new copy comes after the old one in the
        /// order in which blocks were opened, so that the newest copy can be found after a power cut.
        #[default]
        Element = "element",
        /// A page stays in its plane.
        Plane = "plane",
    }
}

choices! {
    /// How the blocks of an element are numbered, which is the order in which a drive is filled.
    #[derive(Default)]
    pub enum BlockOrder {
        /// One block of each plane in turn.
        #[default]
        Interleaved = "interleaved",
        /// Plane after plane.
        Concatenated = "concatenated",
    }
}

choices! {
    /// Which block is cleaned.
    #[derive(Default)]
    pub enum CleaningPolicy {
        /// The sealed block with the fewest valid pages; among equals, the one with the highest number.
        #[default]
        Greedy = "greedy",
        /// The same, but a block with less life left than `migration_ratio` of its plane's average takes the plane's
        /// coldest data and is kept, and one with less than `skip_ratio` may be passed over.
        WearAware = "wear-aware",
    }
}

choices! {
    /// When an element that is low on free blocks cleans.
    #[derive(Default)]
    pub enum CleaningMode {
        /// Before the element's next page operation, read or write.
        #[default]
        Foreground = "foreground",
        /// Also while the element is idle.
        Background = "background",
    }
}

/// Elements: packages with an FTL of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ElementConfig {
    /// Successive logical pages in one element before the next element. Default: 1.
    pub stride_pages: u32,
    /// Planes that a write may use. Default: all of the element.
    pub allocation_pool: AllocationPool,
    /// How blocks are numbered. Default: interleaved.
    pub block_order: BlockOrder,
    /// Last pages of each block, which hold a summary of the others instead of data, written when the block is full:
    /// one program and the transfer of 512 bytes each. Default: 1.
    pub summary_pages_per_block: u32,
    /// Bytes of the spare area that cross the channel with each 512 bytes. Default: 16.
    pub spare_bytes_per_512: u32,
    /// Cleaning starts in a plane when ⌊`min_free_share` × blocks of a plane⌋ or fewer are free. Default: 0.05.
    pub min_free_share: f64,
    /// Which block is cleaned. Default: greedy.
    pub cleaning_policy: CleaningPolicy,
    /// When. Default: in the foreground.
    pub cleaning_mode: CleaningMode,
    /// Maximum number of blocks cleaned before one page operation; by default until no plane of the element is low,
    /// which requires a `min_free_share` below the reserved share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanings_per_operation_max: Option<u32>,
    /// P/E cycles of a block, 50 in DiskSim's model, after which it is filled at most once more and never cleaned.
    /// Default: 50.
    pub lifetime_erasures: u32,
    /// For `cleaning_policy = "wear-aware"`: a victim with less life left than this share of its plane's average takes
    /// the plane's coldest data. Default: 0.85.
    pub migration_ratio: f64,
    /// For `cleaning_policy = "wear-aware"`: a candidate with no more life left than this share of the average is
    /// passed over with probability 1 − (life ÷ average) ÷ `skip_ratio`. Default: 0.80.
    pub skip_ratio: f64,
}

impl Default for ElementConfig {
    fn default() -> Self {
        Self {
            stride_pages: 1,
            allocation_pool: AllocationPool::Element,
            block_order: BlockOrder::Interleaved,
            summary_pages_per_block: 1,
            spare_bytes_per_512: 16,
            min_free_share: 0.05,
            cleaning_policy: CleaningPolicy::Greedy,
            cleaning_mode: CleaningMode::Foreground,
            cleanings_per_operation_max: None,
            lifetime_erasures: 50,
            migration_ratio: 0.85,
            skip_ratio: 0.80,
        }
    }
}

impl ElementConfig {
    /// Free blocks of a plane at which cleaning starts.
    pub fn low_blocks(&self, blocks_per_plane: u32) -> u32 {
        (self.min_free_share * f64::from(blocks_per_plane)) as u32
    }

    /// Bytes of one row of data blocks, one block of each plane of the drive: what the capacity is a multiple of.
    pub fn row_bytes(&self, config: &DeviceConfig) -> u64 {
        let data_pages = config.flash.pages_per_block.saturating_sub(self.summary_pages_per_block);
        let planes = u64::from(config.flash.channels) * u64::from(config.flash.planes_per_die);
        planes * u64::from(data_pages) * config.flash.page_bytes
    }

    /// Blocks of each plane that the host's data fills.
    pub fn data_rows(&self, config: &DeviceConfig) -> u32 {
        (config.capacity_bytes / self.row_bytes(config).max(1)) as u32
    }

    pub(super) fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let flash = &config.flash;
        let alone = config.ways() == 1;
        let reason = "each element has its own channel: set chips_per_channel = dies_per_chip = 1";
        checker.require("flash.chips_per_channel", flash.chips_per_channel, alone, reason)?;
        let (page, reason) =
            (config.ftl.logical_page_bytes, "must equal flash.page_bytes: an element maps whole pages");
        checker.require("ftl.logical_page_bytes", page, page == flash.page_bytes, reason)?;
        let (jitter, reason) = (flash.array_time_jitter, "not supported: an element's operations have fixed times");
        checker.require("flash.array_time_jitter", jitter, jitter == 0.0, reason)?;
        let (pages, reason) = (flash.pages_per_block, "must be between 2 and 65535");
        checker.require("flash.pages_per_block", pages, (2..1 << 16).contains(&pages), reason)?;
        let summaries = self.summary_pages_per_block;
        let reason = format!("leaves no data page of the {pages} in a block");
        checker.require("ftl.element.summary_pages_per_block", summaries, summaries < pages, reason)?;
        let spare = self.spare_bytes_per_512;
        checker.require("ftl.element.spare_bytes_per_512", spare, spare <= 512, "must be at most 512")?;
        checker.count("ftl.element.stride_pages", self.stride_pages, 1 << 20, "must be between 1 and 2^20")?;
        let reason = "must be between 1 and 2^30";
        checker.count("ftl.element.lifetime_erasures", self.lifetime_erasures, 1 << 30, reason)?;
        checker.share("ftl.element.migration_ratio", self.migration_ratio, 0.0, 1.0)?;
        checker.share("ftl.element.skip_ratio", self.skip_ratio, 0.0, 1.0)?;
        self.check_room(config, checker)
    }

    fn check_room(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let blocks = config.flash.blocks_per_plane;
        let row = self.row_bytes(config);
        let (capacity, elements) = (config.capacity_bytes, u64::from(config.flash.channels));
        checker.multiple("capacity_bytes", capacity, row)?;
        let pages = config.logical_pages();
        let reason = format!("the {pages} logical pages must be divisible by the {elements} elements");
        let even = pages.is_multiple_of(elements * u64::from(self.stride_pages));
        checker.require("ftl.element.stride_pages", self.stride_pages, even, reason)?;
        let rows = capacity / row;
        let reason =
            format!("each plane needs 2 of its {blocks} blocks free: at most {row} bytes per block fit in the rest");
        checker.require("capacity_bytes", capacity, rows + 2 <= u64::from(blocks), reason)?;
        checker.share("ftl.element.min_free_share", self.min_free_share, 0.0, 0.99)?;
        let most = self.cleanings_per_operation_max.unwrap_or(1);
        checker.require("ftl.element.cleanings_per_operation_max", most, most >= 1, "must be at least 1")?;
        let low = self.low_blocks(blocks);
        let reason = format!(
            "cleaning could never free more than {low} blocks of a plane, because data takes {rows} of {blocks}: \
             increase the reserve, or set cleanings_per_operation_max"
        );
        let ends = u64::from(low) + 1 + rows < u64::from(blocks) || self.cleanings_per_operation_max.is_some();
        checker.require("ftl.element.min_free_share", self.min_free_share, ends, reason)
    }
}
