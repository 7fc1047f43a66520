//! What adapters of database servers have in common.
//!
//! ```text
//!   profile ─▶ figures ─▶ rules (each database's own) ─▶ rulings ─▶ document: proposals, what is left alone
//!   private servers: programs run as a user of their own, in a directory with a guard ─▶ rounds ─▶ verdict
//! ```

mod document;
pub(crate) mod figures;
mod guard;
mod process;
mod ruling;
mod user;
mod verdict;

pub use document::{EvidenceFigure, LeftAlone, MeasuredSettings, SettingProposal};
pub use guard::Guard;
pub(crate) use process::{forget_below, give, run, spawn_words};
pub(crate) use ruling::{Change, Ruling, UNKNOWN};
pub(crate) use user::User;
pub(crate) use verdict::{FEWEST_ROUNDS, verdict};

#[cfg(test)]
pub(crate) mod tests;
