//! Tests of simulated volumes from outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk;
mod governor;
mod instance;
mod naive;
mod volume;
