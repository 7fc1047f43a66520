//! What a rule says of a setting.

use super::EvidenceFigure;
use crate::Gain;

/// Nothing in a profile tells how much of a database's time a setting decides.
pub(crate) const UNKNOWN: &str = "unknown; --measure tells";

/// What a rule says of a setting.
#[derive(Clone, Debug)]
pub(crate) enum Ruling {
    /// It is to be changed.
    Change(Change),
    /// It is right as it is, because …
    Fits(String),
}

/// Another value.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// In the setting's unit.
    pub(crate) value: String,
    pub(crate) reason: String,
    pub(crate) evidence: Vec<EvidenceFigure>,
    pub(crate) expected: Option<Gain>,
    pub(crate) expected_gain: String,
}
