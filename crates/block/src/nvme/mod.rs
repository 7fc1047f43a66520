//! A drive's own counters, from its NVMe log pages: what the host wrote, what the flash programmed, how worn it is.
//!
//! ```text
//!   device ── Get Log Page ──▶ bytes ──┐
//!   file of nvme-cli, binary ─▶ bytes ─┼─▶ page.rs: which page? ─▶ smart.rs · ocp.rs · maker.rs · aws.rs ─▶ Counters
//!   file of nvme-cli or smartctl, JSON ─▶ json.rs ────────────────────────────────────────────────────────▶ Counters
//! ```
//!
//! | file | page |
//! |---|---|
//! | `smart.rs` | 02h, SMART / Health Information, of every drive |
//! | `ocp.rs` | C0h, SMART / Health Information Extended, of drives after OCP's specification |
//! | `maker.rs` | CAh and D0h, the write counters of Intel, Solidigm, Samsung and Micron |
//! | `aws.rs` | D0h, of EBS volumes and of instance storage |
//! | `json.rs` | the same fields as nvme-cli and smartctl print them |
//! | `ioctl.rs` | Get Log Page: the only command that is sent, and the only `unsafe` here |
//!
//! **A log is input that anybody may have written.** Every size is checked, a counter has 128 bits, and a page that is
//! not recognised is refused: a wrong counter would be a wrong number of years.
//!
//! Source: NVM Express Base Specification 2.0, 5.16.1.3; OCP Datacenter NVMe SSD Specification 2.0, 4.8.6; Amazon EBS
//! and EC2 user guides, "detailed performance statistics"; the names in nvme-cli's JSON.

mod aws;
mod ioctl;
mod json;
mod maker;
mod ocp;
mod page;
mod smart;
mod wide;

use std::io::Read;
use std::path::Path;

use serde::Serialize;

pub use aws::{AwsLog, AwsVolume, LatencyBin};
pub use ioctl::is_nvme_device;
pub use maker::MakerLog;
pub use ocp::OcpLog;
pub use smart::{DATA_UNIT_BYTES, SmartLog};

use crate::input::open_regular;

/// The longest file of logs that is read: AWS's page has 4 KiB, and a line of JSON for each counter takes less.
const FILE_MAX: u64 = 1 << 20;

/// A counter of bytes, with the unit that it counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCounter {
    /// Units.
    pub units: u128,
    /// Bytes of a unit. Up to one unit less than counted was written, for a drive may round up or down.
    pub unit_bytes: u64,
}

impl ByteCounter {
    /// Bytes, as counted.
    pub fn bytes(self) -> f64 {
        self.units as f64 * self.unit_bytes as f64
    }
}

/// The counters that some log pages of a drive hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    /// When they were read, seconds since 1970, or on the clock of a simulated drive; `null` if the log lacks it.
    pub time_s: Option<f64>,
    /// SMART / Health Information (02h).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smart: Option<SmartLog>,
    /// SMART / Health Information Extended of OCP (C0h).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocp: Option<OcpLog>,
    /// Write counters of the maker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maker: Option<MakerLog>,
    /// What an AWS volume reports (D0h).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsLog>,
}

/// Why no counters could be read.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// The file or device failed.
    #[error("{path}: {error}")]
    Io {
        /// The file or device.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The content is no log page.
    #[error("{path}: {reason}")]
    Content {
        /// The file or device.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl Counters {
    /// Reads an NVMe device, or a file with what nvme-cli or smartctl printed.
    ///
    /// # Errors
    /// When it cannot be read, or holds no counters.
    pub fn read(path: &Path) -> Result<Self, CountersError> {
        let name = crate::shown::line(&path.display().to_string()).to_string();
        if is_nvme_device(path) {
            return ioctl::read(path).map_err(|error| CountersError::Io { path: name, error });
        }
        let read = || {
            let mut bytes = Vec::new();
            open_regular(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| CountersError::Io { path: name.clone(), error })?;
        Self::parse(&bytes).map_err(|reason| CountersError::Content { path: name, reason })
    }

    /// Reads the bytes of a log page, or JSON.
    ///
    /// # Errors
    /// In words.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > FILE_MAX {
            return Err(format!("more than {FILE_MAX} bytes: no log page of a drive is that long"));
        }
        // A page may begin with the byte of a brace.
        page::parse(bytes).or_else(|reason| match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => Err("the file is empty".to_owned()),
            Some(b'{' | b'[') => json::parse(bytes),
            Some(_) => Err(reason),
        })
    }

    /// These, and for pages that they lack, those of `other`: a drive's state from several files.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            time_s: self.time_s.or(other.time_s),
            smart: self.smart.or(other.smart),
            ocp: self.ocp.or(other.ocp),
            maker: self.maker.or(other.maker),
            aws: self.aws.or(other.aws),
        }
    }

    /// Whether there is no counter.
    pub fn is_empty(&self) -> bool {
        self.smart.is_none() && self.ocp.is_none() && self.maker.is_none() && self.aws.is_none()
    }

    /// What the host wrote: by the finest counter.
    pub fn host_written(&self) -> Option<ByteCounter> {
        let smart = self.smart.as_ref().map(SmartLog::host_written);
        let maker = self.maker.as_ref().and_then(MakerLog::host_written);
        let aws = self.aws.as_ref().map(AwsLog::host_written);
        aws.or(smart).or(maker)
    }

    /// What was programmed into flash.
    pub fn media_written(&self) -> Option<ByteCounter> {
        let ocp = self.ocp.as_ref().map(OcpLog::media_written);
        ocp.or(self.maker.as_ref().and_then(MakerLog::media_written))
    }
}

/// Bytes `at..at + N` of a page; `None` beyond its end.
fn field<const N: usize>(page: &[u8], at: usize) -> Option<[u8; N]> {
    page.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// A number of `N` bytes, lowest byte first.
fn number<const N: usize>(page: &[u8], at: usize) -> Option<u128> {
    let mut wide = [0; 16];
    wide.get_mut(..N)?.copy_from_slice(&field::<N>(page, at)?);
    Some(u128::from_le_bytes(wide))
}

/// A number of up to eight bytes.
fn short<const N: usize>(page: &[u8], at: usize) -> Option<u64> {
    u64::try_from(number::<N>(page, at)?).ok()
}

#[cfg(test)]
mod tests;
