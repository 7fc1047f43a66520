//! The super-journal of a transaction over several databases, if one of them has a journal under a name of ours.
//!
//! SQLite commits such a transaction by deleting its super-journal, a file that lists the journals of all databases by
//! the names that SQLite knows. Each journal ends with the super-journal's name, and is void once that file is deleted:
//!
//! ```text
//!   NAME-journal ──▶ main.db-mjXXXXXX9XX: main.db-journal ␀ NAME-journal ␀ [NAME-fwjournal ␀]
//!        no such file: NAME-fwjournal has what SQLite calls NAME-journal ──────────┘ added here
//! ```
//!
//! After a crash, the process that rolls one database back deletes the super-journal, unless a journal that it lists
//! exists and names it. SQLite without this VFS finds no `NAME-journal` for a database in a layout; it would delete the
//! super-journal after it rolled `main.db` back, and so void the journal of the other database, whose pages are half
//! written by then. So the stored name is added to the list, durably, **before** the journal names the super-journal:
//! until then the journal is rolled back in any case, and from then on the list has it under its existing name.
//!
//! The super-journal belongs to the connection, whose VFS is that of its first database and may be any other. It is
//! therefore opened here by its path. If it is not found there, or does not list this journal, a crash of this
//! transaction could not be recovered, and the commit fails.
//!
//! Source: <https://sqlite.org/atomiccommit.html>, section 5; SQLite's `pager.c`, `writeSuperJournal`,
//! `readSuperJournal` and `pager_delsuper`.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use libsqlite3_sys as sqlite;

use crate::companion::open_regular;
use crate::error::Failure;

/// The end of a journal that names a super-journal; SQLite writes it last, separately.
pub(crate) const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// In front of that: the length of the name, and its checksum.
pub(crate) const NUMBERS: usize = 8;
/// Longest name; SQLite's VFS takes paths of 512 bytes.
const LONGEST_NAME: usize = 4096;
/// Longest super-journal: SQLite attaches 125 databases at most.
const LONGEST_LIST: u64 = 1 << 20;

/// A journal that is stored under another name than SQLite's.
#[derive(Clone, Debug)]
pub(crate) struct Renamed {
    /// The name in the list.
    pub listed: Vec<u8>,
    /// The name that exists.
    pub stored: Vec<u8>,
}

/// The name of the super-journal that a journal would end with, if `MAGIC` came at `end`.
pub(crate) fn name_before(
    end: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<usize, Failure>,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut numbers = [0; NUMBERS];
    let Some(at) = end.checked_sub(NUMBERS as u64) else { return Ok(None) };
    if read(at, &mut numbers)? < NUMBERS {
        return Ok(None);
    }
    let [length, checksum] = [0, 4].map(|at| u32::from_be_bytes([0, 1, 2, 3].map(|byte| numbers[at + byte])));
    let length = length as usize;
    let Some(at) = at.checked_sub(length as u64).filter(|_| (1..=LONGEST_NAME).contains(&length)) else {
        return Ok(None);
    };
    let mut name = vec![0; length];
    if read(at, &mut name)? < length {
        return Ok(None);
    }
    let is_whole = sums(&name).contains(&checksum) && !name.contains(&0);
    Ok(is_whole.then_some(name))
}

/// SQLite's checksum: the sum of characters, whose sign depends on the CPU.
fn sums(name: &[u8]) -> [u32; 2] {
    let signed = name.iter().fold(0_u32, |sum, &byte| sum.wrapping_add_signed(i32::from(byte.cast_signed())));
    [signed, name.iter().fold(0_u32, |sum, &byte| sum.wrapping_add(u32::from(byte)))]
}

/// Adds the stored name of a journal to its super-journal, durably.
pub(crate) fn list(super_journal: &[u8], journal: &Renamed) -> Result<(), Failure> {
    let path = Path::new(OsStr::from_bytes(super_journal));
    let refuse = |why: String| {
        let text = format!(
            "{}: this transaction over several databases could not be recovered after a crash: its super-journal {} \
             {why}; commit the databases one by one, or open the first one in a directory too",
            String::from_utf8_lossy(&journal.stored),
            path.display(),
        );
        Failure::new(sqlite::SQLITE_IOERR_WRITE, text)
    };
    let file = open_regular(path, true).map_err(|error| refuse(format!("cannot be opened ({error})")))?;
    let metadata = file.metadata().map_err(|error| refuse(format!("cannot be examined ({error})")))?;
    if metadata.len() > LONGEST_LIST {
        return Err(refuse("is not a list of journals".to_owned()));
    }
    let mut names = Vec::new();
    let read = (&file).take(LONGEST_LIST).read_to_end(&mut names);
    read.map_err(|error| refuse(format!("cannot be read ({error})")))?;
    let has = |wanted: &[u8]| names.split(|&byte| byte == 0).any(|name| name == wanted);
    if names.last() != Some(&0) || !has(&journal.listed) {
        return Err(refuse("does not list this journal".to_owned()));
    }
    if has(&journal.stored) {
        return Ok(());
    }
    let entry = [&journal.stored[..], &[0]].concat();
    let added = file.write_all_at(&entry, names.len() as u64).and_then(|()| file.sync_all());
    added.map_err(|error| refuse(format!("cannot be written ({error})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(name: &[u8], sum: u32) -> Vec<u8> {
        [name, &(name.len() as u32).to_be_bytes(), &sum.to_be_bytes()].concat()
    }

    fn found(bytes: &[u8]) -> Option<Vec<u8>> {
        let read = |at: u64, into: &mut [u8]| {
            let there = &bytes[(at as usize).min(bytes.len())..];
            let length = there.len().min(into.len());
            into[..length].copy_from_slice(&there[..length]);
            Ok(length)
        };
        name_before(bytes.len() as u64, read).unwrap()
    }

    #[test]
    fn the_name_at_the_end_of_a_journal_is_found_and_anything_else_is_none() {
        let name = "/tmp/größe.db-mj01234569AB".as_bytes();
        for sum in sums(name) {
            assert_eq!(found(&tail(name, sum)).as_deref(), Some(name));
        }
        let mut damaged = tail(name, sums(name)[0]);
        damaged[3] ^= 1;
        let lengths = [0, 4097, u32::MAX].map(|length: u32| [length.to_be_bytes(), [0; 4]].concat());
        for bytes in [&damaged[..], b"", b"short", &lengths[0], &lengths[1], &lengths[2]] {
            assert_eq!(found(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_name_is_added_once_and_only_to_a_list_that_has_the_journal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("main.db-mj01234569AB");
        let journal = Renamed { listed: b"/a.db-journal".to_vec(), stored: b"/a.db-fwjournal".to_vec() };
        let list = || list(path.as_os_str().as_bytes(), &journal);
        assert!(list().unwrap_err().message.contains("cannot be opened"), "there is no such file");
        for other in [&b""[..], b"/b.db-journal\0", b"/a.db-journal", b"the user's own text\0"] {
            std::fs::write(&path, other).unwrap();
            assert!(list().unwrap_err().message.contains("does not list this journal"), "{other:?}");
            assert_eq!(std::fs::read(&path).unwrap(), other);
        }
        std::fs::write(&path, b"/main.db-journal\0/a.db-journal\0").unwrap();
        for _ in 0..2 {
            list().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"/main.db-journal\0/a.db-journal\0/a.db-fwjournal\0");
        }
        let link = dir.path().join("main.db-mj00000009AB");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(super::list(link.as_os_str().as_bytes(), &journal).is_err(), "a link is not followed");
    }
}
