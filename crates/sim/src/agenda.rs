//! What the flows will do, and when: arrivals, starts, and ends of pauses.
//!
//! A binary heap over (time, sequence number), as the drive's own events are: what is due at the same time happens in
//! the order in which it was noted. It holds one entry a timed flow and at most one a request in flight of a flow that
//! pauses, so it stays small and soon allocates no more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Flows that will act, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    sequence: u64,
}

impl Agenda {
    /// Lets a flow act at `time_ns`.
    pub(super) fn note(&mut self, time_ns: u64, flow: u32) {
        self.sequence += 1;
        self.heap.push(Reverse((time_ns, self.sequence, flow)));
    }

    /// When the next flow acts.
    pub(super) fn next_time(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((time_ns, ..))| *time_ns)
    }

    /// The next flow that acts until `now_ns`.
    #[inline(always)]
    pub(super) fn due(&mut self, now_ns: u64) -> Option<u32> {
        if self.next_time()? > now_ns { None } else { self.take() }
    }

    #[inline(never)]
    fn take(&mut self) -> Option<u32> {
        self.heap.pop().map(|Reverse((.., flow))| flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_act_in_the_order_of_time_and_then_of_noting() {
        let mut agenda = Agenda::default();
        for (time, flow) in [(30, 0), (10, 1), (30, 2), (10, 3)] {
            agenda.note(time, flow);
        }
        assert_eq!(agenda.next_time(), Some(10));
        assert_eq!(std::iter::from_fn(|| agenda.due(29)).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(agenda.due(29), None);
        assert_eq!(std::iter::from_fn(|| agenda.due(30)).collect::<Vec<_>>(), [0, 2]);
    }
}
