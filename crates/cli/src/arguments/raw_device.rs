//! Options of writing to a block device.

use clap::Args;
use flashwise_block::{ByteSize, SignatureKind};
use flashwise_tune::RawOptions;

/// Heading of the options that only block devices have.
pub(super) const RAW_DEVICES: &str = "Writing to a block device";

/// Consent to writing to a block device.
#[derive(Debug, Args)]
pub struct RawDevice {
    /// Overwrite the start of the block device TARGET; needs --confirm-device
    #[arg(long, help_heading = RAW_DEVICES)]
    pub destructive: bool,
    /// Serial number of the device that is overwritten, or its name in /dev/disk/by-id
    #[arg(long, value_name = "SERIAL-OR-BY-ID", requires = "destructive", help_heading = RAW_DEVICES)]
    pub confirm_device: Option<String>,
    /// Overwrite the device although it carries this, such as ext4; may be given several times
    #[arg(long, value_name = "KIND", requires = "destructive", help_heading = RAW_DEVICES)]
    pub allow_signature: Vec<SignatureKind>,
}

impl RawDevice {
    /// What was said, with the bytes that may be written.
    pub fn options(&self, max_write: Option<ByteSize>) -> RawOptions {
        RawOptions {
            destructive: self.destructive,
            confirmation: self.confirm_device.clone(),
            allowed_signatures: self.allow_signature.clone(),
            max_write,
        }
    }
}
