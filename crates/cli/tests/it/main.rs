//! The integration tests of `flashwise-cli`, in one program: each file of this folder is a module, and what they share
//! is compiled once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

mod ace_in_postgres;
mod arrays;
mod attach;
mod attach_atomic_writes;
mod attach_control;
mod attach_data;
mod attach_mariadb_power_cuts;
mod attach_memory;
mod attach_mount;
mod attach_postgres_power_cuts;
mod attach_power_cuts;
mod audit;
mod book;
mod cases;
mod contract;
mod counters;
mod device_files;
mod documents;
mod endings;
mod escapes;
mod examples;
mod fillfactor;
mod fit_attached;
mod fit_mariadb;
mod fit_noise;
mod fit_postgres;
mod fit_record;
mod house;
mod learner;
#[path = "../../../block/tests/it/support/mod.rs"]
mod loops;
mod mounted;
mod outputs;
mod packaging;
mod pool;
mod private_server;
mod promised;
mod raw_target;
mod simulate;
mod store_files;
mod streams;
mod studies;
mod study_ace_postgres;
mod study_flash;
mod study_mariadb;
mod study_tables;
mod support;
mod sweep;
mod traces;
mod verbs;
mod words;
