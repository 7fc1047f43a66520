//! Whole workloads on drives and arrays: their invariants, and write amplification and waiting times beside theory, a
//! model of the FTL that is written again (`reference`), and other simulators.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]
#![allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own")]

mod against_mqsim;
mod array_simulation;
mod domains;
mod every_drive;
mod life;
#[path = "support/mqsim.rs"]
mod mqsim;
#[path = "support/one_plane.rs"]
mod one_plane;
#[path = "support/overwrite.rs"]
mod overwrite;
mod precondition;
mod queueing;
mod reference;
mod reference_model;
mod stream_policies;
#[path = "support/streams.rs"]
mod streams;
#[path = "../../../ssd/tests/it/support/mod.rs"]
mod support;
mod volume_simulation;
mod write_amplification;
