//! LRU lists without links: an entry that comes to the front takes the next number, and a bit says which numbers still
//! count.
//!
//! ```text
//!   number      0 1 2 3 4 5 6 7 8 9         an entry that is requested again leaves its number and takes the next one
//!   entry       . . a b c a d b . .         a: 5, b: 7, c: 4, d: 6
//!   present     0 0 0 0 1 1 1 1 0 0         oldest ─▶ newest
//! ```
//!
//! A list with links touches the nodes of both neighbours, which are anywhere in memory; here everything is at the end
//! but the entry's own number and its bit, and the bits of 64 numbers are one word. When the numbers are used up, what
//! is present is numbered anew, in the same order: a step for each entry, twice as seldom as there are entries.
//!
//! Each number has a second bit, a mark, for what the list is searched for. Where no mark is,
//! that search passes 4,096 numbers in a step ([`Summary`]).

use crate::directory::{Directory, Entry};
use crate::memory::prefetch;
use crate::summary::Summary;

/// Of 64 numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    present: u64,
    /// A part of them.
    marked: u64,
}

/// One list.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// By entry.
    numbers: Vec<u32>,
    /// By number.
    entries: Vec<Entry>,
    /// By number, 64 of them.
    words: Vec<Word>,
    /// Which words may have marks.
    marks: Summary,
    /// Nothing is present before it.
    start: u32,
    /// Nothing is marked before it, and nothing between it and the other one: a page is often marked and taken out at
    /// once, and what was known before is known again then.
    marked_from: u32,
    marked_next: u32,
    /// The number that comes next.
    end: u32,
    len: usize,
}

/// Of an entry on its way to another number.
const MARK: u32 = 1 << 31;

#[inline]
const fn place(number: u32) -> (usize, u64) {
    (number as usize / 64, 1 << (number % 64))
}

impl Timeline {
    /// An empty list for so many entries.
    pub(crate) fn new(entries: usize) -> Self {
        // A fourth for entries that come in where they are the oldest, one for those that are present, and the rest for
        // those that come to the front before all are numbered anew.
        let numbers = (4 * entries).next_multiple_of(64).max(64);
        let first = Self::first(numbers);
        Self {
            numbers: vec![0; entries],
            entries: vec![Entry(0); numbers],
            words: vec![Word::default(); numbers / 64],
            marks: Summary::new(numbers / 64),
            start: first,
            marked_from: first,
            marked_next: first,
            end: first,
            len: 0,
        }
    }

    const fn first(numbers: usize) -> u32 {
        (numbers / 4) as u32
    }

    /// How many entries are present.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.len
    }

    /// How many numbers there are.
    pub(crate) fn numbers(&self) -> usize {
        self.entries.len()
    }

    /// Of an entry that is present: the larger, the newer.
    #[inline]
    pub(crate) fn number(&self, entry: Entry) -> u32 {
        self.numbers[entry.at()]
    }

    /// Who has a number that is present.
    #[inline]
    pub(crate) fn entry(&self, number: u32) -> Entry {
        self.entries[number as usize]
    }

    /// Who had a number last; of one that does not exist, the first entry.
    #[inline]
    pub(crate) fn last_entry(&self, number: u32) -> Entry {
        self.entries.get(number as usize).copied().unwrap_or(Entry(0))
    }

    /// Says that an entry is going to be moved.
    #[inline]
    pub(crate) fn expect(&self, entry: Entry) {
        prefetch(&self.numbers, entry.at());
    }

    /// Whether an entry can be put in at either end before all have to be numbered anew.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        (self.end as usize) < self.entries.len() && self.start > 0
    }

    /// Numbers what is present anew, in the same order.
    #[cold]
    pub(crate) fn number_anew(&mut self) {
        // Down to the lowest numbers, where nothing is overwritten that was not read; a mark goes along in the highest
        // bit.
        let mut kept = 0;
        for word in 0..self.words.len() {
            let Word { mut present, marked } = std::mem::take(&mut self.words[word]);
            while present != 0 {
                let bit = present.trailing_zeros();
                let entry = self.entries[word * 64 + bit as usize];
                self.entries[kept] = Entry(entry.0 | ((marked >> bit & 1) as u32 * MARK));
                kept += 1;
                present &= present - 1;
            }
        }
        self.marks.clear();
        let first = Self::first(self.entries.len());
        self.entries.copy_within(0..kept, first as usize);
        (self.start, self.end, self.len) = (first, first, 0);
        (self.marked_from, self.marked_next) = (first, first);
        for number in first as usize..first as usize + kept {
            let Entry(packed) = self.entries[number];
            self.take_newest(Entry(packed & !MARK), packed & MARK != 0);
        }
    }

    #[inline]
    fn take_newest(&mut self, entry: Entry, is_marked: bool) {
        let (word, bit) = place(self.end);
        self.words[word].present |= bit;
        self.words[word].marked |= if is_marked { bit } else { 0 };
        self.marks.add(word, is_marked);
        self.entries[self.end as usize] = entry;
        self.numbers[entry.at()] = self.end;
        self.end += 1;
        self.len += 1;
    }

    /// Puts an entry that is not present in as the newest.
    #[inline]
    pub(crate) fn push_newest(&mut self, entry: Entry, is_marked: bool) {
        if !self.has_room() {
            self.number_anew();
        }
        self.take_newest(entry, is_marked);
    }

    /// Puts an entry that is not present in as the oldest.
    pub(crate) fn push_oldest(&mut self, entry: Entry, is_marked: bool) {
        if !self.has_room() {
            self.number_anew();
        }
        self.start -= 1;
        let (word, bit) = place(self.start);
        self.words[word].present |= bit;
        self.entries[self.start as usize] = entry;
        self.numbers[entry.at()] = self.start;
        self.len += 1;
        self.mark(entry, is_marked);
    }

    /// Takes out an entry that is present; says whether it was marked.
    #[inline]
    pub(crate) fn remove(&mut self, entry: Entry) -> bool {
        let number = self.number(entry);
        let (word, bit) = place(number);
        let word = &mut self.words[word];
        let was_marked = word.marked & bit != 0;
        word.present &= !bit;
        word.marked &= !bit;
        self.len -= 1;
        if number == self.marked_from {
            self.marked_from = self.marked_next;
        }
        was_marked
    }

    /// Makes an entry that is present the newest; it keeps its mark if it `may`.
    #[inline]
    pub(crate) fn move_to_newest(&mut self, entry: Entry, may_be_marked: bool) {
        if !self.has_room() {
            self.number_anew();
        }
        let was_marked = self.remove(entry);
        self.take_newest(entry, was_marked & may_be_marked);
    }

    #[cfg(test)]
    fn is_marked(&self, entry: Entry) -> bool {
        let (word, bit) = place(self.number(entry));
        self.words[word].marked & bit != 0
    }

    /// Marks an entry that is present, or takes its mark away.
    #[inline]
    pub(crate) fn mark(&mut self, entry: Entry, is_marked: bool) {
        let number = self.number(entry);
        let (word, bit) = place(number);
        self.marks.add(word, is_marked);
        let word = &mut self.words[word];
        word.marked = word.marked & !bit | if is_marked { bit } else { 0 };
        if !is_marked {
            return;
        }
        if number < self.marked_from {
            (self.marked_from, self.marked_next) = (number, self.marked_from);
        } else if number > self.marked_from {
            self.marked_next = self.marked_next.min(number);
        }
    }

    /// The number of the oldest entry from this number on.
    #[inline]
    pub(crate) fn next_present(&self, from: u32) -> Option<u32> {
        if from >= self.end {
            return None;
        }
        let mut word = from as usize / 64;
        let last = (self.end as usize - 1) / 64;
        let mut found = self.words[word].present & (u64::MAX << (from % 64));
        while found == 0 {
            if word == last {
                return None;
            }
            word += 1;
            found = self.words[word].present;
        }
        Some((word * 64) as u32 + found.trailing_zeros())
    }

    /// The number of the oldest marked entry from this number on.
    #[inline]
    fn next_marked(&mut self, from: u32) -> Option<u32> {
        if from >= self.end {
            return None;
        }
        let word = from as usize / 64;
        let found = self.words[word].marked & (u64::MAX << (from % 64));
        if found != 0 {
            return Some((word * 64) as u32 + found.trailing_zeros());
        }
        self.next_marked_word(word + 1).map(|word| (word * 64) as u32 + self.words[word].marked.trailing_zeros())
    }

    /// The first word from this one on that has a mark.
    fn next_marked_word(&mut self, from: usize) -> Option<usize> {
        loop {
            let word = self.marks.next(from)?;
            if self.words[word].marked != 0 {
                return Some(word);
            }
            self.marks.set(word, false);
        }
    }

    /// The number of the newest entry before this number.
    pub(crate) fn last_present_before(&self, before: u32) -> Option<u32> {
        let mut word = before as usize / 64;
        let below = !(u64::MAX << (before % 64));
        let mut found = self.words.get(word).map_or(0, |word| word.present & below);
        while found == 0 {
            word = word.checked_sub(1)?;
            found = self.words[word].present;
        }
        Some((word * 64) as u32 + found.ilog2())
    }

    /// Whether a number is present and not marked.
    #[inline]
    pub(crate) fn is_unmarked(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        let word = self.words[word];
        word.present & !word.marked & bit != 0
    }

    /// The oldest entry, whoever holds its page.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<Entry> {
        if self.len == 0 {
            return None;
        }
        self.start = self.next_present(self.start)?;
        Some(self.entry(self.start))
    }

    /// The oldest entry whose page nobody holds. The one behind it will be requested soon, and is named to the
    /// processor.
    #[inline]
    pub(crate) fn oldest(&mut self, pages: &Directory) -> Option<Entry> {
        let first = self.front()?;
        if pages.is_free(first) {
            self.expect_at(self.start + 1, pages);
            return Some(first);
        }
        self.iter().find(|&entry| pages.is_free(entry))
    }

    /// The oldest marked entry before this number whose page nobody holds.
    #[inline]
    pub(crate) fn oldest_marked(&mut self, before: u32, pages: &Directory) -> Option<Entry> {
        let Some(first) = self.next_marked(self.marked_from) else {
            (self.marked_from, self.marked_next) = (self.end, self.end);
            return None;
        };
        (self.marked_from, self.marked_next) = (first, self.marked_next.max(first));
        let mut number = first;
        while number < before {
            let entry = self.entry(number);
            if pages.is_free(entry) {
                self.expect_at(number + 1, pages);
                return Some(entry);
            }
            number = self.next_marked(number + 1)?;
        }
        None
    }

    #[inline]
    fn expect_at(&self, number: u32, pages: &Directory) {
        if let Some(&next) = self.entries.get(number as usize) {
            self.expect(next);
            pages.expect_entry(next);
        }
    }

    /// From the oldest of the entries that have this number or a later one.
    #[inline]
    pub(crate) fn iter_from(&self, number: u32) -> impl Iterator<Item = Entry> + '_ {
        let next = self.next_present(number);
        std::iter::successors(next, |&number| self.next_present(number + 1)).map(|number| self.entry(number))
    }

    /// From the oldest to the newest.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        self.iter_from(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Clone, Debug)]
    enum Step {
        Newest(bool),
        Oldest(bool),
        Move(usize, bool),
        Remove(usize),
        Mark(usize, bool),
        Victim,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<bool>().prop_map(Step::Newest),
            2 => any::<bool>().prop_map(Step::Oldest),
            8 => (0_usize..12, any::<bool>()).prop_map(|(at, may)| Step::Move(at, may)),
            2 => (0_usize..12).prop_map(Step::Remove),
            2 => (0_usize..12, any::<bool>()).prop_map(|(at, is_marked)| Step::Mark(at, is_marked)),
            2 => Just(Step::Victim),
        ]
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_queue_however_often_all_are_numbered_anew(
            steps in prop::collection::vec(step(), 0..1200),
        ) {
            let pages = Directory::new(12, 12, 0);
            let mut line = Timeline::new(12);
            let mut unused: Vec<Entry> = (0..12).map(Entry).collect();
            // From the oldest on.
            let mut model: VecDeque<(Entry, bool)> = [].into();
            for step in steps {
                match step {
                    Step::Newest(is_marked) => if let Some(entry) = unused.pop() {
                        line.push_newest(entry, is_marked);
                        model.push_back((entry, is_marked));
                    }
                    Step::Oldest(is_marked) => if let Some(entry) = unused.pop() {
                        line.push_oldest(entry, is_marked);
                        model.push_front((entry, is_marked));
                    }
                    Step::Move(at, may) => if at < model.len() && let Some((entry, was_marked)) = model.remove(at) {
                        line.move_to_newest(entry, may);
                        model.push_back((entry, was_marked && may));
                    }
                    Step::Remove(at) => if at < model.len() && let Some((entry, was_marked)) = model.remove(at) {
                        prop_assert_eq!(line.remove(entry), was_marked);
                        unused.push(entry);
                    }
                    Step::Mark(at, is_marked) => if let Some(entry) = model.get_mut(at) {
                        entry.1 = is_marked;
                        line.mark(entry.0, is_marked);
                    }
                    Step::Victim => {
                        let marked = model.iter().find(|entry| entry.1).map(|entry| entry.0);
                        prop_assert_eq!(line.oldest(&pages), model.front().map(|entry| entry.0));
                        prop_assert_eq!(line.oldest_marked(u32::MAX, &pages), marked);
                        let before = model.get(model.len() / 2).map_or(0, |entry| line.number(entry.0));
                        let near = model.iter().take(model.len() / 2).find(|entry| entry.1).map(|entry| entry.0);
                        prop_assert_eq!(line.oldest_marked(before, &pages), near);
                        let last = line.last_present_before(before).map(|number| line.entry(number));
                        prop_assert_eq!(last, (model.len() / 2).checked_sub(1).map(|at| model[at].0));
                    }
                }
                prop_assert_eq!(line.len(), model.len());
                let found: Vec<_> = line.iter().map(|entry| (entry, line.is_marked(entry))).collect();
                prop_assert_eq!(found, model.iter().copied().collect::<Vec<_>>());
                prop_assert!(model.iter().all(|entry| line.is_unmarked(line.number(entry.0)) != entry.1));
            }
        }
    }
}
