//! Records the statements of an unmodified program, and the database as it was before.
//!
//! ```text
//!   app.db ── copy ──▶ before.db ─────────────────────────┐
//!   COMMAND, with recorder.c preloaded ──▶ events ── sql.rs ──▶ script ─┴─▶ a workload that can be run again
//! ```
//!
//! | file | content |
//! |---|---|
//! | `recorder.c` | the shared object in the program: SQLite's trace of each statement, written as an event |
//! | `events.rs` | the form of events |
//! | `sql.rs` | from events to a script with sessions and think times |
//!
//! A library can be preloaded only into a program that is linked dynamically, and interposes only a SQLite that is a
//! library of its own (`libsqlite3.so`). Nothing is recorded of others, and that is an error with the way out.

mod events;
mod sql;

use std::ffi::OsString;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use flashwise_block::ByteSize;
use flashwise_block::input::{TEXT_MAX, check_regular};
use flashwise_block::output::{Access, OutputFile, publish_all};
use flashwise_trace::capture::TracedCommand;

use super::settings::{DEFAULT_PAGE_CACHE, Journal};
use super::user::{DatabaseBefore, Statements, UserWorkload, journal_mode};
use super::{check_new, check_new_database};
use crate::TuneError;
use sql::Nothing;
pub use sql::Recorded;

/// The recorder, as `build.rs` compiled it.
static RECORDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/flashwise_recorder.so"));
/// Its name, from which SQLite derives the entry point of an extension.
const RECORDER_NAME: &str = "flashwise_recorder.so";
/// Bytes of events at most, 128 MiB: as a script, they stay below the limit of one.
const EVENTS_MAX: u64 = TEXT_MAX / 2;

/// The statements of a program, and where they start from.
#[derive(Debug)]
pub struct Recording {
    /// The statements, with sessions and think times.
    pub text: Arc<str>,
    /// What was recorded, and what is left out.
    pub recorded: Recorded,
    /// The recorded database.
    pub database: PathBuf,
    /// The database as it was.
    pub before: Arc<DatabaseBefore>,
    /// The program with its arguments.
    pub command: String,
    /// How the program ended.
    pub status: ExitStatus,
}

impl Recording {
    /// The two files that [`save`](Self::save) makes: statements and database.
    pub fn files(name: &Path) -> [PathBuf; 2] {
        ["sql", "db"].map(|suffix| {
            let mut file = name.as_os_str().to_owned();
            file.push(".");
            file.push(suffix);
            file.into()
        })
    }

    /// The workload that the recording is, for the database that was recorded.
    ///
    /// # Errors
    /// When the copy of the database cannot be read.
    pub fn workload(&self, database: &Path, page_cache: Option<ByteSize>) -> Result<UserWorkload, TuneError> {
        let sql = Statements::Recorded { text: Arc::clone(&self.text), command: self.command.clone() };
        let mut workload = UserWorkload::new(database.to_owned(), sql, DEFAULT_PAGE_CACHE);
        workload.before = Some(Arc::clone(&self.before));
        let own = self.recorded.page_cache(workload.page_size()?);
        workload.page_cache = page_cache.or(own).unwrap_or(DEFAULT_PAGE_CACHE);
        Ok(workload)
    }

    /// The command that fits the files that [`save`](Self::save) made.
    pub fn command_again(name: &Path, workload: &UserWorkload) -> String {
        let [sql, database] = Self::files(name).map(|file| shell_word(&file));
        let page_cache = match workload.page_cache {
            DEFAULT_PAGE_CACHE => String::new(),
            ByteSize(bytes) if bytes.is_multiple_of(1024) => format!(" --page-cache {}k", bytes / 1024),
            ByteSize(bytes) => format!(" --page-cache {bytes}"),
        };
        let think_limit = workload.think_limit.map(|limit| format!(" --think-limit {}ns", limit.0)).unwrap_or_default();
        format!("flashwise fit sqlite {database} --sql {sql}{page_cache}{think_limit}")
    }

    /// Refuses names that exist, and that of a database beside which an earlier one has left files.
    ///
    /// # Errors
    /// When one of them does, or their folder does not.
    pub fn check_files(name: &Path) -> Result<(), TuneError> {
        let [statements, database] = Self::files(name);
        check_new(&statements)?;
        check_new_database(&database)
    }

    /// Keeps the statements as NAME.sql and the database as NAME.db, both or none, with the access rights of the
    /// recorded database: both have its data.
    ///
    /// # Errors
    /// When one of them exists or cannot be written.
    pub fn save(&self, name: &Path) -> Result<(), TuneError> {
        let [statements, database] = Self::files(name);
        Self::check_files(name)?;
        // The fit of the files then has the journal mode that the fit of the program has.
        self.before.set_journal(journal_mode(&self.database))?;
        let saved = self.save_as(&statements, &database);
        self.before.set_journal(Journal::Delete)?;
        saved
    }

    fn save_as(&self, statements: &Path, database: &Path) -> Result<(), TuneError> {
        let access = Access::of(&self.database).map_err(|e| TuneError::file(&self.database, &e))?;
        let before = self.before.path();
        let mut copied = std::fs::File::open(before).map_err(|e| TuneError::file(before, &e))?;
        let files = vec![
            (new_file(statements, &access, &mut self.text.as_bytes())?, None),
            (new_file(database, &access, &mut copied)?, None),
        ];
        publish_all(files).map_err(|(path, e)| TuneError::file(&path, &e))
    }
}

/// A path as a word for the shell; also one that would be an option.
pub(super) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,:@%=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A new file that has no name yet.
fn new_file(path: &Path, access: &Access, content: &mut dyn std::io::Read) -> Result<OutputFile, TuneError> {
    let failed = |e: std::io::Error| TuneError::file(path, &e);
    let mut new = OutputFile::create(path, access.clone()).map_err(failed)?;
    std::io::copy(content, new.file()).map_err(failed)?;
    Ok(new)
}

/// Runs a command and records what it does with a database, of which `before` is a copy.
///
/// # Errors
/// When the command cannot be started, or nothing was recorded.
pub fn record(database: &Path, before: DatabaseBefore, command: &TracedCommand) -> Result<Recording, TuneError> {
    let file = |e: std::io::Error| TuneError::file(database, &e);
    check_regular(database).map_err(file)?;
    let recorded = database.canonicalize().map_err(file)?;
    let [recorder, events] = [RECORDER_NAME, "events"].map(|name| before.folder().join(name));
    check_preloadable(&recorder)?;
    own_file(&recorder, RECORDER)?;
    own_file(&events, &[0; events::MARK])?;
    let status = command.run_alone(&environment(&recorder, &events, &recorded))?;
    let bytes = std::fs::read(&events).map_err(|e| TuneError::file(&events, &e))?;
    let name = words(command);
    let (text, recorded) =
        sql::script(&bytes, &name).map_err(|nothing| TuneError::Missing(explain(&nothing, &name, database)))?;
    let (database, before) = (database.to_owned(), Arc::new(before));
    Ok(Recording { text: text.into(), recorded, command: name, database, before, status })
}

/// Refuses a path that `LD_PRELOAD` cannot name: spaces and colons separate libraries there.
fn check_preloadable(recorder: &Path) -> Result<(), TuneError> {
    let text = recorder.to_string_lossy();
    if !text.contains([' ', ':', '\t', '\n']) {
        return Ok(());
    }
    let message = "a library in it cannot be preloaded, because of a space or colon in its name; name another folder for \
                   temporary files with TMPDIR";
    Err(TuneError::File { path: recorder.parent().unwrap_or(recorder).to_owned(), message: message.to_owned() })
}

/// A file in the folder of the run.
fn own_file(path: &Path, bytes: &[u8]) -> Result<(), TuneError> {
    use std::io::Write;
    #[allow(clippy::disallowed_methods, reason = "a new file in a directory of the run's own")]
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(|e| TuneError::file(path, &e))
}

/// What the recorder reads.
fn environment(recorder: &Path, events: &Path, database: &Path) -> [(&'static str, OsString); 5] {
    const PRELOAD: &str = "LD_PRELOAD";
    let mut preload = recorder.as_os_str().to_owned();
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    [
        (PRELOAD, preload),
        ("FLASHWISE_RECORDER", recorder.into()),
        ("FLASHWISE_RECORD_EVENTS", events.into()),
        ("FLASHWISE_RECORD_DATABASE", database.into()),
        ("FLASHWISE_RECORD_LIMIT", EVENTS_MAX.to_string().into()),
    ]
}

/// The command as a person wrote it, nearly.
fn words(command: &TracedCommand) -> String {
    /// Longer ones are cut.
    const SHOWN: usize = 60;
    let words: Vec<_> = command.command.iter().map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

/// Why nothing was recorded, and what to do.
fn explain(nothing: &Nothing, command: &str, database: &Path) -> String {
    let database = database.display();
    let instead = "write its statements into a file and give that with --sql";
    match nothing {
        Nothing::NotLoaded => format!(
            "{command}: not recorded: the program is linked statically or changes its user, so that nothing can be \
             preloaded, or the temporary folder is mounted noexec (TMPDIR names another one); {instead}"
        ),
        Nothing::NoLibrary => format!(
            "{command}: not recorded: it called no libsqlite3.so. If it has a SQLite of its own, let it load the \
             extension that the variable FLASHWISE_RECORDER names; if it is a server that changes its user, start it \
             as that user; otherwise {instead}"
        ),
        Nothing::NoTrace => format!(
            "{command}: not recorded: its libsqlite3.so has no sqlite3_trace_v2, which SQLite has since 3.14 unless it \
             is built without; use another one (LD_LIBRARY_PATH), or {instead}"
        ),
        Nothing::OtherDatabases(others) => {
            format!("{command}: it did not open {database}, but {}", others.join(", "))
        }
        Nothing::NoStatement => format!("{command}: it opened {database} and ran no statement"),
        Nothing::TooManySessions => format!(
            "{command}: it had more than {} connections to {database} at once; record a part of it",
            super::script::SESSIONS_MAX
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_use_a_recording_again_has_words_for_the_shell_and_the_programs_page_cache() {
        let sql = Statements::Recorded { text: "SELECT 1;".into(), command: "app".into() };
        let mut workload = UserWorkload::new("app.db".into(), sql, DEFAULT_PAGE_CACHE);
        let command = |name: &str, workload: &UserWorkload| Recording::command_again(Path::new(name), workload);
        assert_eq!(command("work", &workload), "flashwise fit sqlite work.db --sql work.sql");
        workload.page_cache = ByteSize::mib(8);
        workload.think_limit = Some(flashwise_block::Nanos(5_000_000));
        let expected =
            "flashwise fit sqlite 'it'\\''s $x.db' --sql 'it'\\''s $x.sql' --page-cache 8192k --think-limit 5000000ns";
        assert_eq!(command("it's $x", &workload), expected);
        assert!(command("-x", &workload).starts_with("flashwise fit sqlite ./-x.db --sql ./-x.sql "));
    }

    #[test]
    fn a_folder_that_cannot_be_named_to_the_linker_is_refused() {
        assert!(check_preloadable(Path::new("/tmp/a/flashwise_recorder.so")).is_ok());
        for folder in ["/tmp/my files", "/tmp/a:b"] {
            let error = check_preloadable(&Path::new(folder).join(RECORDER_NAME)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{folder}: a library in it")) && error.ends_with("TMPDIR"), "{error}");
        }
    }
}
