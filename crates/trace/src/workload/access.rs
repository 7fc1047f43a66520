//! Where requests go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where requests go within their region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Access {
    /// Each aligned position at which the request stays inside the region, with the same probability.
    Random,
    /// One after the other; at the region's end back to its start.
    Sequential,
    /// The k-th most popular position has a probability proportional to 1 ÷ k^theta. Popular positions are scattered
    /// over the region by a fixed permutation, which depends on the number of positions only: two flows with the same
    /// region have the same hot positions.
    Zipf {
        /// Exponent: above 0, up to 10. YCSB's is 0.99.
        #[schemars(range(max = 10.0), extend("exclusiveMinimum" = 0.0))]
        theta: f64,
    },
    /// fio's `random_distribution=pareto:h`: a share `h` of the positions has a share 1 − `h` of the requests, and so
    /// on within it: 0.2 is the rule of 80 and 20. Popular positions are scattered over the region as with `zipf`.
    Pareto {
        /// Share of the positions: above 0, below 0.5.
        #[schemars(range(max = 0.5), extend("exclusiveMinimum" = 0.0))]
        h: f64,
    },
    /// YCSB's *latest*: writes append, one position after the other, and over at the region's end; reads go to what was
    /// written lately, the k-th latest position with a probability proportional to 1 ÷ k^theta. The region counts as
    /// written before the flow starts.
    Latest {
        /// Exponent: above 0, up to 10. YCSB's is 0.99.
        #[schemars(range(max = 10.0), extend("exclusiveMinimum" = 0.0))]
        theta: f64,
    },
    /// Zones in the order of their addresses, uniformly random within each. The classic 90/10 is
    /// `[{ size = 0.1, traffic = 0.9 }, { size = 0.9, traffic = 0.1 }]`.
    HotCold {
        /// The zones; their sizes add up to 1, and so does their traffic.
        #[schemars(length(min = 1, max = 1024))]
        zones: Vec<Zone>,
        /// Whether the positions of a zone are scattered over the region by a fixed permutation, in place of lying side
        /// by side. Default: false.
        #[serde(default)]
        shuffled: bool,
    },
}

/// A part of the region, and how much of the traffic goes there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Share of the region, above 0, up to 1.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub size: f64,
    /// Share of the requests, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub traffic: f64,
}
