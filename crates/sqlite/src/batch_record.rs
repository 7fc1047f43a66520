//! A batch as it stands in the log: a head, a table of its runs, their bytes, and zeros up to a whole block.
//!
//! ```text
//!   encode: runs ──▶ head with checksum │ table │ bytes │ zeros
//!   decode: the same bytes, checksum matched by the reader ──▶ runs, or nothing
//! ```
//!
//! A log may come from elsewhere: nothing is allocated for a length before the reader has compared it with the file and
//! with [`LONGEST_IN_LOG`], and memory that is short is an error. `docs/formats/sqlite-layout.md` draws the bytes.

use libsqlite3_sys as sqlite;
use xxhash_rust::xxh3::Xxh3;

use crate::error::Failure;

/// Batches start where blocks do, so that a later one tears none that was acknowledged.
pub(crate) const BLOCK: u64 = 4096;
/// Most bytes of pages in a batch; a longer transaction gets a journal.
pub(crate) const LONGEST_BATCH: usize = 32 << 20;
pub(crate) const MAGIC: &[u8; 8] = b"fwbatch1";
pub(crate) const HEAD: usize = 64;
pub(crate) const CHECKSUM_AT: usize = 56;
/// Offset and length of a run.
pub(crate) const ENTRY: usize = 16;
/// Shortest page of SQLite's, and so the shortest run.
pub(crate) const SMALLEST_PAGE: usize = 512;
/// Longest batch that is ever written, its table of runs included.
pub(crate) const LONGEST_IN_LOG: u64 = (HEAD + LONGEST_BATCH / SMALLEST_PAGE * ENTRY + LONGEST_BATCH) as u64;
/// The end of the longest database: 2^32 pages of 64 KiB, and our header.
pub(crate) const LONGEST_DATABASE: u64 = (1 << 48) + (2 << 20);

/// Pages of a batch: runs of adjacent bytes of the stored file.
pub(crate) type Runs = Vec<(u64, Vec<u8>)>;

/// The database that a log belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub identity: u64,
    /// Where its first page starts in the stored file.
    pub first: u64,
}

impl Owner {
    /// Whether its pages can be there.
    pub(crate) fn has(&self, start: u64, length: usize) -> bool {
        let end = start.checked_add(length as u64);
        start >= self.first && end.is_some_and(|end| end <= LONGEST_DATABASE)
    }
}

/// A batch in the log's format, padded to whole blocks.
pub(crate) fn encode(generation: u64, number: u64, identity: u64, runs: &Runs) -> Vec<u8> {
    let bytes: usize = runs.iter().map(|(_, data)| data.len()).sum();
    let length = HEAD + runs.len() * ENTRY + bytes;
    let mut batch = Vec::with_capacity(length.next_multiple_of(BLOCK as usize));
    batch.extend_from_slice(MAGIC);
    for field in [generation, number, identity, runs.len() as u64, length as u64, 0, 0] {
        batch.extend_from_slice(&field.to_le_bytes());
    }
    for (start, data) in runs {
        batch.extend_from_slice(&start.to_le_bytes());
        batch.extend_from_slice(&(data.len() as u64).to_le_bytes());
    }
    runs.iter().for_each(|(_, data)| batch.extend_from_slice(data));
    let checksum = checksum(&batch);
    batch[CHECKSUM_AT..HEAD].copy_from_slice(&checksum.to_le_bytes());
    debug_assert_eq!(batch.len(), length, "the head has the length, by which a reader finds the next one");
    batch.resize(length.next_multiple_of(BLOCK as usize), 0);
    batch
}

/// Of all but the checksum itself.
pub(crate) fn checksum(batch: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&batch[..CHECKSUM_AT]);
    hash.update(&batch[HEAD..]);
    hash.digest()
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|field| field.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Allocates a length read from a file; fails instead of aborting when memory is short.
pub(crate) fn zeros(length: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| no_memory(length))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

pub(crate) fn no_memory(length: usize) -> Failure {
    Failure::new(sqlite::SQLITE_NOMEM, format!("no memory for {length} bytes of the batch log"))
}

/// The runs of a batch whose checksum matches; still checked, for a batch can be forged.
pub(crate) fn decode(batch: &[u8]) -> Result<Option<Runs>, Failure> {
    let count = usize::try_from(u64_at(batch, 32)).ok();
    let end = count.and_then(|count| HEAD.checked_add(count.checked_mul(ENTRY)?));
    let Some(table) = end.and_then(|end| batch.get(HEAD..end)) else { return Ok(None) };
    let mut rest = &batch[HEAD + table.len()..];
    let mut runs = Runs::new();
    runs.try_reserve_exact(table.len() / ENTRY).map_err(|_| no_memory(table.len()))?;
    for entry in table.chunks_exact(ENTRY) {
        let (start, length) = (u64_at(entry, 0), usize::try_from(u64_at(entry, 8)).ok());
        let Some((data, behind)) = length.and_then(|length| rest.split_at_checked(length)) else { return Ok(None) };
        let mut bytes = zeros(data.len())?;
        bytes.copy_from_slice(data);
        runs.push((start, bytes));
        rest = behind;
    }
    Ok(rest.is_empty().then_some(runs))
}
