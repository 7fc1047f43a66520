//! Reads and writes: from none of the accesses writing to all of them.

use flashwise_report::study::{StudyCell, StudySection, StudyTable};
use flashwise_ssd::DeviceConfig;

use super::drives::{Drive, LANES, as_argued, beside_argued};
use super::matrix::ACE;
use super::run::{Compared, Method, POLICIES, Setting};
use super::sweep;
use super::workload::{Conditions, MS, Workload};
use crate::{Progress, StudyError, StudyOptions};

/// Writes, per cent of the accesses.
const WRITES: [u32; 8] = [0, 10, 30, 50, 70, 80, 90, 100];

/// The comparisons of each drive, by share.
pub(super) struct WriteShares {
    drives: Vec<(String, Vec<Compared>)>,
}

/// Runs them.
pub(super) fn measure(
    drives: &[Drive],
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<WriteShares, StudyError> {
    let argued = as_argued(3.0)?;
    let named = beside_argued(&argued, drives);
    let batch = LANES as usize;
    let mut settings = Vec::new();
    for (_, config) in named {
        settings.extend(WRITES.iter().map(|&percent| {
            let workload = Workload { writes: f64::from(percent) / 100.0, ..MS };
            let methods = vec![Method::Classic, Method::Ace(batch)];
            Setting { methods, ..Setting::of(*conditions, workload, POLICIES[0].1, config, batch) }
        }));
    }
    let mut compared = sweep::compare("reads and writes", &settings, options, progress)?.into_iter();
    let drive =
        |(name, _): &(&str, &DeviceConfig)| ((*name).to_owned(), compared.by_ref().take(WRITES.len()).collect());
    Ok(WriteShares { drives: named.iter().map(drive).collect() })
}

impl WriteShares {
    /// Classic time ÷ time with ACE, the most of each drive, with its name.
    pub(super) fn most(&self) -> Vec<(&str, f64)> {
        let most = |all: &[Compared]| all.iter().map(|compared| compared.speedup(ACE).value).fold(0.0, f64::max);
        self.drives.iter().map(|(name, all)| (name.as_str(), most(all))).collect()
    }

    /// The table and the chart.
    pub(super) fn section(&self, conditions: &Conditions) -> StudySection {
        let row = |place: usize| {
            let dirty = &self.drives[0].1[place];
            let dirty = dirty.mean(0, |run| 100.0 * run.pages_written / run.misses).into();
            let speedups = self.drives.iter().map(|(_, all)| StudyCell::from(all[place].speedup(ACE)));
            [StudyCell::text(format!("{} %", WRITES[place])), dirty].into_iter().chain(speedups).collect()
        };
        let line = |all: &[Compared]| {
            (0..WRITES.len()).skip(1).map(|place| (f64::from(WRITES[place]), all[place].speedup(ACE))).collect()
        };
        let columns = ["writes", "written, %"].map(str::to_owned).into_iter();
        StudySection {
            title: "Effect of the share of writes".to_owned(),
            text: vec![format!(
                "90/10 skew, LRU, n_w = 8. {}. Classic time ÷ time with ACE. Written: pages written back, % of the \
                 misses. \"As argued\": eight dies, α = 3.",
                conditions.words()
            )],
            tables: vec![StudyTable {
                caption: "Share of the accesses that write:".to_owned(),
                columns: columns.chain(self.drives.iter().map(|(name, _)| name.clone())).collect(),
                rows: (0..WRITES.len()).map(row).collect(),
            }],
            charts: vec![sweep::chart(
                "Reads and writes",
                "writes, % of the accesses",
                self.drives.iter().map(|(name, all)| (name.clone(), line(all))).collect(),
            )],
        }
    }
}
