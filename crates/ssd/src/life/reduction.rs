//! What a drive saves by storing less than the host writes.
//!
//! The share of each way is told here and nowhere else. The projected bytes do not depend on it: write amplification is
//! measured in flash bytes for a byte of the host's, so it holds the gain already, and the shares only say how much of it
//! came from where.

use flashwise_block::DeviceCounters;

/// Bytes that the host wrote ÷ bytes that were left of them, way by way; each 1 where the drive does no such thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataReduction {
    /// What storing equal data once leaves.
    pub deduplication: f64,
    /// What compression leaves of that.
    pub compression: f64,
}

impl DataReduction {
    /// Of what a drive has counted over a span of its life. No drive reduces data yet.
    pub(crate) fn of(_span: &DeviceCounters) -> Self {
        Self { deduplication: 1.0, compression: 1.0 }
    }
}
