//! How SQLite's requests are audited, in a fit and by `flashwise audit --db`.
//!
//! On a simulated drive the requests are those of the drive, below the simulated page cache. In a directory they are
//! SQLite's calls: a read may have been served from memory, and nobody saw the drive's queue. The audit then judges
//! calls, and leaves out what they do not show.

use flashwise_audit::{AuditOptions, DatabaseSystem};

use crate::Target;

/// How to audit the requests of SQLite on a target.
pub fn audit_options(target: &Target) -> AuditOptions {
    AuditOptions {
        system: Some(DatabaseSystem::Sqlite),
        is_above_page_cache: target.records_calls(),
        ..AuditOptions::default()
    }
}
