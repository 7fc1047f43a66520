//! The decision of a rule about a setting.

use super::EvidenceFigure;
use crate::Gain;

/// A profile does not show how much of a database's time a setting affects.
const UNKNOWN: &str = "unknown; --measure measures it";

/// The decision of a rule about a setting.
#[derive(Clone, Debug)]
pub(crate) enum Ruling {
    /// It is to be changed.
    Change(Change),
    /// It is right unmodified, for this reason.
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

impl Change {
    /// A change whose gain only a measurement can show.
    pub(crate) fn unmeasured(value: impl ToString, reason: String, evidence: Vec<EvidenceFigure>) -> Self {
        Self { value: value.to_string(), reason, evidence, expected: None, expected_gain: UNKNOWN.to_owned() }
    }
}
