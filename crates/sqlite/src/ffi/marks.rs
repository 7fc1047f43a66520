//! The marks of a batch log, read in a mapping of its file.
//!
//! They are read for each SHARED lock. A system call for that costs a point SELECT from the page cache a tenth of its
//! time; a mapping costs nothing measurable. They are changed by writes: a store into a mapping cannot report that the
//! file system has no space for it, and a process may be killed between two stores.
//!
//! As with SQLite's own `-shm` file, the process ends by SIGBUS if another process truncates the file while it is open.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw};

/// The first bytes of a file, as seen by everybody who has it open.
pub(crate) struct MarksPage {
    map: MmapRaw,
}

impl MarksPage {
    /// Words of the marks.
    pub(crate) const WORDS: usize = 6;

    /// Maps the first words of a file, which has them.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        let bytes = Self::WORDS * size_of::<u64>();
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { map: MmapOptions::new().len(bytes).map_raw_read_only(file)? })
    }

    /// The words, as they stand in the file.
    pub(crate) fn load(&self) -> [u64; Self::WORDS] {
        let start = self.map.as_ptr().cast::<AtomicU64>();
        // SAFETY: the mapping starts at a page, has all words, and lives as long as `self`; the kernel may change them,
        // and there is no reference into it that is not atomic. Relaxed loads of a word are sound where memory may only
        // be read.
        let words = std::array::from_fn(|index| unsafe { &*start.add(index) }.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_written_to_the_file_is_seen() {
        let file = tempfile::tempfile().unwrap();
        assert!(MarksPage::map(&file).is_err(), "a file without the words is not mapped");
        file.write_all_at(&[0; 4096], 0).unwrap();
        let page = MarksPage::map(&file).unwrap();
        assert_eq!(page.load(), [0; 6]);
        let words = [1, 2, 3, 4, 5, u64::MAX];
        file.write_all_at(words.map(u64::to_ne_bytes).as_flattened(), 0).unwrap();
        assert_eq!(page.load(), words);
    }
}
