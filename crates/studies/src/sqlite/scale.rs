//! How much is run.

use flashwise_block::grouped;
use flashwise_sqlite::LogLayout;
use flashwise_ssd::DeviceConfig;
use flashwise_tune::Host;

use super::bench::Setting;
use crate::StudyOptions;

/// Inserts of the text.
const TEXT_INSERTS: u32 = 50_000;

/// The size of the runs on logs and checkpoints.
pub(super) struct Scale {
    /// Where databases are.
    host: Host,
    /// Inserts of a run as the text has it.
    inserts: u32,
    /// Inserts of a run in which one thing is varied.
    varied: u32,
    /// How often it is made with another seed.
    pub(super) seeds: u64,
    /// Rows that are there before, for checkpoints.
    pub(super) rows: u32,
}

impl Scale {
    pub(super) fn of(options: &StudyOptions) -> Self {
        let host = options.host.clone();
        match options.quick {
            true => Self { host, inserts: 1_500, varied: 1_500, seeds: 3, rows: 20_000 },
            false => Self { host, inserts: TEXT_INSERTS, varied: TEXT_INSERTS / 10, seeds: 3, rows: 200_000 },
        }
    }

    /// Inserts for a run with transactions of that length: the text's where it is run in full, and at least so many
    /// that there are some commits.
    pub(super) fn inserts(&self, per_transaction: u32) -> u32 {
        self.inserts.max(10 * per_transaction)
    }

    /// One insert a transaction, nothing there before, a plain log.
    pub(super) fn setting(&self, drive: DeviceConfig, page: u32) -> Setting {
        Setting {
            drive,
            host: self.host.clone(),
            is_worn_in: false,
            page,
            log: LogLayout::Plain,
            depth: 1,
            rows: 0,
            inserts: self.varied,
            per_transaction: 1,
        }
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        format!("{} inserts into an empty table, {} seeds.", grouped(self.varied.into()), self.seeds)
    }

    /// The same for the text's own runs.
    pub(super) fn text_words(&self) -> String {
        format!(
            "at least {} inserts if their number per transaction varies, else {}",
            grouped(self.inserts.into()),
            self.words()
        )
    }
}
