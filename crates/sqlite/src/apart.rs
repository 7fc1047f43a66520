//! Writes that must reach the drive in pieces, through a page cache that joins them.
//!
//! A drive with hot locations cuts a request into chunks from the request's own start ([`crate::layout`]), so pages at
//! hot locations must be written up to the end of a chunk, and then from there. In a file system a write ends up as
//! dirty pages, and a sync makes one request of them. Therefore the spans are kept until the sync, which first starts
//! write-back of each piece by itself:
//!
//! ```text
//!   write ─▶ note(span) ─▶ …                     sync ─▶ pieces(): joined, cut at chunks ─▶ write-back of each ─▶ fsync
//! ```
//!
//! Not at the write: a page that a transaction spills may change again, and the drive would write it each time. Pages
//! that the kernel writes back by itself before the sync, it joins as it likes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::bytes::Span;
use crate::layout::{Chunks, cut};
use crate::store::Cut;

/// Longest piece: with pages scattered in memory, the 127 segments that Linux gives an NVMe drive
/// (`flashwise_kernel::QueueLimits`) end a request at 508 KiB, and this is the largest power of two below.
const LONGEST: u64 = 256 << 10;
/// Most spans that are kept: 1 GiB of pages of 64 KiB, in about 1 MiB of memory. What is written beyond them until the
/// sync is left to the kernel.
const MOST: usize = 16 << 10;

/// Spans of a file that were written since the last sync and must reach the drive in pieces.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    chunks: Option<Chunks>,
    /// Ends by starts; they may overlap.
    spans: BTreeMap<u64, u64>,
}

impl Apart {
    /// A write to the file. One that starts with a chunk, or that lies in one, needs nothing.
    pub(crate) fn note(&mut self, start: u64, length: u64, how: Cut) {
        let Cut::Chunks(chunks) = how else { return };
        let into = (start + (chunks.length - chunks.first)) % chunks.length;
        if into == 0 || into + length <= chunks.length {
            return;
        }
        let (end, is_full) = (start + length, self.spans.len() >= MOST);
        match self.spans.entry(start) {
            Entry::Occupied(mut known) => _ = known.insert(end.max(*known.get())),
            Entry::Vacant(_) if is_full => {}
            Entry::Vacant(free) => _ = free.insert(end),
        }
        self.chunks = Some(chunks);
    }

    /// The pieces of all that was noted, adjacent spans joined, in the order of the file. Nothing is noted any more.
    pub(crate) fn pieces(&mut self) -> Vec<Span> {
        let spans = std::mem::take(&mut self.spans);
        self.cut(spans)
    }

    /// The pieces of what was noted and starts in a batch; the rest stays noted.
    pub(crate) fn pieces_of(&mut self, batch: Span) -> Vec<Span> {
        let mut spans = self.spans.split_off(&batch.start);
        let mut behind = spans.split_off(&batch.end());
        self.spans.append(&mut behind);
        self.cut(spans)
    }

    fn cut(&self, spans: BTreeMap<u64, u64>) -> Vec<Span> {
        let Some(chunks) = self.chunks else { return Vec::new() };
        let mut joined: Vec<Span> = Vec::new();
        for (start, end) in spans {
            match joined.last_mut() {
                Some(last) if start <= last.end() => last.length = last.end().max(end) - last.start,
                _ => joined.push(Span { start, length: end - start }),
            }
        }
        joined.into_iter().flat_map(|span| cut(span.start, span.length, chunks, LONGEST)).collect()
    }
}

/// The pieces of a write at once, for a file that is written from its start to its end.
pub(crate) fn at_once(start: u64, length: u64, how: Cut) -> Vec<Span> {
    match how {
        Cut::Whole => vec![Span { start, length }],
        Cut::Chunks(chunks) => cut(start, length, chunks, LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const CHUNKS: Cut = Cut::Chunks(Chunks { length: 64 * KIB, first: 0 });

    fn pieces(writes: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut apart = Apart::default();
        writes.iter().for_each(|&(start, length)| apart.note(start * KIB, length * KIB, CHUNKS));
        let found = apart.pieces().iter().map(|span| (span.start / KIB, span.length / KIB)).collect();
        assert!(apart.pieces().is_empty(), "they are taken once");
        found
    }

    #[test]
    fn a_page_that_starts_within_a_chunk_is_two_pieces() {
        assert_eq!(pieces(&[(32, 64)]), [(32, 32), (64, 32)]);
    }

    #[test]
    fn adjacent_pages_share_a_piece_for_the_whole_chunk_between_them() {
        assert_eq!(pieces(&[(96, 64), (32, 64), (32, 64)]), [(32, 32), (64, 64), (128, 32)]);
        assert_eq!(pieces(&[(32, 1024)]), [(32, 32), (64, 256), (320, 256), (576, 256), (832, 192), (1024, 32)]);
    }

    #[test]
    fn what_starts_with_a_chunk_or_lies_in_one_is_left_to_the_kernel() {
        assert_eq!(pieces(&[(0, 64), (64, 256), (36, 4), (32, 32)]), []);
        let mut apart = Apart::default();
        apart.note(32 * KIB, 64 * KIB, Cut::Whole);
        assert!(apart.pieces().is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut apart = Apart::default();
        (0..2 * MOST as u64).for_each(|page| apart.note((128 * page + 32) * KIB, 64 * KIB, CHUNKS));
        assert_eq!(apart.pieces().len(), 2 * MOST);
    }

    #[test]
    fn a_span_that_is_known_grows_where_no_other_has_space() {
        let mut apart = Apart::default();
        (0..MOST as u64).for_each(|page| apart.note((128 * page + 32) * KIB, 64 * KIB, CHUNKS));
        apart.note(32 * KIB, 96 * KIB, CHUNKS);
        assert_eq!(
            apart.pieces()[..2],
            [(32, 32), (64, 64)].map(|(at, length)| Span { start: at * KIB, length: length * KIB })
        );
    }

    #[test]
    fn a_batch_takes_its_own_pieces_and_leaves_the_others() {
        let mut apart = Apart::default();
        [32, 160, 288].into_iter().for_each(|at| apart.note(at * KIB, 64 * KIB, CHUNKS));
        let starts = |pieces: Vec<Span>| pieces.iter().map(|piece| piece.start / KIB).collect::<Vec<_>>();
        assert_eq!(starts(apart.pieces_of(Span { start: 160 * KIB, length: 64 * KIB })), [160, 192]);
        assert_eq!(starts(apart.pieces()), [32, 64, 288, 320]);
    }
}
