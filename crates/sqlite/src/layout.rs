//! The layout of a database's bytes in the stored file, and the header that describes it.
//!
//! Some drives put consecutive chunks (64 KiB on the Samsung 960 EVO) on different channels; a chunk-long read that
//! starts mid-chunk is served by two channels, half each, and is up to 1.7 times as fast as an aligned one. Such
//! starting points are *hot locations*: `chunk·i + offset`. [`Layout::HotLocations`] shifts the whole database by
//! `offset` bytes, so that with pages of one chunk every page starts at a hot location. The first `offset` bytes of the
//! stored file contain a [`Header`]; `docs/formats/sqlite-layout.md` draws it.
//!
//! The pattern depends on how the data was *written*: such a drive cuts a write into chunk-long pieces from the write's
//! own start, so one misaligned chunk-long write moves the pieces and the hot location is lost. [`cut`] is the rule
//! that keeps it.
//!
//! Source: Kakaraparthy, Patel, Park, Kroth, "Optimizing Databases by Learning Hidden Parameters of Solid State
//! Drives", PVLDB 13(4), 2019.

use std::hash::{BuildHasher, RandomState};

use flashwise_block::ByteSize;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::SqliteError;
use crate::bytes::{HEADER_BYTES, Span, is_page_size, u32_at, u64_at};
use crate::log_layout::LogLayout;
use crate::plain_page;

/// How a new database is laid out in its stored file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "layout", rename_all = "kebab-case")]
pub enum Layout {
    /// As SQLite writes it.
    #[default]
    Plain,
    /// Shifted by `offset` after a header, so that pages of `chunk` bytes start at hot locations.
    HotLocations {
        /// The drive's chunk: a power of two, 4 KiB to 1 MiB.
        chunk: ByteSize,
        /// The hot location within a chunk: a multiple of 512 below `chunk`, not zero.
        offset: ByteSize,
    },
    /// After a header of 64 KiB, so that pages keep their alignment: for a log that plain SQLite must not find.
    Headed,
}

/// Smallest chunk that a layout takes.
pub(crate) const MIN_CHUNK: u64 = 4 << 10;
/// Largest chunk that a layout takes; the volume's extents are this long, so that chunks never straddle two.
pub(crate) const MAX_CHUNK: u64 = 1 << 20;
/// The shift of a [`Layout::Headed`] database: a multiple of every page size.
pub(crate) const HEADED: u64 = 64 << 10;

/// The only version so far.
pub(crate) const VERSION: u32 = 1;
/// The start of files from before the first release.
const FORMER_MAGIC: &[u8] = b"flashwise database layout ";
const HOT_NAME: &str = "hot-locations";
const HEADED_NAME: &str = "headed";
/// Bytes of the fields; the bytes around them are read by SQLite's own VFS ([`plain_page`]).
const LAYOUT_NAME_AT: usize = 128;
const LAYOUT_NAME_BYTES: usize = 32;
const VERSION_AT: usize = 160;
const LENGTH_AT: usize = 164;
const CHUNK_AT: usize = 168;
const OFFSET_AT: usize = 176;
const PAGE_AT: usize = 184;
const LOG_NAME_AT: usize = 192;
const LOG_NAME_BYTES: usize = 32;
const LOG_UNIT_AT: usize = 224;
const BORDER_AT: usize = 232;
const IDENTITY_AT: usize = 240;
const CHECKSUM_AT: usize = 504;
const _: () = assert!(plain_page::FREE_BEGIN <= LAYOUT_NAME_AT && IDENTITY_AT + 8 <= plain_page::ROW_BEGIN);
const _: () = assert!(plain_page::ROW_END <= CHECKSUM_AT);

impl Layout {
    /// The layout's name, as in the header.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::HotLocations { .. } => HOT_NAME,
            Self::Headed => HEADED_NAME,
        }
    }

    /// Chunk and shift of a database that is not plain.
    pub(crate) const fn shift(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Plain => None,
            Self::HotLocations { chunk, offset } => Some((chunk.0, offset.0)),
            Self::Headed => Some((HEADED, HEADED)),
        }
    }

    /// The layout for a database that plain SQLite would read incompletely: it needs a header.
    fn with_header(self) -> Self {
        if self == Self::Plain { Self::Headed } else { self }
    }

    /// Refuses pages that would not be at hot locations: those of a database, new or to be imported, at `path`.
    ///
    /// # Errors
    /// [`SqliteError::Pages`] with the page size to use.
    pub(crate) fn check_pages(&self, path: &str, page_bytes: u64) -> Result<(), SqliteError> {
        match *self {
            Self::HotLocations { chunk, .. } if chunk.0 != page_bytes => {
                Err(SqliteError::Pages { path: path.to_owned(), page: ByteSize(page_bytes), chunk })
            }
            _ => Ok(()),
        }
    }

    /// Checks chunk and offset.
    ///
    /// # Errors
    /// [`SqliteError::Layout`] with the figure that is wrong.
    pub fn check(&self) -> Result<(), SqliteError> {
        let Self::HotLocations { chunk, offset } = *self else { return Ok(()) };
        if !chunk.0.is_power_of_two() || chunk.0 < MIN_CHUNK || chunk.0 > MAX_CHUNK {
            let limits = format!("{} to {}", ByteSize(MIN_CHUNK), ByteSize(MAX_CHUNK));
            return Err(SqliteError::Layout(format!("chunk of {chunk}: it must be a power of two, {limits}")));
        }
        if offset.0 < HEADER_BYTES as u64 || offset >= chunk || !offset.0.is_multiple_of(512) {
            let rule = format!("it must be a multiple of 512 bytes, at least 512 and below the chunk of {chunk}");
            return Err(SqliteError::Layout(format!("hot location at {offset}: {rule}")));
        }
        Ok(())
    }
}

/// Content of the first bytes of a shifted file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub chunk: u64,
    /// The shift of the database.
    pub offset: u64,
    /// The first byte of the file at which a chunk of the drive starts; 0 unless the file's extents say otherwise.
    pub border: u64,
    /// SQLite's page size when the file was created; a later VACUUM can change the real one.
    pub page_bytes: u64,
    pub log: LogLayout,
    /// Identifies this database's batch log; 0 if it has none.
    pub identity: u64,
}

/// Why a header is not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("its flashwise header is cut off after {0} bytes; restore the file from a backup")]
    Short(usize),
    #[error("its flashwise header has version {0}, but this program supports version {VERSION}; use a newer flashwise")]
    Version(u32),
    #[error("its flashwise header is from before the first release; export it with the flashwise that wrote it")]
    Former,
    #[error(
        "its flashwise header does not match its checksum ({stored:016x} stored, {computed:016x} computed): the file \
         is damaged; restore it from a backup"
    )]
    Checksum { stored: u64, computed: u64 },
    #[error("its flashwise header is damaged: {0}; restore the file from a backup")]
    Field(String),
}

/// The kind of a non-empty file, from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detected {
    Plain,
    Shifted(Header),
}

/// Recognises a shifted file by its first bytes (up to [`HEADER_BYTES`] of them).
pub(crate) fn detect(head: &[u8]) -> Result<Detected, HeaderError> {
    if head.starts_with(FORMER_MAGIC) {
        return Err(HeaderError::Former);
    }
    if !plain_page::begins(head) {
        return Ok(Detected::Plain);
    }
    Header::decode(head).map(Detected::Shifted)
}

impl Header {
    /// The header of a new database; `None` where it is plain.
    pub(crate) fn new(layout: Layout, log: LogLayout, atomic_batch: bool, page_bytes: u64) -> Option<Self> {
        let layout = if log != LogLayout::Plain || atomic_batch { layout.with_header() } else { layout };
        // Any number but 0 that no other database is likely to have.
        let identity = if atomic_batch { RandomState::new().hash_one(page_bytes) | 1 } else { 0 };
        layout.shift().map(|(chunk, offset)| Self { chunk, offset, border: 0, page_bytes, log, identity })
    }

    /// The same header for a file in which the drive's chunks start at `border`: its pages are at the drive's hot
    /// locations. A layout that does not depend on chunks is unchanged.
    pub(crate) fn placed(self, border: u64) -> Self {
        match self.layout() {
            Layout::HotLocations { chunk, offset } if border < chunk.0 && border.is_multiple_of(512) => {
                Self { border, offset: shift_behind(border, offset.0, chunk.0), ..self }
            }
            _ => self,
        }
    }

    /// Where writes are cut.
    pub(crate) fn chunks(&self) -> Chunks {
        Chunks { length: self.chunk, first: self.border }
    }

    /// The stored header.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = plain_page::page();
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(LAYOUT_NAME_AT, self.layout().name().as_bytes());
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(LENGTH_AT, &(HEADER_BYTES as u32).to_le_bytes());
        put(CHUNK_AT, &self.chunk.to_le_bytes());
        put(OFFSET_AT, &self.offset.to_le_bytes());
        put(PAGE_AT, &self.page_bytes.to_le_bytes());
        if self.log != LogLayout::Plain {
            put(LOG_NAME_AT, self.log.name().as_bytes());
            put(LOG_UNIT_AT, &self.log.unit().to_le_bytes());
        }
        put(BORDER_AT, &self.border.to_le_bytes());
        put(IDENTITY_AT, &self.identity.to_le_bytes());
        let checksum = xxh3_64(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header, trusting nothing.
    pub(crate) fn decode(head: &[u8]) -> Result<Self, HeaderError> {
        if head.len() < HEADER_BYTES {
            return Err(HeaderError::Short(head.len()));
        }
        // The version comes before the checksum: a later version may keep its checksum elsewhere.
        if u32_at(head, VERSION_AT) > VERSION {
            return Err(HeaderError::Version(u32_at(head, VERSION_AT)));
        }
        let (stored, computed) = (u64_at(head, CHECKSUM_AT), xxh3_64(&head[..CHECKSUM_AT]));
        if stored != computed {
            return Err(HeaderError::Checksum { stored, computed });
        }
        Self::fields(head)
    }

    /// The fields of a header with a matching checksum; still checked, since a header can be forged.
    fn fields(head: &[u8]) -> Result<Self, HeaderError> {
        let field = |what: String| Err(HeaderError::Field(what));
        let (version, length) = (u32_at(head, VERSION_AT), u32_at(head, LENGTH_AT));
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        if length as usize != HEADER_BYTES {
            return field(format!("its length field is {length}"));
        }
        let (chunk, offset, border) = (u64_at(head, CHUNK_AT), u64_at(head, OFFSET_AT), u64_at(head, BORDER_AT));
        let is_far = chunk > MAX_CHUNK || offset > 2 * MAX_CHUNK;
        if border != 0 && (is_far || border >= chunk || !border.is_multiple_of(512)) {
            return field(format!("chunks of {chunk} bytes from byte {border} on, the database from {offset} on"));
        }
        let hot = if border == 0 { offset } else { (offset + chunk - border) % chunk };
        let name = text_at(head, LAYOUT_NAME_AT, LAYOUT_NAME_BYTES);
        let layout = match name.as_str() {
            HOT_NAME => Layout::HotLocations { chunk: ByteSize(chunk), offset: ByteSize(hot) },
            HEADED_NAME => Layout::Headed,
            _ => return field(format!("it names the unknown layout '{name}'")),
        };
        if let Err(error) = layout.check() {
            return field(error.to_string());
        }
        let log_name = text_at(head, LOG_NAME_AT, LOG_NAME_BYTES);
        let Some(log) = LogLayout::of(&log_name, u64_at(head, LOG_UNIT_AT)) else {
            return field(format!("it names the unknown layout '{log_name}' for its log"));
        };
        if let Err(error) = log.check() {
            return field(error.to_string());
        }
        let (page_bytes, identity) = (u64_at(head, PAGE_AT), u64_at(head, IDENTITY_AT));
        let header = Self { chunk, offset, border, page_bytes, log, identity };
        let is_consistent = match layout {
            Layout::HotLocations { .. } => offset == shift_behind(border, hot, chunk),
            _ => border == 0 && layout.shift() == Some((chunk, offset)),
        };
        if !is_consistent {
            return field(format!("chunk {chunk}, offset {offset} and border {border} contradict each other"));
        }
        if !is_page_size(header.page_bytes) {
            return field(format!("its page size is {}", header.page_bytes));
        }
        Ok(header)
    }

    /// The fields of a header whose checksum may be wrong, for `info`.
    pub(crate) fn decode_unchecked(head: &[u8]) -> Option<Self> {
        if head.len() < HEADER_BYTES {
            return None;
        }
        Self::fields(head).ok()
    }

    /// The layout that the header describes.
    pub(crate) fn layout(&self) -> Layout {
        match (self.chunk, self.offset, self.border) {
            (HEADED, HEADED, 0) => Layout::Headed,
            (chunk, offset, 0) => Layout::HotLocations { chunk: ByteSize(chunk), offset: ByteSize(offset) },
            (chunk, offset, border) => Layout::HotLocations {
                chunk: ByteSize(chunk),
                offset: ByteSize(offset.wrapping_add(chunk).wrapping_sub(border) % chunk),
            },
        }
    }

    /// The bytes before the database: the header, then zeros up to the offset.
    pub(crate) fn block(&self) -> Vec<u8> {
        let mut bytes = self.encode().to_vec();
        bytes.resize(self.offset as usize, 0);
        bytes
    }
}

/// The first byte after the header that is at a hot location of the drive.
fn shift_behind(border: u64, hot: u64, chunk: u64) -> u64 {
    let first = (border + hot) % chunk;
    if first < HEADER_BYTES as u64 { first + chunk } else { first }
}

/// A name that is padded with zeros.
fn text_at(bytes: &[u8], at: usize, length: usize) -> String {
    let field = bytes[at..at + length].split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(field).into_owned()
}

/// Where the chunks of a drive start in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    pub length: u64,
    /// The first byte of the file at which one starts; below `length`.
    pub first: u64,
}

impl Chunks {
    /// Bytes from a place in the file to the next chunk's start, which is not that place.
    pub(crate) fn left(self, at: u64) -> u64 {
        self.length - (at + (self.length - self.first)) % self.length
    }
}

/// Cuts a write so that no piece of chunk length or longer starts within a chunk: up to the next chunk boundary, then
/// whole chunks (as many as `max_transfer` accepts at once), then the rest.
pub(crate) fn cut(start: u64, length: u64, chunks: Chunks, max_transfer: u64) -> Vec<Span> {
    let (chunk, end) = (chunks.length, start + length);
    let whole_chunks = match max_transfer - max_transfer % chunk {
        0 => max_transfer,
        chunks => chunks,
    };
    let mut spans = Vec::new();
    let mut at = start;
    while at < end {
        let to_boundary = chunks.left(at);
        let chunks_left = (end - at) / chunk * chunk;
        let longest = match (to_boundary == chunk, chunks_left) {
            (true, 1..) => chunks_left.min(whole_chunks),
            _ => to_boundary.min(max_transfer),
        };
        let span = Span { start: at, length: longest.min(end - at) };
        at = span.end();
        spans.push(span);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: Header =
        Header { chunk: 65536, offset: 32768, border: 0, page_bytes: 65536, log: LogLayout::Plain, identity: 0 };
    const WITH_LOG: Header = Header { log: LogLayout::Aligned { stripe: ByteSize::kib(64) }, ..HEADER };
    const HEADED_ONLY: Header = Header { chunk: HEADED, offset: HEADED, ..WITH_LOG };
    const WITH_BATCHES: Header = Header { identity: 7, ..HEADER };

    #[test]
    fn a_header_is_readable_by_people_and_by_us() {
        let bytes = HEADER.encode();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.starts_with("SQLite format 3\0") && text.contains("flashwise sqlite export"), "{text}");
        assert!(text.contains("hot-locations"), "{text}");
        assert_eq!(detect(&bytes), Ok(Detected::Shifted(HEADER)));
        assert_eq!(HEADER.block().len(), 32768);
    }

    #[test]
    fn any_flipped_byte_of_a_header_is_noticed() {
        for header in [HEADER, WITH_LOG, HEADED_ONLY, WITH_BATCHES, HEADER.placed(4096), WITH_BATCHES.placed(4096)] {
            assert_eq!(detect(&header.encode()), Ok(Detected::Shifted(header)));
            for at in (0..HEADER_BYTES).filter(|&at| !plain_page::identifies(at)) {
                let mut bytes = header.encode();
                bytes[at] ^= 0x10;
                assert!(detect(&bytes).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn what_plain_sqlite_would_not_find_all_of_gets_a_header() {
        assert_eq!(Header::new(Layout::Plain, LogLayout::Plain, false, 4096), None);
        let headed = Header::new(Layout::Plain, WITH_LOG.log, false, 65536);
        assert_eq!(headed, Some(HEADED_ONLY), "a log with a layout needs a header");
        let batches = Header::new(Layout::Plain, LogLayout::Plain, true, 65536).unwrap();
        assert!(batches.identity != 0 && batches.layout() == Layout::Headed, "so does a log of batches");
    }

    #[test]
    fn a_forged_header_with_a_right_checksum_is_still_checked() {
        for forged in [
            Header { chunk: 0, ..HEADER },
            Header { chunk: u64::MAX, ..HEADER },
            Header { chunk: 1 << 40, ..HEADER },
            Header { offset: 0, ..HEADER },
            Header { chunk: 131_072, offset: 131_072, ..HEADER },
            Header { offset: u64::MAX, ..HEADER },
            Header { page_bytes: 3, ..HEADER },
            Header { border: 65536, ..HEADER },
            Header { border: 100, ..HEADER.placed(4096) },
            Header { offset: HEADER.placed(4096).offset + 65536, ..HEADER.placed(4096) },
            Header { border: u64::MAX, offset: u64::MAX, ..HEADER },
            Header { log: LogLayout::Aligned { stripe: ByteSize(7) }, ..HEADER },
            Header { log: LogLayout::Sparse { stripe: ByteSize(u64::MAX) }, ..HEADER },
            Header { chunk: 0, ..WITH_BATCHES },
        ] {
            assert!(matches!(detect(&forged.encode()), Err(HeaderError::Field(_))), "{forged:?}");
        }
    }

    #[test]
    fn in_a_file_that_begins_within_a_chunk_pages_still_lie_at_the_drives_hot_locations() {
        for border in (0..65536).step_by(512) {
            let header = HEADER.placed(border);
            assert_eq!((header.offset + 65536 - border) % 65536, 32768, "border {border}");
            assert!(header.offset >= HEADER_BYTES as u64, "room for the header");
            assert_eq!((header.layout(), header.chunks()), (HEADER.layout(), Chunks { length: 65536, first: border }));
            assert_eq!(detect(&header.encode()), Ok(Detected::Shifted(header)));
        }
        assert_eq!(HEADED_ONLY.placed(4096), HEADED_ONLY, "no chunk matters to it");
    }

    #[test]
    fn a_newer_version_a_former_one_and_a_cut_off_header_are_told_as_such() {
        let mut newer = HEADER.encode();
        newer[VERSION_AT] = 2;
        assert_eq!(detect(&newer), Err(HeaderError::Version(2)));
        assert_eq!(detect(&HEADER.encode()[..300]), Err(HeaderError::Short(300)));
        assert_eq!(detect(b"flashwise database layout 4: not a plain SQLite file"), Err(HeaderError::Former));
    }

    #[test]
    fn impossible_layouts_are_refused() {
        for (chunk, offset) in [(65536, 0), (65536, 65536), (65536, 100), (60000, 512), (2048, 512), (2 << 20, 512)] {
            let layout = Layout::HotLocations { chunk: ByteSize(chunk), offset: ByteSize(offset) };
            assert!(layout.check().is_err(), "{layout:?}");
        }
    }

    #[test]
    fn a_single_page_at_a_hot_location_becomes_two_halves() {
        let k = 1024;
        let halves = [Span { start: 96 * k, length: 32 * k }, Span { start: 128 * k, length: 32 * k }];
        assert_eq!(cut(96 * k, 64 * k, Chunks { length: 64 * k, first: 0 }, 1 << 20), halves);
    }

    proptest! {
        #[test]
        fn cuts_cover_the_write_and_never_break_the_hot_pattern(
            start in 0u64..1 << 22, length in 0u64..3 << 20, chunk in 12u32..=20, max in 12u32..=21, first in 0u64..2048
        ) {
            let (chunk, max) = (1u64 << chunk, 1u64 << max);
            let first = first * 512 % chunk;
            let place = |at: u64| at + chunk - first;
            let mut at = start;
            for span in cut(start, length, Chunks { length: chunk, first }, max) {
                prop_assert_eq!(span.start, at);
                prop_assert!(span.length > 0 && span.length <= max);
                prop_assert!(span.length < chunk || place(span.start) % chunk == 0);
                prop_assert!(place(span.start) % chunk == 0 || place(span.start) / chunk == place(span.end() - 1) / chunk);
                at = span.end();
            }
            prop_assert_eq!(at, start + length);
        }

        #[test]
        fn no_bytes_make_detection_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), ours in any::<bool>()) {
            let mut bytes = bytes;
            if ours {
                let page = plain_page::page();
                bytes.splice(0..0, page[..72].iter().copied());
            }
            let _ = detect(&bytes);
        }
    }
}
