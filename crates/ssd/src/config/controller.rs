//! The controller's side of a configuration.

use serde::{Deserialize, Serialize};

use super::DeviceConfig;
use super::check::Checker;
use crate::error::SsdError;

/// The controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerConfig {
    /// DRAM that holds written data until the flash has it; 0 only for media that are written in place.
    pub write_buffer_bytes: u64,
    /// Whether the write buffer survives a power cut; then a flush costs nothing.
    pub power_loss_protection: bool,
    /// From issuing the flash commands for one run of pages on a channel to issuing the next run's, ns.
    pub dispatch_ns: u64,
}

impl ControllerConfig {
    pub(super) fn check(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.time("controller.dispatch_ns", self.dispatch_ns)
    }

    /// Whether the buffer can hold what stands in superpages that are not full: all but one page of each.
    pub(super) fn check_buffer(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (superpage, page) = (config.superpage_bytes(), config.ftl.logical_page_bytes);
        let open = if superpage == page { 0 } else { config.units() * superpage };
        let transfer = if open == 0 { page } else { config.host.max_transfer_bytes };
        let needed = transfer + 2 * open;
        let buffer = self.write_buffer_bytes;
        let reason = format!("it must hold the largest request and the open superpages: at least {needed} bytes");
        checker.require("controller.write_buffer_bytes", buffer, buffer >= needed, reason)
    }
}
