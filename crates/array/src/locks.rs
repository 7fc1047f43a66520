//! Which work on the same bytes waits for which.
//!
//! Work that changes bytes, or puts them together from other members, holds a range of the array's bytes while it
//! lasts: whole rows where there is parity, which belongs to all of a row, and just its own bytes elsewhere. Ranges
//! that touch are held one after the other, in the order in which they were asked for.

/// Holders and waiters, in the order in which they came.
#[derive(Default)]
pub(super) struct Locks {
    held: Vec<Range>,
    waiting: Vec<Range>,
}

#[derive(Clone, Copy)]
struct Range {
    start: u64,
    end: u64,
    owner: u64,
}

impl Range {
    fn touches(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

impl Locks {
    /// Asks for a range; `true` where it is held at once, else [`Self::release`] tells when it is.
    pub(super) fn acquire(&mut self, start: u64, end: u64, owner: u64) -> bool {
        let range = Range { start, end, owner };
        let free = !self.held.iter().chain(&self.waiting).any(|other| other.touches(&range));
        if free { &mut self.held } else { &mut self.waiting }.push(range);
        free
    }

    /// Gives a range back; those who hold theirs from now on, in the order in which they came.
    pub(super) fn release(&mut self, owner: u64) -> Vec<u64> {
        self.held.retain(|range| range.owner != owner);
        let mut next = Vec::new();
        let mut place = 0;
        while place < self.waiting.len() {
            let range = self.waiting[place];
            let mut before = self.held.iter().chain(&self.waiting[..place]);
            if before.any(|other| other.touches(&range)) {
                place += 1;
                continue;
            }
            self.waiting.remove(place);
            self.held.push(range);
            next.push(range.owner);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_held_in_the_order_of_asking() {
        let mut locks = Locks::default();
        assert!(locks.acquire(0, 10, 1));
        assert!(locks.acquire(10, 20, 2));
        assert!(!locks.acquire(5, 15, 3));
        assert!(!locks.acquire(14, 30, 4), "must not overtake 3");
        assert!(locks.acquire(40, 50, 5));
        assert!(locks.release(1).is_empty());
        assert_eq!(locks.release(2), [3]);
        assert_eq!(locks.release(3), [4]);
        assert!(locks.release(4).is_empty());
    }
}
