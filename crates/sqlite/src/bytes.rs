//! Fields common to both forms of a stored file: SQLite's own, and the one after our header.

/// The first 16 bytes of a plain SQLite file.
pub(crate) const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Bytes that the header occupies; the rest up to `offset` is zero.
pub(crate) const HEADER_BYTES: usize = 512;

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
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
