//! Headings and names of columns that the terminal and the page have in common.

pub(crate) const ARRAY: &str = "The array";
pub(crate) const AUDIT_FOUND: &str = "What the audit found";
pub(crate) const BEFORE_AND_AFTER: &str = "Before and after";
pub(crate) const CLAIMED_AND_MEASURED: &str = "Claimed and measured";
pub(crate) const DRIVE_HIDES: &str = "What the drive hides";
pub(crate) const FLOWS: &str = "Flows";
pub(crate) const LIFE: &str = "Life";
pub(crate) const LIMITS: &str = "What this does not tell";
pub(crate) const NOTES: &str = "Notes";
pub(crate) const NOTHING: &str = "Nothing.";
pub(crate) const WAS_APPLIED: &str = "What was applied";
pub(crate) const WAS_DONE: &str = "What was done";

/// Columns of the table of a profile's figures.
pub(crate) const FIGURE_COLUMNS: [&str; 4] = ["figure", "value", "95 % interval", "verdict"];
/// The runs of a `fit`, in the order of their columns.
pub(crate) const RUNS: [&str; 3] = ["default", "before", "after"];
/// The column that compares two of them.
pub(crate) const AFTER_TO_BEFORE: &str = "after / before";
