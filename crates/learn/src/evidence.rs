//! What a probe hands to the probes after it.
//!
//! Each probe returns evidence of a type of its own, and takes that of earlier probes as arguments: it cannot be called
//! before they were. A step that is left out, or was finished by the run that this one continues, gives what the
//! profile still says of it.
//!
//! ```text
//!   probe ran ─────────────────────────────▶ evidence: figures, samples, fits ─┐
//!   left out, or finished by an earlier run ─▶ evidence: figures of the profile ─┴─▶ argument of later probes
//! ```

use flashwise_profile::{Figure, Verdict};

use crate::draft::ProfileDraft;

/// The typed result of a probe.
pub(crate) trait Evidence: Sized {
    /// What the profile so far still says of it.
    fn recorded(draft: &ProfileDraft) -> Self;

    /// The same evidence of a drive that was only read: data that was never written may lie nowhere, so that no absence
    /// is certain.
    fn of_reads_alone(self) -> Self {
        self
    }
}

/// For probes whose result no other probe uses.
impl Evidence for () {
    fn recorded(_: &ProfileDraft) -> Self {}
}

/// A figure that is unknown where it was absent.
pub(crate) fn not_absent<T: Copy>(figure: Figure<T>) -> Figure<T> {
    if figure.verdict == Verdict::Absent { Figure::unknown() } else { figure }
}
