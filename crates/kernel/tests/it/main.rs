//! The integration tests of `flashwise-kernel`, in one program.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

mod calls;
mod crash;
mod file_device;
mod file_interface;
mod hostile;
mod job;
mod naive;
mod phone;
mod recorded;
mod simulated_drive;
mod support;
