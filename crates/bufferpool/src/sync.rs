//! What threads meet at. Tests compile the files that share memory once more, with a model checker's in place of these.

pub use std::sync::atomic::{AtomicU64, Ordering};
pub use std::sync::{Condvar, Mutex, MutexGuard};
use std::sync::{PoisonError, atomic::AtomicUsize};

/// Attempts before a thread sleeps.
pub const SPINS: usize = 64;

/// Places to wait at.
pub const SHARDS: usize = 64;

/// Pages that a thread reads at a time without touching their words.
pub const PLACES: usize = 8;

/// Threads that have such places, and a ring for their hits.
pub const THREADS: usize = 64;

/// Hits that a thread notes before the oldest note is lost. The policy's lists come from the cache of the thread that
/// told it last, about as often as it is told by another one: the more at a time, the seldomer.
pub const NOTES: usize = 512;

/// Stores what everybody sees before this thread loads anything else.
#[inline]
pub fn publish(place: &AtomicU64, value: u64) {
    // Who comes from the other side has a fence between its change of the word and its look at the places; with that, a
    // sequentially consistent exchange here and a load there are enough, and cheaper than a fence.
    place.swap(value, Ordering::SeqCst);
}

/// What this thread stored before, everybody sees before it loads anything else.
#[inline]
pub fn full_fence() {
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Waits for somebody who tells nobody when he is done, the nth time in a row.
pub fn pause(nth: u32) {
    match nth {
        0..16 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}

/// The number of a thread: a ring and places for announcements are its own, until it has ended and another thread has
/// them.
struct Number(usize);

/// Threads that have a number, and those before them.
static NUMBERS: AtomicUsize = AtomicUsize::new(0);

/// Numbers of threads that have ended.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

impl Number {
    fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(free.unwrap_or_else(|| NUMBERS.fetch_add(1, Ordering::SeqCst)))
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

thread_local! {
    static NUMBER: Number = Number::take();
}

/// The calling thread's number; [`THREADS`] for all that are too many, and for one that is about to end.
#[inline]
pub fn own_number() -> usize {
    NUMBER.try_with(|number| number.0.min(THREADS)).unwrap_or(THREADS)
}

/// Numbers that threads have or had, that of those that are too many included.
pub fn numbers() -> usize {
    NUMBERS.load(Ordering::SeqCst).min(THREADS + 1)
}

/// Runs a test that needs no other thread.
#[cfg(test)]
pub fn alone(run: impl Fn()) {
    run();
}
