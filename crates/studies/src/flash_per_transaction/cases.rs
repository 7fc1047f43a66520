//! What is measured: each database with default settings, and with one thing changed at a time.

use std::fmt;

/// A database system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Postgres,
    Mariadb,
    Sqlite,
}

impl System {
    pub(super) const ALL: [Self; 3] = [Self::Postgres, Self::Mariadb, Self::Sqlite];
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB",
            Self::Sqlite => "SQLite",
        })
    }
}

/// What differs from the default settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    Nothing,
    /// A setting of the server, or a pragma.
    Setting(&'static str, &'static str),
    /// Per cent of a page that a load fills.
    FillFactor(u32),
    /// Transactions between two checkpoints, as a multiple.
    CheckpointDistance(f64),
}

/// A database with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) system: System,
    pub(super) name: &'static str,
    pub(super) change: Change,
    /// Whether the quick form has it.
    is_quick: bool,
}

/// The name of the case that the others of its system are compared with.
pub(super) const DEFAULT: &str = "default";
/// Names of cases that claims are about.
pub(super) const POSTGRES_ONCE: &str = "full_page_writes off";
pub(super) const MARIADB_ONCE: &str = "doublewrite off";
pub(super) const POSTGRES_SPACE: &str = "fill factor 75";
pub(super) const POSTGRES_OFTEN: &str = "checkpoints 4 times as often";
pub(super) const POSTGRES_SELDOM: &str = "checkpoints a quarter as often";
pub(super) const SQLITE_OFTEN: &str = "checkpoint at 100 pages";
pub(super) const SQLITE_SELDOM: &str = "checkpoint at 10000 pages";

const fn case(system: System, name: &'static str, change: Change, is_quick: bool) -> Case {
    Case { system, name, change, is_quick }
}

/// All cases, the default of each system first.
const CASES: [Case; 19] = {
    use Change::{CheckpointDistance, FillFactor, Nothing, Setting};
    use System::{Mariadb, Postgres, Sqlite};
    [
        case(Postgres, DEFAULT, Nothing, true),
        case(Postgres, POSTGRES_SPACE, FillFactor(75), true),
        case(Postgres, "fill factor 50", FillFactor(50), false),
        case(Postgres, POSTGRES_OFTEN, CheckpointDistance(0.25), true),
        case(Postgres, POSTGRES_SELDOM, CheckpointDistance(4.0), false),
        case(Postgres, POSTGRES_ONCE, Setting("full_page_writes", "off"), true),
        case(Postgres, "wal_compression on", Setting("wal_compression", "on"), false),
        case(Mariadb, DEFAULT, Nothing, true),
        case(Mariadb, MARIADB_ONCE, Setting("innodb-doublewrite", "OFF"), true),
        case(Mariadb, "flush_neighbors off", Setting("innodb-flush-neighbors", "0"), false),
        case(Mariadb, "pages of 4 KiB", Setting("innodb-page-size", "4096"), false),
        case(Mariadb, "fill factor 75", FillFactor(75), false),
        case(Mariadb, "log of 16 MiB", Setting("innodb-log-file-size", "16M"), false),
        case(Mariadb, "log of 64 MiB", Setting("innodb-log-file-size", "64M"), false),
        case(Sqlite, DEFAULT, Nothing, true),
        case(Sqlite, "rollback journal", Setting("journal_mode", "DELETE"), true),
        case(Sqlite, SQLITE_OFTEN, Setting("wal_autocheckpoint", "100"), false),
        case(Sqlite, SQLITE_SELDOM, Setting("wal_autocheckpoint", "10000"), false),
        case(Sqlite, "pages of 16 KiB", Setting("page_size", "16384"), false),
    ]
};

/// The cases of these systems.
pub(super) fn of(systems: &[System], is_quick: bool) -> Vec<Case> {
    CASES.into_iter().filter(|case| systems.contains(&case.system) && (case.is_quick || !is_quick)).collect()
}

impl Case {
    /// Whether it is its system's default, which is measured on all drives.
    pub(super) fn is_default(&self) -> bool {
        self.change == Change::Nothing
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.system, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_its_default_first_in_either_form_and_no_name_twice() {
        for is_quick in [true, false] {
            for system in System::ALL {
                let cases = of(&[system], is_quick);
                assert_eq!(cases.iter().position(Case::is_default), Some(0), "{system}");
                let mut names: Vec<&str> = cases.iter().map(|case| case.name).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), cases.len());
            }
        }
    }
}
