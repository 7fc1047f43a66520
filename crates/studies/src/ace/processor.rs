//! CPU time: what is left of the gain when an access takes time of its own, as in a database.

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::drives::RAW;
use super::matrix::{ACE, Matrix};
use super::workload::WORKLOADS;

/// CPU time of an access, µs.
const ACCESS_US: [f64; 7] = [0.0, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// The table: no new runs, the same ones with CPU time added to both sides.
pub(super) fn section(matrix: &Matrix) -> StudySection {
    let row = |&us: &f64| {
        let saved = |workload| {
            let measured = matrix.cell(RAW, workload, 0).against_first(ACE, |run, first| {
                let cpu = us * 1e-6 * first.accesses;
                100.0 * (first.seconds - run.seconds) / (first.seconds + cpu)
            });
            StudyCell::from(measured)
        };
        std::iter::once(StudyCell::text(format!("{us}"))).chain((0..WORKLOADS.len()).map(saved)).collect()
    };
    let names = WORKLOADS.iter().map(|workload| workload.name.to_owned());
    StudySection {
        title: "Effect of CPU time per access".to_owned(),
        text: vec![
            "The paper's runs in PostgreSQL include an unstated amount of CPU time. LRU, P4510 raw; this CPU time is \
             added to each access of both pools, not overlapped with the drive:"
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Saved by ACE, %, by CPU time per access, µs:".to_owned(),
            columns: std::iter::once("µs".to_owned()).chain(names).collect(),
            rows: ACCESS_US.iter().map(row).collect(),
        }],
        charts: Vec::new(),
    }
}
