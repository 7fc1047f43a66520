//! One stream of requests: what, when it starts, when it ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Synthetic, TraceReplay};

/// One stream of requests, as of one program.
///
/// It is either [`synthetic`](Self::synthetic) or a [`trace`](Self::trace). It ends at whichever comes first:
/// [`duration_ns`](Self::duration_ns), [`requests`](Self::requests), or the end of its trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// What it is called in reports; two flows of a workload never share a name. Default: `flow-N`, N its place in the
    /// file, from 1.
    #[serde(default)]
    pub name: String,
    /// NVMe queue class (weighted round robin with urgent class). Default: high.
    #[serde(default)]
    pub priority: Priority,
    /// The stream that the flow's writes name (NVMe's Streams directive), for drives that keep streams apart; 0 is
    /// none. Default: 0.
    #[serde(default, skip_serializing_if = "is_none")]
    pub stream: u16,
    /// When the flow starts, ns after the workload's start. Default: 0.
    #[serde(default)]
    pub start_ns: u64,
    /// Stop issuing so long after the flow's start, ns. A synthetic flow has this, `requests` or both. Default: no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub duration_ns: Option<u64>,
    /// Stop after so many requests, flushes counted. A synthetic flow has this, `duration_ns` or both. Default: no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// Requests drawn at random; exactly one of `synthetic` and `trace` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<Synthetic>,
    /// Requests of a recorded trace; exactly one of `synthetic` and `trace` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceReplay>,
}

/// Whether a stream is none.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(stream: &u16) -> bool {
    *stream == 0
}

impl Flow {
    /// A synthetic flow of so many requests; everything else has its default.
    pub fn synthetic(name: impl Into<String>, requests: u64, synthetic: Synthetic) -> Self {
        Self { name: name.into(), requests: Some(requests), synthetic: Some(synthetic), ..Self::default() }
    }

    /// A flow that replays a trace to its end; everything else has its default.
    pub fn replay(name: impl Into<String>, trace: TraceReplay) -> Self {
        Self { name: name.into(), trace: Some(trace), ..Self::default() }
    }
}

/// NVMe queue class. Urgent goes strictly first; the drive's weights arbitrate between the other three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Before every other class.
    Urgent,
    /// High weight.
    #[default]
    High,
    /// Medium weight.
    Medium,
    /// Low weight.
    Low,
}
