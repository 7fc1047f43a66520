//! Logs of small pages: contain-write-in-flash-page, and the sparse log on a drive that does not compress.
//!
//! The text contains the writes of MariaDB's binary log. Here it is SQLite's log with pages so small that several
//! frames fit into a flash page.

use flashwise_block::ByteSize;
use flashwise_report::study::{Measured, StudySection};
use flashwise_sqlite::LogLayout;

use super::bench::Setting;
use super::compare::{self, Compared, flash_of_logs, log_table};
use super::drives;
use super::scale::Scale;
use crate::{Progress, StudyError, StudyOptions};

/// What the text has, in per cent.
pub(super) const CLAIMED: f64 = -6.7;
const PAGES: [u32; 2] = [512, 1024];
const PER_TRANSACTION: [u32; 2] = [1, 10];
const SPARSE_PAGES: [u32; 3] = [1 << 10, 4 << 10, 32 << 10];

/// All runs.
pub(super) struct SmallPages {
    pub(super) contained: Vec<Compared>,
    pub(super) sparse: Vec<Compared>,
}

/// Runs them.
pub(super) fn measure(scale: &Scale, options: &StudyOptions, progress: Progress<'_>) -> Result<SmallPages, StudyError> {
    let toshiba = drives::toshiba()?;
    let (mut one_page, mut survives) = (toshiba.clone(), toshiba.clone());
    drives::one_page_a_program(&mut one_page);
    drives::survives(&mut survives);
    let three =
        [("unmodified", toshiba), ("programs single pages", one_page), ("buffer survives a power cut", survives)];
    let (mut contained, mut sparse) = (Vec::new(), Vec::new());
    for (name, drive) in three {
        for page in PAGES {
            for per_transaction in PER_TRANSACTION {
                let plain = Setting { per_transaction, ..scale.setting(drive.clone(), page) };
                let flash_page = ByteSize(drive.flash.page_bytes);
                let log = LogLayout::Contained { flash_page };
                let variants = vec![plain.clone(), Setting { log, ..plain }];
                contained.push((format!("{name}, {page} B, {per_transaction}"), variants));
            }
        }
        for page in SPARSE_PAGES {
            let plain = scale.setting(drive.clone(), page);
            let log = LogLayout::Sparse { stripe: ByteSize::kib(4) };
            sparse.push((format!("{name}, {} KiB", page >> 10), vec![plain.clone(), Setting { log, ..plain }]));
        }
    }
    let run = |what, settings| compare::all(what, settings, scale.seeds, options, progress);
    Ok(SmallPages { contained: run("contained log", contained)?, sparse: run("sparse log", sparse)? })
}

impl SmallPages {
    /// Flash bytes of the contained log beyond plain, per cent.
    pub(super) fn contained(&self) -> Vec<(String, Measured)> {
        flash_of_logs(&self.contained)
    }

    /// The sections.
    pub(super) fn sections(&self, scale: &Scale) -> [StudySection; 2] {
        let section = |title: &str, text: Vec<String>, tables| StudySection {
            title: title.to_owned(),
            text,
            tables,
            charts: Vec::new(),
        };
        [
            section(
                "Gain from a log whose frames stay within flash pages",
                vec![
                    format!("Toshiba XG5 with 4 KiB flash pages, pages of 512 and 1024 bytes; {}", scale.words()),
                    "With 512 bytes, seven frames fit in a flash page. With 1024 bytes three frames would leave a \
                     quarter of it empty, so headers are stored separately and four pages fill it: each commit then \
                     also writes a block of headers. Both forms write whole 4 KiB blocks: a contained frame saves the \
                     second block of a frame that spans two."
                        .to_owned(),
                ],
                vec![log_table(&self.contained, "Drive, page, inserts per transaction.", "drive")],
            ),
            section(
                "Cost of a sparse log without compression",
                vec![
                    format!("Every frame starts a fresh 4 KiB block, and its header takes one more; {}", scale.words()),
                    "A compressing drive stores next to nothing for the zeros. This one stores them: one block more \
                     per frame, and for pages of less than 4 KiB the rest of a block. A sparse log is only useful on \
                     drives that compress."
                        .to_owned(),
                ],
                vec![log_table(&self.sparse, "Drive, page; one insert per transaction.", "drive")],
            ),
        ]
    }
}
