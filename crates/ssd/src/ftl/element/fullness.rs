//! Sealed blocks by how many valid pages they hold.
//!
//! For each plane and each count a set of rows, as bits. The emptiest sealed block, among equals the one with the
//! highest row, is the highest bit of the lowest set that has any; a page that becomes invalid moves one bit.
//!
//! ```text
//!   scan of a plane's blocks in the order of rows that keeps each one at least as empty as all kept before it:
//!
//!     row     0  1  2  3  4  5  6          kept: 0, 1, 3, 4, 6      the chain of candidates
//!     valid   9  5  7  5  3  6  3          last kept: 6             what greedy takes
//!
//!   the one kept before a block is the emptiest, highest one among the rows below it.
//! ```

/// The sealed blocks of all planes.
pub(super) struct Fullness {
    bits: Vec<u64>,
    /// Blocks in each set.
    sizes: Vec<u32>,
    /// For each plane: no set below this count has any.
    lowest: Vec<u32>,
    /// Sets of a plane, words of a set.
    sets: u32,
    words: u32,
}

impl Fullness {
    /// None sealed, in `planes` planes of `rows` blocks of `pages` data pages.
    pub(super) fn new(planes: u32, rows: u32, pages: u32) -> Self {
        let (sets, words) = (pages + 1, rows.div_ceil(64));
        let all_sets = planes as usize * sets as usize;
        Self {
            bits: vec![0; all_sets * words as usize],
            sizes: vec![0; all_sets],
            lowest: vec![sets; planes as usize],
            sets,
            words,
        }
    }

    fn set(&self, plane: u32, valid: u32) -> usize {
        plane as usize * self.sets as usize + valid as usize
    }

    fn word(&self, set: usize, row: u32) -> usize {
        set * self.words as usize + row as usize / 64
    }

    /// A block is sealed and holds so many valid pages.
    pub(super) fn insert(&mut self, plane: u32, row: u32, valid: u32) {
        let set = self.set(plane, valid);
        let word = self.word(set, row);
        debug_assert_eq!(self.bits[word] >> (row % 64) & 1, 0, "row {row} is sealed already");
        self.bits[word] |= 1 << (row % 64);
        self.sizes[set] += 1;
        let lowest = &mut self.lowest[plane as usize];
        *lowest = valid.min(*lowest);
    }

    /// A block that held so many valid pages is sealed no more.
    pub(super) fn remove(&mut self, plane: u32, row: u32, valid: u32) {
        let set = self.set(plane, valid);
        let word = self.word(set, row);
        debug_assert_eq!(self.bits[word] >> (row % 64) & 1, 1, "row {row} is not sealed with {valid} valid pages");
        self.bits[word] &= !(1 << (row % 64));
        self.sizes[set] -= 1;
    }

    /// The last candidate of a plane, with its valid pages.
    pub(super) fn last(&mut self, plane: u32) -> Option<(u32, u32)> {
        let first = self.set(plane, 0);
        let mut valid = self.lowest[plane as usize];
        while valid < self.sets && self.sizes[first + valid as usize] == 0 {
            valid += 1;
        }
        self.lowest[plane as usize] = valid;
        if valid == self.sets {
            return None;
        }
        self.highest_below(first + valid as usize, self.words * 64).map(|row| (row, valid))
    }

    /// The candidate before the one in `row`.
    pub(super) fn before(&self, plane: u32, row: u32) -> Option<(u32, u32)> {
        (self.lowest[plane as usize]..self.sets).find_map(|valid| {
            let set = self.set(plane, valid);
            if self.sizes[set] == 0 { None } else { self.highest_below(set, row).map(|row| (row, valid)) }
        })
    }

    /// The highest row of a set below `end`.
    fn highest_below(&self, set: usize, end: u32) -> Option<u32> {
        let first = set * self.words as usize;
        let words = &self.bits[first..first + end.div_ceil(64) as usize];
        let (last, rest) = words.split_last()?;
        let mask = if end.is_multiple_of(64) { u64::MAX } else { (1 << (end % 64)) - 1 };
        let highest = |at: usize, word: u64| at as u32 * 64 + 63 - word.leading_zeros();
        if last & mask != 0 {
            return Some(highest(rest.len(), last & mask));
        }
        rest.iter().rposition(|&word| word != 0).map(|at| highest(at, rest[at]))
    }
}

crate::state::state! {
    Fullness {
        saved { bits, sizes, lowest }
        built { sets, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_candidates_are_those_that_a_scan_in_the_order_of_rows_keeps(
            steps in prop::collection::vec((0_u32..2, 0_u32..150, 0_u32..6), 1..300),
        ) {
            let mut fullness = Fullness::new(2, 150, 5);
            let mut sealed = vec![[None; 150]; 2];
            for (plane, row, valid) in steps {
                let state = &mut sealed[plane as usize][row as usize];
                if let Some(before) = state.take() {
                    fullness.remove(plane, row, before);
                }
                if valid < 5 {
                    *state = Some(valid);
                    fullness.insert(plane, row, valid);
                }
                let mut kept = Vec::new();
                for (row, &valid) in sealed[plane as usize].iter().enumerate() {
                    if valid.is_some_and(|valid| kept.last().is_none_or(|&(_, least)| valid <= least)) {
                        kept.extend(valid.map(|valid| (row as u32, valid)));
                    }
                }
                let mut walked = Vec::new();
                let mut at = fullness.last(plane);
                while let Some((row, valid)) = at {
                    walked.insert(0, (row, valid));
                    at = fullness.before(plane, row);
                }
                prop_assert_eq!(walked, kept);
            }
        }
    }
}
