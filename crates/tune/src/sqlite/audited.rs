//! How SQLite's requests are audited, in a fit and by `flashwise audit --db`.
//!
//! On a simulated drive the requests are those of the drive, below the simulated page cache. In a directory they are
//! SQLite's calls: a read may have been served from memory, and nobody saw the drive's queue. The audit then judges
//! calls, and leaves out what they do not show. It knows the settings of the run, so that it advises none of them. A
//! time of a flush that the profile lacks is measured ([`with_flush`]).

use flashwise_audit::{AuditOptions, DatabaseSystem, JournalMode, SqliteSettings};
use flashwise_block::{Nanos, Progress};
use flashwise_learn::{Effort, LearnError, LearnOptions, Scope, learn};
use flashwise_profile::{DeviceProfile, Verdict};

use super::run::Workload;
use super::settings::{Journal, Settings};
use super::{LEARN_REGION, learn_options};
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

/// The profile with the time of a flush, which the rule on flushes needs, if the profile has none and the target is its
/// drive.
///
/// # Errors
/// When the target fails, or the user interrupts.
pub fn with_flush(
    target: &Target,
    profile: &DeviceProfile,
    progress: &mut dyn Progress,
) -> Result<Option<DeviceProfile>, TuneError> {
    let flush = &profile.parameters.flush_ns;
    let is_missing = flush.verdict == Verdict::Inconclusive && flush.value.is_none();
    if !is_missing || profile.parameters.write_unit_bytes.known().is_none() {
        return Ok(None);
    }
    let mut device = target.open(1, LEARN_REGION)?;
    let clock = device.info().clock;
    let resume = Some(Box::new(profile.clone()));
    let usual = learn_options(target, 1, clock);
    let options = LearnOptions { scope: Scope::Durability, effort: Effort::Quick, resume, ..usual };
    match learn(&mut *device, &options, progress) {
        Ok(measured) => Ok(Some(measured)),
        Err(LearnError::OtherDrive { .. } | LearnError::TooSmall { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a reader of the audit is to know of [`with_flush`].
pub fn flush_remark(measured: &DeviceProfile) -> Option<String> {
    let ns = measured.parameters.flush_ns.value?;
    Some(format!("the profile had no time of a flush; it was measured on the target: {}", Nanos(ns)))
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
