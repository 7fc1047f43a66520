//! The host's side of a configuration.

use serde::{Deserialize, Serialize};

use super::check::Checker;
use crate::error::SsdError;

/// Which protocol the host speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// NVMe over PCIe: both directions at once.
    Nvme,
    /// SATA with native command queuing: one direction at a time, at most 32 commands.
    Sata,
}

/// The host interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Protocol.
    pub interface: Interface,
    /// Commands that the drive takes at once.
    pub queue_depth: u32,
    /// Payload bytes a second over the link, each direction.
    pub link_bytes_per_s: u64,
    /// From a command's arrival to its first effect inside the drive, ns.
    pub command_latency_ns: u64,
    /// Time that the firmware is busy with one command, ns; its inverse limits IOPS.
    pub command_issue_ns: u64,
    /// Smallest addressable unit.
    pub logical_block_bytes: u64,
    /// Largest request.
    pub max_transfer_bytes: u64,
}

impl HostConfig {
    pub(super) fn check(&self, logical_page_bytes: u64, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.count("host.queue_depth", self.queue_depth, 65_536, "a queue holds 1 to 65536 commands")?;
        let reason = "SATA's native command queuing holds at most 32 commands";
        let fits = self.interface != Interface::Sata || self.queue_depth <= 32;
        checker.require("host.queue_depth", self.queue_depth, fits, reason)?;
        checker.rate("host.link_bytes_per_s", self.link_bytes_per_s)?;
        checker.time("host.command_latency_ns", self.command_latency_ns)?;
        checker.time("host.command_issue_ns", self.command_issue_ns)?;
        let block = self.logical_block_bytes;
        let reason = "a logical block has 512 or 4096 bytes, and a logical page holds whole ones";
        let possible = (block == 512 || block == 4096) && logical_page_bytes.is_multiple_of(block);
        checker.require("host.logical_block_bytes", block, possible, reason)?;
        let transfer = self.max_transfer_bytes;
        checker.multiple("host.max_transfer_bytes", transfer, block)?;
        checker.require("host.max_transfer_bytes", transfer, transfer <= 1 << 26, "a request has at most 64 MiB")
    }
}
