//! Default settings of PostgreSQL, for the supported versions.
//!
//! Source: the pages "Resource Consumption", "Write Ahead Log" and "Query Planning" of the documentation of each
//! version, and its release notes: 18 made both I/O concurrencies 16. A test compares the table with a server, if one
//! is installed.

use super::settings::{Setting, Settings};
use crate::TuneError;

/// The versions whose defaults are known.
const VERSIONS: std::ops::RangeInclusive<u32> = 13..=18;

/// The defaults of a major version.
///
/// # Errors
/// When nothing is known of the version.
pub(super) fn defaults(version: u32) -> Result<Settings, TuneError> {
    if !VERSIONS.contains(&version) {
        let (first, last) = (VERSIONS.start(), VERSIONS.end());
        let message = format!("PostgreSQL {version}: only versions {first} to {last} are supported");
        return Err(TuneError::Options(message));
    }
    let (reads, maintenance) = if version >= 18 { ("16", "16") } else { ("1", "10") };
    let table = [
        ("backend_flush_after", "0", Some("8kB")),
        ("bgwriter_delay", "200", Some("ms")),
        ("bgwriter_flush_after", "64", Some("8kB")),
        ("bgwriter_lru_maxpages", "100", None),
        ("bgwriter_lru_multiplier", "2", None),
        ("checkpoint_flush_after", "32", Some("8kB")),
        ("commit_delay", "0", None),
        ("commit_siblings", "5", None),
        ("effective_io_concurrency", reads, None),
        ("full_page_writes", "on", None),
        ("maintenance_io_concurrency", maintenance, None),
        ("random_page_cost", "4", None),
        ("seq_page_cost", "1", None),
        ("wal_init_zero", "on", None),
        ("wal_recycle", "on", None),
    ];
    let setting = |(name, value, unit): (&str, &str, Option<&str>)| (name.to_owned(), Setting::documented(value, unit));
    Ok(Settings(table.into_iter().map(setting).collect()))
}

/// Refuses a server of a version that is not known.
///
/// # Errors
/// With the versions that are.
pub(super) fn check_version(version: u32) -> Result<(), TuneError> {
    defaults(version).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::settings::NAMES;
    use super::*;

    #[test]
    fn every_setting_has_a_default_in_every_version() {
        for version in VERSIONS {
            let defaults = defaults(version).unwrap();
            assert!(NAMES.iter().all(|name| defaults.get(name).is_some()) && defaults.0.len() == NAMES.len());
        }
        assert_eq!(defaults(17).unwrap().number("effective_io_concurrency"), Some(1.0));
        assert_eq!(defaults(18).unwrap().number("effective_io_concurrency"), Some(16.0));
        assert!(defaults(12).unwrap_err().to_string().contains("13 to 18"));
    }
}
