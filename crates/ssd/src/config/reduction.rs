//! Data reduction: keys of `[reduction]`; without the table a drive stores every logical page by default.

use flashwise_block::ByteSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::choices::choices;
use super::{BoundTo, DeviceConfig, LOGICAL_PAGES_MAX, Mapping, PartialPages, UnwrittenReads, WritePolicy};
use crate::error::SsdError;

/// Data reduction. A logical page that is zeros or trimmed takes no flash space. Without compression a stored page
/// takes a logical page's space, with compression whole granules; a drive with deduplication stores equal pages once.
///
/// A logical page of zeros, and one that was trimmed, takes no space on flash. Without compression a stored page takes
/// a logical page's room, with it whole granules; a drive that deduplicates stores equal pages once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReductionConfig {
    /// Bytes that stored data may take on flash; default: `capacity_bytes`. With less, the drive is thin-provisioned:
    /// its capacity exceeds its flash, and a write that finds no space fails until data is trimmed or overwritten with
    /// data that takes less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_bytes: Option<u64>,
    /// Compression of each logical page by itself; by default there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<CompressionConfig>,
    /// Storing equal logical pages once; by default there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplication: Option<DeduplicationConfig>,
}

choices! {
    /// How a logical page is compressed.
    #[derive(Default)]
    pub enum Codec {
        /// Deflate (RFC 1951), without the frame of zlib (RFC 1950): the drive has checksums of its own. The CSD
        /// 2000's.
        #[default]
        Zlib = "zlib",
        /// The block format of LZ4.
        Lz4 = "lz4",
        /// Zstandard (RFC 8878).
        Zstd = "zstd",
    }
}

/// In-line compression, as ScaleFlux's CSD 2000 does for each 4 KiB block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompressionConfig {
    /// Compression codec.
    pub codec: Codec,
    /// Compression level: 1 to 9 for zlib, 1 to 19 for zstd; lz4 has one. Default 6, zlib's default; that of hardware
    /// is not published.
    pub level: u32,
    /// Unit to which a compressed page's length is rounded up; a power of two. Default 64.
    pub granule_bytes: u64,
    /// Input rate of the compression engine; 0 means no delay. Default 0.
    pub compress_bytes_per_s: u64,
    /// Output rate of the decompression engine; 0 means no delay. Default 0.
    pub decompress_bytes_per_s: u64,
    /// Fixed time to compress a page, ns; default 0.
    pub compress_ns: u64,
    /// Fixed time to decompress a page, ns; default 0.
    pub decompress_ns: u64,
}

impl Default for CompressionConfig {
    fn default() -> Self {
        Self {
            codec: Codec::Zlib,
            level: 6,
            granule_bytes: 64,
            compress_bytes_per_s: 0,
            decompress_bytes_per_s: 0,
            compress_ns: 0,
            decompress_ns: 0,
        }
    }
}

/// Deduplication of logical pages, as in CAFTL (Chen, Luo and Zhang, FAST 2011).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeduplicationConfig {
    /// Looks a page up before it is written; default yes.
    pub in_line: bool,
    /// Looks up, when the drive is idle, pages that were not looked up before they were written; default no.
    pub out_of_line: bool,
    /// Idle time before out-of-line deduplication starts, ns; default 10 ms.
    pub idle_ns: u64,
    /// Fingerprints in controller memory; beyond this number the least recently found one is dropped. Default 65,536.
    pub fingerprints: u32,
    /// Looks up only the first page of a multi-page write, and the others only if that one is a duplicate; default no.
    pub sampling: bool,
    /// Computes a short hash first, and the fingerprint only if that of a stored page is the same; default no.
    pub pre_hash: bool,
    /// Reads and compares the stored page before sharing it; default no, the 128-bit fingerprint is trusted.
    pub compare_on_hit: bool,
    /// Computing a fingerprint, ns; default 0.
    pub fingerprint_ns: u64,
    /// Computing a short hash, ns; default 0.
    pub pre_hash_ns: u64,
}

impl Default for DeduplicationConfig {
    fn default() -> Self {
        Self {
            in_line: true,
            out_of_line: false,
            idle_ns: 10_000_000,
            fingerprints: 1 << 16,
            sampling: false,
            pre_hash: false,
            compare_on_hit: false,
            fingerprint_ns: 0,
            pre_hash_ns: 0,
        }
    }
}

/// Most granules of a page: their number less one fits a byte.
const GRANULES_MAX: u64 = 256;

/// Bytes of the number in front of a stored page: how long it is.
pub(crate) const STORED_PAGE_HEADER: usize = size_of::<u32>();

/// Most granules of a drive: slots are numbered with 32 bits.
const SLOTS_MAX: u64 = 1 << 31;

impl DeviceConfig {
    /// The compression, if there is one.
    pub fn compression(&self) -> Option<&CompressionConfig> {
        self.reduction.as_ref()?.compression.as_ref()
    }

    /// The deduplication, if there is one.
    pub fn deduplication(&self) -> Option<&DeduplicationConfig> {
        self.reduction.as_ref()?.deduplication.as_ref()
    }

    /// Bytes of a slot, the unit of room on flash: a logical page, or with compression a granule.
    pub fn slot_bytes(&self) -> u64 {
        self.compression().map_or(self.ftl.logical_page_bytes, |compression| compression.granule_bytes)
    }

    /// Bytes that what is stored may take on flash.
    pub fn physical_bytes(&self) -> u64 {
        self.reduction.as_ref().and_then(|reduction| reduction.physical_bytes).unwrap_or(self.capacity_bytes)
    }

    /// The most bytes that a drive carries of a page's content.
    pub(crate) fn content_bytes(&self) -> u64 {
        let header = if self.reduction.is_some() { STORED_PAGE_HEADER as u64 } else { 0 };
        header + self.ftl.logical_page_bytes
    }

    /// Bytes of a superblock that may stay empty because the next page might not have fitted.
    pub fn superblock_waste_bytes(&self) -> u64 {
        if self.compression().is_some() { 4 * self.ftl.logical_page_bytes } else { 0 }
    }

    pub(super) fn check_reduction(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let Some(reduction) = &self.reduction else { return Ok(()) };
        self.check_what_reduction_needs(checker)?;
        let (physical, page) = (self.physical_bytes(), self.ftl.logical_page_bytes);
        checker.multiple("reduction.physical_bytes", physical, page)?;
        let reason = "exceeds 2^31 logical pages";
        checker.require("capacity_bytes", self.capacity_bytes, self.logical_pages() <= LOGICAL_PAGES_MAX, reason)?;
        let binds = self.units() > 1 && self.ftl.placement.binds_to() != BoundTo::Nothing;
        let reason = "a thin-provisioned drive requires placement \"round-robin\" or \"least-loaded\"";
        let is_thin = physical < self.capacity_bytes;
        checker.require("ftl.placement", "static or stripe", !is_thin || !binds, reason)?;
        if let Some(compression) = &reduction.compression {
            compression.check(self, checker)?;
        }
        match &reduction.deduplication {
            Some(deduplication) => deduplication.check(self, checker),
            None => Ok(()),
        }
    }

    fn check_what_reduction_needs(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let by_page = self.ftl.mapping == Mapping::Page;
        let reason = "data reduction requires mapping = \"page\"";
        checker.require("reduction", "present", by_page, reason)?;
        let reason = "not supported with data reduction, which keeps the whole map in controller memory";
        checker.require("ftl.mapping_cache", "present", self.ftl.mapping_cache.is_none(), reason)?;
        let reason = "not supported with data reduction";
        checker.require("controller.write_cache", "present", self.controller.write_cache.is_none(), reason)?;
        let fills = self.ftl.partial_pages == PartialPages::Fill;
        let reason = "not supported with data reduction, which needs whole pages";
        checker.require("ftl.partial_pages", "sectors", fills, reason)?;
        let zeros = self.controller.unwritten_reads == UnwrittenReads::Zeros;
        let reason = "not supported with data reduction: must be \"zeros\"";
        checker.require("controller.unwritten_reads", "flash or allocate", zeros, reason)?;
        let reason = "must be true with compression: pages that span two rows need rows programmed in order";
        checker.require("flash.programs_in_order", "false", self.flash.programs_in_order, reason)?;
        let reason = "not supported with data reduction";
        checker.require("controller.read_cache", "present", self.controller.read_cache.is_none(), reason)?;
        let protected = self.controller.power_loss_protection;
        let reason = "must be true with data reduction, whose metadata is in controller memory and must survive a \
                      power cut";
        checker.require("controller.power_loss_protection", protected, protected, reason)?;
        let back = self.controller.write_policy == WritePolicy::Back;
        let reason = "not supported with data reduction: must be \"back\"";
        checker.require("controller.write_policy", "through", back, reason)?;
        let reason = "not supported with compression: pages of unequal length pass through the controller";
        checker.require("ftl.gc.copy_back", "true", !self.ftl.gc.copy_back, reason)
    }
}

impl CompressionConfig {
    fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (granule, page) = (self.granule_bytes, config.ftl.logical_page_bytes);
        let possible = granule.is_power_of_two() && granule <= page && page / granule <= GRANULES_MAX;
        let reason = format!("must be a power of two from {} to {page}, a logical page", page / GRANULES_MAX);
        checker.require("reduction.compression.granule_bytes", granule, possible, reason)?;
        let superpage = config.superpage_bytes();
        let reason = "must have at least two logical pages with compression";
        checker.require("ftl.superpage_planes", config.superpage_planes(), superpage >= 2 * page, reason)?;
        let slots = config.raw_bytes() / granule;
        let reason = format!("the flash has more than 2^31 granules of {}", ByteSize(granule));
        checker.require("reduction.compression.granule_bytes", granule, slots <= SLOTS_MAX, reason)?;
        let most = match self.codec {
            Codec::Zlib => 9,
            Codec::Zstd => 19,
            Codec::Lz4 => u32::MAX,
        };
        let reason = format!("must be between 1 and {most}");
        checker.count("reduction.compression.level", self.level, most, &reason)?;
        for (key, rate) in [
            ("reduction.compression.compress_bytes_per_s", self.compress_bytes_per_s),
            ("reduction.compression.decompress_bytes_per_s", self.decompress_bytes_per_s),
        ] {
            if rate > 0 {
                checker.rate(key, rate)?;
            }
        }
        checker.time("reduction.compression.compress_ns", self.compress_ns)?;
        checker.time("reduction.compression.decompress_ns", self.decompress_ns)
    }
}

impl DeduplicationConfig {
    fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (block, page) = (config.host.logical_block_bytes, config.ftl.logical_page_bytes);
        let reason = format!("must be the logical page, {page}, with deduplication");
        checker.require("host.logical_block_bytes", block, block == page, reason)?;
        let reason = "requires in_line or out_of_line";
        checker.require("reduction.deduplication.in_line", "false", self.in_line || self.out_of_line, reason)?;
        let reason = "must be between 1 and 2^30";
        checker.count("reduction.deduplication.fingerprints", self.fingerprints, 1 << 30, reason)?;
        checker.time("reduction.deduplication.idle_ns", self.idle_ns)?;
        checker.time("reduction.deduplication.fingerprint_ns", self.fingerprint_ns)?;
        checker.time("reduction.deduplication.pre_hash_ns", self.pre_hash_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reducing(change: impl FnOnce(&mut DeviceConfig)) -> Result<(), String> {
        let mut config = DeviceConfig::preset("toshiba-xg5").unwrap();
        config.controller.power_loss_protection = true;
        config.capacity_bytes = 1 << 30;
        config.flash.blocks_per_plane = 64;
        config.reduction =
            Some(ReductionConfig { compression: Some(CompressionConfig::default()), ..ReductionConfig::default() });
        change(&mut config);
        config.check("mine.toml").map_err(|error| error.to_string())
    }

    fn reduction(config: &mut DeviceConfig) -> &mut ReductionConfig {
        config.reduction.as_mut().unwrap()
    }

    #[test]
    fn what_reduction_cannot_work_with_is_refused_with_its_key() {
        reducing(|_| {}).unwrap();
        let refused = |change: fn(&mut DeviceConfig)| reducing(change).unwrap_err();
        assert!(refused(|c| c.ftl.partial_pages = PartialPages::Sectors).contains("ftl.partial_pages = sectors"));
        assert!(refused(|c| c.flash.programs_in_order = false).contains("in order"));
        let granule: fn(&mut DeviceConfig) = |c| {
            reduction(c).compression = Some(CompressionConfig { granule_bytes: 48, ..CompressionConfig::default() });
        };
        assert!(refused(granule).contains("a power of two from 16 to 4096"));
        let level: fn(&mut DeviceConfig) = |c| {
            reduction(c).compression = Some(CompressionConfig { level: 10, ..CompressionConfig::default() });
        };
        assert!(refused(level).contains("between 1 and 9"));
    }

    #[test]
    fn a_drive_that_offers_more_than_it_has_must_be_able_to_put_a_page_anywhere() {
        let thin = |config: &mut DeviceConfig| {
            reduction(config).physical_bytes = Some(1 << 30);
            config.capacity_bytes = 4 << 30;
        };
        assert!(reducing(thin).unwrap_err().contains("thin-provisioned"));
        reducing(|c| (thin(c), c.ftl.placement = crate::config::Placement::RoundRobin).1).unwrap();
        let beyond = reducing(|c| {
            c.ftl.placement = crate::config::Placement::RoundRobin;
            reduction(c).physical_bytes = Some(c.raw_bytes());
        });
        assert!(beyond.unwrap_err().contains("garbage collection needs"));
        let vast = reducing(|c| {
            thin(c);
            c.ftl.placement = crate::config::Placement::RoundRobin;
            c.capacity_bytes = 1 << 62;
        });
        assert!(vast.unwrap_err().contains("exceeds 2^31 logical pages"));
    }

    #[test]
    fn maps_must_outlive_a_power_cut_and_what_is_shared_is_never_changed_in_part() {
        let unprotected = reducing(|c| c.controller.power_loss_protection = false).unwrap_err();
        assert!(unprotected.contains("controller.power_loss_protection = false"), "{unprotected}");
        let sharing = |config: &mut DeviceConfig| {
            reduction(config).deduplication = Some(DeduplicationConfig::default());
        };
        assert!(reducing(sharing).unwrap_err().contains("host.logical_block_bytes = 512"));
        reducing(|c| (sharing(c), c.host.logical_block_bytes = 4096).1).unwrap();
    }
}
