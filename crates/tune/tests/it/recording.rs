//! `fit` with the statements of a program that was recorded: the shell, Python, and programs that cannot be recorded.

use crate::support;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use flashwise_block::ByteSize;
use flashwise_trace::capture::TracedCommand;
use flashwise_tune::TuneError;
use flashwise_tune::sqlite::{DatabaseBefore, FitOptions, Recording, Statements, UserWorkload, Workload, record};
use rusqlite::Connection;
use support::{contents, options, run};
use tempfile::TempDir;

const SCHEMA: &str = "CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER, photo BLOB);
    CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, note TEXT UNIQUE);
    CREATE TRIGGER sold AFTER INSERT ON sale BEGIN UPDATE item SET stock = stock - 1 WHERE id = NEW.item; END;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
    INSERT INTO item SELECT i, 100, zeroblob(300) FROM n;";

pub struct Place {
    directory: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        Connection::open(place.path("app.db")).unwrap().execute_batch(SCHEMA).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Records a command, in which `{db}` stands for the database: no random name of a directory has braces.
    pub fn record(&self, command: &[&str]) -> Result<Recording, TuneError> {
        let database = self.path("app.db");
        let command = command.iter().map(|word| word.replace("{db}", database.to_str().unwrap()).into());
        let command = TracedCommand { command: command.collect(), output_to_stderr: true, interrupted: Arc::default() };
        record(&self.path("app.db"), DatabaseBefore::copy(&self.path("app.db")).unwrap(), &command)
    }

    fn ask(&self, name: &str, question: &str) -> String {
        Connection::open(self.path(name)).unwrap().query_row(question, [], |row| row.get(0)).unwrap()
    }

    pub fn options(&self, workload: UserWorkload) -> FitOptions {
        let skip = ["page_size", "cache_size", "journal_mode", "wal_autocheckpoint"];
        let techniques = flashwise_sqlite::TECHNIQUES.iter().map(|technique| technique.name);
        let skip = skip.into_iter().chain(techniques).map(str::to_owned).collect();
        FitOptions { skip, ..options(Workload::User(workload)) }
    }
}

pub fn has(program: &str, argument: &str) -> bool {
    let is_there = Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: this machine has no {program}");
    }
    is_there
}

/// What the two databases have in common at the end.
const ALL: &str = "SELECT (SELECT group_concat(item || note, '|') FROM sale) || ' ' || sum(stock * id) || ' ' ||
    group_concat(hex(photo)) FROM item";

const PROGRAM: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA journal_mode = wal")
db.execute("PRAGMA cache_size = -1000")
for i in range(50):
    with db:
        db.execute("UPDATE item SET photo = ? WHERE id = ?", (b"\x00\xff" + bytes([i]), i + 1))
        db.execute("INSERT INTO sale (item, note) VALUES (:item, :note)", {"item": i + 1, "note": "it's ;\n-- %d" % i})
    try:
        db.execute("INSERT OR ROLLBACK INTO sale (item, note) VALUES (?, ?)", (1, "it's ;\n-- 0"))
        raise SystemExit("not unique")
    except sqlite3.IntegrityError:
        pass
    list(db.execute("SELECT * FROM item WHERE id = ?", (i * 7,)))
other = sqlite3.connect(sys.argv[1])
for row in other.execute("SELECT id FROM sale"):
    db.execute("UPDATE sale SET item = item WHERE id = ?", row)
db.commit()
"#;

#[test]
fn a_python_program_is_recorded_and_its_work_is_done_again() {
    let place = Place::new();
    std::fs::write(place.path("app.py"), PROGRAM).unwrap();
    let program = place.path("app.py");
    if !has("/usr/bin/python3", "-cimport sqlite3") {
        return;
    }
    let recording = place.record(&["/usr/bin/python3", program.to_str().unwrap(), "{db}"]).unwrap();
    assert!(recording.status.success());
    let recorded = &recording.recorded;
    // BEGIN, UPDATE, INSERT, COMMIT, and what is rolled back: BEGIN, ROLLBACK; a SELECT. Then one SELECT, BEGIN, 50
    // UPDATEs, COMMIT.
    assert_eq!((recorded.statements, recorded.failed, recorded.incomplete), (50 * 7 + 53, 50, 0), "{}", recording.text);
    assert_eq!((recorded.sessions, recorded.connections), (2, 2));
    let remarks = recorded.remarks();
    assert!(remarks.iter().any(|remark| remark.ends_with("journal_mode = wal, cache_size = -1000")), "{remarks:?}");

    let workload = recording.workload(&place.path("app.db"), None).unwrap();
    assert_eq!(workload.page_cache, ByteSize::kib(1000), "as the program has it");
    let before = contents(place.directory.path());
    let saved = tempfile::tempdir().unwrap();
    let again = saved.path().join("again.db");
    let c = run(&FitOptions { save_database: Some(again.clone()), ..place.options(workload) });
    assert!(before == contents(place.directory.path()), "the user's directory has changed");
    assert_eq!(c.search.statements, recorded.statements, "every statement runs once");
    assert_eq!((c.default.select_latency.count, c.default.transaction_latency.count), (51, 51));
    assert!(c.workload.summary.starts_with("the recorded statements of `/usr/bin/python3 "), "{}", c.workload.summary);
    assert!(c.workload.summary.contains("write-ahead log"), "the program has set it: {}", c.workload.summary);
    let ask = |path: &PathBuf| Connection::open(path).unwrap().query_row(ALL, [], |row| row.get::<_, String>(0));
    assert_eq!(ask(&again).unwrap(), ask(&place.path("app.db")).unwrap());
}

#[test]
fn the_shell_is_recorded_and_the_recording_can_be_kept() {
    if !has("sqlite3", "-version") {
        return;
    }
    let place = Place::new();
    let sql = "BEGIN; INSERT INTO sale (item, note) VALUES (1, 'a'), (2, NULL); COMMIT; SELECT sum(stock) FROM item;";
    let recording = place.record(&["sqlite3", "{db}", sql]).unwrap();
    assert_eq!(recording.recorded.statements, 4, "{}", recording.text);
    recording.save(&place.path("kept")).unwrap();
    let kept = std::fs::read_to_string(place.path("kept.sql")).unwrap();
    let statements: Vec<&str> = kept.lines().filter(|line| !line.starts_with("--")).collect();
    let expected = [
        "BEGIN;",
        "INSERT INTO sale (item, note) VALUES (1, 'a'), (2, NULL);",
        "COMMIT;",
        "SELECT sum(stock) FROM item;",
    ];
    assert_eq!(statements, expected);
    assert_eq!(kept.lines().filter(|line| line.starts_with("-- at ")).count(), 4);
    assert_eq!(place.ask("kept.db", "SELECT count(*) || '' FROM sale"), "0", "as it was before");
    assert!(recording.save(&place.path("kept")).unwrap_err().to_string().contains("kept.sql"), "nothing is replaced");

    let files = (place.path("kept.db"), Statements::File(place.path("kept.sql")));
    let c = run(&place.options(UserWorkload::new(files.0, files.1, ByteSize::kib(64))));
    assert_eq!(c.search.statements, 4);
}

#[test]
fn the_database_from_before_has_what_was_only_in_its_log() {
    if !has("sqlite3", "-version") {
        return;
    }
    let place = Place::new();
    let db = Connection::open(place.path("app.db")).unwrap();
    db.execute_batch("PRAGMA journal_mode = WAL; INSERT INTO sale (item, note) VALUES (9, 'in the log')").unwrap();
    let recording = place.record(&["sqlite3", "{db}", "DELETE FROM sale"]).unwrap();
    recording.save(&place.path("kept")).unwrap();
    assert_eq!(place.ask("kept.db", "SELECT note FROM sale"), "in the log");
    assert_eq!(place.ask("kept.db", "PRAGMA journal_mode"), "wal");
}

#[test]
fn a_program_with_a_sqlite_of_its_own_can_load_the_recorder() {
    if !has("sqlite3", "-version") {
        return;
    }
    let place = Place::new();
    // Without the preloaded library nothing of its SQLite is interposed.
    let script = "LD_PRELOAD= sqlite3 -cmd \".load $FLASHWISE_RECORDER\" {db} 'INSERT INTO sale (item) VALUES (1)' \
                  '.open {db}' 'SELECT count(*) FROM sale'";
    let recording = place.record(&["sh", "-c", script]).unwrap();
    assert_eq!(recording.recorded.statements, 2, "{}", recording.text);
    assert_eq!(recording.recorded.connections, 2);
}

#[test]
fn what_cannot_be_recorded_is_an_error_with_the_way_out() {
    let place = Place::new();
    let error = |command: &[&str]| place.record(command).map(|_| ()).unwrap_err().to_string();
    let none = error(&["sh", "-c", "true"]);
    assert!(none.starts_with("sh -c true: not recorded: it called no libsqlite3.so. If it has"), "{none}");
    assert!(none.contains("FLASHWISE_RECORDER") && none.ends_with("give that with --sql"), "{none}");
    let missing = error(&["/nowhere/program"]);
    assert!(missing.starts_with("/nowhere/program: cannot be started"), "{missing}");
    if has("sqlite3", "-version") {
        let other = error(&["sqlite3", "{db}2", "CREATE TABLE t (x)"]);
        assert!(other.contains("it did not open") && other.ends_with("app.db2"), "{other}");
        let nothing = error(&["sqlite3", "{db}", "SELECT * FROM nosuch"]);
        assert!(nothing.ends_with("app.db and ran no statement"), "{nothing}");
    }
    let source = place.path("static.c");
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let program = place.path("static");
    let built = Command::new("cc").arg("-static").arg(&source).arg("-o").arg(&program).output();
    if built.is_ok_and(|output| output.status.success()) {
        let linked = error(&[program.to_str().unwrap()]);
        assert!(linked.contains("the program is linked statically"), "{linked}");
    }
}
