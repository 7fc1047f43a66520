//! Requests whose end is known and has not come yet, in the order of their ends.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use flashwise_block::Request;

use super::Done;

/// Requests on their way to their end.
#[derive(Default)]
pub(crate) struct Completions {
    /// When, in which order they came, and where the request is.
    order: BinaryHeap<Reverse<(u64, u64, usize)>>,
    requests: Vec<Option<Request>>,
    free: VecDeque<usize>,
    number: u64,
}

impl Completions {
    pub(crate) fn add(&mut self, at_ns: u64, request: Request) {
        let place = self.free.pop_front().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() - 1
        });
        self.requests[place] = Some(request);
        self.order.push(Reverse((at_ns, self.number, place)));
        self.number += 1;
    }

    pub(crate) fn next_time(&self) -> Option<u64> {
        self.order.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// The next one that ends until a time.
    pub(crate) fn take(&mut self, limit_ns: u64) -> Option<Done> {
        self.next_time().filter(|&at_ns| at_ns <= limit_ns)?;
        let Reverse((at_ns, _, place)) = self.order.pop()?;
        self.free.push_back(place);
        let request = self.requests[place].take()?;
        Some(Done { tag: request.tag, at_ns, result: Ok(()), buffer: request.buffer })
    }
}
