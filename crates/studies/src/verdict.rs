//! Whether a claim holds.

use flashwise_report::study::StudyVerdict;

/// Reproduced where all of it holds, in part where something of it does.
pub(crate) fn verdict(all: bool, some: bool) -> StudyVerdict {
    match (all, some) {
        (true, _) => StudyVerdict::Reproduced,
        (false, true) => StudyVerdict::Partly,
        (false, false) => StudyVerdict::NotReproduced,
    }
}
