//! The event queue: what happens next, and when.
//!
//! Events come in the order of (time, sequence number). The sequence number makes simultaneous events happen in the
//! order in which they were scheduled, so that a run is the same to the bit every time.
//!
//! ```text
//!   entry   time, 64 bits │ sequence number, 32 bits │ kind, 4 bits │ index, 28 bits      one integer, one comparison
//! ```
//!
//! Two structures hold them. Events of one kind that are scheduled in the order of their time, as commands that a
//! firmware takes one after the other, wait in a *lane*, a plain queue. All others are in a heap whose nodes have four
//! children: half as deep as a binary heap, and the four children of a node share a cache line. Beside a binary heap
//! of records of 24 bytes, lanes and heap together save about a third of the time of a random read.

use std::collections::VecDeque;

/// Bits of an event's index.
const INDEX_BITS: u32 = 28;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident { $index:ident } = $code:literal,)*) => {
        /// What an event is about; the index, below 2²⁸, names the part concerned.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event {
            $($(#[$doc])* $name { $index: u32 },)*
        }

        impl Event {
            #[inline]
            fn pack(self) -> u32 {
                let (code, index): (u32, u32) = match self {
                    $(Self::$name { $index } => ($code, $index),)*
                };
                debug_assert!(index < 1 << INDEX_BITS);
                code << INDEX_BITS | index
            }

            #[inline]
            fn unpack(packed: u32) -> Self {
                let index = packed & ((1 << INDEX_BITS) - 1);
                match packed >> INDEX_BITS {
                    $($code => Self::$name { $index: index },)*
                    code => unreachable!("no event has the code {code}"),
                }
            }
        }
    };
}

events! {
    /// The firmware has taken a command (and a write's data has crossed the link).
    Command { request } = 0,
    /// The last byte of a read has crossed the link.
    Completed { request } = 1,
    /// The firmware issues the next flash commands of a read.
    Dispatch { request } = 2,
    /// A die's array has sensed, programmed or erased.
    ArrayDone { die } = 3,
    /// A channel's transfer has ended.
    TransferDone { channel } = 4,
    /// The data of a flash read is corrected.
    Decoded { op } = 5,
    /// A page that leaves the write cache has been read from DRAM.
    WriteBack { entry } = 6,
    /// A request's data has crossed the link of a drive of elements.
    LinkFree { request } = 7,
    /// The elements have done a request.
    ElementsDone { request } = 8,
    /// A request's part in DRAM has ended, behind the rest of it.
    InMemory { request } = 9,
}

/// Kinds of events with a lane of their own: those with the codes below this.
const LANES: usize = 2;

/// Children of a node of the heap.
const CHILDREN: usize = 4;

/// Future events in the order of time.
#[derive(Default)]
pub(crate) struct EventQueue {
    heap: Vec<u128>,
    lanes: [VecDeque<u128>; LANES],
    sequence: u32,
}

impl EventQueue {
    /// Lets `event` happen at `time_ns`.
    #[inline]
    pub(crate) fn schedule(&mut self, time_ns: u64, event: Event) {
        if self.sequence == u32::MAX {
            self.renumber();
        }
        self.sequence += 1;
        let packed = event.pack();
        let entry = u128::from(time_ns) << 64 | u128::from(self.sequence) << 32 | u128::from(packed);
        if let Some(lane) = self.lanes.get_mut((packed >> INDEX_BITS) as usize)
            && lane.back().is_none_or(|&last| last < entry)
        {
            lane.push_back(entry);
            return;
        }
        self.push(entry);
    }

    /// The next event and its time.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        let (lane, entry) = self.first()?;
        match self.lanes.get_mut(lane) {
            Some(lane) => drop(lane.pop_front()),
            None => self.remove_first(),
        }
        Some(((entry >> 64) as u64, Event::unpack(entry as u32)))
    }

    /// When the next event happens.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.first().map(|(_, entry)| (entry >> 64) as u64)
    }

    /// The earliest entry and the lane that it is in; `LANES` stands for the heap.
    #[inline]
    fn first(&self) -> Option<(usize, u128)> {
        let mut first = (LANES, self.heap.first().copied().unwrap_or(u128::MAX));
        for (n, lane) in self.lanes.iter().enumerate() {
            match lane.front() {
                Some(&entry) if entry < first.1 => first = (n, entry),
                _ => {}
            }
        }
        (first.1 != u128::MAX).then_some(first)
    }

    #[inline]
    fn push(&mut self, entry: u128) {
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.heap[parent] < entry {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Takes the heap's first entry out: the hole sinks to a leaf, and the last entry rises from there.
    #[inline]
    fn remove_first(&mut self) {
        let Some(last) = self.heap.pop() else { return };
        let length = self.heap.len();
        if length == 0 {
            return;
        }
        let mut hole = 0;
        loop {
            let child = hole * CHILDREN + 1;
            if child >= length {
                break;
            }
            let least = least_of(&self.heap[child..length.min(child + CHILDREN)]);
            let entry = self.heap[child + least];
            if last < entry {
                break;
            }
            self.heap[hole] = entry;
            hole = child + least;
        }
        self.heap[hole] = last;
    }

    /// Gives the entries small sequence numbers again, in the same order; once in 2³² events.
    #[cold]
    fn renumber(&mut self) {
        self.heap.sort_unstable();
        let mut all: Vec<&mut u128> = self.heap.iter_mut().chain(self.lanes.iter_mut().flatten()).collect();
        all.sort_unstable();
        for (n, entry) in all.iter_mut().enumerate() {
            **entry = **entry >> 64 << 64 | (n as u128) << 32 | (**entry & u128::from(u32::MAX));
        }
        self.sequence = all.len() as u32;
    }
}

/// Where the least of one to four entries is.
#[inline]
fn least_of(entries: &[u128]) -> usize {
    if let &[a, b, c, d] = entries {
        let (left, right) = (usize::from(b < a), 2 + usize::from(d < c));
        return if d.min(c) < b.min(a) { right } else { left };
    }
    let mut least = 0;
    for n in 1..entries.len() {
        if entries[n] < entries[least] {
            least = n;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_come_in_the_order_of_time_and_simultaneous_ones_in_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        for (time, die) in [(30, 0), (10, 1), (30, 2), (10, 3)] {
            queue.schedule(time, Event::ArrayDone { die });
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let at = |time, die| (time, Event::ArrayDone { die });
        assert_eq!(order, [at(10, 1), at(10, 3), at(30, 0), at(30, 2)]);
    }

    #[test]
    fn an_event_comes_back_as_it_went_in() {
        let last = (1 << INDEX_BITS) - 1;
        for event in [Event::Command { request: last }, Event::Dispatch { request: 0 }, Event::Decoded { op: last }] {
            assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_list_also_when_sequence_numbers_run_out(
            steps in prop::collection::vec((0_u64..50, 0_u32..4, any::<bool>()), 1..300),
            before_the_end in 0_u32..300,
        ) {
            let mut queue = EventQueue { sequence: u32::MAX - before_the_end, ..EventQueue::default() };
            let mut list: Vec<(u64, Event)> = Vec::new();
            let mut now = 0;
            for (n, (delay, kind, pop)) in steps.into_iter().enumerate() {
                let index = n as u32;
                let event = [
                    Event::Command { request: index },
                    Event::Completed { request: index },
                    Event::ArrayDone { die: index },
                    Event::TransferDone { channel: index },
                ][kind as usize];
                queue.schedule(now + delay, event);
                let at = list.partition_point(|&(time, _)| time <= now + delay);
                list.insert(at, (now + delay, event));
                if pop {
                    let first = list.remove(0);
                    prop_assert_eq!(queue.next_time(), Some(first.0));
                    prop_assert_eq!(queue.pop(), Some(first));
                    now = first.0;
                }
            }
            prop_assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), list);
        }
    }
}
