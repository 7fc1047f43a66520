//! What was hit since the policy last heard of it: each thread notes its hits in a ring of its own, without a lock, and
//! the policy is told of many at once.
//!
//! A ring that runs full loses its oldest notes where the policy is busy: they are hints, and neither bytes nor dirty
//! bits depend on them. With one thread none is lost and their order is kept.
//! Source: X. Ding, S. Jiang, X. Zhang, *BP-Wrapper: A System Framework Making Any Replacement Algorithms (Almost) Lock
//! Contention Free*, ICDE 2009, section 3.

use crate::directory::Page;
use crate::pool::Access;
use crate::sync::{AtomicU64, NOTES, Ordering, THREADS as OWN_RINGS, numbers};

/// A policy is told when so many are new.
const BATCH: u64 = NOTES as u64 / 2;

/// Once in so many hits a thread allows readers of a page to announce themselves.
const ALLOWING: u64 = 16;

/// One more is for all threads that come later.
const RINGS: usize = OWN_RINGS + 1;

/// One thread's notes, on cache lines that no other thread's are on.
#[repr(align(128))]
struct Ring {
    /// Notes so far.
    noted: AtomicU64,
    /// The last of them.
    notes: [AtomicU64; NOTES],
}

const fn bits(access: Access) -> u64 {
    (access.page().0 as u64) << 1 | access.is_write() as u64
}

const fn access(bits: u64) -> Access {
    Access::new(Page((bits >> 1) as u32), bits & 1 != 0)
}

/// The notes of all threads.
pub struct Hits {
    rings: Box<[Ring]>,
}

/// How far the policy has heard of each ring.
pub struct RingPositions([u64; RINGS]);

impl RingPositions {
    /// Of nothing yet.
    pub const START: Self = Self([0; RINGS]);
}

/// What came of noting a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteOutcome {
    /// The policy is to be told of the ring.
    pub is_due: bool,
    /// Readers of this page may announce themselves.
    pub may_announce: bool,
}

impl Hits {
    /// Without notes.
    pub fn new() -> Self {
        let ring = || Ring { noted: AtomicU64::new(0), notes: std::array::from_fn(|_| AtomicU64::new(0)) };
        Self { rings: (0..RINGS).map(|_| ring()).collect() }
    }

    /// Notes a hit of the thread with that number, whose ring has it too.
    #[inline]
    pub fn note(&self, own: usize, access: Access) -> NoteOutcome {
        let ring = &self.rings[own];
        let at = match own {
            OWN_RINGS => ring.noted.fetch_add(1, Ordering::Relaxed),
            _ => ring.noted.load(Ordering::Relaxed),
        };
        ring.notes[at as usize % NOTES].store(bits(access), Ordering::Relaxed);
        if own != OWN_RINGS {
            ring.noted.store(at + 1, Ordering::Release);
        }
        NoteOutcome { is_due: at % BATCH == BATCH - 1, may_announce: at % ALLOWING == 0 }
    }

    /// Hands out what is new in all rings, each in its order.
    pub fn drain_all(&self, heard: &mut RingPositions, mut tell: impl FnMut(Access)) {
        (0..numbers().min(RINGS)).for_each(|ring| self.drain(ring, heard, &mut tell));
    }

    /// Hands out what is new in one ring.
    pub fn drain(&self, ring: usize, RingPositions(heard): &mut RingPositions, mut tell: impl FnMut(Access)) {
        let (ring, heard) = (&self.rings[ring], &mut heard[ring]);
        let noted = ring.noted.load(Ordering::Acquire);
        for at in (*heard).max(noted.saturating_sub(NOTES as u64))..noted {
            // Where threads share a ring, one may have taken the place and not have noted yet: an old hit is told once
            // more.
            tell(access(ring.notes[at as usize % NOTES].load(Ordering::Relaxed)));
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
    use crate::sync::{alone, own_number};

    #[test]
    fn the_policy_hears_of_every_hit_in_order_and_of_none_twice() {
        alone(|| {
            let (hits, mut heard, mut told) = (Hits::new(), RingPositions::START, Vec::new());
            let count = NOTES * 5 / 8;
            let accesses: Vec<Access> = (0..count).map(|n| Access::new(Page(n as u32), n % 3 == 0)).collect();
            let due: Vec<usize> = (0..count).filter(|&n| hits.note(own_number(), accesses[n]).is_due).collect();
            hits.drain_all(&mut heard, |access| told.push(access));
            assert_eq!((due, told.as_slice()), (vec![NOTES / 2 - 1], accesses.as_slice()));
            hits.drain_all(&mut heard, |access| told.push(access));
            assert_eq!((told.len(), hits.count()), (count, count as u64));
        });
    }

    #[test]
    fn a_full_ring_loses_its_oldest_notes_and_counts_them_all_the_same() {
        alone(|| {
            let (hits, mut heard, mut told) = (Hits::new(), RingPositions::START, Vec::new());
            let all = NOTES as u32 + 36;
            (0..all).for_each(|n| _ = hits.note(own_number(), Access::new(Page(n), false)));
            hits.drain_all(&mut heard, |access| told.push(access.page().0));
            assert_eq!((told, hits.count()), ((36..all).collect(), u64::from(all)));
        });
    }
}
