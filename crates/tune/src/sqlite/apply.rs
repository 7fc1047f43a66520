//! Applies the settings that gain to a user's database, without ever risking it.
//!
//! Settings that SQLite can change are changed in place: a journal mode, and a page size by `VACUUM`, which is a
//! transaction. A layout creates a new file beside the database, as a whole or not at all, and does not change the
//! database. An `integrity_check` runs before and after.

use std::path::{Path, PathBuf};

use flashwise_block::Progress;
use flashwise_block::output::{Access, OutputPath};
use flashwise_sqlite::{Backend, ImportSummary, Layout, Vfs, VfsOptions, check_target, import};
use rusqlite::{Connection, OpenFlags};

use super::knobs::set_page_size;
use super::session::vfs_name;
use super::settings::{Journal, Settings, journal_pragma};
use super::user::{copy_with_pages, interruptible, open_plain, plain_error};
use crate::{AppliedTuning, TuneError};

/// What became of a change.
#[derive(Debug)]
pub(super) enum Application {
    Done(AppliedTuning),
    /// Nothing was changed, and why.
    Declined(String),
}

/// Changes a database from one set of settings to another, as far as they are kept in its file.
///
/// # Errors
/// When the database is damaged, in use, or cannot be written; when there is a file where a new one is to be.
pub(super) fn apply(
    database: &Path,
    now: &Settings,
    wanted: &Settings,
    progress: &mut dyn Progress,
) -> Result<Application, TuneError> {
    progress.advance(&format!("changing {}", database.display()), 0.0)?;
    if !wanted.vfs.is_converting() {
        return in_place(database, now, wanted).map(Application::Done);
    }
    let beside = beside(database, FITTED);
    if let Some(why) = lay_out(database, wanted, &beside)? {
        return Ok(Application::Declined(why));
    }
    let mut steps = vec![format!("flashwise sqlite import: {}", wanted.techniques().join(", "))];
    if wanted.page != now.page {
        steps.insert(0, format!("a copy with pages of {}", wanted.page));
    }
    if wanted.journal == Journal::Log {
        steps.push(journal_pragma(Journal::Log));
    }
    Ok(Application::Done(AppliedTuning { file: beside.display().to_string(), in_place: false, steps }))
}

/// What the name of a file in a new layout ends in.
pub(super) const FITTED: &str = "fitted";

fn in_place(database: &Path, now: &Settings, wanted: &Settings) -> Result<AppliedTuning, TuneError> {
    let failed = |e| plain_error(database, &e);
    let mut steps = Vec::new();
    if wanted.page != now.page {
        steps.push(set_page_size(now, wanted.page));
    }
    let journal = wanted.journal.of_file();
    if journal != now.journal.of_file() {
        steps.push(journal_pragma(journal));
    }
    if !steps.is_empty() {
        let db = open_plain(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        check_integrity(&db, database)?;
        for step in &steps {
            db.execute_batch(step).map_err(failed)?;
        }
        let page: i64 = db.query_row("PRAGMA page_size", [], |row| row.get(0)).map_err(failed)?;
        let found: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(failed)?;
        if (page.unsigned_abs(), found.as_str()) != (wanted.page.bytes(), journal.name()) {
            // If another connection prevents the change, SQLite returns the current value and no error.
            return Err(TuneError::Sql {
                context: database.display().to_string(),
                message: format!(
                    "the page size is {page} and journal_mode is {found} afterwards: is the database \
                                  open elsewhere?"
                ),
            });
        }
        check_integrity(&db, database)?;
    }
    Ok(AppliedTuning { file: database.display().to_string(), in_place: true, steps })
}

/// `app.db` becomes `app-fitted.db`.
pub(super) fn beside(database: &Path, what: &str) -> PathBuf {
    let mut name = database.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{what}"));
    if let Some(extension) = database.extension() {
        name.push(".");
        name.push(extension);
    }
    database.with_file_name(name)
}

/// Creates the new file; or none, with the reason, where the layout would not do what it is for.
fn lay_out(database: &Path, wanted: &Settings, new: &Path) -> Result<Option<String>, TuneError> {
    if new.symlink_metadata().is_ok() {
        return Err(TuneError::Refused(format!("{}: exists; existing files are never written to", new.display())));
    }
    // Companion files of an earlier database of that name would be replayed into the new one.
    check_target(new)?;
    check_integrity(&open_plain(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?, database)?;
    let failed = |e: std::io::Error| TuneError::file(new, &e);
    // The new file is for the same eyes as the database.
    let access = Access::of(database).map_err(|e| TuneError::file(database, &e))?;
    let made = OutputPath::create(new, access).map_err(failed)?;
    let (plain, laid_out) = (made.directory().join("plain.db"), made.path());
    copy_with_pages(database, wanted.page, &plain)?;
    let summary = import(&plain, &laid_out, &wanted.vfs)?;
    if let Some(why) = is_in_vain(new, &summary) {
        return Ok(Some(why));
    }
    finish(&laid_out, wanted)?;
    made.publish().map_err(failed)?;
    Ok(None)
}

/// Why a layout for hot locations would bring nothing: no page is at one, by the extents of the file.
fn is_in_vain(new: &Path, summary: &ImportSummary) -> Option<String> {
    let is_for_places = matches!(summary.layout, Layout::HotLocations { .. });
    (is_for_places && summary.hot_pages == Some(0) && summary.pages > 0).then(|| {
        format!(
            "{} was not made: by the extents of the file, none of its {} pages would be at a hot location of the drive.",
            new.display(),
            summary.pages
        )
    })
}

/// Opens the new file as it will be opened, gives it its journal mode and checks it.
fn finish(laid_out: &Path, wanted: &Settings) -> Result<(), TuneError> {
    let vfs = Vfs::register(&vfs_name(), Backend::Directory, VfsOptions { record: false, ..wanted.vfs })?;
    let failed =
        |e: rusqlite::Error| TuneError::Sql { context: "the database laid out".into(), message: e.to_string() };
    let db = Connection::open_with_flags_and_vfs(laid_out, OpenFlags::default(), vfs.name())
        .and_then(interruptible)
        .map_err(failed)?;
    db.execute_batch(&journal_pragma(wanted.journal.of_file())).map_err(failed)?;
    check_integrity(&db, laid_out)
}

fn check_integrity(db: &Connection, path: &Path) -> Result<(), TuneError> {
    let answer: String =
        db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(|e| plain_error(path, &e))?;
    if answer == "ok" { Ok(()) } else { Err(TuneError::Integrity { label: path.display().to_string(), answer }) }
}

#[cfg(test)]
mod power_cuts;

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_block::ByteSize;
    use flashwise_sqlite::LogLayout;

    #[test]
    fn a_layout_for_hot_locations_is_in_vain_where_no_page_is_at_one() {
        let layout = Layout::HotLocations { chunk: ByteSize::kib(64), offset: ByteSize::kib(32) };
        let summary = |layout, hot_pages| ImportSummary {
            layout,
            log: LogLayout::Plain,
            atomic_batches: false,
            bytes: ByteSize::mib(1),
            page_size: ByteSize::kib(64),
            pages: 16,
            pages_are_hot: true,
            hot_pages,
        };
        let why = is_in_vain(Path::new("app-fitted.db"), &summary(layout, Some(0))).unwrap();
        assert!(why.starts_with("app-fitted.db was not made") && why.contains("none of its 16 pages"), "{why}");
        assert_eq!(is_in_vain(Path::new("a"), &summary(layout, Some(3))), None);
        assert_eq!(is_in_vain(Path::new("a"), &summary(layout, None)), None, "not known is not none");
        assert_eq!(is_in_vain(Path::new("a"), &summary(Layout::Headed, Some(0))), None);
    }
}
