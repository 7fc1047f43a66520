//! One file per rule: from a parameter of the drive to an InnoDB variable.
//!
//! A rule without the certain parameter that it needs reports that and changes nothing.
//!
//! # Adding a rule
//!
//! 1. A file here with its arithmetic, its source and a table test; its `mod` and its line in [`RULES`].
//! 2. Its name in `KNOWN` (`settings.rs`), which a test compares with a server.
//! 3. A row in `docs/guide/tune.md`.

pub(super) mod binary_log;
mod doublewrite;
mod flush_neighbors;
mod io_capacity;
mod io_threads;
mod log_write_ahead;
mod page_size;

use flashwise_block::{AtomicWrites, Operation};
use flashwise_profile::DeviceProfile;

use super::settings::{Variable, Variables};
use crate::servers::Ruling;
use crate::servers::figures::{Measure, saturated_iops};

/// The input of the rules.
pub(super) struct Facts<'a> {
    pub(super) profile: &'a DeviceProfile,
    pub(super) variables: &'a Variables,
    /// What file system and drive of the server's files report; `None` where they cannot be examined.
    pub(super) atomic_writes: Option<AtomicWrites>,
}

/// A variable with its rule; the error says why there is no decision.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) judge: fn(&Facts<'_>, &Variable) -> Result<Ruling, String>,
}

/// Every rule, in the order in which proposals are listed and applied.
pub(super) const RULES: [Rule; 8] = [
    Rule { name: "innodb_page_size", judge: page_size::judge },
    Rule { name: "innodb_flush_neighbors", judge: flush_neighbors::judge },
    Rule { name: "innodb_io_capacity_max", judge: io_capacity::most },
    Rule { name: "innodb_io_capacity", judge: io_capacity::usual },
    Rule { name: "innodb_log_write_ahead_size", judge: log_write_ahead::judge },
    Rule { name: "innodb_read_io_threads", judge: io_threads::of_reads },
    Rule { name: "innodb_write_io_threads", judge: io_threads::of_writes },
    Rule { name: "innodb_doublewrite", judge: doublewrite::judge },
];

/// Writes of a length at random places, as many as the drive takes; with the length. InnoDB's own page where the
/// profile has that size, or else the largest that is smaller.
fn random_writes(facts: &Facts<'_>) -> Result<(u64, Measure), String> {
    let page = facts.variables.number("innodb_page_size")? as u64;
    let writes = facts.profile.curves.throughput.iter().filter(|curve| curve.operation == Operation::Write);
    let bytes = writes.map(|curve| curve.request_bytes).filter(|&bytes| bytes <= page).max();
    let found = bytes.and_then(|bytes| Some((bytes, saturated_iops(facts.profile, Operation::Write, bytes)?)));
    found.ok_or_else(|| format!("the profile has no throughput of writes of {page} bytes or less"))
}

#[cfg(test)]
pub(super) mod tests;
