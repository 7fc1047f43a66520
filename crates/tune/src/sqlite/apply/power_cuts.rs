//! Power cuts while changes are applied to a user's database: in place, and in a new file.

use std::path::Path;

use flashwise_block::{ByteSize, Silent};

use super::{Application, apply};
use crate::sqlite::settings::{DEFAULT_PAGE, DEFAULT_PAGE_CACHE, Journal, Settings};

#[path = "../../../../sqlite/tests/it/cut_fs/mod.rs"]
#[allow(dead_code, reason = "the tests of the VFS use more of it")]
mod cut_fs;

use cut_fs::layouts::{APP, CASES, FITTED, check_all};

/// Requests between two cuts, if only some are tried: of a new file, which takes some 300, and in place.
const STEPS: [usize; 2] = [41, 9];

fn journal(name: &str) -> Journal {
    if name == "wal" { Journal::Log } else { Journal::Delete }
}

#[test]
fn a_power_cut_while_changes_are_applied_leaves_the_database_and_all_or_nothing_of_a_new_file() {
    if !cut_fs::is_possible() {
        return;
    }
    let mut cuts = [0; 2];
    for case in &CASES {
        let before = case.image(DEFAULT_PAGE.bytes() as u32);
        let now = Settings { journal: journal(case.journals[0]), ..Settings::plain(DEFAULT_PAGE, DEFAULT_PAGE_CACHE) };
        let page = ByteSize(case.page.into());
        let in_place = Settings { page, journal: journal(case.journals[1]), ..now };
        let laid_out = Settings { vfs: case.options(), ..in_place };
        let applied = |directory: &Path, wanted: &Settings| {
            matches!(apply(&directory.join(APP), &now, wanted, &mut Silent), Ok(Application::Done(_)))
        };
        let told = case.techniques;
        cuts[0] += check_all(&before, STEPS[0], &|directory| applied(directory, &laid_out), FITTED, told);
        cuts[1] += check_all(&before, STEPS[1], &|directory| applied(directory, &in_place), APP, told);
    }
    println!("{cuts:?} power cuts of a new file, and in place");
    assert!(cuts.iter().all(|&cuts| cuts >= 9), "{cuts:?}");
}
