//! What no drive could be asked for: values are refused here, before a generator exists.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::{Access, Content, Flow, Pacing, ReplayPacing, Size, Synthetic, TraceReplay, Workload, WorkloadError};

/// Most flows, zones or weighted sizes in a list.
const MAX_LIST: usize = 1024;
/// Most requests in flight: the entries of the longest NVMe queue.
const MAX_QUEUE_DEPTH: u32 = 65_536;
/// How far a sum of shares may be from 1.
const SUM_TOLERANCE: f64 = 1e-9;

/// Refuses values on behalf of one flow.
pub(super) struct FlowChecker<'a> {
    /// The flow's name.
    pub(super) flow: &'a str,
}

impl FlowChecker<'_> {
    /// The error for one value.
    pub(super) fn error(&self, key: &str, value: impl Display, reason: impl Into<String>) -> WorkloadError {
        WorkloadError::impossible(format!("flow '{}': {key}", self.flow), value, reason)
    }

    /// Refuses a value unless `holds`.
    pub(super) fn require(
        &self,
        key: &str,
        value: impl Display,
        holds: bool,
        reason: &str,
    ) -> Result<(), WorkloadError> {
        if holds { Ok(()) } else { Err(self.error(key, value, reason)) }
    }

    fn incomplete(&self, reason: &str) -> WorkloadError {
        WorkloadError::incomplete(format!("flow '{}'", self.flow), reason)
    }

    fn share(&self, key: &str, share: f64) -> Result<(), WorkloadError> {
        self.require(key, share, (0.0..=1.0).contains(&share), "must be between 0 and 1")
    }

    fn sum(&self, key: &str, shares: impl Iterator<Item = f64>) -> Result<(), WorkloadError> {
        let sum: f64 = shares.sum();
        self.require(key, sum, (sum - 1.0).abs() <= SUM_TOLERANCE, "the shares of all zones must add up to 1")
    }

    fn list(&self, key: &str, entries: usize) -> Result<(), WorkloadError> {
        let reason = format!("must have 1 to {MAX_LIST} entries");
        self.require(key, format_args!("({entries} entries)"), (1..=MAX_LIST).contains(&entries), &reason)
    }

    fn at_least_one(&self, key: &str, value: Option<u64>, reason: &str) -> Result<(), WorkloadError> {
        self.require(key, 0, value != Some(0), reason)
    }

    fn queue_depth(&self, key: &str, depth: u32) -> Result<(), WorkloadError> {
        let reason = format!("must be between 1 and {MAX_QUEUE_DEPTH}");
        self.require(key, depth, (1..=MAX_QUEUE_DEPTH).contains(&depth), &reason)
    }
}

/// Refuses a workload that makes no sense.
pub(super) fn workload(workload: &Workload) -> Result<(), WorkloadError> {
    if workload.flows.is_empty() || workload.flows.len() > MAX_LIST {
        let (count, reason) = (workload.flows.len(), format!("must have 1 to {MAX_LIST} flows"));
        return Err(WorkloadError::impossible("flows", format_args!("({count} flows)"), reason));
    }
    workload.content.as_ref().map_or(Ok(()), content)?;
    let mut names = BTreeSet::new();
    for flow in &workload.flows {
        self::flow(flow)?;
        if !names.insert(&flow.name) {
            let key = format!("flow '{}': name", flow.name);
            return Err(WorkloadError::impossible(key, &flow.name, "another flow has this name; names must be unique"));
        }
    }
    Ok(())
}

/// Refuses data that there cannot be.
fn content(content: &Content) -> Result<(), WorkloadError> {
    for (key, percentage) in [
        ("content.compress_percentage", content.compress_percentage),
        ("content.compress_spread_percentage", content.compress_spread_percentage),
        ("content.zero_percentage", content.zero_percentage),
        ("content.dedupe_percentage", content.dedupe_percentage),
    ] {
        if !(0.0..=100.0).contains(&percentage) {
            return Err(WorkloadError::impossible(key, percentage, "must be between 0 and 100"));
        }
    }
    match content.dedupe_window_pages {
        0 => Err(WorkloadError::impossible("content.dedupe_window_pages", 0, "must be at least 1")),
        _ => Ok(()),
    }
}

/// Refuses a flow that makes no sense on any drive.
pub(super) fn flow(flow: &Flow) -> Result<(), WorkloadError> {
    let checker = FlowChecker { flow: &flow.name };
    checker.at_least_one("duration_ns", flow.duration_ns, "must be above 0")?;
    checker.at_least_one("requests", flow.requests, "must be at least 1")?;
    match (&flow.synthetic, &flow.trace) {
        (Some(_), Some(_)) => Err(checker.incomplete("has both synthetic and trace: keep one")),
        (None, None) => Err(checker.incomplete("has neither synthetic nor trace: give one")),
        (Some(_), None) if flow.requests.is_none() && flow.duration_ns.is_none() => {
            Err(checker.incomplete("would never end: set requests, duration_ns or both"))
        }
        (Some(it), None) => synthetic(&checker, it),
        (None, Some(it)) => replay(&checker, it),
    }
}

fn synthetic(checker: &FlowChecker<'_>, it: &Synthetic) -> Result<(), WorkloadError> {
    checker.share("synthetic.read_share", it.read_share)?;
    checker.share("synthetic.trim_share", it.trim_share)?;
    let both = it.read_share + it.trim_share;
    let reason = "must be at most 1 together; the rest are writes";
    checker.require("synthetic.read_share + trim_share", both, both <= 1.0 + SUM_TOLERANCE, reason)?;
    checker.share("synthetic.modify_share", it.modify_share)?;
    checker.at_least_one("synthetic.flush_every", it.flush_every, "must be at least 1")?;
    checker.at_least_one("synthetic.region_bytes", it.region_bytes, "must be at least 1 byte")?;
    checker.at_least_one("synthetic.align_bytes", it.align_bytes, "must be at least 1 byte")?;
    access(checker, &it.access)?;
    size(checker, "synthetic.size", &it.size)?;
    it.read_size.iter().try_for_each(|read| size(checker, "synthetic.read_size", read))?;
    pacing(checker, it.pacing)
}

fn access(checker: &FlowChecker<'_>, access: &Access) -> Result<(), WorkloadError> {
    match access {
        Access::Random | Access::Sequential => Ok(()),
        &Access::Zipf { theta } => {
            let reason = "must be above 0 and at most 10; instead of 0 use access = \"random\"";
            checker.require("synthetic.access.zipf.theta", theta, theta > 0.0 && theta <= 10.0, reason)
        }
        &Access::Latest { theta } => {
            let reason = "must be above 0 and at most 10";
            checker.require("synthetic.access.latest.theta", theta, theta > 0.0 && theta <= 10.0, reason)
        }
        &Access::Pareto { h } => {
            let reason = "must be above 0 and below 0.5; 0.2 is the 80/20 rule";
            checker.require("synthetic.access.pareto.h", h, h > 0.0 && h < 0.5, reason)
        }
        Access::HotCold { zones, .. } => {
            checker.list("synthetic.access.hot-cold.zones", zones.len())?;
            for (i, zone) in zones.iter().enumerate() {
                let key = |name| format!("synthetic.access.hot-cold.zones[{i}].{name}");
                checker.share(&key("size"), zone.size)?;
                checker.require(&key("size"), zone.size, zone.size > 0.0, "must be above 0")?;
                checker.share(&key("traffic"), zone.traffic)?;
            }
            checker.sum("synthetic.access.hot-cold: sum of size", zones.iter().map(|z| z.size))?;
            checker.sum("synthetic.access.hot-cold: sum of traffic", zones.iter().map(|z| z.traffic))
        }
    }
}

fn size(checker: &FlowChecker<'_>, place: &str, size: &Size) -> Result<(), WorkloadError> {
    let named = |key: &str| format!("{place}.{key}");
    let long = |key: &str, bytes: u64| checker.require(&named(key), bytes, bytes > 0, "must be at least 1 byte");
    match size {
        &Size::Fixed { bytes } => long("fixed.bytes", bytes),
        &Size::Uniform { min_bytes, max_bytes } => {
            long("uniform.min_bytes", min_bytes)?;
            let reason = format!("must be at least min_bytes = {min_bytes}");
            checker.require(&named("uniform.max_bytes"), max_bytes, max_bytes >= min_bytes, &reason)
        }
        &Size::Normal { mean_bytes, deviation_bytes } => {
            long("normal.mean_bytes", mean_bytes)?;
            let longest = deviation_bytes.checked_mul(4).and_then(|spread| spread.checked_add(mean_bytes));
            let reason = "the mean plus four deviations exceeds the size of any drive";
            checker.require(&named("normal.deviation_bytes"), deviation_bytes, longest.is_some(), reason)
        }
        Size::Weighted(sizes) => {
            checker.list(&named("weighted"), sizes.len())?;
            for (i, size) in sizes.iter().enumerate() {
                let key = |name| format!("weighted[{i}].{name}");
                long(&key("bytes"), size.bytes)?;
                let finite = size.weight.is_finite() && size.weight >= 0.0;
                checker.require(&named(&key("weight")), size.weight, finite, "must be 0 or above")?;
            }
            let sum: f64 = sizes.iter().map(|s| s.weight).sum();
            let reason = "the weights must add up to more than 0";
            checker.require(&named("weighted: sum of weight"), sum, sum > 0.0 && sum.is_finite(), reason)
        }
    }
}

fn pacing(checker: &FlowChecker<'_>, pacing: Pacing) -> Result<(), WorkloadError> {
    match pacing {
        Pacing::Closed { queue_depth, .. } => checker.queue_depth("synthetic.pacing.closed.queue_depth", queue_depth),
        Pacing::Open { interarrival_ns, .. } => {
            let reason = "must be at least 1 ns";
            checker.require("synthetic.pacing.open.interarrival_ns", interarrival_ns, interarrival_ns > 0, reason)
        }
    }
}

fn replay(checker: &FlowChecker<'_>, it: &TraceReplay) -> Result<(), WorkloadError> {
    checker.require("trace.repeat", it.repeat, it.repeat > 0, "must be at least 1")?;
    let scale = it.time_scale;
    let reason = "must be a number above 0; to ignore the trace's times use pacing.closed";
    checker.require("trace.time_scale", scale, scale.is_finite() && scale > 0.0, reason)?;
    checker.require("trace.logical_block_bytes", 0, it.logical_block_bytes > 0, "must be at least 1 byte")?;
    match it.pacing {
        ReplayPacing::Timestamps => Ok(()),
        ReplayPacing::Closed { queue_depth } => checker.queue_depth("trace.pacing.closed.queue_depth", queue_depth),
    }
}
