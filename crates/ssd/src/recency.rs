//! An order of use through slab slots: the newest at one end, the oldest at the other, and any of them can leave.

use crate::list::{NONE, Slab};

/// A slot's neighbours.
#[derive(Clone, Copy)]
pub(crate) struct Links {
    newer: u32,
    older: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { newer: NONE, older: NONE }
    }
}

impl Links {
    /// The slot that was added or renewed next.
    pub(crate) fn newer(&self) -> u32 {
        self.newer
    }
}

/// Something that can are in one [`Recency`].
pub(crate) trait Ranked {
    /// Its neighbours.
    fn links(&mut self) -> &mut Links;
}

/// The order of use of slab slots.
#[derive(Clone, Copy)]
pub(crate) struct Recency {
    newest: u32,
    oldest: u32,
}

impl Default for Recency {
    fn default() -> Self {
        Self { newest: NONE, oldest: NONE }
    }
}

impl Recency {
    /// Adds a slot as the newest one.
    pub(crate) fn push<T: Ranked + Default>(&mut self, slab: &mut Slab<T>, index: u32) {
        *slab[index].links() = Links { newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = index,
            newest => slab[newest].links().newer = index,
        }
        self.newest = index;
    }

    /// Takes a slot out.
    pub(crate) fn remove<T: Ranked + Default>(&mut self, slab: &mut Slab<T>, index: u32) {
        let Links { newer, older } = *slab[index].links();
        match newer {
            NONE => self.newest = older,
            newer => slab[newer].links().older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => slab[older].links().newer = newer,
        }
    }

    /// The slot that was added first.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}

crate::state::state! { Links { saved { newer, older } } }

crate::state::state! { Recency { saved { newest, oldest } } }

impl Recency {
    /// Slots in the order, the newest first.
    ///
    /// # Errors
    /// When it is no order of slots: it leads elsewhere, does not end, or is another one from its other end.
    pub(crate) fn members<T: Ranked + Default>(&self, slab: &mut Slab<T>) -> Result<Vec<u32>, String> {
        let (mut members, mut at, mut newer) = (Vec::new(), self.newest, NONE);
        while at != NONE {
            if at >= slab.slots() || members.len() as u32 == slab.slots() {
                return Err("an order of slots has an invalid link".to_owned());
            }
            let links = *slab[at].links();
            if links.newer != newer {
                return Err(format!("slot {at} has another neighbour than its neighbour has"));
            }
            members.push(at);
            (newer, at) = (at, links.older);
        }
        if newer != self.oldest {
            return Err("an order of slots ends where it should not".to_owned());
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Node(Links);

    impl Ranked for Node {
        fn links(&mut self) -> &mut Links {
            &mut self.0
        }
    }

    #[test]
    fn slots_leave_in_the_order_of_use_or_out_of_the_middle() {
        let (mut slab, mut order) = (Slab::<Node>::default(), Recency::default());
        let slots: Vec<u32> = (0..4).map(|_| slab.take()).collect();
        slots.iter().for_each(|&slot| order.push(&mut slab, slot));
        order.remove(&mut slab, slots[1]);
        order.remove(&mut slab, slots[3]);
        order.push(&mut slab, slots[1]);
        let rest = std::iter::from_fn(|| {
            let oldest = order.oldest()?;
            order.remove(&mut slab, oldest);
            Some(oldest)
        });
        assert_eq!(rest.collect::<Vec<_>>(), [slots[0], slots[2], slots[1]]);
    }
}
