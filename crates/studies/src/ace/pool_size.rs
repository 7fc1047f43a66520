//! Memory pressure: the pool from a hundredth to a fifth of the file.

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::drives::Drive;
use super::matrix::{ACE, CLASSIC, WITH_PREFETCH};
use super::run::{Compared, POLICIES, Setting};
use super::sweep;
use super::workload::{Conditions, MS};
use crate::{Progress, StudyError, StudyOptions};

/// Frames ÷ pages of the file, per cent; the text's is 5.8.
const SHARES: [f64; 8] = [1.0, 2.0, 4.0, 5.8, 8.0, 9.5, 12.0, 20.0];

/// The comparisons, by share.
pub(super) struct PoolSizes {
    compared: Vec<Compared>,
}

/// Runs them.
pub(super) fn measure(
    drive: &Drive,
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<PoolSizes, StudyError> {
    let setting = |&share: &f64| {
        let frames = (conditions.pages() as f64 * share / 100.0).round() as usize;
        Setting { frames, ..Setting::of(*conditions, MS, POLICIES[0].1, &drive.config, drive.batch) }
    };
    let settings: Vec<_> = SHARES.iter().map(setting).collect();
    Ok(PoolSizes { compared: sweep::compare("pool size", &settings, options, progress)? })
}

impl PoolSizes {
    /// What ACE saves, per cent, with the least and with the largest pool.
    pub(super) fn saved_at_ends(&self) -> [f64; 2] {
        let last = self.compared.len() - 1;
        [0, last].map(|place| self.compared[place].saved(ACE).value)
    }

    /// The share of the pool, per cent, with which ACE saves most, and how much.
    pub(super) fn best(&self) -> (f64, f64) {
        let saved = SHARES.iter().zip(&self.compared).map(|(&share, compared)| (share, compared.saved(ACE).value));
        saved.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((SHARES[0], 0.0))
    }

    /// Seconds that ACE saves with the least and with the largest pool.
    pub(super) fn seconds_saved_at_ends(&self) -> [f64; 2] {
        let last = self.compared.len() - 1;
        [0, last].map(|place| self.compared[place].against_first(ACE, |run, first| first.seconds - run.seconds).value)
    }

    /// The table and the chart.
    pub(super) fn section(&self, drive: &Drive, conditions: &Conditions) -> StudySection {
        let row = |(share, compared): (&f64, &Compared)| {
            vec![
                StudyCell::text(format!("{share} %")),
                compared.mean(CLASSIC, |run| 100.0 * run.misses / run.accesses).into(),
                compared.mean(CLASSIC, |run| 100.0 * run.pages_written / run.misses).into(),
                compared.mean(CLASSIC, |run| run.seconds).into(),
                compared.saved(ACE).into(),
                compared.saved(WITH_PREFETCH).into(),
            ]
        };
        let line = |method| {
            let point = |(&share, compared): (&f64, &Compared)| (share, compared.speedup(method));
            SHARES.iter().zip(&self.compared).map(point).collect()
        };
        let columns = ["pool", "misses, %", "written, %", "classic, s", "ACE, %", "pf, %"];
        StudySection {
            title: "Effect of the pool size".to_owned(),
            text: vec![format!(
                "MS, LRU, {}, n_w = {}; pool size as a share of the file. {}. Written: pages written back, % of the \
                 misses. A page that stays longer is more likely to be dirty at eviction, so a larger pool writes \
                 more for each of its fewer misses, until it holds the hot tenth.",
                drive.name,
                drive.batch,
                conditions.words()
            )],
            tables: vec![StudyTable {
                caption: "Pool size:".to_owned(),
                columns: columns.map(str::to_owned).to_vec(),
                rows: SHARES.iter().zip(&self.compared).map(row).collect(),
            }],
            charts: vec![sweep::chart(
                "Memory pressure",
                "pool, % of the file",
                vec![("ACE".to_owned(), line(ACE)), ("ACE + prefetch".to_owned(), line(WITH_PREFETCH))],
            )],
        }
    }
}
