//! The integration tests of `flashwise-sqlite`, in one program: each file of this folder is a module, and what they
//! share is compiled once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

mod attached;
mod batches;
mod beyond_4_gib;
mod companions;
mod configurations;
mod cut_fs;
mod cut_fs_model;
mod extension;
mod faults;
mod full;
mod kills;
mod layout;
mod layout_power_cuts;
mod log_damage;
mod log_sync;
mod mounted;
mod power_cut_processes;
mod processes;
mod programs;
mod read_ahead;
mod sql;
mod sqlite_programs;
mod sqllogictest;
mod suite;
mod support;
