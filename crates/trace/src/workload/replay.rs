//! The requests of a recorded trace.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ReplayPacing, TraceFormat};

/// The requests of a recorded trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceReplay {
    /// The trace, relative to the workload's folder. Packed (gzip, bzip2, zstd, xz, tar) or not, which the file itself
    /// tells.
    pub path: PathBuf,
    /// How the file is written. Default: auto, what its first bytes speak for.
    #[serde(default)]
    pub format: TraceFormat,
    /// How a line is laid out: for the format columns, such as `time=1:s,op=2,offset=3:bytes,length=4:bytes`, and for
    /// what `blkparse -f` prints, its format. Default: the format's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Only the requests of this device number; some formats have none. Default: all requests.
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
    /// The byte of the drive at which the trace's byte 0 is. Default: 0.
    #[serde(default)]
    pub region_start_bytes: u64,
    /// Bytes from there on that may be touched. Default: the rest of the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub region_bytes: Option<u64>,
    /// What to do with requests that end beyond the region: false refuses them, true takes their offset modulo its
    /// length and moves those that still stick out back to its end. Default: false.
    #[serde(default)]
    pub fold: bool,
    /// Whether a request that starts or ends inside a logical block of the drive is widened to whole ones; else it is
    /// refused. Default: false.
    #[serde(default)]
    pub widen: bool,
    /// How many bad lines of the trace are passed over before it is refused. Default: 0.
    #[serde(default)]
    pub skip_bad_lines: u64,
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
            layout: None,
            device: None,
            repeat: default_repeat(),
            pacing: ReplayPacing::default(),
            time_scale: default_time_scale(),
            region_start_bytes: 0,
            region_bytes: None,
            fold: false,
            widen: false,
            skip_bad_lines: 0,
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
