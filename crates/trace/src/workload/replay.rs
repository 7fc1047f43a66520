//! The requests of a recorded trace.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ReplayPacing;

/// The requests of a recorded trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceReplay {
    /// The trace, relative to the workload's folder. Compressed (gzip) or not, which the file itself tells.
    pub path: PathBuf,
    /// How the file is written.
    pub format: TraceFormat,
    /// Only the requests of this device number; `csv` has none. Default: all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// How often the trace is played. Each time starts at the last arrival of the time before. Default: 1.
    #[serde(default = "default_repeat")]
    #[schemars(range(min = 1))]
    pub repeat: u32,
    /// When requests come. Default: timestamps.
    #[serde(default)]
    pub pacing: ReplayPacing,
    /// The trace's times are multiplied by this: 0.5 is twice as fast. Default: 1.0.
    #[serde(default = "default_time_scale")]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub time_scale: f64,
    /// What to do with requests that end beyond the drive's capacity: false refuses them, true takes their offset modulo
    /// the capacity and moves those that still stick out back to the drive's end. Default: false.
    #[serde(default)]
    pub fold: bool,
    /// Bytes of one sector of the trace, for the formats that count in sectors. Default: 512.
    #[serde(default = "default_sector")]
    #[schemars(range(min = 1))]
    pub logical_block_bytes: u64,
}

impl TraceReplay {
    /// A trace, played once by its timestamps; everything else has its default.
    pub fn new(path: impl Into<PathBuf>, format: TraceFormat) -> Self {
        Self {
            path: path.into(),
            format,
            device: None,
            repeat: default_repeat(),
            pacing: ReplayPacing::default(),
            time_scale: default_time_scale(),
            fold: false,
            logical_block_bytes: default_sector(),
        }
    }
}

fn default_repeat() -> u32 {
    1
}

fn default_time_scale() -> f64 {
    1.0
}

fn default_sector() -> u64 {
    512
}

/// How a trace file is written: one request a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// MQSim ASCII: `time_ns device first_sector sectors op`; op 0 is a write, 1 a read.
    Mqsim,
    /// DiskSim ASCII: `time_ms device first_sector sectors flags`; time with decimals, flags hexadecimal, bit 0 set is a
    /// read.
    Disksim,
    /// flashwise's own CSV, as captured by the SQLite VFS: sizes in bytes, times in ns.
    Csv,
}
