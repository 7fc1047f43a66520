//! concurrent-write-back: how long a checkpoint takes when so many runs of pages are written together.
//!
//! Source of the idea: Papon, Athanassoulis, ICDE 2023: as many pages are written back together as the drive writes at
//! once, k_w, in about the time of one.

use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};
use flashwise_ssd::DeviceConfig;
use flashwise_tune::Host;

use super::bench::{Run, Setting};
use super::compare::{self, Compared};
use super::drives;
use super::scale::Scale;
use crate::{Progress, StudyError, StudyOptions};

/// Runs that are written together; the first is unmodified SQLite.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// The place of k_w.
pub(super) const K_W: usize = 3;
const PAGES: [u32; 2] = [4 << 10, 32 << 10];
const PER_TRANSACTION: u32 = 100;

/// A checkpoint on the bare drive.
const BARE: &str = "A checkpoint writes the database's pages past the page cache; SQLite writes one, waits, and writes \
                    the next. From two on, adjacent pages become one request of up to 2 MiB, and this many requests \
                    are in flight together.";
/// A checkpoint in a file system.
const FILE_SYSTEM: &str = "A checkpoint copies the database's pages into the page cache, and its sync makes the kernel \
                           write them, many at a time. From two on, write-back of what is copied starts at once, so \
                           that copying and writing overlap.";

/// All runs, by drive and page; their variants are the depths.
pub(super) struct Checkpoints {
    pub(super) compared: Vec<Compared>,
    /// Whether there is no file system, whose write-back would do the same.
    is_bare: bool,
}

/// Runs them.
pub(super) fn measure(
    scale: &Scale,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Checkpoints, StudyError> {
    let drives = [("Toshiba XG5", drives::toshiba()?), ("P4510", DeviceConfig::preset("intel-p4510")?)];
    let mut settings = Vec::new();
    for (name, drive) in &drives {
        for page in PAGES {
            let of = |&depth: &u32| Setting {
                depth,
                rows: scale.rows,
                per_transaction: PER_TRANSACTION,
                inserts: scale.inserts(PER_TRANSACTION) / 4,
                ..scale.setting(drive.clone(), page)
            };
            settings.push((format!("{name}, {} KiB", page >> 10), DEPTHS.iter().map(of).collect()));
        }
    }
    let compared = compare::all("checkpoints", settings, scale.seeds, options, progress)?;
    Ok(Checkpoints { compared, is_bare: options.host == Host::Bare })
}

fn milliseconds(run: &Run) -> f64 {
    1e3 * run.checkpoints.seconds / run.checkpoint_count
}

fn inserts(run: &Run) -> f64 {
    run.inserts / run.seconds()
}

/// Time with one at a time ÷ time with so many.
fn speedup(compared: &Compared, depth: usize) -> Measured {
    let (Some(first), Some(other)) = (compared.variants.first(), compared.variants.get(depth)) else {
        return Measured::default();
    };
    let ratios = first.0.iter().zip(&other.0).map(|(first, other)| milliseconds(first) / milliseconds(other));
    crate::statistics::mean(&ratios.collect::<Vec<_>>())
}

impl Checkpoints {
    /// Why a checkpoint is not k_w times as fast.
    pub(super) fn because(&self) -> &'static str {
        match self.is_bare {
            true => {
                "Two effects combine: adjacent pages become one request, and requests overlap. Only the host's commands \
                 overlap, not the transfer into the drive's buffer, and once the buffer is full the flash's own rate \
                 decides. Commits still wait for the flush of the log."
            }
            false => {
                "Under a file system SQLite does not wait for each page: the kernel already writes many at a time, \
                 whatever the depth. What is left to gain is that writing starts before the sync. On the bare drive \
                 (--file-system none) the technique brings what the kernel brings here."
            }
        }
    }

    /// How many times as fast a checkpoint is with k_w, by drive and page.
    pub(super) fn speedups(&self) -> Vec<(String, Measured)> {
        self.compared.iter().map(|compared| (compared.name.clone(), speedup(compared, K_W))).collect()
    }

    /// Inserts a second beyond those with one at a time, by drive and page, per cent.
    pub(super) fn more_inserts(&self) -> Vec<(String, Measured)> {
        self.compared.iter().map(|compared| (compared.name.clone(), compared.more(K_W, inserts))).collect()
    }

    /// The section.
    pub(super) fn section(&self, scale: &Scale) -> StudySection {
        let mut rows = Vec::new();
        for compared in &self.compared {
            for (place, depth) in DEPTHS.iter().enumerate() {
                rows.push(vec![
                    StudyCell::text(format!("{}, {depth}", compared.name)),
                    compared.mean(place, milliseconds).into(),
                    speedup(compared, place).into(),
                    compared.mean(place, inserts).into(),
                    compared.more(place, inserts).into(),
                    compared.mean(place, |run| run.checkpoints.flash / run.checkpoints.host).into(),
                ]);
            }
        }
        let series = self.compared.iter().map(|compared| StudySeries {
            name: compared.name.clone(),
            points: DEPTHS
                .iter()
                .enumerate()
                .map(|(place, &depth)| StudyPoint { x: depth.into(), y: speedup(compared, place) })
                .collect(),
        });
        StudySection {
            title: "Gain from checkpoints that write several pages together".to_owned(),
            text: vec![format!(
                "{} rows exist before, so the pages of a checkpoint are scattered; {PER_TRANSACTION} inserts per \
                 transaction; {} seeds. {}",
                flashwise_block::grouped(scale.rows.into()),
                scale.seeds,
                if self.is_bare { BARE } else { FILE_SYSTEM }
            )],
            tables: vec![StudyTable {
                caption:
                    "Drive, page, runs together; time of a checkpoint in ms, and speedup; inserts a second, and gain \
                     over one at a time, %; flash bytes ÷ host bytes of checkpoints:"
                        .to_owned(),
                columns: ["", "ms", "times", "insert/s", "%", "flash÷host"].map(str::to_owned).to_vec(),
                rows,
            }],
            charts: vec![StudyChart {
                title: "A checkpoint, by runs together".to_owned(),
                x_label: "runs of pages written together".to_owned(),
                x_is_bytes: false,
                y_label: "times as fast".to_owned(),
                series: series.collect(),
            }],
        }
    }
}
