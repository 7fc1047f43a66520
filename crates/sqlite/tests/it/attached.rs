//! A transaction over two attached databases, one of them or both laid out, is cut off by `SIGKILL` at each system call
//! that changes a file, and by a power cut at each request. Whoever opens first afterwards, SQLite with this VFS or
//! without, and whichever database: both databases are as before the transaction, or both as after it, and sound.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use flashwise_sqlite::{Vfs, VfsOptions};
use rusqlite::{Connection, OpenFlags};

use crate::cut_fs::{self, CutFs, Image};
use crate::kills::{self, CALLS, End};
use crate::support::{Random, integrity, unique};

const TEST: &str = "attached::a_transaction_over_two_databases_is_there_in_both_or_in_neither_whoever_opens_first";
/// Tells the process that is killed which pair it is to write.
const PAIR: &str = "FLASHWISE_TEST_PAIR";
const STRIPES: &str = "write-aligned-stripes=64k";

/// How the two databases are stored and written. `None`: by SQLite without this VFS.
struct Pair {
    main: Option<&'static str>,
    other: Option<&'static str>,
    setup: &'static str,
}

const PAIRS: [Pair; 9] = [
    Pair { main: Some(""), other: Some("use-hot-locations=4k+2k"), setup: "" },
    Pair { main: None, other: Some(STRIPES), setup: "" },
    Pair { main: Some(STRIPES), other: Some(""), setup: "" },
    Pair { main: Some(STRIPES), other: None, setup: "" },
    Pair { main: Some(STRIPES), other: Some("use-hot-locations=4k+2k"), setup: "" },
    Pair { main: Some(""), other: Some("atomic-batch=on"), setup: "" },
    // Pages are in the databases before the commit begins.
    Pair { main: Some(""), other: Some(STRIPES), setup: "PRAGMA main.cache_size = 1; PRAGMA x.cache_size = 1" },
    Pair {
        main: None,
        other: Some(STRIPES),
        setup: "PRAGMA main.journal_mode = persist; PRAGMA x.journal_mode = persist",
    },
    Pair {
        main: Some(""),
        other: Some(STRIPES),
        setup: "PRAGMA main.journal_mode = truncate; PRAGMA x.journal_mode = truncate",
    },
];

fn uri(name: &str, vfs: &Vfs, techniques: Option<&str>) -> String {
    match techniques {
        None => format!("file:{name}?vfs=unix"),
        Some(techniques) => format!("file:{name}?vfs={}&{techniques}", vfs.name()),
    }
}

fn plain_vfs() -> Vfs {
    Vfs::install(&unique("attached"), VfsOptions::PLAIN, false).unwrap()
}

fn open(uri: &str) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(uri, OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI)
}

fn connect(pair: &Pair, directory: &Path, vfs: &Vfs) -> Connection {
    let [main, other] = [("main.db", pair.main), ("other.db", pair.other)]
        .map(|(name, techniques)| uri(directory.join(name).to_str().unwrap(), vfs, techniques));
    let db = open(&main).unwrap();
    db.execute("ATTACH ?1 AS x", [other]).unwrap();
    db.execute_batch(pair.setup).unwrap();
    db
}

fn create(pair: &Pair, directory: &Path) {
    let vfs = plain_vfs();
    let db = connect(pair, directory, &vfs);
    for schema in ["main", "x"] {
        db.execute_batch(&format!(
            "CREATE TABLE {schema}.t (a INTEGER PRIMARY KEY, b); CREATE INDEX {schema}.i ON t (b);
             WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
             INSERT INTO {schema}.t SELECT i, 'old' || i || hex(zeroblob(300)) FROM n"
        ))
        .unwrap();
    }
}

fn write(pair: &Pair, directory: &Path) {
    let vfs = plain_vfs();
    let db = connect(pair, directory, &vfs);
    let update = "SET b = 'new' || a || hex(zeroblob(320))";
    db.execute_batch(&format!("BEGIN; UPDATE main.t {update}; UPDATE x.t {update}; COMMIT")).unwrap();
}

type Files = BTreeMap<OsString, Vec<u8>>;

fn files(directory: &Path) -> Files {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
}

/// In the same directory: a super-journal has full names.
fn restore(directory: &Path, files: &Files) {
    for entry in fs::read_dir(directory).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for (name, content) in files {
        fs::write(directory.join(name), content).unwrap();
    }
}

/// What a database holds, `old` or `new`, by SQLite with this VFS.
fn state(path: &Path, vfs: &Vfs) -> String {
    let db = open(&uri(path.to_str().unwrap(), vfs, Some(""))).unwrap();
    let rows = "SELECT group_concat(DISTINCT substr(b, 1, 3)) || ' ' || count(*) FROM t";
    let rows = db.query_row(rows, [], |row| row.get::<_, String>(0)).unwrap_or_else(|error| error.to_string());
    format!("{rows} {}", integrity(&db))
}

/// Looks at a database, and writes to it, as far as that can be.
fn visit(path: &Path, vfs: &Vfs, techniques: Option<&str>) {
    let Ok(db) = open(&uri(path.to_str().unwrap(), vfs, techniques)) else { return };
    let _ = db.query_row("SELECT count(*) FROM t", [], |_| Ok(()));
    let _ = db.execute_batch("PRAGMA user_version = 7");
}

/// Who opens which database in which order.
const ORDERS: [&[(&str, Option<&str>)]; 6] = [
    &[("main.db", None), ("other.db", None)],
    &[("other.db", None), ("main.db", None)],
    &[("main.db", None), ("other.db", Some(""))],
    &[("other.db", None), ("main.db", Some(""))],
    &[("main.db", Some("")), ("other.db", None)],
    &[("other.db", Some("")), ("main.db", None)],
];

/// Checks what a crash left in a directory, for each order of opening; tells how often it was as before, and as after.
fn check(directory: &Path, left: &Files, vfs: &Vfs, told: &str) -> [u64; 2] {
    let mut ends = [0, 0];
    for order in ORDERS {
        restore(directory, left);
        for &(name, techniques) in order {
            visit(&directory.join(name), vfs, techniques);
        }
        let states = ["main.db", "other.db"].map(|name| state(&directory.join(name), vfs));
        let told = format!("{told}, {order:?}, left {:?}", left.keys());
        assert!(["old 12 ok", "new 12 ok"].contains(&&*states[0]), "{told}: {states:?}");
        assert_eq!(states[0], states[1], "{told}");
        ends[usize::from(states[0].starts_with("new"))] += 1;
    }
    ends
}

/// Kills at every call for the first pair, and at one of so many for the others.
fn kill_all(one_of: usize) {
    let vfs = plain_vfs();
    for (number, pair) in PAIRS.iter().enumerate() {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (mut kills, mut all) = (0, [0, 0]);
        create(pair, dir.path());
        let before = files(dir.path());
        for call in CALLS {
            let (first, step) = if number == 0 { (1, 1) } else { (1 + number % one_of, one_of) };
            for at in (first as u64..).step_by(step) {
                restore(dir.path(), &before);
                let end = kills::run(TEST, PAIR, &number.to_string(), dir.path(), call, at);
                let told = format!("pair {number}, {call} {at}, {end:?}");
                let ends = check(dir.path(), &files(dir.path()), &vfs, &told);
                if end == End::Completed {
                    assert_eq!(ends[0], 0, "{told}");
                    break;
                }
                (kills, all) = (kills + 1, [all[0] + ends[0], all[1] + ends[1]]);
            }
        }
        println!("pair {number}: {kills} kills, {} times before and {} times after", all[0], all[1]);
        assert!(all[0] > 50, "pair {number}: {all:?}");
    }
}

#[test]
fn a_transaction_over_two_databases_is_there_in_both_or_in_neither_whoever_opens_first() {
    if let Ok(pair) = env::var(PAIR) {
        return write(&PAIRS[pair.parse::<usize>().unwrap()], &env::current_dir().unwrap());
    }
    if kills::is_possible() {
        kill_all(4);
    }
}

#[test]
#[ignore = "a minute: make test-full runs it"]
fn so_it_is_wherever_a_process_is_killed() {
    if kills::is_possible() {
        kill_all(1);
    }
}

/// Cuts the power at one of so many requests.
fn cut_all(one_of: u64) {
    let vfs = plain_vfs();
    let mut random = Random(33);
    for (number, pair) in (0..).zip(&PAIRS) {
        let new = tempfile::tempdir().unwrap();
        create(pair, new.path());
        let before = Image::pack(new.path());
        let (mut cuts, mut all) = (0, [0, 0]);
        for cut_at in (1 + number % one_of..).step_by(one_of as usize) {
            let fs = CutFs::mount(&before, cut_at).unwrap();
            let directory = fs.path("");
            let mut writer = Command::new(env::current_exe().unwrap());
            writer.args(["--exact", TEST, "--test-threads", "1"]).env(PAIR, number.to_string());
            let status = writer.current_dir(&directory).stderr(Stdio::null()).stdout(Stdio::null()).status();
            let survivors = fs.cut(random.next());
            // Under the same name: journals tell the full one of their super-journal.
            fs::create_dir(&directory).unwrap();
            survivors.unpack(&directory);
            let left = files(&directory);
            let ends = check(&directory, &left, &vfs, &format!("pair {number}, cut at request {cut_at}"));
            fs::remove_dir_all(&directory).unwrap();
            (cuts, all) = (cuts + 1, [all[0] + ends[0], all[1] + ends[1]]);
            if status.unwrap().success() {
                break;
            }
        }
        println!("pair {number}: {cuts} cuts, {} times before and {} times after", all[0], all[1]);
        assert!(all[0] > 20, "pair {number}: {all:?}");
    }
}

#[test]
fn so_it_is_after_a_power_cut() {
    if cut_fs::is_possible() {
        cut_all(12);
    }
}

#[test]
#[ignore = "minutes: make test-full runs it"]
fn so_it_is_wherever_the_power_goes() {
    if cut_fs::is_possible() {
        cut_all(1);
    }
}
