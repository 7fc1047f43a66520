//! One figure: a value with its interval and its verdict, which may be *inconclusive*.

use serde::{Deserialize, Serialize};

/// How sure a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The evidence allows one value only.
    Certain,
    /// The evidence does not decide; a value, if given, is the best guess.
    Inconclusive,
    /// The drive does not have the feature: the probe would have detected it.
    Absent,
}

/// A value with its interval and its verdict.
///
/// ```
/// use flashwise_profile::{Figure, Verdict};
/// let chunk = Figure::certain(65536_u64, 65536, 65536);
/// assert_eq!(chunk.known(), Some(65536));
/// assert_eq!(Figure::<u64>::absent().known(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure<T> {
    /// The value; `None` if absent or unknown.
    pub value: Option<T>,
    /// Lower end of the interval.
    pub low: Option<T>,
    /// Upper end of the interval.
    pub high: Option<T>,
    /// How sure it is.
    pub verdict: Verdict,
}

impl<T> Default for Figure<T> {
    /// Not measured.
    fn default() -> Self {
        Self { value: None, low: None, high: None, verdict: Verdict::Inconclusive }
    }
}

impl<T: Copy> Figure<T> {
    /// A value that is certain.
    pub fn certain(value: T, low: T, high: T) -> Self {
        Self { value: Some(value), low: Some(low), high: Some(high), verdict: Verdict::Certain }
    }

    /// A best guess.
    pub fn inconclusive(value: T, low: T, high: T) -> Self {
        Self { value: Some(value), low: Some(low), high: Some(high), verdict: Verdict::Inconclusive }
    }

    /// No guess can be made.
    pub fn unknown() -> Self {
        Self { value: None, low: None, high: None, verdict: Verdict::Inconclusive }
    }

    /// The drive does not have the feature.
    pub fn absent() -> Self {
        Self { value: None, low: None, high: None, verdict: Verdict::Absent }
    }

    /// The same figure with `make` applied to each value.
    pub fn map<U>(&self, make: impl Fn(T) -> U) -> Figure<U> {
        let Self { value, low, high, verdict } = *self;
        Figure { value: value.map(&make), low: low.map(&make), high: high.map(&make), verdict }
    }

    /// Makes a certain figure a best guess.
    pub fn doubt(&mut self) {
        if self.verdict == Verdict::Certain {
            self.verdict = Verdict::Inconclusive;
        }
    }

    /// The value, where it is certain.
    pub fn known(&self) -> Option<T> {
        (self.verdict == Verdict::Certain).then_some(self.value).flatten()
    }
}
