//! Arrays under failures, rebuilds and power.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

mod array;
#[path = "../../../ssd/tests/it/support/mod.rs"]
mod support;
