//! The layout of frames of a write-ahead log in the stored file, and the header that describes it.
//!
//! SQLite's log is a header of 32 bytes and then frames: 24 bytes that describe a page, and the page. So no page in it
//! starts at any boundary of a drive. A stored log keeps SQLite's bytes and places them elsewhere, frame by frame; the
//! place of a frame depends on its number alone, so that every process and every recovery finds it:
//!
//! ```text
//!   split       │ log header │ frame headers │ page │ page │ page │ … │ frame headers │ page │ …
//!                            └ a stripe or more, pages start on its end ┘
//!   contained   │ log header │ frame frame frame pad │ frame frame frame pad │ …
//!                            └───── flash page ──────┘
//! ```
//!
//! - **write-aligned-stripes** ([`LogLayout::Aligned`]): *split*. Frame headers have blocks of their own, 170 in 4 KiB,
//!   so that a page starts at a stripe and a multiple of pages fills stripes. A commit writes its pages and one block
//!   of headers; in SQLite's own form it writes the same number of blocks, sharing the first with the commit before.
//! - **sparse log** ([`LogLayout::Sparse`]): *split*, with a block of 4 KiB for each frame header. No block is ever
//!   written twice, and a drive that compresses stores almost nothing for the zeros.
//! - **contain-write-in-flash-page** ([`LogLayout::Contained`]): as many frames as fit into a flash page, then padding.
//!   If that would leave more than an eighth of a flash page unused, *split*, which contains pages as well.
//!
//! Sources: Kakaraparthy, Patel, Park, Kroth, "Optimizing Databases by Learning Hidden Parameters of Solid State
//! Drives", PVLDB 13(4), 2019 (the first and the third; their prototype neither syncs its headers nor recovers from
//! them). Qiao et al., "Closing the B+-tree vs. LSM-tree Write Amplification Gap on Modern Storage Hardware with
//! Built-in Transparent Compression", FAST 2022 (the second). The form of SQLite's log:
//! <https://www.sqlite.org/fileformat2.html#walformat>.

use flashwise_block::ByteSize;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::SqliteError;
use crate::bytes::{Span, is_page_size, u32_at, u64_at};

/// How the write-ahead log of a database is laid out in its stored file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "log", rename_all = "kebab-case")]
pub enum LogLayout {
    /// As SQLite writes it.
    #[default]
    Plain,
    /// write-aligned-stripes: pages start where stripes do.
    Aligned {
        /// The drive's stripe: a multiple of 4 KiB, up to 16 MiB.
        stripe: ByteSize,
    },
    /// contain-write-in-flash-page: padding keeps frames from crossing flash pages.
    Contained {
        /// The drive's flash page: a power of two, 4 KiB to 1 MiB.
        flash_page: ByteSize,
    },
    /// Sparse log: pages start where stripes do, and every frame starts fresh blocks of 4 KiB.
    Sparse {
        /// The drive's stripe, or 4 KiB.
        stripe: ByteSize,
    },
}

/// The unit of a page cache and of most drives.
const BLOCK: u64 = 4096;
/// SQLite's log header.
pub(crate) const SQLITE_HEADER: u64 = 32;
/// SQLite's frame header.
pub(crate) const FRAME_HEADER: u64 = 24;
/// Frame headers that are packed into a block.
const HEADERS_PER_BLOCK: u64 = BLOCK / FRAME_HEADER;
/// Frame headers are kept in areas of at least this length, so that a log of usual length has one.
const HEADER_AREA: u64 = 64 << 10;
/// Longest stripe that a layout takes.
const MAX_STRIPE: u64 = 16 << 20;
/// Longest flash page that a layout takes.
const MAX_FLASH_PAGE: u64 = 1 << 20;
/// Our header; SQLite's follows it.
pub(crate) const LOG_HEADER: usize = 512;

impl LogLayout {
    /// Bytes of a stored log before its first page, at most.
    pub(crate) fn before_pages(&self) -> u64 {
        match *self {
            Self::Plain => 0,
            Self::Aligned { stripe: ByteSize(unit) }
            | Self::Sparse { stripe: ByteSize(unit) }
            | Self::Contained { flash_page: ByteSize(unit) } => unit + HEADER_AREA.next_multiple_of(unit.max(1)),
        }
    }

    /// The layout's name, as in the header.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Aligned { .. } => "aligned",
            Self::Contained { .. } => "contained",
            Self::Sparse { .. } => "sparse",
        }
    }

    /// The length that the layout goes by; zero for the plain one.
    pub(crate) const fn unit(&self) -> u64 {
        match *self {
            Self::Plain => 0,
            Self::Aligned { stripe } | Self::Sparse { stripe } => stripe.0,
            Self::Contained { flash_page } => flash_page.0,
        }
    }

    /// The layout of that name and length; `None` for an unknown name.
    pub(crate) fn of(name: &str, unit: u64) -> Option<Self> {
        let unit = ByteSize(unit);
        Some(match name {
            "plain" | "" => Self::Plain,
            "aligned" => Self::Aligned { stripe: unit },
            "contained" => Self::Contained { flash_page: unit },
            "sparse" => Self::Sparse { stripe: unit },
            _ => return None,
        })
    }

    /// Checks the length.
    ///
    /// # Errors
    /// [`SqliteError::Layout`] with the length that is wrong.
    pub fn check(&self) -> Result<(), SqliteError> {
        let refuse = |what: &str, rule: &str| {
            let unit = ByteSize(self.unit());
            Err(SqliteError::Layout(format!("log with a {what} of {unit}: it must be {rule}")))
        };
        match *self {
            Self::Plain => Ok(()),
            Self::Aligned { stripe } | Self::Sparse { stripe } => {
                match (1..=MAX_STRIPE).contains(&stripe.0) && stripe.0.is_multiple_of(BLOCK) {
                    true => Ok(()),
                    false => refuse("stripe", "a multiple of 4 KiB, at most 16 MiB"),
                }
            }
            Self::Contained { flash_page } => {
                match (BLOCK..=MAX_FLASH_PAGE).contains(&flash_page.0) && flash_page.0.is_power_of_two() {
                    true => Ok(()),
                    false => refuse("flash page", "a power of two, 4 KiB to 1 MiB"),
                }
            }
        }
    }
}

/// The arrangement of frames, for one page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frames {
    /// Frame headers apart from pages, in groups of an area of headers and an area of pages.
    Split { headers_per_block: u64, area: u64, in_group: u64, group: u64 },
    /// Whole frames, a number of them per flash page.
    Packed { flash_page: u64, in_page: u64 },
}

/// The places of the bytes of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    page: u64,
    /// Where the first group or flash page starts.
    begin: u64,
    frames: Frames,
}

impl Geometry {
    /// The places for a layout that is not plain; `page` is SQLite's page size.
    pub(crate) fn new(layout: LogLayout, page: u64) -> Option<Self> {
        if !is_page_size(page) || layout.check().is_err() {
            return None;
        }
        let frame = FRAME_HEADER + page;
        match layout {
            LogLayout::Plain => None,
            LogLayout::Aligned { stripe } => Some(Self::split(page, stripe.0, HEADERS_PER_BLOCK)),
            LogLayout::Sparse { stripe } => Some(Self::split(page, stripe.0, 1)),
            LogLayout::Contained { flash_page: ByteSize(flash_page) } => {
                let in_page = flash_page / frame;
                // Padding that saves a drive some writes and costs an eighth of all others is no gain.
                match in_page * frame * 8 >= flash_page * 7 {
                    true => Some(Self { page, begin: flash_page, frames: Frames::Packed { flash_page, in_page } }),
                    false => Some(Self::split(page, flash_page, HEADERS_PER_BLOCK)),
                }
            }
        }
    }

    fn split(page: u64, stripe: u64, headers_per_block: u64) -> Self {
        let area = HEADER_AREA.next_multiple_of(stripe);
        let in_group = area / BLOCK * headers_per_block;
        let group = (area + in_group * page).next_multiple_of(stripe);
        Self { page, begin: stripe, frames: Frames::Split { headers_per_block, area, in_group, group } }
    }

    /// Length of a frame in SQLite's log.
    pub(crate) fn frame(&self) -> u64 {
        FRAME_HEADER + self.page
    }

    /// Where frame `n` (from 0) has its header and its page. `None` beyond any file.
    fn place(&self, n: u64) -> Option<(u64, u64)> {
        match self.frames {
            Frames::Split { headers_per_block, area, in_group, group } => {
                let start = (n / in_group).checked_mul(group)?.checked_add(self.begin)?;
                let n = n % in_group;
                let header = start + n / headers_per_block * BLOCK + n % headers_per_block * FRAME_HEADER;
                Some((header, start.checked_add(area + n * self.page)?))
            }
            Frames::Packed { flash_page, in_page } => {
                let start = (n / in_page).checked_mul(flash_page)?.checked_add(self.begin)?;
                let header = start.checked_add(n % in_page * self.frame())?;
                Some((header, header.checked_add(FRAME_HEADER)?))
            }
        }
    }

    /// The stored places of a span of SQLite's log, in its order; empty beyond any file.
    pub(crate) fn places(&self, span: Span) -> Vec<Span> {
        let mut places: Vec<Span> = Vec::with_capacity(2);
        let mut at = span.start;
        while at < span.end() {
            let Some((start, length)) = self.piece(at) else { return Vec::new() };
            let length = length.min(span.end() - at);
            match places.last_mut() {
                Some(last) if last.end() == start => last.length += length,
                _ => places.push(Span { start, length }),
            }
            at += length;
        }
        places
    }

    /// Where byte `at` of SQLite's log is stored, and how many bytes from there are contiguous.
    fn piece(&self, at: u64) -> Option<(u64, u64)> {
        let Some(behind) = at.checked_sub(SQLITE_HEADER) else {
            return Some((LOG_HEADER as u64 + at, SQLITE_HEADER - at));
        };
        let within = behind % self.frame();
        let (header, page) = self.place(behind / self.frame())?;
        match within.checked_sub(FRAME_HEADER) {
            None => Some((header + within, FRAME_HEADER - within)),
            Some(within) => Some((page + within, self.page - within)),
        }
    }

    /// The length of SQLite's log, if the stored file has `stored` bytes: an incomplete last frame does not count.
    pub(crate) fn length(&self, stored: u64) -> u64 {
        if stored < LOG_HEADER as u64 + SQLITE_HEADER {
            return 0;
        }
        let behind = stored.saturating_sub(self.begin);
        let frames = match self.frames {
            Frames::Split { area, in_group, group, .. } => {
                let pages = (behind % group).saturating_sub(area) / self.page;
                behind / group * in_group + pages.min(in_group)
            }
            Frames::Packed { flash_page, in_page } => {
                behind / flash_page * in_page + (behind % flash_page / self.frame()).min(in_page)
            }
        };
        SQLITE_HEADER + frames * self.frame()
    }

    /// How long the stored file is, where SQLite's log is to have `length` bytes.
    pub(crate) fn stored(&self, length: u64) -> u64 {
        if length < SQLITE_HEADER {
            return 0;
        }
        match (length - SQLITE_HEADER).div_ceil(self.frame()).checked_sub(1) {
            None => LOG_HEADER as u64 + SQLITE_HEADER,
            Some(last) => self.place(last).map_or(u64::MAX, |(_, page)| page.saturating_add(self.page)),
        }
    }
}

const MAGIC: &[u8] = b"flashwise log layout ";
const TEXT: &str = "flashwise log layout 1: the write-ahead log of a database that the flashwise VFS lays out; keep it \
                    beside its database";
const TEXT_BYTES: usize = 128;
const NAME_AT: usize = 128;
const NAME_BYTES: usize = 32;
const VERSION: u32 = 1;
const VERSION_AT: usize = 160;
const UNIT_AT: usize = 168;
const PAGE_AT: usize = 176;
const CHECKSUM_AT: usize = 504;
const _: () = assert!(TEXT.len() < TEXT_BYTES, "the text and its newline fit");

/// Content of the first bytes of a stored log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub layout: LogLayout,
    pub page: u64,
}

impl LogHeader {
    /// The stored header.
    pub(crate) fn encode(&self) -> [u8; LOG_HEADER] {
        let mut bytes = [0; LOG_HEADER];
        bytes[..TEXT_BYTES].fill(b' ');
        bytes[..TEXT.len()].copy_from_slice(TEXT.as_bytes());
        bytes[TEXT_BYTES - 1] = b'\n';
        let name = self.layout.name();
        bytes[NAME_AT..][..name.len()].copy_from_slice(name.as_bytes());
        bytes[VERSION_AT..][..4].copy_from_slice(&VERSION.to_le_bytes());
        bytes[UNIT_AT..][..8].copy_from_slice(&self.layout.unit().to_le_bytes());
        bytes[PAGE_AT..][..8].copy_from_slice(&self.page.to_le_bytes());
        let checksum = xxh3_64(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header without trusting it. `None` if there is none: the file is new, or its creation was interrupted
    /// before anything in it was acknowledged.
    pub(crate) fn decode(head: &[u8]) -> Result<Option<Self>, String> {
        let damaged = |what: &str| Err(format!("the header of the log is damaged: {what}; restore it from a backup"));
        if head.len() < LOG_HEADER || head[..LOG_HEADER].iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if !head.starts_with(MAGIC) {
            return damaged("it does not start like a log of flashwise");
        }
        if head[MAGIC.len()] != b'1' || head[MAGIC.len() + 1].is_ascii_digit() {
            return Err("the log has a newer version; use a newer flashwise".into());
        }
        let (stored, computed) = (u64_at(head, CHECKSUM_AT), xxh3_64(&head[..CHECKSUM_AT]));
        if stored != computed || u32_at(head, VERSION_AT) != VERSION {
            return damaged("it does not match its checksum");
        }
        let name = &head[NAME_AT..][..NAME_BYTES];
        let name = String::from_utf8_lossy(name);
        let layout = LogLayout::of(name.trim_end_matches('\0'), u64_at(head, UNIT_AT));
        let page = u64_at(head, PAGE_AT);
        match layout.filter(|layout| *layout != LogLayout::Plain && layout.check().is_ok()) {
            Some(layout) if is_page_size(page) => Ok(Some(Self { layout, page })),
            _ => damaged("its fields have impossible values"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layouts() -> impl Strategy<Value = (LogLayout, u64)> {
        let unit = (0_u32..7).prop_map(|shift| ByteSize(4096 << shift));
        let stripe = (1_u64..40).prop_map(|blocks| ByteSize(4096 * blocks));
        let layout = prop_oneof![
            stripe.clone().prop_map(|stripe| LogLayout::Aligned { stripe }),
            stripe.prop_map(|stripe| LogLayout::Sparse { stripe }),
            unit.prop_map(|flash_page| LogLayout::Contained { flash_page }),
        ];
        (layout, (9_u32..=16).prop_map(|shift| 1 << shift))
    }

    #[test]
    fn pages_start_on_stripes_and_headers_share_blocks() {
        let geometry = Geometry::new(LogLayout::Aligned { stripe: ByteSize::kib(64) }, 32768).unwrap();
        let places = |n: u64| geometry.place(n).unwrap();
        assert_eq!(places(0), (65536, 131_072));
        assert_eq!(places(1), (65536 + 24, 131_072 + 32768));
        assert_eq!(places(170), (65536 + 4096, 131_072 + 170 * 32768));
        assert_eq!(places(2720).0, 131_072 + 2720 * 32768, "the next headers follow the last page");
    }

    #[test]
    fn a_sparse_frame_shares_no_block() {
        let geometry = Geometry::new(LogLayout::Sparse { stripe: ByteSize::kib(4) }, 4096).unwrap();
        let all: Vec<_> = (0..40).map(|n| geometry.place(n).unwrap()).collect();
        let mut blocks: Vec<_> = all.iter().flat_map(|&(header, page)| [header, page]).collect();
        assert!(blocks.iter().all(|at| at % 4096 == 0));
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), 80);
    }

    #[test]
    fn small_frames_fill_a_flash_page_and_large_ones_are_split() {
        let contained = LogLayout::Contained { flash_page: ByteSize::kib(16) };
        let packed = Geometry::new(contained, 1024).unwrap();
        assert_eq!(packed.place(14).unwrap(), (16384 + 14 * 1048, 16384 + 14 * 1048 + 24));
        assert_eq!(packed.place(15).unwrap().0, 32768, "fifteen in a flash page");
        assert!(matches!(Geometry::new(contained, 4096).unwrap().frames, Frames::Split { .. }));
    }

    #[test]
    fn any_flipped_byte_of_a_header_is_noticed() {
        let header = LogHeader { layout: LogLayout::Aligned { stripe: ByteSize::kib(64) }, page: 4096 };
        assert_eq!(LogHeader::decode(&header.encode()), Ok(Some(header)));
        for at in 0..LOG_HEADER {
            let mut bytes = header.encode();
            bytes[at] ^= 0x10;
            assert!(LogHeader::decode(&bytes).is_err(), "byte {at}");
        }
        assert_eq!(LogHeader::decode(&[0; 512]), Ok(None));
        assert_eq!(LogHeader::decode(&header.encode()[..100]), Ok(None));
    }

    #[test]
    fn impossible_layouts_are_refused() {
        let bad = [
            LogLayout::Aligned { stripe: ByteSize(0) },
            LogLayout::Aligned { stripe: ByteSize(6000) },
            LogLayout::Sparse { stripe: ByteSize(1 << 40) },
            LogLayout::Contained { flash_page: ByteSize(2048) },
            LogLayout::Contained { flash_page: ByteSize(12288) },
        ];
        for layout in bad {
            assert!(layout.check().is_err() && Geometry::new(layout, 4096).is_none(), "{layout:?}");
        }
    }

    proptest! {
        #[test]
        fn every_byte_has_a_place_of_its_own((layout, page) in layouts(), first in 0_u64..5000, count in 1_u64..40) {
            let geometry = Geometry::new(layout, page).unwrap();
            let from = SQLITE_HEADER + first * geometry.frame();
            let span = Span { start: from, length: count * geometry.frame() };
            let mut places = geometry.places(span);
            prop_assert_eq!(places.iter().map(|place| place.length).sum::<u64>(), span.length);
            places.sort_by_key(|place| place.start);
            prop_assert!(places[0].start >= LOG_HEADER as u64 + SQLITE_HEADER);
            prop_assert!(places.windows(2).all(|two| two[0].end() <= two[1].start), "{places:?}");
        }

        #[test]
        fn a_span_is_placed_as_its_halves_are((layout, page) in layouts(), at in 0_u64..300_000, length in 2_u64..200_000) {
            let geometry = Geometry::new(layout, page).unwrap();
            let half = length / 2;
            let mut halves = geometry.places(Span { start: at, length: half });
            halves.extend(geometry.places(Span { start: at + half, length: length - half }));
            let joined = |places: Vec<Span>| {
                places.into_iter().fold(Vec::<Span>::new(), |mut joined, place| {
                    match joined.last_mut() {
                        Some(last) if last.end() == place.start => last.length += place.length,
                        _ => joined.push(place),
                    }
                    joined
                })
            };
            prop_assert_eq!(joined(halves), joined(geometry.places(Span { start: at, length })));
        }

        #[test]
        fn the_length_of_a_log_follows_from_that_of_its_file((layout, page) in layouts(), frames in 0_u64..5000) {
            let geometry = Geometry::new(layout, page).unwrap();
            let length = SQLITE_HEADER + frames * geometry.frame();
            let stored = geometry.stored(length);
            prop_assert_eq!(geometry.length(stored), length);
            prop_assert!(frames == 0 || geometry.length(stored - 1) == length - geometry.frame(), "a torn frame counts");
            let end = geometry.places(Span { start: 0, length }).iter().map(Span::end).max().unwrap();
            prop_assert_eq!(stored, end);
        }

        #[test]
        fn pages_keep_to_the_drive((layout, page) in layouts(), n in 0_u64..10_000) {
            let geometry = Geometry::new(layout, page).unwrap();
            let (header, at) = geometry.place(n).unwrap();
            let touched = |start: u64, length: u64, unit: u64| (start + length - 1) / unit - start / unit + 1;
            match geometry.frames {
                Frames::Split { .. } => prop_assert_eq!(touched(header, FRAME_HEADER, BLOCK), 1, "a header within a block"),
                Frames::Packed { flash_page, .. } => {
                    prop_assert_eq!(at, header + FRAME_HEADER);
                    prop_assert_eq!(touched(header, geometry.frame(), flash_page), 1, "a frame within a flash page");
                }
            }
            if let LogLayout::Contained { flash_page } = layout {
                prop_assert_eq!(touched(at, page, flash_page.0), page.div_ceil(flash_page.0), "a page in as few flash pages");
            }
            if let LogLayout::Aligned { stripe } | LogLayout::Sparse { stripe } = layout
                && (stripe.0.is_multiple_of(page) || page.is_multiple_of(stripe.0))
            {
                prop_assert_eq!(touched(at, page, stripe.0), page.div_ceil(stripe.0), "a page in as few stripes");
            }
        }

        #[test]
        fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), ours in any::<bool>()) {
            let mut bytes = bytes;
            if ours {
                bytes.splice(0..0, MAGIC.iter().copied());
            }
            _ = LogHeader::decode(&bytes);
        }
    }
}
