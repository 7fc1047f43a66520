//! The controller's side of a configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::choices::choices;
use super::{DeviceConfig, Mapping, WritePath};
use crate::error::SsdError;

choices! {
    /// When a write completes.
    #[derive(Default)]
    pub enum WritePolicy {
        /// When the controller has its data.
        #[default]
        Back = "back",
        /// When the flash has its data.
        Through = "through",
    }
}

choices! {
    /// Cost of reads of unwritten pages.
    #[derive(Default)]
    pub enum UnwrittenReads {
        /// Nothing: the map shows that they are zeros.
        #[default]
        Zeros = "zeros",
        /// A flash read at the address that the page would have if the drive had been filled sequentially.
        Flash = "flash",
        /// A flash read of the page that the next write to its unit would use, which becomes the logical page's, as if
        /// it had been written; as in MQSim. Without a free page it is as `flash`.
        Allocate = "allocate",
    }
}

choices! {
    /// Which page leaves a cache first.
    #[derive(Default)]
    pub enum CachePolicy {
        /// The least recently used one.
        #[default]
        Lru = "lru",
        /// The oldest one.
        Fifo = "fifo",
    }
}

choices! {
    /// When the write cache writes dirty pages back.
    #[derive(Default)]
    pub enum CacheFlush {
        /// One by one, when space is needed.
        #[default]
        WhenFull = "when-full",
        /// From `high_watermark` of the cache down to `low_watermark`.
        Watermark = "watermark",
        /// At once.
        Immediate = "immediate",
    }
}

/// A write-back cache of logical pages in controller memory, in front of the write buffer or of an FTL that maps
/// blocks. In front of such an FTL, which has no write buffer, a page that leaves the cache occupies
/// `write_buffer_bytes` until it is programmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheConfig {
    /// Controller memory for dirty pages, bytes; pages being programmed are in `controller.write_buffer_bytes`.
    pub bytes: u64,
    /// Which dirty page is written back first. Default: lru.
    #[serde(default)]
    pub policy: CachePolicy,
    /// When dirty pages are written back. Default: when-full.
    #[serde(default)]
    pub flush: CacheFlush,
    /// Share of dirty pages at which write-back starts, for `flush = "watermark"`. Default: 0.8.
    #[serde(default = "default_high_watermark")]
    pub high_watermark: f64,
    /// Share of dirty pages at which write-back ends, for `flush = "watermark"`. Default: 0.5.
    #[serde(default = "default_low_watermark")]
    pub low_watermark: f64,
    /// For `flush = "immediate"`: a page that is written twice within a window of this length is hot and stays until
    /// its space is needed, ns; windows follow one another. Default: every page is written back at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_window_ns: Option<u64>,
}

fn default_high_watermark() -> f64 {
    0.8
}

fn default_low_watermark() -> f64 {
    0.5
}

/// A cache of logical pages that were read from flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadCacheConfig {
    /// Controller memory for pages that were read, bytes.
    pub bytes: u64,
    /// Which page is evicted. Default: lru.
    #[serde(default)]
    pub policy: CachePolicy,
}

/// Detection of sequential streams, and reading ahead of them into the read cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadAheadConfig {
    /// Logical pages that are read ahead of a stream.
    pub pages: u32,
    /// Streams that are tracked at a time, 1 to 64. Default: 4.
    #[serde(default = "default_streams")]
    pub streams: u32,
    /// Reads, each starting where the one before ended, that make a stream, 2 to 100. Default: 2.
    #[serde(default = "default_trigger")]
    pub trigger: u32,
}

fn default_streams() -> u32 {
    4
}

fn default_trigger() -> u32 {
    2
}

/// The controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerConfig {
    /// DRAM that holds written data until it is programmed; 0 only for media written in place.
    pub write_buffer_bytes: u64,
    /// Whether the write buffer and the write cache survive a power cut; then a flush costs nothing.
    pub power_loss_protection: bool,
    /// From issuing the flash commands for one run of pages on a channel to issuing the next run's, ns.
    pub dispatch_ns: u64,
    /// Writes that the drive has taken and that are not in the write buffer yet, at most: while there are so many, it
    /// takes no command, so that reads wait behind the writes that came before them. By default any number of writes
    /// may wait for space in the buffer, and reads pass them. Hypothesis: on an SK hynix PE8110 whose buffer is full,
    /// reads take as long as writes, 4 to 5 ms (SSD-iq, PVLDB 18(11), 2025).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_writes: Option<u32>,
    /// When a write completes. Default: back.
    #[serde(default)]
    pub write_policy: WritePolicy,
    /// Cost of reads of unwritten pages. Default: zeros.
    #[serde(default)]
    pub unwritten_reads: UnwrittenReads,
    /// Time of one access to the controller's DRAM beside that of its bytes, ns. The DRAM does one access at a time.
    /// Default: 0.
    #[serde(default)]
    pub dram_ns_per_access: u64,
    /// Bytes a second from and to the controller's DRAM; 0 (the default) takes no time.
    #[serde(default)]
    pub dram_bytes_per_s: u64,
    /// Bytes of an open row of one DRAM bank; a longer access alternates between two banks, so that it takes the time
    /// of every other row. Default: 0, every access uses one bank.
    #[serde(default)]
    pub dram_row_bytes: u64,
    /// Write-back cache; by default there is only the write buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCacheConfig>,
    /// Read cache; by default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_cache: Option<ReadCacheConfig>,
    /// Read-ahead; by default none. It needs a read cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<ReadAheadConfig>,
}

impl WriteCacheConfig {
    fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        check_cache_bytes("controller.write_cache.bytes", self.bytes, config, checker)?;
        checker.share("controller.write_cache.high_watermark", self.high_watermark, 0.0, 1.0)?;
        let reason = "must be between 0 and high_watermark";
        let below = (0.0..=self.high_watermark).contains(&self.low_watermark);
        checker.require("controller.write_cache.low_watermark", self.low_watermark, below, reason)?;
        if let Some(window) = self.hot_window_ns {
            let possible = self.flush == CacheFlush::Immediate && window > 0;
            let reason = "must be positive, and requires flush = \"immediate\"";
            checker.require("controller.write_cache.hot_window_ns", window, possible, reason)?;
        }
        let has_room = matches!(config.ftl.mapping.write_path(), WritePath::Buffer | WritePath::Steps);
        let reason = "requires an FTL that maps pages or blocks: ftl.mapping = \"page\", \"block\" or \"fast\"";
        checker.require("controller.write_cache", "present", has_room, reason)?;
        let (buffer, page) = (config.controller.write_buffer_bytes, config.ftl.logical_page_bytes);
        let reason = format!(
            "must hold at least one page of {page} bytes: a page that leaves the write cache stays in it until \
             programmed"
        );
        checker.require("controller.write_buffer_bytes", buffer, buffer >= page, reason)?;
        let back = config.controller.write_policy == WritePolicy::Back;
        checker.require("controller.write_policy", "through", back, "a write cache requires write_policy = \"back\"")
    }
}

impl ReadAheadConfig {
    fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let bytes = config.controller.read_cache.as_ref().map_or(0, |cache| cache.bytes);
        let room = bytes / config.ftl.logical_page_bytes;
        let reason = "must be at least 1, and the read cache (controller.read_cache) must hold twice as many";
        let possible = self.pages >= 1 && 2 * u64::from(self.pages) <= room;
        checker.require("controller.read_ahead.pages", self.pages, possible, reason)?;
        checker.count("controller.read_ahead.streams", self.streams, 64, "must be between 1 and 64")?;
        let possible = (2..=100).contains(&self.trigger);
        checker.require("controller.read_ahead.trigger", self.trigger, possible, "must be between 2 and 100")
    }
}

fn check_cache_bytes(
    key: &'static str,
    bytes: u64,
    config: &DeviceConfig,
    checker: &Checker<'_>,
) -> Result<(), SsdError> {
    checker.multiple(key, bytes, config.ftl.logical_page_bytes)?;
    let possible = bytes <= 1 << 40;
    checker.require(key, bytes, possible, "must be at most 1 TiB")
}

impl ControllerConfig {
    pub(super) fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.time("controller.dispatch_ns", self.dispatch_ns)?;
        checker.time("controller.dram_ns_per_access", self.dram_ns_per_access)?;
        if self.dram_bytes_per_s > 0 {
            checker.rate("controller.dram_bytes_per_s", self.dram_bytes_per_s)?;
        }
        let has_buffer = config.ftl.mapping.write_path() == WritePath::Buffer;
        let waiting = self.waiting_writes.unwrap_or(1);
        let reason =
            "must be at least 1, and requires mapping = \"page\": other drives have no write buffer to wait for";
        let possible = self.waiting_writes.is_none() || (has_buffer && waiting > 0);
        checker.require("controller.waiting_writes", waiting, possible, reason)?;
        self.check_has_effect(config, checker)?;
        if let Some(cache) = &self.write_cache {
            cache.check(config, checker)?;
        }
        if let Some(cache) = &self.read_cache {
            check_cache_bytes("controller.read_cache.bytes", cache.bytes, config, checker)?;
        }
        self.read_ahead.as_ref().map_or(Ok(()), |ahead| ahead.check(config, checker))
    }

    /// Refuses what a drive of this mapping would never come to.
    fn check_has_effect(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let mapping = config.ftl.mapping;
        let by_element = mapping == Mapping::Element;
        let reason = "elements have no cache (mapping = \"element\")";
        checker.require("controller.read_cache", "present", self.read_cache.is_none() || !by_element, reason)?;
        let has_cache = self.read_cache.is_some() || self.write_cache.is_some();
        let has_dram = mapping == Mapping::Page || (has_cache && !by_element);
        let reason = "requires mapping = \"page\" or a cache (controller.read_cache, controller.write_cache): \
                      otherwise data does not pass through DRAM";
        let free = |amount: u64| amount == 0 || has_dram;
        checker.require(
            "controller.dram_ns_per_access",
            self.dram_ns_per_access,
            free(self.dram_ns_per_access),
            reason,
        )?;
        checker.require("controller.dram_bytes_per_s", self.dram_bytes_per_s, free(self.dram_bytes_per_s), reason)?;
        let row = self.dram_row_bytes;
        let reason = "requires controller.dram_bytes_per_s";
        checker.require("controller.dram_row_bytes", row, row == 0 || self.dram_bytes_per_s > 0, reason)?;
        self.check_unwritten_reads(config, checker)
    }

    fn check_unwritten_reads(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let key = "controller.unwritten_reads";
        let mapping = config.ftl.mapping;
        match self.unwritten_reads {
            UnwrittenReads::Zeros => Ok(()),
            UnwrittenReads::Flash => {
                let reason = "mapping = \"in-place\" and \"element\" have one cost for all reads: remove this key";
                checker.require(
                    key,
                    "flash",
                    matches!(mapping.write_path(), WritePath::Buffer | WritePath::Steps),
                    reason,
                )
            }
            UnwrittenReads::Allocate => {
                let whole = mapping == Mapping::Page && config.superpage_bytes() == config.ftl.logical_page_bytes;
                let reason = "requires mapping = \"page\" and superpages of one logical page (superpage_planes = 1, \
                              logical_page_bytes = flash.page_bytes)";
                checker.require(key, "allocate", whole, reason)
            }
        }
    }

    /// Whether the buffer can hold what is in superpages that are not full: all but one page of each.
    pub(super) fn check_buffer(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (superpage, page) = (config.superpage_bytes(), config.ftl.logical_page_bytes);
        let open = if superpage == page { 0 } else { config.units() * superpage };
        let transfer = if open == 0 { page } else { config.host.max_transfer_bytes };
        let streams = config.ftl.streams.host_classes();
        let needed = transfer + (1 + u64::from(streams)) * open;
        let buffer = self.write_buffer_bytes;
        let each = if streams > 1 { format!(", {streams} of each unit") } else { String::new() };
        let reason = format!("must hold the largest request and the open superpages{each}: at least {needed} bytes");
        checker.require("controller.write_buffer_bytes", buffer, buffer >= needed, reason)
    }
}
