//! Where the pages of a table are on the drive, and in how long writes they are written.
//!
//! ```text
//!   file ── extents (FIEMAP) ──▶ block device ── + where it starts on the drive ──▶ drive: hot location, or not
//! ```
//!
//! Without a patch three things can be chosen: the page size of an instance; where on the drive its file system starts
//! (a partition, a loop device with an offset); and how long the longest request is that the kernel sends
//! (`max_sectors_kb`), which cuts a page into two writes. A file that is written again from outside can be written in
//! any lengths, while no server runs.
//!
//! Source: Kakaraparthy et al., PVLDB 13(4), 2019: pages as long as a chunk that start at hot locations; their patch
//! moves every position in a table's file by half a page.

use std::path::Path;

use flashwise_block::{ByteSize, DirectFile, Extent, IoBuffer};
use flashwise_profile::HotLocation;

use crate::StudyError;

/// What a file is written again with: as long as a request may be.
const STEP: ByteSize = ByteSize::mib(1);

/// A way to place pages and to write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    /// InnoDB's page.
    pub(super) page: Page,
    /// Whether the file system starts at a hot location rather than at the drive's start.
    pub(super) is_placed: bool,
    /// How pages reach the drive.
    pub(super) writes: Writes,
}

/// InnoDB's page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// MariaDB's own.
    Default,
    /// As long as the drive's chunk.
    Chunk,
}

/// How pages reach the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// As the server and the kernel do it: a page is one request.
    Whole,
    /// The kernel cuts requests where they are longer than half a chunk.
    Halved,
    /// As [`Self::Whole`], and before the server starts the table is written again in long requests that start in the
    /// middle of a page.
    Bulk,
}

impl Page {
    /// MariaDB's default, 16 KiB.
    pub(super) const DEFAULT_BYTES: u64 = 16 << 10;

    pub(super) fn bytes(self, chunk: ByteSize) -> ByteSize {
        match self {
            Self::Default => ByteSize(Self::DEFAULT_BYTES),
            Self::Chunk => chunk,
        }
    }
}

/// Of a file's pages, how many start at a hot location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) pages: u64,
    /// Those that start at a hot location and are on the drive in one piece.
    pub(super) hot: u64,
    /// Those that are in more than one piece.
    pub(super) torn: u64,
    pub(super) extents: usize,
}

/// Looks at the extents of a file on a block device that starts `start` bytes behind the drive's.
pub(super) fn placed(extents: &[Extent], start: ByteSize, page: ByteSize, hot: HotLocation) -> Placed {
    let end = extents.last().map_or(0, |last| last.offset.0 + last.length.0);
    let mut found = Placed { pages: end / page.0, extents: extents.len(), ..Placed::default() };
    let mut at = 0;
    for number in 0..found.pages {
        let first = number * page.0;
        while extents.get(at).is_some_and(|extent| extent.offset.0 + extent.length.0 <= first) {
            at += 1;
        }
        let Some(extent) = extents.get(at) else { break };
        match first + page.0 <= extent.offset.0 + extent.length.0 {
            true => {
                let on_drive = start.0 + extent.drive_offset.0 + (first - extent.offset.0);
                found.hot += u64::from(on_drive % hot.period_bytes == hot.offset_bytes % hot.period_bytes);
            }
            false => found.torn += 1,
        }
    }
    found
}

/// Writes a file anew in place, in long requests, the first of which is `lead` long.
///
/// # Errors
/// Where it cannot be read or written; it is to be taken as lost then.
pub(super) fn write_anew(path: &Path, lead: ByteSize) -> Result<(), StudyError> {
    let file = DirectFile::open(path)?;
    let (mut at, mut length) = (0, lead.0);
    while at < file.size().0 {
        let mut bytes = IoBuffer::zeroed(length.min(file.size().0 - at) as usize);
        file.read_at(&mut bytes, ByteSize(at))?;
        file.write_at(&bytes, ByteSize(at))?;
        (at, length) = (at + bytes.len() as u64, STEP.0);
    }
    Ok(file.sync()?)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    const BLOCK: u64 = 4096;

    fn extents_of(pieces: &[(u64, u64)]) -> Vec<Extent> {
        let mut offset = 0;
        let extent = |&(drive_offset, blocks): &(u64, u64)| {
            let length = ByteSize(blocks * BLOCK);
            let extent = Extent { offset: ByteSize(offset), drive_offset: ByteSize(drive_offset * BLOCK), length };
            offset += length.0;
            extent
        };
        pieces.iter().map(extent).collect()
    }

    /// The same from a table of blocks, one by one.
    fn naively(pieces: &[(u64, u64)], start: u64, page: u64, hot: HotLocation) -> Placed {
        let blocks: Vec<u64> = pieces.iter().flat_map(|&(at, count)| at..at + count).collect();
        let mut found = Placed { extents: pieces.len(), ..Placed::default() };
        for page in blocks.chunks_exact((page / BLOCK) as usize) {
            found.pages += 1;
            if page.windows(2).any(|pair| pair[1] != pair[0] + 1) {
                found.torn += 1;
            } else if (start + page[0] * BLOCK) % hot.period_bytes == hot.offset_bytes {
                found.hot += 1;
            }
        }
        found
    }

    #[test]
    fn pages_at_hot_locations_are_counted_as_from_a_table_of_blocks() {
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let hot = HotLocation { period_bytes: 65_536, offset_bytes: 32_768 };
        let mut seen = Placed::default();
        for _ in 0..2_000 {
            let mut free = 0;
            let piece = |_| {
                // A block is left out between two, so that no piece continues where the last one ended.
                let at = free + 1 + random.random_range(0..40_u64);
                let blocks = if random.random() { 16 * random.random_range(1..4) } else { random.random_range(1..40) };
                free = at + blocks;
                (at, blocks)
            };
            let pieces: Vec<(u64, u64)> = (0..6).map(piece).collect();
            let start = 8_192 * random.random_range(0..8_u64);
            for page in [16_384, 65_536] {
                let found = placed(&extents_of(&pieces), ByteSize(start), ByteSize(page), hot);
                assert_eq!(found, naively(&pieces, start, page, hot), "{pieces:?}, from {start}");
                seen.hot += found.hot;
                seen.torn += found.torn;
            }
        }
        assert!(seen.hot > 100 && seen.torn > 100, "{seen:?}");
    }

    #[test]
    fn a_partition_that_begins_at_a_hot_location_has_all_of_an_aligned_files_pages_there() {
        let hot = HotLocation { period_bytes: 65_536, offset_bytes: 32_768 };
        let extents = extents_of(&[(160, 64), (1_600, 16)]);
        let look = |start| placed(&extents, ByteSize(start), ByteSize::kib(64), hot);
        assert_eq!((look(0).hot, look(32_768).hot, look(32_768).pages), (0, 5, 5));
    }

    #[test]
    fn a_file_that_is_written_anew_is_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.ibd");
        let bytes: Vec<u8> = (0..(5_u32 << 20) / 8 + 512).flat_map(|n| u64::from(n * 7).to_le_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        match write_anew(&path, ByteSize::kib(32)) {
            Ok(()) => assert!(std::fs::read(&path).unwrap() == bytes),
            // There is no direct I/O everywhere.
            Err(error) => assert!(error.to_string().contains("table.ibd"), "{error}"),
        }
    }
}
