//! How often something happened, with an example of each.

use std::collections::BTreeMap;

use crate::CountedReason;

/// Characters of an example.
const EXAMPLE_CHARACTERS: usize = 80;
/// Different reasons that are kept apart; those of a server's errors may be without end.
const REASONS_MAX: usize = 200;
/// The rest.
const OTHERS: &str = "other reasons";

/// Reasons with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<String, (u64, String)>);

impl Counts {
    /// Counts one more, with the statement or line that it happened to.
    pub(crate) fn add(&mut self, reason: &str, example: &str) {
        self.merge(reason, 1, example);
    }

    fn merge(&mut self, reason: &str, count: u64, example: &str) {
        let reason = match self.0.len() < REASONS_MAX || self.0.contains_key(reason) {
            true => reason,
            false => OTHERS,
        };
        match self.0.get_mut(reason) {
            Some((known, _)) => *known += count,
            None => {
                let short = || example.split_whitespace().flat_map(|word| word.chars().chain([' ']));
                let example: String = short().take(EXAMPLE_CHARACTERS).collect();
                self.0.insert(reason.to_owned(), (count, example.trim_end().to_owned()));
            }
        }
    }

    /// Adds what another has counted.
    pub(crate) fn extend(&mut self, other: Self) {
        other.0.into_iter().for_each(|(reason, (count, example))| self.merge(&reason, count, &example));
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    /// The most frequent first.
    pub(crate) fn sorted(&self) -> Vec<CountedReason> {
        let one = |(reason, (count, example)): (&String, &(u64, String))| CountedReason {
            reason: reason.clone(),
            count: *count,
            example: example.clone(),
        };
        let mut all: Vec<_> = self.0.iter().map(one).collect();
        all.sort_by_key(|counted| std::cmp::Reverse(counted.count));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_reason_is_first_with_its_first_example() {
        let mut counts = Counts::default();
        counts.add("a", "first \n  one");
        counts.add("b", "x");
        counts.add("b", &"y".repeat(500));
        (0..1_000).for_each(|n| counts.add(&format!("reason {n}"), &"z".repeat(500)));
        let sorted = counts.sorted();
        assert_eq!((&*sorted[0].reason, sorted[0].count), (OTHERS, 1_000 - (REASONS_MAX as u64 - 2)));
        assert_eq!((&*sorted[1].reason, sorted[1].count, &*sorted[1].example), ("b", 2, "x"));
        assert!(sorted.iter().any(|counted| counted.reason == "a" && counted.example == "first one"));
        assert!(sorted.len() <= REASONS_MAX + 1 && sorted.iter().all(|c| c.example.len() <= EXAMPLE_CHARACTERS));
        assert_eq!(counts.total(), 1_003);
    }
}
