//! The medium's side of a configuration.

use serde::{Deserialize, Serialize};

use super::check::Checker;
use crate::error::SsdError;

/// The medium and the buses to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashConfig {
    /// Channels.
    pub channels: u32,
    /// Chips on a channel.
    pub chips_per_channel: u32,
    /// Dies in a chip.
    pub dies_per_chip: u32,
    /// Planes in a die; a superpage spans all planes of its dies.
    pub planes_per_die: u32,
    /// Blocks in a plane.
    pub blocks_per_plane: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Bytes in a page.
    pub page_bytes: u64,
    /// What a read moves over the channel at least, and in multiples of what (an ECC codeword).
    pub transfer_unit_bytes: u64,
    /// What a medium that is written in place can write without reading first.
    pub write_granule_bytes: u64,
    /// Bytes a second over one channel.
    pub channel_bytes_per_s: u64,
    /// Sensing one page (all planes at once), ns.
    pub read_ns: u64,
    /// Programming one page (all planes at once); with mapping in place, writing one granule, ns.
    pub program_ns: u64,
    /// Erasing one block (all planes at once), ns.
    pub erase_ns: u64,
    /// Sensing and programming vary uniformly by ± this share of their time.
    pub array_time_jitter: f64,
}

impl FlashConfig {
    pub(super) fn check(&self, logical_page_bytes: u64, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.count("flash.channels", self.channels, 256, "a drive has 1 to 256 channels")?;
        checker.count("flash.chips_per_channel", self.chips_per_channel, 64, "a channel has 1 to 64 chips")?;
        checker.count("flash.dies_per_chip", self.dies_per_chip, 64, "a chip has 1 to 64 dies")?;
        checker.count("flash.planes_per_die", self.planes_per_die, 16, "a die has 1 to 16 planes")?;
        checker.count("flash.blocks_per_plane", self.blocks_per_plane, 1 << 24, "a plane has at least one block")?;
        checker.count("flash.pages_per_block", self.pages_per_block, 1 << 16, "a block needs at least one page")?;
        checker.rate("flash.channel_bytes_per_s", self.channel_bytes_per_s)?;
        checker.time("flash.read_ns", self.read_ns)?;
        checker.time("flash.program_ns", self.program_ns)?;
        checker.time("flash.erase_ns", self.erase_ns)?;
        checker.share("flash.array_time_jitter", self.array_time_jitter, 0.0, 0.5)?;
        let page = self.page_bytes;
        checker.require("flash.page_bytes", page, page <= 1 << 20, "a page has at most 1 MiB")?;
        for (key, unit) in [
            ("flash.transfer_unit_bytes", self.transfer_unit_bytes),
            ("flash.write_granule_bytes", self.write_granule_bytes),
        ] {
            let possible = unit.is_power_of_two() && (512..=logical_page_bytes).contains(&unit);
            let reason = format!("it is a power of two between 512 and the logical page's {logical_page_bytes}");
            checker.require(key, unit, possible, reason)?;
        }
        Ok(())
    }

    /// Raw bytes; `None` where they do not fit 64 bits.
    pub(super) fn raw_bytes(&self) -> Option<u64> {
        let counts = [
            self.channels,
            self.chips_per_channel,
            self.dies_per_chip,
            self.planes_per_die,
            self.blocks_per_plane,
            self.pages_per_block,
        ];
        counts.iter().try_fold(self.page_bytes, |n, &x| n.checked_mul(u64::from(x)))
    }
}
