//! The shared pool under every order in which threads can meet in it, by the model checker loom: its lock, the words of
//! its pages, hits, misses, evictions, write-backs and those that fail.
//!
//! The pool is compiled here once more, with loom's atomics, mutexes and condition variables in place of the standard
//! library's. Policies, which are used under the lock alone, are those of the library. The store is a few numbers in
//! memory, each access to which is a point where another thread may continue.
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]
#![allow(dead_code, unused_imports, clippy::unwrap_used, reason = "only a part of the files is used; tests panic")]

#[path = "it/support/loom_sync.rs"]
mod sync;

mod ace {
    pub use flashwise_bufferpool::Ace;
}
mod directory {
    pub use flashwise_bufferpool::Page;
}
mod error {
    pub use flashwise_bufferpool::PoolError;
}
mod memory {
    pub fn prefetch_at<T>(_: *const T) {}
}
mod policy {
    pub use flashwise_bufferpool::{PolicySpec, Shape};
}
mod pool {
    pub use flashwise_bufferpool::{Access, AnyPool, Counts, EvictionPlan, PoolOptions, Steps};
}
mod prefetch {
    pub use flashwise_bufferpool::Prefetch;
}

#[path = "../src/concurrent/mod.rs"]
mod concurrent;

use concurrent::store::{Exchanged, PageImage, PageRead};
use concurrent::{BufferPool, BufferPoolOptions, PageStore};
use directory::Page;
use error::PoolError;
use flashwise_block::BlockError;
use flashwise_bufferpool::{Ace, PolicySpec};
use loom::sync::Arc;
use loom::sync::Mutex;
use loom::thread;

const PAGES: u64 = 3;

/// Pages of eight bytes, and which write is the last before one fails.
struct Store {
    pages: Mutex<Vec<u64>>,
    writes_until_failure: Mutex<Option<u32>>,
}

impl Store {
    fn fails(&self) -> bool {
        let mut left = self.writes_until_failure.lock().unwrap();
        let fails = *left == Some(0);
        *left = left.and_then(|left| left.checked_sub(1));
        fails
    }
}

impl PageStore for Store {
    fn pages(&self) -> u64 {
        PAGES
    }

    fn page_bytes(&self) -> usize {
        8
    }

    fn exchange(&self, writes: Vec<PageImage>, reads: &mut [PageRead<'_>]) -> Exchanged {
        let mut written = Ok(());
        if !writes.is_empty() && self.fails() {
            written = Err(BlockError::Refused("no space left".to_owned()));
        }
        for image in writes.iter().filter(|_| written.is_ok()) {
            self.pages.lock().unwrap()[image.page.0 as usize] =
                u64::from_le_bytes(image.bytes[..8].try_into().unwrap());
        }
        for read in reads.iter_mut() {
            let content = self.pages.lock().unwrap()[read.page.0 as usize];
            read.into.copy_from_slice(&content.to_le_bytes());
        }
        Exchanged { written, read: Ok(()) }
    }

    fn flush(&self) -> Result<(), BlockError> {
        Ok(())
    }
}

type Pool = BufferPool<Store>;

/// A pool of one frame and a spare one.
fn pool(frames: usize, ace: Ace, writes_until_failure: Option<u32>) -> Arc<Pool> {
    let store =
        Store { pages: Mutex::new(vec![0; PAGES as usize]), writes_until_failure: Mutex::new(writes_until_failure) };
    let options = BufferPoolOptions { spare_frames: Some(1), ..BufferPoolOptions::new(frames) };
    let options = options.with_policy(PolicySpec::parse("lru").unwrap()).with_ace(ace);
    Arc::new(BufferPool::new(store, options).unwrap())
}

/// Adds one to a page; whether that was done.
fn add_one(pool: &Pool, page: u32) -> bool {
    match pool.write(Page(page)) {
        Ok(mut bytes) => {
            let count = u64::from_le_bytes(bytes[..].try_into().unwrap()) + 1;
            bytes.copy_from_slice(&count.to_le_bytes());
            true
        }
        Err(PoolError::WriteFailed { .. } | PoolError::AllPinned { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

fn count_in(pool: &Pool, page: u32) -> Option<u64> {
    match pool.read(Page(page)) {
        Ok(bytes) => Some(u64::from_le_bytes(bytes[..].try_into().unwrap())),
        Err(PoolError::WriteFailed { .. } | PoolError::AllPinned { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Every order with at most two switches of threads that nobody forced, or as many as `LOOM_MAX_PREEMPTIONS` says.
fn in_every_order(run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.max_branches = 100_000;
    model.check(run);
}

/// What two threads did.
fn meet<A: Send + 'static, B: Send + 'static>(pool: &Arc<Pool>, one: fn(&Pool) -> A, other: fn(&Pool) -> B) -> (A, B) {
    let (first, second) = (Arc::clone(pool), Arc::clone(pool));
    let first = thread::spawn(move || {
        sync::be(0);
        one(&first)
    });
    let second = thread::spawn(move || {
        sync::be(1);
        other(&second)
    });
    (first.join().unwrap(), second.join().unwrap())
}

/// What is in the store when everything is written. Nobody holds a page any more then, so every page can be changed
/// again.
fn stored(pool: &Pool) -> Vec<u64> {
    // A write that is to fail may do so only now.
    pool.checkpoint().or_else(|_| pool.checkpoint()).unwrap();
    assert_eq!(pool.statistics().waiting_pages, 0);
    let stored = pool.store().pages.lock().unwrap().clone();
    (0..PAGES as u32).for_each(|page| assert!(add_one(pool, page), "page {page} is pinned"));
    pool.checkpoint().unwrap();
    let expected: Vec<u64> = stored.iter().map(|count| count + 1).collect();
    assert_eq!(*pool.store().pages.lock().unwrap(), expected);
    stored
}

#[test]
fn two_misses_of_one_page_load_it_once_and_lose_no_change() {
    in_every_order(|| {
        let pool = pool(1, Ace::CLASSIC, None);
        meet(&pool, |pool| add_one(pool, 0), |pool| add_one(pool, 0));
        assert_eq!(pool.statistics().misses, 1);
        assert_eq!(stored(&pool), [2, 0, 0]);
    });
}

#[test]
fn a_dirty_page_that_falls_for_another_one_is_written_before_it_comes_back() {
    in_every_order(|| {
        let pool = pool(1, Ace::CLASSIC, None);
        assert!(add_one(&pool, 0));
        let (other, again) = meet(&pool, |pool| add_one(pool, 1), |pool| add_one(pool, 0));
        assert_eq!(stored(&pool), [1 + u64::from(again), u64::from(other), 0]);
    });
}

#[test]
fn a_write_that_fails_while_its_page_is_wanted_loses_nothing() {
    in_every_order(|| {
        let pool = pool(1, Ace::CLASSIC, Some(0));
        assert!(add_one(&pool, 0));
        let (other, again) = meet(&pool, |pool| add_one(pool, 1), |pool| add_one(pool, 0));
        assert_eq!(stored(&pool), [1 + u64::from(again), u64::from(other), 0]);
    });
}

#[test]
fn a_batch_takes_no_change_that_comes_while_it_is_written_for_written() {
    in_every_order(|| {
        let pool = pool(2, Ace::of(2), None);
        assert!(add_one(&pool, 0) && add_one(&pool, 1));
        let (other, again) = meet(&pool, |pool| count_in(pool, 2).is_some(), |pool| add_one(pool, 1));
        assert!(other || again);
        assert_eq!(stored(&pool), [1, 1 + u64::from(again), 0]);
    });
}

#[test]
fn a_checkpoint_among_changes_loses_none_and_ends() {
    in_every_order(|| {
        let pool = pool(1, Ace::CLASSIC, None);
        assert!(add_one(&pool, 0));
        let (_, again) = meet(&pool, |pool| pool.checkpoint().unwrap(), |pool| add_one(pool, 0));
        assert!(again);
        assert_eq!(stored(&pool), [2, 0, 0]);
    });
}

#[test]
fn a_page_that_is_read_keeps_its_bytes_while_another_one_needs_a_frame() {
    in_every_order(|| {
        let pool = pool(1, Ace::CLASSIC, None);
        // Twice, so that it is not what the other page has in the end.
        assert!(add_one(&pool, 0) && add_one(&pool, 0));
        pool.checkpoint().unwrap();
        // Once in sixteen hits readers are allowed to announce themselves.
        (0..16).for_each(|_| assert_eq!(count_in(&pool, 0), Some(2)));
        let read = |pool: &Pool| match pool.read(Page(0)) {
            Ok(bytes) => {
                loom::thread::yield_now();
                assert_eq!(bytes[0], 2);
            }
            Err(error) => assert!(matches!(error, PoolError::AllPinned { .. }), "{error}"),
        };
        let (_, other) = meet(&pool, read, |pool| add_one(pool, 1));
        assert_eq!(stored(&pool), [2, u64::from(other), 0]);
    });
}
