//! The least number of rewrites that any algorithm can have, by trying everything; for the smallest of drives.
//!
//! States are followed write by write, each with the fewest rewrites that lead to it. It is enough to look at
//! algorithms that do nothing but empty whole blocks just before a write and erase at once what holds no valid page:
//!
//! - *Erasing at once* costs nothing, and whatever can be done with other slots can be done with clean ones.
//! - *Moving a page before its block is erased* can wait until then, with the slot that it went to left clean. If the
//!   page dies meanwhile or is moved once more, a move is saved; if its block is never erased, the page can stay.
//!
//! Slots of a block are alike, and so are blocks: a state is a sorted list of what each block holds.

use std::collections::{BTreeMap, BTreeSet};

use super::Shape;

/// A block: the valid pages as a set of bits, and the slots in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    valid: u32,
    used: u32,
}

type State = Vec<Block>;

/// The least rewrites of a trace on a drive with at most 32 pages.
///
/// # Panics
/// When there are more pages.
pub fn least_rewrites(shape: Shape, pages: &[u32]) -> u64 {
    assert!(shape.pages() <= 32, "pages are bits of a word");
    let mut states = BTreeMap::from([(vec![Block::default(); shape.blocks() as usize], 0)]);
    for &page in pages {
        let mut next = BTreeMap::new();
        for (state, rewrites) in emptied(states, shape.slots_per_block()) {
            for after in written(&state, page, shape.slots_per_block()) {
                improve(&mut next, after, rewrites);
            }
        }
        states = next;
    }
    states.into_values().min().unwrap_or(0)
}

fn improve(states: &mut BTreeMap<State, u64>, state: State, rewrites: u64) -> bool {
    let known = states.entry(state).or_insert(u64::MAX);
    let better = rewrites < *known;
    *known = rewrites.min(*known);
    better
}

/// Sorted, and with what holds nothing erased.
fn canonical(mut state: State) -> State {
    state.iter_mut().filter(|block| block.valid == 0).for_each(|block| block.used = 0);
    state.sort_unstable();
    state
}

/// All states that emptying blocks leads to, in order of what it costs (Dijkstra).
fn emptied(mut states: BTreeMap<State, u64>, slots: u32) -> BTreeMap<State, u64> {
    let mut queue: BTreeSet<(u64, State)> = states.iter().map(|(state, &rewrites)| (rewrites, state.clone())).collect();
    while let Some((rewrites, state)) = queue.pop_first() {
        if states.get(&state) != Some(&rewrites) {
            continue;
        }
        for victim in 0..state.len() {
            let moved = state[victim].valid;
            if moved == 0 || (victim > 0 && state[victim] == state[victim - 1]) {
                continue;
            }
            let mut others = state.clone();
            others.remove(victim);
            for mut after in moves(&others, moved, slots) {
                after.push(Block::default());
                let (after, cost) = (canonical(after), rewrites + u64::from(moved.count_ones()));
                if improve(&mut states, after.clone(), cost) {
                    queue.insert((cost, after));
                }
            }
        }
    }
    states
}

/// All ways to move these pages into other blocks.
fn moves(blocks: &[Block], pages: u32, slots: u32) -> BTreeSet<State> {
    let mut ways = BTreeSet::from([blocks.to_vec()]);
    for page in (0..32).filter(|page| pages >> page & 1 != 0) {
        ways = ways.iter().flat_map(|blocks| placed(blocks, page, slots)).collect();
    }
    ways
}

/// All ways to put a page into a clean slot.
fn placed(blocks: &[Block], page: u32, slots: u32) -> Vec<State> {
    let put = |n: usize| {
        let mut after = blocks.to_vec();
        after[n].valid |= 1 << page;
        after[n].used += 1;
        after
    };
    (0..blocks.len()).filter(|&n| blocks[n].used < slots).map(put).collect()
}

/// All states that a write of a page leads to.
fn written(state: &State, page: u32, slots: u32) -> BTreeSet<State> {
    let put = |n: usize| {
        let mut after = state.clone();
        after.iter_mut().for_each(|block| block.valid &= !(1 << page));
        after[n].valid |= 1 << page;
        after[n].used += 1;
        canonical(after)
    };
    (0..state.len()).filter(|&n| state[n].used < slots).map(put).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_without_erasing_costs_nothing() {
        let shape = Shape::new(3, 2, 3).unwrap();
        assert_eq!(least_rewrites(shape, &[0, 1, 2, 0, 1, 2]), 0);
    }

    #[test]
    fn pages_that_die_together_cost_nothing_when_they_are_written_together() {
        let shape = Shape::new(3, 2, 2).unwrap();
        assert_eq!(least_rewrites(shape, &[0, 1].repeat(6)), 0);
    }

    /// Three blocks of two slots, page 0 is written once and the other two again and again. Page 0 lies alone in a
    /// block or with another page; the slot beside it can be used once. The other two blocks hold pages 1 and 2, and
    /// each of them is empty when both have been written: nothing ever has to be moved.
    #[test]
    fn a_page_that_lives_long_is_left_where_it_is() {
        let shape = Shape::new(3, 2, 3).unwrap();
        assert_eq!(least_rewrites(shape, &[0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]), 0);
    }

    /// Two blocks of three slots, page 1 written once and page 0 ever after. Page 1 keeps its block A for ever, with
    /// room for two more versions; block B takes three at a time and is empty whenever page 0 is in A. So B A is filled
    /// 3 + 1 + 3 + 1 + 3 times, and eleven writes of page 0 are free. The twelfth is not; one move of page 1 to B,
    /// while B has room, frees A.
    #[test]
    fn a_page_that_is_in_the_way_has_to_be_moved() {
        let shape = Shape::new(2, 3, 2).unwrap();
        let after = |writes: usize| least_rewrites(shape, &[vec![1], vec![0; writes]].concat());
        assert_eq!([5, 11, 12].map(after), [0, 0, 1]);
    }
}
