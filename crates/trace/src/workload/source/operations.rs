//! Which operation comes next: reads, trims and writes by their shares.

use flashwise_block::Operation;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::workload::Synthetic;

/// 1 as a threshold: draws have 63 bits, so that a share of 1 is always met and a share of 0 never.
const ONE: f64 = (1_u64 << 63) as f64;

/// Draws operations by integer thresholds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operations {
    /// Draws below are reads.
    reads_below: u64,
    /// Draws from there on and below this are trims; the rest are writes.
    trims_below: u64,
    /// The only operation there is, if so: nothing is drawn for it.
    only: Option<Operation>,
}

impl Operations {
    pub(super) fn new(flow: &Synthetic) -> Self {
        let only = match (flow.read_share, flow.trim_share) {
            (0.0, 0.0) => Some(Operation::Write),
            (1.0, _) => Some(Operation::Read),
            (_, 1.0) => Some(Operation::Trim),
            _ => None,
        };
        let both = (flow.read_share + flow.trim_share).min(1.0);
        Self { reads_below: (flow.read_share * ONE) as u64, trims_below: (both * ONE) as u64, only }
    }

    #[inline]
    pub(super) fn draw(&self, random: &mut Pcg64Mcg) -> Operation {
        if let Some(only) = self.only {
            return only;
        }
        // Counting comparisons in place of branching on them: no predictor knows the next operation.
        let draw = random.next_u64() >> 1;
        let rank = usize::from(draw < self.trims_below) + usize::from(draw < self.reads_below);
        [Operation::Write, Operation::Trim, Operation::Read][rank]
    }
}
