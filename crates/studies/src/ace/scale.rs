//! Does it matter that file, pool and run are smaller than the text's?

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::drives::{Drive, RAW};
use super::matrix::{ACE, CLASSIC, Matrix};
use super::run::{Compared, POLICIES, Setting};
use super::sweep;
use super::workload::{Conditions, WORKLOADS};
use crate::{Progress, StudyError, StudyOptions};

/// Runs LRU at another scale than the matrix.
pub(super) fn measure(
    drive: &Drive,
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Vec<Compared>, StudyError> {
    let setting = |&workload| Setting::of(*conditions, workload, POLICIES[0].1, &drive.config, drive.batch);
    let settings: Vec<_> = WORKLOADS.iter().map(setting).collect();
    sweep::compare("the text's scale", &settings, options, progress)
}

/// The table.
pub(super) fn section(at: &Conditions, here: &[Compared], matrix: &Matrix, of_matrix: &Conditions) -> StudySection {
    let mut rows = Vec::new();
    for (workload, here) in here.iter().enumerate() {
        for (conditions, compared) in [(at, here), (of_matrix, matrix.cell(RAW, workload, 0))] {
            rows.push(vec![
                StudyCell::text(format!("{}, ÷ {}", WORKLOADS[workload].name, conditions.divisor)),
                compared.mean(CLASSIC, |run| 100.0 * run.misses / run.accesses).into(),
                compared.mean(CLASSIC, |run| run.seconds).into(),
                compared.saved(ACE).into(),
                compared.writes_more(ACE).into(),
            ]);
        }
    }
    StudySection {
        title: "Effect of the scale".to_owned(),
        text: vec![format!(
            "LRU on the raw P4510. {}; below each, the same ÷ {}, the scale of the other sections. The shares and the \
             savings do not change.",
            at.words(),
            of_matrix.divisor
        )],
        tables: vec![StudyTable {
            caption: "By scale:".to_owned(),
            columns: ["", "misses, %", "classic, s", "ACE saves, %", "written more, %"].map(str::to_owned).to_vec(),
            rows,
        }],
        charts: Vec::new(),
    }
}
