//! The host's side of a random drive.
//!
//! SATA: native command queuing to depth 32, half duplex, the three line rates of the standard, slow firmware (the
//! Micron preset takes 62,000 commands a second). NVMe: PCI Express generations 3 to 5 with two or four lanes, queue
//! depths as drives report them (MQES), firmware that takes 300,000 to 3 million commands a second.

use super::draw::Draws;
use flashwise_ssd::config::{Arbitration, ArbitrationWeights, DataTransfer, HostConfig, Interface};

/// Share of SATA among drives of flash.
pub(super) const SATA: f64 = 0.25;
/// Share of drives with logical blocks of 4096 bytes; the others have 512.
pub(super) const LARGE_BLOCKS: f64 = 0.25;

pub(super) fn host(draws: &Draws, in_place: bool) -> HostConfig {
    let sata = !in_place && draws.chance("host.interface", SATA);
    let transfer = draws.weighted(
        "host.data_transfer",
        &[(DataTransfer::CutThrough, 70), (DataTransfer::StoreAndForward, 20), (DataTransfer::WholeRequest, 10)],
    );
    let host = HostConfig {
        interface: Interface::Nvme,
        queue_depth: draws
            .weighted("host.queue_depth", &[(32, 5), (64, 10), (128, 20), (256, 25), (512, 10), (1024, 30)]),
        submission_queues: draws.any("host.submission_queues", &[1, 4, 8, 32]),
        commands_per_queue: None,
        arbitration: Arbitration::RoundRobin,
        arbitration_burst: 1,
        arbitration_weights: ArbitrationWeights::default(),
        queue_priorities: Vec::new(),
        link_bytes_per_s: None,
        pcie_generation: Some(draws.weighted("host.pcie_generation", &[(3, 50), (4, 40), (5, 10)])),
        pcie_lanes: Some(draws.weighted("host.pcie_lanes", &[(2, 20), (4, 80)])),
        pcie_max_payload_bytes: 256,
        sata_gigabits_per_s: None,
        data_transfer: transfer,
        command_fetch_ns: 0,
        data_request_ns: 0,
        completion_ns: 0,
        command_latency_ns: draws.between("host.command_latency_ns", 3_000, 15_000),
        command_issue_ns: draws.between("host.command_issue_ns", 330, 3_300),
        logical_block_bytes: if draws.chance("host.logical_block_bytes", LARGE_BLOCKS) { 4096 } else { 512 },
        max_transfer_bytes: draws.any("host.max_transfer_bytes", &[256 << 10, 512 << 10, 1 << 20, 2 << 20]),
        atomic_write_bytes: None,
    };
    if sata { as_sata(draws, host) } else { host }
}

fn as_sata(draws: &Draws, nvme: HostConfig) -> HostConfig {
    HostConfig {
        interface: Interface::Sata,
        queue_depth: 32,
        submission_queues: 1,
        pcie_generation: None,
        pcie_lanes: None,
        sata_gigabits_per_s: Some(draws.weighted("host.sata", &[(1.5, 10), (3.0, 25), (6.0, 65)])),
        command_latency_ns: draws.between("host.sata.command_latency_ns", 15_000, 40_000),
        command_issue_ns: draws.between("host.sata.command_issue_ns", 8_000, 25_000),
        ..nvme
    }
}
