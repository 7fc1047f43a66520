//! Multi-plane commands: waiting commands of one kind for other planes of the same die are done together.
//!
//! They must name the same page offset (row), as ONFI's multi-plane operations demand (section 5, "Multi-plane
//! Operations"); their blocks may differ, but not in how many bits
//! their cells hold. The array works once for all of them; their data crosses the channel one
//! after the other. A program is never overtaken by another one for the same plane, so that the pages of a block are
//! programmed in order, unless `flash.programs_in_order` is off.

use super::FlashArray;
use super::command::{FlashOp, FlashOpKind};
use super::scheduler::Wanted;

impl FlashArray {
    /// Puts beside a command that has left its queue all that can be done with it.
    #[inline]
    pub(super) fn join_others(&mut self, queue: usize, first: u32) {
        if self.rules.planes_per_die > 1 && !self.queues[queue].commands.is_empty() {
            self.join_waiting(queue, first);
        }
    }

    fn join_waiting(&mut self, queue: usize, first: u32) {
        let mut taken = self.ops[first].at.plane_mask();
        if taken == self.rules.all_planes {
            return;
        }
        let head = self.ops[first];
        // Planes whose next command is not this one's match.
        let mut closed = 0_u32;
        let (all, in_order) = (self.rules.all_planes, self.rules.programs_in_order);
        let head_is_slc = self.is_slc(head.at.block);
        let slc_mode = self.slc_mode.as_deref();
        let wanted = |op: &FlashOp| {
            if (taken | closed) & all == all {
                return Wanted::Enough;
            }
            let planes = op.at.plane_mask();
            if op.at.die != head.at.die || planes & (taken | closed) != 0 {
                return Wanted::Leave;
            }
            let is_slc = slc_mode.is_some_and(|mode| mode.has(op.at.block));
            if op.kind == head.kind && op.at.row == head.at.row && is_slc == head_is_slc {
                taken |= planes;
                return Wanted::Take;
            }
            if in_order && op.kind != FlashOpKind::Read {
                closed |= planes;
            }
            Wanted::Leave
        };
        self.gathered.clear();
        // Only where the order of programs counts does a command of another kind matter.
        let ranks = if in_order { u8::MAX } else { self.ranks.of_kind(head.kind) };
        self.queues[queue].commands.extract_of(ranks, &mut self.ops, wanted, &mut self.gathered);
        let mut last = first;
        for &op in &self.gathered {
            self.ops[last].beside = op;
            last = op;
        }
        self.statistics.joined_commands += self.gathered.len() as u64;
    }
}
