//! The common parts of the adapters of database servers.
//!
//! ```text
//!   profile ─▶ figures ─▶ rules (each database's own) ─▶ rulings ─▶ tune: proposals, unchanged settings ─▶ document
//!   private servers: programs run as a user of their own, in a place with a guard ─▶ rounds ─▶ verdict
//!
//!   a database's own: connecting and reading settings · rules · statements · starting a private server · the work of a round
//! ```
//!
//! # Adding a database
//!
//! A module beside `postgres/` and `mariadb/` with a document of its own, using this module for servers; a variant of
//! the database in `crates/cli/src/arguments/fit.rs`.

mod attached;
mod document;
mod drive;
pub(crate) mod figures;
pub(crate) mod granted;
mod guard;
pub(crate) mod logged;
mod place;
mod process;
mod rounds;
mod ruling;
mod tune;
mod user;
mod verdict;

pub use attached::AttachRequest;
pub(crate) use attached::Attached;
pub use document::{
    AppliedSettings, AttachedPlace, CountedReason, EvictionBound, EvidenceFigure, LeftAlone, MARIADB_TUNING_SCHEMA,
    MARIADB_TUNING_SCHEMA_VERSION, MeasuredSettings, POSTGRES_TUNING_SCHEMA, POSTGRES_TUNING_SCHEMA_VERSION,
    ReplayedLog, ServerTuning, SettingProposal,
};
pub use drive::DataDrive;
pub(crate) use drive::{NamedDrive, ServerData, learn_drive};
pub use guard::DirectoryGuard;
pub(crate) use place::{PrivatePlace, folders_in_path};
pub(crate) use process::forget_below;
pub(crate) use rounds::{Done, Rounds, Side, Terms, check_rounds, check_space, compare};
pub(crate) use ruling::{Change, Ruling};
pub(crate) use tune::{Judged, Judgement, Statements};
pub(crate) use user::User;
pub(crate) use verdict::{WORTH_IT, verdict};

#[cfg(test)]
pub(crate) mod tests;
