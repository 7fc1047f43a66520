//! The words of pages under every order in which threads can meet, by the model checker loom.
//!
//! The files under test are compiled here once more, with loom's atomics, mutexes and condition variables in place of
//! the standard library's. A frame's bytes are a cell that tells when two threads touch it at once.
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]
#![allow(dead_code, unused_imports, clippy::unwrap_used, reason = "only a part of the files is used; tests panic")]

#[path = "it/support/loom_sync.rs"]
mod sync;

#[path = "../src/concurrent/readers.rs"]
mod readers;
#[path = "../src/concurrent/word.rs"]
mod word;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use word::{Fix, Hold, PageWord, Waiters};

/// Bytes that nothing guards here: loom tells where two threads touch them at once.
struct Bytes(UnsafeCell<u64>);

impl Bytes {
    fn get(&self) -> u64 {
        // SAFETY: the page's word guards the bytes; that it does is what the tests show.
        self.0.with(|bytes| unsafe { *bytes })
    }

    fn set(&self, content: u64) {
        // SAFETY: as above.
        self.0.with_mut(|bytes| unsafe { *bytes = content });
    }
}

// SAFETY: the bytes are touched only by who holds the page, and loom tells where two threads do so at once.
unsafe impl Sync for Bytes {}

/// A page, its frame, and what is in the store.
struct Page {
    word: PageWord,
    waiters: Waiters,
    frame: Bytes,
    store: Bytes,
}

impl Page {
    /// On the store alone, where it is so large.
    fn new(content: u64) -> Arc<Self> {
        let (word, waiters) = (PageWord::absent(), Waiters::new());
        Arc::new(Self { word, waiters, frame: Bytes(UnsafeCell::new(0)), store: Bytes(UnsafeCell::new(content)) })
    }

    /// Holds the page, reading it from the store where it has no frame.
    fn hold(&self, hold: Hold) {
        loop {
            match self.word.hold(hold, &self.waiters) {
                Fix::Held(_) => return,
                Fix::Absent if self.word.begin_load() => {
                    let content = self.store.get();
                    self.frame.set(content);
                    return self.word.loaded(7, Some(hold), &self.waiters);
                }
                Fix::Absent | Fix::Blocked(_) | Fix::Announced => {}
            }
        }
    }

    fn read(&self) -> u64 {
        self.hold(Hold::Shared);
        let content = self.frame.get();
        self.word.release(Hold::Shared, &self.waiters);
        content
    }

    /// Reads as a hit does: announced by that thread where it may, else counted.
    fn read_as(&self, thread: usize) -> u64 {
        let Some((_, place)) = self.word.announce(thread, &self.waiters) else { return self.read() };
        let content = self.frame.get();
        place.leave();
        content
    }

    fn add_one(&self) {
        self.hold(Hold::Exclusive);
        self.frame.set(self.frame.get() + 1);
        self.word.release(Hold::Exclusive, &self.waiters);
    }

    /// Evicts the page, if it may; a dirty one is written, or cannot be.
    fn fall(&self, write_fails: bool) {
        if self.word.evict(&self.waiters).is_some() || self.word.take_out(&self.waiters).is_none() {
            return;
        }
        let content = self.frame.get();
        if write_fails {
            self.word.out_failed(&self.waiters);
        } else {
            self.store.set(content);
            self.word.out_written(&self.waiters);
        }
    }

    /// Writes the page where it is, if it is dirty.
    fn write_back(&self, fails: bool) {
        if self.word.begin_write().is_none() {
            return;
        }
        let image = self.frame.get();
        self.word.release(Hold::Shared, &self.waiters);
        if !fails {
            self.store.set(image);
        }
        self.word.end_write(fails, &self.waiters);
    }

    /// What is in the store when everything dirty is written.
    fn checkpointed(&self) -> u64 {
        self.word.wait_until_quiet(&self.waiters);
        self.write_back(false);
        assert!(!self.word.view().is_dirty);
        self.store.get()
    }
}

/// Runs these at once, in every order; gives the page when they have ended.
fn meet(page: &Arc<Page>, deeds: &[fn(&Page)]) {
    let started = deeds.iter().map(|&deed| {
        let page = Arc::clone(page);
        thread::spawn(move || deed(&page))
    });
    let started: Vec<_> = started.collect();
    started.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Every order with at most two switches of threads that nobody forced, or as many as `LOOM_MAX_PREEMPTIONS` says.
fn in_every_order(run: impl Fn() + Sync + Send + 'static) {
    in_every_order_of(2, run);
}

fn in_every_order_of(unforced_switches: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(unforced_switches));
    model.check(run);
}

#[test]
fn two_writers_of_one_page_lose_nothing_and_load_it_once() {
    in_every_order(|| {
        let page = Page::new(10);
        meet(&page, &[Page::add_one, Page::add_one]);
        assert_eq!((page.read(), page.checkpointed()), (12, 12));
    });
}

#[test]
fn a_reader_never_sees_half_a_change_and_never_waits_for_ever() {
    in_every_order(|| {
        let page = Page::new(0);
        meet(&page, &[Page::add_one, |page| assert!(page.read() <= 1)]);
        assert_eq!(page.checkpointed(), 1);
    });
}

/// With one switch: what takes two of them is found by two threads, above.
#[test]
fn two_readers_beside_a_writer_are_both_woken() {
    in_every_order_of(1, || {
        let page = Page::new(0);
        meet(&page, &[Page::add_one, |page| assert!(page.read() <= 1), |page| assert!(page.read() <= 1)]);
        assert_eq!(page.checkpointed(), 1);
    });
}

#[test]
fn a_page_that_falls_while_it_is_wanted_comes_back_with_every_change() {
    in_every_order(|| {
        let page = Page::new(5);
        page.add_one();
        meet(&page, &[|page| page.fall(false), Page::add_one]);
        assert_eq!(page.checkpointed(), 7);
    });
}

#[test]
fn a_page_that_could_not_be_written_when_it_fell_keeps_every_change() {
    in_every_order(|| {
        let page = Page::new(5);
        page.add_one();
        meet(&page, &[|page| page.fall(true), Page::add_one]);
        assert_eq!((page.read(), page.checkpointed()), (7, 7));
    });
}

#[test]
fn a_change_during_a_write_back_is_not_taken_for_written() {
    in_every_order(|| {
        let page = Page::new(0);
        page.add_one();
        meet(&page, &[|page| page.write_back(false), Page::add_one]);
        assert_eq!(page.checkpointed(), 2);
    });
}

#[test]
fn a_write_back_that_fails_makes_the_page_dirty_again_whoever_changes_it_meanwhile() {
    in_every_order(|| {
        let page = Page::new(0);
        page.add_one();
        meet(&page, &[|page| page.write_back(true), Page::add_one]);
        assert!(page.word.view().is_dirty);
        assert_eq!(page.checkpointed(), 2);
    });
}

#[test]
fn two_write_backs_of_one_page_never_overtake_each_other() {
    in_every_order(|| {
        let page = Page::new(0);
        page.add_one();
        meet(&page, &[|page| page.write_back(false), |page| page.fall(false), Page::add_one]);
        assert_eq!(page.checkpointed(), 2);
    });
}

#[test]
fn a_page_that_is_pinned_never_falls() {
    in_every_order(|| {
        let page = Page::new(3);
        meet(
            &page,
            &[
                |page| page.fall(false),
                |page| {
                    page.hold(Hold::Pinned);
                    assert_eq!(page.read(), 3);
                    assert!(page.word.view().is_resident);
                    page.word.release(Hold::Pinned, &page.waiters);
                },
            ],
        );
    });
}

/// A page in its frame whose readers announce themselves.
fn announced(content: u64) -> Arc<Page> {
    let page = Page::new(content);
    page.read();
    page.word.let_announce();
    page
}

#[test]
fn who_has_announced_that_he_reads_never_sees_half_a_change() {
    in_every_order(|| {
        let page = announced(4);
        meet(&page, &[Page::add_one, |page| assert!([4, 5].contains(&page.read_as(0)))]);
        assert_eq!(page.checkpointed(), 5);
    });
}

#[test]
fn a_writer_and_a_fall_beside_a_reader_who_announces_himself_lose_nothing() {
    in_every_order(|| {
        let page = announced(4);
        meet(&page, &[Page::add_one, |page| page.fall(false), |page| assert!([4, 5].contains(&page.read_as(0)))]);
        assert_eq!(page.checkpointed(), 5);
    });
}

#[test]
fn a_frame_is_nobody_elses_while_its_page_is_taken_out() {
    in_every_order(|| {
        let page = Page::new(3);
        page.add_one();
        page.word.let_announce();
        meet(
            &page,
            &[
                |page| {
                    if page.word.take_out(&page.waiters).is_some() {
                        page.frame.set(99);
                        page.frame.set(4);
                        page.word.out_failed(&page.waiters);
                    }
                },
                |page| assert_eq!(page.read_as(0), 4),
                |page| assert_eq!(page.read_as(1), 4),
            ],
        );
    });
}

#[test]
fn a_dirty_page_falls_between_readers_who_announce_themselves_and_comes_back() {
    in_every_order(|| {
        let page = announced(4);
        page.add_one();
        page.word.let_announce();
        meet(&page, &[|page| page.fall(false), |page| assert_eq!(page.read_as(0), 5)]);
        assert_eq!((page.read(), page.checkpointed()), (5, 5));
    });
}

#[test]
fn readers_may_be_allowed_to_announce_themselves_while_somebody_writes() {
    in_every_order(|| {
        let page = Page::new(4);
        page.read();
        meet(
            &page,
            &[Page::add_one, |page| {
                page.word.let_announce();
                assert!([4, 5].contains(&page.read_as(0)));
            }],
        );
        assert_eq!(page.checkpointed(), 5);
    });
}
