//! Pools on many traces, and what they have in common: the way in which replacement policies are compared when one
//! trace proves nothing.
//!
//! ```text
//!   files ─▶ one PageTrace at a time ─▶ simulate ─▶ its results ─┬─▶ TraceResults
//!                                                               └─▶ PoolSummary of each policy and size, over all traces
//! ```
//!
//! The number of traces is not limited: one at a time is in memory. A file that cannot be read as a trace is named, and
//! the others are run.
//!
//! Misses are compared as shares of those of the first policy of the plan, on the same trace with the same size: so a
//! trace of ten million accesses counts as much as one of ten thousand. Percentiles over traces are those of the papers
//! on replacement (S3-FIFO: Yang et al., SOSP 2023, §5.2, which reports reductions from FIFO).

use std::fmt;
use std::path::{Path, PathBuf};

use flashwise_block::{ByteSize, grouped};
use flashwise_trace::TraceError;
use serde::Serialize;

use crate::error::PoolError;
use crate::simulate::{PoolPlan, PoolResult, simulate};
use crate::trace::{PageTrace, TraceOptions};

/// `schema` of a report on many traces.
pub const POOL_TRACES_SCHEMA: &str = "flashwise.pool-traces";
/// `schema_version` of a report on many traces.
pub const POOL_TRACES_SCHEMA_VERSION: u32 = 1;

/// A size of pools that each trace turns into frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PoolSize {
    /// So many frames.
    Frames(u64),
    /// So many bytes of pages.
    Bytes(u64),
    /// This share of the trace's different pages, above 0.
    Share(f64),
}

impl PoolSize {
    /// Frames on a trace of so many pages of so many bytes, at least one.
    pub fn frames(self, pages: u64, page_bytes: u64) -> u64 {
        match self {
            Self::Frames(frames) => frames,
            Self::Bytes(bytes) => (bytes / page_bytes).max(1),
            Self::Share(share) => ((pages as f64 * share).round() as u64).max(1),
        }
    }
}

impl fmt::Display for PoolSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frames(frames) => write!(f, "{} frames", grouped(*frames)),
            Self::Bytes(bytes) => write!(f, "{}", ByteSize(*bytes)),
            Self::Share(share) => write!(f, "{} % of the pages", (share * 1e6).round() / 1e4),
        }
    }
}

/// The pools on one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceResults {
    /// The file.
    pub trace: String,
    /// Accesses to pages in it.
    pub accesses: u64,
    /// Accesses that write.
    pub writes: u64,
    /// Different pages.
    pub pages: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// A pool each: by policy, then size, then the way to write back.
    pub results: Vec<PoolResult>,
}

/// A file that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadTrace {
    /// The file.
    pub trace: String,
    /// Why.
    pub reason: String,
}

/// Misses ÷ misses of the first policy, over traces. Below 1 is better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MissShares {
    /// Geometric mean.
    pub mean: f64,
    /// 10th percentile: on a tenth of the traces it is at most this.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
}

/// One policy with one size and way to write back, over all traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolSummary {
    /// The policy, with its parameters.
    pub policy: String,
    /// How it writes back; `None` for the classic way.
    pub variant: Option<String>,
    /// The size: its place in the report's list.
    pub size: usize,
    /// Traces.
    pub traces: usize,
    /// Traces on which no pool of this size has fewer misses.
    pub best_on: usize,
    /// Misses as shares of the first policy's; `None` where that has none on any trace.
    pub misses: Option<MissShares>,
    /// Misses ÷ accesses, mean over the traces.
    pub mean_miss_ratio: f64,
    /// Pages written back, on all traces.
    pub pages_written: u64,
    /// Time on the simulated drive, on all traces, ns; `None` without a drive.
    pub drive_ns: Option<u64>,
    /// Bytes that the write-backs programmed on its flash, on all traces; `None` without a drive.
    pub flash_bytes: Option<f64>,
}

/// All runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolTracesReport {
    /// Always [`POOL_TRACES_SCHEMA`].
    pub schema: &'static str,
    /// Always [`POOL_TRACES_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The simulated drive.
    pub drive: Option<String>,
    /// The policy that misses are shares of.
    pub baseline: String,
    /// Sizes of the pools: frames, bytes, or a share of a trace's pages.
    pub sizes: Vec<String>,
    /// By size, then the lowest mean of misses first.
    pub summary: Vec<PoolSummary>,
    /// Each trace, by name.
    pub traces: Vec<TraceResults>,
    /// Files that could not be read as a trace.
    pub unread: Vec<UnreadTrace>,
}

/// Runs a plan, whose own sizes do not count, on each of some files; `progress` is called with the file's name and
/// how far all of it is, from 0 to 1, by several threads.
///
/// # Errors
/// When no file can be read as a trace, a policy refuses a parameter, the drive cannot hold a trace's pages, or the
/// user stops it.
pub fn simulate_traces(
    files: &[PathBuf],
    options: &TraceOptions,
    plan: &PoolPlan,
    sizes: &[PoolSize],
    progress: &(dyn Fn(&str, f64) + Sync),
) -> Result<PoolTracesReport, PoolError> {
    let (mut traces, mut unread) = (Vec::new(), Vec::new());
    for (number, file) in files.iter().enumerate() {
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let advance = |part: f64| progress(&name, (number as f64 + part) / files.len() as f64);
        advance(0.0);
        match PageTrace::open(file, options) {
            Ok((trace, _)) => traces.push(on_trace(trace, name.clone(), plan, sizes, &advance)?),
            Err(error @ (PoolError::Interrupted | PoolError::Trace(TraceError::Interrupted))) => return Err(error),
            Err(error) => unread.push(UnreadTrace { trace: name, reason: without_path(&error, file) }),
        }
    }
    if traces.is_empty() {
        return Err(PoolError::NoTraces(unread.first().map(|unread| format!("{}: {}", unread.trace, unread.reason))));
    }
    Ok(PoolTracesReport {
        schema: POOL_TRACES_SCHEMA,
        schema_version: POOL_TRACES_SCHEMA_VERSION,
        drive: plan.drive.as_ref().map(|drive| drive.name.clone()),
        baseline: traces[0].results[0].policy.clone(),
        sizes: sizes.iter().map(PoolSize::to_string).collect(),
        summary: summary(&traces, sizes.len(), plan.write_backs.len()),
        traces,
        unread,
    })
}

fn on_trace(
    mut trace: PageTrace,
    name: String,
    plan: &PoolPlan,
    sizes: &[PoolSize],
    progress: &(dyn Fn(f64) + Sync),
) -> Result<TraceResults, PoolError> {
    let frames = sizes.iter().map(|size| size.frames(trace.pages() as u64, trace.page_bytes())).collect();
    let report = simulate(&mut trace, &PoolPlan { frames, ..plan.clone() }, progress)?;
    let (accesses, writes, pages, page_bytes) = (report.accesses, report.writes, report.pages, report.page_bytes);
    Ok(TraceResults { trace: name, accesses, writes, pages, page_bytes, results: report.results })
}

/// The reason alone: the name stands before it.
fn without_path(error: &PoolError, file: &Path) -> String {
    let words = error.to_string();
    let path = format!("{}: ", file.display());
    words.strip_prefix(&path).map(str::to_owned).unwrap_or(words)
}

/// Every cell of the plan over all traces, sorted.
fn summary(traces: &[TraceResults], sizes: usize, ways: usize) -> Vec<PoolSummary> {
    let cells = traces[0].results.len();
    let mut all: Vec<PoolSummary> = (0..cells).map(|cell| of_cell(traces, cell, sizes, ways)).collect();
    let mean = |summary: &PoolSummary| summary.misses.map_or(summary.mean_miss_ratio, |misses| misses.mean);
    all.sort_by(|a, b| a.size.cmp(&b.size).then(mean(a).total_cmp(&mean(b))));
    all
}

fn of_cell(traces: &[TraceResults], cell: usize, sizes: usize, ways: usize) -> PoolSummary {
    // By policy, then size, then the way to write back.
    let size = cell / ways % sizes;
    let of_size = |trace: &TraceResults| -> Vec<u64> {
        let same = trace.results.iter().enumerate().filter(|(other, _)| other / ways % sizes == size);
        same.map(|(_, result)| result.misses).collect()
    };
    let results = || traces.iter().map(|trace| (trace, &trace.results[cell]));
    // A pool has as many misses with ACE as without, or is compared with the classic one.
    let baseline = |trace: &TraceResults| trace.results[size * ways].misses;
    let shares = results().filter_map(|(trace, result)| {
        let baseline = baseline(trace);
        (baseline > 0).then(|| result.misses as f64 / baseline as f64)
    });
    let drive = |get: fn(&PoolResult, u64) -> Option<f64>| -> Option<f64> {
        results().map(|(trace, result)| get(result, trace.page_bytes)).sum()
    };
    let first = &traces[0].results[cell];
    PoolSummary {
        policy: first.policy.clone(),
        variant: first.variant.clone(),
        size,
        traces: traces.len(),
        best_on: results()
            .filter(|(trace, result)| of_size(trace).iter().all(|&misses| result.misses <= misses))
            .count(),
        misses: MissShares::of(shares.collect()),
        mean_miss_ratio: results().map(|(_, result)| result.miss_ratio).sum::<f64>() / traces.len() as f64,
        pages_written: results().map(|(_, result)| result.pages_written).sum(),
        drive_ns: drive(|result, _| result.drive_cost.as_ref().map(|cost| cost.elapsed_ns as f64)).map(|ns| ns as u64),
        flash_bytes: drive(PoolResult::flash_bytes),
    }
}

impl MissShares {
    fn of(mut shares: Vec<f64>) -> Option<Self> {
        /// A pool without a miss has no logarithm.
        const LEAST: f64 = 1e-6;
        shares.sort_by(f64::total_cmp);
        let at = |share: f64| shares.get(((shares.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied();
        let logarithms: f64 = shares.iter().map(|share| share.max(LEAST).ln()).sum();
        Some(Self { mean: (logarithms / shares.len() as f64).exp(), p10: at(0.1)?, p50: at(0.5)?, p90: at(0.9)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ace::Ace;
    use crate::policy::PolicySpec;
    use crate::prefetch::Prefetch;

    fn plan(policies: &[&str]) -> PoolPlan {
        PoolPlan {
            policies: policies.iter().map(|policy| PolicySpec::parse(policy).unwrap()).collect(),
            frames: Vec::new(),
            write_backs: vec![Ace::CLASSIC],
            prefetch: Prefetch::None,
            model: None,
            drive: None,
            jobs: 1,
        }
    }

    /// A loop over more pages than frames, on which recency is the worst and the reverse is right.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let round = |pages: u64| (0..pages * 20).map(|n| format!("R {}\n", n % pages)).collect::<String>();
        let skewed = (0..4000_u64).map(|n| format!("W {}\n", n * n % 97 % 40)).collect();
        vec![
            write("a.pages", round(40)),
            write("b.pages", skewed),
            write("c.pages", "this is\nno trace\n".to_owned()),
            write("d.pages", round(100)),
        ]
    }

    #[test]
    fn each_policy_has_a_summary_over_all_traces_and_a_file_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let options = TraceOptions::default();
        let sizes = [PoolSize::Share(0.1), PoolSize::Share(0.5)];
        let run = |policies: &[&str]| {
            simulate_traces(&files(folder.path()), &options, &plan(policies), &sizes, &|_, _| {}).unwrap()
        };
        let report = run(&["lru", "lfu", "arc"]);
        assert_eq!((report.traces.len(), report.unread.len(), report.unread[0].trace.as_str()), (3, 1, "c.pages"));
        assert_eq!(
            (report.baseline.as_str(), &report.sizes),
            ("lru", &["10", "50"].map(|share| format!("{share} % of the pages")).to_vec())
        );
        assert_eq!(report.traces[2].results[1].frames, 50, "half of the pages");
        assert_eq!(report.summary.len(), 6);
        assert!(report.summary.windows(2).all(|pair| {
            pair[0].size < pair[1].size || pair[0].misses.unwrap().mean <= pair[1].misses.unwrap().mean
        }));
        let lru = report.summary.iter().find(|summary| summary.policy == "lru" && summary.size == 1).unwrap();
        assert_eq!(lru.misses, Some(MissShares { mean: 1.0, p10: 1.0, p50: 1.0, p90: 1.0 }));
        for summary in &report.summary {
            let same = report.traces.iter().map(|trace| {
                let alike = |result: &&PoolResult| {
                    result.policy == summary.policy
                        && result.frames == sizes[summary.size].frames(trace.pages, trace.page_bytes)
                };
                trace.results.iter().find(alike).unwrap()
            });
            assert_eq!(summary.pages_written, same.map(|result| result.pages_written).sum::<u64>());
        }
        let best_on = report.summary.iter().filter(|summary| summary.size == 0).map(|summary| summary.best_on);
        assert!(best_on.sum::<usize>() >= 3, "a trace has a best pool");
    }

    #[test]
    fn percentiles_and_mean_are_of_shares() {
        let shares = MissShares::of(vec![2.0, 0.5, 1.0, 1.0]).unwrap();
        assert_eq!(shares, MissShares { mean: 1.0, p10: 0.5, p50: 1.0, p90: 2.0 });
        assert_eq!(MissShares::of(Vec::new()), None);
    }

    #[test]
    fn without_a_trace_there_is_no_report() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.pages");
        std::fs::write(&file, "no\ntrace\n").unwrap();
        let sizes = [PoolSize::Frames(10)];
        let error = simulate_traces(&[file], &TraceOptions::default(), &plan(&["lru"]), &sizes, &|_, _| {});
        assert!(error.unwrap_err().to_string().contains("x.pages"));
    }
}
