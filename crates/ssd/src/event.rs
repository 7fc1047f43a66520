//! The event queue: what happens next, and when.
//!
//! A binary heap over (time, sequence number). The sequence number makes simultaneous events happen in the order in
//! which they were scheduled, so that a run is the same to the bit every time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What an event is about; the index names the part concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The firmware has taken a command (and a write's data has crossed the link).
    Command { request: u32 },
    /// The firmware issues the next flash commands of a read.
    Dispatch { request: u32 },
    /// The last byte of a read has crossed the link.
    Completed { request: u32 },
    /// A page that leaves the write cache has been read from DRAM.
    WriteBack { entry: u32 },
    /// A die's array has sensed, programmed or erased.
    ArrayDone { die: u32 },
    /// A channel's transfer has ended.
    TransferDone { channel: u32 },
}

#[derive(Clone, Copy)]
struct Scheduled {
    time_ns: u64,
    sequence: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// Reversed, because the heap hands out its largest element.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time_ns, other.sequence).cmp(&(self.time_ns, self.sequence))
    }
}

/// Future events in the order of time.
#[derive(Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Scheduled>,
    sequence: u64,
}

impl EventQueue {
    /// Lets `event` happen at `time_ns`.
    pub(crate) fn schedule(&mut self, time_ns: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Scheduled { time_ns, sequence: self.sequence, event });
    }

    /// The next event and its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|s| (s.time_ns, s.event))
    }

    /// When the next event happens.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.heap.peek().map(|s| s.time_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_time_and_simultaneous_ones_in_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        for (time, die) in [(30, 0), (10, 1), (30, 2), (10, 3)] {
            queue.schedule(time, Event::ArrayDone { die });
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop())
            .map(|(time, event)| match event {
                Event::ArrayDone { die } => (time, die),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(order, [(10, 1), (10, 3), (30, 0), (30, 2)]);
    }
}
