//! The same work on variants of a database, with several seeds: the first variant is what the others are compared with.

use flashwise_report::study::{Measured, StudyCell, StudyTable};

use super::bench::{self, Run, Runs, Setting};
use crate::{Progress, StudyError, StudyOptions, parallel};

/// One line of a table: a name, and runs by variant.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) name: String,
    pub(super) variants: Vec<Runs>,
}

/// Runs all settings, each with its variants, on all cores.
pub(super) fn all(
    what: &str,
    settings: Vec<(String, Vec<Setting>)>,
    seeds: u64,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Vec<Compared>, StudyError> {
    let seeds: Vec<u64> = (0..seeds).map(|n| options.seed.wrapping_add(n)).collect();
    let variants = settings.iter().flat_map(|(_, variants)| variants);
    let work: Vec<(&Setting, u64)> =
        variants.flat_map(|setting| seeds.iter().map(move |&seed| (setting, seed))).collect();
    let done = parallel::map(what, &work, progress, |&(setting, seed)| bench::run(setting, seed))?;
    let mut runs = done.chunks(seeds.len()).map(|runs| Runs(runs.to_vec()));
    let mut all = Vec::with_capacity(settings.len());
    for (name, variants) in settings {
        let count = variants.len();
        all.push(Compared { name, variants: runs.by_ref().take(count).collect() });
    }
    Ok(all)
}

impl Compared {
    /// The mean of a variant.
    pub(super) fn mean(&self, variant: usize, what: impl Fn(&Run) -> f64) -> Measured {
        self.variants.get(variant).map_or_else(Measured::default, |runs| runs.mean(what))
    }

    /// By how many per cent a variant has more than the first one.
    pub(super) fn more(&self, variant: usize, what: impl Fn(&Run) -> f64) -> Measured {
        match (self.variants.get(variant), self.variants.first()) {
            (Some(runs), Some(first)) => runs.more_than(first, what),
            _ => Measured::default(),
        }
    }

    /// Cells that compare the log of a variant with that of the first: KiB of the host and of the flash a commit, both
    /// ways; flash bytes of the log and of all, and commits a second, in per cent beyond the first.
    pub(super) fn log_cells(&self, variant: usize) -> Vec<StudyCell> {
        vec![
            self.mean(0, host_kib).into(),
            self.mean(variant, host_kib).into(),
            self.mean(0, flash_kib).into(),
            self.mean(variant, flash_kib).into(),
            self.more(variant, |run| run.log.flash).into(),
            self.more(variant, Run::flash).into(),
            self.mean(0, rate).into(),
            self.more(variant, rate).into(),
        ]
    }
}

/// Columns of [`Compared::log_cells`] behind the name.
const LOG_COLUMNS: [&str; 9] = ["", "host", "laid out", "flash", "laid out", "log, %", "all, %", "commits/s", "%"];
/// What they show.
const LOG_CAPTION: &str = "KiB per commit written to the log by the host and programmed by the flash, plain and laid \
                           out; flash bytes of the log and of all writes compared with plain, %; commits a second, \
                           plain, and change with the layout, %:";

/// A table of [`Compared::log_cells`], whose first column is called something.
pub(super) fn log_table(of: &[Compared], caption: &str, first: &str) -> StudyTable {
    let row = |compared: &Compared| [vec![StudyCell::text(&compared.name)], compared.log_cells(1)].concat();
    let columns = LOG_COLUMNS.iter().map(|&column| if column.is_empty() { first } else { column });
    StudyTable {
        caption: format!("{caption} {LOG_CAPTION}"),
        columns: columns.map(str::to_owned).collect(),
        rows: of.iter().map(row).collect(),
    }
}

/// Flash bytes of the logs beyond plain, per cent, with the names.
pub(super) fn flash_of_logs(compared: &[Compared]) -> Vec<(String, Measured)> {
    let of = |compared: &Compared| (compared.name.clone(), compared.more(1, |run| run.log.flash));
    compared.iter().map(of).collect()
}

/// KiB that the host writes to the log a commit.
pub(super) fn host_kib(run: &Run) -> f64 {
    run.log.host / run.commits / 1024.0
}

/// KiB that the flash programs for the log a commit.
pub(super) fn flash_kib(run: &Run) -> f64 {
    run.log.flash / run.commits / 1024.0
}

/// Commits a second of the drive's time, checkpoints included.
pub(super) fn rate(run: &Run) -> f64 {
    run.commits / run.seconds()
}

/// `−3.1`, with a sign and one digit.
pub(super) fn percent(measured: Measured) -> String {
    let half = (measured.high - measured.low) / 2.0;
    let sign = if measured.value < -0.05 { "−" } else { "+" };
    format!("{sign}{:.1} ± {half:.1} %", measured.value.abs())
}
