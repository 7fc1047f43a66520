//! Misses and pages written beyond those of the classic pool.

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::drives::RAW;
use super::matrix::{ACE, Matrix, Range, WITH_PREFETCH};
use super::run::POLICIES;
use super::workload::WORKLOADS;

/// Misses beyond the classic ones of all policies and workloads, per cent.
pub(super) fn more(matrix: &Matrix, method: usize) -> Range {
    Range::of(matrix.of_drive(RAW).map(|compared| compared.misses_more(method)))
}

/// Pages written beyond the classic ones, per cent.
pub(super) fn written_more(matrix: &Matrix, method: usize) -> Range {
    Range::of(matrix.of_drive(RAW).map(|compared| compared.writes_more(method)))
}

/// Of LRU and Clock Sweep without prefetching: most misses beyond the classic ones.
pub(super) fn more_of_lru(matrix: &Matrix) -> f64 {
    let lru = (0..WORKLOADS.len()).map(|workload| matrix.cell(RAW, workload, 0).misses_more(ACE));
    Range::of(lru).most
}

/// The table. They depend on the accesses and on n_w alone, so that one drive stands for all with the same n_w.
pub(super) fn section(matrix: &Matrix) -> StudySection {
    let mut rows = Vec::new();
    for (workload, of) in WORKLOADS.iter().enumerate() {
        for (policy, &(name, _)) in POLICIES.iter().enumerate() {
            let cell = matrix.cell(RAW, workload, policy);
            rows.push(vec![
                StudyCell::text(format!("{} {name}", of.name)),
                cell.misses_more(ACE).into(),
                cell.writes_more(ACE).into(),
                cell.misses_more(WITH_PREFETCH).into(),
                cell.writes_more(WITH_PREFETCH).into(),
            ]);
        }
    }
    StudySection {
        title: "How many more misses and writes?".to_owned(),
        text: vec![
            "n_w = 8; per cent of the classic pool's. LRU does not look at dirty bits, so without prefetching it \
             misses exactly where the classic pool does. CFLRU and LRU-WSR do look, and what was cleaned early falls \
             early. A page that is written before it falls may be changed again and written twice."
                .to_owned(),
            "With prefetching, what is read ahead takes frames. In these workloads each access is drawn anew, so that \
             no prefetcher can know the next one."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "More misses and more pages written, %: ACE, then ACE with prefetching:".to_owned(),
            columns: ["", "misses", "written", "misses, pf", "written, pf"].map(str::to_owned).to_vec(),
            rows,
        }],
        charts: Vec::new(),
    }
}
