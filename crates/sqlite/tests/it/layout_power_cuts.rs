//! Power cuts while a database is imported into a layout, and while that is undone by an export (`cut_fs/layouts.rs`).

use std::path::Path;

use flashwise_sqlite::{export, import};

use crate::cut_fs::layouts::{APP, CASES, FITTED, PLAIN, check_all};
use crate::cut_fs::{self, Image};

/// Requests between two cuts, if only some are tried, of some 20.
const STEP: usize = 4;

#[test]
fn a_power_cut_while_a_layout_is_made_or_undone_leaves_the_database_and_all_or_nothing_of_the_new_file() {
    if !cut_fs::is_possible() {
        return;
    }
    let mut cuts = [0; 2];
    for case in &CASES {
        let before = case.image(case.page);
        let imported =
            |directory: &Path| import(&directory.join(APP), &directory.join(FITTED), &case.options()).is_ok();
        cuts[0] += check_all(&before, STEP, &imported, FITTED, case.techniques);

        let dir = tempfile::tempdir().unwrap();
        before.unpack(dir.path());
        assert!(imported(dir.path()));
        let exported = |directory: &Path| export(&directory.join(FITTED), &directory.join(PLAIN)).is_ok();
        cuts[1] += check_all(&Image::pack(dir.path()), STEP, &exported, PLAIN, case.techniques);
    }
    println!("{cuts:?} power cuts of an import and an export");
    assert!(cuts.iter().all(|&cuts| cuts >= 6), "{cuts:?}");
}
