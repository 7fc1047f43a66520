//! The last results of SQLite's checks for a journal and a log, by thread.
//!
//! SQLite checks at the start of each transaction whether a journal and a log exist. Their stored names depend on facts
//! about the database, behind two locks; in a point SELECT from the page cache that took 3 % of the time. A thread
//! keeps its last result for each, with the number of changes before it was found: if anything has changed since, in
//! any directory, it is determined again.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ffi::FileName;

/// Number of changes, in all directories.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// A result for one name.
struct Memo {
    /// Whose name it is.
    place: usize,
    name: Vec<u8>,
    /// The name that it is stored by, where that is another one.
    stored: Option<Arc<FileName>>,
    changes: u64,
}

thread_local! {
    /// One for journals and one for logs.
    static LAST: RefCell<[Option<Memo>; 2]> = const { RefCell::new([None, None]) };
}

fn kind(name: &[u8]) -> usize {
    usize::from(name.ends_with(b"-wal"))
}

/// A fact has changed.
pub(crate) fn changed() {
    CHANGES.fetch_add(1, Ordering::Release);
}

/// The number of changes: to be read before a result is determined that is to be kept.
pub(crate) fn changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// Keeps the stored name of a path.
pub(crate) fn keep(place: usize, name: &[u8], stored: Option<&Arc<FileName>>, changes: u64) {
    let memo = Memo { place, name: name.to_vec(), stored: stored.cloned(), changes };
    // A thread that is about to end has no such memory any more, and needs none. If a VFS of ours is on top of another
    // one, the upper one may be reading its result.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            last[kind(name)] = Some(memo);
        }
    });
}

/// Uses the result kept for a name, if nothing has changed since.
pub(crate) fn recall<T>(place: usize, name: &[u8], work: impl FnOnce(Option<&FileName>) -> T) -> Option<T> {
    let recalled = LAST.try_with(|last| {
        let last = last.try_borrow().ok()?;
        let memo = last[kind(name)].as_ref()?;
        let holds = memo.place == place && memo.changes == changes() && memo.name == name;
        holds.then(|| work(memo.stored.as_deref()))
    });
    recalled.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recalled(place: usize, name: &[u8]) -> Option<Option<Vec<u8>>> {
        recall(place, name, |stored| stored.map(|name| name.bytes().to_vec()))
    }

    /// In one test, since any other test that opens a database changes facts; so each check is retried.
    #[test]
    fn an_answer_holds_for_its_name_and_place_until_something_changes() {
        let name = Arc::new(FileName::owned(b"/a-fwwal"));
        let kept = |work: &dyn Fn() -> bool| {
            (0..1000).any(|_| {
                keep(1, b"/a-wal", Some(&name), changes());
                keep(1, b"/a-journal", None, changes());
                work()
            })
        };
        assert!(kept(&|| recalled(1, b"/a-wal") == Some(Some(b"/a-fwwal".to_vec()))));
        assert!(kept(&|| recalled(1, b"/a-journal") == Some(None)));
        keep(1, b"/a-wal", Some(&name), changes());
        assert_eq!((recalled(2, b"/a-wal"), recalled(1, b"/b-wal")), (None, None));
        let before = changes();
        changed();
        assert_eq!(recalled(1, b"/a-wal"), None);
        keep(1, b"/a-wal", Some(&name), before);
        assert_eq!(recalled(1, b"/a-wal"), None, "it was found before something changed");
    }
}
