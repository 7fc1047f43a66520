//! `fit` with the user's own database and statements: nothing of the user's is changed, whatever state it is in.

use crate::support;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flashwise_block::{ByteSize, Operation, Silent};
use flashwise_trace::FileRole;
use flashwise_tune::sqlite::{FitOptions, Statements, UserWorkload, Workload, capture, fit};
use flashwise_tune::{Comparison, TuneError};
use rusqlite::Connection;
use support::{contents, is_empty, options, run, samsung, target};
use tempfile::TempDir;

const SHOP: &str = "
    PRAGMA page_size = 8192;
    PRAGMA encoding = 'UTF-16le';
    PRAGMA user_version = 7;
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, photo BLOB);
    CREATE TABLE stock (warehouse TEXT, item INTEGER, amount INTEGER, PRIMARY KEY (warehouse, item)) WITHOUT ROWID;
    CREATE TABLE sale (id INTEGER PRIMARY KEY, customer REFERENCES customer, item INTEGER, amount INTEGER);
    CREATE TABLE log (what TEXT);
    CREATE INDEX sale_of_customer ON sale (customer, item);
    CREATE UNIQUE INDEX customer_name ON customer (name);
    CREATE VIEW sold AS SELECT item, sum(amount) AS amount FROM sale GROUP BY item;
    CREATE TRIGGER sold_out AFTER INSERT ON sale BEGIN
        UPDATE stock SET amount = amount - NEW.amount WHERE warehouse = 'north' AND item = NEW.item;
        INSERT INTO log VALUES ('sold ' || NEW.item);
    END;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
    INSERT INTO customer SELECT i, 'name ' || i, zeroblob(i * 50) FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
    INSERT INTO stock SELECT 'north', i, 1000 FROM n;
";

const WORK: &str = "
    -- A comment; with a semicolon.
    BEGIN;
    INSERT INTO sale (customer, item, amount) VALUES (1, 5, 2);
    INSERT INTO sale (customer, item, amount) VALUES (2, 6, 3);
    COMMIT;
    SELECT name, length(photo) FROM customer ORDER BY id;
    UPDATE customer SET photo = zeroblob(3000) WHERE id % 50 = 0;
    SELECT * FROM sold;;
    DELETE FROM customer WHERE id = 299;
    SELECT count(*) FROM stock WHERE amount < 1000;
    PRAGMA foreign_key_check;
    VACUUM;
    SELECT 'äöü';
";

/// A directory with a database and a file of statements.
struct Shop {
    directory: TempDir,
}

impl Shop {
    fn new(sql: &str) -> Self {
        let shop = Self { directory: tempfile::tempdir().unwrap() };
        Connection::open(shop.path("shop.db")).unwrap().execute_batch(SHOP).unwrap();
        std::fs::write(shop.path("work.sql"), sql).unwrap();
        std::fs::set_permissions(shop.path("shop.db"), std::fs::Permissions::from_mode(0o640)).unwrap();
        shop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn workload(&self) -> UserWorkload {
        self.workload_on("shop.db")
    }

    fn workload_on(&self, database: &str) -> UserWorkload {
        UserWorkload::new(self.path(database), Statements::File(self.path("work.sql")), ByteSize::kib(64))
    }

    fn options(&self) -> FitOptions {
        options(Workload::User(self.workload()))
    }

    /// Fits, leaves the database, and answers a question to it. Nothing else may change.
    fn ask_saved(&self, question: &str) -> String {
        let before = contents(self.directory.path());
        let elsewhere = tempfile::tempdir().unwrap();
        let saved = elsewhere.path().join("saved.db");
        let c = run(&FitOptions { save_database: Some(saved.clone()), ..self.options() });
        assert!(before == contents(self.directory.path()), "the user's directory has changed");
        assert_eq!(c.after.integrity_check, "ok");
        // Who cannot read the database cannot read what was made of it.
        assert_eq!(std::fs::metadata(&saved).unwrap().permissions().mode() & 0o777, 0o640);
        ask(&saved, question)
    }

    /// Fails to fit. Nothing may change.
    fn error(&self) -> TuneError {
        let before = contents(self.directory.path());
        let error = fit(&self.options(), &mut Silent).unwrap_err();
        assert!(before == contents(self.directory.path()), "the user's directory has changed");
        error
    }
}

fn ask(database: &Path, question: &str) -> String {
    let db = Connection::open(database).unwrap();
    let text = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    text(question)
}

const COUNTS: &str = "SELECT (SELECT count(*) FROM customer) || ' ' || (SELECT count(*) FROM sale) || ' ' ||
    (SELECT count(*) FROM log) || ' ' || (SELECT amount FROM stock WHERE warehouse = 'north' AND item = 6)";

#[test]
fn tables_of_every_kind_go_through_with_their_triggers_and_the_original_is_untouched() {
    let shop = Shop::new(WORK);
    assert_eq!(shop.ask_saved(COUNTS), "299 2 2 997");
    assert_eq!(ask(&shop.path("shop.db"), COUNTS), "300 0 0 1000");
}

#[test]
fn what_the_file_says_of_itself_survives() {
    let shop = Shop::new("SELECT 1;");
    let answer =
        "SELECT (SELECT user_version FROM pragma_user_version) || ' ' || (SELECT encoding FROM pragma_encoding)
        || ' ' || (SELECT page_size FROM pragma_page_size) || ' ' || (SELECT count(*) FROM sqlite_schema)";
    assert_eq!(shop.ask_saved(answer), "7 UTF-16le 8192 8");
}

#[test]
fn a_database_is_compared_with_its_own_settings() {
    let shop = Shop::new(WORK);
    Connection::open(shop.path("shop.db")).unwrap().execute_batch("PRAGMA page_size = 65536; VACUUM").unwrap();
    let c = run(&shop.options());
    assert_eq!((c.default.page_bytes, c.checklist.page_bytes), (65536, 65536));
    assert!(c.applied.iter().all(|applied| applied.name != "page_size" || applied.old_value == "64 KiB"));
}

#[test]
fn a_database_in_wal_mode_is_measured_with_a_write_ahead_log() {
    let shop = Shop::new("INSERT INTO log VALUES ('x');");
    let options = shop.options();
    let written = || -> BTreeSet<FileRole> {
        let trace = capture(&options.target, &options.workload, 1, &mut Silent).unwrap();
        let writes = trace.records.iter().filter(|record| record.operation == Operation::Write);
        writes.map(|record| record.role).collect()
    };
    assert!(!run(&options).workload.summary.contains("write-ahead log"));
    assert_eq!(written(), [FileRole::Database, FileRole::Journal].into());
    Connection::open(shop.path("shop.db")).unwrap().execute_batch("PRAGMA journal_mode = WAL").unwrap();
    assert!(run(&options).workload.summary.ends_with(", with a write-ahead log"));
    assert_eq!(written(), [FileRole::WriteAheadLog].into(), "one insert needs no checkpoint");
    assert_eq!(shop.ask_saved("SELECT what FROM log"), "x");
}

#[test]
fn nothing_is_measured_when_a_result_could_not_be_saved() {
    let shop = Shop::new("SELECT 1;");
    std::os::unix::fs::symlink(shop.path("nowhere"), shop.path("dangling.db")).unwrap();
    std::fs::write(shop.path("stale.db-journal"), "of an earlier database").unwrap();
    for (path, word) in [
        ("dangling.db", "exists"),
        ("none/saved.db", "there is no directory"),
        ("stale.db", "stale.db-journal' exists and would be read as part of the new database"),
    ] {
        let error = fit(&FitOptions { save_database: Some(shop.path(path)), ..shop.options() }, &mut Silent);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(path) && error.contains(word), "{error}");
    }
}

#[test]
fn reads_and_writes_are_told_apart_and_the_page_size_of_the_file_is_the_default_run() {
    let shop = Shop::new(WORK);
    let c = run(&shop.options());
    assert_eq!((c.default_page_size.page_bytes, c.default.page_bytes), (8192, 8192));
    for run in [&c.default, &c.checklist, &c.best] {
        // The five SELECTs and PRAGMA foreign_key_check; a transaction, an UPDATE, a DELETE, and VACUUM.
        assert_eq!(run.select_latency.count, 5, "{run:?}");
        assert_eq!(run.transaction_latency.count, 4, "{run:?}");
        assert!(run.select_per_s > 0.0 && run.insert_per_s > 0.0, "{run:?}");
    }
    assert!(c.workload.summary.contains("work.sql") && c.workload.summary.contains("shop.db"));
    assert!(c == run(&shop.options()), "the same statements are the same work");
}

#[test]
fn a_database_in_wal_mode_is_read_with_what_is_only_in_its_wal() {
    let shop = Shop::new("SELECT count(*) FROM log;");
    let db = Connection::open(shop.path("shop.db")).unwrap();
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; INSERT INTO log VALUES ('in the WAL')")
        .unwrap();
    // As after a crash: the WAL is there, its index is not.
    let crashed = Shop { directory: tempfile::tempdir().unwrap() };
    for name in ["shop.db", "shop.db-wal", "work.sql"] {
        std::fs::copy(shop.path(name), crashed.path(name)).unwrap();
    }
    assert_eq!(crashed.ask_saved("SELECT what FROM log"), "in the WAL");
    // While another program has it open.
    assert_eq!(shop.ask_saved("SELECT what FROM log"), "in the WAL");
    db.execute_batch("INSERT INTO log VALUES ('still works')").unwrap();
}

#[test]
fn a_database_in_wal_mode_that_was_closed_well_stays_alone_in_its_directory() {
    let shop = Shop::new("SELECT count(*) FROM log;");
    let db = Connection::open(shop.path("shop.db")).unwrap();
    db.execute_batch("PRAGMA journal_mode = WAL; INSERT INTO log VALUES ('checkpointed')").unwrap();
    drop(db);
    assert_eq!(contents(shop.directory.path()).len(), 2);
    assert_eq!(shop.ask_saved("SELECT what FROM log"), "checkpointed");
}

#[test]
fn a_journal_left_by_a_crash_is_rolled_back_in_the_copy_only() {
    let shop = Shop::new("SELECT count(*) FROM log;");
    let db = Connection::open(shop.path("shop.db")).unwrap();
    db.execute_batch("PRAGMA cache_size = 5; BEGIN; DELETE FROM customer WHERE id > 3").unwrap();
    let crashed = Shop { directory: tempfile::tempdir().unwrap() };
    for name in ["shop.db", "shop.db-journal", "work.sql"] {
        std::fs::copy(shop.path(name), crashed.path(name)).unwrap();
    }
    db.execute_batch("ROLLBACK").unwrap();
    assert_ne!(std::fs::read(shop.path("shop.db")).unwrap(), std::fs::read(crashed.path("shop.db")).unwrap());
    assert_eq!(crashed.ask_saved("SELECT count(*) || '' FROM customer"), "300");
}

#[test]
fn a_link_to_a_database_finds_the_wal_beside_the_database() {
    let shop = Shop::new("SELECT count(*) FROM log;");
    let db = Connection::open(shop.path("shop.db")).unwrap();
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; INSERT INTO log VALUES ('in the WAL')")
        .unwrap();
    let links = Shop { directory: tempfile::tempdir().unwrap() };
    for name in ["shop.db", "work.sql"] {
        std::os::unix::fs::symlink(shop.path(name), links.path(name)).unwrap();
    }
    assert_eq!(links.ask_saved("SELECT what FROM log"), "in the WAL");
}

#[test]
fn statements_may_use_a_wal_of_their_own() {
    let shop = Shop::new("PRAGMA journal_mode = WAL; INSERT INTO log VALUES ('x'); SELECT count(*) FROM log;");
    assert_eq!(shop.ask_saved("SELECT what FROM log"), "x");
}

#[test]
fn a_transaction_that_is_left_open_is_undone_and_harms_nothing() {
    let shop = Shop::new("INSERT INTO log VALUES ('kept'); BEGIN; INSERT INTO log VALUES ('lost');");
    assert_eq!(shop.ask_saved("SELECT group_concat(what) FROM log"), "kept");
}

#[test]
fn an_sql_error_names_the_file_the_statement_and_what_sqlite_says() {
    for (sql, words) in [
        ("SELECT 1; SELECT * FROM nosuch; SELECT 2;", "work.sql, statement 2, line 1: no such table: nosuch"),
        ("SELEC 1;", "work.sql, statement 1, line 1: near \"SELEC\": syntax error"),
        (
            "SELECT 1;\n\nINSERT INTO customer VALUES (1, 'twice', NULL);",
            "work.sql, statement 2, line 3: UNIQUE constraint failed",
        ),
        ("SELECT broken FROM log;\nSELECT 2;", "work.sql, statement 1, line 1: no such column: broken"),
        ("SELECT ?1;", "work.sql, line 1: no value for the parameter ?1; give a file of values with --parameters"),
        (".tables", "work.sql, line 1: a command of the sqlite3 shell; remove it: only SQL is run"),
        ("SELECT 1; SELECT 'unfinished", "work.sql, statement 2, line 1: unrecognized token"),
    ] {
        let error = Shop::new(sql).error().to_string();
        assert!(error.contains(words) && error.len() < 250 && error.lines().count() == 1, "{sql}: {error}");
    }
}

#[test]
fn statements_cannot_reach_files_beside_the_copy() {
    let victim = tempfile::tempdir().unwrap();
    let path = victim.path().join("victim.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
    let before = contents(victim.path());
    let victim_name = path.display();
    for sql in [
        format!("ATTACH '{victim_name}' AS v; DELETE FROM v.t;"),
        format!("ATTACH '{victim_name}' || '' AS v; DELETE FROM v.t;"),
        format!("VACUUM INTO '{victim_name}2';"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let shop = Shop::new(&sql);
        let options = FitOptions { target: target(place.path().to_str().unwrap()), ..shop.options() };
        let error = fit(&options, &mut Silent).unwrap_err().to_string();
        assert!(
            error.contains("work.sql, statement 1, line 1: ATTACH and VACUUM INTO would write outside"),
            "{sql}: {error}"
        );
        assert!(before == contents(victim.path()) && is_empty(place.path()), "{sql}");
    }
    assert_eq!(Shop::new("ATTACH ':memory:' AS m; CREATE TABLE m.t (x);").ask_saved("SELECT 'fine'"), "fine");
}

#[test]
fn a_file_without_statements_is_told_before_any_work() {
    for sql in ["", " ;; -- nothing\n/* at all */ ;\n"] {
        let shop = Shop::new(sql);
        let early = shop.workload().check().unwrap_err().to_string();
        assert!(early.ends_with("work.sql: no SQL statement in it"), "{early}");
        assert_eq!(shop.error().to_string(), early);
    }
    assert!(Shop::new("SELECT * FROM a_table_that_only_the_user_has").workload().check().is_ok());
}

#[test]
fn what_is_no_database_or_not_there_is_told_with_its_path() {
    let shop = Shop::new("SELECT 1;");
    let error_with = |workload: UserWorkload| {
        let early = workload.check().unwrap_err().to_string();
        let late = fit(&options(Workload::User(workload)), &mut Silent).unwrap_err().to_string();
        assert_eq!(early, late);
        early
    };
    let missing = error_with(shop.workload_on("no.db"));
    assert!(missing.ends_with("no.db: No such file or directory"), "{missing}");
    let text = error_with(shop.workload_on("work.sql"));
    assert!(text.ends_with("work.sql: file is not a database"), "{text}");
    let directory = error_with(shop.workload_on("."));
    assert!(directory.ends_with("it is a directory; give a regular file"), "{directory}");
    let no_sql =
        error_with(UserWorkload::new(shop.path("shop.db"), Statements::File(shop.path("no.sql")), ByteSize::kib(64)));
    assert!(no_sql.ends_with("no.sql: No such file or directory"), "{no_sql}");
    assert!(!shop.path("no.db").exists());
}

#[test]
fn a_damaged_database_is_told_as_damaged() {
    let shop = Shop::new("SELECT 1;");
    let mut bytes = std::fs::read(shop.path("shop.db")).unwrap();
    bytes[8192..8192 * 4].fill(0x5a);
    std::fs::write(shop.path("shop.db"), bytes).unwrap();
    let error = shop.error().to_string();
    assert!(error.contains("malformed") || error.contains("integrity_check"), "{error}");
}

#[test]
fn a_database_that_is_laid_out_already_is_told_with_the_way_back() {
    let shop = Shop::new("SELECT 1;");
    let layout = flashwise_sqlite::Layout::HotLocations { chunk: ByteSize::kib(8), offset: ByteSize::kib(4) };
    flashwise_sqlite::import(
        &shop.path("shop.db"),
        &shop.path("hot.db"),
        &flashwise_sqlite::VfsOptions { layout, ..flashwise_sqlite::VfsOptions::PLAIN },
    )
    .unwrap();
    let error = shop.workload_on("hot.db").check().unwrap_err().to_string();
    assert!(error.contains("flashwise sqlite export"), "{error}");
}

#[test]
fn in_a_directory_the_copy_is_there_only_while_it_is_worked_on() {
    let (shop, place) = (Shop::new(WORK), tempfile::tempdir().unwrap());
    let before = contents(shop.directory.path());
    let options = FitOptions { target: target(place.path().to_str().unwrap()), ..shop.options() };
    let c: Comparison = fit(&options, &mut Silent).unwrap();
    assert!(c.after.select_per_s > 0.0 && c.after.integrity_check == "ok");
    assert!(before == contents(shop.directory.path()) && is_empty(place.path()));
    assert!(c.profile == samsung());
}
