//! Misses and pages written beyond those of the classic pool, at the text's own scale.
//!
//! They depend on the accesses and on n_w alone, so that no drive is needed, and they shrink with the pool: of a pool
//! of n frames a batch looks ahead 8 ÷ n of its length.

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::matrix::{ACE, Range, WITH_PREFETCH};
use super::run::{Compared, Method, POLICIES, Pages, Run};
use super::workload::{Conditions, WORKLOADS, Workload};
use crate::{Progress, StudyError, StudyOptions, parallel};

/// Pages that are written together.
const BATCH: usize = 8;

/// The comparisons, by workload and policy.
pub(super) struct Misses {
    cells: Vec<Compared>,
}

/// Counts them.
pub(super) fn measure(
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Misses, StudyError> {
    let pages = Pages::of_file(conditions.pages());
    let of = |workload| POLICIES.iter().map(move |&(_, policy)| (workload, policy));
    let inputs: Vec<(Workload, &str)> = WORKLOADS.into_iter().flat_map(of).collect();
    let count = |&(workload, policy): &(Workload, &str)| {
        let once = |n: usize| {
            let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(n as u64);
            let accesses = workload.accesses(conditions, seed);
            let run = |method: Method| {
                let mut pool = pages.pool(policy, conditions.frames(), method)?;
                pool.replay(&accesses)?;
                Ok(Run::counted(pool.counts()))
            };
            Method::three(BATCH).into_iter().map(run).collect::<Result<Vec<Run>, StudyError>>()
        };
        let runs = (0..conditions.repetition.runs_min).map(once).collect::<Result<_, _>>()?;
        Ok(Compared { runs })
    };
    Ok(Misses { cells: parallel::map("misses", &inputs, progress, count)? })
}

impl Misses {
    /// Misses beyond the classic ones over all policies and workloads, per cent.
    pub(super) fn more(&self, method: usize) -> Range {
        Range::of(self.cells.iter().map(|compared| compared.misses_more(method)))
    }

    /// Pages written beyond the classic ones, per cent.
    pub(super) fn written_more(&self, method: usize) -> Range {
        Range::of(self.cells.iter().map(|compared| compared.writes_more(method)))
    }

    /// The table.
    pub(super) fn section(&self, conditions: &Conditions) -> StudySection {
        let row = |(n, cell): (usize, &Compared)| {
            let (workload, policy) = (WORKLOADS[n / POLICIES.len()].name, POLICIES[n % POLICIES.len()].0);
            vec![
                StudyCell::text(format!("{workload} {policy}")),
                cell.misses_more(ACE).into(),
                cell.writes_more(ACE).into(),
                cell.misses_more(WITH_PREFETCH).into(),
                cell.writes_more(WITH_PREFETCH).into(),
            ]
        };
        StudySection {
            title: "Additional misses and writes".to_owned(),
            text: vec![
                format!("n_w = {BATCH}; % of the classic pool's. {}.", conditions.words()),
                "LRU and Clock Sweep ignore dirty bits, so without prefetching they miss exactly where the classic \
                 pool does. CFLRU and LRU-WSR use dirty bits, so pages that are cleaned early are evicted early. A \
                 page that is written before its eviction may be modified again and written twice; the smaller the \
                 pool, the larger the effect of a batch of 8."
                    .to_owned(),
            ],
            tables: vec![StudyTable {
                caption: "Additional misses and pages written, %: ACE, then ACE with prefetching:".to_owned(),
                columns: ["", "misses", "written", "misses, pf", "written, pf"].map(str::to_owned).to_vec(),
                rows: self.cells.iter().enumerate().map(row).collect(),
            }],
            charts: Vec::new(),
        }
    }
}
