//! The event queue: what happens next, and when.
//!
//! Events come in the order of time; simultaneous ones in a fixed order too, so that a run is the same to the bit every
//! time. Two structures hold them. Most events come a fixed time after the one that causes them, the same for all of
//! their sort: commands that a firmware takes one after the other, pages that are sensed, transfers of one length.
//! Events of one sort are then scheduled in the order of their time, and wait in a *lane*, a ring that is
//! filled at one end and emptied at the other. An event that would come before the last of its lane goes to a heap
//! whose nodes have four children: half as deep as a binary heap, and the four children of a node share a cache line.
//! What happens next is the least of the lanes' first times and the heap's, which stand side by side.
//!
//! ```text
//!   lanes   ▶ programmed   ─┐
//!           ▶ sensed       ─┤
//!           ▶ data sent    ─┼─▶ the least of  time, 61 bits │ lane, 3 bits
//!           ▶ …            ─┤
//!   heap    △ all others   ─┘
//! ```
//!
//! Of simultaneous events, what ends in the flash comes first, then what ends on a channel, then what the host does: a
//! command finds free whatever becomes free at its moment. Inside a lane, and in the heap, they come in the order in
//! which they were scheduled.

use crate::state::{Carried, Carrier, Layout, State, StateError};

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
            /// Its sort, which for the first [`LANES`] is their lane, and its index.
            #[inline(always)]
            fn parts(self) -> (u32, u32) {
                match self {
                    $(Self::$name { $index } => ($code, $index),)*
                }
            }

            #[inline(always)]
            fn of_parts(code: u32, index: u32) -> Self {
                match code {
                    $($code => Self::$name { $index: index },)*
                    // All that comes here was taken apart above; to stop for it would cost every event a branch.
                    code => {
                        debug_assert!(false, "no event has the code {code}");
                        Self::Command { request: index }
                    }
                }
            }
        }
    };
}

// The first seven, whose time mostly grows with each one that is scheduled, have lanes; simultaneous ones come in this
// order.
events! {
    /// A die's array has programmed or erased.
    Programmed { die } = 0,
    /// A die's array has sensed.
    Sensed { die } = 1,
    /// Data has crossed a channel.
    DataSent { channel } = 2,
    /// Command cycles have crossed a channel.
    CommandSent { channel } = 3,
    /// The firmware has taken a command (and a write's data has crossed the link).
    Command { request } = 4,
    /// The last byte of a read, or a completion, has crossed the link.
    Completed { request } = 5,
    /// A request's part in DRAM has ended, behind the rest of it.
    InMemory { request } = 6,
    /// A die's array is done with what it was interrupted in, or with a further one of the commands that end together.
    ArrayDone { die } = 7,
    /// The firmware issues the next flash commands of a read.
    Dispatch { request } = 8,
    /// The data of a flash read is corrected.
    Decoded { op } = 9,
    /// A page that leaves the write cache has been read from DRAM.
    WriteBack { entry } = 10,
    /// A request's data has crossed the link of a drive of elements.
    LinkFree { request } = 11,
    /// The elements have done a request.
    ElementsDone { request } = 12,
    /// The drive may have had nothing to do for a while; the number tells since when.
    Quiet { rest } = 13,
    /// The drive, which is the only one, may have had nothing to do for so long that its SLC cache is emptied.
    Idle { drive } = 14,
}

impl Event {
    /// In the heap an event is one number.
    fn pack(self) -> u32 {
        let (code, index) = self.parts();
        debug_assert!(index < 1 << INDEX_BITS);
        code << INDEX_BITS | index
    }

    fn unpack(packed: u32) -> Self {
        Self::of_parts(packed >> INDEX_BITS, packed & ((1 << INDEX_BITS) - 1))
    }
}

/// Sorts of events that have a lane; the heap is behind them.
const LANES: usize = 7;
const HEAP: usize = LANES;

/// Places for first entries: the lanes, the heap, and empty ones up to a power of two.
const FIRSTS: usize = 8;
const LANE_BITS: u32 = FIRSTS.trailing_zeros();

/// The first entry of an empty lane.
const ABSENT: u64 = u64::MAX;

/// No event comes later.
const LATEST_NS: u64 = (ABSENT >> LANE_BITS) - 1;

/// The last moment up to which events may happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(u64);

impl Limit {
    /// All that happens until then, in whatever lane; nothing absent, whose time is later than any.
    pub(crate) fn at(deadline_ns: u64) -> Self {
        Self(deadline_ns.min(LATEST_NS) << LANE_BITS | (FIRSTS as u64 - 1))
    }
}

/// Children of a node of the heap.
const CHILDREN: usize = 4;

/// Future events in the order of time.
pub(crate) struct EventQueue {
    /// Time, sequence number, event.
    heap: Vec<u128>,
    lanes: [Ring; LANES],
    /// Time and number of the first entry of each lane and of the heap.
    firsts: [u64; FIRSTS],
    /// The index of each lane's first event, where it has one: what is done next starts with it, and should not wait
    /// until it is found in the ring.
    first_indices: [u32; FIRSTS],
    /// Of the last entry of the heap.
    sequence: u32,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            heap: Vec::new(),
            lanes: Default::default(),
            firsts: [ABSENT; FIRSTS],
            first_indices: [0; FIRSTS],
            sequence: 0,
        }
    }
}

impl EventQueue {
    /// Lets `event` happen at `time_ns`, which is below 2⁶¹: 73 years.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, time_ns: u64, event: Event) {
        debug_assert!(time_ns < ABSENT >> LANE_BITS);
        let (lane, index) = event.parts();
        match self.lanes.get_mut(lane as usize) {
            Some(ring) if ring.last_ns <= time_ns => {
                let key = time_ns << LANE_BITS | u64::from(lane);
                ring.last_ns = time_ns;
                let (first, first_index) = (&mut self.firsts[lane as usize], &mut self.first_indices[lane as usize]);
                *first_index = if *first == ABSENT { index } else { *first_index };
                *first = key.min(*first);
                ring.push(key, index);
            }
            _ => self.push(time_ns, event.pack()),
        }
    }

    /// The next event and its time; `None` where it would come after the limit.
    #[inline(always)]
    pub(crate) fn pop_until(&mut self, limit: Limit) -> Option<(u64, Event)> {
        let first = least_of_eight(&self.firsts);
        if first > limit.0 {
            return None;
        }
        let lane = first as usize % FIRSTS;
        // What sort of event it is follows from the lane, so that a processor can go there before it knows which one.
        let event = match self.lanes.get_mut(lane) {
            Some(ring) => {
                let index = self.first_indices[lane];
                (self.firsts[lane], self.first_indices[lane]) = ring.pop();
                Event::of_parts(lane as u32, index)
            }
            None => Event::unpack(self.remove_first()),
        };
        Some((first >> LANE_BITS, event))
    }

    /// Takes memory for so many events, of whatever sorts and in whatever order of their times.
    pub(crate) fn reserve(&mut self, events: usize) {
        self.heap.reserve(events.saturating_sub(self.heap.len()));
        self.lanes.iter_mut().for_each(|lane| lane.reserve(events));
    }

    /// Whether nothing will happen.
    pub(crate) fn is_empty(&self) -> bool {
        self.firsts == [ABSENT; FIRSTS]
    }

    /// When the next event happens.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let first = least_of_eight(&self.firsts);
        (first != ABSENT).then_some(first >> LANE_BITS)
    }

    fn note_heap(&mut self) {
        self.firsts[HEAP] =
            self.heap.first().map_or(ABSENT, |&entry| ((entry >> 64) as u64) << LANE_BITS | HEAP as u64);
    }

    fn push(&mut self, time_ns: u64, packed: u32) {
        if self.sequence == u32::MAX {
            self.renumber();
        }
        self.sequence += 1;
        let entry = u128::from(time_ns) << 64 | u128::from(self.sequence) << 32 | u128::from(packed);
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
        self.note_heap();
    }

    /// Takes the heap's first event out: the hole sinks to a leaf, and the last entry rises from there.
    #[inline(never)]
    fn remove_first(&mut self) -> u32 {
        let last = self.heap.pop().unwrap_or(u128::MAX);
        let length = self.heap.len();
        if length == 0 {
            self.firsts[HEAP] = ABSENT;
            return last as u32;
        }
        let (first, mut hole) = (self.heap[0] as u32, 0);
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
        self.note_heap();
        first
    }

    /// Gives the heap's entries small sequence numbers again, in the same order; once in 2³² of them.
    #[cold]
    fn renumber(&mut self) {
        self.heap.sort_unstable();
        for (n, entry) in self.heap.iter_mut().enumerate() {
            *entry = *entry >> 64 << 64 | (n as u128) << 32 | (*entry & u128::from(u32::MAX));
        }
        self.sequence = self.heap.len() as u32;
    }
}

/// The events of a lane with their times, in their order. Every free place has the time [`ABSENT`], also the one behind
/// the last event, so that nobody has to ask whether there is one: a question whose answer no predictor knows. The ring
/// is never full, so that the place behind the last event is free.
struct Ring {
    /// Times with their lane, and events: a power of two of places.
    entries: Vec<(u64, u32)>,
    /// The place of the first event and the one behind the last, both counted on round after round.
    head: usize,
    tail: usize,
    /// The time of the event that was put in last, there or not.
    last_ns: u64,
}

impl Default for Ring {
    fn default() -> Self {
        Self { entries: vec![(ABSENT, 0); 16], head: 0, tail: 0, last_ns: 0 }
    }
}

impl Ring {
    #[inline(always)]
    fn push(&mut self, key: u64, index: u32) {
        let entries = &mut self.entries[..];
        let in_ring = entries.len() - 1;
        entries[self.tail & in_ring] = (key, index);
        self.tail += 1;
        if entries[self.tail & in_ring].0 != ABSENT {
            self.grow();
        }
    }

    /// Takes the first event out; there is one. Gives the time of the next, and its index.
    #[inline(always)]
    fn pop(&mut self) -> (u64, u32) {
        let entries = &mut self.entries[..];
        let in_ring = entries.len() - 1;
        entries[self.head & in_ring].0 = ABSENT;
        self.head += 1;
        entries[self.head & in_ring]
    }

    /// Has places for so many events, and the free one behind the last.
    fn reserve(&mut self, events: usize) {
        let places = (events + 1).next_power_of_two();
        if places > self.entries.len() {
            self.resize(places);
        }
    }

    /// Makes room in a ring whose every place is taken.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.resize(2 * self.entries.len());
    }

    /// Has so many places, more than before and a power of two.
    fn resize(&mut self, places: usize) {
        let first = self.head % self.entries.len();
        self.entries.rotate_left(first);
        (self.head, self.tail) = (0, self.tail - self.head);
        self.entries.resize(places, (ABSENT, 0));
    }
}

/// The least of eight numbers: three rounds of comparisons that do not wait for each other.
#[inline]
fn least_of_eight(&[a, b, c, d, e, f, g, h]: &[u64; FIRSTS]) -> u64 {
    (a.min(b).min(c.min(d))).min(e.min(f).min(g.min(h)))
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

impl EventQueue {
    /// Forgets timers, of a queue that [holds nothing else](Self::holds_timers_alone).
    pub(crate) fn retain_timers(&mut self, is_kept: impl Fn(Event) -> bool) {
        self.heap.retain(|&entry| is_kept(Event::unpack(entry as u32)));
        // In order, they are a heap.
        self.heap.sort_unstable();
        self.note_heap();
    }

    /// Whether all that will happen is that the drive looks whether it still has nothing to do.
    pub(crate) fn holds_timers_alone(&self) -> bool {
        let is_timer = |packed: u32| matches!(Event::unpack(packed), Event::Quiet { .. } | Event::Idle { .. });
        self.firsts[..LANES].iter().all(|&first| first == ABSENT)
            && self.heap.iter().all(|&entry| is_timer(entry as u32))
    }

    /// When the last of them happens.
    fn last_ns(&self) -> u64 {
        self.heap.iter().map(|&entry| (entry >> 64) as u64).max().unwrap_or(0)
    }
}

/// Timers alone are saved: everything else that can happen has something to do with a request or a flash command.
impl State for EventQueue {
    fn layout(layout: &mut Layout) {
        layout.word("EventQueue");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        if !carrier.is_restoring() && !self.holds_timers_alone() {
            return Err(StateError::busy("events"));
        }
        self.heap.sort_unstable();
        let mut count = self.heap.len() as u64;
        carrier.number(&mut count)?;
        if count > 4 {
            return Err(StateError::damaged(format!("{count} timers")));
        }
        self.heap.resize(count as usize, 0);
        for entry in &mut self.heap {
            let (mut time_ns, mut low) = ((*entry >> 64) as u64, *entry as u64);
            carrier.number(&mut time_ns)?;
            carrier.number(&mut low)?;
            *entry = u128::from(time_ns) << 64 | u128::from(low);
        }
        self.sequence.carry(carrier)?;
        for ring in &mut self.lanes {
            ring.last_ns.carry(carrier)?;
        }
        let codes = [Event::Quiet { rest: 0 }.pack(), Event::Idle { drive: 0 }.pack()].map(|code| code >> INDEX_BITS);
        let is_timer = |entry: &u128| codes.contains(&(*entry as u32 >> INDEX_BITS));
        let lanes_end = self.lanes.iter().map(|ring| ring.last_ns).max().unwrap_or(0);
        if !self.heap.is_sorted() || !self.heap.iter().all(is_timer) || self.last_ns().max(lanes_end) >= LATEST_NS {
            return Err(StateError::damaged("timers that no drive sets"));
        }
        self.note_heap();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_come_in_the_order_of_time_and_simultaneous_ones_in_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        for (time, die) in [(30, 0), (10, 1), (30, 2), (10, 3)] {
            queue.schedule(time, Event::Sensed { die });
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(Limit::at(u64::MAX))).collect();
        let at = |time, die| (time, Event::Sensed { die });
        assert_eq!(order, [at(10, 1), at(10, 3), at(30, 0), at(30, 2)]);
    }

    #[test]
    fn an_event_comes_back_as_it_went_in() {
        let last = (1 << INDEX_BITS) - 1;
        for event in [Event::Command { request: last }, Event::Dispatch { request: 0 }, Event::Decoded { op: last }] {
            assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    #[test]
    fn events_that_memory_was_taken_for_take_none_wherever_they_wait() {
        let mut queue = EventQueue::default();
        queue.reserve(100);
        let sizes = |queue: &EventQueue| (queue.heap.capacity(), queue.lanes.each_ref().map(|lane| lane.entries.len()));
        let reserved = sizes(&queue);
        // The first of each sort is the latest: all behind it wait in the heap, then all in the lane.
        for times in [[100, 1], [100, 200]] {
            (0..100).for_each(|n| queue.schedule(times[usize::from(n > 0)], Event::Sensed { die: n }));
            while queue.pop_until(Limit::at(u64::MAX)).is_some() {}
        }
        assert_eq!(sizes(&queue), reserved);
    }

    /// Where an event of a lane waits, as a number: its lane if it comes behind the last one there, else the heap.
    fn place(last_ns: &mut [u64; LANES], lane: usize, time_ns: u64) -> usize {
        match last_ns.get_mut(lane) {
            Some(last_ns) if *last_ns <= time_ns => {
                *last_ns = time_ns;
                lane
            }
            _ => HEAP,
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_list_also_when_sequence_numbers_run_out(
            steps in prop::collection::vec((0_u64..50, any::<bool>(), 0_usize..8), 1..300),
            before_the_end in 0_u32..300,
            (reserved_at, reserved) in (0_usize..300, 0_usize..100),
        ) {
            let mut queue = EventQueue { sequence: u32::MAX - before_the_end, ..EventQueue::default() };
            let mut list: Vec<(u64, usize, u32, u32)> = Vec::new();
            let (mut now, mut last_ns) = (0, [0; LANES]);
            let popped = |queue: &mut EventQueue| queue.pop_until(Limit::at(u64::MAX)).map(|(time, event)| (time, event.parts()));
            for (n, (delay, pop, lane)) in steps.into_iter().enumerate() {
                let index = n as u32;
                if n == reserved_at {
                    queue.reserve(reserved);
                }
                queue.schedule(now + delay, Event::of_parts(lane as u32, index));
                list.push((now + delay, place(&mut last_ns, lane, now + delay), index, lane as u32));
                list.sort_unstable();
                if pop {
                    let (time, _, index, lane) = list.remove(0);
                    prop_assert_eq!(queue.next_time(), Some(time));
                    prop_assert_eq!(popped(&mut queue), Some((time, (lane, index))));
                    now = time;
                }
            }
            let left: Vec<_> = std::iter::from_fn(|| popped(&mut queue)).collect();
            prop_assert_eq!(left, list.into_iter().map(|(time, _, index, lane)| (time, (lane, index))).collect::<Vec<_>>());
        }
    }
}
