//! Drives that compress in line: what databases gain that do not fill their blocks.
//!
//! ```text
//!   rows ─▶ real SQLite, real PostgreSQL ─▶ page images ─▶ drive that compresses ─▶ logical and physical bytes
//!   log records, packed or sparse ────────▶ drives that compress, that keep their buffer, that do neither ─▶ flash bytes
//!   real SQLite, plain or sparse log ─────▶ the same drives
//! ```
//!
//! - [`fill_factor`]: what room that is left in pages costs; [`rows`], [`sqlite_pages`], [`postgres`] make the pages;
//! - [`log`]: packed and sparse log; [`absorption`]: what keeps rewritten blocks from the flash;
//! - [`sqlite_log`]: SQLite's own log in both forms;
//! - [`claims`]: what is claimed beside it; [`drives`], [`place`]: what they use.
//!
//! Source: ScaleFlux's text on its CSD 2000, which compresses each block of 4 KiB by zlib; the sparse log is in Qiao et
//! al., "Closing the B+-tree vs. LSM-tree Write Amplification Gap on Modern Storage Hardware with Built-in Transparent
//! Compression", FAST 2022, too.

mod absorption;
mod claims;
mod drives;
mod fill_factor;
mod log;
mod place;
mod postgres;
mod rows;
mod sqlite_log;
mod sqlite_pages;

use crate::{Findings, Progress, StudyError, StudyOptions};

/// How much is run.
struct Scale {
    /// Rows of a table.
    rows: u32,
    /// Commits of a log.
    commits: u64,
    /// Inserts into SQLite.
    inserts: u32,
    /// How often each is run with another seed.
    seeds: u64,
}

impl Scale {
    fn of(options: &StudyOptions) -> Self {
        match options.quick {
            true => Self { rows: 2_000, commits: 1_024, inserts: 600, seeds: 3 },
            false => Self { rows: 8_000, commits: 4_096, inserts: 5_000, seeds: 5 },
        }
    }

    fn seeds(&self, options: &StudyOptions) -> Vec<u64> {
        (0..self.seeds).map(|n| options.seed.wrapping_add(n)).collect()
    }
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let scale = Scale::of(options);
    let fill = fill_factor::measure(&scale, options, progress)?;
    let logs = log::measure(&scale, options, progress)?;
    let absorption = absorption::measure(&scale, options, progress)?;
    let database = sqlite_log::measure(&scale, options, progress)?;
    let claims = vec![claims::fill_factor(&fill), claims::written_again(&logs, &absorption), claims::sparse(&logs)];
    let mut sections = fill.sections(&scale);
    sections.extend([logs.section(&scale), absorption.section(&scale), sqlite_log::section(&database, &scale)]);
    let limits = vec![
        fill.about_postgres(),
        "The text's 33 % more transactions with a fill factor of 75 are examined in the study fillfactor: they need a \
         running server under TPC-C."
            .to_owned(),
        "The text's data is unknown; here it is TPC-C's STOCK table, and the same table with words instead of random \
         strings. Only the table is measured: neither indexes nor the tables that TPC-C does not update."
            .to_owned(),
        "How a CSD 2000 buffers, packs and rounds compressed data is not published. Here compressed data is rounded \
         to 64 bytes and gets its place in the open superpage at once."
            .to_owned(),
        "Drives are new: garbage collection does not run, and flash bytes are those of the writes alone.".to_owned(),
    ];
    Ok(Findings { claims, sections, limits })
}
