//! Slots that are reused, and first-in-first-out lists through them: no allocation on the path of a request.

use crate::memory::prefetch;
pub use crate::state::NONE;
use crate::state::{AtRest, Carried, Carrier, Layout, State, StateError};

/// Slots for which there is room as soon as there is one.
const FIRST: usize = 64;

/// A vector whose freed slots are given out again.
pub(crate) struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
    /// Whether a slot is free, to find one that is given back twice.
    #[cfg(debug_assertions)]
    is_free: Vec<bool>,
}

impl<T: Default> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            #[cfg(debug_assertions)]
            is_free: Vec::new(),
        }
    }
}

impl<T: Default> Slab<T> {
    /// A slot's index; the slot holds what its last user left in it.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> u32 {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.add(),
        };
        #[cfg(debug_assertions)]
        {
            self.is_free.resize(self.slots.len(), true);
            self.is_free[index as usize] = false;
        }
        index
    }

    /// Says that a slot will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        prefetch(&self.slots, index as usize);
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self) -> u32 {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve(self.slots.len().max(FIRST));
            // All of them may be free at once: to give one back takes no memory.
            self.free.reserve(self.slots.capacity() - self.free.len());
            #[cfg(debug_assertions)]
            self.is_free.reserve(self.slots.capacity() - self.is_free.len());
        }
        self.slots.push(T::default());
        self.slots.len() as u32 - 1
    }

    /// Has so many slots before they are asked for, each of them prepared, in use or not.
    pub(crate) fn reserve(&mut self, count: usize, prepare: impl FnMut(&mut T)) {
        let old = self.slots.len();
        self.slots.resize_with(count.max(old), T::default);
        self.slots.iter_mut().for_each(prepare);
        // Those that were used before are given out first, as without this.
        self.free.splice(0..0, (old as u32..self.slots.len() as u32).rev());
        self.free.reserve(self.slots.capacity() - self.free.len());
        #[cfg(debug_assertions)]
        self.is_free.resize(self.slots.len(), true);
    }

    /// Slots in use.
    pub(crate) fn taken(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Slots, in use or not.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Gives a slot back.
    pub(crate) fn give_back(&mut self, index: u32) {
        #[cfg(debug_assertions)]
        assert!(!std::mem::replace(&mut self.is_free[index as usize], true), "slot {index} is given back twice");
        self.free.push(index);
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        &self.slots[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.slots[index as usize]
    }
}

/// Something that can are in one [`Fifo`].
pub(crate) trait Linked {
    /// The slot behind this one.
    fn next(&mut self) -> &mut u32;
}

/// A first-in-first-out list of slab slots.
#[derive(Clone, Copy)]
pub(crate) struct Fifo {
    head: u32,
    tail: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl Fifo {
    /// Appends a slot.
    #[inline(always)]
    pub(crate) fn push<T: Linked + Default>(&mut self, slab: &mut Slab<T>, index: u32) {
        *slab[index].next() = NONE;
        match self.tail {
            NONE => self.head = index,
            tail => *slab[tail].next() = index,
        }
        self.tail = index;
    }

    /// Takes the first slot.
    #[inline(always)]
    pub(crate) fn pop<T: Linked + Default>(&mut self, slab: &mut Slab<T>) -> Option<u32> {
        let index = self.peek()?;
        self.head = *slab[index].next();
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(index)
    }

    /// Takes the slots for which `wanted` says `true` out of the middle, in their order, until it says `None`.
    pub(crate) fn extract<T: Linked + Default>(
        &mut self,
        slab: &mut Slab<T>,
        mut wanted: impl FnMut(&T) -> Option<bool>,
        into: &mut Vec<u32>,
    ) {
        let (mut before, mut at) = (NONE, self.head);
        while at != NONE {
            let slot = &mut slab[at];
            let next = *slot.next();
            match wanted(slot) {
                Some(true) => {
                    into.push(at);
                    match before {
                        NONE => self.head = next,
                        before => *slab[before].next() = next,
                    }
                    if next == NONE {
                        self.tail = before;
                    }
                }
                Some(false) => before = at,
                None => return,
            }
            at = next;
        }
    }

    /// The first slot.
    pub(crate) fn peek(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }
}

impl<T: State + Default> State for Slab<T> {
    fn layout(layout: &mut Layout) {
        layout.word("Slab");
        T::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        carrier.list(&mut self.slots)?;
        carrier.list(&mut self.free)?;
        if !carrier.is_restoring() {
            return Ok(());
        }
        let mut is_free = vec![false; self.slots.len()];
        for &free in &self.free {
            match is_free.get_mut(free as usize) {
                Some(seen @ false) => *seen = true,
                _ => return Err(StateError::damaged(format!("slot {free} is free twice, or does not exist"))),
            }
        }
        #[cfg(debug_assertions)]
        {
            self.is_free = is_free;
        }
        Ok(())
    }
}

impl<T> Slab<T> {
    /// The slots in use, each once.
    pub(crate) fn used(&self) -> Vec<u32> {
        let mut is_used = vec![true; self.slots.len()];
        self.free.iter().for_each(|&free| is_used[free as usize] = false);
        (0..).zip(is_used).filter_map(|(slot, is_used)| is_used.then_some(slot)).collect()
    }
}

impl<T: Default> AtRest for Slab<T> {
    fn is_at_rest(&self) -> bool {
        self.taken() == 0
    }
}

impl AtRest for Fifo {
    fn is_at_rest(&self) -> bool {
        self.peek().is_none()
    }
}

crate::state::state! { Fifo { saved { head, tail } } }

impl Fifo {
    /// Slots in the list, in its order.
    ///
    /// # Errors
    /// When it is no list of slots: it leads elsewhere, or does not end.
    pub(crate) fn members<T: Linked + Default>(&self, slab: &mut Slab<T>) -> Result<Vec<u32>, String> {
        let (mut members, mut at) = (Vec::new(), self.head);
        while at != NONE {
            if at >= slab.slots() || members.len() as u32 == slab.slots() {
                return Err("a list of slots has an invalid link".to_owned());
            }
            members.push(at);
            at = *slab[at].next();
        }
        if members.last().copied().unwrap_or(NONE) != self.tail {
            return Err("a list of slots ends where it should not".to_owned());
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Node(u32);

    impl Linked for Node {
        fn next(&mut self) -> &mut u32 {
            &mut self.0
        }
    }

    #[test]
    fn reserved_slots_are_there_prepared_and_given_out_after_those_that_were_used() {
        let mut slab = Slab::<Node>::default();
        let used: Vec<u32> = (0..3).map(|_| slab.take()).collect();
        slab.give_back(used[1]);
        slab.reserve(5, |node| node.0 = 7);
        assert_eq!((slab.slots(), slab.taken()), (5, 2));
        assert_eq!((0..3).map(|_| slab.take()).collect::<Vec<_>>(), [1, 3, 4]);
        assert!((0..5).all(|slot| slab[slot].0 == 7));
        let before = slab.slots.as_ptr();
        (0..5).for_each(|slot| slab.give_back(slot));
        slab.reserve(2, |_| {});
        assert_eq!((slab.slots(), slab.slots.as_ptr()), (5, before), "fewer are no reason to change anything");
    }

    #[test]
    fn slots_are_taken_out_of_the_middle_and_the_others_keep_their_order() {
        let mut slab = Slab::<Node>::default();
        let mut fifo = Fifo::default();
        for _ in 0..6 {
            let index = slab.take();
            fifo.push(&mut slab, index);
        }
        let (mut seen, mut taken) = (0, Vec::new());
        let wanted = |_: &Node| {
            seen += 1;
            (seen < 5).then_some(seen % 2 == 1)
        };
        fifo.extract(&mut slab, wanted, &mut taken);
        assert_eq!(taken, [0, 2]);
        fifo.push(&mut slab, 0);
        assert_eq!(std::iter::from_fn(|| fifo.pop(&mut slab)).collect::<Vec<_>>(), [1, 3, 4, 5, 0]);
    }

    #[test]
    fn a_fifo_gives_slots_back_in_order_and_slots_are_reused() {
        let mut slab = Slab::<Node>::default();
        let mut fifo = Fifo::default();
        let taken = [slab.take(), slab.take(), slab.take()];
        taken.iter().for_each(|&i| fifo.push(&mut slab, i));
        assert_eq!([fifo.pop(&mut slab), fifo.pop(&mut slab)], [Some(taken[0]), Some(taken[1])]);
        slab.give_back(taken[0]);
        assert_eq!(slab.take(), taken[0]);
        fifo.push(&mut slab, taken[0]);
        assert_eq!(
            [fifo.pop(&mut slab), fifo.pop(&mut slab), fifo.pop(&mut slab)],
            [Some(taken[2]), Some(taken[0]), None]
        );
    }
}
