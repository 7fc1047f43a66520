//! Superpages that moved data went to and that are not on flash yet; emptied victims wait for them.
//!
//! A stream fills one superpage after the other, so its first in this order is its oldest, and one look at that tells
//! whether a victim has to wait. Programs end nearly in order, so what is taken out lies near the front. There may be
//! thousands: all that collection has issued to a die behind what the host asks of it.

use std::collections::VecDeque;

use crate::ftl::Stream;
use crate::ftl::streams::{ByStream, StreamSet};

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Unprogrammed {
    /// Stream and generation of each; the generations of a stream rise.
    superpages: VecDeque<(Stream, u64)>,
}

impl Unprogrammed {
    /// Moved data has come into a superpage, which is newer than all of its stream before.
    pub(crate) fn push(&mut self, stream: Stream, generation: u64) {
        self.superpages.push_back((stream, generation));
    }

    /// A superpage is on flash, or will not be.
    pub(crate) fn remove(&mut self, stream: Stream, generation: u64) {
        if let Some(at) = self.superpages.iter().position(|&superpage| superpage == (stream, generation)) {
            self.superpages.remove(at);
        }
    }

    pub(crate) fn contains(&self, superpage: (Stream, u64)) -> bool {
        self.superpages.contains(&superpage)
    }

    /// Whether there is one of these streams that is as old as this generation of its stream, or older.
    pub(crate) fn holds_up(&self, streams: StreamSet, generation: &ByStream<u64>) -> bool {
        let mut not_seen = streams;
        for &(stream, oldest) in &self.superpages {
            if not_seen.contains(stream) {
                if oldest <= generation[stream] {
                    return true;
                }
                not_seen.remove(stream);
                if not_seen == StreamSet::EMPTY {
                    return false;
                }
            }
        }
        false
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Stream, u64)> {
        self.superpages.iter().copied()
    }
}

crate::state::state! { Unprogrammed { lists { superpages } } }

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_it_says_is_what_a_look_at_all_of_them_says(steps: Vec<(u8, u8, prop::sample::Index)>) {
            let mut superpages = Unprogrammed::default();
            let mut all: Vec<(Stream, u64)> = Vec::new();
            for (generation, (kind, streams, which)) in (1_u64..).zip(steps) {
                if kind % 3 > 0 || all.is_empty() {
                    let stream = Stream::host(streams % 3);
                    superpages.push(stream, generation);
                    all.push((stream, generation));
                } else {
                    let (stream, generation) = all.swap_remove(which.index(all.len()));
                    superpages.remove(stream, generation);
                }
                let mut asked = StreamSet::EMPTY;
                (0..3).filter(|n| streams >> (2 + n) & 1 == 1).for_each(|n| asked.insert(Stream::host(n)));
                let mut until = ByStream::all(0);
                (0..3).for_each(|n| until[Stream::host(n)] = which.index(generation as usize + 1) as u64 + u64::from(n));
                let waits = |&(stream, n): &(Stream, u64)| asked.contains(stream) && n <= until[stream];
                prop_assert_eq!(superpages.holds_up(asked, &until), all.iter().any(waits));
                prop_assert!(all.iter().all(|&superpage| superpages.contains(superpage)));
                prop_assert_eq!(superpages.iter().count(), all.len());
            }
        }
    }
}
