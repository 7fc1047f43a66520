//! Streams: data that will probably be overwritten at the same time goes to the same open superblock.
//!
//! Each unit has one open superblock a stream. When garbage collection takes a superblock whose pages die together, it
//! has little to move. A policy names the stream of every page that the host writes and of every page that garbage
//! collection moves; one type a policy, chosen by `ftl.streams.policy`.

mod hint;
mod sep_bit;

use hint::Hint;
use sep_bit::SepBit;

/// Names the stream of a page.
pub(crate) trait StreamPolicy {
    /// Open superblocks of a unit for the host's writes.
    fn host_streams(&self) -> u32;

    /// Open superblocks of a unit for moved pages.
    fn gc_streams(&self) -> u32;

    /// The stream of a page that the host writes; `hint` is what the request says.
    fn written(&mut self, logical_page: u32, hint: u32) -> u32;

    /// The stream of a page that garbage collection moves; `from` is the stream that it was in.
    fn moved(&self, logical_page: u32, from: u32) -> u32;

    /// A superblock of a host stream, sealed when the host had written `sealed_at` pages, was collected.
    fn collected(&mut self, stream: u32, sealed_at: u64);

    /// Pages that the host has written so far.
    fn clock(&self) -> u64;
}

/// One stream for the host and one for garbage collection.
#[derive(Default)]
pub(crate) struct One {
    clock: u64,
}

impl StreamPolicy for One {
    fn host_streams(&self) -> u32 {
        1
    }

    fn gc_streams(&self) -> u32 {
        1
    }

    fn written(&mut self, _: u32, _: u32) -> u32 {
        self.clock += 1;
        0
    }

    fn moved(&self, _: u32, _: u32) -> u32 {
        0
    }

    fn collected(&mut self, _: u32, _: u64) {}

    fn clock(&self) -> u64 {
        self.clock
    }
}
