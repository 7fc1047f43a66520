//! Arrays under failures, rebuilds and power.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

mod array;
#[path = "../../../ssd/tests/it/support/mod.rs"]
mod support;
