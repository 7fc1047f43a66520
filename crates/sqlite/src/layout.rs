//! Where a database's bytes lie in the stored file, and the header that says so.
//!
//! Some drives put consecutive chunks (64 KiB on the Samsung 960 EVO) on different channels; a chunk-long read that
//! starts mid-chunk is served by two channels, half each, and is up to 1.7 times as fast as an aligned one. Such
//! starting points are *hot locations*: `chunk·i + offset`. [`Layout::HotLocations`] shifts the whole database by
//! `offset` bytes, so that with pages of one chunk every page starts at a hot location. The first `offset` bytes of
//! the stored file hold a [`Header`]; `docs/formats/sqlite-layout.md` draws it.
//!
//! The pattern belongs to how the data was *written*: such a drive cuts a write into chunk-long pieces from the
//! write's own start, so one chunk-long write off alignment moves the pieces and the hot location is gone. [`cut`] is
//! the rule that keeps it.
//!
//! Source: Kakaraparthy, Patel, Park, Kroth, "Optimizing Databases by Learning Hidden Parameters of Solid State
//! Drives", PVLDB 13(4), 2019.

use flashwise_block::ByteSize;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::SqliteError;

/// How a new database is laid out in its stored file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "layout", rename_all = "kebab-case")]
pub enum Layout {
    /// As SQLite writes it.
    #[default]
    Plain,
    /// Shifted by `offset` behind a header, so that pages of `chunk` bytes start at hot locations.
    HotLocations {
        /// The drive's chunk: a power of two, 4 KiB to 1 MiB.
        chunk: ByteSize,
        /// The hot location within a chunk: a multiple of 512 below `chunk`, not zero.
        offset: ByteSize,
    },
}

/// Smallest chunk that a layout takes.
pub(crate) const MIN_CHUNK: u64 = 4 << 10;
/// Largest chunk that a layout takes; the volume's extents are this long, so that chunks never straddle two.
pub(crate) const MAX_CHUNK: u64 = 1 << 20;
/// Bytes that the header occupies; the rest up to `offset` is zero.
pub(crate) const HEADER_BYTES: usize = 512;

/// What identifies a header of any version.
const MAGIC: &[u8] = b"flashwise database layout ";
/// The header's first 128 bytes, padded with spaces and ended by a newline: `head -c 200` tells a human what it is.
const TEXT: &str = "flashwise database layout 1: not a plain SQLite file; \
                    open it with the flashwise VFS or run 'flashwise sqlite export'";
const TEXT_BYTES: usize = 128;
const LAYOUT_NAME: &str = "hot-locations";
const LAYOUT_NAME_AT: usize = 128;
const LAYOUT_NAME_BYTES: usize = 32;
const VERSION: u32 = 1;
const VERSION_AT: usize = 160;
const LENGTH_AT: usize = 164;
const CHUNK_AT: usize = 168;
const OFFSET_AT: usize = 176;
const PAGE_AT: usize = 184;
const CHECKSUM_AT: usize = 504;
const _: () = assert!(TEXT.len() < TEXT_BYTES, "the text and its newline fit");

/// The first 16 bytes of a plain SQLite file.
pub(crate) const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

impl Layout {
    /// The layout's name, as in the header.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::HotLocations { .. } => LAYOUT_NAME,
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

/// What the first bytes of a shifted file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub chunk: u64,
    pub offset: u64,
    /// SQLite's page size when the file was created; a later VACUUM can change the real one.
    pub page_bytes: u64,
}

/// Why a header is not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("its flashwise header is cut off after {0} bytes; restore the file from a backup")]
    Short(usize),
    #[error("its flashwise header is of version {0}, this program knows version {VERSION}; use a newer flashwise")]
    Version(String),
    #[error(
        "its flashwise header does not match its checksum ({stored:016x} stored, {computed:016x} computed): the file \
         is damaged; restore it from a backup"
    )]
    Checksum { stored: u64, computed: u64 },
    #[error("its flashwise header is damaged: {0}; restore the file from a backup")]
    Field(String),
}

/// What the first bytes of a non-empty file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detected {
    Plain,
    Shifted(Header),
}

/// Tells a shifted file from any other by its first bytes (up to [`HEADER_BYTES`] of them).
pub(crate) fn detect(head: &[u8]) -> Result<Detected, HeaderError> {
    if !head.starts_with(MAGIC) {
        return Ok(Detected::Plain);
    }
    Header::decode(head).map(Detected::Shifted)
}

impl Header {
    /// The version that is written.
    pub(crate) const VERSION: u32 = VERSION;

    /// The header as it is stored.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..TEXT_BYTES].fill(b' ');
        bytes[..TEXT.len()].copy_from_slice(TEXT.as_bytes());
        bytes[TEXT_BYTES - 1] = b'\n';
        bytes[LAYOUT_NAME_AT..][..LAYOUT_NAME.len()].copy_from_slice(LAYOUT_NAME.as_bytes());
        bytes[VERSION_AT..][..4].copy_from_slice(&VERSION.to_le_bytes());
        bytes[LENGTH_AT..][..4].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        bytes[CHUNK_AT..][..8].copy_from_slice(&self.chunk.to_le_bytes());
        bytes[OFFSET_AT..][..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[PAGE_AT..][..8].copy_from_slice(&self.page_bytes.to_le_bytes());
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
        let version: String =
            head[MAGIC.len()..TEXT_BYTES].iter().take_while(|b| b.is_ascii_digit()).map(|&b| char::from(b)).collect();
        if !version.is_empty() && version != VERSION.to_string() {
            return Err(HeaderError::Version(version));
        }
        let (stored, computed) = (u64_at(head, CHECKSUM_AT), xxh3_64(&head[..CHECKSUM_AT]));
        if stored != computed {
            return Err(HeaderError::Checksum { stored, computed });
        }
        Self::fields(head)
    }

    /// The fields behind a checksum that matches; still checked, for a header can be forged.
    fn fields(head: &[u8]) -> Result<Self, HeaderError> {
        let field = |what: String| Err(HeaderError::Field(what));
        let (version, length) = (u32_at(head, VERSION_AT), u32_at(head, LENGTH_AT));
        if version != VERSION {
            return Err(HeaderError::Version(version.to_string()));
        }
        if length as usize != HEADER_BYTES {
            return field(format!("its length field is {length}"));
        }
        let mut name = [0; LAYOUT_NAME_BYTES];
        name[..LAYOUT_NAME.len()].copy_from_slice(LAYOUT_NAME.as_bytes());
        if head[LAYOUT_NAME_AT..][..LAYOUT_NAME_BYTES] != name {
            let found = String::from_utf8_lossy(&head[LAYOUT_NAME_AT..][..LAYOUT_NAME_BYTES]);
            return field(format!("it names the unknown layout '{}'", found.trim_end_matches('\0')));
        }
        let header =
            Self { chunk: u64_at(head, CHUNK_AT), offset: u64_at(head, OFFSET_AT), page_bytes: u64_at(head, PAGE_AT) };
        if let Err(error) = header.layout().check() {
            return field(error.to_string());
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
        Layout::HotLocations { chunk: ByteSize(self.chunk), offset: ByteSize(self.offset) }
    }

    /// What stands in front of the database: the header, then zeros up to the offset.
    pub(crate) fn block(&self) -> Vec<u8> {
        let mut bytes = self.encode().to_vec();
        bytes.resize(self.offset as usize, 0);
        bytes
    }
}

/// Whether SQLite can have pages of that size.
pub(crate) fn is_page_size(bytes: u64) -> bool {
    (512..=65536).contains(&bytes) && bytes.is_power_of_two()
}

/// The page size in the first bytes of a plain SQLite file (big-endian at byte 16, 1 meaning 64 KiB).
pub(crate) fn page_size_of(head: &[u8]) -> Option<u64> {
    if head.len() < 100 || !head.starts_with(SQLITE_MAGIC) {
        return None;
    }
    let bytes = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65536,
        other => u64::from(other),
    };
    is_page_size(bytes).then_some(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

/// A run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u64,
    pub length: u64,
}

impl Span {
    pub(crate) fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// Cuts a write so that none of chunk length or longer starts off chunk alignment: up to the next chunk boundary, then
/// whole chunks (as many as `max_transfer` takes at once), then the rest.
pub(crate) fn cut(start: u64, length: u64, chunk: u64, max_transfer: u64) -> Vec<Span> {
    let end = start + length;
    let whole_chunks = match max_transfer - max_transfer % chunk {
        0 => max_transfer,
        chunks => chunks,
    };
    let mut spans = Vec::new();
    let mut at = start;
    while at < end {
        let to_boundary = chunk - at % chunk;
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

    const HEADER: Header = Header { chunk: 65536, offset: 32768, page_bytes: 65536 };

    #[test]
    fn a_header_is_readable_by_people_and_by_us() {
        let bytes = HEADER.encode();
        let text = std::str::from_utf8(&bytes[..TEXT_BYTES]).unwrap();
        assert!(text.starts_with("flashwise database layout 1: not a plain SQLite file; open it with"), "{text}");
        assert!(text.contains("flashwise sqlite export") && text.ends_with('\n'), "{text}");
        assert!(bytes[..200].windows(13).any(|w| w == b"hot-locations"));
        assert_eq!(detect(&bytes), Ok(Detected::Shifted(HEADER)));
        assert_eq!(HEADER.block().len(), 32768);
    }

    #[test]
    fn any_flipped_byte_of_a_header_is_noticed() {
        for at in MAGIC.len()..HEADER_BYTES {
            let mut bytes = HEADER.encode();
            bytes[at] ^= 0x10;
            assert!(detect(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_forged_header_with_a_right_checksum_is_still_checked() {
        for forged in [
            Header { chunk: 0, ..HEADER },
            Header { chunk: u64::MAX, ..HEADER },
            Header { chunk: 1 << 40, ..HEADER },
            Header { offset: 0, ..HEADER },
            Header { offset: 65536, ..HEADER },
            Header { offset: u64::MAX, ..HEADER },
            Header { page_bytes: 3, ..HEADER },
        ] {
            assert!(matches!(detect(&forged.encode()), Err(HeaderError::Field(_))), "{forged:?}");
        }
    }

    #[test]
    fn a_newer_version_and_a_cut_off_header_are_told_as_such() {
        let mut newer = HEADER.encode();
        newer[MAGIC.len()] = b'2';
        assert_eq!(detect(&newer), Err(HeaderError::Version("2".into())));
        assert_eq!(detect(&HEADER.encode()[..300]), Err(HeaderError::Short(300)));
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
        assert_eq!(cut(96 * k, 64 * k, 64 * k, 1 << 20), halves);
    }

    proptest! {
        #[test]
        fn cuts_cover_the_write_and_never_break_the_hot_pattern(
            start in 0u64..1 << 22, length in 0u64..3 << 20, chunk in 12u32..=20, max in 12u32..=21
        ) {
            let (chunk, max) = (1u64 << chunk, 1u64 << max);
            let mut at = start;
            for span in cut(start, length, chunk, max) {
                prop_assert_eq!(span.start, at);
                prop_assert!(span.length > 0 && span.length <= max);
                prop_assert!(span.length < chunk || span.start % chunk == 0);
                prop_assert!(span.start % chunk == 0 || span.start / chunk == (span.end() - 1) / chunk);
                at = span.end();
            }
            prop_assert_eq!(at, start + length);
        }

        #[test]
        fn no_bytes_make_detection_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), ours in any::<bool>()) {
            let mut bytes = bytes;
            if ours {
                bytes.splice(0..0, MAGIC.iter().copied());
            }
            let _ = detect(&bytes);
        }
    }
}
