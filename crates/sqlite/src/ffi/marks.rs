//! The marks of a log of batches, in memory that everybody shares who has its file open.
//!
//! They are looked at for each SHARED lock. A system call for that costs a point SELECT from the page cache a tenth of its
//! time, and a mapping nothing that can be measured.
//!
//! A process may be killed between any two stores, so their order counts: what is begun is stored first, and what is
//! applied last. Whoever then finds that more was begun than is applied believes none of the other fields.
//!
//! As with SQLite's own `-shm` file, the process ends by SIGBUS if somebody else cuts the file off while it is open.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// Words of the marks, as they stand in the file.
pub(crate) type Words = [u64; MarksPage::WORDS];

/// The first bytes of a file, shared.
pub(crate) struct MarksPage {
    map: MmapRaw,
}

impl MarksPage {
    pub(crate) const WORDS: usize = 6;

    /// Maps the first words of a file, which has them.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        let bytes = Self::WORDS * size_of::<u64>();
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { map: MmapOptions::new().len(bytes).map_raw(file)? })
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < Self::WORDS, "a word of the marks");
        // SAFETY: the mapping begins at a page, has all words, and lives as long as `self`; nobody has a reference into it
        // that is not atomic, and other processes change it as this one does.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(index)) }
    }

    pub(crate) fn load(&self) -> Words {
        std::array::from_fn(|index| self.word(index).load(Ordering::Acquire))
    }

    /// Stores the words one after the other, in this order of them.
    pub(crate) fn store(&self, words: &Words, order: [usize; Self::WORDS]) {
        order.into_iter().for_each(|index| self.word(index).store(words[index], Ordering::Release));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_one_stores_another_mapping_and_the_file_have() {
        let file = tempfile::tempfile().unwrap();
        assert!(MarksPage::map(&file).is_err(), "a file without the words is not mapped");
        file.write_all_at(&[0; 4096], 0).unwrap();
        let (one, other) = (MarksPage::map(&file).unwrap(), MarksPage::map(&file).unwrap());
        let words = [1, 2, 3, 4, 5, u64::MAX];
        one.store(&words, [0, 4, 1, 2, 3, 5]);
        assert_eq!(other.load(), words);
        let mut bytes = [0; 48];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, *words.map(u64::to_ne_bytes).as_flattened());
    }
}
