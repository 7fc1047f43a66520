//! The database system whose requests a trace holds, and the settings that a remedy names for it.
//!
//! A remedy names settings of the system that made the trace, and of all supported ones if the trace does not show
//! which it was. Shown by: files that only one system has (`-wal`, `pg_wal/`, `.ibd`); a rollback journal, which of the
//! supported systems only SQLite has; the lengths of SQLite's write-ahead log. A trace with files of two systems shows
//! none.

use flashwise_block::{ByteSize, Operation};
use flashwise_trace::FileRole;

use crate::request::ObservedRequest;

/// A database system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabaseSystem {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MariaDB and MySQL.
    MariaDb,
}

/// Bytes of the header of SQLite's write-ahead log (sqlite.org/fileformat2.html, section 4.1).
const WAL_HEADER: u64 = 32;
/// Bytes of the header of one of its frames.
const FRAME_HEADER: u64 = 24;
/// The shortest page of SQLite.
const PAGE_MIN: u64 = 512;

impl DatabaseSystem {
    const ALL: [Self; 3] = [Self::Sqlite, Self::Postgres, Self::MariaDb];

    const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::MariaDb => "MariaDB",
        }
    }

    /// The system that has files of this name, if only one has.
    pub(crate) fn of_file(path: &str) -> Option<Self> {
        let file = path.rsplit('/').next().unwrap_or(path);
        let ends = |ends: &[&str]| ends.iter().any(|end| file.ends_with(end));
        let starts = |starts: &[&str]| starts.iter().any(|start| file.starts_with(start));
        match () {
            () if ends(&["-journal", "-wal", "-shm", ".sqlite", ".sqlite3"]) || starts(&["etilqs_"]) => {
                Some(Self::Sqlite)
            }
            () if path.contains("/pg_wal/") || path.contains("/pgsql_tmp/") => Some(Self::Postgres),
            () if ends(&[".ibd", ".dblwr"])
                || starts(&["ib_logfile", "#ib_redo", "ibdata", "ibtmp", "ib_doublewrite"]) =>
            {
                Some(Self::MariaDb)
            }
            () => None,
        }
    }

    /// The system that makes such requests, if only one does.
    fn of_request(seen: &ObservedRequest) -> Option<Self> {
        let length = seen.record.length.0;
        let is_page = |length: u64| length >= PAGE_MIN && length.is_power_of_two();
        match (seen.record.role, seen.record.operation) {
            (FileRole::Journal, _) => Some(Self::Sqlite),
            (FileRole::WriteAheadLog, Operation::Write) => {
                let is_header = seen.record.offset.0 == 0 && length == WAL_HEADER;
                let is_frame = length == FRAME_HEADER || is_page(length.saturating_sub(FRAME_HEADER));
                (is_header || is_frame).then_some(Self::Sqlite)
            }
            _ => None,
        }
    }
}

/// How SQLite makes transactions atomic (`PRAGMA journal_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalMode {
    /// A rollback journal that is deleted at each commit.
    Delete,
    /// One that is cut to no length.
    Truncate,
    /// One whose header is overwritten.
    Persist,
    /// A write-ahead log.
    Wal,
}

/// The techniques of flashwise's VFS that remedies name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technique {
    /// `use-hot-locations`.
    UseHotLocations,
    /// `write-aligned-stripes`.
    WriteAlignedStripes,
    /// `contain-write-in-flash-page`.
    ContainWriteInFlashPage,
    /// `concurrent-write-back`.
    ConcurrentWriteBack,
    /// `concurrent-read-ahead`.
    ConcurrentReadAhead,
}

impl Technique {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::UseHotLocations,
        Self::WriteAlignedStripes,
        Self::ContainWriteInFlashPage,
        Self::ConcurrentWriteBack,
        Self::ConcurrentReadAhead,
    ];

    /// The name, as in a URI.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UseHotLocations => "use-hot-locations",
            Self::WriteAlignedStripes => "write-aligned-stripes",
            Self::ContainWriteInFlashPage => "contain-write-in-flash-page",
            Self::ConcurrentWriteBack => "concurrent-write-back",
            Self::ConcurrentReadAhead => "concurrent-read-ahead",
        }
    }
}

/// What is set of a SQLite database already, as far as it is known beside its requests: no remedy names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqliteSettings {
    /// The journal mode, if known.
    pub journal: Option<JournalMode>,
    /// The page size, if known.
    pub page: Option<ByteSize>,
    /// Which techniques are on, in the order of [`Technique::ALL`].
    pub techniques: [bool; Technique::ALL.len()],
}

impl SqliteSettings {
    /// The same with the technique of a name; other names change nothing.
    #[must_use]
    pub fn with_technique(mut self, name: &str) -> Self {
        let found = Technique::ALL.into_iter().find(|technique| technique.name() == name);
        found.into_iter().for_each(|technique| self.techniques[technique as usize] = true);
        self
    }
}

/// SQLite's longest page (sqlite.org/limits.html).
const PAGE_MAX: u64 = 65_536;

/// What the requests of a trace show of the system, and what is known beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) sqlite: SqliteSettings,
    pub(crate) shown: [bool; DatabaseSystem::ALL.len()],
    /// Whether writes to a write-ahead log are among them.
    pub(crate) has_log: bool,
}

impl Shown {
    /// Notes one more request, of a file of `file`'s system.
    pub(crate) fn note(&mut self, seen: &ObservedRequest, file: Option<DatabaseSystem>) {
        if let Some(system) = file.or_else(|| DatabaseSystem::of_request(seen)) {
            self.note_system(system);
        }
        self.has_log |= seen.record.role == FileRole::WriteAheadLog && seen.is_write();
    }

    fn note_system(&mut self, system: DatabaseSystem) {
        self.shown[system as usize] = true;
    }

    fn system(&self) -> Option<DatabaseSystem> {
        let mut found = DatabaseSystem::ALL.into_iter().filter(|&system| self.shown[system as usize]);
        found.next().filter(|_| found.next().is_none())
    }

    /// Whether flashwise's VFS may be below the database: it is SQLite, or may be.
    pub(crate) fn may_use_vfs(&self) -> bool {
        self.system().is_none_or(|system| system == DatabaseSystem::Sqlite)
    }

    /// Whether a technique of flashwise's VFS can be switched on.
    pub(crate) fn can_use(&self, technique: Technique) -> bool {
        self.may_use_vfs() && !self.is_on(technique)
    }

    /// Whether a technique of flashwise's VFS is on.
    pub(crate) fn is_on(&self, technique: Technique) -> bool {
        self.sqlite.techniques[technique as usize]
    }

    /// Whether this is SQLite with pages of a size, or of the longest if that is shorter.
    pub(crate) fn has_pages_of(&self, bytes: u64) -> bool {
        self.sqlite.page.is_some_and(|page| page.0 == bytes.min(PAGE_MAX))
    }

    /// Whether this is SQLite with pages that cannot be longer.
    pub(crate) fn has_longest_pages(&self) -> bool {
        self.has_pages_of(PAGE_MAX)
    }

    /// Whether this is SQLite in WAL mode.
    pub(crate) fn is_sqlite_in_wal_mode(&self) -> bool {
        let has_log = self.has_log || self.sqlite.journal == Some(JournalMode::Wal);
        self.system() == Some(DatabaseSystem::Sqlite) && has_log
    }

    /// The settings of the system that the trace shows, or of all, each behind the name of its system. An empty text
    /// stands for a system without such a setting.
    pub(crate) fn settings(&self, of: [(DatabaseSystem, &str); DatabaseSystem::ALL.len()]) -> String {
        let system = self.system();
        let named = of.iter().filter(|(of, text)| !text.is_empty() && system.is_none_or(|system| system == *of));
        named.map(|(of, text)| format!("{}: {text}", of.name())).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_only_one_system_has_show_it() {
        use DatabaseSystem::{MariaDb, Postgres, Sqlite};
        let of = DatabaseSystem::of_file;
        assert_eq!((of("/srv/shop.db-wal"), of("a.sqlite3")), (Some(Sqlite), Some(Sqlite)));
        assert_eq!(of("/var/lib/postgresql/17/main/pg_wal/000000010000000000000001"), Some(Postgres));
        assert_eq!((of("/var/lib/mysql/shop/t.ibd"), of("/x/ib_logfile0")), (Some(MariaDb), Some(MariaDb)));
        assert_eq!((of("/srv/shop.db"), of("/etc/passwd"), of("")), (None, None, None));
    }

    #[test]
    fn a_trace_of_two_systems_shows_none() {
        let mut shown = Shown::default();
        let all = [(DatabaseSystem::Sqlite, "a"), (DatabaseSystem::Postgres, ""), (DatabaseSystem::MariaDb, "c")];
        assert_eq!(shown.settings(all), "SQLite: a; MariaDB: c");
        shown.note_system(DatabaseSystem::Sqlite);
        assert_eq!(shown.settings(all), "SQLite: a");
        shown.note_system(DatabaseSystem::MariaDb);
        assert_eq!(shown.settings(all), "SQLite: a; MariaDB: c");
    }
}
