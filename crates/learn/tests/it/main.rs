//! The integration tests of `flashwise-learn`, in one program: each file of this folder is a module, and what they
//! share is compiled once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

mod budgets;
mod cards;
mod cliff;
mod failures;
mod features;
mod limits;
mod other_drives;
mod placement;
mod published_table;
mod reduction;
mod resume;
mod score;
mod slc_cache;
mod support;
