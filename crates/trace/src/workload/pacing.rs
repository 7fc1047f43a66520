//! When requests come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the requests of a synthetic flow come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pacing {
    /// Closed loop: always so many in flight; a completion makes room for the next request.
    Closed {
        /// Requests in flight, 1 to 65536.
        #[schemars(range(min = 1, max = 65536))]
        queue_depth: u32,
        /// Pause between a completion and the request that takes its place, ns. Default: 0.
        #[serde(default)]
        think_ns: u64,
    },
    /// Open loop: requests arrive whether or not the drive keeps up. A flush arrives together with the write that it
    /// follows.
    Open {
        /// Mean time from one arrival to the next, ns.
        #[schemars(range(min = 1))]
        interarrival_ns: u64,
        /// How the times are distributed.
        arrivals: Arrivals,
    },
}

/// How the times between arrivals are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// A Poisson process: exponentially distributed times, each rounded to whole nanoseconds.
    Poisson,
    /// Always the mean; the first request arrives at the flow's start.
    Constant,
}

/// When the requests of a trace come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReplayPacing {
    /// When the trace says; time 0 of the trace is the flow's start.
    #[default]
    Timestamps,
    /// Closed loop: always so many in flight; the trace's times are not used.
    Closed {
        /// Requests in flight, 1 to 65536.
        #[schemars(range(min = 1, max = 65536))]
        queue_depth: u32,
    },
}
