//! The controller of a random drive.
//!
//! A write buffer that holds the open superpages and the largest request at least, and up to eight times as much;
//! caches of 1 to 16 MiB, scaled down with the capacity. Capacitors are usual in drives for data centres and rare in
//! those for clients, which SATA stands for. One drive in sixteen writes through.

use super::draw::Draws;
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{
    CacheFlush, CachePolicy, ControllerConfig, Interface, ReadAheadConfig, ReadCacheConfig, UnwrittenReads,
    WriteCacheConfig, WritePolicy,
};

/// Share of NVMe drives of flash, and of SATA drives, whose buffer survives a power cut.
pub(super) const PROTECTED: (f64, f64) = (0.35, 0.15);
/// Share of drives of flash that write through, of those without a write cache.
pub(super) const WRITE_THROUGH: f64 = 0.08;
/// Share of drives of flash with a write cache.
pub(super) const WRITE_CACHE: f64 = 0.25;
/// Share of drives with a read cache.
pub(super) const READ_CACHE: f64 = 0.35;
/// Share of those that read ahead.
pub(super) const READ_AHEAD: f64 = 0.6;

/// The controller without its buffer, whose size follows from the rest.
pub(super) fn controller(
    draws: &Draws,
    interface: Interface,
    in_place: bool,
    logical_page_bytes: u64,
) -> ControllerConfig {
    let sata = interface == Interface::Sata;
    let protected = draws.chance("controller.power_loss_protection", if sata { PROTECTED.1 } else { PROTECTED.0 });
    let write_cache = (!in_place && draws.chance("controller.write_cache", WRITE_CACHE)).then(|| write_cache(draws));
    let through = write_cache.is_none() && !in_place && draws.chance("controller.write_policy", WRITE_THROUGH);
    let has_dram_time = draws.chance("controller.dram", 0.25);
    let read_cache = draws.chance("controller.read_cache", READ_CACHE).then(|| read_cache(draws));
    // What is written in place goes past the DRAM; only what is kept of reads comes from there.
    let has_dram_time = has_dram_time && (!in_place || read_cache.is_some());
    ControllerConfig {
        write_buffer_bytes: 0,
        power_loss_protection: in_place || protected,
        dispatch_ns: if sata {
            draws.between("controller.sata.dispatch_ns", 1_000, 4_000)
        } else {
            draws.between("controller.dispatch_ns", 200, 1_200)
        },
        write_policy: if through { WritePolicy::Through } else { WritePolicy::Back },
        unwritten_reads: if in_place { UnwrittenReads::Zeros } else { unwritten_reads(draws) },
        dram_ns_per_access: if has_dram_time { draws.between("controller.dram_ns_per_access", 20, 60) } else { 0 },
        dram_bytes_per_s: if has_dram_time {
            draws.between("controller.dram_bytes_per_s", 3_000_000_000, 12_000_000_000)
        } else {
            0
        },
        waiting_writes: None,
        dram_row_bytes: 0,
        write_cache,
        read_ahead: read_cache.as_ref().and_then(|cache| read_ahead(draws, cache, logical_page_bytes)),
        read_cache,
    }
}

fn unwritten_reads(draws: &Draws) -> UnwrittenReads {
    draws.weighted("controller.unwritten_reads", &[(UnwrittenReads::Zeros, 85), (UnwrittenReads::Flash, 15)])
}

fn cache_policy(draws: &Draws, key: &str) -> CachePolicy {
    draws.weighted(key, &[(CachePolicy::Lru, 75), (CachePolicy::Fifo, 25)])
}

fn cache_bytes(draws: &Draws, key: &str) -> u64 {
    draws.any(key, &[1 << 20, 2 << 20, 3 << 20, 4 << 20, 6 << 20, 8 << 20, 12 << 20, 16 << 20])
}

fn write_cache(draws: &Draws) -> WriteCacheConfig {
    let flush = draws.any("write_cache.flush", &[CacheFlush::WhenFull, CacheFlush::Watermark, CacheFlush::Immediate]);
    let hot = flush == CacheFlush::Immediate && draws.chance("write_cache.hot", 0.3);
    let high_watermark = draws.share("write_cache.high_watermark", 0.6, 0.95);
    WriteCacheConfig {
        bytes: cache_bytes(draws, "write_cache.bytes"),
        policy: cache_policy(draws, "write_cache.policy"),
        flush,
        high_watermark,
        low_watermark: draws.share("write_cache.low_watermark", 0.1, 0.55),
        hot_window_ns: hot.then_some(1_000_000),
    }
}

fn read_cache(draws: &Draws) -> ReadCacheConfig {
    ReadCacheConfig { bytes: cache_bytes(draws, "read_cache.bytes"), policy: cache_policy(draws, "read_cache.policy") }
}

/// Reads ahead 32 to 512 KiB, where the cache has twice the space.
fn read_ahead(draws: &Draws, cache: &ReadCacheConfig, logical_page_bytes: u64) -> Option<ReadAheadConfig> {
    let bytes = draws.any("read_ahead.bytes", &[32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10]);
    let pages = bytes.min(cache.bytes / 2) / logical_page_bytes;
    draws.chance("controller.read_ahead", READ_AHEAD).then(|| ReadAheadConfig {
        pages: pages.max(1) as u32,
        streams: draws.any("read_ahead.streams", &[1, 4, 8]),
        trigger: draws.any("read_ahead.trigger", &[2, 3, 4]),
    })
}

/// The buffer: what it needs, and up to eight times as much.
pub(super) fn write_buffer_bytes(draws: &Draws, config: &DeviceConfig) -> u64 {
    let open = config.units() * config.superpage_bytes();
    let streams = u64::from(config.ftl.streams.host_classes());
    let needed = config.host.max_transfer_bytes + (1 + streams) * open;
    let wanted = needed * draws.weighted("controller.write_buffer_bytes", &[(1, 25), (2, 35), (4, 25), (8, 15)]);
    wanted.next_multiple_of(64 << 10)
}
