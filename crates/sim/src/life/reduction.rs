//! What a drive saves by storing less than the host writes.
//!
//! The share of each way is told here and nowhere else. The projected bytes do not depend on it: write amplification is
//! measured in flash bytes for a byte of the host's, so it holds the gain already, and the shares only say how much of
//! it came from where.
//!
//! # Adding a way to store less
//!
//! Its share in [`DataReduction::of`], which splits the projected life.

use flashwise_ssd::reduction::ReductionCounters;

/// Bytes that the host wrote ÷ bytes that were left of them, way by way; each 1 where the drive does no such thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataReduction {
    /// What storing equal data once leaves.
    pub deduplication: f64,
    /// What compression leaves of that, and what storing nothing of zeros does.
    pub compression: f64,
}

impl DataReduction {
    /// Of what a drive has counted between two moments of its life.
    pub(crate) fn of(from: &ReductionCounters, to: &ReductionCounters) -> Self {
        let written = (to.written_bytes - from.written_bytes) as f64;
        let unique = (to.unique_bytes - from.unique_bytes) as f64;
        let duplicate = (to.duplicate_bytes - from.duplicate_bytes) as f64;
        let stored = (to.stored_bytes - from.stored_bytes) as f64;
        if unique == 0.0 || stored == 0.0 {
            return Self { deduplication: 1.0, compression: 1.0 };
        }
        let deduplication = (unique + duplicate) / unique;
        Self { deduplication, compression: written / stored / deduplication }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_ways_together_are_what_was_written_for_each_byte_that_was_stored() {
        let from = ReductionCounters { written_bytes: 100, ..ReductionCounters::default() };
        let to = ReductionCounters {
            written_bytes: 1100,
            zero_bytes: 100,
            duplicate_bytes: 450,
            unique_bytes: 450,
            stored_bytes: 150,
            ..ReductionCounters::default()
        };
        let DataReduction { deduplication, compression } = DataReduction::of(&from, &to);
        assert_eq!(deduplication, 2.0);
        assert!((deduplication * compression - 1000.0 / 150.0).abs() < 1e-12);
        let nothing = DataReduction::of(&to, &to);
        assert_eq!(nothing, DataReduction { deduplication: 1.0, compression: 1.0 });
    }
}
