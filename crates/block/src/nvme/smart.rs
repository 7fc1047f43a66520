//! SMART / Health Information, log page 02h: 512 bytes.
//!
//! ```text
//!   0 critical warning   1 temperature, K   3 spare, %   4 its threshold   5 used, %
//!   32 data units read   48 written   64 read commands   80 write commands   96 busy time, minutes
//!   112 power cycles   128 power-on hours   144 unsafe shutdowns   160 media errors   176 entries of the error log
//! ```
//!
//! Source: NVM Express Base Specification 2.0, 5.16.1.3, figure 207.

use serde::Serialize;

use super::{ByteCounter, number, short, wide};

/// Bytes of a data unit: a thousand blocks of 512 bytes. Counts are rounded up.
pub const DATA_UNIT_BYTES: u64 = 512_000;
/// Bytes of the page.
pub(super) const BYTES: usize = 512;
/// From here to the end the page is reserved, and zero.
const RESERVED_FROM: usize = 232;

/// The page; names as nvme-cli prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SmartLog {
    /// Bits of conditions that need attention.
    pub critical_warning: u8,
    /// Temperature, K.
    pub temperature: u16,
    /// Spare blocks that are left, % of those of a new drive.
    pub avail_spare: u8,
    /// Share below which a warning comes, %.
    pub spare_thresh: u8,
    /// Life used, % of what is rated; may exceed 100, and stops at 255.
    pub percent_used: u8,
    /// Read by the host, in units of [`DATA_UNIT_BYTES`].
    #[serde(serialize_with = "wide::serialize")]
    pub data_units_read: u128,
    /// Written by the host, in units of [`DATA_UNIT_BYTES`].
    #[serde(serialize_with = "wide::serialize")]
    pub data_units_written: u128,
    /// Read commands.
    #[serde(serialize_with = "wide::serialize")]
    pub host_read_commands: u128,
    /// Write commands.
    #[serde(serialize_with = "wide::serialize")]
    pub host_write_commands: u128,
    /// Minutes in which commands were in flight.
    #[serde(serialize_with = "wide::serialize")]
    pub controller_busy_time: u128,
    /// Times that the power came on.
    #[serde(serialize_with = "wide::serialize")]
    pub power_cycles: u128,
    /// Hours that the power was on.
    #[serde(serialize_with = "wide::serialize")]
    pub power_on_hours: u128,
    /// Times that the power went without notice.
    #[serde(serialize_with = "wide::serialize")]
    pub unsafe_shutdowns: u128,
    /// Errors that the drive could not correct.
    #[serde(serialize_with = "wide::serialize")]
    pub media_errors: u128,
    /// Entries of the error log, in all.
    #[serde(serialize_with = "wide::serialize")]
    pub num_err_log_entries: u128,
}

impl SmartLog {
    /// Number of the page.
    pub const ID: u8 = 0x02;

    /// What the host wrote.
    pub fn host_written(&self) -> ByteCounter {
        ByteCounter { units: self.data_units_written, unit_bytes: DATA_UNIT_BYTES }
    }

    /// Reads the page; `None` for bytes that cannot be one.
    pub(super) fn parse(page: &[u8]) -> Option<Self> {
        let byte = |at: usize| page.get(at).copied();
        let reserved = page.get(RESERVED_FROM..BYTES)?;
        // Only the lower six bits are warnings, and no more than all spare blocks are left.
        let possible = byte(0)? < 0x40 && byte(3)? <= 100 && byte(4)? <= 100;
        if !possible || reserved.iter().any(|&byte| byte != 0) {
            return None;
        }
        Some(Self {
            critical_warning: byte(0)?,
            temperature: short::<2>(page, 1)?.try_into().ok()?,
            avail_spare: byte(3)?,
            spare_thresh: byte(4)?,
            percent_used: byte(5)?,
            data_units_read: number::<16>(page, 32)?,
            data_units_written: number::<16>(page, 48)?,
            host_read_commands: number::<16>(page, 64)?,
            host_write_commands: number::<16>(page, 80)?,
            controller_busy_time: number::<16>(page, 96)?,
            power_cycles: number::<16>(page, 112)?,
            power_on_hours: number::<16>(page, 128)?,
            unsafe_shutdowns: number::<16>(page, 144)?,
            media_errors: number::<16>(page, 160)?,
            num_err_log_entries: number::<16>(page, 176)?,
        })
    }

    /// The page as a drive sends it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut page = vec![0; BYTES];
        page[0] = self.critical_warning;
        page[1..3].copy_from_slice(&self.temperature.to_le_bytes());
        (page[3], page[4], page[5]) = (self.avail_spare, self.spare_thresh, self.percent_used);
        let wide = [
            self.data_units_read,
            self.data_units_written,
            self.host_read_commands,
            self.host_write_commands,
            self.controller_busy_time,
            self.power_cycles,
            self.power_on_hours,
            self.unsafe_shutdowns,
            self.media_errors,
            self.num_err_log_entries,
        ];
        for (place, number) in page[32..].chunks_exact_mut(16).zip(wide) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        page
    }
}
