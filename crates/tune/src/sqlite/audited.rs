//! How SQLite's requests are audited, in a fit and by `flashwise audit --db`.
//!
//! On a simulated drive the requests are those of the drive, below the simulated page cache. In a directory they are
//! SQLite's calls: a read may have been served from memory, and nobody saw the drive's queue. The audit then judges
//! calls, and leaves out what they do not show. It knows the settings of the run, so that it advises none of them.

use flashwise_audit::{AuditOptions, DatabaseSystem, JournalMode, SqliteSettings};

use super::run::Workload;
use super::settings::{Journal, Settings};
use crate::{Target, TuneError};

/// How to audit the requests of a workload with its present settings on a target.
///
/// # Errors
/// When the user's file is no database.
pub fn audit_options(target: &Target, workload: &Workload) -> Result<AuditOptions, TuneError> {
    Ok(options_with(target, &workload.settings(workload.page_size()?)))
}

/// How to audit the requests of a run with settings.
pub(super) fn options_with(target: &Target, settings: &Settings) -> AuditOptions {
    AuditOptions {
        system: Some(DatabaseSystem::Sqlite),
        sqlite: set_already(settings),
        is_above_page_cache: target.records_calls(),
        ..AuditOptions::default()
    }
}

fn set_already(settings: &Settings) -> SqliteSettings {
    let journal = match settings.journal {
        Journal::Delete => JournalMode::Delete,
        Journal::Truncate => JournalMode::Truncate,
        Journal::Persist => JournalMode::Persist,
        Journal::Log => JournalMode::Wal,
    };
    let known = SqliteSettings { journal: Some(journal), page: Some(settings.page), ..SqliteSettings::default() };
    let techniques = settings.techniques();
    let names = techniques.iter().filter_map(|value| value.split('=').next());
    names.fold(known, SqliteSettings::with_technique)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::settings::{DEFAULT_PAGE, DEFAULT_PAGE_CACHE};
    use flashwise_sqlite::{TECHNIQUES, VfsOptions};

    #[test]
    fn the_audit_knows_the_settings_of_its_run() {
        let target = Target::parse(crate::DEFAULT_TARGET).unwrap();
        let vfs = VfsOptions::from_text("concurrent-read-ahead=8&write-aligned-stripes=64k").unwrap();
        let plain = Settings::plain(DEFAULT_PAGE, DEFAULT_PAGE_CACHE);
        let options = options_with(&target, &Settings { journal: Journal::Log, vfs, ..plain });
        assert!(!options.is_above_page_cache);
        let known = SqliteSettings {
            journal: Some(JournalMode::Wal),
            page: Some(DEFAULT_PAGE),
            ..SqliteSettings::default().with_technique("concurrent-read-ahead").with_technique("write-aligned-stripes")
        };
        assert_eq!(options.sqlite, known);
        let of_audit = flashwise_audit::Technique::ALL.map(flashwise_audit::Technique::name);
        assert!(of_audit.iter().all(|name| TECHNIQUES.iter().any(|technique| technique.name == *name)));
    }
}
