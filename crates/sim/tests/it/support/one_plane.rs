//! A small drive whose blocks are those of theory: one plane, whose blocks are its superblocks, and writes that
//! complete when they are on flash.

use std::error::Error;

use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::{GcPolicy, Placement, WritePolicy};

pub const PAGE_BYTES: u64 = 4096;
/// Erased blocks of the drive at rest.
pub const FREE_BLOCKS: u32 = 2;

/// A drive of so many logical pages.
pub fn one_plane(
    logical_pages: u64,
    (blocks, pages_per_block): (u32, u32),
    policy: GcPolicy,
) -> Result<DeviceConfig, Box<dyn Error>> {
    let mut config = DeviceConfig::preset("samsung-960-evo")?;
    config.capacity_bytes = logical_pages * PAGE_BYTES;
    (config.host.command_latency_ns, config.host.command_issue_ns) = (0, 0);
    config.controller.write_policy = WritePolicy::Through;
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip, flash.planes_per_die) = (1, 1, 1, 1);
    (flash.blocks_per_plane, flash.pages_per_block) = (blocks, pages_per_block);
    (flash.page_bytes, flash.array_time_jitter) = (PAGE_BYTES, 0.0);
    config.ftl.placement = Placement::Static;
    (config.ftl.gc.policy, config.ftl.gc.free_superblocks) = (policy, Some(FREE_BLOCKS));
    Ok(config)
}
