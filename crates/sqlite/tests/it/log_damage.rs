//! Bits that flip in a stored log which is laid out, while commits are in it that the database does not have yet.
//!
//! SQLite's rule holds through every layout: a frame that is not as it was written ends the log, so that what is
//! recovered is the state after the commits before it. A bit in padding is nobody's. Our own header has a checksum, and
//! no state is better than a wrong one: there the log is refused by its name, and left as it is.

use crate::support;
use std::fs;
use std::ops::Range;
use std::path::Path;

use flashwise_sqlite::{Vfs, VfsOptions};
use rusqlite::{Connection, OpenFlags};
use support::{Random, integrity, open, try_dump, unique};

const OUR_HEADER: usize = 512;
const SQLITE_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// How frames lie, as `log_layout.rs` draws it, for stripes of up to 64 KiB.
#[derive(Clone, Copy)]
enum Places {
    Split { stripe: usize, headers_in_block: usize },
    Packed { flash_page: usize },
}

struct Layout {
    techniques: &'static str,
    page: usize,
    places: Places,
}

const LAYOUTS: [Layout; 7] = [
    Layout {
        techniques: "write-aligned-stripes=64k",
        page: 4096,
        places: Places::Split { stripe: 64 << 10, headers_in_block: 170 },
    },
    Layout {
        techniques: "write-aligned-stripes=8k",
        page: 512,
        places: Places::Split { stripe: 8 << 10, headers_in_block: 170 },
    },
    Layout { techniques: "sparse-log=4k", page: 4096, places: Places::Split { stripe: 4 << 10, headers_in_block: 1 } },
    Layout {
        techniques: "sparse-log=16k&concurrent-write-back=8&discard=on",
        page: 1024,
        places: Places::Split { stripe: 16 << 10, headers_in_block: 1 },
    },
    Layout {
        techniques: "contain-write-in-flash-page=16k",
        page: 1024,
        places: Places::Packed { flash_page: 16 << 10 },
    },
    Layout {
        techniques: "contain-write-in-flash-page=16k",
        page: 4096,
        places: Places::Split { stripe: 16 << 10, headers_in_block: 170 },
    },
    Layout {
        techniques: "use-hot-locations=4k+2k&write-aligned-stripes=64k&concurrent-write-back=8&discard=on",
        page: 4096,
        places: Places::Split { stripe: 64 << 10, headers_in_block: 170 },
    },
];

impl Layout {
    /// Where frame `n` has its header and its page.
    fn frame(&self, n: usize) -> (Range<usize>, Range<usize>) {
        let (header, page) = match self.places {
            Places::Split { stripe, headers_in_block } => {
                let area: usize = 64 << 10;
                let in_group = area / 4096 * headers_in_block;
                let group = stripe + n / in_group * (area + in_group * self.page).next_multiple_of(stripe);
                let n = n % in_group;
                let header = group + n / headers_in_block * 4096 + n % headers_in_block * FRAME_HEADER;
                (header, group + area + n * self.page)
            }
            Places::Packed { flash_page } => {
                let frame = FRAME_HEADER + self.page;
                let in_page = flash_page / frame;
                let header = flash_page + n / in_page * flash_page + n % in_page * frame;
                (header, header + FRAME_HEADER)
            }
        };
        (header..header + FRAME_HEADER, page..page + self.page)
    }
}

/// A database and its log as they are on the medium when the machine stops.
struct Stopped {
    database: Vec<u8>,
    log: Vec<u8>,
    /// What the database holds after so many of the commits in the log.
    states: Vec<Vec<String>>,
    /// For each frame of the log, how many commits end before it.
    commits_before: Vec<usize>,
}

/// A directory in memory where there is one: thousands of databases are opened and synced.
fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn path_of(dir: &Path) -> String {
    dir.join("a.db").to_str().unwrap().to_owned()
}

fn stop(layout: &Layout, vfs: &Vfs) -> Stopped {
    let dir = place();
    let db = open(&path_of(dir.path()), vfs.name());
    db.execute_batch(&format!("PRAGMA page_size = {}; PRAGMA auto_vacuum = full", layout.page)).unwrap();
    db.query_row("PRAGMA journal_mode = wal", [], |_| Ok(())).unwrap();
    db.execute_batch("PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (k INTEGER PRIMARY KEY, v)").unwrap();
    let insert = |first: usize, count: usize| {
        db.execute_batch(&format!(
            "WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {})
             INSERT INTO t SELECT i, hex(zeroblob(100 + i % 7)) FROM n",
            first + count - 1
        ))
        .unwrap();
    };
    // A long log that is checkpointed, and then begun again: old frames stay behind the new ones.
    for n in 0..12 {
        insert(n * 40, 40);
    }
    db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0))
        .map(|busy| assert_eq!(busy, 0))
        .unwrap();
    let mut states = vec![try_dump(&db).unwrap()];
    for n in 0..6 {
        match n {
            2 => db.execute_batch("DELETE FROM t WHERE k % 40 < 15").unwrap(),
            4 => db.execute_batch("UPDATE t SET v = v || 'x' WHERE k < 60; CREATE TABLE u (x)").unwrap(),
            _ => insert(1000 + n * 20, 11),
        }
        if n == 4 {
            // Two statements, two commits: the one in between is a state as well.
            let after = try_dump(&db).unwrap();
            let between = after.iter().filter(|line| !line.starts_with("table u ")).cloned().collect();
            states.extend([between, after]);
        } else {
            states.push(try_dump(&db).unwrap());
        }
    }
    let read = |suffix: &str| fs::read(format!("{}{suffix}", path_of(dir.path()))).unwrap();
    let (database, log) = (read(""), read("-fwwal"));

    let salts = &log[OUR_HEADER + 16..OUR_HEADER + 24];
    let mut commits_before = Vec::new();
    let mut commits = 0;
    loop {
        let (header, _) = layout.frame(commits_before.len());
        if header.end > log.len() || log[header.start + 8..header.start + 16] != *salts {
            break;
        }
        commits_before.push(commits);
        commits += usize::from(log[header.start + 4..header.start + 8] != [0; 4]);
    }
    assert_eq!(commits, states.len() - 1, "each commit has its last frame in the log");
    assert!(commits_before.len() > 12, "{} frames", commits_before.len());
    Stopped { database, log, states, commits_before }
}

impl Stopped {
    /// Opens the database with such a log.
    fn reopened<T>(&self, log: &[u8], vfs: &Vfs, look: impl FnOnce(rusqlite::Result<Connection>, &Path) -> T) -> T {
        let dir = place();
        let path = path_of(dir.path());
        fs::write(&path, &self.database).unwrap();
        fs::write(format!("{path}-fwwal"), log).unwrap();
        look(Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), vfs.name()), dir.path())
    }

    /// Opens the database with bits of the log flipped: it holds what `commits` commits made, and can be written.
    fn holds(&self, flipped: &[usize], vfs: &Vfs, commits: usize, told: &str) {
        self.reopened(&self.with(flipped), vfs, |db, dir| {
            let db = db.unwrap();
            let found = try_dump(&db).unwrap_or_else(|error| panic!("{told}: {error} {:?}", vfs.last_error()));
            let which = self.states.iter().position(|state| *state == found);
            assert_eq!(which, Some(commits), "{told}: the state after other commits, or after none");
            assert_eq!(integrity(&db), "ok", "{told}");
            db.execute_batch("INSERT INTO t VALUES (5000, 'new')").unwrap();
            drop(db);
            let db = open(&path_of(dir), vfs.name());
            let rows = |db: &Connection| try_dump(db).unwrap().len();
            assert_eq!((integrity(&db).as_str(), rows(&db)), ("ok", found.len() + 1), "{told}, written and reopened");
        });
    }

    /// The log with bits flipped.
    fn with(&self, flipped: &[usize]) -> Vec<u8> {
        let mut log = self.log.clone();
        flipped.iter().for_each(|bit| log[bit / 8] ^= 1 << (bit % 8));
        log
    }
}

/// Some bits of some bytes.
fn bits(random: &mut Random, bytes: &Range<usize>, count: usize) -> Vec<usize> {
    (0..count).map(|_| (bytes.start + random.next() as usize % bytes.len()) * 8 + random.next() as usize % 8).collect()
}

/// Runs a test with each layout: its number, what was stopped, and the VFS.
fn with_each_layout(test: impl Fn(&Layout, &Stopped, &Vfs, &mut Random)) {
    for (n, layout) in LAYOUTS.iter().enumerate() {
        let options = VfsOptions::from_text(layout.techniques).unwrap();
        let vfs = Vfs::install(&unique("damage"), options, false).unwrap();
        let stopped = stop(layout, &vfs);
        stopped.holds(&[], &vfs, stopped.states.len() - 1, layout.techniques);
        test(layout, &stopped, &vfs, &mut Random(n as u64 + 1));
    }
}

#[test]
fn a_flipped_bit_in_a_frame_drops_it_and_what_follows() {
    with_each_layout(|layout, stopped, vfs, random| {
        for (n, &commits) in stopped.commits_before.iter().enumerate() {
            let (header, page) = layout.frame(n);
            // A bit of each field: page number, size at commit, salts, checksum.
            let fields = [0..4, 4..8, 8..16, 16..24].map(|field| header.start + field.start..header.start + field.end);
            let mut flips: Vec<usize> = fields.iter().flat_map(|field| bits(random, field, 1)).collect();
            flips.extend(bits(random, &page, 2));
            for bit in flips {
                let told = format!("{}, frame {n}, bit {bit}", layout.techniques);
                stopped.holds(&[bit], vfs, commits, &told);
            }
        }
    });
}

#[test]
fn a_flipped_bit_in_the_header_of_sqlites_log_drops_the_log() {
    with_each_layout(|layout, stopped, vfs, random| {
        for byte in OUR_HEADER..OUR_HEADER + SQLITE_HEADER {
            let bit = bits(random, &(byte..byte + 1), 1);
            stopped.holds(&bit, vfs, 0, &format!("{}, bit {bit:?}", layout.techniques));
        }
    });
}

#[test]
fn a_flipped_bit_in_our_header_refuses_the_log_by_its_name_and_changes_nothing() {
    with_each_layout(|layout, stopped, vfs, random| {
        let begin = random.next() as usize % 7;
        for byte in (begin..OUR_HEADER).step_by(7).chain(OUR_HEADER - 8..OUR_HEADER).chain(0..24) {
            let bit = bits(random, &(byte..byte + 1), 1);
            let told = format!("{}, bit {bit:?}", layout.techniques);
            let log = stopped.with(&bit);
            stopped.reopened(&log, vfs, |db, dir| {
                let error = db.and_then(|db| try_dump(&db)).expect_err(&told);
                assert!(vfs.last_error().unwrap().contains("a.db-fwwal"), "{told}: {error} {:?}", vfs.last_error());
                let path = path_of(dir);
                assert!(fs::read(format!("{path}-fwwal")).unwrap() == log, "{told}: the log was changed");
                assert!(fs::read(&path).unwrap() == stopped.database, "{told}: the database was changed");
            });
        }
    });
}

#[test]
fn a_flipped_bit_in_padding_or_in_an_old_frame_changes_nothing() {
    with_each_layout(|layout, stopped, vfs, random| {
        let mut is_used = vec![false; stopped.log.len()];
        is_used[..OUR_HEADER + SQLITE_HEADER].fill(true);
        for n in 0..stopped.commits_before.len() {
            let (header, page) = layout.frame(n);
            is_used[header].fill(true);
            is_used[page].fill(true);
        }
        let unused: Vec<usize> = (0..is_used.len()).filter(|&byte| !is_used[byte]).collect();
        assert!(unused.len() > 1000, "{}: {} bytes of padding", layout.techniques, unused.len());
        // The ends of what is unused, where a wrong place would show first, and some of the rest.
        let ends = unused.iter().filter(|&&byte| is_used[byte - 1] || is_used.get(byte + 1) == Some(&true));
        let mut flips: Vec<usize> = ends.map(|byte| byte * 8 + random.next() as usize % 8).collect();
        let rest = Random(random.next());
        flips.extend(std::iter::repeat_n((), 40).scan(rest, |random, ()| {
            Some(unused[random.next() as usize % unused.len()] * 8 + random.next() as usize % 8)
        }));
        for bit in &flips {
            let told = format!("{}, bit {bit}", layout.techniques);
            stopped.holds(&[*bit], vfs, stopped.states.len() - 1, &told);
        }
        // All of them at once.
        flips.sort_unstable();
        flips.dedup();
        stopped.holds(&flips, vfs, stopped.states.len() - 1, &format!("{}, {flips:?}", layout.techniques));
    });
}

#[test]
fn of_many_flipped_bits_the_first_frame_counts() {
    with_each_layout(|layout, stopped, vfs, random| {
        for _ in 0..20 {
            let frames: Vec<usize> = (0..3).map(|_| random.next() as usize % stopped.commits_before.len()).collect();
            let flips: Vec<usize> = frames.iter().flat_map(|&n| bits(random, &layout.frame(n).1, 1)).collect();
            let first = frames.iter().copied().min().unwrap();
            let told = format!("{}, frames {frames:?}, bits {flips:?}", layout.techniques);
            // The same bit twice is none.
            let twice = (1..3).any(|n| flips[..n].contains(&flips[n]));
            if !twice {
                stopped.holds(&flips, vfs, stopped.commits_before[first], &told);
            }
        }
    });
}
