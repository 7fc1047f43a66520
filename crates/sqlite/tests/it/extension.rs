//! The loadable extension in a SQLite that knows nothing of it: the machine's own shell and Python, where they are, and
//! Node and Go, where `scripts/extension-hosts` has set them up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs SQL in the shell with the extension loaded. `None` where the machine has no shell that can load one.
fn shell(dir: &Path, uri: &str, environment: Option<&str>, sql: &str) -> Option<Output> {
    let library = std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so");
    shell_with(&format!("{}", library.display()), dir, uri, environment, sql)
}

/// The same with the arguments of `.load`.
fn shell_with(load: &str, dir: &Path, uri: &str, environment: Option<&str>, sql: &str) -> Option<Output> {
    let mut command = Command::new("sqlite3");
    command.current_dir(dir).args(["-batch", "-bail", ":memory:"]);
    command.arg(format!(".load {load}")).arg(format!(".open {uri}")).arg(sql);
    command.env_remove("FLASHWISE_SQLITE");
    if let Some(options) = environment {
        command.env("FLASHWISE_SQLITE", options);
    }
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: this machine has no sqlite3 shell");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const FILL: &str = "PRAGMA journal_mode = wal; CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3);
                    SELECT sum(x) FROM t; PRAGMA integrity_check;";

#[test]
fn techniques_are_named_in_the_uri_and_the_file_says_which_it_has() {
    let dir = tempfile::tempdir().unwrap();
    for (name, techniques, layout, log) in [
        ("plain.db", "", "plain", "plain"),
        ("hot.db", "&use-hot-locations=4k+2k", "hot-locations", "plain"),
        ("stripes.db", "&write-aligned-stripes=64k&concurrent-write-back=8", "headed", "aligned"),
        ("sparse.db", "&sparse-log=4k&discard=on", "headed", "sparse"),
        ("both.db", "&use-hot-locations=4k+2k&contain-write-in-flash-page=16k", "hot-locations", "contained"),
    ] {
        let uri = format!("file:{name}?vfs=flashwise{techniques}");
        let Some(output) = shell(dir.path(), &uri, None, FILL) else { return };
        assert_eq!(text(&output), "wal\n6\nok\n", "{name}");
        let info = flashwise_sqlite::info(&dir.path().join(name)).unwrap();
        assert_eq!((info.layout.as_str(), info.log.as_str()), (layout, log), "{name}");
        let again = shell(dir.path(), &format!("file:{name}?vfs=flashwise"), None, "SELECT count(*) FROM t").unwrap();
        assert_eq!(text(&again), "3\n", "{name} without a word about techniques");
        let plain = shell(dir.path(), &format!("file:{name}"), None, "SELECT count(*) FROM t").unwrap();
        let expected = if layout == "plain" { "3" } else { "(laid out by flashwise: open it with vfs=flashwise, or" };
        assert!(text(&plain).contains(expected), "{name} with plain SQLite: {}", text(&plain));
        if layout != "plain" {
            let before = fs::read(dir.path().join(name)).unwrap();
            let backup = format!(".backup {name}");
            shell(dir.path(), "file:plain.db", None, &backup).unwrap();
            assert_eq!(fs::read(dir.path().join(name)).unwrap(), before, "a backup by plain SQLite over {name}");
        }
    }
}

#[test]
fn the_environment_holds_where_a_uri_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Some("write-aligned-stripes=64k");
    let Some(output) = shell(dir.path(), "file:a.db?vfs=flashwise", options, FILL) else { return };
    assert_eq!(text(&output), "wal\n6\nok\n");
    assert_eq!(flashwise_sqlite::info(&dir.path().join("a.db")).unwrap().log, "aligned");
    shell(dir.path(), "file:b.db?vfs=flashwise&discard=off", options, FILL).unwrap();
    assert_eq!(flashwise_sqlite::info(&dir.path().join("b.db")).unwrap().log, "plain", "the URI comes first");
    let told = text(&shell(dir.path(), "file:c.db", Some("faster=on"), "SELECT 1").unwrap());
    assert!(told.contains("FLASHWISE_SQLITE: faster: unknown technique"), "{told}");
}

/// Programs that take no URI, or open a database before anybody could name a VFS.
#[test]
fn a_second_entry_point_makes_it_the_default_vfs() {
    let dir = tempfile::tempdir().unwrap();
    let library = std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so");
    // SQLite makes the name of the entry point from that of the file.
    let renamed = dir.path().join("flashwise_default.so");
    std::os::unix::fs::symlink(&library, &renamed).unwrap();
    let (library, options) = (library.display(), Some("write-aligned-stripes=64k"));
    for (name, load) in [
        ("named.db", format!("{library} sqlite3_flashwisedefault_init")),
        ("derived.db", renamed.display().to_string()),
        ("other.db", format!("{library} sqlite3_flashwisesqlite_init")),
    ] {
        let Some(output) = shell_with(&load, dir.path(), name, options, FILL) else { return };
        assert_eq!(text(&output), "wal\n6\nok\n", "{name}");
        let expected = if name == "other.db" { "plain" } else { "aligned" };
        assert_eq!(flashwise_sqlite::info(&dir.path().join(name)).unwrap().log, expected, "{name}");
    }
    // Registered before as one of many, it becomes the default one.
    let output = Command::new("sqlite3")
        .current_dir(dir.path())
        .env("FLASHWISE_SQLITE", "write-aligned-stripes=64k")
        .args(["-batch", "-bail", ":memory:", &format!(".load {library}")])
        .arg(format!("SELECT load_extension('{library}', 'sqlite3_flashwisedefault_init')"))
        .args([".open both.db", FILL, "ATTACH 'attached.db' AS x; CREATE TABLE x.t (x); SELECT count(*) FROM x.t"])
        .output()
        .unwrap();
    assert!(text(&output).ends_with("wal\n6\nok\n0\n"), "{}", text(&output));
    for name in ["both.db", "attached.db"] {
        assert_eq!(flashwise_sqlite::info(&dir.path().join(name)).unwrap().log, "aligned", "{name}");
    }
}

/// A package of Python whose SQLite makes a VFS that encrypts the default one, where it is installed.
#[test]
fn a_default_vfs_that_encrypts_is_not_taken_for_the_one_below() {
    const PROGRAM: &str = "
import apsw, os, sys
apsw.mc_version
loader = apsw.Connection(':memory:'); loader.enable_load_extension(True); loader.load_extension(sys.argv[1])
flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
for vfs in ('flashwise', 'multipleciphers-flashwise'):
    for n, techniques in enumerate(('', '&write-aligned-stripes=64k', '&concurrent-write-back=8', '&atomic-batch=on')):
        name = f'{vfs}-{n}.db'
        db = apsw.Connection(f'file:{name}?vfs={vfs}{techniques}', flags=flags)
        try:
            db.execute(\"PRAGMA key = 'secret words'\")
        except apsw.Error as error:
            print(vfs, 'refused'); continue
        db.execute('PRAGMA journal_mode = wal').get
        db.execute('CREATE TABLE t (x)')
        with db: db.executemany('INSERT INTO t VALUES (?)', [('clear text' + 'x' * 200,) for _ in range(500)])
        clear = [file for file in os.listdir() if file.startswith(name) and b'clear text' in open(file, 'rb').read()]
        db.close()
        db = apsw.Connection(f'file:{name}?vfs={vfs}', flags=flags)
        db.execute(\"PRAGMA key = 'secret words'\")
        print(vfs, clear, db.execute('SELECT count(*) FROM t').get)
";
    let has_package = |python: &&str| {
        let asked = Command::new(python).args(["-c", "import apsw; apsw.mc_version"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    let named = std::env::var("FLASHWISE_MULTIPLE_CIPHERS_PYTHON").unwrap_or_default();
    let Some(python) = [&named, "python3", "/usr/bin/python3"].into_iter().find(has_package) else {
        return println!("skipped: no Python here has the package apsw-sqlite3mc");
    };
    let dir = tempfile::tempdir().unwrap();
    let library = std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so");
    let output = Command::new(python).current_dir(dir.path()).args(["-c", PROGRAM]).arg(library).output().unwrap();
    let above = "multipleciphers-flashwise [] 500\n".repeat(4);
    assert_eq!(text(&output), format!("{}{above}", "flashwise refused\n".repeat(4)));
}

#[test]
fn a_profile_chooses_and_what_it_cannot_tell_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samsung-960-evo.toml");
    fs::copy(profile, dir.path().join("drive.toml")).unwrap();
    let uri = "file:a.db?vfs=flashwise&profile=drive.toml";
    let Some(output) = shell(dir.path(), uri, None, &format!("PRAGMA page_size = 65536; {FILL}")) else { return };
    assert_eq!(text(&output), "wal\n6\nok\n");
    let info = |name: &str| flashwise_sqlite::info(&dir.path().join(name)).unwrap();
    assert_eq!(info("a.db").version, None, "opening with a profile changes no format");
    let named = "file:c.db?vfs=flashwise&profile=drive.toml&use-hot-locations=on";
    shell(dir.path(), named, None, &format!("PRAGMA page_size = 65536; {FILL}")).unwrap();
    assert_eq!(info("c.db").layout, "hot-locations", "naming a technique does");
    let refused = shell(dir.path(), "file:b.db?vfs=flashwise&sparse-log=on", None, FILL).unwrap();
    assert!(text(&refused).contains("unable to open database"), "{}", text(&refused));
    assert!(!dir.path().join("b.db").exists());
}

#[test]
fn a_reader_in_another_process_sees_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let uri = "file:a.db?vfs=flashwise&write-aligned-stripes=64k&concurrent-write-back=8";
    let Some(_) = shell(dir.path(), uri, None, FILL) else { return };
    let library = std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so");
    let load = format!(".load {}", library.display());
    // The first process keeps its log open, uncheckpointed, while others read and write it.
    let inner =
        format!("sqlite3 -batch :memory: '{load}' '.open {uri}' 'INSERT INTO t VALUES (4)' 'SELECT sum(x) FROM t'");
    let sql =
        format!("PRAGMA wal_autocheckpoint = 0;\nINSERT INTO t VALUES (10);\n.shell {inner}\nSELECT sum(x) FROM t;\n");
    fs::write(dir.path().join("script"), format!("{load}\n.open {uri}\n{sql}")).unwrap();
    let output =
        Command::new("sqlite3").current_dir(dir.path()).args(["-batch", ":memory:", ".read script"]).output().unwrap();
    assert_eq!(text(&output), "0\n20\n20\n");
}

#[test]
fn python_opens_a_database_through_it() {
    const PROGRAM: &str = "
import sqlite3, sys
loader = sqlite3.connect(':memory:')
loader.enable_load_extension(True)
loader.load_extension(sys.argv[1])
uri = 'file:p.db?vfs=flashwise&write-aligned-stripes=64k&concurrent-write-back=8'
db = sqlite3.connect(uri, uri=True)
db.execute('PRAGMA journal_mode = wal')
db.execute('CREATE TABLE t (x)')
with db:
    db.executemany('INSERT INTO t VALUES (?)', ((i,) for i in range(1000)))
copy = sqlite3.connect('file:copy.db?vfs=flashwise', uri=True)
db.backup(copy)
print(copy.execute('SELECT sum(x) FROM t').fetchone()[0], copy.execute('PRAGMA integrity_check').fetchone()[0])
";
    let dir = tempfile::tempdir().unwrap();
    let library = std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so");
    let Some(python) = crate::support::python() else { return };
    let output = Command::new(python).current_dir(dir.path()).args(["-c", PROGRAM]).arg(library).output().unwrap();
    assert_eq!(text(&output), "499500 ok\n");
    assert_eq!(flashwise_sqlite::info(&dir.path().join("p.db")).unwrap().log, "aligned");
    assert_eq!(flashwise_sqlite::info(&dir.path().join("copy.db")).unwrap().layout, "plain");
}

/// A file of what `scripts/extension-hosts` builds; `None`, and a line that says so, where it did not.
fn host(name: &str) -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    let path = target.join("extension-hosts").join(name);
    if !path.exists() {
        println!("skipped: {} is not there; scripts/extension-hosts builds it as root", path.display());
        return None;
    }
    Some(path.canonicalize().unwrap())
}

/// Runs a host in a directory of its own, and looks at the database that it left.
fn host_writes_and_reads_a_laid_out_database(host: &mut Command) {
    let dir = tempfile::tempdir().unwrap();
    let library = std::env::current_exe().unwrap().with_file_name("libflashwise_sqlite.so");
    let output = host.arg(library).current_dir(dir.path()).env_remove("FLASHWISE_SQLITE").output().unwrap();
    assert_eq!(text(&output), "499500 ok\n");
    assert_eq!(flashwise_sqlite::info(&dir.path().join("host.db")).unwrap().log, "aligned");
}

#[test]
#[ignore = "its host takes minutes to build: make test-full does and runs it"]
fn node_opens_a_database_through_it() {
    let Some(modules) = host("node/built") else { return };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/host.js");
    let modules = modules.with_file_name("node_modules");
    host_writes_and_reads_a_laid_out_database(Command::new("node").env("NODE_PATH", modules).arg(program));
}

#[test]
#[ignore = "its host takes minutes to build: make test-full does and runs it"]
fn go_opens_a_database_through_it() {
    let Some(program) = host("go-host") else { return };
    host_writes_and_reads_a_laid_out_database(&mut Command::new(program));
}
