//! The integration tests of `flashwise-studies`, in one program: each file of this folder is a module, and what they
//! share is compiled once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

mod ace;
mod fit;
mod hidden_parameters;
mod sqlite;
