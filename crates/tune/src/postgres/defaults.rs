//! The settings that rules read or propose, with their defaults in the supported versions.
//!
//! Source: the pages "Resource Consumption", "Write Ahead Log", "Query Planning" and "Developer Options" of the
//! documentation of each version, and its release notes; for 19 `src/backend/utils/misc/guc_parameters.dat`. A test
//! compares the table with each server that is installed; it was compared with 13.23, 14.23, 15.18, 16.14, 17.10 and
//! 18.4.

use super::settings::{Effect, Setting, Settings};
use crate::TuneError;

/// The versions whose defaults are known.
const VERSIONS: std::ops::RangeInclusive<u32> = 13..=19;

/// A setting: its unit, when a change acts, and from which version on it has which default (`None`: it is gone).
struct Documented {
    name: &'static str,
    unit: Option<&'static str>,
    effect: Effect,
    defaults: &'static [(u32, Option<&'static str>)],
}

const fn reload(
    name: &'static str,
    unit: Option<&'static str>,
    defaults: &'static [(u32, Option<&'static str>)],
) -> Documented {
    Documented { name, unit, effect: Effect::Reload, defaults }
}

const fn restart(
    name: &'static str,
    unit: Option<&'static str>,
    defaults: &'static [(u32, Option<&'static str>)],
) -> Documented {
    Documented { name, unit, effect: Effect::Restart, defaults }
}

const PAGES: Option<&str> = Some("8kB");
const MS: Option<&str> = Some("ms");

/// Every setting that a rule reads or proposes.
const TABLE: [Documented; 27] = [
    reload("backend_flush_after", PAGES, &[(13, Some("0"))]),
    reload("bgwriter_delay", MS, &[(13, Some("200"))]),
    reload("bgwriter_flush_after", PAGES, &[(13, Some("64"))]),
    reload("bgwriter_lru_maxpages", None, &[(13, Some("100"))]),
    reload("bgwriter_lru_multiplier", None, &[(13, Some("2"))]),
    reload("checkpoint_completion_target", None, &[(13, Some("0.5")), (14, Some("0.9"))]),
    reload("checkpoint_flush_after", PAGES, &[(13, Some("32"))]),
    reload("checkpoint_timeout", Some("s"), &[(13, Some("300"))]),
    reload("commit_delay", None, &[(13, Some("0"))]),
    reload("commit_siblings", None, &[(13, Some("5"))]),
    restart("debug_io_direct", None, &[(16, Some(""))]),
    reload("effective_io_concurrency", None, &[(13, Some("1")), (18, Some("16"))]),
    reload("full_page_writes", None, &[(13, Some("on"))]),
    reload("io_combine_limit", PAGES, &[(17, Some("16"))]),
    restart("io_max_combine_limit", PAGES, &[(18, Some("16"))]),
    // Chosen at the start: 64, or fewer where shared_buffers has few pages for each process.
    restart("io_max_concurrency", None, &[(18, Some("64"))]),
    reload("io_max_workers", None, &[(19, Some("8"))]),
    restart("io_method", None, &[(18, Some("worker"))]),
    reload("io_min_workers", None, &[(19, Some("2"))]),
    reload("io_workers", None, &[(18, Some("3")), (19, None)]),
    reload("maintenance_io_concurrency", None, &[(13, Some("10")), (18, Some("16"))]),
    reload("max_wal_size", Some("MB"), &[(13, Some("1024"))]),
    reload("random_page_cost", None, &[(13, Some("4"))]),
    reload("seq_page_cost", None, &[(13, Some("1"))]),
    // As initdb sets it where the system's shared memory allows it.
    restart("shared_buffers", PAGES, &[(13, Some("16384"))]),
    reload("wal_init_zero", None, &[(13, Some("on"))]),
    reload("wal_recycle", None, &[(13, Some("on"))]),
];

/// The names of all of them.
pub(super) fn names() -> Vec<&'static str> {
    TABLE.iter().map(|setting| setting.name).collect()
}

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
    let setting = |known: &Documented| {
        let (_, value) = known.defaults.iter().rfind(|&&(since, _)| since <= version)?;
        Some((known.name.to_owned(), Setting::documented((*value)?, known.unit, known.effect)))
    };
    Ok(Settings(TABLE.iter().filter_map(setting).collect()))
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
    use super::*;

    #[test]
    fn defaults_are_those_of_the_version() {
        let value = |version: u32, name: &str| defaults(version).unwrap().get(name).map(|known| known.value.clone());
        assert_eq!(value(17, "effective_io_concurrency").as_deref(), Some("1"));
        assert_eq!(value(18, "effective_io_concurrency").as_deref(), Some("16"));
        assert_eq!((value(16, "io_combine_limit"), value(17, "io_combine_limit")), (None, Some("16".to_owned())));
        assert_eq!((value(17, "io_workers"), value(18, "io_workers")), (None, Some("3".to_owned())));
        assert_eq!((value(19, "io_workers"), value(19, "io_max_workers")), (None, Some("8".to_owned())));
        assert!(defaults(12).unwrap_err().to_string().contains("13 to 19"));
    }

    #[test]
    fn every_rule_is_of_a_setting_that_some_version_has() {
        for rule in super::super::rules::RULES {
            assert!(names().contains(&rule.name), "{}", rule.name);
        }
    }
}
