//! One file per rule: from a parameter of the drive to a PostgreSQL setting.
//!
//! A rule without the certain parameter that it needs reports that and changes nothing. If only a measurement can show
//! the gain of a change, its expected gain is unknown.
//!
//! # Adding a rule
//!
//! 1. A file here with its arithmetic, its source and a table test; its `mod` and its line in [`RULES`].
//! 2. Its line in the table of `defaults.rs`, which a test compares with a server.
//! 3. A row in `docs/guide/tune.md`.

pub(super) mod background_writer;
mod checkpoint_interval;
mod checkpoint_pacing;
mod commit_delay;
pub(super) mod debug_io_direct;
pub(super) mod fill_factor;
mod flush_after;
mod full_page_writes;
mod io_combine_limit;
mod io_concurrency;
mod io_max_concurrency;
mod io_method;
mod io_workers;
mod random_page_cost;
mod wal_files;

use flashwise_profile::DeviceProfile;

use super::server::Activity;
use super::settings::{Setting, Settings};
use crate::EvictionBound;
use crate::servers::{Change, Ruling};

/// The input of the rules.
pub(super) struct Facts<'a> {
    pub(super) profile: &'a DeviceProfile,
    pub(super) settings: &'a Settings,
    /// The server's counters; `None` without a server.
    pub(super) activity: Option<&'a Activity>,
    /// Sessions that read at once.
    pub(super) sessions: u32,
    /// Reads in flight, if the user gave them.
    pub(super) depth: Option<u32>,
    /// The most that writing pages before their eviction brings; `None` where no server has counted it.
    pub(super) eviction: Option<EvictionBound>,
}

/// A setting with its rule; the error says why there is no decision.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) judge: fn(&Facts<'_>, &Setting) -> Result<Ruling, String>,
}

/// Every rule, in the order in which proposals are listed.
pub(super) const RULES: [Rule; 24] = [
    Rule { name: "random_page_cost", judge: random_page_cost::judge },
    Rule { name: "effective_io_concurrency", judge: io_concurrency::of_a_session },
    Rule { name: "maintenance_io_concurrency", judge: io_concurrency::of_maintenance },
    Rule { name: "io_method", judge: io_method::judge },
    Rule { name: "io_workers", judge: io_workers::judge },
    Rule { name: "io_max_workers", judge: io_workers::judge },
    Rule { name: "io_min_workers", judge: io_workers::least },
    Rule { name: "io_max_concurrency", judge: io_max_concurrency::judge },
    Rule { name: "io_combine_limit", judge: io_combine_limit::judge },
    Rule { name: "io_max_combine_limit", judge: io_combine_limit::most },
    Rule { name: "debug_io_direct", judge: debug_io_direct::judge },
    Rule { name: "bgwriter_delay", judge: background_writer::delay },
    Rule { name: "bgwriter_lru_maxpages", judge: background_writer::pages_of_a_round },
    Rule { name: "bgwriter_lru_multiplier", judge: background_writer::ahead },
    Rule { name: "bgwriter_flush_after", judge: flush_after::of_background_writer },
    Rule { name: "checkpoint_flush_after", judge: flush_after::of_checkpoints },
    Rule { name: "checkpoint_completion_target", judge: checkpoint_pacing::judge },
    Rule { name: "checkpoint_timeout", judge: checkpoint_interval::timeout },
    Rule { name: "max_wal_size", judge: checkpoint_interval::log },
    Rule { name: "backend_flush_after", judge: flush_after::of_backends },
    Rule { name: "commit_delay", judge: commit_delay::judge },
    Rule { name: "wal_init_zero", judge: wal_files::zeros },
    Rule { name: "wal_recycle", judge: wal_files::recycled },
    Rule { name: "full_page_writes", judge: full_page_writes::judge },
];

#[cfg(test)]
pub(super) mod tests;
