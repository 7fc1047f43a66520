//! Our two engines for drives that compress, beside others: flash bytes programmed for each byte of keys and values.
//!
//! ```text
//!   workload (crates/store) ─┬─▶ B⁻-tree, hash ──────────────▶ drive in virtual time ─────────┐
//!    same keys, same commits ├─▶ SQLite ─▶ VFS, file system ─▶ drive in virtual time ─────────┼─▶ flash bytes, host bytes
//!                            └─▶ --peers PROGRAM: others' ───▶ the same drive, attached: ext4 ┘
//! ```
//!
//! - [`case`]: a combination of store, drive and workload, and what a run of it gave;
//! - [`drives`]: the drive that compresses, the same without compression, one that is nearly full;
//! - [`ours`], [`sqlite`], [`peers`]: how each is run;
//! - [`runs`]: all runs of a study, interleaved, and kept in a file so that a later call goes on with them;
//! - [`beside`], [`factors`], [`full`]: what is compared; [`claims`]: what is claimed beside it.
//!
//! Sources: Qiao et al., "Closing the B+-tree vs. LSM-tree Write Amplification Gap on Modern Storage Hardware with
//! Built-in Transparent Compression", FAST 2022; "KallaxDB: A Table-less Hash-based Key-Value Store on Storage Hardware
//! with Built-in Transparent Compression", DaMoN 2021.

mod beside;
mod case;
mod claims;
mod drives;
mod factors;
mod full;
mod ours;
mod peers;
mod runs;
mod sqlite;

use flashwise_block::grouped;

use crate::{Findings, Progress, StudyError, StudyOptions};
use runs::Runs;

/// How much is run.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Keys of a store.
    keys: u64,
    /// Updates of each distribution.
    updates: u64,
    /// Updates where each is a commit.
    single_updates: u64,
    /// How often each combination is run, with another seed each time.
    runs: u64,
}

impl Scale {
    const fn of(options: &StudyOptions) -> Self {
        match options.quick {
            true => Self { keys: 30_000, updates: 20_000, single_updates: 6_000, runs: 3 },
            false => Self { keys: 200_000, updates: 200_000, single_updates: 30_000, runs: 5 },
        }
    }

    fn words(&self) -> String {
        format!(
            "{} keys of 16 bytes in random order, {} a commit, then {} updates drawn uniformly and as many by Zipf's \
             law ({} where each is a commit). The figures are those of the updates; each is the median of {} runs \
             with other seeds, with the range of all of them.",
            grouped(self.keys),
            grouped(flashwise_store::workload::LOAD_COMMIT),
            grouped(self.updates),
            grouped(self.single_updates),
            self.runs
        )
    }
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    findings(&Scale::of(options), options, progress)
}

fn findings(scale: &Scale, options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let sides = case::Side::all(options)?;
    let mut cases = beside::cases(&sides, options.quick);
    cases.extend(factors::cases(options.quick));
    let runs = Runs::all(&cases, scale, options, progress)?;
    let full = full::measure(options, progress)?;
    let mut sections = beside::sections(&runs, &sides, scale, options);
    sections.extend(factors::sections(&runs, options.quick));
    sections.push(full::section(&full));
    let mut limits = vec![
        "The drives are new: garbage collection does not run, and flash bytes are those of the writes alone."
            .to_owned(),
        format!(
            "{} keys: a large store has more of them, and an LSM-tree more levels. RocksDB and fjall have memtables \
             of 256 KiB, so that their levels are those of a store 256 times as large.",
            grouped(scale.keys)
        ),
        "Our stores lie on the bare drive, SQLite on a model of ext4, other stores on ext4 itself: its journal is \
         among their bytes."
            .to_owned(),
        "One thread. Times are not compared.".to_owned(),
    ];
    if options.peers.is_none() {
        limits.push(
            "Only SQLite is beside our stores. Others are added with --peers: see benches/stores-beside.".to_owned(),
        );
    }
    limits.extend(runs.failures.iter().map(|why| format!("A run failed: {why}.")));
    Ok(Findings { claims: claims::all(&runs, &sides, options.quick), sections, limits })
}

#[cfg(test)]
mod tests {
    use flashwise_report::study::{StudyCell, StudyTable};

    use super::*;

    fn number(cell: &StudyCell) -> f64 {
        match cell {
            StudyCell::Measured(measured) => measured.value,
            other => panic!("{other:?} is no mean"),
        }
    }

    fn row<'a>(table: &'a StudyTable, name: &str) -> &'a [StudyCell] {
        &table.rows.iter().find(|row| row[0].words() == name).unwrap()[1..]
    }

    #[test]
    fn every_store_is_measured_under_every_condition_and_a_full_drive_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let options = StudyOptions { resume: Some(folder.path().join("runs")), ..StudyOptions::new(true, 1).unwrap() };
        let scale = Scale { keys: 2_000, updates: 2_000, single_updates: 100, runs: 1 };
        let found = findings(&scale, &options, &|_, _| {}).unwrap();
        let uniform = &found.sections[0].tables[0];
        assert_eq!(uniform.columns, ["", "B⁻-tree", "hash", "SQLite"]);
        let host: Vec<f64> = row(&found.sections[1].tables[0], "commits of 1").iter().map(number).collect();
        assert!(host[0] < host[2], "{host:?}");
        // Flash is programmed by the superpage: so small a run may end before the first.
        let all = [&found.sections[1], &found.sections[2]].into_iter().flat_map(|section| &section.tables);
        let cells = all.flat_map(|table| &table.rows).flat_map(|row| &row[1..]);
        assert!(cells.into_iter().all(|cell| number(cell) > 0.0), "{:#?}", found.sections);
        // A flush a commit, from each of ours.
        let flushes = row(&found.sections[1].tables[2], "commits of 1");
        assert!(flushes[..2].iter().all(|cell| number(cell) < 1.3), "{flushes:?}");
        let full = &found.sections.last().unwrap().tables[0];
        for engine in &full.rows {
            assert_eq!([engine[3].words(), engine[6].words()], ["yes", "yes"], "{engine:?}");
            assert!(engine[2].words().contains("full") || engine[2].words().contains("space"), "{engine:?}");
        }
        let again = findings(&scale, &options, &|_, _| {}).unwrap();
        assert_eq!((again.sections, again.claims), (found.sections, found.claims), "from the file of finished runs");
    }
}
