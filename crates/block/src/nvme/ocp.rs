//! SMART / Health Information Extended of the Open Compute Project, log page C0h: 512 bytes that end with a GUID.
//!
//! ```text
//!   0 bytes written to flash   16 read   32 bad user blocks   40 bad system blocks   48 XOR recoveries
//!   88 most and 92 least erase counts   104 PCIe errors   112 incomplete shutdowns   120 free blocks, %
//!   494 version   496 GUID
//! ```
//!
//! "Physical media units" are bytes, user data and the drive's own. The endurance estimate at byte 176 is not read: the
//! specification does not name its unit, and drives differ.
//!
//! Source: OCP Datacenter NVMe SSD Specification 2.0, 4.8.6.

use serde::Serialize;

use super::{ByteCounter, field, number, short, wide};

/// Bytes of the page.
const BYTES: usize = 512;
/// Where its GUID is.
const GUID_AT: usize = 496;
/// AFD514C9-7C6F-4F9C-A4F2-BFEA2810AFC5, lowest byte first.
const GUID: [u8; 16] = [0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf];
/// The version of the page that is written.
const VERSION: u16 = 3;

/// The page, as far as it is about wear; names as nvme-cli prints them, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OcpLog {
    /// Bytes written to flash, for any reason.
    #[serde(serialize_with = "wide::serialize")]
    pub physical_media_units_written: u128,
    /// Bytes read from flash, for any reason.
    #[serde(serialize_with = "wide::serialize")]
    pub physical_media_units_read: u128,
    /// Blocks for user data that were retired.
    pub bad_user_nand_blocks_raw: u64,
    /// Erase count of the most worn block for user data.
    pub max_user_data_erase_counts: u64,
    /// Erase count of the least worn one.
    pub min_user_data_erase_counts: u64,
    /// Blocks that are free, %.
    pub percent_free_blocks: u8,
}

impl OcpLog {
    /// Number of the page.
    pub const ID: u8 = 0xc0;

    /// What was written to flash.
    pub fn media_written(&self) -> ByteCounter {
        ByteCounter { units: self.physical_media_units_written, unit_bytes: 1 }
    }

    /// Reads the page; `None` where its GUID is missing.
    pub(super) fn parse(page: &[u8]) -> Option<Self> {
        if field(page, GUID_AT)? != GUID {
            return None;
        }
        Some(Self {
            physical_media_units_written: number::<16>(page, 0)?,
            physical_media_units_read: number::<16>(page, 16)?,
            bad_user_nand_blocks_raw: short::<6>(page, 32)?,
            max_user_data_erase_counts: short::<4>(page, 88)?,
            min_user_data_erase_counts: short::<4>(page, 92)?,
            percent_free_blocks: *page.get(120)?,
        })
    }

    /// The page as a drive sends it. Counts beyond the page's fields are the largest that fit.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut page = vec![0; BYTES];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        let four = |count: u64| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
        put(0, &self.physical_media_units_written.to_le_bytes());
        put(16, &self.physical_media_units_read.to_le_bytes());
        put(32, &self.bad_user_nand_blocks_raw.min((1 << 48) - 1).to_le_bytes()[..6]);
        // No block is beyond what the specification calls healthy.
        put(38, &100_u16.to_le_bytes());
        put(88, &four(self.max_user_data_erase_counts));
        put(92, &four(self.min_user_data_erase_counts));
        put(120, &[self.percent_free_blocks]);
        put(494, &VERSION.to_le_bytes());
        put(GUID_AT, &GUID);
        page
    }
}
