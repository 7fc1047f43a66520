//! One file a rule: what a figure of the drive makes of a setting of PostgreSQL.
//!
//! A rule that lacks a certain figure says so and changes nothing. Where only a measurement can tell what a change
//! brings, its expected gain is unknown.
//!
//! # Adding a rule
//!
//! 1. A file here with its arithmetic, its source and a table test; its `mod` and its line in [`RULES`].
//! 2. Its name in `NAMES` (`settings.rs`), its defaults by version in `defaults.rs`, which a test compares with a
//!    server.
//! 3. A row in `docs/guide/tune.md`.

mod background_writer;
mod commit_delay;
pub(super) mod fill_factor;
mod flush_after;
mod full_page_writes;
mod io_concurrency;
mod random_page_cost;
mod wal_files;

use flashwise_profile::DeviceProfile;

use super::server::Activity;
use super::settings::{Setting, Settings};
use crate::servers::{Change, Ruling, UNKNOWN};

/// What the rules judge by.
pub(super) struct Facts<'a> {
    pub(super) profile: &'a DeviceProfile,
    pub(super) settings: &'a Settings,
    /// What the server counted; `None` without one.
    pub(super) activity: Option<&'a Activity>,
    /// Sessions that read at once.
    pub(super) sessions: u32,
    /// Reads in flight, where the user says how many.
    pub(super) depth: Option<u32>,
}

/// A setting with what judges it; the error says why it cannot be told.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) judge: fn(&Facts<'_>, &Setting) -> Result<Ruling, String>,
}

/// Every rule, in the order in which proposals are told.
pub(super) const RULES: [Rule; 11] = [
    Rule { name: "random_page_cost", judge: random_page_cost::judge },
    Rule { name: "effective_io_concurrency", judge: io_concurrency::of_a_session },
    Rule { name: "maintenance_io_concurrency", judge: io_concurrency::of_maintenance },
    Rule { name: "bgwriter_lru_maxpages", judge: background_writer::judge },
    Rule { name: "bgwriter_flush_after", judge: flush_after::judge },
    Rule { name: "checkpoint_flush_after", judge: flush_after::judge },
    Rule { name: "backend_flush_after", judge: flush_after::of_backends },
    Rule { name: "commit_delay", judge: commit_delay::judge },
    Rule { name: "wal_init_zero", judge: wal_files::zeros },
    Rule { name: "wal_recycle", judge: wal_files::recycled },
    Rule { name: "full_page_writes", judge: full_page_writes::judge },
];

#[cfg(test)]
pub(super) mod tests;
