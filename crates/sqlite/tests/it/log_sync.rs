//! A log that is synced by its data alone, in space that was written before: how many syncs a commit takes, and that
//! SQLite without this VFS finds every commit in such a log, whoever wrote it, cut it short or was killed meanwhile.

use std::env;
use std::ffi::{c_int, c_long};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use flashwise_sqlite::{Backend, Vfs, VfsOptions};
use nix::libc;
use rusqlite::Connection;

use crate::full::Mount;
use crate::kills::{self, End};
use crate::support::{Random, integrity, open, unique};

/// How the log is synced, for the process that writes it.
const WRITER: &str = "FLASHWISE_TEST_LOG_SYNC";
/// Set where the process' SQLite syncs like one that was built without `HAVE_FDATASYNC`.
const BY_FSYNC: &str = "FLASHWISE_TEST_BY_FSYNC";
const COMMITS: u64 = 60;
const EXTEND: &str = "log-sync=extend";
const PARENT: &str = "log-sync=parent";
/// Unmodified SQLite, with its requests observed.
const OBSERVED: &str = "observed";

fn vfs(techniques: &str) -> Vfs {
    if techniques == OBSERVED {
        return Vfs::register(&unique("log-sync"), Backend::Directory, VfsOptions::PLAIN).unwrap();
    }
    Vfs::install(&unique("log-sync"), VfsOptions::from_text(techniques).unwrap(), false).unwrap()
}

/// What the SQLite in this program calls in place of libc's; the VFS makes the system call itself.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    match env::var_os(BY_FSYNC) {
        // SAFETY: a system call on a descriptor, whatever that is.
        Some(_) => unsafe { libc::fsync(file) },
        // SAFETY: likewise; the call has one argument.
        None => unsafe { libc::syscall(libc::SYS_fdatasync, c_long::from(file)) as c_int },
    }
}

fn create(path: &Path) {
    let db = open(path.to_str().unwrap(), "unix");
    db.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (n INTEGER PRIMARY KEY, v)").unwrap();
}

/// A row, of one page or more.
fn insert(db: &Connection, n: i64) -> rusqlite::Result<usize> {
    db.execute("INSERT INTO t VALUES (?1, zeroblob(?2))", (n, 500 + n % 5 * 2000))
}

/// The numbers in the table, by SQLite without this VFS; there must be none missing between others.
fn count(path: &Path) -> i64 {
    let db = open(path.to_str().unwrap(), "unix");
    assert_eq!(integrity(&db), "ok");
    let (count, last): (i64, i64) =
        db.query_row("SELECT count(*), coalesce(max(n), 0) FROM t", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(count, last, "one is missing between others");
    count
}

/// The process that is traced commits, and ends without closing anything.
fn commit_and_leave(techniques: &str) {
    let vfs = vfs(techniques);
    let db = open(env::current_dir().unwrap().join("a.db").to_str().unwrap(), vfs.name());
    db.execute_batch("PRAGMA synchronous = FULL").unwrap();
    for n in 1..=COMMITS {
        insert(&db, n as i64).unwrap();
    }
    std::mem::forget(db);
}

#[test]
fn a_commit_is_one_sync_of_data_however_the_sqlite_below_was_built() {
    const TEST: &str = "log_sync::a_commit_is_one_sync_of_data_however_the_sqlite_below_was_built";
    if let Ok(techniques) = env::var(WRITER) {
        return commit_and_leave(&techniques);
    }
    if !kills::is_possible() {
        return;
    }
    // Calls of fsync and of fdatasync, and bytes of the log.
    let counts = |techniques: &str, how: &[(&str, &str)]| -> Vec<u64> {
        let dir = tempfile::tempdir().unwrap();
        create(&dir.path().join("a.db"));
        let trace = dir.path().join("calls");
        let status = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(&trace)
            .arg(env::current_exe().unwrap())
            .args(["--exact", TEST, "--test-threads", "1"])
            .env(WRITER, techniques)
            .envs(how.iter().copied())
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        let calls = fs::read_to_string(&trace).unwrap();
        let length = fs::metadata(dir.path().join("a.db-wal")).unwrap().len();
        assert_eq!(count(&dir.path().join("a.db")), COMMITS as i64);
        ["fsync(", "fdatasync("].map(|call| calls.matches(call).count() as u64).into_iter().chain([length]).collect()
    };
    let by_fsync: &[_] = &[(BY_FSYNC, "")];
    for how in [by_fsync, &[]] {
        let [extended, parent, observed] = [EXTEND, PARENT, OBSERVED].map(|techniques| counts(techniques, how));
        // The header of the log, its directory, and the header once more: SQLite's own VFS opens a new log.
        assert!(extended[0] <= 3 && (COMMITS - 1..=COMMITS + 3).contains(&extended[1]), "{extended:?}");
        match how {
            [] => assert!(parent[0] <= 1 && parent[1] >= COMMITS, "like the SQLite of a distribution: {parent:?}"),
            _ => assert!(parent[0] >= COMMITS && parent[1] == 0, "like one without HAVE_FDATASYNC: {parent:?}"),
        }
        assert_eq!(observed, parent, "observing changes no sync");
        assert!(extended[2].is_multiple_of(64 << 10) && extended[2] > parent[2], "{extended:?} {parent:?}");
    }
}

/// The process that is killed writes down how far it has come.
fn commit_until_killed() {
    let vfs = vfs(EXTEND);
    let directory = env::current_dir().unwrap();
    let db = open(directory.join("a.db").to_str().unwrap(), vfs.name());
    db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 30; PRAGMA journal_size_limit = 100000")
        .unwrap();
    for n in 1..=COMMITS as i64 {
        insert(&db, n).unwrap();
        fs::write(directory.join("committed"), n.to_string()).unwrap();
        if n % 25 == 0 {
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
    }
}

/// Kills at one of so many calls.
fn kill_all(test: &str, one_of: usize) {
    let mut kills = 0;
    for call in ["pwrite64", "fdatasync", "ftruncate"] {
        for at in (1..).step_by(one_of) {
            let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let path = dir.path().join("a.db");
            create(&path);
            let end = kills::run(test, WRITER, EXTEND, dir.path(), call, at);
            let committed = fs::read_to_string(dir.path().join("committed")).unwrap_or_default();
            let committed: i64 = committed.parse().unwrap_or(0);
            // The one under way is there or not.
            let there = count(&path);
            assert!((committed..=committed + 1).contains(&there), "{call} {at}: {committed}, not {there}");
            let vfs = vfs("");
            let db = open(path.to_str().unwrap(), vfs.name());
            insert(&db, there + 1).unwrap();
            drop(db);
            assert_eq!(count(&path), there + 1, "{call} {at}");
            if end == End::Completed {
                break;
            }
            kills += 1;
        }
    }
    println!("{kills} kills");
    assert!(kills > 8, "{kills}");
}

#[test]
fn sqlite_finds_every_commit_in_the_log_of_a_process_that_was_killed() {
    if env::var(WRITER).is_ok() {
        return commit_until_killed();
    }
    if kills::is_possible() {
        kill_all("log_sync::sqlite_finds_every_commit_in_the_log_of_a_process_that_was_killed", 19);
    }
}

#[test]
#[ignore = "a minute: make test-full runs it"]
fn it_finds_them_wherever_the_process_is_killed() {
    if kills::is_possible() {
        kill_all("log_sync::sqlite_finds_every_commit_in_the_log_of_a_process_that_was_killed", 1);
    }
}

/// What a crash of all processes leaves: the database and its log as they are, without shared memory.
fn crashed(path: &Path) -> i64 {
    let dir = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        // By another process: closing the database here would drop its locks.
        let copied = Command::new("cp").arg(format!("{}{suffix}", path.display())).arg(dir.path()).status();
        assert!(copied.unwrap().success());
    }
    count(&dir.path().join("a.db"))
}

#[test]
fn connections_with_and_without_this_vfs_share_a_log() {
    let vfs = [EXTEND, "concurrent-write-back=8&log-sync=extend"].map(vfs);
    for seed in 1..=4 {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let path = dir.path().join("a.db");
        create(&path);
        let mut random = Random(seed);
        let names = [vfs[0].name(), "unix", vfs[1].name(), "unix"];
        let mut connections = names.map(|name| open(path.to_str().unwrap(), name));
        let mut n = 0;
        for step in 0..200 {
            let place = format!("seed {seed}, step {step}");
            let which = random.next() as usize % names.len();
            let db = &connections[which];
            match random.next() % 16 {
                0 => db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap(),
                1 => db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap(),
                2 => db.query_row("PRAGMA wal_checkpoint", [], |_| Ok(())).unwrap(),
                3 => {
                    let limit = [-1, 0, 50_000][random.next() as usize % 3];
                    db.query_row(&format!("PRAGMA journal_size_limit = {limit}"), [], |_| Ok(())).unwrap();
                }
                4 => {
                    let how = ["FULL", "NORMAL", "OFF"][random.next() as usize % 3];
                    db.execute_batch(&format!("PRAGMA synchronous = {how}")).unwrap();
                }
                5 => connections[which] = open(path.to_str().unwrap(), names[which]),
                6 => {
                    db.execute_batch("PRAGMA cache_size = 5; BEGIN").unwrap();
                    (1..=30).for_each(|more| _ = insert(db, n + more).unwrap());
                    db.execute_batch("ROLLBACK").unwrap();
                }
                7 => {
                    db.execute_batch("BEGIN").unwrap();
                    (1..=40).for_each(|more| _ = insert(db, n + more).unwrap());
                    db.execute_batch("COMMIT").unwrap();
                    n += 40;
                }
                _ => {
                    insert(db, n + 1).unwrap();
                    n += 1;
                }
            }
            if step % 10 == 0 {
                assert_eq!(crashed(&path), n, "{place}");
            }
        }
        drop(connections);
        assert_eq!(count(&path), n, "seed {seed}");
        assert!(!dir.path().join("a.db-wal").exists(), "the last connection deletes the log");
    }
}

/// Commits in a file system of that size until it is full, without a checkpoint.
fn commits_until_full(at: &Path, bytes: u64, techniques: &str) -> Option<i64> {
    let mount = Mount::new(at, bytes)?;
    let path = mount.path().join("a.db");
    create(&path);
    let vfs = vfs(techniques);
    let db = open(path.to_str().unwrap(), vfs.name());
    db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0").unwrap();
    let full = (1..).find(|&n| insert(&db, n).is_err()).unwrap();
    Some(full - 1)
}

#[test]
fn zeros_leave_space_for_as_many_commits_as_without_them() {
    let dir = tempfile::tempdir().unwrap();
    for bytes in [600 << 10, 2 << 20, 7 << 20] {
        let counts =
            [PARENT, EXTEND].map(|techniques| commits_until_full(&dir.path().join("mount"), bytes, techniques));
        let [Some(parent), Some(extended)] = counts else {
            return println!("skipped: a file system of its own takes root, and the right to mount");
        };
        assert!(parent > 20 && extended == parent, "{bytes} bytes: {extended} commits, {parent} without zeros");
    }
}

#[test]
fn zeros_stay_below_the_limit_for_the_size_of_a_file() {
    const TEST: &str = "log_sync::zeros_stay_below_the_limit_for_the_size_of_a_file";
    if let Ok(techniques) = env::var(WRITER) {
        return commit_and_leave(&techniques);
    }
    let log_of = |limit: &str| {
        let dir = tempfile::tempdir().unwrap();
        create(&dir.path().join("a.db"));
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -f {limit}; exec \"$0\" --exact {TEST} --test-threads 1"));
        shell.arg(env::current_exe().unwrap()).env(WRITER, EXTEND).current_dir(dir.path());
        let status = shell.stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{limit}: {status}");
        let length = fs::metadata(dir.path().join("a.db-wal")).unwrap().len();
        assert_eq!(count(&dir.path().join("a.db")), COMMITS as i64);
        length
    };
    let extended = log_of("unlimited");
    // Blocks of 512 bytes: a little less than the log would be.
    let limit = extended / 512 - 8;
    assert_eq!(log_of(&limit.to_string()), limit * 512);
}
