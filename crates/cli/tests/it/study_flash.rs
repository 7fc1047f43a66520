//! `flashwise study flash-per-transaction` as a user runs it: what it needs, how it goes on from a file of finished
//! runs, and that nothing stays behind.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::mounted::turn;
use crate::studies::{as_nobody, complaint, rows};
use crate::support::{Place, is_empty};

const STUDY: [&str; 3] = ["study", "flash-per-transaction", "--quick"];

/// Finished runs of the quick form with the default seed: all but SQLite's default.
const FINISHED: &str = "\
flashwise-study-flash-per-transaction 0.1.0, 10000 rows, 5000 transactions
PostgreSQL, default, seed 1\t15000\t11000\t0\t0\t400\t28000000\t0.58\t1.2\t0.4\t0.8\t0\t0.8\t0\t0.8\t0\t0.5\t0\t0.9\t0.2\t1\t0.2\t1.2\t0.4\t4\t1
PostgreSQL, fill factor 75, seed 1\t13000\t8000\t0\t0\t300\t30000000\tNaN\t1.2\t0.4
PostgreSQL, checkpoints 4 times as often, seed 1\t19000\t14000\t0\t0\t900\t30000000\tNaN\t1.2\t0.4
PostgreSQL, full_page_writes off, seed 1\t9000\t11000\t0\t0\t200\t26000000\tNaN\t1.2\t0.4
MariaDB, default, seed 1\t5000\t15000\t59000\t52000\t100\t25000000\t0.2\t1.6\t0.6\t1.2\t0.2\t1.1\t0.1\t1.3\t0.3\t0.2\t0\t1.3\t0.3\t1.6\t0.6\t1.6\t0.6\t2\t0.7
MariaDB, doublewrite off, seed 1\t5000\t15000\t0\t49000\t100\t23000000\tNaN\t1.6\t0.6
SQLite, rollback journal, seed 1\t0\t8192\t0\t0\t63000\t30000000\tNaN\t1.03\t0.05
";

#[test]
fn a_user_who_may_not_mount_gets_one_line() {
    let (_place, mut command) = as_nobody();
    let line = complaint(command.args(STUDY));
    assert!(line.contains("run it as root"), "{line}");
}

/// A folder for temporary files through which the server's user comes.
fn temporary(place: &Place) -> PathBuf {
    let temporary = place.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    for path in [&place.path(""), &temporary] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    temporary
}

fn study(place: &Place, resume: &Path) -> Value {
    let temporary = temporary(place);
    let mut command = place.command(&[&STUDY[..], &["-o", "json", "--resume"]].concat());
    let ended = command.arg(resume).env("TMPDIR", &temporary).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    // Another study may run on this machine.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(temporary.to_str().unwrap()), "{mounts}");
    assert!(is_empty(&temporary));
    serde_json::from_slice(&ended.stdout).unwrap()
}

/// A cell of a table as a number.
fn number(cell: &Value) -> f64 {
    cell.as_str().unwrap().parse().unwrap()
}

const COLUMNS: [&str; 8] =
    ["system", "settings", "written", "÷ user", "flash ÷ written", "flash", "÷ user", "÷ default"];

/// The cells of a system with settings.
fn row<'a>(rows: &[&'a Vec<Value>], system: &str, settings: &str) -> &'a Vec<Value> {
    rows.iter().find(|row| row[0] == system && row[1] == settings).unwrap()
}

#[test]
fn a_run_that_is_not_in_the_file_is_made_on_a_drive_of_its_own_and_the_factors_multiply() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = Place::new();
    let resume = place.path("runs");
    place.write("runs", FINISHED);
    let document = study(&place, &resume);
    let added = std::fs::read_to_string(&resume).unwrap();
    assert!(added.starts_with(FINISHED), "{added}");
    assert_eq!(added[FINISHED.len()..].matches("SQLite, default, seed 1\t").count(), 1, "{added}");
    assert_eq!(added.lines().count(), FINISHED.lines().count() + 1);
    let factors = rows(&document, &COLUMNS);
    let sqlite = row(&factors, "SQLite", "default");
    let [written, database, drive, flash] = [2, 3, 4, 5].map(|column| number(&sqlite[column]));
    // A commit writes a page and the header of its frame to the log, 4 KiB and more; each 100 bytes were changed.
    assert!((8.0..40.0).contains(&written), "{sqlite:?}");
    assert!((written * 10.24 / database - 1.0).abs() < 0.02, "{sqlite:?}");
    assert!((written * drive / flash - 1.0).abs() < 0.02 && (0.5..3.0).contains(&drive), "{sqlite:?}");
    let kinds = rows(&document, &["system", "settings", "log", "pages", "copies", "undo", "rest", "MB"]);
    let sqlite = row(&kinds, "SQLite", "default");
    assert!(number(&sqlite[2]) > 4.0 && number(&sqlite[4]) == 0.0, "{sqlite:?}");
    // A table of 10 MB and its log.
    assert!((12.0..45.0).contains(&number(&sqlite[7])), "{sqlite:?}");
}

#[test]
#[ignore = "minutes; part of make test-full"]
fn a_page_written_once_costs_less_than_one_written_twice() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = Place::new();
    let document = study(&place, &place.path("runs"));
    let factors = rows(&document, &COLUMNS);
    let kinds = rows(&document, &["system", "settings", "log", "pages", "copies", "undo", "rest", "MB"]);
    let has = |system: &str| factors.iter().any(|row| row[0] == system);
    if has("PostgreSQL") {
        assert!(number(&row(&factors, "PostgreSQL", "full_page_writes off")[7]) < 0.85, "{factors:?}");
        assert!(number(&row(&factors, "PostgreSQL", "checkpoints 4 times as often")[7]) > 1.05, "{factors:?}");
    }
    if has("MariaDB") {
        assert!(number(&row(&factors, "MariaDB", "doublewrite off")[7]) < 0.8, "{factors:?}");
        // The copies are where the study says that they are.
        assert!(number(&row(&kinds, "MariaDB", "default")[4]) > 1.0, "{kinds:?}");
        assert_eq!(number(&row(&kinds, "MariaDB", "doublewrite off")[4]), 0.0, "{kinds:?}");
    }
    assert!(number(&row(&factors, "SQLite", "rollback journal")[7]) > 1.5, "{factors:?}");
}
