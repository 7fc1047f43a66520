//! The result of a sweep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Responses, Simulation};

/// `schema` of a result.
pub const SWEEP_SCHEMA: &str = "flashwise.sweep";
/// `schema_version` of a result.
pub const SWEEP_SCHEMA_VERSION: u32 = 1;

/// All cells of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Always [`SWEEP_SCHEMA`].
    pub schema: String,
    /// Always [`SWEEP_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of flashwise.
    pub flashwise_version: String,
    /// The grid's name.
    pub name: String,
    /// Cells that had been finished before and were not run again.
    pub resumed: u64,
    /// Cells whose simulation failed.
    pub failed: u64,
    /// The cells in the order of the grid.
    pub cells: Vec<SweepCell>,
}

/// One combination of values and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepCell {
    /// Its place in the grid, from 0.
    pub index: u64,
    /// Hash of everything that decides its result.
    pub key: String,
    /// The values that make it differ from the others, by key path.
    pub values: BTreeMap<String, toml::Value>,
    /// All flows together, then, where there are several, each flow; empty where the simulation failed.
    pub rows: Vec<SweepRow>,
    /// Why there are no rows.
    pub error: Option<String>,
}

/// Figures of one flow, or of all together; those of the drive are the same in all rows of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// The flow's name; `all` for all together.
    pub flow: String,
    /// Completed requests.
    pub requests: u64,
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Mean response time, ns.
    pub mean_response_ns: Option<f64>,
    /// Longest response time, ns.
    pub max_response_ns: Option<u64>,
    /// Median of the response time, ns.
    pub p50_ns: Option<u64>,
    /// 95th percentile, ns.
    pub p95_ns: Option<u64>,
    /// 99th percentile, ns.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile, ns.
    pub p99_9_ns: Option<u64>,
    /// 99.99th percentile, ns.
    pub p99_99_ns: Option<u64>,
    /// From the workload's start to the last completion, ns.
    pub elapsed_ns: u64,
    /// Write amplification.
    pub write_amplification: Option<f64>,
    /// The part of it that garbage collection caused.
    pub write_amplification_gc: Option<f64>,
    /// Collected superblocks.
    pub gc_executions: u64,
    /// Logical pages that they moved.
    pub gc_pages_moved: u64,
    /// Flash pages sensed.
    pub flash_pages_read: u64,
    /// Flash pages programmed.
    pub flash_pages_programmed: u64,
    /// Blocks erased.
    pub flash_blocks_erased: u64,
    /// Mean share of time that channels were busy.
    pub channel_utilisation: f64,
    /// Mean share of time that dies were busy.
    pub die_utilisation: f64,
    /// Mean share of time that planes were busy; absent from what an earlier version wrote.
    #[serde(default)]
    pub plane_utilisation: Option<f64>,
    /// Mean P/E cycles of a superblock.
    pub erase_count_mean: Option<f64>,
    /// P/E cycles of the most worn superblock.
    pub erase_count_max: Option<u32>,
    /// Logical pages that were read although they had never been written.
    pub unwritten_pages_read: u64,
}

impl Sweep {
    pub(super) fn new(name: String, resumed: u64, cells: Vec<SweepCell>) -> Self {
        Self {
            schema: SWEEP_SCHEMA.to_owned(),
            schema_version: SWEEP_SCHEMA_VERSION,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            name,
            resumed,
            failed: cells.iter().filter(|cell| cell.error.is_some()).count() as u64,
            cells,
        }
    }
}

/// The rows of one simulation.
pub(super) fn rows(simulation: &Simulation) -> Vec<SweepRow> {
    let mut rows = vec![row("all", &simulation.total, simulation)];
    if simulation.flows.len() > 1 {
        rows.extend(simulation.flows.iter().map(|flow| row(&flow.name, &flow.all, simulation)));
    }
    rows
}

fn row(flow: &str, responses: &Responses, s: &Simulation) -> SweepRow {
    let percentiles = responses.percentiles_ns;
    SweepRow {
        flow: flow.to_owned(),
        requests: responses.requests,
        iops: responses.iops,
        bytes_per_s: responses.bytes_per_s,
        mean_response_ns: responses.mean_response_ns,
        max_response_ns: responses.max_response_ns,
        p50_ns: percentiles.map(|p| p.p50),
        p95_ns: percentiles.map(|p| p.p95),
        p99_ns: percentiles.map(|p| p.p99),
        p99_9_ns: percentiles.map(|p| p.p99_9),
        p99_99_ns: percentiles.map(|p| p.p99_99),
        elapsed_ns: s.elapsed_ns,
        write_amplification: s.write_amplification,
        write_amplification_gc: s.write_amplification_by_cause.map(|causes| causes.gc),
        gc_executions: s.gc.executions,
        gc_pages_moved: s.gc.pages_moved,
        flash_pages_read: s.flash.reads,
        flash_pages_programmed: s.flash.programs,
        flash_blocks_erased: s.flash.erases,
        channel_utilisation: s.utilisation.channels.mean,
        die_utilisation: s.utilisation.dies.mean,
        plane_utilisation: Some(s.utilisation.planes.mean),
        erase_count_mean: s.erase_counts.as_ref().map(|counts| counts.mean),
        erase_count_max: s.erase_counts.as_ref().map(|counts| counts.max),
        unwritten_pages_read: s.unwritten_pages_read,
    }
}
