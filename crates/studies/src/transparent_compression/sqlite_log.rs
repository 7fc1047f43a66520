//! SQLite's own log, plain and sparse, on a drive that compresses and on those that do not.

use flashwise_block::{ByteSize, grouped};
use flashwise_report::study::{StudyCell, StudySection, StudyTable};
use flashwise_sqlite::LogLayout;

use super::Scale;
use super::drives::Drive;
use crate::sqlite::{LogCost, log_cost};
use crate::{Progress, StudyError, StudyOptions, parallel, statistics};

/// Sizes of a page, bytes.
const PAGES: [u32; 3] = [1 << 10, 4 << 10, 32 << 10];

/// One drive and page, by seed: plain and sparse.
pub(super) struct Compared {
    drive: Drive,
    page: u32,
    runs: Vec<[LogCost; 2]>,
}

/// Runs all.
pub(super) fn measure(
    scale: &Scale,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Vec<Compared>, StudyError> {
    let kinds: Vec<_> = Drive::ALL.into_iter().flat_map(|drive| PAGES.map(|page| (drive, page))).collect();
    let seeds = scale.seeds(options);
    let work: Vec<_> = kinds.iter().flat_map(|&kind| seeds.iter().map(move |&seed| (kind, seed))).collect();
    let runs = parallel::map("SQLite's log", &work, progress, |&((drive, page), seed)| {
        let cost = |log| log_cost(drive.config()?, &options.host, page, log, scale.inserts, seed);
        Ok([cost(LogLayout::Plain)?, cost(LogLayout::Sparse { stripe: ByteSize::kib(4) })?])
    })?;
    let compared =
        |(&(drive, page), runs): (&(Drive, u32), &[[LogCost; 2]])| Compared { drive, page, runs: runs.to_vec() };
    Ok(kinds.iter().zip(runs.chunks(seeds.len())).map(compared).collect())
}

impl Compared {
    fn cells(&self) -> Vec<StudyCell> {
        let mean = |of: &dyn Fn(&[LogCost; 2]) -> f64| {
            StudyCell::from(statistics::mean(&self.runs.iter().map(of).collect::<Vec<_>>()))
        };
        vec![
            StudyCell::text(format!("{}, {} KiB", self.drive.name(), self.page >> 10)),
            mean(&|[plain, _]| plain.host_bytes / 1024.0),
            mean(&|[_, sparse]| sparse.host_bytes / 1024.0),
            mean(&|[plain, _]| plain.flash_bytes / 1024.0),
            mean(&|[_, sparse]| sparse.flash_bytes / 1024.0),
            mean(&|[plain, sparse]| 100.0 * (sparse.flash_bytes / plain.flash_bytes - 1.0)),
            mean(&|[plain, _]| plain.per_second),
            mean(&|[plain, sparse]| 100.0 * (sparse.per_second / plain.per_second - 1.0)),
        ]
    }
}

/// The section.
pub(super) fn section(all: &[Compared], scale: &Scale) -> StudySection {
    StudySection {
        title: "Gain for SQLite's log".to_owned(),
        text: vec![
            format!(
                "SQLite: WAL, synchronous FULL, a checkpoint after 1024 frames, {} inserts of 100 letters, one per \
                 transaction, {} seeds. Sparse, as with sparse-log=4k of the VFS: every frame starts a fresh 4 KiB \
                 block, and its header takes one more.",
                grouped(scale.inserts.into()),
                scale.seeds
            ),
            "A frame is a whole page. Plain, it crosses block boundaries, and a commit rewrites the block in which \
             the previous one ended."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Drive, page; KiB per commit written to the log by the host and programmed by the flash, plain \
                      and sparse; flash bytes compared with plain, %; commits a second, plain, and change with \
                      sparse, %:"
                .to_owned(),
            columns: ["", "host", "sparse", "flash", "sparse", "log, %", "commits/s", "%"].map(str::to_owned).to_vec(),
            rows: all.iter().map(Compared::cells).collect(),
        }],
        charts: Vec::new(),
    }
}
