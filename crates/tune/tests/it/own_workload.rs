//! Statements with parameters, several sessions and think times: what is run is what the user wrote.

use crate::support;
use std::path::PathBuf;

use flashwise_block::{ByteSize, Nanos, Silent};
use flashwise_tune::TuneError;
use flashwise_tune::sqlite::{FitOptions, Statements, UserWorkload, Workload, capture, fit};
use rusqlite::Connection;
use support::{options, run, target};
use tempfile::TempDir;

const SCHEMA: &str = "CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, balance, photo BLOB);
    CREATE TABLE log (session TEXT, n INTEGER);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
    INSERT INTO account SELECT i, 'owner ' || i, 100, zeroblob(300) FROM n;";

struct Place {
    directory: TempDir,
    journal: &'static str,
}

impl Place {
    fn new(sql: &str) -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap(), journal: "delete" };
        Connection::open(place.path("app.db")).unwrap().execute_batch(SCHEMA).unwrap();
        std::fs::write(place.path("work.sql"), sql).unwrap();
        place
    }

    fn with(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    fn in_wal_mode(self) -> Self {
        let db = Connection::open(self.path("app.db")).unwrap();
        db.query_row("PRAGMA journal_mode = wal", [], |_| Ok(())).unwrap();
        Self { journal: "wal", ..self }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn workload(&self) -> UserWorkload {
        let mut workload =
            UserWorkload::new(self.path("app.db"), Statements::File(self.path("work.sql")), ByteSize::kib(64));
        workload.parameters = Some(self.path("values.csv")).filter(|path| path.exists());
        workload
    }

    fn options(&self) -> FitOptions {
        // One configuration is enough to see what was run.
        let skip = ["page_size", "cache_size", "journal_mode", "wal_autocheckpoint"];
        let techniques = flashwise_sqlite::TECHNIQUES.iter().map(|technique| technique.name);
        let skip = skip.into_iter().chain(techniques).map(str::to_owned).collect();
        FitOptions { skip, ..options(Workload::User(self.workload())) }
    }

    fn error(&self) -> TuneError {
        fit(&self.options(), &mut Silent).unwrap_err()
    }

    /// Fits, and asks the database that is left.
    fn ask(&self, question: &str) -> String {
        let saved = self.directory.path().join("saved.db");
        run(&FitOptions { save_database: Some(saved.clone()), ..self.options() });
        Connection::open(saved).unwrap().query_row(question, [], |row| row.get(0)).unwrap()
    }
}

#[test]
fn values_are_bound_with_their_types_once_for_each_row() {
    let place = Place::new(
        "BEGIN; UPDATE account SET owner = :owner, balance = :balance, photo = :photo WHERE id = :id;
         INSERT INTO log SELECT typeof(balance) || ' ' || typeof(photo), ? FROM account WHERE id = @id;
         SELECT * FROM account WHERE id = $id; COMMIT;",
    )
    .with("values.csv", "id,owner:text,balance,photo,1\n7,007,1.5,x'00ff',1\n8,\"a, \"\"b\"\"\",3,,2\n9,,x,x'01',3\n");
    let answer = place.ask(
        "SELECT (SELECT group_concat(session || ' ' || n, '; ') FROM log) || '. ' ||
        (SELECT group_concat(owner || ' ' || hex(photo) || ' ' || balance, '; ') FROM account WHERE id IN (7, 8, 9))",
    );
    assert_eq!(answer, "real blob 1; integer null 2; text blob 3. 007 00FF 1.5; a, \"b\"  3;  01 x");
    let c = run(&place.options());
    assert!(c.workload.summary.ends_with(", once for each of 3 rows of values"), "{}", c.workload.summary);
    assert_eq!((c.search.statements, c.default.select_latency.count, c.default.transaction_latency.count), (15, 3, 3));
}

#[test]
fn a_wrong_value_is_an_error_before_anything_is_run() {
    let place = Place::new("SELECT :id").with("values.csv", "id,extra\n1,2\n");
    let error = place.workload().check().unwrap_err().to_string();
    assert!(error.contains("values.csv, line 1, column 2 (extra): no statement of "), "{error}");
    assert_eq!(error, place.error().to_string());
}

/// Transfers of two sessions and a reader, all of them within transactions.
const SESSIONS: &str = "
    -- flashwise: session first
    BEGIN IMMEDIATE;
    UPDATE account SET balance = balance - 1 WHERE id = 1;
    -- flashwise: think 3ms
    INSERT INTO log VALUES ('first', 1);
    COMMIT;
    -- flashwise: session second
    -- flashwise: think 1ms
    BEGIN;
    UPDATE account SET balance = balance + 1 WHERE id = 2;
    INSERT INTO log VALUES ('second', 2);
    COMMIT;
    -- flashwise: session reader
    -- flashwise: think 2ms
    SELECT count(*) FROM log;
";

#[test]
fn sessions_wait_for_one_another_and_all_of_their_work_is_done() {
    for place in [Place::new(SESSIONS), Place::new(SESSIONS).in_wal_mode()] {
        let answer = place.ask(
            "SELECT group_concat(session, ' ') || ' ' || (SELECT sum(balance) FROM account WHERE id < 3) FROM log",
        );
        assert_eq!(answer, "first second 200", "in the order of their think times");
        let c = run(&place.options());
        assert_eq!((c.search.statements, c.default.transaction_latency.count), (9, 2), "{}", place.journal);
        // The second one waits for all of the first one's thinking.
        assert!(c.default.transaction_latency.max_ns > 2_000_000, "{:?}", c.default.transaction_latency);
        assert!(c.notes.iter().any(|note| note.starts_with("3 sessions are interleaved")), "{:?}", c.notes);
        assert!(c == run(&place.options()), "the same sessions are the same work");
    }
}

#[test]
fn transactions_that_sqlite_can_only_refuse_start_again() {
    // Both read before they write: a deadlock with a rollback journal, an old snapshot with a log.
    let session = |name: &str, think: &str| {
        format!(
            "-- flashwise: session {name}\nBEGIN; SELECT count(*) FROM log;\n-- flashwise: think {think}\n\
             INSERT INTO log SELECT '{name}', count(*) FROM log;\n-- flashwise: think {think}\nCOMMIT;\n"
        )
    };
    let sql = session("a", "1ms") + &session("b", "1500us");
    let interleaved = "-- flashwise: order file\n-- flashwise: session a\nBEGIN; SELECT count(*) FROM log;\n\
        -- flashwise: session b\nBEGIN; SELECT count(*) FROM log;\n\
        -- flashwise: session a\nINSERT INTO log SELECT 'a', count(*) FROM log;\n\
        -- flashwise: session b\nINSERT INTO log SELECT 'b', count(*) FROM log; COMMIT;\n\
        -- flashwise: session a\nCOMMIT;";
    for place in [&sql, interleaved].into_iter().flat_map(|sql| [Place::new(sql), Place::new(sql).in_wal_mode()]) {
        assert_eq!(place.ask("SELECT group_concat(n, ' ') FROM (SELECT n FROM log ORDER BY n)"), "0 1");
        let c = run(&place.options());
        assert_eq!(c.search.statements, 8, "{}", place.journal);
        assert!(c.notes.iter().any(|note| note.contains("rolled back and started again")), "{:?}", c.notes);
    }
}

#[test]
fn in_the_order_of_the_file_a_session_has_what_another_one_made_before_it() {
    // The tables take the drive longer than the worker thinks.
    let sql = "CREATE TABLE a (x); CREATE TABLE b (x);\n-- flashwise: session worker\n-- flashwise: think 10us\n\
               INSERT INTO b VALUES (1);\n-- flashwise: session main\nBEGIN; INSERT INTO b VALUES (2);\n\
               -- flashwise: session worker\nINSERT INTO b VALUES (3);\n-- flashwise: session main\nCOMMIT;";
    let error = Place::new(sql).error().to_string();
    assert!(error.contains("no such table: b"), "{error}");
    let ordered = format!("-- flashwise: order file\n{sql}");
    let answer = Place::new(&ordered).ask("SELECT group_concat(x, ' ') FROM b");
    assert_eq!(answer, "1 2 3", "a session that is blocked is passed over");
}

#[test]
fn think_times_pass_on_the_clock_and_are_not_counted() {
    let thinking = |think: &str| {
        let place = Place::new(&format!(
            "UPDATE account SET balance = 0 WHERE id = 1;\n-- flashwise: think {think}\nSELECT owner FROM account;"
        ));
        let trace = capture(&target("sim:samsung-960-evo"), &Workload::User(place.workload()), 1, &mut Silent).unwrap();
        let c = run(&place.options());
        (trace.records.iter().map(|record| record.at).max().unwrap(), c.default)
    };
    let ((_, without), (last, with)) = (thinking("0s"), thinking("2s"));
    assert!(last > Nanos(2_000_000_000), "{last}");
    assert!(with.select_per_s > 0.5 * without.select_per_s, "{} {}", with.select_per_s, without.select_per_s);
    assert!(with.drive_time_ns > 2_000_000_000 && without.drive_time_ns < 1_000_000_000);
}

#[test]
fn think_times_pass_in_a_directory_too_as_long_as_they_may() {
    let place = Place::new("SELECT 1;\n-- flashwise: think 1h\nSELECT 2;");
    let mut workload = place.workload();
    workload.think_limit = Some(Nanos(30_000_000));
    let began = std::time::Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let trace = capture(&target(folder.path().to_str().unwrap()), &Workload::User(workload), 1, &mut Silent);
    assert!(trace.is_ok() && began.elapsed() >= std::time::Duration::from_millis(30));
}
