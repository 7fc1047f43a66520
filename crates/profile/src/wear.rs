//! What a drive's own counters show: write amplification, and how long it lasts at a workload.

use crate::parameters::figures;

figures! {
    /// The figures of a drive's counters. One without counters is inconclusive and has no value.
    pub struct Wear;
    /// Bytes programmed into flash ÷ bytes written by the host, by the drive's counters.
    write_amplification_counted: f64, Ratio, "write amplification, counted";
    /// Bytes a second that the host wrote.
    host_write_bytes_per_s: u64, BytesPerSecond, "host writes, counted";
    /// Part of the drive's life that is used, as the drive itself estimates it.
    life_used: f64, Share, "life used";
    /// Years until the drive's own estimate of its life is used, at the rate and the write amplification that were
    /// counted.
    years_left: f64, Years, "years left";
    /// Years until the host has written what the drive is rated for.
    years_left_rated: f64, Years, "years left of the rating";
    /// Time in which demand exceeded a limit of the volume.
    over_volume_limit_ns: u64, Nanos, "demand over the volume's limit";
    /// Time in which demand exceeded a limit of the instance.
    over_instance_limit_ns: u64, Nanos, "demand over the instance's limit";
}

impl Wear {
    /// Whether there is nothing: for `skip_serializing_if`, so that a profile without counters has no such section.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
