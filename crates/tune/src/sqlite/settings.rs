//! The settings of a SQLite database: the layout of its file, and how it is opened.

use flashwise_block::ByteSize;
use flashwise_sqlite::VfsOptions;

/// Default page size of SQLite.
pub(crate) const DEFAULT_PAGE: ByteSize = ByteSize::kib(4);
/// Default page cache of SQLite (`SQLITE_DEFAULT_CACHE_SIZE`, -2000).
pub const DEFAULT_PAGE_CACHE: ByteSize = ByteSize::kib(2000);
/// Default pages of a log at which SQLite writes it back (`SQLITE_DEFAULT_WAL_AUTOCHECKPOINT`).
pub(crate) const DEFAULT_CHECKPOINT_PAGES: u32 = 1000;

/// How transactions are made atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    /// A rollback journal that is deleted at each commit, SQLite's default.
    Delete,
    /// One that is cut to no length; of a connection.
    Truncate,
    /// One whose header is overwritten; of a connection.
    Persist,
    /// A write-ahead log; kept in the file.
    Log,
}

impl Journal {
    /// As `PRAGMA journal_mode` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Truncate => "truncate",
            Self::Persist => "persist",
            Self::Log => "wal",
        }
    }

    /// What the file keeps of it: with any rollback journal, that it has no log.
    pub(crate) fn of_file(self) -> Self {
        if self == Self::Log { Self::Log } else { Self::Delete }
    }
}

/// What a commit in WAL mode waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Synchronous {
    /// The log is on the medium: SQLite's default.
    #[default]
    Full,
    /// Nothing: a power cut may lose the last commits.
    Normal,
}

impl Synchronous {
    /// As `PRAGMA synchronous` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// How a database is kept and opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// SQLite's page size; kept in the file.
    pub(crate) page: ByteSize,
    pub(crate) journal: Journal,
    /// SQLite's page cache; of a connection.
    pub(crate) page_cache: ByteSize,
    /// Pages of a log at which it is written back; of a connection.
    pub(crate) checkpoint_pages: u32,
    /// Of a connection.
    pub(crate) synchronous: Synchronous,
    /// The techniques, and how our VFS syncs logs: by SQLite's own VFS (`LogSyncs::Parent`), unless that is a change.
    /// Layouts are kept in the file, the others are of a connection.
    pub(crate) vfs: VfsOptions,
}

impl Settings {
    /// SQLite with default settings, except page size and page cache.
    pub(crate) fn plain(page: ByteSize, page_cache: ByteSize) -> Self {
        let (journal, checkpoint_pages) = (Journal::Delete, DEFAULT_CHECKPOINT_PAGES);
        Self { page, journal, page_cache, checkpoint_pages, synchronous: Synchronous::Full, vfs: VfsOptions::PLAIN }
    }

    /// Whether a power cut may lose a transaction that was committed: where the journal's deletion is the commit,
    /// SQLite does not sync it (`synchronous=EXTRA` does; `docs/kernel.md`). A log's frames, a journal's new length and
    /// its overwritten header are synced, and an atomic batch needs no journal.
    pub(crate) fn may_lose_a_commit(&self) -> bool {
        let is_deleted = self.journal == Journal::Delete && !self.vfs.atomic_batch;
        is_deleted || self.synchronous == Synchronous::Normal
    }

    /// What becomes of a commit, in a sentence.
    pub(crate) fn guarantee(&self) -> &'static str {
        match self.may_lose_a_commit() {
            true => {
                "a transaction that was committed survives a crash; a power cut may undo the last one, since SQLite does \
                 not sync the deletion of its journal"
            }
            false => "a transaction that was committed survives a crash and a power cut",
        }
    }

    /// What differs from unmodified SQLite in the parameters of our VFS, techniques and extended logs; none if that VFS
    /// is not needed.
    pub(crate) fn techniques(&self) -> Vec<String> {
        let of_sqlite = VfsOptions::PLAIN.parameters();
        self.vfs.parameters().into_iter().filter(|parameter| !of_sqlite.contains(parameter)).collect()
    }

    /// Statements for each connection, where they differ from SQLite's defaults.
    pub(crate) fn at_open(&self) -> Vec<String> {
        let journal = (self.journal != self.journal.of_file()).then(|| journal_pragma(self.journal));
        let cache = (self.page_cache != DEFAULT_PAGE_CACHE).then(|| cache_pragma(self.page_cache));
        let checkpoint = self.journal == Journal::Log && self.checkpoint_pages != DEFAULT_CHECKPOINT_PAGES;
        let checkpoint = checkpoint.then(|| checkpoint_pragma(self.checkpoint_pages));
        journal.into_iter().chain(cache).chain(checkpoint).collect()
    }
}

/// The statement that sets the journal mode.
pub(crate) fn journal_pragma(journal: Journal) -> String {
    format!("PRAGMA journal_mode = {}", journal.name())
}

/// The statement that sets the page cache; a negative number counts KiB.
pub(crate) fn cache_pragma(size: ByteSize) -> String {
    format!("PRAGMA cache_size = -{}", size.bytes() / 1024)
}

/// The statement that sets after how many pages a log is written back.
pub(crate) fn checkpoint_pragma(pages: u32) -> String {
    format!("PRAGMA wal_autocheckpoint = {pages}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_journal_that_is_deleted_may_lose_a_commit_at_a_power_cut() {
        let plain = Settings::plain(DEFAULT_PAGE, DEFAULT_PAGE_CACHE);
        assert!(plain.may_lose_a_commit() && plain.guarantee().contains("may undo the last one"));
        for journal in [Journal::Truncate, Journal::Persist, Journal::Log] {
            let kept = Settings { journal, ..plain };
            assert!(!kept.may_lose_a_commit() && kept.guarantee().ends_with("a crash and a power cut"), "{journal:?}");
        }
        let batch = VfsOptions { atomic_batch: true, ..VfsOptions::PLAIN };
        assert!(!Settings { vfs: batch, ..plain }.may_lose_a_commit());
        let log = Settings { journal: Journal::Log, ..plain };
        assert!(Settings { synchronous: Synchronous::Normal, ..log }.may_lose_a_commit());
    }

    #[test]
    fn a_connection_sets_only_what_differs_from_sqlites_defaults() {
        let plain = Settings::plain(DEFAULT_PAGE, DEFAULT_PAGE_CACHE);
        assert!(plain.at_open().is_empty());
        let longer = Settings { checkpoint_pages: 4000, page_cache: ByteSize::mib(8), ..plain };
        assert_eq!(longer.at_open(), ["PRAGMA cache_size = -8192"], "there is no log to write back");
        let persistent = Settings { journal: Journal::Persist, ..plain };
        assert_eq!(persistent.at_open(), ["PRAGMA journal_mode = persist"], "no file keeps it");
        let logged = Settings { journal: Journal::Log, ..longer };
        assert_eq!(logged.at_open(), ["PRAGMA cache_size = -8192", "PRAGMA wal_autocheckpoint = 4000"]);
    }
}
