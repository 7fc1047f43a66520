//! What a run costs by the parametric I/O model, without a drive.
//!
//! The pool waits for each read and for each batch of write-backs. A drive serves k_r reads or k_w writes at once; a
//! page write takes α times as long as a page read. So r pages that are read together take ⌈r ÷ k_r⌉ reads of one page,
//! and a batch of w takes α ⌈w ÷ k_w⌉ of them.
//! Source: T. I. Papon, M. Athanassoulis, *A Parametric I/O Model for Modern Storage Devices*, DaMoN 2021.

use flashwise_profile::DeviceProfile;
use serde::Serialize;

use crate::pool::Counts;

/// What the model knows of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriveModel {
    /// α: time of a page write ÷ time of a page read.
    pub asymmetry: f64,
    /// k_r: pages that are read at once.
    pub read_concurrency: u64,
    /// k_w: pages that are written at once.
    pub write_concurrency: u64,
}

/// Times in units of one page read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModelCost {
    /// All of it.
    pub total_reads: f64,
    /// Waiting for reads.
    pub read_part: f64,
    /// Waiting for write-backs.
    pub write_part: f64,
}

impl DriveModel {
    /// What was learned of a drive at pages of this size, or of 4 or 8 KiB where that is nearer than anything else;
    /// `None` where a figure is not certain.
    pub fn of_profile(profile: &DeviceProfile, page_bytes: u64) -> Option<Self> {
        let own = profile.at_sizes.iter().find(|at| at.request_bytes == page_bytes);
        let parameters = &profile.parameters;
        let (asymmetry, read, write) = match own {
            Some(at) => (at.asymmetry.known(), at.read_concurrency.known(), at.write_concurrency.known()),
            None if page_bytes > 6 << 10 => (
                parameters.asymmetry_8k.known(),
                parameters.read_concurrency_8k.known(),
                parameters.write_concurrency_8k.known(),
            ),
            None => (
                parameters.asymmetry_4k.known(),
                parameters.read_concurrency_4k.known(),
                parameters.write_concurrency_4k.known(),
            ),
        };
        Some(Self { asymmetry: asymmetry?, read_concurrency: read?, write_concurrency: write? })
    }

    /// What a run costs.
    pub fn cost(&self, counts: &Counts) -> ModelCost {
        let rounds = |sizes: &[u64], at_once: u64| {
            let rounds =
                (0..).zip(sizes).map(|(size, &count): (u64, _)| size.div_ceil(at_once.max(1)) as f64 * count as f64);
            rounds.sum::<f64>()
        };
        let read_part = rounds(&counts.reads, self.read_concurrency);
        let write_part = self.asymmetry * rounds(&counts.batches, self.write_concurrency);
        ModelCost { total_reads: read_part + write_part, read_part, write_part }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_costs_as_many_writes_as_the_drive_needs_rounds_for_it() {
        let model = DriveModel { asymmetry: 3.0, read_concurrency: 4, write_concurrency: 8 };
        // 10 single reads, 2 reads of 5 pages; 3 batches of 8, 1 of 9.
        let counts =
            Counts { reads: vec![0, 10, 0, 0, 0, 2], batches: vec![0, 0, 0, 0, 0, 0, 0, 0, 3, 1], ..Counts::default() };
        let cost = model.cost(&counts);
        assert_eq!((cost.read_part, cost.write_part, cost.total_reads), (14.0, 15.0, 29.0));
    }
}
