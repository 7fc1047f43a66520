//! The words and numbers of a report, shared by the terminal and the HTML page. Sentences that a JSON document contains
//! (reasons, remedies, notes) are made with the document, in its own crate.
//!
//! # Adding a section
//!
//! Its words here; its place in `terminal/comparison.rs` and `html/comparison.rs`.

pub(crate) mod array;
pub(crate) mod attach;
pub(crate) mod connect;
pub(crate) mod counters;
pub(crate) mod device_stat;
pub(crate) mod file_run;
pub(crate) mod findings;
pub(crate) mod gains;
pub(crate) mod groups;
pub(crate) mod headings;
pub(crate) mod life;
pub(crate) mod limits;
pub(crate) mod numbers;
pub(crate) mod parameters;
pub(crate) mod pool;
pub(crate) mod runs;
pub(crate) mod simulation;
pub(crate) mod trace;
pub(crate) mod volume;
pub(crate) mod words;
