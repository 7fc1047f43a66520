//! Every drive, workload and policy of the text: classic, ACE, ACE with prefetching.

use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};

use super::drives::{Drive, RAW, WITH_FS};
use super::published;
use super::run::{Compared, POLICIES, Setting};
use super::workload::{Conditions, WORKLOADS};
use crate::{Progress, StudyError, StudyOptions, parallel};

/// The method that a cell is about; its place in `Method::three`.
pub(super) const CLASSIC: usize = 0;
pub(super) const ACE: usize = 1;
pub(super) const WITH_PREFETCH: usize = 2;

/// All comparisons, by drive, workload and policy.
pub(super) struct Matrix {
    cells: Vec<Compared>,
}

/// The least and the most of several means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Range {
    pub(super) fn of(values: impl IntoIterator<Item = Measured>) -> Self {
        let none = Self { least: f64::INFINITY, most: f64::NEG_INFINITY };
        values.into_iter().fold(none, |range, measured| Self {
            least: range.least.min(measured.value),
            most: range.most.max(measured.value),
        })
    }

    /// `12.3 to 17.8 %`.
    pub(super) fn percent(self) -> String {
        format!("{:.1} to {:.1} %", self.least, self.most)
    }
}

/// Runs all of it.
pub(super) fn measure(
    drives: &[Drive],
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Matrix, StudyError> {
    let mut settings = Vec::new();
    for drive in drives {
        for workload in WORKLOADS {
            let of = |policy| Setting::of(*conditions, workload, policy, &drive.config, drive.batch);
            settings.extend(POLICIES.iter().map(|&(_, policy)| of(policy)));
        }
    }
    let cells =
        parallel::map("four workloads", &settings, progress, |setting: &Setting<'_>| setting.compare(options.seed))?;
    Ok(Matrix { cells })
}

impl Matrix {
    /// One comparison, by places in `drives::text`, `WORKLOADS` and `POLICIES`.
    pub(super) fn cell(&self, drive: usize, workload: usize, policy: usize) -> &Compared {
        &self.cells[(drive * WORKLOADS.len() + workload) * POLICIES.len() + policy]
    }

    /// The four policies of a workload on a drive.
    pub(super) fn policies(&self, drive: usize, workload: usize) -> impl Iterator<Item = &Compared> {
        (0..POLICIES.len()).map(move |policy| self.cell(drive, workload, policy))
    }

    /// What a method saves over the policies.
    pub(super) fn saved(&self, drive: usize, workload: usize, method: usize) -> Range {
        Range::of(self.policies(drive, workload).map(|compared| compared.saved(method)))
    }
}

/// One table a drive.
pub(super) fn section(drives: &[Drive], matrix: &Matrix, conditions: &Conditions) -> StudySection {
    StudySection {
        title: "Four workloads, four policies, the paper's drives".to_owned(),
        text: vec![
            format!("{}. The pool starts empty; the file was written sequentially.", conditions.words()),
            "MS: 50 % reads, 50 % writes, 90 % of them to 10 % of the pages. WIS: 10/90, 90/10. RIS: 90/10, 90/10. \
             MU: 50/50, uniform. Time is simulated drive time in s, without CPU time, since the paper gives none. \
             Saved: % of the classic time, mean over seeds of the same accesses. \"Text\": savings of COW-X in the \
             authors' figure 7, on their P4510."
                .to_owned(),
            "The paper's NVMe drive, α = 3 and k_w = 8, combines α from one row of its table with k_w from another: \
             the raw drive has 3.0, 16, 6 (α, k_r, k_w), the drive behind a file system 2.8, 80, 8. Both were run, \
             with n_w = 8."
                .to_owned(),
        ],
        tables: drives.iter().enumerate().map(|(place, drive)| table(place, drive, matrix)).collect(),
        charts: Vec::new(),
    }
}

fn table(place: usize, drive: &Drive, matrix: &Matrix) -> StudyTable {
    let has_published = place == RAW || place == WITH_FS;
    let mut rows = Vec::new();
    for (workload, of) in WORKLOADS.iter().enumerate() {
        for (policy, &(name, _)) in POLICIES.iter().enumerate() {
            let cell = matrix.cell(place, workload, policy);
            let mut row = vec![
                StudyCell::text(format!("{} {name}", of.name)),
                cell.mean(CLASSIC, |run| run.seconds).into(),
                cell.saved(ACE).into(),
                cell.saved(WITH_PREFETCH).into(),
            ];
            if has_published {
                let saved = published::saved(name, workload);
                row.push(StudyCell::text(saved.map_or("–".to_owned(), |saved| format!("{saved:.0}"))));
            }
            rows.push(row);
        }
    }
    let mut columns = vec!["", "classic, s", "ACE, %", "ACE + prefetch, %"];
    columns.extend(has_published.then_some("text, %"));
    StudyTable {
        caption: format!("{} ({}), n_w = {}:", drive.name, drive.config.name, drive.batch),
        columns: columns.into_iter().map(str::to_owned).collect(),
        rows,
    }
}
