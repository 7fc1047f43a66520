//! What a random drive does to store less.
//!
//! Compression after ScaleFlux's CSD 2000 (4 KiB by itself, in granules), deduplication after CAFTL (Chen, Luo and
//! Zhang, FAST 2011), both as SandForce's controllers are said to have. What the engines take is in the range of what
//! is published of deflate in hardware and of hashes. A drive of that kind has its maps in memory that outlives a power
//! cut, and no other cache; drives that offer more than they have space for are not drawn.

use super::draw::Draws;
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{
    Codec, CompressionConfig, DeduplicationConfig, PartialPages, ReductionConfig, UnwrittenReads, WritePolicy,
};

/// Share of drives of flash with a map in memory that reduce what they store.
pub(super) const REDUCES: f64 = 0.10;

/// What the drive does, if anything; to be drawn before the drive is sized.
pub(super) fn give(draws: &Draws, config: &mut DeviceConfig) {
    let superpage = config.superpage_bytes();
    let page = config.ftl.logical_page_bytes;
    if !draws.chance("reduction", REDUCES) || !config.flash.programs_in_order {
        return;
    }
    let (compresses, deduplicates) =
        draws.weighted("reduction.kind", &[((true, false), 45), ((false, true), 35), ((true, true), 20)]);
    // A superpage of one page has no space for one that spans two; and what is shared is a whole logical block.
    let (compresses, deduplicates) = (compresses && superpage >= 2 * page, deduplicates && page == 4096);
    if !compresses && !deduplicates {
        return;
    }
    config.reduction = Some(ReductionConfig {
        physical_bytes: None,
        compression: compresses.then(|| compression(draws, page)),
        deduplication: deduplicates.then(|| deduplication(draws)),
    });
    let controller = &mut config.controller;
    controller.power_loss_protection = true;
    controller.write_policy = WritePolicy::Back;
    controller.unwritten_reads = UnwrittenReads::Zeros;
    (controller.write_cache, controller.read_cache, controller.read_ahead) = (None, None, None);
    config.ftl.partial_pages = PartialPages::Fill;
    config.ftl.gc.copy_back = false;
    // What is moved out of a superblock whose last page spans two rows may end in another one.
    let least = if config.ftl.gc.separate_open_block { 3 } else { 4 };
    config.ftl.gc.free_superblocks = config.ftl.gc.free_superblocks.map(|free| free.max(least));
    if deduplicates {
        config.host.logical_block_bytes = page;
    }
}

fn compression(draws: &Draws, page: u64) -> CompressionConfig {
    let codec = draws.weighted("reduction.codec", &[(Codec::Zlib, 50), (Codec::Lz4, 30), (Codec::Zstd, 20)]);
    CompressionConfig {
        codec,
        level: if codec == Codec::Lz4 { 1 } else { draws.any("reduction.level", &[1, 3, 6]) },
        granule_bytes: draws.any("reduction.granule_bytes", &[64, 128, 512]).max(page / 256),
        compress_bytes_per_s: draws.between("reduction.compress_bytes_per_s", 1_500_000_000, 8_000_000_000),
        decompress_bytes_per_s: draws.between("reduction.decompress_bytes_per_s", 3_000_000_000, 12_000_000_000),
        compress_ns: draws.between("reduction.compress_ns", 200, 2_000),
        decompress_ns: draws.between("reduction.decompress_ns", 100, 1_000),
    }
}

fn deduplication(draws: &Draws) -> DeduplicationConfig {
    let in_line = draws.chance("reduction.in_line", 0.8);
    DeduplicationConfig {
        in_line,
        out_of_line: !in_line || draws.chance("reduction.out_of_line", 0.2),
        pre_hash: draws.chance("reduction.pre_hash", 0.25),
        compare_on_hit: draws.chance("reduction.compare_on_hit", 0.2),
        fingerprint_ns: draws.between("reduction.fingerprint_ns", 500, 4_000),
        pre_hash_ns: draws.between("reduction.pre_hash_ns", 50, 300),
        ..DeduplicationConfig::default()
    }
}
