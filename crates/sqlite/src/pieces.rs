//! Writes that must reach the drive in pieces, through a page cache that joins them.
//!
//! A drive with hot locations cuts a request into chunks from the request's own start ([`crate::layout`]), so pages at
//! hot locations must be written up to the end of a chunk, and then from there. In a file system a write ends up as
//! dirty pages, and a sync makes one request of them. Therefore the spans are kept until the sync, which first starts
//! write-back of each piece by itself:
//!
//! ```text
//!   write ─▶ note(span) ─▶ …                      sync ─▶ take(): joined, cut at chunks ─▶ write-back of each ─▶ fsync
//! ```
//!
//! Not at the write: a page that a transaction spills may change again, and the drive would write it each time.
//!
//! The kernel writes back folios as a whole (on XFS, and on ext4 since Linux 6.16), and a write makes folios as long as
//! itself. Therefore no call that writes crosses a chunk's border ([`writes`]).
//!
//! **Limits.** Pages that the kernel writes back by itself before the sync, it joins as it likes. Where read-ahead of a
//! scan has put both sides of a chunk's border into one folio, a page that changes across the border is one request,
//! and is cold until it is written again in other folios (`examples/hot_updates.rs` measures it).
//!
//! Source: sync_file_range(2); Linux 6.18, `fs/iomap/buffered-io.c` `iomap_writeback_folio`, `fs/ext4/inode.c`
//! `mpage_process_page_bufs`.

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
pub(crate) struct Pieces {
    chunks: Option<Chunks>,
    /// Ends by starts; they may overlap.
    spans: BTreeMap<u64, u64>,
}

impl Pieces {
    /// A write to the file. One that starts with a chunk, or that lies in one, needs nothing.
    pub(crate) fn note(&mut self, start: u64, length: u64, how: Cut) {
        let Cut::Chunks(chunks) = how else { return };
        let left = chunks.left(start);
        if left == chunks.length || length <= left {
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
    pub(crate) fn take(&mut self) -> Vec<Span> {
        let spans = std::mem::take(&mut self.spans);
        self.cut(spans)
    }

    /// The pieces of what was noted and starts in a batch; the rest stays noted.
    pub(crate) fn take_of(&mut self, batch: Span) -> Vec<Span> {
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

/// The single writes of a write: none crosses a chunk's border.
pub(crate) fn writes(start: u64, data: &[u8], how: Cut) -> impl Iterator<Item = (u64, &[u8])> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = start + done as u64;
        let rest = data.get(done..).filter(|rest| !rest.is_empty())?;
        let length = match how {
            Cut::Whole => rest.len(),
            Cut::Chunks(chunks) => usize::try_from(chunks.left(at)).unwrap_or(usize::MAX).min(rest.len()),
        };
        done += length;
        Some((at, &rest[..length]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const CHUNKS: Cut = Cut::Chunks(Chunks { length: 64 * KIB, first: 0 });

    fn pieces(writes: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut noted = Pieces::default();
        writes.iter().for_each(|&(start, length)| noted.note(start * KIB, length * KIB, CHUNKS));
        let found = noted.take().iter().map(|span| (span.start / KIB, span.length / KIB)).collect();
        assert!(noted.take().is_empty(), "they are taken once");
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
        let mut noted = Pieces::default();
        noted.note(32 * KIB, 64 * KIB, Cut::Whole);
        assert!(noted.take().is_empty());
    }

    #[test]
    fn no_single_write_crosses_a_border() {
        let data: Vec<u8> = (0..200 << 10).map(|at| (at % 251) as u8).collect();
        let shifted = Cut::Chunks(Chunks { length: 64 * KIB, first: 4 * KIB });
        for (how, expected) in
            [(Cut::Whole, vec![200]), (CHUNKS, vec![32, 64, 64, 40]), (shifted, vec![36, 64, 64, 36])]
        {
            let all: Vec<_> = writes(32 * KIB, &data, how).collect();
            assert_eq!(all.iter().map(|(_, bytes)| bytes.len() as u64 / KIB).collect::<Vec<_>>(), expected);
            assert_eq!(all.iter().flat_map(|(_, bytes)| bytes.to_vec()).collect::<Vec<_>>(), data);
            all.windows(2).for_each(|two| assert_eq!(two[0].0 + two[0].1.len() as u64, two[1].0));
        }
        assert_eq!(writes(0, &[], CHUNKS).count(), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut noted = Pieces::default();
        (0..2 * MOST as u64).for_each(|page| noted.note((128 * page + 32) * KIB, 64 * KIB, CHUNKS));
        assert_eq!(noted.take().len(), 2 * MOST);
    }

    #[test]
    fn a_span_that_is_known_grows_where_no_other_has_space() {
        let mut noted = Pieces::default();
        (0..MOST as u64).for_each(|page| noted.note((128 * page + 32) * KIB, 64 * KIB, CHUNKS));
        noted.note(32 * KIB, 96 * KIB, CHUNKS);
        assert_eq!(
            noted.take()[..2],
            [(32, 32), (64, 64)].map(|(at, length)| Span { start: at * KIB, length: length * KIB })
        );
    }

    #[test]
    fn a_batch_takes_its_own_pieces_and_leaves_the_others() {
        let mut noted = Pieces::default();
        [32, 160, 288].into_iter().for_each(|at| noted.note(at * KIB, 64 * KIB, CHUNKS));
        let starts = |pieces: Vec<Span>| pieces.iter().map(|piece| piece.start / KIB).collect::<Vec<_>>();
        assert_eq!(starts(noted.take_of(Span { start: 160 * KIB, length: 64 * KIB })), [160, 192]);
        assert_eq!(starts(noted.take()), [32, 64, 288, 320]);
    }
}
