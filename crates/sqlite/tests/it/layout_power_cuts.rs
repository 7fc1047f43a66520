//! Power cuts while a database is laid out in a new file, step by step as `fit --apply` does it, while one is imported,
//! and while that is undone by an export.
//!
//! ```text
//!   image ──mount──▶ cut_fs ◀── copy, import, journal mode, publish; or import; or export
//!                       └──cut──▶ survivors ──▶ the database by SQLite, the new file by whoever can open it
//! ```
//!
//! At every point the user's database is complete under its name. The new file is absent or complete; once the work was
//! reported as done, it is there. `make test` cuts at some requests; with a number in `FLASHWISE_POWER_CUTS`, at every
//! one, repeated with other random choices until there are that many.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use flashwise_block::output::{Access, OutputPath};
use flashwise_sqlite::{Backend, Vfs, VfsOptions, check_target, export, import, info};
use rusqlite::{Connection, OpenFlags};

use crate::cut_fs::{self, CutFs, Image};
use crate::support::unique;

const APP: &str = "app.db";
const FITTED: &str = "app-fitted.db";
const PLAIN: &str = "app-plain.db";
/// Requests between two cuts, if only some are tried: of a fit, which has some 300, and of what has some 20.
const STEPS: [usize; 2] = [41, 9];

/// A layout with its pages, and the journal modes that the database has before and afterwards.
struct Case {
    techniques: &'static str,
    page: u32,
    journals: [&'static str; 2],
}

const CASES: [Case; 3] = [
    Case { techniques: "use-hot-locations=64k+32k", page: 65536, journals: ["delete", "delete"] },
    Case { techniques: "use-hot-locations=16k+8k", page: 16384, journals: ["wal", "wal"] },
    Case { techniques: "write-aligned-stripes=64k&atomic-batch=on", page: 4096, journals: ["delete", "wal"] },
];

impl Case {
    fn options(&self) -> VfsOptions {
        VfsOptions::from_text(self.techniques).unwrap()
    }

    /// The medium before the change: a database with pages of that size.
    fn image(&self, page: u32) -> Image {
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

    /// The steps of `fit --apply`: a copy with the wanted pages, its import, its journal mode, its name.
    fn lay_out(&self, directory: &Path) -> Result<(), Box<dyn Error>> {
        let (app, new) = (directory.join(APP), directory.join(FITTED));
        check_target(&new)?;
        let made = OutputPath::create(&new, Access::of(&app)?)?;
        let (plain, laid_out) = (made.directory().join("plain.db"), made.path());
        let source = Connection::open_with_flags(&app, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        source.execute("VACUUM INTO ?1", [plain.to_str().unwrap()])?;
        drop(source);
        let copy = Connection::open(&plain)?;
        copy.execute_batch(&format!("PRAGMA journal_mode = DELETE; PRAGMA page_size = {}; VACUUM", self.page))?;
        drop(copy);
        import(&plain, &laid_out, &self.options())?;
        let vfs = Vfs::register(&unique("fitted"), Backend::Directory, self.options())?;
        let db = Connection::open_with_flags_and_vfs(&laid_out, OpenFlags::default(), vfs.name())?;
        db.execute_batch(&format!("PRAGMA journal_mode = {}", self.journals[1]))?;
        drop(db);
        made.publish()?;
        Ok(())
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
    let vfs = Vfs::register(&unique("survivor"), Backend::Directory, VfsOptions::PLAIN).unwrap();
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
fn check_all(before: &Image, step: usize, work: &dyn Fn(&Path) -> bool, new: &str, told: &str) -> u64 {
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

#[test]
fn a_power_cut_while_a_layout_is_made_or_undone_leaves_the_database_and_all_or_nothing_of_the_new_file() {
    if !cut_fs::is_possible() {
        return;
    }
    let mut cuts = [0; 3];
    for case in &CASES {
        let before = case.image(4096);
        cuts[0] += check_all(&before, STEPS[0], &|directory| case.lay_out(directory).is_ok(), FITTED, case.techniques);

        let before = case.image(case.page);
        let imported =
            |directory: &Path| import(&directory.join(APP), &directory.join(FITTED), &case.options()).is_ok();
        cuts[1] += check_all(&before, STEPS[1], &imported, FITTED, case.techniques);

        let dir = tempfile::tempdir().unwrap();
        before.unpack(dir.path());
        assert!(imported(dir.path()));
        let exported = |directory: &Path| export(&directory.join(FITTED), &directory.join(PLAIN)).is_ok();
        cuts[2] += check_all(&Image::pack(dir.path()), STEPS[1], &exported, PLAIN, case.techniques);
    }
    println!("{cuts:?} power cuts of a fit, an import and an export");
    assert!(cuts[0] >= 9, "{cuts:?}");
}
