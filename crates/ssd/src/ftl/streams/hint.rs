//! Hint: the host says which stream a write belongs to (NVM Express, Streams directive; Base Specification 2.0, 8.7.3).
//!
//! Moved pages stay apart by the stream that they were written to, so that garbage collection does not mix them again.

use super::StreamPolicy;

/// The stream that the request names, modulo the number of streams.
pub(crate) struct Hint {
    streams: u32,
    clock: u64,
}

impl Hint {
    pub(crate) fn new(streams: u32) -> Self {
        Self { streams, clock: 0 }
    }
}

impl StreamPolicy for Hint {
    fn host_streams(&self) -> u32 {
        self.streams
    }

    fn gc_streams(&self) -> u32 {
        self.streams
    }

    fn written(&mut self, _: u32, hint: u32) -> u32 {
        self.clock += 1;
        hint % self.streams
    }

    fn moved(&self, _: u32, from: u32) -> u32 {
        from % self.streams
    }

    fn collected(&mut self, _: u32, _: u64) {}

    fn clock(&self) -> u64 {
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_goes_to_the_stream_that_it_names_and_stays_there_when_moved() {
        let mut policy = Hint::new(3);
        assert_eq!([policy.written(7, 0), policy.written(7, 2), policy.written(7, 4)], [0, 2, 1]);
        // Behind the host's three streams stand those of garbage collection.
        assert_eq!((policy.moved(7, 2), policy.moved(7, 5), policy.clock()), (2, 2, 3));
    }
}
