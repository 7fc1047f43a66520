//! What an import reports about a file: each note once, and not without end.

use std::collections::BTreeSet;
use std::fmt::Display;

/// Most notes of an import; a file with more unknown keys than that is hardly a configuration.
const NOTES_MAX: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Notes {
    list: Vec<String>,
    known: BTreeSet<String>,
    left_out: usize,
}

impl Notes {
    /// Adds a note, unless the list has it.
    pub(super) fn add(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.list.len() >= NOTES_MAX {
            self.left_out = self.left_out.saturating_add(usize::from(!self.known.contains(&note)));
        } else if self.known.insert(note.clone()) {
            self.list.push(note);
        }
    }

    /// A number of the file, within what the simulator accepts; a note where that changes it.
    pub(super) fn within<T: PartialOrd + Copy + Display>(&mut self, what: &str, given: T, low: T, high: T) -> T {
        let (used, bound) = match given {
            given if given < low => (low, "at least"),
            given if given > high => (high, "at most"),
            _ => return given,
        };
        self.add(format!("{what} = {given}: the simulator accepts {bound} {used} and uses that"));
        used
    }

    /// All notes in their order.
    pub(super) fn into_list(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.list.push(format!("{} more notes are not shown", self.left_out));
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_brought_within_its_bounds_with_a_note() {
        let mut notes = Notes::default();
        assert_eq!([0, 5, 9].map(|given| notes.within("<X>", given, 1, 7)), [1, 5, 7]);
        let words = [
            "<X> = 0: the simulator accepts at least 1 and uses that",
            "<X> = 9: the simulator accepts at most 7 and uses that",
        ];
        assert_eq!(notes.into_list(), words);
    }

    #[test]
    fn a_note_comes_once_and_the_list_ends() {
        let mut notes = Notes::default();
        for n in 0..NOTES_MAX + 5 {
            notes.add(format!("note {n}"));
            notes.add("note 0");
        }
        let list = notes.into_list();
        assert_eq!((list.len(), list[0].as_str()), (NOTES_MAX + 1, "note 0"));
        assert_eq!(list[NOTES_MAX], "5 more notes are not shown");
    }
}
