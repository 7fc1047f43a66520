//! `fit` with a database of the user's: what is proposed pays, what is applied is what was proposed, and nothing is
//! done that was not requested.

use crate::support;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flashwise_block::{ByteSize, Silent};
use flashwise_sqlite::{Backend, Vfs, VfsOptions};
use flashwise_ssd::DeviceConfig;
use flashwise_tune::sqlite::{FitOptions, Statements, TimeBudget, UserWorkload, Workload, fit};
use flashwise_tune::{AttachDrive, AttachedDrive, Attaching, Comparison, Host, ProgramTime, TuneError, Written};
use rusqlite::{Connection, OpenFlags};
use support::{contents, options};
use tempfile::TempDir;

/// Rows so long that a page of 64 KiB holds one.
const LONG_ROWS: &str = "PRAGMA page_size = 65536; CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
    INSERT INTO t SELECT i, zeroblob(50000) FROM n;";
const SHORT_ROWS: &str = "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
    INSERT INTO t SELECT i, hex(zeroblob(100)) FROM n;";

struct Place {
    directory: TempDir,
}

impl Place {
    fn new(schema: &str, statements: impl Iterator<Item = String>) -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        Connection::open(place.path("app.db")).unwrap().execute_batch(schema).unwrap();
        std::fs::write(place.path("work.sql"), statements.collect::<String>()).unwrap();
        place
    }

    fn with_updates() -> Self {
        Self::new(SHORT_ROWS, (0..40).map(|i| format!("UPDATE t SET v = 'x' || v WHERE k = {};\n", 1 + i * 37)))
    }

    fn with_reads() -> Self {
        Self::new(LONG_ROWS, (0..80).map(|i| format!("SELECT v FROM t WHERE k = {};\n", 1 + i * 37 % 40)))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn options(&self) -> FitOptions {
        let work = Statements::File(self.path("work.sql"));
        self.options_for(work)
    }

    fn options_for(&self, sql: Statements) -> FitOptions {
        let workload = UserWorkload::new(self.path("app.db"), sql, ByteSize::kib(256));
        FitOptions { page_cache_limit: ByteSize::mib(1), ..options(Workload::User(workload)) }
    }

    /// Fits without one or more of the changes.
    fn without(&self, skip: &[&str]) -> FitOptions {
        FitOptions { skip: skip.iter().map(|&name| name.to_owned()).collect(), ..self.options() }
    }
}

fn fitted(options: &FitOptions) -> Comparison {
    fit(options, &mut Silent).unwrap()
}

fn names(c: &Comparison) -> Vec<&str> {
    c.proposals.iter().map(|proposal| proposal.name.as_str()).collect()
}

/// Every technique, which are tried only where they are not skipped.
const TECHNIQUES: [&str; 8] = [
    "use-hot-locations",
    "sparse-log",
    "write-aligned-stripes",
    "contain-write-in-flash-page",
    "concurrent-write-back",
    "concurrent-read-ahead",
    "discard",
    "atomic-batch",
];

fn ask(db: &Connection, sql: &str) -> String {
    db.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0)).map(|value| format!("{value:?}")).unwrap()
}

#[test]
fn what_is_proposed_pays_and_the_database_is_left_alone() {
    let place = Place::with_updates();
    let before = contents(place.directory.path());
    let c = fitted(&place.options());
    assert!(before == contents(place.directory.path()), "the directory has changed");
    assert!(names(&c).contains(&"journal_mode") || names(&c).contains(&"atomic-batch"), "{:?}", c.proposals);
    let gain = c.gain.unwrap();
    assert!(gain.low > 1.01 && gain.low <= gain.ratio && gain.ratio <= gain.high);
    assert!(
        c.declined.iter().all(|declined| declined.gain.ratio < declined.price.max(1.01) || declined.gain.low <= 1.0)
    );
    assert!(c.after.drive_time_ns < c.before.drive_time_ns);
    assert_eq!((c.changed, c.after.integrity_check.as_str()), (None, "ok"));
    assert_eq!(c.file.unwrap(), place.path("app.db").display().to_string());
}

#[test]
fn the_time_of_the_copy_is_not_that_of_the_statements() {
    let place = Place::with_reads();
    let db = Connection::open(place.path("app.db")).unwrap();
    db.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 41 UNION ALL SELECT i + 1 FROM n WHERE i < 600) \
                      INSERT INTO t SELECT i, zeroblob(50000) FROM n",
    )
    .unwrap();
    drop(db);
    // A run has a thirtieth of it, 33 ms: less than it takes to copy 30 MB and bring them to the drive.
    let time_budget = Some(TimeBudget::Clock(std::time::Duration::from_secs(1)));
    let c = fitted(&FitOptions { time_budget, ..place.options() });
    assert!(c.search.statements > 1, "{:?}", c.search);
}

/// Stands for an attached drive: a directory, if there is one.
#[derive(Debug)]
struct Somewhere(Option<PathBuf>);

impl AttachDrive for Somewhere {
    fn attach(&self, _: &DeviceConfig, _: u32, file_system: &str) -> Result<Box<dyn AttachedDrive>, TuneError> {
        assert_eq!(file_system, "ext4");
        match &self.0 {
            Some(directory) => Ok(Box::new(Somewhere(Some(directory.clone())))),
            None => Err(TuneError::Missing("--attached: no loop devices".to_owned())),
        }
    }
}

impl AttachedDrive for Somewhere {
    fn directory(&self) -> PathBuf {
        self.0.clone().unwrap()
    }

    fn was_late(&self) -> bool {
        false
    }

    fn written(&self) -> Option<Written> {
        None
    }
}

#[test]
fn a_recommendation_is_seen_on_the_attached_drive_unasked_where_that_can_be_and_time_is_left() {
    let place = Place::with_updates();
    let directory = || tempfile::tempdir().unwrap().keep();
    let fit = |attach: Attaching, seconds: u64| {
        let time_budget = Some(TimeBudget::Clock(std::time::Duration::from_secs(seconds)));
        // A log is what helps; the fewer others are tried, the sooner it is found.
        let options = place.without(&[&TECHNIQUES[..], &["page_size", "cache_size", "log-sync"]].concat());
        let host = Host::named("ext4", ByteSize::gib(1), ProgramTime::Modelled).unwrap();
        let target = options.target.clone().with_host(host);
        fitted(&FitOptions { target, attach, time_budget, ..options })
    };
    let somewhere = directory();
    let c = fit(Attaching::IfItCan(Arc::new(Somewhere(Some(somewhere.clone())))), 300);
    let seen = c.seen.expect("there is time");
    assert!(seen.file_system == "ext4" && (3..=12).contains(&seen.runs), "{seen:?}");
    std::fs::remove_dir_all(somewhere).unwrap();
    // A machine that cannot attach a drive: the recommendation stands, and a note has the reason.
    let c = fit(Attaching::IfItCan(Arc::new(Somewhere(None))), 300);
    assert!(c.seen.is_none() && c.gain.is_some());
    assert!(c.notes.iter().any(|note| note.contains("no loop devices")), "{:?}", c.notes);
    // Attaching alone takes longer than what is left.
    let c = fit(Attaching::IfItCan(Arc::new(Somewhere(None))), 5);
    assert!(c.seen.is_none() && !c.notes.iter().any(|note| note.contains("no loop devices")), "{:?}", c.notes);
}

/// The statement in a command for SQLite's shell, which is for the database of the place.
fn statement<'a>(place: &Place, command: &'a str) -> &'a str {
    let program = format!("sqlite3 {} '", place.path("app.db").display());
    command.strip_prefix(&program).unwrap_or_else(|| panic!("{command}")).trim_end_matches('\'')
}

#[test]
fn what_is_applied_in_place_is_what_was_proposed_and_can_be_taken_back() {
    let place = Place::with_updates();
    let kept = [&TECHNIQUES[..], &["page_size"]].concat();
    let c = fitted(&FitOptions { apply: true, ..place.without(&kept) });
    let changed = c.changed.clone().unwrap();
    assert!(changed.in_place && changed.steps == ["PRAGMA journal_mode = wal"], "{changed:?}");
    let db = Connection::open(place.path("app.db")).unwrap();
    assert_eq!(ask(&db, "PRAGMA journal_mode"), "Text(\"wal\")");
    assert_eq!(ask(&db, "SELECT count(*) || max(k) FROM t"), "Text(\"30003000\")");
    let journal = c.proposals.iter().find(|proposal| proposal.name == "journal_mode").unwrap();
    db.execute_batch(statement(&place, &journal.undo)).unwrap();
    assert_eq!(ask(&db, "PRAGMA journal_mode"), "Text(\"delete\")");
}

#[test]
fn pages_of_another_size_are_given_and_taken_back_whatever_the_journal() {
    // Long rows in small pages: one read of a long page instead of a dozen of short ones.
    for journal in ["delete", "wal"] {
        let small = LONG_ROWS.replace("65536", "4096");
        let place = Place::new(
            &format!("{small}; PRAGMA journal_mode = {journal}"),
            (0..80).map(|i| format!("SELECT v FROM t WHERE k = {};\n", 1 + i * 37 % 40)),
        );
        let kept = [&TECHNIQUES[..], &["cache_size", "journal_mode"]].concat();
        let tuning = fitted(&FitOptions { apply: true, ..place.without(&kept) });
        let page = tuning.proposals.iter().find(|proposal| proposal.name == "page_size").expect("longer pages pay");
        let db = Connection::open(place.path("app.db")).unwrap();
        let sizes = |db: &Connection| (ask(db, "PRAGMA page_size"), ask(db, "PRAGMA journal_mode"));
        assert_eq!(sizes(&db), (format!("Integer({})", tuning.after.page_bytes), format!("Text({journal:?})")));
        db.execute_batch(statement(&place, &page.undo)).unwrap();
        assert_eq!(sizes(&db), ("Integer(4096)".to_owned(), format!("Text({journal:?})")));
        assert_eq!(ask(&db, "SELECT count(*) FROM t"), "Integer(40)");
    }
}

#[test]
fn a_layout_makes_a_new_file_and_leaves_the_database_unchanged() {
    let place = Place::with_reads();
    let original = std::fs::read(place.path("app.db")).unwrap();
    std::fs::set_permissions(place.path("app.db"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let kept = ["cache_size", "concurrent-read-ahead"];
    let tuning = fitted(&FitOptions { apply: true, ..place.without(&kept) });
    let mode = |name: &str| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(place.path(name)).unwrap()) & 0o777;
    assert_eq!(mode("app-fitted.db"), 0o600, "for the same eyes as the database");
    assert!(names(&tuning).contains(&"use-hot-locations"), "{:?}", tuning.proposals);
    let applied = tuning.changed.unwrap();
    assert_eq!((applied.in_place, Path::new(&applied.file)), (false, &*place.path("app-fitted.db")));
    assert!(original == std::fs::read(place.path("app.db")).unwrap(), "the database has changed");
    assert_eq!(flashwise_sqlite::info(Path::new(&applied.file)).unwrap().layout, "hot-locations");
    let vfs = Vfs::register("tuned", Backend::Directory, VfsOptions::PLAIN).unwrap();
    let db = Connection::open_with_flags_and_vfs(&applied.file, OpenFlags::default(), vfs.name()).unwrap();
    assert_eq!(ask(&db, "SELECT count(*) || sum(length(v)) FROM t"), "Text(\"402000000\")");
    assert_eq!(ask(&db, "PRAGMA integrity_check"), "Text(\"ok\")");
    assert_eq!(tuning.uri.unwrap(), format!("file:{}?vfs=flashwise", applied.file));
    let layout = tuning.proposals.iter().find(|proposal| proposal.name == "use-hot-locations").unwrap();
    assert!(layout.apply.contains(&format!(" {} --techniques", applied.file)), "{}", layout.apply);

    drop(db);
    let again = fit(&FitOptions { apply: true, ..place.without(&kept) }, &mut Silent).unwrap_err();
    assert!(matches!(&again, TuneError::Refused(why) if why.contains("app-fitted.db: exists")), "{again}");
    let names: Vec<_> = std::fs::read_dir(place.directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}: nothing is left behind");
}

#[test]
fn batches_are_proposed_for_rollback_journals_and_applied_as_a_new_file() {
    let place = Place::with_updates();
    let kept = ["journal_mode", "page_size", "cache_size", "use-hot-locations"];
    let tuning = fitted(&FitOptions { apply: true, ..place.without(&kept) });
    assert!(names(&tuning).contains(&"atomic-batch"), "{:?}", tuning.proposals);
    let applied = tuning.changed.unwrap();
    assert!(flashwise_sqlite::info(Path::new(&applied.file)).unwrap().atomic_batches && !applied.in_place);
    assert!(tuning.uri.unwrap().starts_with(&format!("file:{}?vfs=flashwise", applied.file)));
    assert!(tuning.notes.iter().any(|note| note.contains("plain SQLite refuses it")), "{:?}", tuning.notes);
    let vfs = Vfs::register("batched", Backend::Directory, VfsOptions::PLAIN).unwrap();
    let db = Connection::open_with_flags_and_vfs(&applied.file, OpenFlags::default(), vfs.name()).unwrap();
    assert_eq!(ask(&db, "SELECT count(*) FROM t"), "Integer(3000)");
}

#[test]
fn what_is_to_stay_is_not_even_tried() {
    let place = Place::with_updates();
    let c = fitted(&place.without(&["journal_mode", "cache_size"]));
    assert!(c.candidates.iter().all(|candidate| candidate.journal_mode == "delete"), "{:?}", c.candidates);
    assert!(c.candidates.iter().all(|candidate| candidate.page_cache_bytes == 256 << 10));
    assert!(!c.candidates.is_empty());
    let error = fit(&place.without(&["journal"]), &mut Silent).unwrap_err().to_string();
    assert!(
        error.starts_with("--skip journal: unknown setting; did you mean 'journal_mode'? Choose one of page_size, "),
        "{error}"
    );
}

#[test]
fn a_database_that_is_open_elsewhere_keeps_its_pages_and_its_log() {
    let small = LONG_ROWS.replace("65536", "4096");
    let place = Place::new(
        &format!("{small}; PRAGMA journal_mode = wal"),
        (0..80).map(|i| format!("SELECT v FROM t WHERE k = {};\n", 1 + i * 37 % 40)),
    );
    let other = Connection::open(place.path("app.db")).unwrap();
    assert_eq!(ask(&other, "SELECT count(*) FROM t"), "Integer(40)");
    let kept = [&TECHNIQUES[..], &["cache_size"]].concat();
    let options = FitOptions { apply: true, ..place.without(&kept) };
    let error = fit(&options, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("locked") || error.contains("open elsewhere"), "{error}");
    assert_eq!(ask(&other, "PRAGMA page_size"), "Integer(4096)");
    assert_eq!(ask(&other, "PRAGMA journal_mode"), "Text(\"wal\")");
    assert_eq!(ask(&other, "PRAGMA integrity_check"), "Text(\"ok\")");
}

#[test]
fn without_statements_they_are_made_up_and_the_notes_say_so() {
    let place = Place::with_updates();
    let made = || UserWorkload::made_up(&place.path("app.db"), 1);
    let all = [&TECHNIQUES[..], &["cache_size", "page_size"]].concat();
    let skip = place.without(&all).skip;
    let c = fitted(&FitOptions { skip, ..place.options_for(Statements::Made(made().unwrap())) });
    assert!(c.workload.summary.starts_with("generated statements on a copy of "), "{}", c.workload.summary);
    assert!(c.notes[0].contains("--sql"), "{:?}", c.notes);
    assert!(c.before.select_latency.count > 3000 && c.before.transaction_latency.count > 900);

    Connection::open(place.path("app.db")).unwrap().execute_batch("DELETE FROM t").unwrap();
    let error = made().unwrap_err().to_string();
    assert!(error.contains("no table in it has rows") && error.contains("--sql"), "{error}");
}
