//! The profile in the making: figures, how each came about, and the curves they were read off.
//!
//! Probes write into it as they go, so that a checkpoint has what was found and a spent budget loses nothing. They do
//! not read from it: what one probe needs of another it takes as typed evidence ([`crate::evidence`]).

use flashwise_profile::{AtSize, Curves, Evidence, Figure, Figures, ProbeCurve};

use crate::stats::holm;

/// Family-wise probability that any of the features reported as present is chance: the usual one in twenty.
const ANY_CHANCE_PROBABILITY: f64 = 0.05;

/// One figure of the profile: its name in evidence and its place among the figures.
#[derive(Clone, Copy)]
pub(crate) struct Key<T> {
    pub(crate) name: &'static str,
    pub(crate) figure: fn(&mut Figures) -> &mut Figure<T>,
    pub(crate) recorded: fn(&Figures) -> Figure<T>,
}

/// The [`Key`] of a field of [`Parameters`](flashwise_profile::Parameters).
macro_rules! key {
    ($name:ident) => {
        $crate::draft::Key {
            name: stringify!($name),
            figure: |f| &mut f.parameters.$name,
            recorded: |f| f.parameters.$name,
        }
    };
}
pub(crate) use key;

/// The [`Key`] of a field of [`Limits`](flashwise_profile::Limits).
macro_rules! limit {
    ($name:ident) => {
        $crate::draft::Key { name: stringify!($name), figure: |f| &mut f.limits.$name, recorded: |f| f.limits.$name }
    };
}
pub(crate) use limit;

/// The [`Key`] of a field of [`Card`](flashwise_profile::Card).
macro_rules! card {
    ($name:ident) => {
        $crate::draft::Key { name: stringify!($name), figure: |f| &mut f.card.$name, recorded: |f| f.card.$name }
    };
}
pub(crate) use card;

/// A profile in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProfileDraft {
    /// Those of counters are of an earlier run: no probe sets them.
    pub(crate) figures: Figures,
    pub(crate) at_sizes: Vec<AtSize>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) curves: Curves,
    /// Figures that report something as present, with the probability that it is chance.
    chances: Vec<(&'static str, f64)>,
}

/// How a figure came about, in the making.
pub(crate) struct Because<'a> {
    /// What was done to the drive.
    pub(crate) recipe: &'a str,
    /// What was read off.
    pub(crate) reason: String,
    /// The curve among [`Curves::probes`].
    pub(crate) curve: Option<&'a str>,
}

impl ProfileDraft {
    /// Sets a figure and notes how it came about; what was noted about it before is replaced.
    pub(crate) fn settle<T>(&mut self, key: Key<T>, figure: Figure<T>, because: Because<'_>) {
        self.because(key.name, because);
        self.set(key, figure);
    }

    /// Sets a figure whose evidence stays as it was noted.
    pub(crate) fn set<T>(&mut self, key: Key<T>, figure: Figure<T>) {
        *(key.figure)(&mut self.figures) = figure;
    }

    /// A figure as it stands; for [`crate::evidence::Evidence::recorded`], and for figures that one probe sets twice.
    pub(crate) fn recorded<T>(&self, key: Key<T>) -> Figure<T> {
        (key.recorded)(&self.figures)
    }

    /// Notes how the figure `key` came about; what was noted about it before is replaced.
    pub(crate) fn because(&mut self, key: &str, because: Because<'_>) {
        self.evidence.retain(|evidence| evidence.figure != key);
        self.evidence.push(Evidence {
            figure: key.to_owned(),
            recipe: because.recipe.to_owned(),
            reason: because.reason,
            left_out: false,
            not_tried: false,
            curve: because.curve.map(str::to_owned),
        });
    }

    /// Adds a sentence to what was read off a figure.
    pub(crate) fn add_to_reason(&mut self, key: &str, more: &str) {
        self.append_to_reason(key, &format!("; {more}"));
    }

    /// Adds what doubts say, as they say it.
    pub(crate) fn append_to_reason(&mut self, key: &str, more: &str) {
        if let Some(evidence) = self.evidence.iter_mut().find(|evidence| evidence.figure == key) {
            evidence.reason.push_str(more);
        }
    }

    /// Notes that no probe examined a figure, and why; `unasked` if that was not for a budget that somebody gave.
    pub(crate) fn leave_out(&mut self, key: &str, probe: &str, why: &str, unasked: bool) {
        self.because(key, Because { recipe: probe, reason: why.to_owned(), curve: None });
        if let Some(evidence) = self.evidence.last_mut() {
            evidence.left_out = unasked;
            evidence.not_tried = true;
        }
    }

    /// Notes that a feature was reported as present by a test in which chance does as well with probability `p`.
    pub(crate) fn present_unless_chance(&mut self, key: &'static str, p: f64) {
        self.chances.push((key, p));
    }

    /// Keeps a curve; one of the same name is replaced.
    pub(crate) fn keep(&mut self, curve: ProbeCurve) {
        self.curves.probes.retain(|other| other.name != curve.name);
        self.curves.probes.push(curve);
    }

    /// Holm's correction over all features that were reported as present: one that fails it is no longer certain.
    pub(crate) fn correct_for_many_tests(&mut self) {
        let probabilities: Vec<f64> = self.chances.iter().map(|(_, p)| *p).collect();
        let stands = holm::stands(&probabilities, ANY_CHANCE_PROBABILITY);
        let doubtful: Vec<&str> =
            self.chances.iter().zip(stands).filter_map(|((key, _), stands)| (!stands).then_some(*key)).collect();
        for key in doubtful {
            self.figures.parameters.doubt(key);
            self.figures.limits.doubt(key);
            self.figures.card.doubt(key);
            self.add_to_reason(key, "not certain after correction for the number of tests");
        }
    }
}
