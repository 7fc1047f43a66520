//! Workloads: what a simulation or a benchmark asks of a drive, as one TOML file, and generators from it.
//!
//! A [`Workload`] is a few flows that run side by side, as the queues of several programs do. Each [`Flow`] is either
//! [`Synthetic`] (shares of reads, writes and trims, sizes, places, pacing) or the [`TraceReplay`] of a recorded trace.
//!
//! ```text
//!   mix.toml ── Workload::read ──▶ Workload ── check ──▶ flows
//!                                                          │  FlowSource::open   one each; the drive's capacity and
//!                                                          ▼                     logical block are known only here
//!   runner  ◀── FlowRequest ── FlowSource ◀── operations · sizes · places · arrivals  (synthetic)
//!                                         ◀── lines of the trace file                 (replay)
//! ```
//!
//! The keys, their units and defaults are in `docs/formats/workload.md`; [`workload_schema`] is the same as JSON
//! Schema.
//!
//! **Determinism.** Each flow draws from a stream of its own, derived from the workload's seed and the flow's index.
//! The same workload on the same drive gives the same requests to the bit, on every machine: the generator is
//! PCG64-MCG, bounded draws are Lemire's, and logarithms and exponentials come from `libm` in place of the system's.
//!
//! **Limits.** 1 MiB of TOML, 1,024 flows, 1,024 zones or sizes a list, 65,536 requests in flight a flow, trace lines
//! of 64 KiB. A trace is read as a stream, so that its length has no limit.
//!
//! What it is not: a runner. It says what to submit and when; who submits it keeps the queue depth, the think time and
//! a closed flow's duration.

mod access;
mod check;
mod content;
mod error;
mod fio;
mod flow;
mod named;
mod overrides;
mod pacing;
mod replay;
mod size;
mod source;
mod synthetic;

pub use crate::format::TraceFormat;
pub use access::{Access, Zone};
pub use content::Content;
pub use error::WorkloadError;
pub use fio::{FioJob, Rw};
pub use flow::{Flow, Priority};
pub use overrides::Overrides;
pub use pacing::{Arrivals, Pacing, ReplayPacing};
pub use replay::TraceReplay;
pub use size::{Size, WeightedSize};
pub use source::{FlowRequest, FlowSource, SourcePacing, Zipf};
pub use synthetic::Synthetic;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest workload file, bytes.
const MAX_TOML_BYTES: u64 = 1 << 20;

/// What a simulation or a benchmark asks of a drive.
///
/// ```
/// use flashwise_trace::workload::Workload;
///
/// let text = r#"
///     name = "random reads"
///
///     [[flows]]
///     requests = 1_000_000
///     synthetic.read_share = 1.0
///     synthetic.access = "random"
///     synthetic.size.fixed.bytes = 4096
///     synthetic.pacing.closed.queue_depth = 32
/// "#;
/// let workload = Workload::from_toml(text, "reads.toml")?;
/// assert_eq!(workload.flows[0].name, "flow-1");
/// # Ok::<(), flashwise_trace::workload::WorkloadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What it is called in reports.
    pub name: String,
    /// Seed of every random choice. Default: 1.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// What the data is like. Default: nothing that could be stored in less room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// What runs side by side; at least one.
    #[schemars(length(min = 1, max = 1024))]
    pub flows: Vec<Flow>,
}

fn default_seed() -> u64 {
    1
}

impl Workload {
    /// Reads a workload; `path` is for messages only. Flows without a name are called `flow-1`, `flow-2`, … by place.
    ///
    /// # Errors
    /// When the text is no workload, with the line, or when [`check`](Self::check) refuses it.
    pub fn from_toml(text: &str, path: &str) -> Result<Self, WorkloadError> {
        let mut workload: Self = toml::from_str(text).map_err(|e| WorkloadError::syntax(path, text, &e))?;
        for (index, flow) in workload.flows.iter_mut().enumerate() {
            if flow.name.is_empty() {
                flow.name = format!("flow-{}", index + 1);
            }
        }
        workload.check().map_err(|e| e.in_file(path))?;
        Ok(workload)
    }

    /// Reads a workload file.
    ///
    /// # Errors
    /// When it cannot be read, is longer than 1 MiB, or is refused by [`from_toml`](Self::from_toml).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, WorkloadError> {
        let name = path.as_ref().display().to_string();
        let failed = |e: std::io::Error| WorkloadError::unreadable(&name, e);
        let mut text = String::new();
        let file = File::open(&path).map_err(failed)?;
        file.take(MAX_TOML_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_TOML_BYTES {
            return Err(WorkloadError::unreadable(&name, "longer than 1 MiB, the limit for a workload"));
        }
        Self::from_toml(&text, &name)
    }

    /// The workload as TOML; [`from_toml`](Self::from_toml) reads the same workload back.
    ///
    /// # Errors
    /// When a trace's path is no UTF-8.
    pub fn to_toml(&self) -> Result<String, WorkloadError> {
        toml::to_string(self)
            .map_err(|e| WorkloadError::Unwritable { name: self.name.clone(), reason: e.to_string().trim().to_owned() })
    }

    /// Refuses what no drive could be asked for. What depends on the drive is checked by [`FlowSource::open`].
    ///
    /// # Errors
    /// At the first value that makes no sense, with its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        check::workload(self)
    }
}

/// The JSON Schema (2020-12) of a workload file.
pub fn workload_schema() -> serde_json::Value {
    schemars::schema_for!(Workload).to_value()
}

#[cfg(test)]
mod tests;
