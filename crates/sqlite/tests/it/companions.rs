//! Files beside a database that belong to it: what is left of an earlier database is not played into a new one, what
//! somebody else put there is not followed, and who may only read writes none.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use flashwise_sqlite::{SqliteError, Vfs, VfsOptions, export, import};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{self, integrity, unique};

const SUFFIXES: [&str; 5] = ["-journal", "-wal", "-fwjournal", "-fwwal", "-fwbatch"];

fn vfs(techniques: &str) -> Vfs {
    Vfs::install(&unique("companions"), VfsOptions::from_text(techniques).unwrap(), false).unwrap()
}

fn open(path: &Path, vfs: &Vfs, parameters: &str) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?vfs={}{parameters}", path.display(), vfs.name());
    Connection::open_with_flags(uri, OpenFlags::default() | OpenFlags::SQLITE_OPEN_URI)
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", database.display()))
}

fn count(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT count(*) FROM t", [], |row| row.get(0))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

/// A plain database with three rows, and the same laid out, with batches.
fn sources(directory: &Path) -> (PathBuf, PathBuf) {
    let [plain, stored] = ["plain.db", "stored.db"].map(|name| directory.join(name));
    Connection::open(&plain).unwrap().execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)").unwrap();
    import(&plain, &stored, &VfsOptions::from_text("atomic-batch=on").unwrap()).unwrap();
    (plain, stored)
}

#[test]
fn nothing_is_imported_or_exported_beside_what_an_earlier_database_left() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, stored) = sources(dir.path());
    let target = dir.path().join("app.db");
    let options = VfsOptions::from_text("write-aligned-stripes=64k").unwrap();
    for suffix in SUFFIXES {
        let companion = beside(&target, suffix);
        // An empty one and a broken link would be opened, and written to.
        let makes: [fn(&Path) -> std::io::Result<()>; 3] =
            [|path| fs::write(path, b"left"), |path| fs::write(path, b""), |path| symlink("gone", path)];
        for make in makes {
            make(&companion).unwrap();
            for refused in [import(&plain, &target, &options).unwrap_err(), export(&stored, &target).unwrap_err()] {
                let SqliteError::Leftover { companion: told, .. } = &refused else { panic!("{suffix}: {refused}") };
                assert_eq!(Path::new(told), companion, "{refused}");
            }
            assert!(!target.exists(), "{suffix}");
            fs::remove_file(&companion).unwrap();
        }
    }
    import(&plain, &target, &options).unwrap();
    assert_eq!(count(&open(&target, &vfs(""), "").unwrap()), Ok(3));
    fs::remove_file(&target).unwrap();
    export(&stored, &target).unwrap();
    assert_eq!(count(&Connection::open(&target).unwrap()), Ok(3));
}

#[test]
fn a_database_that_is_not_whole_in_its_file_or_is_written_to_is_not_copied() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, stored) = sources(dir.path());
    let target = dir.path().join("app.db");
    let options = VfsOptions::from_text("write-aligned-stripes=64k").unwrap();
    let refuses = |words: &str| {
        for refused in [import(&plain, &target, &options), export(&stored, &target).map(|_| panic!())] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
        assert!(!target.exists(), "{words}");
    };
    for suffix in SUFFIXES {
        let both = [&plain, &stored].map(|path| beside(path, suffix));
        // A pipe would be waited for, and what a link means may be of any database.
        let makes: [fn(&Path) -> std::io::Result<()>; 3] = [
            |path| fs::write(path, b"a part of the database"),
            |path| Ok(nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU)?),
            |path| symlink("/dev/zero", path),
        ];
        for make in makes {
            both.iter().for_each(|path| make(path).unwrap());
            refuses(suffix);
            both.iter().for_each(|path| fs::remove_file(path).unwrap());
        }
    }
    // The first block of a log of batches need not have reached the medium when the power went.
    let batches = [&plain, &stored].map(|path| beside(path, "-fwbatch"));
    batches.iter().for_each(|path| fs::write(path, [0; 8192]).unwrap());
    refuses("-fwbatch");
    batches.iter().for_each(|path| fs::remove_file(path).unwrap());

    let vfs = vfs("");
    let writers = [Connection::open(&plain).unwrap(), open(&stored, &vfs, "").unwrap()];
    writers[0].execute_batch("BEGIN EXCLUSIVE").unwrap();
    let refused = import(&plain, &target, &options).unwrap_err();
    assert!(matches!(refused, SqliteError::Writing(_)), "{refused}");
    // A log of batches beside it names itself; one without is found by its lock.
    writers[1].execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert!(export(&stored, &target).unwrap_err().to_string().contains("-fwbatch"));
    writers[0].execute_batch("COMMIT").unwrap();
    let striped = dir.path().join("striped.db");
    import(&plain, &striped, &VfsOptions::from_text("write-aligned-stripes=64k").unwrap()).unwrap();
    let writer = exclusive_lock(&striped);
    let refused = export(&striped, &target).unwrap_err();
    assert!(matches!(refused, SqliteError::Writing(_)), "{refused}");
    assert!(!target.exists());
    drop(writer);
    export(&striped, &target).unwrap();
}

/// SQLite's exclusive lock as another process has it: one of this process's connections loses its own as soon as any
/// descriptor of the file is closed here (POSIX locks, fcntl(2)).
fn exclusive_lock(database: &Path) -> fs::File {
    let file = fs::OpenOptions::new().read(true).write(true).open(database).unwrap();
    let shared_bytes = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as _,
        l_whence: nix::libc::SEEK_SET as _,
        l_start: 0x4000_0002,
        l_len: 510,
        l_pid: 0,
    };
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_OFD_SETLK(&shared_bytes)).unwrap();
    file
}

#[test]
fn a_copy_is_as_private_as_what_it_is_made_from() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, stored) = sources(dir.path());
    let (copy, again) = (dir.path().join("copy.db"), dir.path().join("again.db"));
    let owner = [&plain, &stored].map(|path| {
        fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
        // Only root gives files away.
        let _ = chown(path, Some(1234), Some(1234));
        fs::metadata(path).unwrap().uid()
    })[0];
    import(&plain, &copy, &VfsOptions::from_text("atomic-batch=on").unwrap()).unwrap();
    export(&stored, &again).unwrap();
    for path in [&copy, &again] {
        let made = fs::metadata(path).unwrap();
        assert_eq!((made.uid(), made.mode() & 0o777), (owner, 0o600), "{}", path.display());
    }
    // So are the files that come beside it.
    let vfs = vfs("");
    let db = open(&copy, &vfs, "").unwrap();
    db.execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE t SET x = zeroblob(50000)").unwrap();
    for suffix in ["-fwbatch", "-fwjournal"] {
        let Ok(made) = fs::metadata(beside(&copy, suffix)) else { continue };
        assert_eq!((made.uid(), made.mode() & 0o777), (owner, 0o600), "{suffix}");
    }
    assert!(beside(&copy, "-fwbatch").exists());
}

/// A hot journal that an earlier plain database left, which was then deleted by itself: SQLite without the VFS would
/// play it back over the new one.
#[test]
fn what_a_plain_database_left_is_gone_when_a_database_is_laid_out_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (path, kept) = (dir.path().join("a.db"), dir.path().join("kept"));
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE t (x);
         WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) INSERT INTO t SELECT zeroblob(3000) FROM n;
         PRAGMA cache_size = 1; BEGIN; UPDATE t SET x = zeroblob(2900)",
    )
    .unwrap();
    fs::copy(beside(&path, "-journal"), &kept).unwrap();
    drop(old);
    fs::remove_file(&path).unwrap();
    fs::rename(&kept, beside(&path, "-journal")).unwrap();
    fs::write(beside(&path, "-wal"), b"left").unwrap();
    let vfs = vfs("write-aligned-stripes=64k");
    {
        let db = open(&path, &vfs, "").unwrap();
        db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)").unwrap();
    }
    let told = Connection::open(&path).unwrap().execute_batch("SELECT * FROM sqlite_schema").unwrap_err();
    assert!(told.to_string().contains("laid out by flashwise"), "{told}");
    let db = open(&path, &vfs, "").unwrap();
    assert_eq!((count(&db), integrity(&db)), (Ok(3), "ok".to_owned()));
    drop(db);
    assert_eq!(names(dir.path()), ["a.db"]);
}

/// Of a file of zeros, as a power cut leaves one, a journal may hold the pages.
#[test]
fn what_lies_beside_a_blank_file_is_kept_and_the_file_is_not_laid_out() {
    for suffix in ["-journal", "-wal"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        fs::write(&path, [0; 32768]).unwrap();
        fs::write(beside(&path, suffix), b"left").unwrap();
        let vfs = vfs("write-aligned-stripes=64k");
        let create = |vfs: &Vfs| {
            let db = open(&path, vfs, "")?;
            db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)")?;
            count(&db)
        };
        assert!(create(&vfs).is_err(), "{suffix}");
        let told = vfs.last_error().unwrap();
        assert!(told.contains(&format!("a.db{suffix}: may contain the pages of this database")), "{told}");
        assert_eq!(fs::read(beside(&path, suffix)).unwrap(), b"left");
        assert!(fs::read(&path).unwrap() == [0; 32768]);
        fs::remove_file(beside(&path, suffix)).unwrap();
        assert_eq!(create(&vfs), Ok(3), "{suffix}");
    }
}

/// A database as it was some transactions ago, and the log of batches that has them: what a power cut leaves.
fn left_behind(directory: &Path, vfs: &Vfs) -> PathBuf {
    let (path, late) = (directory.join("a.db"), directory.join("late.db"));
    let db = open(&path, vfs, "&atomic-batch=on").unwrap();
    db.execute_batch("CREATE TABLE t (x)").unwrap();
    fs::copy(&path, &late).unwrap();
    for x in 0..20 {
        db.execute("INSERT INTO t VALUES (?1)", [x]).unwrap();
    }
    fs::copy(beside(&path, "-fwbatch"), beside(&late, "-fwbatch")).unwrap();
    drop(db);
    fs::remove_file(&path).unwrap();
    late
}

/// A commit without locks was lost: the log that it left aside was played over it at the next open.
#[test]
fn a_log_of_batches_is_played_back_before_anything_is_read_whatever_the_locking_mode() {
    for (parameters, setup) in [
        ("&nolock=1", ""),
        ("&nolock=yes", "PRAGMA journal_mode = truncate"),
        ("&nolock=1", "PRAGMA mmap_size = 1000000"),
        ("", "PRAGMA locking_mode = exclusive"),
        ("&vfs-less-parameter=1", ""),
    ] {
        let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(""));
        let late = left_behind(dir.path(), &vfs);
        let told = format!("{parameters}, {setup}");
        let db = open(&late, &vfs, parameters).unwrap();
        db.execute_batch(setup).unwrap();
        assert_eq!(count(&db), Ok(20), "{told}");
        // By a batch, and past the log.
        db.execute_batch("INSERT INTO t VALUES (20)").unwrap();
        db.execute_batch("PRAGMA cache_size = 1; BEGIN").unwrap();
        for x in 21..60 {
            db.execute("INSERT INTO t VALUES (zeroblob(?1))", [3000 + x]).unwrap();
        }
        db.execute_batch("COMMIT").unwrap();
        // The process is killed: its files are as they are.
        let killed = dir.path().join("killed.db");
        for suffix in ["", "-fwbatch", "-fwjournal"] {
            if beside(&late, suffix).exists() {
                fs::copy(beside(&late, suffix), beside(&killed, suffix)).unwrap();
            }
        }
        drop(db);
        for path in [&late, &killed] {
            let db = open(path, &vfs, "").unwrap();
            assert_eq!((count(&db), integrity(&db)), (Ok(60), "ok".to_owned()), "{told}");
        }
        assert!(names(dir.path()).iter().all(|name| !name.ends_with("-fwbatch")), "{told}");
    }
}

#[test]
fn who_may_only_read_writes_nothing_and_passes_over_no_transaction() {
    for parameters in ["&mode=ro", "&immutable=1", "&mode=ro&nolock=1"] {
        let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(""));
        let late = left_behind(dir.path(), &vfs);
        let before = [fs::read(&late).unwrap(), fs::read(beside(&late, "-fwbatch")).unwrap()];
        let told = open(&late, &vfs, parameters).and_then(|db| count(&db)).unwrap_err();
        assert_eq!(told.sqlite_error_code(), Some(ErrorCode::ReadOnly), "{parameters}: {told}");
        assert!(vfs.last_error().unwrap().contains("open it once for writing"), "{:?}", vfs.last_error());
        assert!([fs::read(&late).unwrap(), fs::read(beside(&late, "-fwbatch")).unwrap()] == before, "{parameters}");
        // Once it is opened for writing it can be read, with a log of others beside it and without one.
        let writer = open(&late, &vfs, "").unwrap();
        assert_eq!(count(&writer), Ok(20));
        writer.execute_batch("INSERT INTO t VALUES (20)").unwrap();
        let reader = open(&late, &vfs, parameters).unwrap();
        assert_eq!(count(&reader), Ok(21), "{parameters}");
        if parameters == "&mode=ro" {
            writer.execute_batch("INSERT INTO t VALUES (21); DELETE FROM t WHERE x = 21").unwrap();
            assert_eq!(count(&reader), Ok(21), "of what others commit it sees all");
        }
        let kept = fs::read(beside(&late, "-fwbatch")).unwrap();
        drop(reader);
        drop(writer);
        assert_eq!(names(dir.path()), ["late.db"], "{parameters}");
        // All of a log that was left is in the database.
        fs::write(beside(&late, "-fwbatch"), &kept).unwrap();
        assert!(open(&late, &vfs, parameters).and_then(|db| count(&db)).is_ok_and(|rows| rows == 21), "{parameters}");
        fs::remove_file(beside(&late, "-fwbatch")).unwrap();
        assert_eq!(count(&open(&late, &vfs, parameters).unwrap()), Ok(21), "{parameters}");
        assert_eq!(names(dir.path()), ["late.db"], "{parameters}: nothing is made");
    }
}

#[test]
fn a_companion_that_is_no_file_of_the_databases_own_is_neither_followed_nor_written() {
    let dir = tempfile::tempdir().unwrap();
    let (_, stored) = sources(dir.path());
    let victim = dir.path().join("victim");
    fs::write(&victim, b"a text of the user's").unwrap();
    let vfs = vfs("");
    let makes: [fn(&Path) -> std::io::Result<()>; 4] = [
        |path| symlink("victim", path),
        |path| Ok(nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU)?),
        |path| fs::create_dir(path),
        |path| fs::hard_link(path.with_file_name("victim"), path),
    ];
    for (suffix, parameters) in
        [("-fwbatch", ""), ("-fwbatch", "&mode=ro"), ("-fwbatch", "&nolock=1"), ("-fwjournal", "")]
    {
        for (number, make) in makes.into_iter().enumerate() {
            let companion = beside(&stored, suffix);
            make(&companion).unwrap();
            let (began, told) = (Instant::now(), format!("{suffix}, {number}, {parameters}"));
            let read = open(&stored, &vfs, parameters).and_then(|db| {
                count(&db)?;
                db.execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE t SET x = zeroblob(90000); COMMIT")
            });
            // The name of a journal is written through: SQLite does so too. What is in it is not believed.
            let is_journal_by_another_name = suffix == "-fwjournal" && number == 3;
            assert!(read.is_err() || is_journal_by_another_name, "{told}");
            assert!(began.elapsed() < Duration::from_secs(2), "{told}");
            if !is_journal_by_another_name {
                assert_eq!(fs::read(&victim).unwrap(), b"a text of the user's", "{told}");
            }
            let removed = if companion.is_dir() { fs::remove_dir(&companion) } else { fs::remove_file(&companion) };
            assert!(removed.is_ok() || !companion.exists(), "{told}");
        }
    }
    assert_eq!(count(&open(&stored, &vfs, "").unwrap()), Ok(3));
}

/// A length of 8 TiB in a sparse file ended the program that opened the database.
#[test]
fn a_forged_length_in_a_log_of_batches_is_refused_in_words() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(""));
    let (_, stored) = sources(dir.path());
    let identity = &fs::read(&stored).unwrap()[240..248];
    for (length, parameters) in [(8_u64 << 40, ""), (8 << 40, "&mode=ro"), (1 << 30, "&nolock=1"), (100 << 20, "")] {
        let mut log = vec![0; 4096];
        log.extend_from_slice(b"fwbatch1");
        for field in [5_u64, 0] {
            log.extend_from_slice(&field.to_le_bytes());
        }
        log.extend_from_slice(identity);
        for field in [1, length, 0, 0] {
            log.extend_from_slice(&field.to_le_bytes());
        }
        let companion = beside(&stored, "-fwbatch");
        fs::write(&companion, &log).unwrap();
        fs::OpenOptions::new().write(true).open(&companion).unwrap().set_len(4096 + length).unwrap();
        let told = open(&stored, &vfs, parameters).and_then(|db| count(&db)).unwrap_err();
        assert_eq!(told.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt), "{length}: {told}");
        assert!(vfs.last_error().unwrap().contains("has a length of"), "{:?}", vfs.last_error());
    }
    fs::remove_file(beside(&stored, "-fwbatch")).unwrap();
    assert_eq!(count(&open(&stored, &vfs, "").unwrap()), Ok(3));
}

/// Takes a lock of a log of batches, as somebody does who then stands still.
fn hold(log: &Path, byte: i64) -> fs::File {
    let file = fs::OpenOptions::new().read(true).write(true).open(log).unwrap();
    let range = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as nix::libc::c_short,
        l_whence: nix::libc::SEEK_SET as nix::libc::c_short,
        l_start: (1 << 40) + byte,
        l_len: 1,
        l_pid: 0,
    };
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_OFD_SETLK(&range)).unwrap();
    file
}

#[test]
fn somebody_who_stands_still_while_he_comes_or_goes_costs_others_busy_and_never_a_hang() {
    let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(""));
    let (_, stored) = sources(dir.path());
    let there = open(&stored, &vfs, "").unwrap();
    assert_eq!(count(&there), Ok(3));
    let turn = hold(&beside(&stored, "-fwbatch"), 1);
    let began = Instant::now();
    let comes = open(&stored, &vfs, "").unwrap();
    comes.busy_timeout(Duration::from_millis(300)).unwrap();
    let told = count(&comes).unwrap_err();
    assert_eq!(told.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "{told}");
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
    // Who is there already notices nothing, and can go.
    there.execute_batch("INSERT INTO t VALUES (4)").unwrap();
    drop(there);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    drop(turn);
    assert_eq!(count(&comes), Ok(4));
    drop(comes);
    assert_eq!(names(dir.path()), ["plain.db", "stored.db"]);
}

/// A program that opens a database, forks a child that never touches it, and then closes it or is killed.
const FORKS: &str = "
import os, signal, sqlite3, sys, time
loader = sqlite3.connect(':memory:')
loader.enable_load_extension(True)
loader.load_extension(sys.argv[1])
db = sqlite3.connect('file:stored.db?vfs=flashwise', uri=True, isolation_level=None)
db.execute('INSERT INTO t VALUES (4)')
here, there = os.pipe()
child = os.fork()
if child == 0:
    os.write(there, b'.')
    os.close(1); os.close(2)
    time.sleep(60)
    if sys.argv[2] == 'exits': sys.exit(0)
    os._exit(0)
os.read(here, 1)
print(child, flush=True)
if sys.argv[2] == 'killed': os.kill(os.getpid(), signal.SIGKILL)
db.close()
";

#[test]
fn no_lock_lives_on_in_a_forked_child() {
    let Some(python) = support::python() else { return };
    let library = std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so");
    for (number, end) in (0..).zip(["closed", "killed"]) {
        let (dir, vfs) = (tempfile::tempdir().unwrap(), vfs(""));
        let (_, stored) = sources(dir.path());
        let mut forks = Command::new(python);
        let output = forks.current_dir(dir.path()).args(["-c", FORKS]).arg(&library).arg(end).output().unwrap();
        let child = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(!child.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let began = Instant::now();
        // The next one comes alone: it plays the log back, and removes it when it goes.
        let db = open(&stored, &vfs, "").unwrap();
        assert_eq!(count(&db), Ok(4), "{end}");
        drop(db);
        let left = names(dir.path());
        let killed = kill_process(Pid::from_raw(child.parse().unwrap()).unwrap(), Signal::KILL);
        assert_eq!(killed, Ok(()), "{end}: the child has ended by itself");
        assert_eq!(left, ["plain.db", "stored.db"], "{number}: {end}");
        assert!(began.elapsed() < Duration::from_secs(2), "{end}: {:?}", began.elapsed());
    }
}

/// The page that goes through SQLite's protocols names a test for each clause.
#[test]
fn every_test_that_the_page_of_protocols_names_exists() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(crate_root.join("../../docs/formats/sqlite-protocols.md")).unwrap();
    let named: Vec<(&str, &str)> =
        page.split('`').skip(1).step_by(2).filter_map(|name| name.split_once("::")).collect();
    for (module, test) in &named {
        let places = ["tests/it", "src", "src/ffi"].map(|folder| crate_root.join(folder).join(format!("{module}.rs")));
        let has =
            |place: &PathBuf| fs::read_to_string(place).is_ok_and(|source| source.contains(&format!("fn {test}(")));
        assert!(places.iter().any(has), "{module}::{test}");
    }
    assert!(named.len() > 50, "{} tests", named.len());
}
