//! What a link carries of payload.
//!
//! PCI Express: the line rate of a lane, less the line code, times lanes, less what each packet (TLP) carries beside
//! its payload. Read and written data both cross as memory writes or completions of `pcie_max_payload_bytes`:
//!
//! ```text
//!   generation   GT/s a lane   line code               beside the payload of a packet
//!   1, 2         2.5, 5        8b/10b                  start 1 + sequence 2 + header 16 + LCRC 4 + end 1   = 24
//!   3, 4, 5      8, 16, 32     128b/130b               STP token 4 + header 16 + LCRC 4                    = 24
//!   6            64            236 of 256 in a flit    header 16
//! ```
//!
//! Acknowledgements and flow control (DLLPs) are not counted. 3.0 x4 with 256 bytes: 8 GT/s · 4 · 128/130 ÷ 8 · 256/280
//! = 3,601 MB/s. Source: PCI Express base specification 6.0, sections 2.2 (headers), 3.6 and 4.2 (framing, line codes,
//! flits).
//!
//! SATA: the line rate less 8b/10b, and 16 bytes (SOF, FIS header, CRC, EOF) beside the 8192 bytes of a data FIS;
//! handshake primitives are not counted. 6 Gb/s: 600 MB/s · 8192/8208 = 598.8 MB/s. Source: Serial ATA 3.5, sections 9
//! (link layer) and 10.5.12 (data FIS).

use super::HostConfig;

const SATA_FIS_BYTES: u128 = 8192;
const SATA_FIS_OVERHEAD_BYTES: u128 = 16;

/// Payload bytes a second over the link, each direction; 0 where none of the ways is given.
pub(crate) fn link_bytes_per_s(config: &HostConfig) -> u64 {
    if let Some(rate) = config.link_bytes_per_s {
        return rate;
    }
    if let Some(gigabits) = config.sata_gigabits_per_s {
        let line = u128::from((gigabits.clamp(0.0, 1e3) * 1e9) as u64) / 10;
        return (line * SATA_FIS_BYTES / (SATA_FIS_BYTES + SATA_FIS_OVERHEAD_BYTES)) as u64;
    }
    let (Some(generation), Some(lanes)) = (config.pcie_generation, config.pcie_lanes) else { return 0 };
    pcie_bytes_per_s(generation, lanes, config.pcie_max_payload_bytes)
}

fn pcie_bytes_per_s(generation: u32, lanes: u32, payload: u64) -> u64 {
    let bits = [2_500_000_000_u128, 5_000_000_000, 8_000_000_000, 16_000_000_000, 32_000_000_000, 64_000_000_000];
    let Some(&bits) = bits.get(generation.saturating_sub(1) as usize) else { return 0 };
    let ((coded, line), overhead) = match generation {
        1 | 2 => ((8, 10), 24),
        3..=5 => ((128, 130), 24),
        _ => ((236, 256), 16),
    };
    let payload = u128::from(payload);
    (bits * u128::from(lanes) * coded * payload / (line * 8 * (payload + overhead))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcie_carries_its_line_rate_less_line_code_and_packet_overhead() {
        assert_eq!(pcie_bytes_per_s(1, 1, 256), 228_571_428); // 250 MB/s · 256/280
        assert_eq!(pcie_bytes_per_s(2, 4, 128), 1_684_210_526); // 2 GB/s · 128/152
        assert_eq!(pcie_bytes_per_s(3, 4, 256), 3_600_879_120); // 3.938 GB/s · 256/280
        assert_eq!(pcie_bytes_per_s(4, 4, 256), 7_201_758_241);
        assert_eq!(pcie_bytes_per_s(5, 4, 256), 14_403_516_483);
        assert_eq!(pcie_bytes_per_s(6, 4, 256), 27_764_705_882); // 32 GB/s · 236/256 · 256/272
    }

    #[test]
    fn sata_carries_its_line_rate_less_line_code_and_frames() {
        let mut config = crate::DeviceConfig::preset("micron-m500").unwrap().host;
        (config.link_bytes_per_s, config.sata_gigabits_per_s) = (None, Some(6.0));
        assert_eq!(link_bytes_per_s(&config), 598_830_409);
        config.sata_gigabits_per_s = Some(1.5);
        assert_eq!(link_bytes_per_s(&config), 149_707_602);
    }
}
