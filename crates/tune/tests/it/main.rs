//! The integration tests of `flashwise-tune`, in one program: each file of this folder is a module, and what they share
//! is compiled once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

mod audit_sqlite;
mod fit_sqlite;
mod fit_user_database;
mod own_workload;
mod recorded_programs;
mod recording;
mod support;
mod tune_postgres;

mod user_database;
