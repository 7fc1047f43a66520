//! The power goes while processes write one database in a directory. Whatever the file system had not been asked to
//! make durable is then there or not, as chance has it; what a writer told of as committed is there, all of each
//! transaction or nothing of it, and the next writers go on.
//!
//! ```text
//!   image ──mount──▶ cut_fs ◀── three writers (this test program, started again), each tells of its commits in a pipe
//!     ▲                 │ at a request that chance chooses, the power goes: EIO from then on
//!     │                 ▼
//!     └──────────── survivors ──copy──▶ another directory: opened, recovered and looked at
//! ```
//!
//! The next writers get the survivors as they are, so that recovery too is cut, by a process beside others that wait
//! for it. Half of the time the writers live on after the cut until they fail by themselves: what they then tell of as
//! committed must be there as well.

use crate::configurations;
use crate::cut_fs;
use crate::support;
use std::collections::BTreeSet;
use std::env;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use configurations::{CONFIGURATIONS, page_for};
use cut_fs::{CutFs, Image};
use flashwise_sqlite::{Vfs, VfsOptions};
use rusqlite::{Connection, params};
use support::{Random, unique};

const TEST: &str = "power_cut_processes::what_processes_told_of_as_committed_survives_a_power_cut_and_nothing_by_half";
/// Tells a writer its number, the database, the techniques and what to set.
const WRITER: [&str; 4] =
    ["FLASHWISE_TEST_WRITER", "FLASHWISE_TEST_DATABASE", "FLASHWISE_TEST_TECHNIQUES", "FLASHWISE_TEST_PRAGMAS"];
const WRITERS: i64 = 3;
/// Rows of a transaction.
const PARTS: i64 = 5;
/// Transactions of a writer whose rows are kept.
const KEPT: i64 = 3;
/// Whoever has not come to an end by then never will.
const AT_MOST: Duration = Duration::from_secs(60);

/// How the journal is kept.
struct Journal {
    mode: &'static str,
    pragmas: &'static str,
    /// Whether what is committed is durable, or just whole and in order.
    is_durable: bool,
}

const JOURNALS: [Journal; 5] = [
    Journal { mode: "wal", pragmas: "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 20", is_durable: true },
    // Synced by checkpoints alone.
    Journal { mode: "wal", pragmas: "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 20", is_durable: false },
    // FULL would not sync the directory after the journal was removed: the last commit may be undone.
    Journal { mode: "delete", pragmas: "PRAGMA synchronous = EXTRA", is_durable: true },
    Journal {
        mode: "truncate",
        pragmas: "PRAGMA synchronous = FULL; PRAGMA journal_mode = truncate",
        is_durable: true,
    },
    Journal { mode: "persist", pragmas: "PRAGMA synchronous = FULL; PRAGMA journal_mode = persist", is_durable: true },
];
const NO_SYNCS: Journal = Journal { mode: "delete", pragmas: "PRAGMA synchronous = OFF", is_durable: true };

fn connect(path: &Path, techniques: &str, pragmas: &str) -> rusqlite::Result<(Vfs, Connection)> {
    let vfs = Vfs::install(&unique("power"), VfsOptions::from_text(techniques).unwrap(), false).unwrap();
    let flags = rusqlite::OpenFlags::default();
    let mut db = Connection::open_with_flags_and_vfs(path, flags, vfs.name())?;
    // SQLite's own handler waits longer and longer, so that one who comes late never gets a turn.
    let wait_a_little = |_| {
        thread::sleep(Duration::from_millis(1));
        true
    };
    db.busy_handler(Some(wait_a_little))?;
    db.execute_batch("PRAGMA cache_size = 4")?;
    db.execute_batch(pragmas)?;
    Ok((vfs, db))
}

fn create(path: &Path, techniques: &str, journal: &Journal) {
    let page = page_for(techniques, 4096);
    let (_vfs, db) = connect(path, techniques, &format!("PRAGMA page_size = {page}")).unwrap();
    db.query_row(&format!("PRAGMA journal_mode = {}", journal.mode), [], |_| Ok(())).unwrap();
    db.execute_batch(
        "CREATE TABLE t (writer, n, part, v, PRIMARY KEY (writer, n, part));
         CREATE TABLE last (writer INTEGER PRIMARY KEY, n);
         CREATE TABLE every (transactions);
         INSERT INTO last VALUES (0, 0), (1, 0), (2, 0);
         INSERT INTO every VALUES (0)",
    )
    .unwrap();
}

/// Commits until something fails; tells of each transaction once it is committed.
fn write(number: i64, path: &Path, techniques: &str, pragmas: &str) -> rusqlite::Result<()> {
    let (_vfs, db) = connect(path, techniques, pragmas)?;
    let first: i64 = db.query_row("SELECT n FROM last WHERE writer = ?1", [number], |row| row.get(0))?;
    for n in first + 1.. {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for part in 0..PARTS {
            // Small, and of several pages; what is freed of these is given back.
            let value = vec![number as u8; if n % 4 == 2 { 40_000 } else { 700 + 300 * (n as usize % 3) }];
            db.execute("INSERT INTO t VALUES (?1, ?2, ?3, ?4)", params![number, n, part, value])?;
        }
        db.execute("UPDATE last SET n = ?2 WHERE writer = ?1", [number, n])?;
        db.execute("UPDATE every SET transactions = transactions + 1", [])?;
        // What is old goes, so that pages are freed.
        db.execute("DELETE FROM t WHERE writer = ?1 AND n <= ?2 - ?3", [number, n, KEPT])?;
        db.execute_batch("COMMIT")?;
        println!("committed {n}");
        match n % 8 {
            3 => db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?,
            7 if number == 0 => db.execute_batch("VACUUM")?,
            _ => {}
        }
    }
    Ok(())
}

struct Writer {
    number: i64,
    child: Child,
}

impl Writer {
    fn start(number: i64, path: &Path, techniques: &str, pragmas: &str) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture", "--test-threads", "1"])
            .envs(WRITER.into_iter().zip([&number.to_string(), path.to_str().unwrap(), techniques, pragmas]))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { number, child }
    }

    /// Waits until it fails by itself, or kills it; tells the last transaction that it told of.
    fn end(mut self, kill: bool) -> Option<i64> {
        if kill {
            self.child.kill().unwrap();
        }
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if began.elapsed() > AT_MOST {
                self.child.kill().unwrap();
                panic!("writer {} does not end without power", self.number);
            }
            thread::sleep(Duration::from_millis(1));
        }
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let failed = said.lines().find(|line| line.starts_with("failed while"));
        assert!(failed.is_none(), "writer {}: {}", self.number, failed.unwrap_or_default());
        said.lines().rev().find_map(|line| line.rsplit_once("committed ")?.1.parse().ok())
    }
}

/// What must hold of a database; tells the last transaction of each writer. `told` are those that must be there.
fn look(path: &Path, journal: &Journal, told: &[i64]) -> Result<Vec<i64>, String> {
    let said = |error: rusqlite::Error| error.to_string();
    let (_vfs, db) = connect(path, "", journal.pragmas).map_err(said)?;
    let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(said)?;
    if found != "ok" {
        return Err(found);
    }
    let mut select = db.prepare("SELECT writer, n, count(*) FROM t GROUP BY writer, n").map_err(said)?;
    let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).map_err(said)?;
    let found: Vec<(i64, i64, i64)> = found.collect::<Result<_, _>>().map_err(said)?;
    let mut select = db.prepare("SELECT n FROM last ORDER BY writer").map_err(said)?;
    let last: Vec<i64> =
        select.query_map([], |row| row.get(0)).map_err(said)?.collect::<Result<_, _>>().map_err(said)?;
    let every: i64 = db.query_row("SELECT transactions FROM every", [], |row| row.get(0)).map_err(said)?;

    let expected: BTreeSet<(i64, i64, i64)> = (0..)
        .zip(&last)
        .flat_map(|(writer, &last)| ((last - KEPT + 1).max(1)..=last).map(move |n| (writer, n, PARTS)))
        .collect();
    if expected != found.iter().copied().collect() {
        return Err(format!("not all of each transaction up to {last:?}: {found:?}"));
    }
    if every != last.iter().sum::<i64>() {
        return Err(format!("{every} transactions, but {last:?} of the writers: one is missing between others"));
    }
    for (writer, (&last, &told)) in last.iter().zip(told).enumerate() {
        // The one whose commit was under way may be there as well.
        if last < told && journal.is_durable || last > told + 1 {
            return Err(format!("writer {writer} told of {told}, not {last}"));
        }
    }
    Ok(last)
}

/// A database whose power goes again and again.
struct Victim {
    image: Image,
    journal: &'static Journal,
    techniques: &'static str,
    /// The last transaction of each writer.
    there: Vec<i64>,
    /// Holes that were asked for.
    holes: u64,
    random: Random,
}

impl Victim {
    fn new(techniques: &'static str, journal: &'static Journal, seed: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        create(&dir.path().join("a.db"), techniques, journal);
        let image = Image::pack(dir.path());
        Self { image, journal, techniques, there: vec![0; WRITERS as usize], holes: 0, random: Random(seed) }
    }

    /// Has the writers write until the power goes, and looks.
    fn cut(&mut self) -> Result<(), String> {
        // The first requests are those of a recovery.
        let span = [8, 80, 800][self.random.next() as usize % 3];
        let cut_at = 1 + self.random.next() % span;
        let fs = CutFs::mount(&self.image, cut_at).unwrap();
        let path = fs.path("a.db");
        // Of those that extend the log, one leaves everything to SQLite's own VFS.
        let techniques = |number: i64| match self.techniques {
            "log-sync=extend" if number == 2 => "log-sync=parent",
            techniques => techniques,
        };
        let writers: Vec<Writer> =
            (0..WRITERS).map(|number| Writer::start(number, &path, techniques(number), self.journal.pragmas)).collect();
        assert!(fs.wait_for_cut(AT_MOST), "the writers come to no request {cut_at}");
        let kill = self.random.next().is_multiple_of(2);
        let told: Vec<i64> =
            writers.into_iter().zip(&self.there).map(|(writer, &there)| writer.end(kill).unwrap_or(there)).collect();
        self.holes += fs.holes();
        self.image = fs.cut(self.random.next());

        let dir = tempfile::tempdir().unwrap();
        self.image.unpack(dir.path());
        // Where commits are not durable, all since the last checkpoint may be gone; what was there before may not.
        self.there = look(&dir.path().join("a.db"), self.journal, &told)
            .and_then(|found| match found.iter().zip(&self.there).all(|(found, there)| found >= there) {
                true => Ok(found),
                false => Err(format!("{:?} transactions were there, now {found:?}", self.there)),
            })
            .map_err(|why| format!("cut at request {cut_at}, killed: {kill}: {why}"))?;
        Ok(())
    }
}

/// Cuts under every configuration: so many in all, or a few of each; says how many there were.
fn cut_all(wanted: Option<usize>) {
    let (mut done, mut transactions, mut holes) = (0, 0, 0);
    for round in 0.. {
        for (number, configuration) in (0..).zip(&CONFIGURATIONS) {
            for (mode, journal) in (0..).zip(&JOURNALS) {
                // A few of each, and of the rollback journals in turn.
                if wanted.is_none() && mode >= 2 && mode != 2 + number % 3 {
                    continue;
                }
                let seed = round * 1009 + number * 31 + mode;
                let mut victim = Victim::new(configuration.techniques, journal, seed);
                for cut in 1..=if wanted.is_some() { 8 } else { 3 } {
                    if let Err(why) = victim.cut() {
                        panic!(
                            "{}, {} with {}, seed {seed}, cut {cut}: {why}",
                            configuration.name, journal.mode, journal.pragmas
                        );
                    }
                    done += 1;
                }
                transactions += victim.there.iter().sum::<i64>();
                holes += victim.holes;
                assert!(configuration.discards || victim.holes == 0, "{}", configuration.name);
            }
        }
        if wanted.is_none_or(|wanted| done >= wanted) {
            break;
        }
    }
    println!("{done} power cuts, {transactions} transactions, {holes} holes");
    assert!(transactions > done as i64, "the power goes before anybody commits");
    assert!(wanted.is_none() || holes > 0, "nothing is discarded");
}

#[test]
fn what_processes_told_of_as_committed_survives_a_power_cut_and_nothing_by_half() {
    if let [Some(number), Some(path), Some(techniques), Some(pragmas)] = WRITER.map(|name| env::var(name).ok()) {
        let failed = write(number.parse().unwrap(), path.as_ref(), &techniques, &pragmas).unwrap_err();
        // Without power any error will do. Nothing can be asked of the file system then, not even for what is not
        // there.
        let asked = std::fs::metadata(format!("{path}-not-there")).unwrap_err();
        if asked.kind() == std::io::ErrorKind::NotFound {
            println!("\nfailed while there was power: {failed}");
        }
        return;
    }
    if cut_fs::is_possible() {
        cut_all(None);
    }
}

#[test]
#[ignore = "minutes: make test-full runs it"]
fn it_survives_thousands_of_power_cuts() {
    let wanted = env::var("FLASHWISE_POWER_CUTS_OF_PROCESSES").ok().and_then(|count| count.parse().ok());
    if cut_fs::is_possible() {
        cut_all(Some(wanted.unwrap_or(2000)));
    }
}

/// What the other tests find nothing of is found where there is something: nobody asks for durability here.
#[test]
fn without_syncs_a_power_cut_does_lose_transactions() {
    if !cut_fs::is_possible() {
        return;
    }
    let lost = (0..12).find_map(|seed| {
        let mut victim = Victim::new("", &NO_SYNCS, seed);
        (0..4).find_map(|_| victim.cut().err())
    });
    assert!(lost.is_some(), "48 cuts and nothing lost: these cuts are none");
}
