//! The measurements as tables.

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::Scale;
use super::cases::{DEFAULT, System};
use super::database::Kind;
use super::drives::DRIVES;
use super::runs::{Outcome, Runs, cell, cell_of, plain};
use super::work::FIELD_BYTES;

const KIB: f64 = 1024.0;

/// All sections.
pub(super) fn all(runs: &Runs, scale: &Scale, systems: &[System]) -> Vec<StudySection> {
    vec![factors(runs, scale), kinds(runs), on_drives(runs, systems)]
}

fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn factors(runs: &Runs, scale: &Scale) -> StudySection {
    let row = |(case, outcomes): &(super::cases::Case, Vec<Outcome>)| {
        let beside = match case.is_default() {
            true => StudyCell::text("1"),
            false => runs
                .ratio(case.system, case.name, DEFAULT, Outcome::flash)
                .map_or_else(|| StudyCell::text("–"), |ratio| cell_of(ratio, outcomes.len())),
        };
        vec![
            StudyCell::text(case.system.to_string()),
            StudyCell::text(case.name),
            cell(outcomes, |outcome| outcome.host() / KIB),
            cell(outcomes, Outcome::database),
            cell(outcomes, Outcome::factor),
            cell(outcomes, |outcome| outcome.flash() / KIB),
            cell(outcomes, |outcome| outcome.flash() / FIELD_BYTES as f64),
            beside,
        ]
    };
    let names = ["system", "settings", "written", "÷ user", "flash ÷ written", "flash", "÷ user", "÷ default"];
    StudySection {
        title: "Flash bytes of a transaction: user × database × drive".to_owned(),
        text: vec![format!(
            "A transaction changes {FIELD_BYTES} bytes of a row of 1,000. {} rows, {} transactions; {} run{} of each. \
             The drive is {} and in steady state.",
            flashwise_block::grouped(scale.rows.into()),
            flashwise_block::grouped(scale.transactions.into()),
            scale.runs,
            if scale.runs == 1 { "" } else { "s with other seeds, whose range follows the mean" },
            DRIVES[0].name,
        )],
        tables: vec![StudyTable {
            caption: "KiB that reach the drive per transaction, and for a byte that the user changed; flash bytes for \
                      one of these; KiB of flash, for a byte of the user's, and ÷ the same with default settings:"
                .to_owned(),
            columns: columns(names),
            rows: runs.cases.iter().map(row).collect(),
        }],
        charts: Vec::new(),
    }
}

fn kinds(runs: &Runs) -> StudySection {
    let rows = runs.cases.iter().map(|(case, outcomes)| {
        let kinds = (0..Kind::ALL.len()).map(|at| cell(outcomes, move |outcome| outcome.written[at] / KIB));
        [StudyCell::text(case.system.to_string()), StudyCell::text(case.name)]
            .into_iter()
            .chain(kinds)
            .chain([cell(outcomes, |outcome| outcome.used / 1e6)])
            .collect()
    });
    StudySection {
        title: "What the database writes".to_owned(),
        text: vec![
            "By what a page of the drive holds at the end: the log with the page images in it, the table and its \
             index, InnoDB's doublewrite buffer and undo log, and the rest: catalogs, the file system's journal and \
             metadata, and files that were deleted, such as SQLite's rollback journal."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "KiB per transaction; MB on the drive at the end, without what an empty database has:".to_owned(),
            columns: columns(["system", "settings", "log", "pages", "copies", "undo", "rest", "MB"]),
            rows: rows.collect(),
        }],
        charts: Vec::new(),
    }
}

fn on_drives(runs: &Runs, systems: &[System]) -> StudySection {
    let row = |(at, drive): (usize, &super::drives::Drive)| {
        let of = |system: &System| {
            let outcomes = runs.of(*system, DEFAULT).unwrap_or_default();
            let of = move |outcome: &Outcome| outcome.drives.get(at).copied().unwrap_or_default();
            [cell(outcomes, |outcome| of(outcome).flash), cell(outcomes, |outcome| of(outcome).moved)]
        };
        std::iter::once(StudyCell::text(drive.name)).chain(systems.iter().flat_map(of)).collect()
    };
    let stored = systems.iter().filter_map(|system| {
        let outcomes = runs.of(*system, DEFAULT)?;
        let share = outcomes.iter().map(|outcome| outcome.stored_share).sum::<f64>() / outcomes.len() as f64;
        Some(format!("{system} {}", plain(share)))
    });
    let names = systems.iter().flat_map(|system| [system.to_string(), "moved".to_owned()]);
    StudySection {
        title: "What the drive makes of it".to_owned(),
        text: vec![format!(
            "Each drive differs from the first in one thing. One that compresses (zlib, each 4 KiB) stores of a \
             written byte: {}. Streams by kind: the log, the table, copies with undo, and the rest each have one. Below 1 where \
             the end of a log is written again while it waits in the buffer.",
            stored.collect::<Vec<_>>().join(", ")
        )],
        tables: vec![StudyTable {
            caption: "Default settings: flash bytes for a byte written, and of these what garbage collection moves:"
                .to_owned(),
            columns: std::iter::once("drive".to_owned()).chain(names).collect(),
            rows: DRIVES.iter().enumerate().map(row).collect(),
        }],
        charts: Vec::new(),
    }
}
