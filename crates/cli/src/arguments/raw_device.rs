//! Options of writing to a block device.

use clap::Args;
use flashwise_block::{ByteSize, SignatureKind};
use flashwise_tune::RawOptions;

/// Heading of the options for block devices.
pub(super) const RAW_DEVICES: &str = "Writing to a block device";

/// Consent to writing to a block device.
#[derive(Debug, Args)]
pub struct RawDevice {
    /// Overwrite the start of the block device TARGET; needs --confirm-device
    #[arg(long, help_heading = RAW_DEVICES)]
    pub destructive: bool,
    /// Serial number of the device to overwrite, or its name in /dev/disk/by-id
    #[arg(long, value_name = "SERIAL-OR-BY-ID", requires = "destructive", help_heading = RAW_DEVICES)]
    pub confirm_device: Option<String>,
    /// Overwrite the device even if it contains this, such as ext4; can be repeated
    #[arg(long, value_name = "KIND", requires = "destructive", help_heading = RAW_DEVICES)]
    pub allow_signature: Vec<SignatureKind>,
}

impl RawDevice {
    /// The options, with the most bytes that may be written.
    pub fn options(&self, max_write: Option<ByteSize>) -> RawOptions {
        RawOptions {
            destructive: self.destructive,
            confirmation: self.confirm_device.clone(),
            allowed_signatures: self.allow_signature.clone(),
            max_write,
        }
    }
}
