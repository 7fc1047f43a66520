//! Processes that write one database together, and are killed at any moment. What they had told of as committed is
//! there, all of each transaction or nothing of it, and whoever comes after them goes on.
//!
//! The writers are this test program, started again.

use crate::configurations;
use crate::support;
use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use configurations::{CONFIGURATIONS, page_for};
use flashwise_sqlite::{Vfs, VfsOptions};
use rusqlite::{Connection, params};
use support::{Random, integrity, open, unique};

const TEST: &str = "processes::what_killed_processes_told_of_as_committed_is_there_and_nothing_by_half";
/// Tells a writer its number, the database, the techniques and what to set.
const WRITER: [&str; 4] =
    ["FLASHWISE_TEST_WRITER", "FLASHWISE_TEST_DATABASE", "FLASHWISE_TEST_TECHNIQUES", "FLASHWISE_TEST_PRAGMAS"];
/// Rows of a transaction.
const PARTS: i64 = 5;

fn connect(path: &str, techniques: &str, pragmas: &str) -> (Vfs, Connection) {
    let vfs = Vfs::install(&unique("processes"), VfsOptions::from_text(techniques).unwrap(), false).unwrap();
    let mut db = open(path, vfs.name());
    // SQLite's own handler waits longer and longer, so that one who comes late never gets a turn.
    let wait_a_little = |_| {
        thread::sleep(Duration::from_millis(1));
        true
    };
    db.busy_handler(Some(wait_a_little)).unwrap();
    db.execute_batch(pragmas).unwrap();
    (vfs, db)
}

/// Commits until somebody ends it; tells of each transaction once it is committed.
fn write(number: i64, path: &str, techniques: &str, pragmas: &str) {
    let (_vfs, db) = connect(path, techniques, pragmas);
    let last = "SELECT coalesce(max(n), 0) FROM t WHERE writer = ?1";
    let first: i64 = db.query_row(last, [number], |row| row.get(0)).unwrap();
    for n in first + 1.. {
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        for part in 0..PARTS {
            let value = vec![number as u8; 700 + 300 * (n as usize % 4)];
            db.execute("INSERT INTO t VALUES (?1, ?2, ?3, ?4)", params![number, n, part, value]).unwrap();
        }
        db.execute("UPDATE last SET n = ?2 WHERE writer = ?1", [number, n]).unwrap();
        // What is old goes, so that pages are freed.
        db.execute("DELETE FROM t WHERE writer = ?1 AND n < ?2 - 12", [number, n]).unwrap();
        db.execute_batch("COMMIT").unwrap();
        println!("committed {n}");
        thread::sleep(Duration::from_millis(1));
    }
}

struct Writer {
    number: i64,
    child: Child,
    said: BufReader<ChildStdout>,
    /// The last transaction that it told of, as far as that was heard.
    committed: i64,
}

impl Writer {
    fn start(number: i64, path: &str, techniques: &str, pragmas: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture", "--test-threads", "1"])
            .envs(WRITER.into_iter().zip([&number.to_string(), path, techniques, pragmas]))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { number, child, said, committed: 0 }
    }

    fn transaction(line: &str) -> Option<i64> {
        line.rsplit_once("committed ")?.1.trim().parse().ok()
    }

    /// Waits for a first transaction.
    fn wait(&mut self) {
        let mut line = String::new();
        while self.committed == 0 {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "writer {} ended by itself", self.number);
            self.committed = Self::transaction(&line).unwrap_or(0);
        }
    }

    /// Kills it; tells its number and the last transaction that it told of.
    fn kill(mut self) -> (i64, i64) {
        self.child.kill().unwrap();
        let told = self.said.lines().filter_map(|line| Self::transaction(&line.unwrap())).last();
        assert_eq!(self.child.wait().unwrap().signal(), Some(9), "writer {} ended by itself", self.number);
        (self.number, told.unwrap_or(self.committed))
    }
}

/// What must hold after the writers are gone; tells how many transactions there were.
fn look(path: &str, pragmas: &str, told: &[(i64, i64)], case: &str) -> i64 {
    let (_vfs, db) = connect(path, "", pragmas);
    assert_eq!(integrity(&db), "ok", "{case}");
    let mut select = db.prepare("SELECT writer, n, count(*) FROM t GROUP BY writer, n").unwrap();
    let found: Vec<(i64, i64, i64)> = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(found.iter().all(|&(_, _, parts)| parts == PARTS), "{case}: a transaction in part: {found:?}");
    let found: BTreeSet<(i64, i64)> = found.into_iter().map(|(writer, n, _)| (writer, n)).collect();
    let mut all = 0;
    for &(writer, committed) in told {
        let last: i64 = db.query_row("SELECT n FROM last WHERE writer = ?1", [writer], |row| row.get(0)).unwrap();
        // The one that was under way when it was killed may be there as well.
        assert!((committed..=committed + 1).contains(&last), "{case}: writer {writer} told of {committed}, not {last}");
        let expected: BTreeSet<(i64, i64)> = ((last - 12).max(1)..=last).map(|n| (writer, n)).collect();
        let of_writer = found.iter().copied().filter(|found| found.0 == writer).collect();
        assert_eq!(expected, of_writer, "{case}: writer {writer}");
        all += last;
    }
    all
}

#[test]
fn what_killed_processes_told_of_as_committed_is_there_and_nothing_by_half() {
    if let [Some(number), Some(path), Some(techniques), Some(pragmas)] = WRITER.map(|name| env::var(name).ok()) {
        return write(number.parse().unwrap(), &path, &techniques, &pragmas);
    }
    let mut random = Random(11);
    for configuration in &CONFIGURATIONS {
        for (journal, pragmas) in [
            ("wal", "PRAGMA wal_autocheckpoint = 20; PRAGMA cache_size = 4"),
            ("delete", "PRAGMA cache_size = 4"),
            // The kernel has all that was written, synced or not.
            ("truncate", "PRAGMA cache_size = 4; PRAGMA synchronous = OFF"),
        ] {
            let case = format!("{}, {journal}", configuration.name);
            // In memory where there is such a directory: it is processes that end here, not the machine.
            let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let path = dir.path().join("a.db").to_str().unwrap().to_owned();
            let page = page_for(configuration.techniques, 4096);
            {
                let (_vfs, db) = connect(&path, configuration.techniques, &format!("PRAGMA page_size = {page}"));
                db.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(())).unwrap();
                db.execute_batch(
                    "CREATE TABLE t (writer, n, part, v, PRIMARY KEY (writer, n, part));
                     CREATE TABLE last (writer INTEGER PRIMARY KEY, n);
                     INSERT INTO last VALUES (0, 0), (1, 0), (2, 0)",
                )
                .unwrap();
            }
            let pragmas = match journal {
                "truncate" => format!("{pragmas}; PRAGMA journal_mode = truncate"),
                _ => pragmas.to_owned(),
            };
            let mut before = 0;
            for round in 0..3 {
                let mut writers: Vec<Writer> =
                    (0..3).map(|number| Writer::start(number, &path, configuration.techniques, &pragmas)).collect();
                writers.iter_mut().for_each(Writer::wait);
                // One after the other: those that are left come upon what the dead one left behind.
                let mut told = Vec::new();
                while !writers.is_empty() {
                    thread::sleep(Duration::from_micros(random.next() % 60_000));
                    let victim = random.next() as usize % writers.len();
                    told.push(writers.swap_remove(victim).kill());
                }
                let all = look(&path, &pragmas, &told, &format!("{case}, round {round}"));
                assert!(all >= before + 3, "{case}: {all} transactions after {before}");
                before = all;
            }
            println!("{case}: {before} transactions");
        }
    }
}
