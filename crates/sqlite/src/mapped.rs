//! memory-mapped-reads: what SQLite reads of a database is copied from a mapping of the file, without a system call each.
//!
//! ```text
//!   xRead ──▶ SQLite's own VFS ──▶ within its mapping of the file? ──▶ copied from there
//!                               └▶ beyond, or there is none        ──▶ pread
//! ```
//!
//! SQLite's own VFS reads from a mapping wherever it has one, but makes one only for programs that ask for it (`PRAGMA
//! mmap_size`). Here it is asked for them. Writes go the usual way: both are the same pages of the page cache.
//!
//! The mapping has to follow the file. [`MappedReads::follow`] is told its size whenever a connection begins to look at the
//! database, which nobody can make shorter from then on, and after a number of reads behind the mapping's end; it asks for
//! another mapping where the file has become shorter (what is behind its end must not be touched) or enough longer.
//!
//! A program that sets `PRAGMA mmap_size` itself gets SQLite's own mapping, which hands out pages without copying them: the two do
//! not go together, and this one ends.
//!
//! Where a page cannot be read from the drive, the process gets a signal (SIGBUS) instead of SQLite an error: the price of any
//! mapping, and why no profile chooses this technique.
//!
//! Source: "Memory-Mapped I/O", sqlite.org/mmap.html.

use crate::ffi::ParentFile;

/// The file is mapped anew when it is longer than its mapping by a part of that, and by so many bytes at least.
const LONGER_PART: u64 = 4;
const LONGER_MIN: u64 = 1 << 20;
/// Reads behind the end of the mapping after which the size of the file is looked at.
const READS_BEYOND: u32 = 64;

/// The mapping of one open database.
pub(crate) struct MappedReads {
    /// Bytes that are mapped at most.
    limit: u64,
    state: Mapped,
    /// Reads behind the end of the mapping since the size was looked at.
    beyond: u32,
}

enum Mapped {
    /// Not yet, or no longer.
    Nothing,
    /// As far as here.
    UpTo(u64),
    /// Never again: the program maps the file itself, or nobody can.
    Never,
}

impl MappedReads {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, state: Mapped::Nothing, beyond: 0 }
    }

    /// Notes a read that ends at a byte of the file; tells whether the file may have grown enough to be looked at.
    #[inline]
    pub(crate) fn notes_growth(&mut self, end: u64) -> bool {
        let mapped = match self.state {
            Mapped::Never => return false,
            Mapped::UpTo(mapped) => mapped,
            Mapped::Nothing => 0,
        };
        if end <= mapped || mapped >= self.limit {
            return false;
        }
        self.beyond += 1;
        self.beyond >= READS_BEYOND
    }

    /// Makes the mapping fit a file of this size.
    pub(crate) fn follow(&mut self, size: u64, file: &mut ParentFile) {
        self.beyond = 0;
        let wanted = size.min(self.limit);
        let fits = match self.state {
            Mapped::Never => return,
            Mapped::Nothing => wanted == 0,
            Mapped::UpTo(mapped) => wanted >= mapped && wanted < mapped + (mapped / LONGER_PART).max(LONGER_MIN),
        };
        if fits {
            return;
        }
        // SAFETY: spans are handed to SQLite only when it asked for a mapping of its own, and then there is none of ours.
        let is_mapped = wanted > 0 && unsafe { file.map(self.limit) };
        self.state = match wanted {
            // SAFETY: as above.
            0 => {
                unsafe { file.unmap() };
                Mapped::Nothing
            }
            _ if is_mapped => Mapped::UpTo(wanted),
            _ => Mapped::Never,
        };
    }

    /// The file is cut to a size by this connection: SQLite's own VFS looks no further in its mapping from now on.
    pub(crate) fn cut(&mut self, size: u64) {
        if let Mapped::UpTo(mapped) = &mut self.state {
            *mapped = size.min(*mapped);
        }
    }

    /// The program maps the file itself.
    pub(crate) fn end(&mut self, file: &mut ParentFile) {
        if matches!(self.state, Mapped::UpTo(_)) {
            // SAFETY: SQLite asks for spans only when it has been told that it has a mapping, and that comes after this.
            unsafe { file.unmap() };
        }
        self.state = Mapped::Never;
    }
}
