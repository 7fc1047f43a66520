//! What the data of a workload is like: it matters to drives that compress it or store equal pages once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The content of what is written, in fio's terms: `buffer_compress_percentage`, `dedupe_percentage`. A logical page of
/// the drive is taken by itself; drives that store everything by default do not look at it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Content {
    /// Percent of a page that compression saves. Default: 0.
    pub compress_percentage: f64,
    /// By how much what is left differs from page to page: uniformly by ± this percentage of it. Default: 0.
    pub compress_spread_percentage: f64,
    /// Percent of the pages that are zeros. Default: 0.
    pub zero_percentage: f64,
    /// Percent of the others that are equal to one of the last `dedupe_window_pages` pages that were not. Default: 0.
    pub dedupe_percentage: f64,
    /// See there. Default: 65,536.
    pub dedupe_window_pages: u32,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            compress_percentage: 0.0,
            compress_spread_percentage: 0.0,
            zero_percentage: 0.0,
            dedupe_percentage: 0.0,
            dedupe_window_pages: 65_536,
        }
    }
}
