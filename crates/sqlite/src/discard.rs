//! discard: which pages of a database are free for good, so that their space can be trimmed.
//!
//! SQLite keeps free pages in a list: trunk pages with the numbers of leaf pages, whose content is never read again. It
//! does not inform the file system. Trimming a leaf is safe if no state that can come back uses the page:
//!
//! - **With a rollback journal**, the state before the last transaction can come back as long as the deletion of its
//!   journal is not durable, and a page that the transaction freed need not be in the journal. By the end of the *next*
//!   transaction the journal is gone for good, since the next one's journal was synced in its place. So a leaf is
//!   trimmed if it was free before a transaction and is free after it. The change counter, which each transaction
//!   raises by one, shows that no other transaction came in between.
//! - **With a write-ahead log**, the database file changes at checkpoints only. After one that copied the whole log and
//!   was synced, the file is the newest state; later writes of the page are in the log, and no reader uses an older
//!   state. SQLite truncates the file to its length in such a checkpoint, and in no other.
//!
//! Sources: <https://www.sqlite.org/fileformat2.html> 1.3 (header) and 1.5 (free list); SQLite's `pager.c` and `wal.c`
//! for the order of writes, syncs and file controls.

use std::collections::BTreeSet;

use crate::bytes::{Span, page_size_of};
use crate::error::Failure;

/// Reads bytes of the database as SQLite sees it; fewer only at its end.
pub(crate) type Read<'a> = dyn FnMut(u64, &mut [u8]) -> Result<usize, Failure> + 'a;

/// Smallest piece worth trimming; a shorter hole only costs.
const BLOCK: u64 = 4096;

/// Bytes that SQLite's checksum VFS (`cksumvfs`) keeps at the end of each page.
const CHECKSUM_BYTES: u8 = 8;

/// The free list in the file.
#[derive(Debug, Default, PartialEq, Eq)]
struct FreeList {
    page: u64,
    change_counter: u32,
    in_log_mode: bool,
    leaves: BTreeSet<u32>,
}

/// Facts about a database's free pages.
#[derive(Debug, Default)]
pub(crate) struct FreePages {
    /// The list after the last transaction.
    before: Option<FreeList>,
    /// Leaves whose space was given back, and that this connection has not written since.
    given_back: BTreeSet<u32>,
    /// The page size that their numbers are of.
    page: u64,
    checkpoint: Checkpoint,
}

/// How far a checkpoint has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Checkpoint {
    #[default]
    None,
    /// Pages were copied.
    Copied,
    /// The file was cut to its length: the whole log was copied.
    Whole,
}

impl FreePages {
    /// A page was written: it is in use again.
    pub(crate) fn written(&mut self, offset: u64, length: usize) {
        if self.given_back.is_empty() {
            return;
        }
        let last = (offset + length.max(1) as u64 - 1) / self.page + 1;
        for number in offset / self.page + 1..=last {
            self.given_back.remove(&u32::try_from(number).unwrap_or(0));
        }
    }

    /// A checkpoint has copied pages.
    pub(crate) fn copied(&mut self) {
        (self.checkpoint, self.before) = (Checkpoint::Copied, None);
    }

    /// The file was cut.
    pub(crate) fn cut(&mut self) {
        if self.checkpoint == Checkpoint::Copied {
            self.checkpoint = Checkpoint::Whole;
        }
    }

    /// The file was synced; returns what can be trimmed, if that ended a checkpoint.
    pub(crate) fn synced(&mut self, read: &mut Read) -> Result<Vec<Span>, Failure> {
        if std::mem::take(&mut self.checkpoint) != Checkpoint::Whole {
            return Ok(Vec::new());
        }
        let list = self.read(read)?;
        Ok(list.map_or_else(Vec::new, |list| self.give_back(&list.leaves, list.page)))
    }

    /// A transaction and its journal have ended; returns what can be trimmed.
    pub(crate) fn committed(&mut self, read: &mut Read) -> Result<Vec<Span>, Failure> {
        let before = self.before.take();
        let Some(list) = self.read(read)?.filter(|list| !list.in_log_mode) else { return Ok(Vec::new()) };
        let spans = match before {
            // With an exclusive lock the counter is raised once, and no other transaction can come in between.
            Some(before)
                if list.page == before.page && list.change_counter.wrapping_sub(before.change_counter) <= 1 =>
            {
                let both = list.leaves.intersection(&before.leaves).copied().collect();
                self.give_back(&both, list.page)
            }
            _ => Vec::new(),
        };
        self.before = Some(list);
        Ok(spans)
    }

    /// The blocks of adjacent leaves.
    fn give_back(&mut self, leaves: &BTreeSet<u32>, page: u64) -> Vec<Span> {
        if self.page != page {
            (self.page, self.given_back) = (page, BTreeSet::new());
        }
        let mut runs: Vec<Span> = Vec::new();
        for &leaf in leaves.difference(&self.given_back) {
            let start = u64::from(leaf - 1) * page;
            match runs.last_mut() {
                Some(run) if run.end() == start => run.length += page,
                _ => runs.push(Span { start, length: page }),
            }
        }
        self.given_back.extend(leaves);
        let whole = |run: Span| {
            let (start, end) = (run.start.next_multiple_of(BLOCK), run.end() / BLOCK * BLOCK);
            (end > start).then(|| Span { start, length: end - start })
        };
        runs.into_iter().filter_map(whole).collect()
    }

    /// Reads the list from its head up to a trunk that brings nothing new. `None` where there is no list, or one that
    /// makes no sense.
    fn read(&self, read: &mut Read) -> Result<Option<FreeList>, Failure> {
        let mut header = [0; 100];
        if read(0, &mut header)? < header.len() {
            return Ok(None);
        }
        let Some(page) = page_size_of(&header) else { return Ok(None) };
        // A SQLite that encrypts pages can leave the first bytes of the file unencrypted, and keeps its own data at the
        // end of each page: then no other number in the pages is valid.
        if ![0, CHECKSUM_BYTES].contains(&header[20]) {
            return Ok(None);
        }
        let field = |at: usize| be_u32(&header, at);
        let (pages, mut trunk, free) = (field(28), field(32), field(36));
        let usable = page as usize - usize::from(header[20]);
        let lock_page = (0x4000_0000 / page + 1) as u32;
        let mut list =
            FreeList { page, change_counter: field(24), in_log_mode: header[18] == 2, leaves: BTreeSet::new() };
        let is_free = |number: u32| (2..=pages).contains(&number) && number != lock_page;
        let mut bytes = vec![0; usable];
        let mut trunks = 0;
        while trunk != 0 {
            trunks += 1;
            if trunks > free || !is_free(trunk) || read(u64::from(trunk - 1) * page, &mut bytes)? < usable {
                return Ok(None);
            }
            let count = be_u32(&bytes, 4) as usize;
            if count > usable / 4 - 2 {
                return Ok(None);
            }
            let leaves = bytes[8..8 + 4 * count].chunks_exact(4).map(|leaf| be_u32(leaf, 0));
            let mut has_new = false;
            for leaf in leaves {
                if !is_free(leaf) {
                    return Ok(None);
                }
                has_new |= list.leaves.insert(leaf) && !self.given_back.contains(&leaf);
            }
            if count > 0 && !has_new {
                break;
            }
            trunk = be_u32(&bytes, 0);
        }
        Ok(Some(list))
    }
}

fn be_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// A database of 60 pages, as its free list and its counter go.
    fn file(counter: u32, trunks: &[(u32, &[u32])]) -> Vec<u8> {
        let mut bytes = vec![0; 60 * PAGE];
        bytes[..16].copy_from_slice(b"SQLite format 3\0");
        let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        put(24, counter);
        put(28, 60);
        put(32, trunks.first().map_or(0, |trunk| trunk.0));
        put(36, trunks.iter().map(|trunk| 1 + trunk.1.len() as u32).sum());
        for (n, (trunk, leaves)) in trunks.iter().enumerate() {
            let at = (*trunk as usize - 1) * PAGE;
            put(at, trunks.get(n + 1).map_or(0, |next| next.0));
            put(at + 4, leaves.len() as u32);
            leaves.iter().enumerate().for_each(|(n, leaf)| put(at + 8 + 4 * n, *leaf));
        }
        bytes[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
        (bytes[18], bytes[19]) = (1, 1);
        bytes
    }

    fn reader(file: &[u8]) -> impl FnMut(u64, &mut [u8]) -> Result<usize, Failure> + '_ {
        |at, into| {
            let there = file.get(at as usize..).unwrap_or(&[]);
            let length = there.len().min(into.len());
            into[..length].copy_from_slice(&there[..length]);
            Ok(length)
        }
    }

    fn commit(pages: &mut FreePages, file: &[u8]) -> Vec<(u64, u64)> {
        let spans = pages.committed(&mut reader(file)).unwrap();
        spans.iter().map(|span| (span.start / PAGE as u64 + 1, span.length / PAGE as u64)).collect()
    }

    #[test]
    fn a_page_is_given_back_after_the_next_transaction() {
        let mut pages = FreePages::default();
        assert_eq!(commit(&mut pages, &file(7, &[(9, &[20, 21, 30])])), []);
        assert_eq!(commit(&mut pages, &file(8, &[(9, &[20, 21, 30, 40])])), [(20, 2), (30, 1)]);
        assert_eq!(commit(&mut pages, &file(9, &[(9, &[20, 21, 30, 40])])), [(40, 1)], "each of them once");
    }

    #[test]
    fn a_page_that_was_in_use_in_between_has_to_wait() {
        let mut pages = FreePages::default();
        commit(&mut pages, &file(7, &[(9, &[20, 21])]));
        assert_eq!(commit(&mut pages, &file(9, &[(9, &[20, 21])])), [], "somebody else's transaction was between");
        assert_eq!(commit(&mut pages, &file(10, &[(9, &[21])])), [(21, 1)]);
        pages.written(20 * PAGE as u64, PAGE);
        assert_eq!(commit(&mut pages, &file(11, &[(9, &[21])])), [(21, 1)], "used and freed by one transaction");
    }

    #[test]
    fn a_checkpoint_gives_back_only_when_it_was_whole_and_synced() {
        let mut image = file(7, &[(9, &[20, 21])]);
        image[18] = 2;
        let mut pages = FreePages::default();
        assert_eq!(commit(&mut pages, &image), [], "a commit to the log changes nothing in the file");
        pages.copied();
        assert_eq!(pages.synced(&mut reader(&image)).unwrap(), []);
        pages.cut();
        assert_eq!(pages.synced(&mut reader(&image)).unwrap(), [], "a cut without a checkpoint");
        pages.copied();
        pages.cut();
        let whole = Span { start: 19 * PAGE as u64, length: 2 * PAGE as u64 };
        assert_eq!(pages.synced(&mut reader(&image)).unwrap(), [whole]);
    }

    #[test]
    fn a_list_that_makes_no_sense_gives_nothing_back() {
        let mut endless = file(7, &[(9, &[20]), (10, &[22])]);
        endless[9 * PAGE..9 * PAGE + 4].copy_from_slice(&9_u32.to_be_bytes());
        let mut long = file(7, &[(9, &[20])]);
        long[8 * PAGE + 4..8 * PAGE + 8].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut far = file(7, &[(9, &[20])]);
        far[32..36].copy_from_slice(&99_u32.to_be_bytes());
        let leaves = FreePages::default().read(&mut reader(&endless)).unwrap().map(|list| list.leaves);
        assert_eq!(leaves, Some(BTreeSet::from([20, 22])), "a list that bites its tail has an end");
        let reserving = |bytes: u8| {
            let mut image = file(7, &[(9, &[20])]);
            image[20] = bytes;
            image
        };
        // SQLite's checksums, and what an encryption keeps: then all numbers may be ciphertext.
        assert!(FreePages::default().read(&mut reader(&reserving(8))).unwrap().is_some());
        for broken in [long, file(7, &[(9, &[1])]), file(7, &[(9, &[61])]), far, vec![0; 50], reserving(28)] {
            let mut pages = FreePages::default();
            let read = pages.read(&mut reader(&broken)).unwrap();
            assert!(read.is_none(), "{read:?}");
            pages.copied();
            pages.cut();
            assert_eq!(pages.synced(&mut reader(&broken)).unwrap(), []);
        }
    }

    #[test]
    fn only_whole_blocks_are_given_back() {
        let mut pages = FreePages::default();
        let leaves = BTreeSet::from_iter(3..=12);
        assert_eq!(pages.give_back(&leaves, 1024), [Span { start: 4096, length: 8192 }]);
    }
}
