//! Hint: the host says which stream a write belongs to.
//!
//! Moved pages stay apart by the stream that they were written to, so that garbage collection does not mix them again.
//!
//! Source: NVM Express Base Specification 2.0, section 8.7.3, the Streams directive. Left open there is what becomes of
//! identifiers beyond the streams that a drive has: they are taken modulo their number, as writes without one are of
//! stream 0. What wear levelling has moved belongs to stream 0 from then on.

use super::{Shape, Stream, StreamPolicy};
use crate::config::StreamsConfig;

/// The stream that the request names, modulo the number of streams.
pub(crate) struct Hint {
    streams: u16,
}

impl Hint {
    pub(super) fn new(config: &StreamsConfig, _: Shape) -> Self {
        Self { streams: config.streams as u16 }
    }
}

impl StreamPolicy for Hint {
    #[inline]
    fn class_of_written(&self, _: u32, hint: u16, _: u64) -> u8 {
        (hint % self.streams) as u8
    }

    #[inline]
    fn class_of_moved(&self, _: u32, from: Stream, _: u64) -> u8 {
        from.class().unwrap_or(0)
    }
}

crate::state::state! { Hint { built { streams } } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_goes_to_the_stream_that_it_names_and_stays_there_when_moved() {
        let policy = Hint::new(&StreamsConfig { streams: 3, ..StreamsConfig::default() }, Shape::of(1000));
        assert_eq!([0, 2, 4].map(|hint| policy.class_of_written(7, hint, 0)), [0, 2, 1]);
        let from = [Stream::host(2), Stream::gc(2), Stream::HOST, Stream::COLD];
        assert_eq!(from.map(|from| policy.class_of_moved(7, from, 0)), [2, 2, 0, 0]);
    }
}
