//! Requests drawn at random: which operations, where, how long, how fast.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Access, Pacing, Size};

/// Requests drawn at random.
///
/// What is neither a read nor a trim is a write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Synthetic {
    /// Share of reads among reads, writes and trims, 0 to 1. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_share: f64,
    /// Share of trims among reads, writes and trims, 0 to 1. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub trim_share: f64,
    /// Share of writes that are preceded by a read of the same bytes, 0 to 1: read-modify-write. The read is not
    /// counted in `read_share`; with more than one request in flight the write does not wait for it. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub modify_share: f64,
    /// A flush after each so many writes of this flow. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub flush_every: Option<u64>,
    /// Whether each write is durable at its completion (force unit access). Default: false.
    #[serde(default)]
    pub fua: bool,
    /// First byte of the drive that may be touched. Default: 0.
    #[serde(default)]
    pub region_start_bytes: u64,
    /// Bytes from there on that may be touched. Default: the rest of the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub region_bytes: Option<u64>,
    /// Where requests go.
    pub access: Access,
    /// How long requests are.
    pub size: Size,
    /// How long reads are, where that differs. Default: as `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_size: Option<Size>,
    /// Offsets on the drive are multiples of so many bytes. Default: the size where it is fixed, else 4096 or the
    /// drive's logical block, whichever is larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub align_bytes: Option<u64>,
    /// When requests come.
    pub pacing: Pacing,
}

impl Synthetic {
    /// Writes over the whole drive; everything else has its default.
    pub fn new(access: Access, size: Size, pacing: Pacing) -> Self {
        Self {
            read_share: 0.0,
            trim_share: 0.0,
            modify_share: 0.0,
            flush_every: None,
            fua: false,
            region_start_bytes: 0,
            region_bytes: None,
            access,
            size,
            read_size: None,
            align_bytes: None,
            pacing,
        }
    }
}
