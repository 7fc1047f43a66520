//! How long requests are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long requests are. Every length is a multiple of the drive's logical block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Size {
    /// All the same.
    Fixed {
        /// Length, bytes.
        #[schemars(range(min = 1))]
        bytes: u64,
    },
    /// Each whole number of logical blocks from `min_bytes` to `max_bytes`, both included, with the same probability.
    Uniform {
        /// Shortest length, bytes.
        #[schemars(range(min = 1))]
        min_bytes: u64,
        /// Longest length, bytes.
        #[schemars(range(min = 1))]
        max_bytes: u64,
    },
    /// Normally distributed, rounded to whole logical blocks; what is more than four deviations from the mean is taken
    /// as four deviations, what is shorter than one logical block as one.
    Normal {
        /// Mean length before rounding, bytes.
        #[schemars(range(min = 1))]
        mean_bytes: u64,
        /// Standard deviation before rounding, bytes.
        deviation_bytes: u64,
    },
    /// One of a list.
    Weighted(#[schemars(length(min = 1, max = 1024))] Vec<WeightedSize>),
}

impl Size {
    /// All requests of so many bytes.
    pub const fn fixed(bytes: u64) -> Self {
        Self::Fixed { bytes }
    }
}

/// A length, and how often it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedSize {
    /// Length, bytes.
    #[schemars(range(min = 1))]
    pub bytes: u64,
    /// Weight, at least 0; the probability is this over the sum of all weights.
    #[schemars(range(min = 0.0))]
    pub weight: f64,
}
