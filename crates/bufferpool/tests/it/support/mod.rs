//! What several test files share.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its share; a failed test panics where it fails")]

pub mod memory_store;
