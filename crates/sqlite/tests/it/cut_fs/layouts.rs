//! Power cuts while a database is laid out in a new file, changed in place, or while that is undone; and what survives.
//!
//! ```text
//!   image ──mount──▶ cut_fs ◀── some work on the user's database
//!                       └──cut──▶ survivors ──▶ the database by SQLite, the new file by whoever can open it
//! ```
//!
//! At every point the user's database is complete under its name. The new file is absent or complete; once the work was
//! reported as done, it is there. `make test` cuts at some requests; with a number in `FLASHWISE_POWER_CUTS`, at every
//! one, repeated with other random choices until there are that many.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flashwise_sqlite::{Backend, Vfs, VfsOptions, info};
use rusqlite::{Connection, OpenFlags};

use super::{CutFs, Image};

/// The user's database.
pub const APP: &str = "app.db";
/// What is made of it.
pub const FITTED: &str = "app-fitted.db";
/// What is made of that.
pub const PLAIN: &str = "app-plain.db";

/// A layout with its pages, and the journal modes that the database has before and afterwards.
pub struct Case {
    pub techniques: &'static str,
    pub page: u32,
    pub journals: [&'static str; 2],
}

pub const CASES: [Case; 3] = [
    Case { techniques: "use-hot-locations=64k+32k", page: 65536, journals: ["delete", "delete"] },
    Case { techniques: "use-hot-locations=16k+8k", page: 16384, journals: ["wal", "wal"] },
    Case { techniques: "write-aligned-stripes=64k&atomic-batch=on", page: 4096, journals: ["delete", "wal"] },
];

impl Case {
    pub fn options(&self) -> VfsOptions {
        VfsOptions::from_text(self.techniques).unwrap()
    }

    /// The medium before the change: a database with pages of that size.
    pub fn image(&self, page: u32) -> Image {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(dir.path().join(APP)).unwrap();
        db.execute_batch(&format!("PRAGMA page_size = {page}; PRAGMA journal_mode = {}", self.journals[0])).unwrap();
        db.execute_batch(
            "CREATE TABLE t (k INTEGER PRIMARY KEY, v);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
             INSERT INTO t SELECT i, hex(zeroblob(150)) || i FROM n; CREATE INDEX i ON t (v)",
        )
        .unwrap();
        drop(db);
        Image::pack(dir.path())
    }
}

/// The content of a sound database; otherwise what is wrong.
fn content(db: rusqlite::Result<Connection>) -> String {
    let asked = "SELECT count(*) || ' ' || sum(k * length(v)) || ' ' || max(v) || ' ' || integrity_check
                 FROM t INDEXED BY i, pragma_integrity_check";
    db.and_then(|db| db.query_row(asked, [], |row| row.get(0))).unwrap_or_else(|error| error.to_string())
}

fn by_sqlite(path: &Path) -> String {
    content(Connection::open(path))
}

fn by_vfs(path: &Path) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("survivor-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let vfs = Vfs::register(&name, Backend::Directory, VfsOptions::PLAIN).unwrap();
    content(Connection::open_with_flags_and_vfs(path, OpenFlags::default(), vfs.name()))
}

/// Cuts the power at requests of some work on an image, and has what survived checked, with whether the work was
/// reported as done; how many cuts there were.
fn cut_everywhere(before: &Image, step: usize, work: &dyn Fn(&Path) -> bool, check: &dyn Fn(&Path, bool, &str)) -> u64 {
    let wanted = std::env::var("FLASHWISE_POWER_CUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    let step = if wanted > 0 { 1 } else { step };
    let mut cuts = 0;
    for round in 0.. {
        for cut_at in (1..).step_by(step) {
            let fs = CutFs::mount(before, cut_at).unwrap();
            let is_done = work(&fs.path(""));
            let is_cut = fs.wait_for_cut(Duration::ZERO);
            let image = fs.cut(cut_at * 1009 + round);
            let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            image.unpack(dir.path());
            let told = format!("cut at request {cut_at}, round {round}, left {:?}", image.files.keys());
            check(dir.path(), is_done, &told);
            if !is_cut {
                assert!(is_done, "without a cut");
                break;
            }
            cuts += 1;
        }
        if cuts >= wanted {
            break;
        }
    }
    cuts
}

/// Checks what survived of work that makes a file of an image.
pub fn check_all(before: &Image, step: usize, work: &dyn Fn(&Path) -> bool, new: &str, told: &str) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    before.unpack(dir.path());
    let expected = by_sqlite(&dir.path().join(APP));
    assert!(expected.starts_with("200 ") && expected.ends_with(" ok"), "{expected}");
    let had_fitted = dir.path().join(FITTED).exists();
    cut_everywhere(before, step, work, &|directory, is_done, cut| {
        let told = format!("{told}, {cut}");
        assert_eq!(by_sqlite(&directory.join(APP)), expected, "{told}");
        let (new, fitted) = (directory.join(new), directory.join(FITTED));
        assert!(!is_done || new.exists(), "{told}: reported as made, and gone");
        assert!(!had_fitted || fitted.exists(), "{told}: the laid-out file is gone");
        if fitted.exists() {
            assert_eq!(by_vfs(&fitted), expected, "{told}");
            assert_ne!(info(&fitted).unwrap().layout, "plain", "{told}");
        }
        if directory.join(PLAIN).exists() {
            assert_eq!(by_sqlite(&directory.join(PLAIN)), expected, "{told}");
        }
    })
}
