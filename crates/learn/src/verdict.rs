//! Verdicts: a figure is certain unless a named doubt applies.
//!
//! Each figure has one table of doubts, next to its probe. To find out why a figure may be inconclusive, read that
//! table; the report prints the sentences of the doubts that applied.
//!
//! ```text
//!   estimate, plain reason ──▶ each doubt of the table: does it apply to the evidence? ──▶ verdict, reason
//! ```

use std::borrow::Cow;

use flashwise_profile::{Figure, Verdict};

/// One reason why a figure is inconclusive.
pub(crate) struct Doubt<E: ?Sized> {
    /// Name of the doubt, for readers of the table and for tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "the report prints sentences"))]
    pub(crate) name: &'static str,
    /// The sentence in the report.
    pub(crate) wording: Wording<E>,
    /// Whether it applies.
    pub(crate) applies: fn(&E) -> bool,
    /// Whether it also takes the certainty from the absence of a feature.
    pub(crate) of_absence: bool,
}

/// How a doubt that applies changes the reason in the report.
pub(crate) enum Wording<E: ?Sized> {
    /// Not at all: the interval or another sentence shows it.
    Nothing,
    /// Follows the reason.
    Then(&'static str),
    /// Replaces the reason.
    Instead(&'static str),
    /// The same with numbers of the evidence.
    InsteadOf(fn(&E) -> String),
}

/// A doubt of a value.
pub(crate) const fn doubt<E: ?Sized>(name: &'static str, wording: Wording<E>, applies: fn(&E) -> bool) -> Doubt<E> {
    Doubt { name, wording, applies, of_absence: false }
}

/// A doubt of a value and of an absence alike.
pub(crate) const fn doubt_of_either<E: ?Sized>(
    name: &'static str,
    wording: Wording<E>,
    applies: fn(&E) -> bool,
) -> Doubt<E> {
    Doubt { name, wording, applies, of_absence: true }
}

/// The doubts of a table that apply, in its order.
pub(crate) struct Doubts(Vec<Applies>);

/// A doubt that applies.
struct Applies {
    sentence: Sentence,
    of_absence: bool,
}

enum Sentence {
    None,
    Then(&'static str),
    Instead(Cow<'static, str>),
}

impl Applies {
    fn of<E: ?Sized>(doubt: &Doubt<E>, evidence: &E) -> Self {
        let sentence = match doubt.wording {
            Wording::Nothing => Sentence::None,
            Wording::Then(sentence) => Sentence::Then(sentence),
            Wording::Instead(sentence) => Sentence::Instead(sentence.into()),
            Wording::InsteadOf(sentence) => Sentence::Instead(sentence(evidence).into()),
        };
        Self { sentence, of_absence: doubt.of_absence }
    }
}

/// Examines the evidence by all doubts of a table.
pub(crate) fn applying<E: ?Sized>(table: &[Doubt<E>], evidence: &E) -> Doubts {
    let applying = table.iter().filter(|doubt| (doubt.applies)(evidence));
    Doubts(applying.map(|doubt| Applies::of(doubt, evidence)).collect())
}

/// Examines the evidence by the doubts of a table in turn, up to the first that applies: of several explanations of
/// what was measured one is enough.
pub(crate) fn first_applying<E: ?Sized>(table: &[Doubt<E>], evidence: &E) -> Doubts {
    let first = table.iter().find(|doubt| (doubt.applies)(evidence));
    Doubts(first.map(|doubt| Applies::of(doubt, evidence)).into_iter().collect())
}

impl Doubts {
    /// Whether no doubt applies.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The figure with the verdict that follows.
    pub(crate) fn judge<T>(&self, figure: Figure<T>) -> Figure<T> {
        let is_doubted = match figure.verdict {
            Verdict::Certain => !self.0.is_empty(),
            Verdict::Absent => self.0.iter().any(|doubt| doubt.of_absence),
            Verdict::Inconclusive => false,
        };
        Figure { verdict: if is_doubted { Verdict::Inconclusive } else { figure.verdict }, ..figure }
    }

    /// The reason for the report.
    pub(crate) fn reason(&self, plain: impl Into<String>) -> String {
        let instead = self.0.iter().find_map(|doubt| match &doubt.sentence {
            Sentence::Instead(sentence) => Some(sentence.clone().into_owned()),
            _ => None,
        });
        let mut reason = instead.unwrap_or_else(|| plain.into());
        self.0.iter().for_each(|doubt| {
            if let Sentence::Then(sentence) = doubt.sentence {
                reason.push_str(sentence);
            }
        });
        reason
    }
}

/// The names of those that apply.
#[cfg(test)]
pub(crate) fn names<E: ?Sized>(table: &[Doubt<E>], evidence: &E) -> Vec<&'static str> {
    table.iter().filter(|doubt| (doubt.applies)(evidence)).map(|doubt| doubt.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [Doubt<u32>; 4] = [
        doubt("even", Wording::Then(", and is even"), |n| n.is_multiple_of(2)),
        doubt("small", Wording::Nothing, |n| *n < 10),
        doubt("zero", Wording::Instead("nothing was counted"), |n| *n == 0),
        doubt_of_either("huge", Wording::Then(", and is huge"), |n| *n > 1_000),
    ];

    #[test]
    fn a_figure_is_certain_unless_a_doubt_applies_and_the_reason_says_which() {
        let judged = |n: u32| {
            let doubts = applying(&TABLE, &n);
            (doubts.judge(Figure::certain(n, n, n)).verdict, doubts.reason("counted"))
        };
        assert_eq!(judged(11), (Verdict::Certain, "counted".to_owned()));
        assert_eq!(judged(12), (Verdict::Inconclusive, "counted, and is even".to_owned()));
        assert_eq!(judged(5), (Verdict::Inconclusive, "counted".to_owned()));
        assert_eq!(judged(0), (Verdict::Inconclusive, "nothing was counted, and is even".to_owned()));
        assert_eq!(names(&TABLE, &2_000), ["even", "huge"]);
        assert_eq!(first_applying(&TABLE, &2).reason("counted"), "counted, and is even");
    }

    #[test]
    fn an_absence_is_doubted_only_by_what_doubts_it() {
        let absent = |n: u32| applying(&TABLE, &n).judge(Figure::<u32>::absent()).verdict;
        assert_eq!((absent(2), absent(1_001)), (Verdict::Absent, Verdict::Inconclusive));
    }
}
