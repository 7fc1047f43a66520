//! write-aligned-stripes: what the log costs the flash, plain and with pages that start where stripes do.
//!
//! As the text has it, by inserts a transaction; then one thing varied at a time: SQLite's page, and what the drive is.

use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};
use flashwise_sqlite::LogLayout;

use super::bench::{Run, Setting};
use super::compare::{self, Compared, flash_of_logs, log_table};
use super::drives;
use super::scale::Scale;
use crate::{Progress, StudyError, StudyOptions};

/// What the text has, in per cent.
pub(super) const CLAIMED: f64 = -3.1;
/// The text's page.
const PAGE: u32 = 32 << 10;
const PER_TRANSACTION: [u32; 4] = [1, 10, 100, 1000];
const PAGES: [u32; 4] = [4 << 10, 8 << 10, 16 << 10, 32 << 10];

/// All runs.
pub(super) struct Aligned {
    /// By inserts a transaction.
    pub(super) batches: Vec<Compared>,
    /// By SQLite's page, one insert a transaction.
    pub(super) pages: Vec<Compared>,
    /// By drive, one insert a transaction.
    pub(super) drives: Vec<Compared>,
}

/// Plain, and aligned to the drive's stripe.
fn both(setting: Setting) -> Vec<Setting> {
    let log = LogLayout::Aligned { stripe: drives::stripe(&setting.drive) };
    vec![Setting { log: LogLayout::Plain, ..setting.clone() }, Setting { log, ..setting }]
}

/// Runs them.
pub(super) fn measure(scale: &Scale, options: &StudyOptions, progress: Progress<'_>) -> Result<Aligned, StudyError> {
    let text = scale.setting(drives::toshiba()?, PAGE);
    let inserts = |per_transaction| scale.inserts(per_transaction);
    let batch = |&per_transaction: &u32| {
        let setting = Setting { per_transaction, inserts: inserts(per_transaction), ..text.clone() };
        (per_transaction.to_string(), both(setting))
    };
    let page = |&page: &u32| (format!("{} KiB", page >> 10), both(Setting { page, ..text.clone() }));
    let drive = |variant: drives::Variant| {
        let setting = Setting { drive: variant.config, is_worn_in: variant.is_worn_in, ..text.clone() };
        // Aligned to the text's stripe whatever the variant's is: the log is what stays the same.
        let log = LogLayout::Aligned { stripe: drives::stripe(&text.drive) };
        (variant.name.to_owned(), vec![setting.clone(), Setting { log, ..setting }])
    };
    let run = |what, settings| compare::all(what, settings, scale.seeds, options, progress);
    Ok(Aligned {
        batches: run("aligned log: inserts", PER_TRANSACTION.iter().map(batch).collect())?,
        pages: run("aligned log: pages", PAGES.iter().map(page).collect())?,
        drives: run("aligned log: drives", drives::variants()?.into_iter().map(drive).collect())?,
    })
}

/// What the log would cost the host if nobody wrote the headers of frames, as in the text's prototype: a block of 4 KiB
/// less a commit.
fn without_headers(compared: &Compared) -> Measured {
    let (Some(plain), Some(aligned)) = (compared.variants.first(), compared.variants.get(1)) else {
        return Measured::default();
    };
    let without = |run: &Run| run.log.host - 4096.0 * run.commits;
    let ratios =
        plain.0.iter().zip(&aligned.0).map(|(plain, aligned)| 100.0 * (without(aligned) / plain.log.host - 1.0));
    crate::statistics::mean(&ratios.collect::<Vec<_>>())
}

impl Aligned {
    /// Flash bytes of the log beyond plain, by inserts a transaction, per cent.
    pub(super) fn by_inserts(&self) -> Vec<(String, Measured)> {
        flash_of_logs(&self.batches)
    }

    /// The same by drive.
    pub(super) fn by_drive(&self) -> Vec<(String, Measured)> {
        flash_of_logs(&self.drives)
    }

    /// The host's bytes of the prototype's log beyond plain, one insert a transaction, per cent.
    pub(super) fn of_the_prototype(&self) -> Measured {
        self.batches.first().map_or_else(Measured::default, without_headers)
    }

    /// The section.
    pub(super) fn section(&self, scale: &Scale) -> StudySection {
        let wear = |compared: &Compared| {
            vec![
                StudyCell::text(&compared.name),
                compared.mean(0, |run| run.log.padding / run.log.flash * 100.0).into(),
                compared.mean(1, |run| run.log.padding / run.log.flash * 100.0).into(),
                compared.mean(0, |run| run.flash() / run.host()).into(),
                compared.mean(1, |run| run.flash() / run.host()).into(),
                compared.mean(0, Run::erases).into(),
                compared.mean(1, Run::erases).into(),
            ]
        };
        StudySection {
            title: "Effect of an aligned log on the flash".to_owned(),
            text: vec![
                format!(
                    "Toshiba XG5, 32 KiB pages, WAL, synchronous FULL, exclusive locking, a checkpoint after 1024 \
                     frames; {} Aligned: pages start at multiples of the 64 KiB stripe, and frame headers are in \
                     blocks of their own.",
                    scale.text_words()
                ),
                "Plain, a frame of 32 KiB and 24 bytes touches nine 4 KiB blocks, the first of which it shares with \
                 the previous commit. Aligned, it is eight blocks and one of headers: the same number. The drive \
                 distributes stripes over units that program independently, and a flush pads the open part of each \
                 unit to a stripe. A plain commit crosses a stripe boundary about every second time, and then pads \
                 two stripes. An aligned one never does, but its block of headers is in a different stripe, which is \
                 padded too unless it belongs to the same unit."
                    .to_owned(),
                "In a database with a laid-out log, adjacent pages of a checkpoint are written as one request. So the \
                 wear effect of the technique is the column of the log; the column of all writes includes this as \
                 well."
                    .to_owned(),
            ],
            tables: vec![
                log_table(&self.batches, "By inserts per transaction.", "inserts"),
                log_table(&self.pages, "By SQLite's page size, one insert per transaction.", "page"),
                log_table(&self.drives, "By drive, one insert per transaction.", "drive"),
                StudyTable {
                    caption: "The same drives: padding, % of the log's flash bytes, plain and aligned; flash bytes ÷ \
                              host bytes of all; superblocks erased:"
                        .to_owned(),
                    columns: ["drive", "padding", "aligned", "flash÷host", "aligned", "erases", "aligned"]
                        .map(str::to_owned)
                        .to_vec(),
                    rows: self.drives.iter().map(wear).collect(),
                },
            ],
            charts: Vec::new(),
        }
    }
}
