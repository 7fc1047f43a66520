//! The limit of memory for written data.
//!
//! A drive keeps each logical page that was written until it is trimmed. A drive larger than the machine's memory must
//! refuse new pages before memory runs out; present pages can still be rewritten. One bit per page records which are
//! present.

use flashwise_block::{ByteSize, Operation};

/// Which logical pages are held.
#[derive(Debug)]
pub(super) struct MemoryLimit {
    page_bytes: u64,
    /// Bytes per page: two copies if power cuts are enabled.
    held_bytes: u64,
    held: Vec<u64>,
    pages: u64,
    most: u64,
    refused: Refused,
}

/// Whether a page was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Never,
    Unreported,
    Reported,
}

impl MemoryLimit {
    /// None so far, on a drive of that many pages; at most that many bytes, with `copies` of each page.
    pub(super) fn new(capacity: ByteSize, page_bytes: u64, copies: u64, limit: ByteSize) -> Self {
        let words = capacity.0.div_ceil(page_bytes).div_ceil(64) as usize;
        let held_bytes = page_bytes * copies;
        Self {
            page_bytes,
            held_bytes,
            held: vec![0; words],
            pages: 0,
            most: limit.0 / held_bytes,
            refused: Refused::Never,
        }
    }

    /// Pages present from the start, by their first byte.
    pub(super) fn hold(&mut self, is_there: impl Fn(ByteSize) -> bool) {
        for page in (0..64 * self.held.len() as u64).filter(|page| is_there(ByteSize(page * self.page_bytes))) {
            self.held[page as usize / 64] |= 1 << (page % 64);
            self.pages += 1;
        }
    }

    /// Bytes of memory that pages take.
    pub(super) fn bytes(&self) -> u64 {
        self.pages * self.held_bytes
    }

    /// Bytes of memory that more pages may take.
    pub(super) fn room(&self) -> u64 {
        self.most.saturating_sub(self.pages) * self.held_bytes
    }

    /// Records the effect of a command within the drive. `false` for a write beyond the limit: it changes nothing.
    pub(super) fn admit(&mut self, operation: Operation, offset: ByteSize, length: ByteSize) -> bool {
        let end = offset.0 + length.0;
        match operation {
            Operation::Write => {
                let pages = offset.0 / self.page_bytes..end.div_ceil(self.page_bytes);
                let new = pages.clone().filter(|&page| !self.holds(page)).count() as u64;
                if self.pages + new > self.most {
                    if self.refused == Refused::Never {
                        self.refused = Refused::Unreported;
                    }
                    return false;
                }
                pages.for_each(|page| self.held[page as usize / 64] |= 1 << (page % 64));
                self.pages += new;
            }
            Operation::Trim => self.trim(offset.0.div_ceil(self.page_bytes), end / self.page_bytes),
            Operation::Read | Operation::Flush | Operation::WriteZeroes => {}
        }
        true
    }

    /// The bytes held, if a page was refused; reported once.
    pub(super) fn take_report(&mut self) -> Option<u64> {
        let is_unreported = self.refused == Refused::Unreported;
        is_unreported.then(|| self.refused = Refused::Reported).map(|()| self.bytes())
    }

    fn holds(&self, page: u64) -> bool {
        self.held[page as usize / 64] >> (page % 64) & 1 == 1
    }

    /// Trims a range of pages. Most of a large drive is empty, so whole words are checked.
    fn trim(&mut self, from: u64, to: u64) {
        let mut page = from;
        while page < to {
            let (word, first) = (page as usize / 64, page % 64);
            let count = (64 - first).min(to - page);
            let mask = (u64::MAX >> (64 - count)) << first;
            self.pages -= u64::from((self.held[word] & mask).count_ones());
            self.held[word] &= !mask;
            page += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(limit: u64) -> MemoryLimit {
        MemoryLimit::new(ByteSize(1 << 20), 4096, 1, ByteSize(limit))
    }

    #[test]
    fn what_is_there_can_be_written_again_and_what_is_trimmed_makes_room() {
        let mut limit = limit(3 * 4096);
        let mut write = |offset, length| limit.admit(Operation::Write, ByteSize(offset), ByteSize(length));
        assert!(write(0, 512) && write(4096, 8192), "three pages");
        assert!(write(512, 4096) && write(0, 12_288), "again");
        assert!(!write(12_288, 512) && !write(8192, 8192), "a fourth");
        assert_eq!((limit.take_report(), limit.take_report()), (Some(3 * 4096), None), "it is reported once");
        assert_eq!(limit.bytes(), 3 * 4096);
        assert!(limit.admit(Operation::Trim, ByteSize(512), ByteSize(8192)));
        assert_eq!(limit.bytes(), 2 * 4096, "the one page that is trimmed whole");
        assert!(limit.admit(Operation::Write, ByteSize(1 << 19), ByteSize(1)));
        assert!(limit.admit(Operation::Trim, ByteSize(0), ByteSize(1 << 20)) && limit.bytes() == 0);
    }

    #[test]
    fn a_range_of_many_words_is_forgotten_to_the_page() {
        let mut limit = limit(1 << 20);
        assert!(limit.admit(Operation::Write, ByteSize(0), ByteSize(1 << 20)));
        assert!(limit.admit(Operation::Trim, ByteSize(63 * 4096), ByteSize(130 * 4096)));
        assert_eq!(limit.bytes(), (256 - 130) * 4096);
        assert!(limit.holds(62) && !limit.holds(63) && !limit.holds(192) && limit.holds(193));
    }

    #[test]
    fn two_copies_take_twice_the_room() {
        let mut limit = MemoryLimit::new(ByteSize(1 << 20), 4096, 2, ByteSize(3 * 4096));
        assert!(limit.admit(Operation::Write, ByteSize(0), ByteSize(4096)));
        assert!(!limit.admit(Operation::Write, ByteSize(4096), ByteSize(4096)));
        assert_eq!(limit.bytes(), 2 * 4096);
    }
}
