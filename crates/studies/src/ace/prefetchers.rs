//! Prefetchers, one by one, where there is nothing to know and where there is.

use flashwise_bufferpool::Prefetch;
use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::drives::Drive;
use super::run::{Compared, Method, POLICIES, Setting};
use super::sweep;
use super::workload::{Conditions, MS, RIS, Workload};
use crate::{Progress, StudyError, StudyOptions};

const PREFETCHERS: [(&str, Prefetch); 4] = [
    ("none", Prefetch::None),
    ("sequential", Prefetch::Sequential),
    ("history", Prefetch::History),
    ("both", Prefetch::Both),
];

/// The text's RIS, and two whose accesses come in runs of pages, as scans have them.
const WORKLOADS: [Workload; 3] =
    [RIS, Workload { name: "RIS·8", run_length: 8, ..RIS }, Workload { name: "MS·8", run_length: 8, ..MS }];

/// The comparisons, by workload; the methods are classic and ACE by prefetcher.
pub(super) struct Prefetchers {
    compared: Vec<Compared>,
}

/// Runs them.
pub(super) fn measure(
    drive: &Drive,
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Prefetchers, StudyError> {
    let setting = |&workload: &Workload| {
        let ace = PREFETCHERS.iter().map(|&(_, prefetch)| Method::AcePrefetch(drive.batch, prefetch));
        let methods = std::iter::once(Method::Classic).chain(ace).collect();
        Setting { methods, ..Setting::of(*conditions, workload, POLICIES[0].1, &drive.config, drive.batch) }
    };
    let settings: Vec<_> = WORKLOADS.iter().map(setting).collect();
    Ok(Prefetchers { compared: sweep::compare("prefetchers", &settings, options, progress)? })
}

impl Prefetchers {
    /// What ACE saves in a workload without a prefetcher and with both, per cent.
    pub(super) fn none_and_both(&self, workload: usize) -> [f64; 2] {
        [1, PREFETCHERS.len()].map(|method| self.compared[workload].saved(method).value)
    }

    /// The table.
    pub(super) fn section(&self, drive: &Drive, conditions: &Conditions) -> StudySection {
        let mut rows = Vec::new();
        for (workload, compared) in WORKLOADS.iter().zip(&self.compared) {
            rows.extend(PREFETCHERS.iter().enumerate().map(|(place, (name, _))| {
                vec![
                    StudyCell::text(format!("{} {name}", workload.name)),
                    compared.saved(1 + place).into(),
                    compared.misses_more(1 + place).into(),
                    compared.mean(1 + place, |run| 100.0 * run.prefetched / run.misses).into(),
                    compared.mean(1 + place, |run| 100.0 * run.prefetched_used / run.prefetched.max(1.0)).into(),
                ]
            }));
        }
        StudySection {
            title: "Gain from prefetching".to_owned(),
            text: vec![format!(
                "LRU, {}, n_w = {}. {}. The paper mentions a sequential and a history-based prefetcher without their \
                 rules; \"prefetch\" in this study always means both. They run only when a dirty page is evicted, \
                 which is rare in RIS. RIS·8, MS·8: each draw is followed by the next seven pages.",
                drive.name,
                drive.batch,
                conditions.words()
            )],
            tables: vec![StudyTable {
                caption: "Saved, %; misses, %; prefetched, % of the misses; of these used, %:".to_owned(),
                columns: ["", "saved", "misses", "ahead", "used"].map(str::to_owned).to_vec(),
                rows,
            }],
            charts: Vec::new(),
        }
    }
}
