//! The requests of a short trace, kept in memory from the reading that checks it.
//!
//! A trace of a few thousand requests is often played many times over. Read, decompressed and taken apart anew in each
//! round, it would cost more than the simulation of its requests.

use super::FlowRequest;

/// Most requests that are kept, 40 bytes each; a longer trace is read from its file.
const MOST_KEPT: usize = 1 << 16;

/// What has been read so far of a trace that may be short enough.
#[derive(Debug, Default)]
pub(super) struct Reading {
    requests: Vec<FlowRequest>,
    is_too_long: bool,
}

impl Reading {
    /// Notes the next request of the trace.
    pub(super) fn note(&mut self, request: FlowRequest) {
        self.is_too_long |= self.requests.len() == MOST_KEPT;
        if !self.is_too_long {
            self.requests.push(request);
        }
    }

    /// The requests, to be played so many times, at least once; `None` where they are too many.
    pub(super) fn keep(self, rounds: u32) -> Option<Kept> {
        let requests = self.requests;
        (!self.is_too_long).then_some(Kept { requests, next: 0, left: rounds - 1, round_start: 0 })
    }
}

/// A trace that is played from memory.
#[derive(Debug)]
pub(super) struct Kept {
    /// Of one round, with its times; at least one.
    requests: Vec<FlowRequest>,
    next: usize,
    /// Times that the trace is still to be played from its start.
    left: u32,
    /// Added to the times of this round: the last arrival of the one before, ns.
    round_start: u64,
}

impl Kept {
    /// The next request, or `None` at the end of the last round.
    #[inline]
    pub(super) fn next(&mut self) -> Option<FlowRequest> {
        if self.next == self.requests.len() {
            self.left = self.left.checked_sub(1)?;
            self.round_start += self.requests.last()?.at.0;
            self.next = 0;
        }
        let mut request = *self.requests.get(self.next)?;
        self.next += 1;
        request.at.0 += self.round_start;
        Some(request)
    }
}
