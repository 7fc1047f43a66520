//! Latencies of commands, and delays of their completions.

use std::time::Duration;

use flashwise_block::{LatencySummary, Nanos, Operation};
use serde::{Deserialize, Serialize};

use crate::Pacing;
use crate::pace::ReplyTimes;
use crate::report::RequestTimes;

/// How long the commands of one kind took on the drive's clock.
#[derive(Clone, Debug)]
pub(crate) struct KindTimes {
    latencies: LatencySummary,
    /// Of all of them, ns.
    sum_ns: u64,
}

/// Latencies of commands on the drive's clock, and of completions on the machine's.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// Reads, writes, flushes, trims.
    kinds: [KindTimes; 4],
    /// On the machine's clock, of all.
    pub(crate) machine: LatencySummary,
    /// How much longer clients wait than the drive takes.
    pub(crate) late: LatencySummary,
    pub(crate) at_once: AtOnce,
    pub(crate) failed: u64,
}

/// How soon clients send the next request.
#[derive(Clone, Debug)]
pub(crate) struct AtOnce {
    /// From the arrival of a request to that of the one that follows its completion.
    pub(crate) times: LatencySummary,
    /// Sum of the requests that its client had in flight then.
    pub(crate) under_way: u64,
}

impl AtOnce {
    /// Mean requests of clients in flight.
    pub(crate) fn depth(&self) -> f64 {
        self.under_way as f64 / self.times.count().max(1) as f64
    }
}

/// How long the requests of one kind took on the drive's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindLatency {
    /// Number of successful completions.
    pub requests: u64,
    /// All of them together, ns.
    pub sum_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 90th percentile, ns.
    pub p90_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// 99.9th percentile, ns.
    pub p99_9_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

/// How long requests took on the drive's clock, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindLatencies {
    /// Reads.
    pub reads: KindLatency,
    /// Writes, of bytes and of zeros.
    pub writes: KindLatency,
    /// Flushes.
    pub flushes: KindLatency,
    /// Trims.
    pub trims: KindLatency,
}

/// A longer value makes the summary grow: one allocation.
const MAX_RECORDED: Nanos = Nanos::secs(60);

impl Default for KindTimes {
    fn default() -> Self {
        Self { latencies: LatencySummary::up_to(MAX_RECORDED), sum_ns: 0 }
    }
}

impl Default for AtOnce {
    fn default() -> Self {
        Self { times: LatencySummary::up_to(MAX_RECORDED), under_way: 0 }
    }
}

/// With capacity for every likely time, so that recording one allocates no memory.
impl Default for Times {
    fn default() -> Self {
        let room = || LatencySummary::up_to(MAX_RECORDED);
        Self { kinds: Default::default(), machine: room(), late: room(), at_once: AtOnce::default(), failed: 0 }
    }
}

impl KindTimes {
    fn latencies(&self) -> KindLatency {
        let at = |percent| self.latencies.percentile(percent).0;
        KindLatency {
            requests: self.latencies.count(),
            sum_ns: self.sum_ns,
            p50_ns: at(50.0),
            p90_ns: at(90.0),
            p99_ns: at(99.0),
            p99_9_ns: at(99.9),
            max_ns: self.latencies.percentiles().max_ns,
        }
    }
}

impl Times {
    /// Records a successful completion.
    pub(crate) fn record(&mut self, operation: Operation, latency: Nanos) {
        let kind = match operation {
            Operation::Read => 0,
            Operation::Write | Operation::WriteZeroes => 1,
            Operation::Flush => 2,
            Operation::Trim => 3,
        };
        let kind: &mut KindTimes = &mut self.kinds[kind];
        kind.latencies.record(latency);
        kind.sum_ns = kind.sum_ns.saturating_add(latency.0);
    }

    /// Adds the values of another table.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            kind.latencies.merge(&other.latencies);
            kind.sum_ns = kind.sum_ns.saturating_add(other.sum_ns);
        }
        self.machine.merge(&other.machine);
        self.late.merge(&other.late);
        self.at_once.times.merge(&other.at_once.times);
        self.at_once.under_way += other.at_once.under_way;
        self.failed += other.failed;
    }

    /// How accurately completions kept to the drive's times.
    pub(crate) fn pacing(&self, round_trip: Duration, scale: f64) -> Pacing {
        let (at_once, depth) = (&self.at_once.times, self.at_once.depth());
        let answers = ReplyTimes { errors: &self.late, latencies: &self.machine, at_once, depth };
        Pacing::new(&answers, round_trip, scale)
    }

    /// For the report at the end.
    pub(crate) fn requests(&self) -> RequestTimes {
        let [reads, writes, flushes, trims] = self.kinds.each_ref().map(|kind| kind.latencies.percentiles());
        RequestTimes { reads, writes, flushes, trims }
    }

    /// For a snapshot of the running drive.
    pub(crate) fn latencies(&self) -> KindLatencies {
        let [reads, writes, flushes, trims] = self.kinds.each_ref().map(KindTimes::latencies);
        KindLatencies { reads, writes, flushes, trims }
    }
}
