//! LRU-K: evicts the page whose K-th last reference is the longest ago; pages with fewer than K references before all
//! others.
//!
//! Pages with fewer references are evicted by their last one (LRU). The times of a page's references are kept for a
//! while after it has been evicted. Source: E. J. O'Neil, P. E. O'Neil, G. Weikum, *The LRU-K Page Replacement
//! Algorithm for Database Disk Buffering*, SIGMOD 1993.
//!
//! Parameters: `k`, default 2; `history`, pages whose times are kept after they were evicted, as a share of the frames,
//! default 1 (the paper keeps them for a time instead); `correlated`, accesses within which another reference to a page
//! counts as the same one, default 0.
//!
//! Every reference has a number of its own, in the order of time, and a bit that says whether it is the K-th last one
//! of a page in a frame: the first bit that is set is the victim, and a hit clears one and sets another. When the
//! numbers are used up, those that count are given anew, in the same order.
//!
//! **Order.** Pages with fewer than K references by their last one; a new page is evicted before any other, so nothing
//! follows.

use super::{Parameters, Policy, PolicyError, Shape, Taker, hand_out};
use crate::directory::{Directory, Entry, Page};
use crate::lists::Lists;
use crate::memory::prefetch;

/// Pages in frames with fewer than K references.
const FEW: usize = 0;
/// Pages without frames.
const GHOST: usize = 1;
/// Most references that are remembered.
const K_MAX: usize = 8;
/// Most references that have a number of 32 bits, whole words of 64 of them.
const REFERENCES_MAX: u64 = (1 << 32) - 64;

/// See the module.
pub(crate) struct LruK {
    lists: Lists,
    references: References,
    /// K of each entry: numbers of its last references, the last first; 0 for none.
    numbers: Vec<u32>,
    k: usize,
    ghosts: usize,
    correlated: u64,
    /// References so far.
    now: u64,
    /// By entry: which reference was the last, where it matters how long ago that is.
    last: Vec<u64>,
    /// The ghost that is requested and in no list.
    expected: Option<Entry>,
}

/// References by their numbers.
struct References {
    /// Whose it was.
    entries: Vec<Entry>,
    /// Whether it is the K-th last one of a page in a frame.
    kth: Vec<u64>,
    /// Words of these that may have a bit that is set, a bit each.
    words: Vec<u64>,
    /// The number that comes next.
    end: u32,
}

impl References {
    fn new(numbers: usize) -> Self {
        let numbers = numbers.next_multiple_of(64);
        let (kth, words) = (vec![0; numbers / 64], vec![0; (numbers / 64).div_ceil(64)]);
        // 0 is no number.
        Self { entries: vec![Entry(0); numbers], kth, words, end: 1 }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.end as usize >= self.entries.len()
    }

    #[inline]
    fn add(&mut self, entry: Entry) -> u32 {
        let number = self.end;
        self.entries[number as usize] = entry;
        self.end += 1;
        number
    }

    #[inline]
    fn set(&mut self, number: u32) {
        let word = number as usize / 64;
        self.kth[word] |= 1 << (number % 64);
        self.words[word / 64] |= 1 << (word % 64);
    }

    #[inline]
    fn clear(&mut self, number: u32) {
        self.kth[number as usize / 64] &= !(1 << (number % 64));
    }

    /// Pages by their K-th last reference, the oldest first. A word that was found empty is not examined again.
    fn oldest(&mut self, mut wanted: impl FnMut(Entry) -> bool) -> Option<Entry> {
        for (group, words) in self.words.iter_mut().enumerate() {
            let mut left = *words;
            while left != 0 {
                let word = group * 64 + left.trailing_zeros() as usize;
                let mut bits = self.kth[word];
                if bits == 0 {
                    *words &= !(left & left.wrapping_neg());
                }
                while bits != 0 {
                    let entry = self.entries[word * 64 + bits.trailing_zeros() as usize];
                    if wanted(entry) {
                        return Some(entry);
                    }
                    bits &= bits - 1;
                }
                left &= left - 1;
            }
        }
        None
    }
}

impl LruK {
    #[inline]
    fn kth(&self, entry: Entry) -> u32 {
        self.numbers[entry.at() * self.k + self.k - 1]
    }

    #[inline]
    fn refer(&mut self, entry: Entry) {
        if self.references.is_full() {
            self.number_anew();
        }
        self.now += 1;
        let is_another = self.correlated == 0 || self.note(entry);
        let numbers = &mut self.numbers[entry.at() * self.k..][..self.k];
        if is_another {
            // The K-th last is lost. A loop, because K is small and mostly 2.
            (1..numbers.len()).rev().for_each(|older| numbers[older] = numbers[older - 1]);
        }
        numbers[0] = self.references.add(entry);
    }

    /// Whether the reference is one of its own, and not the same one still.
    fn note(&mut self, entry: Entry) -> bool {
        let before = std::mem::replace(&mut self.last[entry.at()], self.now);
        self.numbers[entry.at() * self.k] == 0 || self.now - before > self.correlated
    }

    /// Gives the references that some page still has new numbers, in their order.
    #[cold]
    fn number_anew(&mut self) {
        let Self { references, numbers, k, .. } = self;
        let mut end = 1;
        for number in 1..references.end {
            let entry = references.entries[number as usize];
            let is_kth = references.kth[number as usize / 64] >> (number % 64) & 1 != 0;
            references.clear(number);
            let own = &mut numbers[entry.at() * *k..][..*k];
            if let Some(own) = own.iter_mut().find(|own| **own == number) {
                *own = end;
                references.entries[end as usize] = entry;
                if is_kth {
                    references.set(end);
                }
                end += 1;
            }
        }
        references.end = end;
    }

    fn enter(&mut self, entry: Entry) {
        match self.kth(entry) {
            0 => self.lists.push_front(FEW, entry),
            kth => self.references.set(kth),
        }
    }
}

impl Policy for LruK {
    fn new(shape: &Shape, parameters: &mut Parameters) -> Result<Self, PolicyError> {
        let k = parameters.count("k", 2, 1..=K_MAX as u64)? as usize;
        let ghosts = parameters.ghosts(shape.frames, "history", 1.0)?;
        let correlated = parameters.count("correlated", 0, 0..=u64::from(u32::MAX))?;
        let entries = shape.frames + ghosts + 2;
        // Half of them count at most.
        let references = 2 * k * entries + 64;
        parameters.check_numbers(shape.frames, "references", references as u64, REFERENCES_MAX)?;
        Ok(Self {
            lists: Lists::new(entries, 2),
            references: References::new(references),
            numbers: vec![0; k * entries],
            k,
            ghosts,
            correlated,
            now: 0,
            last: vec![0; if correlated > 0 { entries } else { 0 }],
            expected: None,
        })
    }

    fn ghosts(&self) -> usize {
        self.ghosts + 1
    }

    #[inline]
    fn hit(&mut self, entry: Entry, _: bool, _: &Directory) {
        let before = self.kth(entry);
        if before == 0 {
            self.refer(entry);
            self.lists.remove(FEW, entry);
            self.enter(entry);
        } else {
            self.references.clear(before);
            self.refer(entry);
            self.references.set(self.kth(entry));
        }
    }

    fn miss(&mut self, ghost: Option<Entry>, _: &mut Directory) {
        self.expected = ghost;
        if let Some(ghost) = ghost {
            self.lists.remove(GHOST, ghost);
        }
    }

    #[inline]
    fn expect(&self, _: Page, entry: Entry) {
        prefetch(&self.numbers, entry.at().wrapping_mul(self.k));
    }

    fn victim(&mut self, pages: &Directory) -> Option<Entry> {
        let few = self.lists.oldest(FEW, pages);
        few.or_else(|| self.references.oldest(|entry| pages.is_free(entry)))
    }

    fn evict(&mut self, entry: Entry, pages: &mut Directory) {
        match self.kth(entry) {
            0 => self.lists.remove(FEW, entry),
            kth => self.references.clear(kth),
        }
        self.lists.push_front(GHOST, entry);
        pages.remember(entry);
        if self.lists.len(GHOST) > self.ghosts
            && let Some(oldest) = self.lists.back(GHOST)
        {
            self.drop_ghost(oldest, pages);
        }
    }

    fn load(&mut self, entry: Entry, _: bool, _: &mut Directory) {
        self.expected = None;
        self.refer(entry);
        self.enter(entry);
    }

    fn prefetch(&mut self, entry: Entry, _: &mut Directory) {
        self.lists.push_back(FEW, entry);
    }

    fn order(&mut self, pages: &Directory, take: Taker<'_>) {
        let _ = hand_out(self.lists.iter(FEW), pages, take);
    }

    fn drop_ghost(&mut self, entry: Entry, pages: &mut Directory) {
        if self.expected != Some(entry) {
            self.lists.remove(GHOST, entry);
        }
        self.expected = None;
        self.numbers[entry.at() * self.k..][..self.k].fill(0);
        pages.forget(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str, frames: usize) -> Result<(), String> {
        let shape = Shape { frames, pages: 1, blocks: [].into() };
        let made = Parameters::parse("lru-k", text).and_then(|mut parameters| LruK::new(&shape, &mut parameters));
        made.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Nothing is allocated for a pool that is refused: this one would take 20 GB.
    #[test]
    fn more_references_than_can_be_numbered_are_refused() {
        let refused = "lru-k: 134217728 frames are too many: they need 4294967392 references, and at most 4294967232 \
                       are supported";
        assert_eq!(made("k=8", 1 << 27), Err(refused.to_owned()));
        let refused = "lru-k: 268435456 frames are too many: they need 2415919104 pages, and at most 2147483632 are \
                       supported";
        assert_eq!(made("k=1,history=8", 1 << 28), Err(refused.to_owned()));
        assert_eq!(made("k=8", 1 << 10), Ok(()));
    }
}
