//! What our engines' write amplification depends on: one thing varied at a time, everything else as in the base.

use flashwise_block::ByteSize;
use flashwise_report::study::{StudyCell, StudySection, StudyTable};
use flashwise_store::{Engine, LogForm};

use super::case::{Case, QUICK_COMMIT, Side, Tuning};
use super::runs::Runs;

/// One thing that is varied, for one engine.
struct Factor {
    engine: Engine,
    caption: &'static str,
    cases: Vec<(String, Case)>,
}

impl Factor {
    fn new<T>(
        engine: Engine,
        caption: &'static str,
        values: impl IntoIterator<Item = T>,
        of: impl Fn(T, Case) -> (String, Case),
    ) -> Self {
        let base = || Case::base(Side::Ours(engine));
        Self { engine, caption, cases: values.into_iter().map(|value| of(value, base())).collect() }
    }
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).to_string()
}

fn tuned(case: Case, tuning: Tuning) -> Case {
    Case { tuning, ..case }
}

/// The two ideas of the B⁻-tree's log and pages, each alone: the case, and its commits.
pub(super) fn idea(commit: u64, log: LogForm, has_deltas: bool) -> Case {
    let threshold = (!has_deltas).then_some(ByteSize(0));
    let tuning = Tuning { log: Some(log), threshold, ..Tuning::default() };
    Case { commit, ..tuned(Case::base(Side::Ours(Engine::BTree)), tuning) }
}

fn ideas() -> Factor {
    let all = [1_000, 1].into_iter().flat_map(|commit| {
        [(LogForm::Packed, false), (LogForm::Sparse, false), (LogForm::Packed, true), (LogForm::Sparse, true)]
            .map(|(log, has_deltas)| (commit, log, has_deltas))
    });
    Factor::new(Engine::BTree, "commits, form of the log, deltas of pages", all, |(commit, log, has_deltas), _| {
        let form = if log == LogForm::Sparse { "sparse" } else { "packed" };
        let deltas = if has_deltas { "deltas" } else { "whole pages" };
        let commits = if commit == 1 { "1" } else { "1,000" };
        (format!("{commits}, {form}, {deltas}"), idea(commit, log, has_deltas))
    })
}

/// The threshold of so many bytes; the store's own where it is `None`.
pub(super) fn threshold(bytes: Option<u64>, case: Case) -> Case {
    tuned(case, Tuning { threshold: bytes.map(ByteSize), ..Tuning::default() })
}

/// The filling of buckets.
pub(super) fn fill(percent: u32, case: Case) -> Case {
    tuned(case, Tuning { fill_percent: Some(percent), ..Tuning::default() })
}

/// Compressibility of values, in tenths.
pub(super) fn compressibility(tenths: usize, case: Case) -> Case {
    Case { compressibility_tenths: tenths, ..case }
}

/// Fillings of buckets that are tried, per cent.
pub(super) const FILLS: [u32; 5] = [10, 20, 30, 50, 80];
/// Thresholds that are tried, bytes.
pub(super) const THRESHOLDS: [u64; 5] = [512, 1_024, 1_536, 2_048, 3_072];
/// Values of which so much is random, in tenths.
const COMPRESSIBILITIES: [usize; 4] = [10, 20, 40, 80];
const VALUES: [usize; 4] = [32, 128, 512, 1_024];
const CACHES: [u64; 4] = [1, 5, 22, 50];

fn factors(is_quick: bool) -> Vec<Factor> {
    let tree = Engine::BTree;
    if is_quick {
        let thresholds = [Some(0), Some(1_024), None];
        return vec![Factor::new(tree, THRESHOLD, thresholds, |bytes, case| {
            (threshold_name(bytes), threshold(bytes, Case { commit: QUICK_COMMIT, ..case }))
        })];
    }
    let pages = [4 << 10, 8 << 10, 16 << 10, 32 << 10];
    let thresholds = [Some(0)].into_iter().chain(THRESHOLDS.map(Some)).chain([None]);
    let mut all = vec![
        ideas(),
        Factor::new(tree, "page", pages, |bytes, case| {
            (size(bytes), tuned(case, Tuning { page: Some(ByteSize(bytes)), ..Tuning::default() }))
        }),
        Factor::new(tree, THRESHOLD, thresholds, |bytes, case| (threshold_name(bytes), threshold(bytes, case))),
        Factor::new(tree, "segment D_s", [64, 128, 256, 512], |bytes, case| {
            (size(bytes), tuned(case, Tuning { segment: Some(ByteSize(bytes)), ..Tuning::default() }))
        }),
        Factor::new(Engine::Hash, "fill of buckets", FILLS, |percent, case| {
            (format!("{percent} %"), fill(percent, case))
        }),
    ];
    for engine in [tree, Engine::Hash] {
        all.extend([
            Factor::new(engine, "value", VALUES, |value_bytes, case| {
                (format!("{value_bytes} B"), Case { value_bytes, ..case })
            }),
            Factor::new(engine, "value ÷ its random bytes", COMPRESSIBILITIES, |tenths, case| {
                (format!("{}:1", tenths / 10), compressibility(tenths, case))
            }),
            Factor::new(engine, "cache ÷ keys and values", CACHES, |cache_percent, case| {
                (format!("{cache_percent} %"), Case { cache_percent, ..case })
            }),
        ]);
    }
    all
}

const THRESHOLD: &str = "threshold T";

fn threshold_name(bytes: Option<u64>) -> String {
    match bytes {
        None => "adapted by the store".to_owned(),
        Some(0) => "0 B: no deltas".to_owned(),
        Some(bytes) => size(bytes),
    }
}

/// Everything that is varied.
pub(super) fn cases(is_quick: bool) -> Vec<Case> {
    factors(is_quick).into_iter().flat_map(|factor| factor.cases).map(|(_, case)| case).collect()
}

/// A section for each engine.
pub(super) fn sections(runs: &Runs, is_quick: bool) -> Vec<StudySection> {
    let all = factors(is_quick);
    let section = |engine: Engine, title: &str| {
        let tables: Vec<StudyTable> =
            all.iter().filter(|factor| factor.engine == engine).map(|factor| table(factor, runs)).collect();
        let text = vec![
            "Flash bytes for each user byte, and physical bytes at the end ÷ those of keys and values. One thing is \
             varied at a time."
                .to_owned(),
        ];
        (!tables.is_empty()).then(|| StudySection { title: title.to_owned(), text, tables, charts: Vec::new() })
    };
    let tree = section(Engine::BTree, "What the B⁻-tree's depends on");
    let hash = section(Engine::Hash, "What the hash's depends on");
    tree.into_iter().chain(hash).collect()
}

fn table(factor: &Factor, runs: &Runs) -> StudyTable {
    let row = |(name, case): &(String, Case)| {
        vec![
            StudyCell::text(name),
            runs.cell(case, |outcome| outcome.uniform.flash / outcome.uniform.user.max(1.0)),
            runs.cell(case, |outcome| outcome.zipf.flash / outcome.zipf.user.max(1.0)),
            runs.cell(case, |outcome| outcome.space),
        ]
    };
    StudyTable {
        caption: format!("by {}", factor.caption),
        columns: ["", "uniform", "Zipf", "space"].map(str::to_owned).to_vec(),
        rows: factor.cases.iter().map(row).collect(),
    }
}
