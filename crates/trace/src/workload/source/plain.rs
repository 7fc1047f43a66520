//! The requests of the commonest synthetic flow: one length, random places, no flushes, and a runner that decides when.
//!
//! It draws what [`Synthesized`](super::synthesized::Synthesized) draws, in the same order. What that one asks anew for
//! each request (which kind of sizes, of places, of arrivals) is asked here once, when the flow is opened: a request
//! takes a third of the instructions.

use flashwise_block::{ByteSize, Nanos, Operation};
use rand_pcg::Pcg64Mcg;

use super::FlowRequest;
use super::operations::Operations;
use super::span::Span;

/// Draws requests: operation, then place.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) random: Pcg64Mcg,
    pub(super) operations: Operations,
    /// Of every request, bytes.
    pub(super) length: u64,
    pub(super) span: Span,
    /// Of writes.
    pub(super) fua: bool,
}

impl Plain {
    /// The next request; there always is one.
    #[inline(always)]
    pub(super) fn next(&mut self) -> FlowRequest {
        let operation = self.operations.draw(&mut self.random);
        let offset = self.span.draw(&mut self.random, self.length);
        let fua = self.fua & (operation == Operation::Write);
        FlowRequest { operation, offset: ByteSize(offset), length: ByteSize(self.length), fua, at: Nanos(0) }
    }
}
