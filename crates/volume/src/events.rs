//! What happens to which request, and when.
//!
//! A bucket lets requests leave, and try again, in the order in which they came to it, so its events wait in a line of
//! their own. Only requests on their way back overtake each other, and need a heap. At 1,024 requests in flight that
//! are held again and again, this takes a third of the time of one heap for all.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Time, number of the event, and place of the request: of events at one time, the one first that was scheduled first.
type Event = (u64, u64, usize);

/// Later than any event.
const NEVER: (u64, u64) = (u64::MAX, u64::MAX);

/// Events to come.
pub(crate) struct Events {
    /// Of each bucket, in order.
    lines: Vec<VecDeque<Event>>,
    /// Of requests on their way back.
    returns: BinaryHeap<Reverse<Event>>,
    /// Time and number of the first of each line, and of the returns.
    firsts: Vec<(u64, u64)>,
    /// The line of the next event, or the returns.
    next: usize,
    number: u64,
}

impl Events {
    /// None, of so many buckets.
    pub(crate) fn new(buckets: usize) -> Self {
        Self {
            lines: vec![VecDeque::new(); buckets],
            returns: BinaryHeap::new(),
            firsts: vec![NEVER; buckets + 1],
            next: buckets,
            number: 0,
        }
    }

    /// A request leaves a bucket then, or tries again.
    pub(crate) fn at_bucket(&mut self, bucket: usize, at_ns: u64, place: usize) {
        debug_assert!(self.lines[bucket].back().is_none_or(|&(last_ns, ..)| last_ns <= at_ns));
        self.lines[bucket].push_back((at_ns, self.number, place));
        self.added(bucket, at_ns);
    }

    /// A request is back at the host then.
    pub(crate) fn returns(&mut self, at_ns: u64, place: usize) {
        self.returns.push(Reverse((at_ns, self.number, place)));
        self.added(self.lines.len(), at_ns);
    }

    fn added(&mut self, line: usize, at_ns: u64) {
        self.firsts[line] = self.firsts[line].min((at_ns, self.number));
        if self.firsts[line] < self.firsts[self.next] {
            self.next = line;
        }
        self.number += 1;
    }

    /// The time of the next event.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let first = self.firsts[self.next];
        (first != NEVER).then_some(first.0)
    }

    /// Takes the next event: its time and place.
    pub(crate) fn take(&mut self) -> Option<(u64, usize)> {
        let line = self.next;
        let (taken, following) = match self.lines.get_mut(line) {
            Some(line) => (line.pop_front(), line.front().copied()),
            None => {
                let taken = self.returns.pop().map(|Reverse(event)| event);
                (taken, self.returns.peek().map(|Reverse(event)| *event))
            }
        };
        let (at_ns, _, place) = taken?;
        self.firsts[line] = following.map_or(NEVER, |(at_ns, number, _)| (at_ns, number));
        let mut next = 0;
        for (line, first) in self.firsts.iter().enumerate() {
            if *first < self.firsts[next] {
                next = line;
            }
        }
        self.next = next;
        Some((at_ns, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_all_lines_come_in_the_order_of_time_and_at_one_time_of_their_number() {
        let mut events = Events::new(2);
        events.at_bucket(0, 5, 10);
        events.returns(7, 11);
        events.at_bucket(1, 5, 12);
        events.returns(3, 13);
        events.at_bucket(0, 9, 14);
        assert_eq!(events.next_time(), Some(3));
        let taken: Vec<_> = std::iter::from_fn(|| events.take()).collect();
        assert_eq!(taken, [(3, 13), (5, 10), (5, 12), (7, 11), (9, 14)]);
    }
}
