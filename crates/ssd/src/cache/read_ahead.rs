//! Read-ahead: sequential streams are detected, and what follows is read into the read cache before it is asked for.
//!
//! A stream is `trigger` reads, each starting where the one before ended; `streams` of them are followed at a time, and
//! a read that continues none replaces the one that was quiet for longest. A stream keeps the next `pages` logical
//! pages on their way or in the cache. A host read of a page that is on its way waits for it instead of reading it
//! again. Pages of one row on one die are read ahead by one command.
//!
//! Source: Smith, "Sequentiality and Prefetching in Database Systems", ACM TODS 3(3), 1978 (prefetch of the pages
//! behind a sequential run).

use crate::config::{DeviceConfig, ReadAheadConfig};
use crate::flash::FlashAddress;
use crate::list::Slab;

/// A sequential stream, or a read that may become one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stream {
    /// The byte at which its next read starts.
    pub(crate) next: u64,
    pub(crate) reads: u32,
    /// The first page that is not read ahead yet.
    pub(crate) ahead: u32,
    /// When it was seen last, in reads.
    pub(crate) seen: u64,
}

/// A flash command that reads ahead.
#[derive(Default)]
pub(crate) struct Load {
    /// Its pages in the read cache.
    pub(crate) entries: Vec<u32>,
    /// Requests that wait for it, with how many bytes of it go to the host.
    pub(crate) waiting: Vec<(u32, u64)>,
}

/// The detection of streams, and what is being read ahead.
pub(crate) struct ReadAhead {
    pub(crate) pages: u32,
    pub(crate) trigger: u32,
    pub(crate) streams: Vec<Stream>,
    pub(crate) reads: u64,
    pub(crate) loads: Slab<Load>,
    /// Commands of the present read-ahead: where, prepared command, record.
    pub(crate) commands: Vec<(FlashAddress, u32, u32)>,
}

impl ReadAhead {
    /// The read-ahead that a configuration has.
    pub(crate) fn new(config: &DeviceConfig) -> Option<Box<Self>> {
        let &ReadAheadConfig { pages, streams, trigger } = config.controller.read_ahead.as_ref()?;
        let streams = vec![Stream::default(); streams as usize];
        Some(Box::new(Self { pages, trigger, streams, reads: 0, loads: Slab::default(), commands: Vec::new() }))
    }

    /// Notes a read of bytes `start..end` that ends before logical page `behind`; gives the pages to read ahead.
    pub(crate) fn note(&mut self, start: u64, end: u64, behind: u32) -> std::ops::Range<u32> {
        self.reads += 1;
        let found = self.streams.iter_mut().find(|stream| stream.seen > 0 && stream.next == start);
        let Some(stream) = found else {
            if let Some(quiet) = self.streams.iter_mut().min_by_key(|stream| stream.seen) {
                *quiet = Stream { next: end, reads: 1, ahead: behind, seen: self.reads };
            }
            return 0..0;
        };
        (stream.next, stream.reads, stream.seen) = (end, stream.reads + 1, self.reads);
        if stream.reads < self.trigger {
            return 0..0;
        }
        let from = stream.ahead.max(behind);
        stream.ahead = from.max(behind.saturating_add(self.pages));
        from..stream.ahead
    }
}

crate::state::state! { Stream { saved { next, reads, ahead, seen } } }

crate::state::state! {
    ReadAhead {
        saved { streams, reads }
        at_rest { loads }
        empty { commands }
        built { pages, trigger }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_ahead() -> Box<ReadAhead> {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        config.controller.read_ahead = Some(ReadAheadConfig { pages: 4, streams: 2, trigger: 3 });
        ReadAhead::new(&config).unwrap()
    }

    /// Notes a read of one 4 KiB page.
    fn note(ahead: &mut ReadAhead, page: u32) -> std::ops::Range<u32> {
        let start = u64::from(page) * 4096;
        ahead.note(start, start + 4096, page + 1)
    }

    #[test]
    fn a_stream_begins_with_the_read_that_triggers_it_and_stays_ahead() {
        let mut ahead = read_ahead();
        assert_eq!([7, 8, 9, 10].map(|page| note(&mut ahead, page)), [0..0, 0..0, 10..14, 14..15]);
    }

    #[test]
    fn streams_run_beside_each_other_and_the_quietest_makes_room() {
        let mut ahead = read_ahead();
        for step in 0..3 {
            assert_eq!(note(&mut ahead, 100 + step).is_empty(), step < 2);
            assert_eq!(note(&mut ahead, 900 + step).is_empty(), step < 2);
        }
        note(&mut ahead, 5);
        assert!(note(&mut ahead, 103).is_empty(), "it was forgotten");
        assert!(note(&mut ahead, 6).is_empty());
        assert_eq!(note(&mut ahead, 7), 8..12);
    }
}
