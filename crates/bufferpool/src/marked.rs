//! Which entries of a queue are marked, found in its order without asking the others.
//!
//! The places of a queue are numbered as they are taken, and a mark is a bit by the number of the place: 4,096 places
//! that are not marked are one step ([`Summary`]). Marks that nobody has requested yet cost nothing: they start with
//! the first question.
//!
//! ```text
//!   oldest ─▶ number 17, 18, 19 … ─▶ end         number modulo places ─▶ entry, bit
//! ```

use crate::directory::Entry;
use crate::lists::Lists;
use crate::memory::prefetch;
use crate::summary::Summary;

/// The numbers and marks of one list of [`Lists`], to which entries only come at its ends.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    /// By entry: its number, which wraps.
    numbers: Vec<u32>,
    /// By place.
    entries: Vec<Entry>,
    /// By place, a bit.
    marks: Vec<u64>,
    /// Which words of them have some.
    marked_words: Summary,
    /// The number that comes next.
    end: u32,
    /// Places that are certainly free; the oldest entry, which says how many there are, is asked only when there is
    /// none.
    free: usize,
}

impl Marked {
    /// Of lists whose marks nobody has requested yet.
    pub(crate) fn not_begun() -> Self {
        let (numbers, entries, marks) = (Vec::new(), Vec::new(), Vec::new());
        Self { numbers, entries, marks, marked_words: Summary::new(0), end: 0, free: 0 }
    }

    /// Starts to keep the marks of a list over so many entries, where they are not kept yet.
    pub(crate) fn begin(&mut self, lists: &Lists, list: usize, entries: usize, is_marked: impl Fn(Entry) -> bool) {
        if self.is_begun() {
            return;
        }
        // Twice as many places as entries: where some stay behind, which are held, all are numbered anew, and not again
        // before as many have come.
        let places = (2 * entries).next_power_of_two().max(64);
        (self.numbers, self.entries, self.marks) = (vec![0; entries], vec![Entry(0); places], vec![0; places / 64]);
        self.marked_words = Summary::new(places / 64);
        for entry in lists.iter(list) {
            self.set(entry, self.end, is_marked(entry));
            self.end = self.end.wrapping_add(1);
        }
        self.free = places - lists.len(list);
    }

    /// Says that an entry is going to be moved.
    #[inline]
    pub(crate) fn expect(&self, entry: Entry) {
        prefetch(&self.numbers, entry.at());
    }

    #[inline]
    fn is_begun(&self) -> bool {
        !self.entries.is_empty()
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    fn set(&mut self, entry: Entry, number: u32, is_marked: bool) {
        let place = self.place(number);
        self.numbers[entry.at()] = number;
        self.entries[place] = entry;
        self.mark(entry, is_marked);
    }

    /// Marks an entry of the list, or takes its mark away, as it has to be before the entry leaves.
    #[inline]
    pub(crate) fn mark(&mut self, entry: Entry, is_marked: bool) {
        if !self.is_begun() {
            return;
        }
        let place = self.place(self.numbers[entry.at()]);
        let word = &mut self.marks[place / 64];
        *word = *word & !(1 << (place % 64)) | u64::from(is_marked) << (place % 64);
        self.marked_words.set(place / 64, *word != 0);
    }

    /// Takes an entry's mark away, as it has to be before the entry leaves; says whether it had one.
    #[inline]
    pub(crate) fn unmark(&mut self, entry: Entry) -> bool {
        let was_marked = self.is_begun() && self.is_marked(entry);
        self.mark(entry, false);
        was_marked
    }

    #[inline]
    fn is_marked(&self, entry: Entry) -> bool {
        let place = self.place(self.numbers[entry.at()]);
        self.marks[place / 64] >> (place % 64) & 1 != 0
    }

    fn length(&self, lists: &Lists, list: usize) -> usize {
        lists.back(list).map_or(0, |oldest| self.end.wrapping_sub(self.numbers[oldest.at()]) as usize)
    }

    /// An entry is going to be put at the front of the list.
    #[inline]
    pub(crate) fn push_front(&mut self, lists: &Lists, list: usize, entry: Entry, is_marked: bool) {
        if !self.is_begun() {
            return;
        }
        self.make_room(lists, list);
        self.set(entry, self.end, is_marked);
        self.end = self.end.wrapping_add(1);
    }

    /// An entry is going to be put at the back of the list, unmarked.
    pub(crate) fn push_back(&mut self, lists: &Lists, list: usize, entry: Entry) {
        if !self.is_begun() {
            return;
        }
        self.make_room(lists, list);
        match lists.back(list) {
            Some(oldest) => self.set(entry, self.numbers[oldest.at()].wrapping_sub(1), false),
            None => {
                self.set(entry, self.end, false);
                self.end = self.end.wrapping_add(1);
            }
        }
    }

    #[inline]
    fn make_room(&mut self, lists: &Lists, list: usize) {
        if self.free == 0 {
            self.free = self.entries.len() - self.length(lists, list);
        }
        if self.free == 0 {
            self.number_anew(lists, list);
            self.free = self.entries.len() - self.length(lists, list);
        }
        self.free -= 1;
    }

    #[cold]
    fn number_anew(&mut self, lists: &Lists, list: usize) {
        // Towards the end, where each place was either free or its entry has just moved on.
        let mut number = self.end;
        let mut next = lists.front(list);
        while let Some(entry) = next {
            let is_marked = self.is_marked(entry);
            self.mark(entry, false);
            number = number.wrapping_sub(1);
            self.set(entry, number, is_marked);
            next = lists.older(entry);
        }
    }

    /// The marked entries of the list, the oldest first.
    pub(crate) fn iter(&self, lists: &Lists, list: usize) -> impl Iterator<Item = Entry> + '_ {
        let mut left = self.length(lists, list);
        std::iter::from_fn(move || {
            while left > 0 {
                let place = self.place(self.end.wrapping_sub(left as u32));
                let word = self.marks[place / 64] >> (place % 64);
                if word == 0 {
                    left = left.saturating_sub(self.unmarked_from(place)?);
                    continue;
                }
                let step = word.trailing_zeros() as usize;
                left = left.checked_sub(step + 1)?;
                return Some(self.entries[place + step]);
            }
            None
        })
    }

    /// How many places there are up to the next word with a mark, all around.
    #[inline]
    fn unmarked_from(&self, place: usize) -> Option<usize> {
        let next = self.marked_words.next(place / 64 + 1).or_else(|| self.marked_words.next(0))?;
        Some((next * 64).wrapping_sub(place) & (self.entries.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Front(bool),
        Back,
        Remove(usize),
        Mark(usize, bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<bool>().prop_map(Step::Front),
            1 => Just(Step::Back),
            // Mostly the oldest but one, so that the oldest stays behind.
            4 => prop_oneof![3 => Just(1_usize), 1 => 0_usize..40].prop_map(Step::Remove),
            2 => (0_usize..40, any::<bool>()).prop_map(|(at, is_marked)| Step::Mark(at, is_marked)),
        ]
    }

    proptest! {
        #[test]
        fn what_is_marked_is_found_in_the_order_of_the_list(
            steps in prop::collection::vec(step(), 0..600),
            first_question in 0_usize..50,
        ) {
            let (mut marked, mut lists) = (Marked::not_begun(), Lists::new(40, 1));
            let mut unused: Vec<Entry> = (0..40).map(Entry).collect();
            // From the oldest on.
            let mut model: std::collections::VecDeque<(Entry, bool)> = [].into();
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Front(is_marked) => if let Some(entry) = unused.pop() {
                        marked.push_front(&lists, 0, entry, is_marked);
                        lists.push_front(0, entry);
                        model.push_back((entry, is_marked));
                    }
                    Step::Back => if let Some(entry) = unused.pop() {
                        marked.push_back(&lists, 0, entry);
                        lists.push_back(0, entry);
                        model.push_front((entry, false));
                    }
                    Step::Remove(at) => if at < model.len() && let Some((entry, _)) = model.remove(at) {
                        marked.mark(entry, false);
                        lists.remove(0, entry);
                        unused.push(entry);
                    }
                    Step::Mark(at, is_marked) => if let Some(place) = model.get_mut(at) {
                        place.1 = is_marked;
                        marked.mark(place.0, is_marked);
                    }
                }
                let expected: Vec<_> = model.iter().filter(|place| place.1).map(|place| place.0).collect();
                if n < first_question {
                    continue;
                }
                marked.begin(&lists, 0, 40, |entry| model.contains(&(entry, true)));
                prop_assert_eq!(marked.iter(&lists, 0).collect::<Vec<_>>(), expected);
            }
        }
    }
}
