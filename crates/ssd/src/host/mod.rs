//! The host's side: the queue of commands, the firmware that takes them in, and the link.
//!
//! The firmware takes one command at a time (`command_issue_ns`, which limits IOPS), and a command has its first
//! effect `command_latency_ns` after it was taken. The link is a server for each direction (NVMe) or for both together
//! (SATA). Reads are cut through: data leaves over the link while it is still coming in from the flash.

use crate::config::{HostConfig, Interface};

/// What the last piece of a read needs on the link after it has left the flash.
const CUT_THROUGH_BYTES: u64 = 4096;

/// Firmware and link, each busy until a known time.
pub(crate) struct HostInterface {
    command_latency_ns: u64,
    command_issue_ns: u64,
    bytes_per_s: u64,
    half_duplex: bool,
    firmware_free_ns: u64,
    to_drive_free_ns: u64,
    to_host_free_ns: u64,
}

impl HostInterface {
    pub(crate) fn new(config: &HostConfig) -> Self {
        Self {
            command_latency_ns: config.command_latency_ns,
            command_issue_ns: config.command_issue_ns,
            bytes_per_s: config.link_bytes_per_s,
            half_duplex: config.interface == Interface::Sata,
            firmware_free_ns: 0,
            to_drive_free_ns: 0,
            to_host_free_ns: 0,
        }
    }

    fn link_ns(&self, bytes: u64) -> u64 {
        bytes * 1_000_000_000 / self.bytes_per_s
    }

    /// Takes a command; gives the time of its first effect.
    pub(crate) fn take_command(&mut self, now_ns: u64) -> u64 {
        let start_ns = now_ns.max(self.firmware_free_ns);
        self.firmware_free_ns = start_ns + self.command_issue_ns;
        start_ns + self.command_latency_ns
    }

    /// Moves a write's data to the drive; gives the time when all is there.
    pub(crate) fn receive(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        let end_ns = ready_ns.max(self.to_drive_free_ns) + self.link_ns(bytes);
        self.to_drive_free_ns = end_ns;
        if self.half_duplex {
            self.to_host_free_ns = self.to_host_free_ns.max(end_ns);
        }
        end_ns
    }

    /// Moves read data to the host that came in over `transfer_ns` until now; gives the time when the last byte is
    /// there.
    pub(crate) fn send(&mut self, now_ns: u64, transfer_ns: u64, bytes: u64) -> u64 {
        let first_byte_ns = now_ns.saturating_sub(transfer_ns);
        let sent_ns = first_byte_ns.max(self.to_host_free_ns) + self.link_ns(bytes);
        self.to_host_free_ns = sent_ns;
        if self.half_duplex {
            self.to_drive_free_ns = self.to_drive_free_ns.max(sent_ns);
        }
        sent_ns.max(now_ns + self.link_ns(bytes.min(CUT_THROUGH_BYTES)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(interface: Interface) -> HostInterface {
        HostInterface::new(&HostConfig {
            interface,
            queue_depth: 32,
            link_bytes_per_s: 1_000_000_000,
            command_latency_ns: 5_000,
            command_issue_ns: 1_000,
            logical_block_bytes: 512,
            max_transfer_bytes: 1 << 20,
        })
    }

    #[test]
    fn commands_are_taken_one_after_the_other() {
        let mut host = interface(Interface::Nvme);
        assert_eq!([0, 0, 0, 10_000].map(|now| host.take_command(now)), [5_000, 6_000, 7_000, 15_000]);
    }

    #[test]
    fn a_read_leaves_while_it_arrives_and_pays_only_for_its_last_piece() {
        let mut host = interface(Interface::Nvme);
        assert_eq!(host.send(100_000, 80_000, 32_768), 100_000 + 4_096);
    }

    #[test]
    fn sata_moves_data_one_way_at_a_time_and_nvme_both() {
        let mut sata = interface(Interface::Sata);
        let mut nvme = interface(Interface::Nvme);
        sata.send(50_000, 0, 50_000);
        nvme.send(50_000, 0, 50_000);
        assert_eq!(sata.receive(50_000, 1_000), 101_000);
        assert_eq!(nvme.receive(50_000, 1_000), 51_000);
    }
}
