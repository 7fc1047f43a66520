//! One adapter per database: find what can be set, propose, apply, and measure before and after.
//!
//! ```text
//!   Target ──▶ learn ──▶ DeviceProfile ──────────────┐
//!   workload ──▶ run once ──▶ trace ──▶ audit ───────┴──▶ search: screen, race, prune, confirm
//!                                                              └──▶ Comparison: default, checklist, best
//! ```
//!
//! - [`Target`]: the name of a drive on the command line, and how it is opened without harm;
//! - [`sqlite`]: the adapter for SQLite; [`postgres`], [`mariadb`]: those for servers, whose settings are proposed from
//!   the profile alone;
//! - [`Comparison`]: the result of a fit, which `report` shows.
//!
//! # Limits
//! SQLite with one connection and one thread; PostgreSQL settings and fill factors; MariaDB variables of InnoDB.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod attach;
mod comparison;
mod error;
mod host;
mod learning;
pub mod mariadb;
mod plan;
pub mod postgres;
mod rates;
mod search;
mod servers;
pub mod sqlite;
mod target;
mod tpcc;
mod tuning;

pub use attach::{AttachDrive, AttachedDrive, Attaching, Written};
pub use comparison::{
    Applied, COMPARISON_SCHEMA, COMPARISON_SCHEMA_VERSION, Candidate, ChangeKind, Comparison, Gain, Guarantees, Rate,
    Recommendation, RunMeasurement, SearchSummary, Seen, WeakerGuarantee, WorkloadDescription,
};
pub use error::TuneError;
pub use host::{Host, PROGRAM_TIMES, ProgramTime, free_memory};
pub use learning::LearnRequest;
pub use plan::{PLAN_SCHEMA, PLAN_SCHEMA_VERSION, TargetPlan};
pub use servers::{
    AppliedSettings, AttachRequest, AttachedPlace, CountedReason, DataDrive, DirectoryGuard, EvictionBound,
    EvidenceFigure, LeftAlone, MARIADB_TUNING_SCHEMA, MARIADB_TUNING_SCHEMA_VERSION, MeasuredSettings,
    POSTGRES_TUNING_SCHEMA, POSTGRES_TUNING_SCHEMA_VERSION, ReplayedLog, ServerTuning, SettingProposal,
};
pub use target::{DEFAULT_TARGET, RAW_MAX_WRITE, RawOptions, RawTarget, Target};
pub use tuning::{AppliedTuning, Declined, Proposal};
