//! Firmware and link: how long a command and its data take on their way in and out.

use crate::config::{HostConfig, Interface, link_bytes_per_s};

/// What the last piece of a read needs on the link after it has left the flash.
const CUT_THROUGH_BYTES: u64 = 4096;

/// Firmware and link, each busy until a known time.
pub(crate) struct HostInterface {
    command_latency_ns: u64,
    command_issue_ns: u64,
    command_fetch_ns: u64,
    data_request_ns: u64,
    completion_ns: u64,
    bytes_per_s: u64,
    half_duplex: bool,
    /// The number of bytes that was asked for last, and its time: most requests are alike, and a division is slow.
    last_link_ns: (u64, u64),
    firmware_free_ns: u64,
    to_drive_free_ns: u64,
    to_host_free_ns: u64,
}

impl HostInterface {
    pub(crate) fn new(config: &HostConfig) -> Self {
        Self {
            command_latency_ns: config.command_latency_ns,
            command_issue_ns: config.command_issue_ns,
            command_fetch_ns: config.command_fetch_ns,
            data_request_ns: config.data_request_ns,
            completion_ns: config.completion_ns,
            bytes_per_s: link_bytes_per_s(config),
            half_duplex: config.interface == Interface::Sata,
            last_link_ns: (0, 0),
            firmware_free_ns: 0,
            to_drive_free_ns: 0,
            to_host_free_ns: 0,
        }
    }

    /// The time that bytes take on the link.
    #[inline]
    pub(crate) fn link_ns(&mut self, bytes: u64) -> u64 {
        if self.last_link_ns.0 != bytes {
            self.last_link_ns = (bytes, bytes * 1_000_000_000 / self.bytes_per_s);
        }
        self.last_link_ns.1
    }

    /// Holds the link to the drive, and in half duplex the other direction too.
    fn hold_to_drive(&mut self, from_ns: u64, time_ns: u64) -> u64 {
        let end_ns = from_ns.max(self.to_drive_free_ns) + time_ns;
        self.to_drive_free_ns = end_ns;
        if self.half_duplex {
            self.to_host_free_ns = self.to_host_free_ns.max(end_ns);
        }
        end_ns
    }

    /// Holds the link to the host, and in half duplex the other direction too.
    fn hold_to_host(&mut self, from_ns: u64, time_ns: u64) -> u64 {
        let end_ns = from_ns.max(self.to_host_free_ns) + time_ns;
        self.to_host_free_ns = end_ns;
        if self.half_duplex {
            self.to_drive_free_ns = self.to_drive_free_ns.max(end_ns);
        }
        end_ns
    }

    /// Takes a command; gives the time of its first effect.
    pub(crate) fn take_command(&mut self, now_ns: u64) -> u64 {
        let fetched_ns =
            if self.command_fetch_ns == 0 { now_ns } else { self.hold_to_drive(now_ns, self.command_fetch_ns) };
        let start_ns = fetched_ns.max(self.firmware_free_ns);
        self.firmware_free_ns = start_ns + self.command_issue_ns;
        start_ns + self.command_latency_ns
    }

    /// Moves a write's data to the drive; gives the time when all is there.
    pub(crate) fn receive(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        let link_ns = self.link_ns(bytes);
        self.hold_to_drive(ready_ns + self.data_request_ns, link_ns)
    }

    /// Posts a completion that is ready at `ready_ns`; gives the time when the host has it.
    pub(crate) fn post_completion(&mut self, ready_ns: u64) -> u64 {
        if self.completion_ns == 0 { ready_ns } else { self.hold_to_host(ready_ns, self.completion_ns) }
    }

    /// Moves read data to the host that came in over `transfer_ns` until now; gives the time when the last byte is
    /// there.
    #[inline(always)]
    pub(crate) fn send(&mut self, now_ns: u64, transfer_ns: u64, bytes: u64) -> u64 {
        let first_byte_ns = now_ns.saturating_sub(transfer_ns);
        let link_ns = self.link_ns(bytes);
        let sent_ns = self.hold_to_host(first_byte_ns, link_ns);
        sent_ns.max(now_ns + self.link_ns(bytes.min(CUT_THROUGH_BYTES)))
    }
}

crate::state::state! {
    HostInterface {
        saved { firmware_free_ns, to_drive_free_ns, to_host_free_ns }
        built {
            command_latency_ns, command_issue_ns, command_fetch_ns, data_request_ns, completion_ns, bytes_per_s,
            half_duplex, last_link_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(interface: Interface) -> HostInterface {
        HostInterface::new(&config(interface))
    }

    fn config(interface: Interface) -> HostConfig {
        HostConfig {
            interface,
            link_bytes_per_s: Some(1_000_000_000),
            command_latency_ns: 5_000,
            command_issue_ns: 1_000,
            ..crate::DeviceConfig::preset("samsung-960-evo").unwrap().host
        }
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
    fn messages_hold_the_link_in_their_direction() {
        let messages =
            HostConfig { command_fetch_ns: 40, data_request_ns: 8, completion_ns: 11, ..config(Interface::Nvme) };
        let mut host = HostInterface::new(&messages);
        assert_eq!([0, 0].map(|now| host.take_command(now)), [5_040, 6_040], "fetched one after the other");
        assert_eq!(host.receive(5_040, 1_000), 6_048, "the data is asked for first");
        assert_eq!(host.send(10_000, 0, 500), 10_500);
        assert_eq!([10_500, 10_500].map(|now| host.post_completion(now)), [10_511, 10_522]);
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
