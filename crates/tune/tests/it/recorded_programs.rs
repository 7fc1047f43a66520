//! Programs that are hard to record: they step on, do not close, drop their rights, or have another SQLite.

use crate::recording::{Place, has};
use crate::support::run;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use flashwise_tune::sqlite::{FitOptions, Recording};
use rusqlite::Connection;

const PYTHON: &str = "/usr/bin/python3";

/// Calls SQLite itself; the functions are found as a linked program finds them.
const SQLITE: &str = r#"
import ctypes, os, sqlite3, sys, threading, time
ctypes.CDLL("libsqlite3.so.0", ctypes.RTLD_GLOBAL)
lib = ctypes.CDLL(None)
PATH = sys.argv[1]

def opened():
    db = ctypes.c_void_p()
    assert lib.sqlite3_open(PATH.encode(), ctypes.byref(db)) == 0
    return db

def prepared(db, sql):
    statement = ctypes.c_void_p()
    assert lib.sqlite3_prepare_v2(db, sql.encode(), -1, ctypes.byref(statement), None) == 0
    return statement

def once(db, sql):
    statement = prepared(db, sql)
    assert lib.sqlite3_step(statement) in (100, 101), sql
    lib.sqlite3_finalize(statement)
"#;

impl Place {
    fn python(&self, program: &str) -> Option<Recording> {
        if !has(PYTHON, "-cimport sqlite3") {
            return None;
        }
        std::fs::write(self.path("app.py"), SQLITE.to_owned() + program).unwrap();
        let recording = self.record(&[PYTHON, self.path("app.py").to_str().unwrap(), "{db}"]).unwrap();
        assert!(recording.status.success());
        Some(recording)
    }

    /// Runs the recording again, and compares what that leaves with what the program left.
    fn is_done_again(&self, recording: &Recording) {
        const ALL: &str = "SELECT group_concat(item || note, '|') FROM (SELECT * FROM sale ORDER BY id)";
        let workload = recording.workload(&self.path("app.db"), None).unwrap();
        let saved = tempfile::tempdir().unwrap();
        let again = saved.path().join("again.db");
        run(&FitOptions { save_database: Some(again.clone()), ..self.options(workload) });
        let ask = |path: &Path| Connection::open(path).unwrap().query_row(ALL, [], |row| row.get::<_, String>(0));
        assert_eq!(ask(&again).unwrap(), ask(&self.path("app.db")).unwrap(), "{}", recording.text);
    }

    /// Builds a C file into a program or library.
    fn build(&self, name: &str, source: &str, options: &[&str]) {
        let file = self.path(&format!("{name}.c"));
        std::fs::write(&file, source).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg(&file).args(options).arg("-o").arg(self.path(name)).current_dir(self.path(""));
        assert!(compiler.status().unwrap().success());
    }
}

fn statements(recording: &Recording) -> Vec<&str> {
    recording.text.lines().filter(|line| !line.starts_with("--")).collect()
}

#[test]
fn a_busy_statement_goes_on_where_it_was() {
    let place = Place::new();
    let Some(recording) = place.python(
        r#"
other = sqlite3.connect(PATH, isolation_level=None)
db = opened()
for sql in ("BEGIN IMMEDIATE", "INSERT INTO sale (item, note) VALUES (1, 'in')", "COMMIT",
            "INSERT INTO sale (item, note) VALUES (2, 'alone')"):
    holds = sql == "BEGIN IMMEDIATE" or "alone" in sql
    statement = prepared(db, sql)
    if holds:
        other.execute("BEGIN IMMEDIATE")
        assert lib.sqlite3_step(statement) == 5
        assert lib.sqlite3_step(statement) == 5
        other.execute("COMMIT")
    assert lib.sqlite3_step(statement) == 101
    lib.sqlite3_finalize(statement)
"#,
    ) else {
        return;
    };
    assert_eq!((recording.recorded.failed, recording.recorded.statements), (0, 8), "{}", recording.text);
    place.is_done_again(&recording);
}

#[test]
fn what_a_connection_leaves_open_is_rolled_back() {
    let place = Place::new();
    // One that closes within a transaction, more processes than a script has sessions that end without closing, half of
    // them within a transaction, and one that commits.
    let Some(recording) = place.python(
        r#"
db = sqlite3.connect(PATH)
db.execute("INSERT INTO sale (item, note) VALUES (1, 'closed')")
db.close()
for n in range(80):
    child = os.fork()
    if child == 0:
        db = sqlite3.connect(PATH)
        db.execute("INSERT INTO sale (item, note) VALUES (2, ?)", ("child %d" % n,))
        if n % 2:
            db.commit()
        os._exit(0)
    os.waitpid(child, 0)
db = sqlite3.connect(PATH)
with db:
    db.execute("INSERT INTO sale (item, note) VALUES (3, 'last')")
"#,
    ) else {
        return;
    };
    let recorded = &recording.recorded;
    assert_eq!((recorded.connections, recorded.sessions, recorded.rolled_back), (82, 1, 41), "{}", recording.text);
    assert_eq!(statements(&recording).iter().filter(|text| **text == "ROLLBACK;").count(), 41);
    place.is_done_again(&recording);
}

#[test]
fn statements_of_several_connections_run_in_the_recorded_order() {
    let place = Place::new();
    let Some(recording) = place.python(
        r#"
db, other = (sqlite3.connect(PATH, isolation_level=None) for _ in "ab")
for n in range(30):
    db.execute("CREATE TABLE t%d (x)" % n)
    other.execute("INSERT INTO t%d VALUES (1)" % n)
    other.execute("INSERT INTO sale (item, note) VALUES (1, 'unique')")
    db.execute("DELETE FROM sale")
db.execute("INSERT INTO sale (item, note) VALUES (1, 'last')")
"#,
    ) else {
        return;
    };
    assert_eq!((recording.recorded.sessions, recording.recorded.statements), (2, 121));
    place.is_done_again(&recording);
}

#[test]
fn the_programs_own_settings_are_those_of_default_also_behind_a_comment() {
    let place = Place::new();
    let Some(recording) = place.python(
        r#"
db = sqlite3.connect(PATH, isolation_level=None)
db.execute("/* orm */ PRAGMA journal_mode = WAL")
db.execute("PRAGMA /* longer */ wal_autocheckpoint = 16000")
db.execute("INSERT INTO sale (item, note) VALUES (1, 'in the log')")
"#,
    ) else {
        return;
    };
    assert_eq!(statements(&recording), ["INSERT INTO sale (item, note) VALUES (1, 'in the log');"]);
    let workload = recording.workload(&place.path("app.db"), None).unwrap();
    let c = run(&place.options(workload));
    assert!(c.workload.summary.contains("write-ahead log"), "{}", c.workload.summary);
    let pages: Vec<u32> = c.candidates.iter().map(|candidate| candidate.wal_autocheckpoint).collect();
    assert!(!pages.is_empty() && pages.iter().all(|&pages| pages == 16_000), "{pages:?}");
}

#[test]
fn a_trace_callback_of_the_program_is_reported() {
    let second = "SELECT 2;";
    // SQLite keeps the callback of sqlite3_profile beside that of sqlite3_trace_v2.
    for (function, behind, lost) in [("sqlite3_trace", &[][..], 1), ("sqlite3_profile", &[second], 0)] {
        let place = Place::new();
        let program = format!(
            "db = opened()\nonce(db, 'SELECT 1')\nlib.{function}.restype = ctypes.c_void_p\n\
             assert lib.{function}(db, None, None) is None\nonce(db, 'SELECT 2')\n"
        );
        let Some(recording) = place.python(&program) else { return };
        let expected = [&["SELECT 1;"], behind].concat();
        assert_eq!((statements(&recording), recording.recorded.lost), (expected, lost), "{function}");
    }
}

#[test]
fn a_program_that_drops_its_rights_is_recorded() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can change its user");
        return;
    }
    let place = Place::new();
    for (name, mode) in [("", 0o777), ("app.db", 0o666)] {
        std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let Some(recording) = place.python(
        r#"
sqlite3.connect(PATH).execute("SELECT 1")
os.setuid(65534)
db = sqlite3.connect(PATH, isolation_level=None)
db.execute("INSERT INTO sale (item, note) VALUES (1, 'nobody')")
"#,
    ) else {
        return;
    };
    assert_eq!(statements(&recording), ["SELECT 1;", "INSERT INTO sale (item, note) VALUES (1, 'nobody');"]);
}

#[test]
fn a_statement_that_could_not_run_again_has_not_failed_before() {
    let place = Place::new();
    let Some(recording) = place.python(
        r#"
db = opened()
once(db, "CREATE TEMP TABLE s (x)")
insert = prepared(db, "INSERT INTO s VALUES (1)")
assert lib.sqlite3_step(insert) == 101
lib.sqlite3_reset(insert)
once(db, "DROP TABLE s")
assert lib.sqlite3_step(insert) == 1
"#,
    ) else {
        return;
    };
    assert_eq!(statements(&recording), ["CREATE TEMP TABLE s (x);", "INSERT INTO s VALUES (1);", "DROP TABLE s;"]);
    assert_eq!(recording.recorded.failed, 0, "{}", recording.text);
}

#[test]
fn a_program_that_may_write_no_longer_files_goes_on_and_its_recording_ends_early() {
    if !has("sqlite3", "-version") {
        return;
    }
    let place = Place::new();
    let statements: String = (0..2000).map(|n| format!("SELECT {n};\n")).collect();
    std::fs::write(place.path("many.sql"), statements).unwrap();
    // Writing beyond the limit would end the shell by a signal.
    let command = format!("ulimit -f 64; exec sqlite3 {{db}} '.read {}'", place.path("many.sql").display());
    let recording = place.record(&["sh", "-c", &command]).unwrap();
    assert!(recording.status.success(), "{}", recording.status);
    let recorded = &recording.recorded;
    assert!(recorded.is_full && (100..2000).contains(&recorded.statements), "{recorded:?}");
    assert!(recording.text.contains("-- the recording ends early: "), "the saved one has it, too");
}

#[test]
fn an_event_that_finds_no_space_at_all_ends_the_recording_too() {
    let place = Place::new();
    // The events are as long as the program's limit for files, to the byte, when the last statement comes: the kernel
    // takes nothing of it, and sends SIGXFSZ, which ends a program that does not expect it; Python ignores it.
    let Some(recording) = place.python(
        r#"
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
db = opened()
once(db, "SELECT 'recorded'")
size = os.stat(os.environ["FLASHWISE_RECORD_EVENTS"]).st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
once(db, "SELECT 'lost'")
"#,
    ) else {
        return;
    };
    assert_eq!(statements(&recording), ["SELECT 'recorded';"]);
    assert!(recording.recorded.is_full, "{}", recording.text);
}

#[test]
fn a_statement_with_a_nul_in_a_value_is_left_out_and_counted() {
    let place = Place::new();
    let Some(recording) = place.python(
        r#"
db = sqlite3.connect(PATH, isolation_level=None)
for note in ("whole", "cut\0off", "whole again"):
    db.execute("INSERT INTO sale (item, note) VALUES (1, ?)", (note,))
"#,
    ) else {
        return;
    };
    let inserted = |note: &str| format!("INSERT INTO sale (item, note) VALUES (1, '{note}');");
    assert_eq!(statements(&recording), [inserted("whole"), inserted("whole again")]);
    assert_eq!(recording.recorded.incomplete, 1);
}

#[test]
fn what_sqlite_refuses_within_a_text_is_no_failure_of_an_equal_statement_before_it() {
    let place = Place::new();
    let Some(recording) = place.python(
        r#"
db = opened()
sql = b"INSERT INTO sale (item, note) VALUES (1, 'twice'); SELEC; INSERT INTO sale (item, note) VALUES (1, 'twice');"
assert lib.sqlite3_exec(db, sql, None, None, None) == 1
"#,
    ) else {
        return;
    };
    assert_eq!(statements(&recording), ["INSERT INTO sale (item, note) VALUES (1, 'twice');"]);
    assert_eq!(recording.recorded.failed, 0, "{}", recording.text);
}

#[test]
fn a_program_that_works_in_memory_is_reported_as_such() {
    if !has(PYTHON, "-cimport sqlite3") {
        return;
    }
    let program = "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')";
    let error = Place::new().record(&[PYTHON, "-c", program]).unwrap_err().to_string();
    assert!(error.ends_with(", but a temporary database") && error.contains("it did not open "), "{error}");
}

/// A SQLite that can open and step; with TRACE, what recording needs, too.
const OTHER_SQLITE: &str = r#"
#include <stdlib.h>
static char name[4096], *sql = "INSERT";
int sqlite3_open(const char *path, void **db) { *db = name; __builtin_strcpy(name, path); return 0; }
#ifdef TRACE
static int (*callback)(unsigned, void *, void *, void *);
static void *context;
int sqlite3_trace_v2(void *db, unsigned mask, int (*c)(unsigned, void *, void *, void *), void *x) {
    callback = c, context = x;
    return 0;
}
char *sqlite3_expanded_sql(void *s) { return __builtin_strdup(sql); }
const char *sqlite3_sql(void *s) { return sql; }
void *sqlite3_db_handle(void *s) { return name; }
const char *sqlite3_db_filename(void *db, const char *schema) { return name; }
void sqlite3_free(void *p) { free(p); }
int sqlite3_get_autocommit(void *db) { return 1; }
int sqlite3_step(void *s) {
    if (callback) callback(1, context, s, sql), callback(2, context, s, 0);
    return 101;
}
/* Runs the first statement of a text by itself, as a library does that is linked with -Bsymbolic-functions. */
int sqlite3_exec(void *db, const char *text, void *rows, void *more, char **message) {
    static char first[64];
    __builtin_memset(first, 0, sizeof first);
    __builtin_memcpy(first, text, __builtin_strcspn(text, ";") + 1);
    sql = first;
    callback(1, context, first, sql), callback(2, context, first, 0);
    return __builtin_strchr(text, '!') ? 19 : 0;
}
#else
int sqlite3_step(void *s) { return 101; }
#endif
"#;

#[test]
fn a_program_with_another_sqlite_works_as_without_the_recorder() {
    let place = Place::new();
    let program = r#"
#include <stdio.h>
int sqlite3_open(const char *, void **), sqlite3_step(void *);
int main(int count, char **words) {
    void *db = 0;
    if (sqlite3_open(words[1], &db) || !db || sqlite3_step(words) != 101 || sqlite3_step(words) != 101) return 1;
    return fclose(fopen(words[2], "w"));
}
"#;
    let run_with = |options: &[&str]| {
        place.build("libsqlite3.so.0", OTHER_SQLITE, &[&["-shared", "-fPIC"], options].concat());
        place.build("app", program, &["-L.", "-l:libsqlite3.so.0", "-Wl,-rpath,$ORIGIN"]);
        let done = place.path("done");
        let recording = place.record(&[place.path("app").to_str().unwrap(), "{db}", done.to_str().unwrap()]);
        std::fs::remove_file(done).unwrap();
        recording
    };
    let error = run_with(&[]).unwrap_err().to_string();
    assert!(error.contains("not recorded: its libsqlite3.so has no sqlite3_trace_v2"), "{error}");
    assert_eq!(statements(&run_with(&["-DTRACE"]).unwrap()), ["INSERT;", "INSERT;"]);
}

#[test]
fn a_saved_recording_has_the_access_rights_of_the_database() {
    if !has("sqlite3", "-version") {
        return;
    }
    let place = Place::new();
    std::fs::set_permissions(place.path("app.db"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let recording = place.record(&["sqlite3", "{db}", "SELECT 1"]).unwrap();
    recording.save(&place.path("kept")).unwrap();
    for name in ["kept.db", "kept.sql"] {
        let mode = std::fs::metadata(place.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    std::fs::write(place.path("stale.db-wal"), "of an earlier database").unwrap();
    let error = recording.save(&place.path("stale")).unwrap_err().to_string();
    assert!(error.contains("stale.db-wal' exists and would be read as part of the new database"), "{error}");
    assert!(!place.path("stale.db").exists() && !place.path("stale.sql").exists());
}

#[test]
fn a_statement_that_sqlite_steps_by_itself_and_that_fails_is_left_out() {
    let place = Place::new();
    let program = r#"
int sqlite3_open(const char *, void **), sqlite3_exec(void *, const char *, void *, void *, char **);
int main(int count, char **words) {
    void *db = 0;
    if (sqlite3_open(words[1], &db) || sqlite3_exec(db, "SELECT 1 ;\n", 0, 0, 0)) return 1;
    /* Of the second one, SQLite may have refused what follows. */
    return sqlite3_exec(db, "SELECT 2 /*!*/;", 0, 0, 0) != 19 || sqlite3_exec(db, "SELECT 3; !", 0, 0, 0) != 19;
}
"#;
    place.build("libsqlite3.so.0", OTHER_SQLITE, &["-shared", "-fPIC", "-DTRACE"]);
    place.build("app", program, &["-L.", "-l:libsqlite3.so.0", "-Wl,-rpath,$ORIGIN"]);
    let recording = place.record(&[place.path("app").to_str().unwrap(), "{db}"]).unwrap();
    assert!(recording.status.success());
    assert_eq!(statements(&recording), ["SELECT 1;", "SELECT 3;"]);
    assert_eq!(recording.recorded.failed, 1);
}

/// Loads the recorder into two SQLites, both as an extension, and opens a connection of the first.
const TWO_SQLITES: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
typedef int hook(void *, char **, void **);
static hook *hooks[2];
static int loaded, traced[2];
static char *path;
static int version(void) { return 3040001; }
static int auto_extension(hook *h) { hooks[loaded++] = h; return 0; }
static const char *filename(void *db, const char *schema) { return path; }
static int trace_first(void *db) { traced[0]++; return 0; }
static int trace_second(void *db) { traced[1]++; return 0; }
static void nothing(void) {}
int main(int count, char **words) {
    path = words[1];
    void *routines[2][256];
    for (int n = 0; n < 512; n++) routines[n / 256][n % 256] = nothing;
    for (int n = 0; n < 2; n++) {
        routines[n][67] = version, routines[n][180] = filename, routines[n][192] = auto_extension;
        routines[n][214] = n ? trace_second : trace_first;
    }
    void *recorder = dlopen(getenv("FLASHWISE_RECORDER"), RTLD_NOW);
    hook *load = (hook *)dlsym(recorder, "sqlite3_flashwiserecorder_init");
    if (load(path, 0, routines[0]) != 256 || load(path, 0, routines[1]) != 256) return 1;
    hooks[0](path, 0, routines[0]);
    return traced[0] == 2 && traced[1] == 1 ? fclose(fopen(words[2], "w")) : 1;
}
"#;

#[test]
fn each_of_two_sqlites_that_load_the_recorder_is_traced_by_its_own_functions() {
    let place = Place::new();
    place.build("app", TWO_SQLITES, &["-ldl"]);
    let done = place.path("done");
    let error = place.record(&[place.path("app").to_str().unwrap(), "{db}", done.to_str().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("and ran no statement"), "{error}");
    assert!(done.exists(), "a connection is traced by another SQLite's function");
}
