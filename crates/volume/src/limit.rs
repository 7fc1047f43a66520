//! A limit: what each request takes out of its buckets, and what happens where too little is in them.

use flashwise_block::{Nanos, Operation};
use serde::{Deserialize, Serialize};

use crate::bucket::Bucket;
use crate::config::{AtLimit, CostConfig, InstanceConfig, LimitConfig, TOKEN};

/// Buckets of a limit at most: that of the sustained rate, and that of the peak.
pub(crate) const BUCKETS_MAX: usize = 2;

/// A limit with its buckets.
pub(crate) struct Limit {
    config: LimitConfig,
    read: Cost,
    write: Cost,
    /// The bucket of the sustained rate and, where there is one, that of the peak.
    buckets: Vec<Bucket>,
    /// The run of adjacent requests that reads and writes continue.
    runs: [Run; 2],
    pub(crate) activity: LimitActivity,
    /// Until when somebody waited for it.
    exceeded_until_ns: u64,
}

/// What a limit did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitActivity {
    /// The limit's name.
    pub name: String,
    /// Whether it is the instance's.
    pub of_instance: bool,
    /// Requests that passed it.
    pub requests: u64,
    /// Of those, requests that found too few tokens.
    pub delayed: u64,
    /// How long they waited, all together.
    pub waited: Nanos,
    /// Time in which at least one request waited for it.
    pub exceeded: Nanos,
}

/// What a request takes, in parts of a token.
#[derive(Clone, Copy)]
struct Cost {
    per_request: i128,
    /// For 2³² bytes, so that small costs of a byte are exact enough.
    per_4_gib: i128,
}

/// Adjacent requests that are counted together.
#[derive(Clone, Copy, Default)]
struct Run {
    end: u64,
    bytes: u64,
}

/// What a bucket says to a request.
pub(crate) enum Admission {
    /// It leaves now.
    Now,
    /// It leaves then, and goes on to what comes next.
    At(u64),
    /// It tries again then.
    Again(u64),
}

impl Cost {
    fn new(config: CostConfig) -> Self {
        let parts = |tokens: f64| (tokens * TOKEN as f64).round() as i128;
        Self { per_request: parts(config.per_request), per_4_gib: parts(config.per_byte * 4_294_967_296.0) }
    }

    fn of(self, requests: u64, bytes: u64) -> i128 {
        self.per_request * i128::from(requests) + ((self.per_4_gib * i128::from(bytes)) >> 32)
    }
}

impl Limit {
    /// A limit of the volume, or of its instance, whose other volumes use part of it.
    pub(crate) fn new(config: &LimitConfig, instance: Option<&InstanceConfig>) -> Self {
        let used = instance.map_or(0, |instance| instance.used_per_s(config).round() as u64);
        let left = |rate_per_s: u64| rate_per_s.saturating_sub(used).max(1);
        let mut buckets = vec![Bucket::new(left(config.rate_per_s), config.size, config.filled_share)];
        buckets.extend(config.peak_per_s.map(|peak| Bucket::new(left(peak), 0, 1.0)));
        let (read, write) = config.costs();
        let activity =
            LimitActivity { name: config.name.clone(), of_instance: instance.is_some(), ..LimitActivity::default() };
        Self {
            config: config.clone(),
            read: Cost::new(read),
            write: Cost::new(write),
            buckets,
            runs: [Run::default(); 2],
            activity,
            exceeded_until_ns: 0,
        }
    }

    /// The same, of another volume of the instance, whose name stands with the limit's in reports.
    pub(crate) fn of_volume(mut self, volume: &str) -> Self {
        self.activity.name = format!("{volume}: {}", self.config.name);
        self
    }

    /// Whether it counts requests of this kind.
    pub(crate) fn covers(&self, operation: Operation) -> bool {
        self.config.covers(operation)
    }

    pub(crate) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Tokens in the bucket of the sustained rate.
    pub(crate) fn level(&self, now_ns: u64) -> f64 {
        self.buckets[0].level(now_ns)
    }

    /// What a request takes that arrives now.
    pub(crate) fn charge(&mut self, operation: Operation, offset: u64, length: u64) -> i128 {
        let (cost, run) = match operation {
            Operation::Read => (self.read, &mut self.runs[0]),
            _ => (self.write, &mut self.runs[1]),
        };
        let (unit, merge_from) = (self.config.unit_bytes, self.config.merge_from_bytes);
        if unit == 0 {
            return cost.of(1, length);
        }
        let continues = merge_from > 0 && length >= merge_from && offset == run.end;
        let before = if continues { run.bytes } else { 0 };
        *run = Run { end: offset + length, bytes: (before + length) % unit };
        cost.of((before + length).div_ceil(unit) - before.div_ceil(unit), length)
    }

    /// Counts from now on; what waits is counted from its arrival.
    pub(crate) fn reset_activity(&mut self) {
        let LimitActivity { name, of_instance, .. } = std::mem::take(&mut self.activity);
        self.activity = LimitActivity { name, of_instance, ..LimitActivity::default() };
    }

    /// A request that came at one time passed it at another.
    pub(crate) fn passed(&mut self, since_ns: u64, now_ns: u64) {
        let (activity, waited_ns) = (&mut self.activity, now_ns - since_ns);
        activity.requests += 1;
        activity.delayed += u64::from(waited_ns > 0);
        activity.waited += Nanos(waited_ns);
        // Requests pass in the order of time: what this one waited before the last one left is counted already.
        activity.exceeded += Nanos(now_ns - since_ns.max(self.exceeded_until_ns).min(now_ns));
        self.exceeded_until_ns = self.exceeded_until_ns.max(now_ns);
    }

    /// Asks one of its buckets.
    pub(crate) fn admit(&mut self, bucket: usize, now_ns: u64, cost: i128) -> Admission {
        let bucket = &mut self.buckets[bucket];
        if self.config.at_limit == AtLimit::Hold {
            let is_admitted = bucket.try_take(now_ns, cost);
            return if is_admitted { Admission::Now } else { Admission::Again(now_ns + self.config.hold_ns) };
        }
        match bucket.queue(now_ns, cost) {
            at_ns if at_ns > now_ns => Admission::At(at_ns),
            _ => Admission::Now,
        }
    }
}
