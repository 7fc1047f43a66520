//! The host's side of a configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::choices::choices;
use crate::error::SsdError;

choices! {
    /// Which protocol the host speaks.
    pub enum Interface {
        /// NVMe over PCIe: both directions at once.
        Nvme = "nvme",
        /// SATA with native command queuing: one direction at a time, at most 32 commands.
        Sata = "sata",
    }
}

choices! {
    /// From which submission queue the next command is taken. Source: NVM Express base specification 1.4, section 4.13.
    #[derive(Default)]
    pub enum Arbitration {
        /// All queues in turn, `arbitration_burst` commands at a time.
        #[default]
        RoundRobin = "round-robin",
        /// Urgent queues first; the others share by the weights of their classes.
        WeightedRoundRobin = "weighted-round-robin",
    }
}

choices! {
    /// The priority class of a submission queue under weighted round robin.
    #[derive(Default)]
    pub enum QueuePriority {
        /// Strictly before all others.
        Urgent = "urgent",
        /// Weight `arbitration_weights.high`.
        High = "high",
        /// Weight `arbitration_weights.medium`.
        #[default]
        Medium = "medium",
        /// Weight `arbitration_weights.low`.
        Low = "low",
    }
}

/// Commands that each class may have executed in one round of arbitration, 1 to 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArbitrationWeights {
    /// Of the high class.
    pub high: u32,
    /// Of the medium class.
    pub medium: u32,
    /// Of the low class.
    pub low: u32,
}

impl Default for ArbitrationWeights {
    /// What the standard's fields, which count from zero, mean after a reset.
    fn default() -> Self {
        Self { high: 1, medium: 1, low: 1 }
    }
}

choices! {
    /// When the data of a read goes over the link.
    #[derive(Default)]
    pub enum DataTransfer {
        /// While it is still coming in from the flash.
        #[default]
        CutThrough = "cut-through",
        /// Each flash command's data after it has left the flash.
        StoreAndForward = "store-and-forward",
        /// The whole request at once, after all of it has left the flash.
        WholeRequest = "whole-request",
    }
}

/// The host interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Protocol.
    pub interface: Interface,
    /// Commands that the drive accepts at a time, over all queues.
    pub queue_depth: u32,
    /// Submission queues of the host; SATA has one.
    #[serde(default = "one")]
    pub submission_queues: u32,
    /// Commands of one queue that the drive accepts at a time; by default `queue_depth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands_per_queue: Option<u32>,
    /// Which queue the next command is taken from.
    #[serde(default)]
    pub arbitration: Arbitration,
    /// Commands taken from a queue before the next queue, 0 for no limit. Default: 1.
    #[serde(default = "one")]
    pub arbitration_burst: u32,
    /// What each class may take in a round of weighted round robin.
    #[serde(default)]
    pub arbitration_weights: ArbitrationWeights,
    /// Class of each queue under weighted round robin; queues that are not listed are medium. Without a list, the flows
    /// of a workload decide by their `priority`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue_priorities: Vec<QueuePriority>,
    /// Payload bytes a second over the link, each direction; one of the three ways to give the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_s: Option<u64>,
    /// Generation of PCI Express, 1 to 6, with `pcie_lanes`; another way to give the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_generation: Option<u32>,
    /// Lanes of PCI Express.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_lanes: Option<u32>,
    /// Payload of one PCIe packet, 128 to 4096 bytes. Default: 256, the most common value.
    #[serde(default = "default_pcie_max_payload_bytes")]
    pub pcie_max_payload_bytes: u64,
    /// Line rate of SATA, 1.5, 3 or 6 Gb/s; the third way to give the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sata_gigabits_per_s: Option<f64>,
    /// When the data of a read goes over the link.
    #[serde(default)]
    pub data_transfer: DataTransfer,
    /// Time that fetching a command (doorbell, submission entry) holds the link to the drive, ns. Default: 0.
    #[serde(default)]
    pub command_fetch_ns: u64,
    /// From a write command's first effect to its data starting over the link (the drive's request for it), ns.
    /// Default: 0.
    #[serde(default)]
    pub data_request_ns: u64,
    /// Time that posting a completion holds the link to the host, ns. Default: 0.
    #[serde(default)]
    pub completion_ns: u64,
    /// From a command's arrival to its first effect inside the drive, ns.
    pub command_latency_ns: u64,
    /// Time that the firmware is busy with one command, ns; its inverse limits IOPS.
    pub command_issue_ns: u64,
    /// Smallest addressable unit.
    pub logical_block_bytes: u64,
    /// Largest request.
    pub max_transfer_bytes: u64,
    /// Longest aligned write that the drive promises to do whole, also when its power fails (AWUPF of NVMe), a power of
    /// two. By default it promises nothing beyond a logical block. Whether it keeps the promise follows from the rest
    /// of the drive, such as `controller.power_loss_protection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write_bytes: Option<u64>,
}

fn one() -> u32 {
    1
}

fn default_pcie_max_payload_bytes() -> u64 {
    256
}

/// Line rates of SATA that there are, Gb/s.
const SATA_RATES: [f64; 3] = [1.5, 3.0, 6.0];

impl HostConfig {
    pub(super) fn check(&self, logical_page_bytes: u64, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.count("host.queue_depth", self.queue_depth, 65_536, "must be between 1 and 65536")?;
        let reason = "must be at most 32 with SATA (native command queuing)";
        let fits = self.interface != Interface::Sata || self.queue_depth <= 32;
        checker.require("host.queue_depth", self.queue_depth, fits, reason)?;
        self.check_queues(checker)?;
        self.check_link(checker)?;
        checker.time("host.command_fetch_ns", self.command_fetch_ns)?;
        checker.time("host.data_request_ns", self.data_request_ns)?;
        checker.time("host.completion_ns", self.completion_ns)?;
        checker.time("host.command_latency_ns", self.command_latency_ns)?;
        checker.time("host.command_issue_ns", self.command_issue_ns)?;
        let block = self.logical_block_bytes;
        let reason = "must be 512 or 4096, and divide the logical page";
        let possible = (block == 512 || block == 4096) && logical_page_bytes.is_multiple_of(block);
        checker.require("host.logical_block_bytes", block, possible, reason)?;
        let transfer = self.max_transfer_bytes;
        checker.multiple("host.max_transfer_bytes", transfer, block)?;
        checker.require("host.max_transfer_bytes", transfer, transfer <= 1 << 26, "must be at most 64 MiB")?;
        self.check_atomic_write(checker)
    }

    fn check_atomic_write(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        const KEY: &str = "host.atomic_write_bytes";
        let Some(unit) = self.atomic_write_bytes else { return Ok(()) };
        let reason = "requires interface = \"nvme\": SATA has no such promise";
        checker.require(KEY, unit, self.interface == Interface::Nvme, reason)?;
        let (block, transfer) = (self.logical_block_bytes, self.max_transfer_bytes);
        let possible = unit.is_power_of_two() && (block..=transfer).contains(&unit);
        let reason =
            format!("must be a power of two from the logical block, {block}, to the largest request, {transfer}");
        checker.require(KEY, unit, possible, reason)
    }

    fn check_queues(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let queues = self.submission_queues;
        checker.count("host.submission_queues", queues, 65_535, "must be between 1 and 65535")?;
        let reason = "must be 1 with SATA";
        checker.require("host.submission_queues", queues, self.interface != Interface::Sata || queues == 1, reason)?;
        let each = self.commands_per_queue.unwrap_or(self.queue_depth);
        checker.count("host.commands_per_queue", each, self.queue_depth, "must be 1 to queue_depth")?;
        let burst = self.arbitration_burst;
        let possible = burst == 0 || (burst.is_power_of_two() && burst <= 64);
        let reason = "must be a power of two up to 64, or 0 for no limit";
        checker.require("host.arbitration_burst", burst, possible, reason)?;
        let weights = self.arbitration_weights;
        for (key, weight) in [
            ("host.arbitration_weights.high", weights.high),
            ("host.arbitration_weights.medium", weights.medium),
            ("host.arbitration_weights.low", weights.low),
        ] {
            checker.count(key, weight, 256, "must be between 1 and 256")?;
        }
        let listed = self.queue_priorities.len();
        let reason = format!("must list at most the {queues} submission queues");
        checker.require("host.queue_priorities", listed, listed <= queues as usize, reason)
    }

    fn check_link(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let pcie = self.pcie_generation.is_some() || self.pcie_lanes.is_some();
        let given = [self.link_bytes_per_s.is_some(), pcie, self.sata_gigabits_per_s.is_some()];
        let ways = given.iter().filter(|&&given| given).count();
        let reason = "give the link in exactly one way: link_bytes_per_s, pcie_generation with pcie_lanes, or \
                      sata_gigabits_per_s";
        checker.require("host.link_bytes_per_s", format!("{ways} ways"), ways == 1, reason)?;
        if pcie {
            self.check_pcie(checker)?;
        }
        if let Some(rate) = self.sata_gigabits_per_s {
            let reason = "must be 1.5, 3 or 6, and requires interface = \"sata\"";
            let possible = SATA_RATES.contains(&rate) && self.interface == Interface::Sata;
            checker.require("host.sata_gigabits_per_s", rate, possible, reason)?;
        }
        checker.rate("host.link_bytes_per_s", super::link_bytes_per_s(self))
    }

    fn check_pcie(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let generation = self.pcie_generation.unwrap_or(0);
        checker.count("host.pcie_generation", generation, 6, "must be between 1 and 6")?;
        let nvme = self.interface == Interface::Nvme;
        checker.require("host.pcie_generation", generation, nvme, "requires interface = \"nvme\"")?;
        let lanes = self.pcie_lanes.unwrap_or(0);
        let possible = lanes.is_power_of_two() && lanes <= 16;
        checker.require("host.pcie_lanes", lanes, possible, "must be 1, 2, 4, 8 or 16")?;
        let payload = self.pcie_max_payload_bytes;
        let possible = payload.is_power_of_two() && (128..=4096).contains(&payload);
        let reason = "must be a power of two between 128 and 4096";
        checker.require("host.pcie_max_payload_bytes", payload, possible, reason)
    }
}
