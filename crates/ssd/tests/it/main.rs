//! The drive as its host sees it, and compared with what is known of such drives: one program, one file a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

mod caches;
mod cards;
mod client_drives;
mod configurations;
mod disksim;
#[path = "support/every_shape.rs"]
mod every_shape;
mod filled;
mod flash_rules;
mod hidden_parameters;
mod invariants;
mod order;
mod parity;
mod power_cuts;
mod reclaiming;
mod reduction;
mod replay;
mod saved_state;
mod slc_cache;
mod support;
mod timing;
