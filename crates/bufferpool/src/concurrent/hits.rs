//! What was hit since the policy last heard of it: each thread notes its hits in a ring of its own, without a lock, and the
//! policy is told of many at once.
//!
//! A ring that runs full loses its oldest notes where the policy is busy: they are hints, and neither bytes nor dirty
//! bits depend on them. With one thread none is lost and their order is kept.
//! Source: X. Ding, S. Jiang, X. Zhang, *BP-Wrapper: A System Framework Making Any Replacement Algorithms (Almost) Lock
//! Contention Free*, ICDE 2009, section 3.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::pool::Access;

/// Notes in a ring.
const NOTES: u64 = 64;

/// A policy is told when so many are new.
const BATCH: u64 = 32;

/// Rings of one thread each: more than threads that run at once on most machines.
const OWN_RINGS: usize = 64;

/// One more is for all threads that come later.
const RINGS: usize = OWN_RINGS + 1;

/// One thread's notes, on cache lines that no other thread's are on.
#[repr(align(128))]
struct Ring {
    /// Notes so far.
    noted: AtomicU64,
    /// The last of them.
    notes: [AtomicU64; NOTES as usize],
}

/// The notes of all threads.
pub struct Hits {
    rings: Box<[Ring]>,
}

/// How far the policy has heard of each ring.
pub struct Heard([u64; RINGS]);

impl Heard {
    /// Of nothing yet.
    pub const NOTHING: Self = Self([0; RINGS]);
}

thread_local! {
    static RING: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Threads that have a ring.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The calling thread's ring.
#[inline]
fn own_ring() -> usize {
    RING.with(|ring| {
        if ring.get() == usize::MAX {
            ring.set(THREADS.fetch_add(1, Ordering::Relaxed).min(OWN_RINGS));
        }
        ring.get()
    })
}

impl Hits {
    /// Without notes.
    pub fn new() -> Self {
        let ring = || Ring { noted: AtomicU64::new(0), notes: std::array::from_fn(|_| AtomicU64::new(0)) };
        Self { rings: (0..RINGS).map(|_| ring()).collect() }
    }

    /// Notes a hit; says of which ring it is time to tell the policy.
    #[inline]
    pub fn note(&self, access: Access) -> Option<usize> {
        let own = own_ring();
        let ring = &self.rings[own];
        if own == OWN_RINGS {
            let at = ring.noted.fetch_add(1, Ordering::Relaxed);
            ring.notes[(at % NOTES) as usize].store(access.bits(), Ordering::Relaxed);
            return (at % BATCH == BATCH - 1).then_some(own);
        }
        let at = ring.noted.load(Ordering::Relaxed);
        ring.notes[(at % NOTES) as usize].store(access.bits(), Ordering::Relaxed);
        ring.noted.store(at + 1, Ordering::Release);
        (at % BATCH == BATCH - 1).then_some(own)
    }

    /// Hands out what is new in all rings, each in its order.
    pub fn hear_all(&self, heard: &mut Heard, mut tell: impl FnMut(Access)) {
        let used = THREADS.load(Ordering::Relaxed).min(RINGS);
        (0..used).for_each(|ring| self.hear(ring, heard, &mut tell));
    }

    /// Hands out what is new in one ring.
    pub fn hear(&self, ring: usize, Heard(heard): &mut Heard, mut tell: impl FnMut(Access)) {
        let (ring, heard) = (&self.rings[ring], &mut heard[ring]);
        let noted = ring.noted.load(Ordering::Acquire);
        for at in (*heard).max(noted.saturating_sub(NOTES))..noted {
            // Where threads share a ring, one may have taken the place and not have noted yet: an old hit is told once more.
            tell(Access::of_bits(ring.notes[(at % NOTES) as usize].load(Ordering::Relaxed)));
        }
        *heard = noted;
    }

    /// Hits so far, also those whose notes were lost.
    pub fn count(&self) -> u64 {
        self.rings.iter().map(|ring| ring.noted.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Page;

    #[test]
    fn the_policy_hears_of_every_hit_in_order_and_of_none_twice() {
        let (hits, mut heard, mut told) = (Hits::new(), Heard::NOTHING, Vec::new());
        let accesses: Vec<Access> = (0..40).map(|n| Access::new(Page(n), n % 3 == 0)).collect();
        let due: Vec<usize> = (0..40).filter(|&n| hits.note(accesses[n]).is_some()).collect();
        hits.hear_all(&mut heard, |access| told.push(access));
        assert_eq!((due, told.as_slice()), (vec![31], accesses.as_slice()));
        hits.hear_all(&mut heard, |access| told.push(access));
        assert_eq!((told.len(), hits.count()), (40, 40));
    }

    #[test]
    fn a_full_ring_loses_its_oldest_notes_and_counts_them_all_the_same() {
        let (hits, mut heard, mut told) = (Hits::new(), Heard::NOTHING, Vec::new());
        (0..100).for_each(|n| _ = hits.note(Access::new(Page(n), false)));
        hits.hear_all(&mut heard, |access| told.push(access.page().0));
        assert_eq!((told, hits.count()), ((36..100).collect(), 100));
    }
}
