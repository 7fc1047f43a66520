//! A heap of groups that changes at its top only: what is first goes, or comes later than it did. It can be walked in
//! order without being taken apart.
//!
//! A group and its key are one number, so that comparing two of them is no branch that a processor would have to guess,
//! and asks no other memory. Behind the last group stand numbers that are larger than any: so each group has as many
//! children.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is compared: first the rank (a count, a time), then the age of the group's first page in its list.
pub(crate) type Key = (u64, u64);

/// Children of a place: four of them are beside each other in memory, and the heap is half as high as with two.
const CHILDREN: usize = 4;

/// A group with its key, which is above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node(u128);

/// Larger than any.
const NONE: Node = Node(u128::MAX);

impl Node {
    /// A group whose first page has that age.
    #[inline]
    pub(crate) const fn new(rank: u64, age: u32, group: u32) -> Self {
        Self((rank as u128) << 64 | (age as u128) << 32 | group as u128)
    }

    #[inline]
    pub(crate) const fn group(self) -> usize {
        self.0 as u32 as usize
    }

    /// Of the group's first page.
    #[inline]
    pub(crate) const fn age(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(crate) const fn key(self) -> Key {
        ((self.0 >> 64) as u64, self.age() as u64)
    }
}

/// Groups, the one with the smallest key first.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    /// Behind the last one [`NONE`].
    nodes: Vec<Node>,
    len: usize,
}

impl Heap {
    /// For so many groups.
    pub(crate) fn new(groups: usize) -> Self {
        Self { nodes: vec![NONE; groups + CHILDREN], len: 0 }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<Node> {
        (self.len > 0).then(|| self.nodes[0])
    }

    /// Those of which one is the first when the first is gone.
    #[inline]
    pub(crate) fn second(&self) -> &[Node] {
        &self.nodes[1..self.len.clamp(1, 1 + CHILDREN)]
    }

    /// In no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Node> + '_ {
        self.nodes[..self.len].iter().copied()
    }

    /// Puts a group in that is not there.
    pub(crate) fn push(&mut self, node: Node) {
        let mut place = self.len;
        self.len += 1;
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.nodes[parent] <= node {
                break;
            }
            self.nodes[place] = self.nodes[parent];
            place = parent;
        }
        self.nodes[place] = node;
    }

    /// The first group has another key, or another one is in its place.
    #[inline]
    pub(crate) fn replace_first(&mut self, node: Node) {
        self.sink(0, node);
    }

    pub(crate) fn remove_first(&mut self) {
        self.len -= 1;
        let last = std::mem::replace(&mut self.nodes[self.len], NONE);
        if self.len > 0 {
            self.sink(0, last);
        }
    }

    /// Other groups than before.
    pub(crate) fn fill(&mut self, groups: impl Iterator<Item = Node>) {
        self.nodes[..self.len].fill(NONE);
        self.len = 0;
        for node in groups {
            self.nodes[self.len] = node;
            self.len += 1;
        }
        for place in (0..self.len.div_ceil(CHILDREN)).rev() {
            self.sink(place, self.nodes[place]);
        }
    }

    /// Puts a node below a place that is free for it.
    #[inline]
    fn sink(&mut self, mut place: usize, node: Node) {
        while CHILDREN * place + 1 < self.len {
            let start = CHILDREN * place + 1;
            let [a, b, c, d] = [0, 1, 2, 3].map(|child| (self.nodes[start + child], start + child));
            let least = least(least(a, b), least(c, d));
            if least.0 >= node {
                break;
            }
            self.nodes[place] = least.0;
            place = least.1;
        }
        self.nodes[place] = node;
    }

    /// The groups in the order of their keys, n of them in n log n steps; `scratch` is room to work in.
    pub(crate) fn sorted<'a>(&'a self, scratch: &'a mut Scratch) -> Sorted<'a> {
        scratch.0.clear();
        scratch.0.extend(self.first().map(|first| Reverse((first, 0))));
        Sorted { heap: self, open: &mut scratch.0 }
    }
}

#[inline]
fn least(one: (Node, usize), other: (Node, usize)) -> (Node, usize) {
    if other.0 < one.0 { other } else { one }
}

/// Room for [`Heap::sorted`], kept so that it is not allocated anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch(BinaryHeap<Reverse<(Node, usize)>>);

/// See [`Heap::sorted`].
pub(crate) struct Sorted<'a> {
    heap: &'a Heap,
    /// Places whose parent was given out.
    open: &'a mut BinaryHeap<Reverse<(Node, usize)>>,
}

impl Iterator for Sorted<'_> {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        let Reverse((node, place)) = self.open.pop()?;
        let children = (CHILDREN * place + 1)..self.heap.len.min(CHILDREN * place + 1 + CHILDREN);
        self.open.extend(children.map(|child| Reverse((self.heap.nodes[child], child))));
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u64),
        Grow(u64),
        Remove,
        Fill(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0_u64..10).prop_map(Step::Push),
            6 => (0_u64..10).prop_map(Step::Grow),
            3 => Just(Step::Remove),
            1 => (0_u32..30).prop_map(Step::Fill),
        ]
    }

    proptest! {
        #[test]
        fn it_is_walked_in_the_order_of_the_keys_whatever_was_changed(
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let (mut heap, mut model) = (Heap::new(30), BTreeSet::new());
            for (age, step) in (0..).zip(steps) {
                match step {
                    Step::Push(rank) => {
                        let unused = (0..30).find(|group| model.iter().all(|node: &Node| node.group() != *group));
                        let Some(group) = unused else { continue };
                        heap.push(Node::new(rank, age, group as u32));
                        model.insert(Node::new(rank, age, group as u32));
                    }
                    Step::Grow(more) => if let Some(first) = model.pop_first() {
                        let node = Node::new(first.key().0 + more, age, first.group() as u32);
                        heap.replace_first(node);
                        model.insert(node);
                    }
                    Step::Remove => if model.pop_first().is_some() {
                        heap.remove_first();
                    }
                    Step::Fill(count) => {
                        let nodes = (0..count).map(|group| Node::new(u64::from(group * 7 % 5), age + group, group));
                        model = nodes.clone().collect();
                        heap.fill(nodes);
                    }
                }
                let expected: Vec<_> = model.iter().copied().collect();
                let mut scratch = Scratch::default();
                prop_assert_eq!(heap.first(), expected.first().copied());
                prop_assert_eq!(heap.sorted(&mut scratch).collect::<Vec<_>>(), expected);
            }
        }
    }
}
