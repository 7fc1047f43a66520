//! Headings and names of columns that the terminal and the page have in common.

pub(crate) const APPLY_AND_UNDO: &str = "How to apply and undo";
pub(crate) const ARRAY: &str = "The array";
pub(crate) const AUDIT_FOUND: &str = "Audit findings";
pub(crate) const BEFORE_AND_AFTER: &str = "Before and after";
pub(crate) const CANDIDATES: &str = "Candidates";
pub(crate) const CHANGES: &str = "What to change";
pub(crate) const CLAIMED_AND_MEASURED: &str = "Published and measured";
pub(crate) const DRIVE_HIDES: &str = "Hidden parameters of the drive";
pub(crate) const FLOWS: &str = "Flows";
pub(crate) const LIFE: &str = "Life";
pub(crate) const LIMITS: &str = "Limits of this study";
pub(crate) const NOTES: &str = "Notes";
pub(crate) const OPEN: &str = "How to open the database";
pub(crate) const THREE_RUNS: &str = "Default, checklist and best";
pub(crate) const VOLUME: &str = "The volume";
pub(crate) const VOLUME_GRANTS: &str = "What the volume grants";
pub(crate) const WAS_DONE: &str = "Steps taken";

/// Columns of the table of a profile's figures.
pub(crate) const FIGURE_COLUMNS: [&str; 4] = ["figure", "value", "95 % interval", "verdict"];
/// The runs of a `fit`, in the order of their columns.
pub(crate) const RUNS: [&str; 3] = ["default", "checklist", "best"];
/// The column that compares two of them.
pub(crate) const BEST_TO_DEFAULT: &str = "best / default";
