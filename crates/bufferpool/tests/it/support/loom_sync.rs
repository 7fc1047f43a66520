//! What threads meet at, by the model checker loom: in place of `src/sync.rs`.

pub use loom::sync::atomic::{AtomicU64, Ordering};
pub use loom::sync::{Condvar, Mutex, MutexGuard};

/// One attempt: the checker would follow every further one.
pub const SPINS: usize = 1;
/// One place, so that threads that wait for different pages meet there.
pub const SHARDS: usize = 1;
/// Announcements of a thread at a time.
pub const PLACES: usize = 1;
/// Threads that have places and a ring.
pub const THREADS: usize = 2;
/// Notes in a ring.
pub const NOTES: usize = 4;

pub fn publish(place: &AtomicU64, value: u64) {
    // The checker takes sequentially consistent accesses for weaker ones than they are, and fences for what they are.
    place.store(value, Ordering::Relaxed);
    full_fence();
}

pub fn full_fence() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

pub fn pause(_: u32) {
    loom::thread::yield_now();
}

loom::thread_local! {
    static NUMBER: std::cell::Cell<usize> = std::cell::Cell::new(THREADS);
}

/// Gives the calling thread a number; without it is one too many.
pub fn be(number: usize) {
    NUMBER.with(|own| own.set(number));
}

pub fn own_number() -> usize {
    NUMBER.with(std::cell::Cell::get)
}

pub fn numbers() -> usize {
    THREADS + 1
}

pub fn alone(run: impl Fn() + Sync + Send + 'static) {
    loom::model(run);
}
