//! Notes for interpreting the numbers.

use std::sync::atomic::Ordering;

use flashwise_block::grouped;
use flashwise_sqlite::VfsOptions;

use super::run::Workload;
use super::user::{Statements, UserWorkload};
use crate::{Comparison, Host, Target};

/// The notes of a comparison.
pub(super) fn notes(c: &Comparison, workload: &Workload, vfs: &VfsOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if let Workload::User(user) = workload
        && matches!(user.sql, Statements::Made(_))
    {
        notes.push(
            "The statements are generated: point SELECTs of random rows, with an UPDATE after every fourth. Give your \
             own with --sql: the gains depend on them."
                .to_owned(),
        );
    }
    if let Workload::User(user) = workload {
        notes.extend(sessions(user));
    }
    if c.search.workload_is_cut {
        notes.push(format!(
            "A run does the first {} statements only; a larger --time-budget allows more.",
            grouped(c.search.statements)
        ));
    }
    if c.search.is_cut_short {
        notes.push("Time ended before all combinations were tried; a larger --time-budget tries more.".to_owned());
    }
    if c.default.select_latency.count > 0 && c.default.select_latency.p99_ns == 0 {
        notes.push(
            "At least 99 % of the SELECTs were served from SQLite's page cache and did not reach the drive.".into(),
        );
    }
    if vfs.is_converting() {
        notes.push(
            "A database in a layout of flashwise can be opened only through its VFS; plain SQLite refuses it."
                .to_owned(),
        );
    }
    notes
}

/// How several sessions were run.
fn sessions(user: &UserWorkload) -> Option<String> {
    let script = user.script().ok().filter(|script| script.sessions.len() > 1)?;
    let restarts = user.restarts.load(Ordering::Relaxed);
    let restarted = match restarts {
        0 => String::new(),
        _ => format!(
            " In all runs together, {} transactions were rolled back and started again, because another session wrote \
             meanwhile; that time is included.",
            grouped(restarts)
        ),
    };
    Some(format!(
        "{} sessions are interleaved: their transactions overlap, and wait for one another's locks, but one statement \
         runs to its end before the next one starts. Think times are not counted.{restarted}",
        script.sessions.len()
    ))
}

/// What the times are of.
pub(super) fn clock(target: &Target) -> String {
    match target {
        Target::Simulated { host: Host::Bare, .. } | Target::Volume { .. } => {
            "Times are on the simulated drive's clock, without SQLite's CPU \
                                                       time. The log is written back at the end, and that time is \
                                                       included."
                .to_owned()
        }
        Target::Simulated { host, .. } => format!(
            "The database is in a simulated machine: on {}, which is empty at first. Times are on its clock, with {}. \
             The log is written back at the end, and that time is included.",
            host.describe(),
            host.describe_program()
        ),
        _ => "Times are wall-clock time on this machine. The database is dropped from the system's page cache before \
              each statement, so that requests reach the drive. The log is written back at the end, and that time is \
              included."
            .to_owned(),
    }
}
