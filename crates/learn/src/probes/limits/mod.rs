//! The limits in front of a drive: what a cloud grants in the long run and for a while.
//!
//! ```text
//!   latency of lone requests ─▶ load by direction and size ─▶ both directions together ─▶ patience: until a change is
//!                               levels, surplus               shared budget               seen or the time is up
//!                                                                                               │
//!   full bucket ◀─ idle longer, burst again ◀─ refill ◀─ idle, burst again ◀── dry bucket ◀──────┤
//!   request unit ◀─ sizes;  hold ◀─ latencies just above the limit;  limiter or drive? ◀────────┘
//! ```
//!
//! | file | content |
//! |---|---|
//! | `load.rs` | loads that are never satisfied, and their completions by time |
//! | `levels.rs` | rates before and after a change, and what was granted beyond the last |
//! | `caps.rs` | the long-run rate of one kind of request, and whether a limiter sets it |
//! | `bucket.rs` | refill and size of a bucket |
//! | `shared.rs` | whether reads and writes draw from one budget, and what a write costs |
//! | `unit.rs` | the size from which on a request is charged as several |
//! | `hold.rs` | how long a request beyond the limit is held |
//!
//! **A burst is never reported as sustained.** A rate that did not change while it was measured is certain only where
//! no bucket of a public cloud could still have had credits (`caps.rs` has the bound). Otherwise it is a best guess
//! whose interval goes down to what such a bucket would leave.
//!
//! **A limiter differs from a drive** that is saturated: it grants by the clock, so its rate is flat and the same at
//! any depth, while a request that comes alone does not wait. Where a drive could look like that, no limit is certain.

mod bucket;
mod caps;
mod hold;
mod levels;
mod load;
mod shared;
mod unit;

use flashwise_block::{ByteSize, Clock, Nanos, Operation, Progress};
use flashwise_profile::{Figure, ProbeCurve, ProbePoint};

use crate::draft::{Because, Key, ProfileDraft, limit};
use crate::prober::Prober;
use crate::stats::median;
use crate::step::Step;
use crate::{LearnError, REGION_BYTES_MIN};

use caps::{Cap, FIRST, Nature, Outlook};
use load::{Run, Stream, Until};

pub(crate) const LIMITS: Step = Step {
    reads_alone: true,
    ..Step::new(
        "limits",
        &[
            "read_iops_limit",
            "write_iops_limit",
            "read_bandwidth_limit",
            "write_bandwidth_limit",
            "read_iops_burst",
            "write_iops_burst",
            "read_bandwidth_burst",
            "write_bandwidth_burst",
            "burst_operations",
            "burst_operations_refill",
            "write_burst_operations",
            "write_burst_operations_refill",
            "burst_bytes",
            "burst_bytes_refill",
            "write_burst_bytes",
            "write_burst_bytes_refill",
            "shared_budget",
            "shared_iops_limit",
            "shared_write_cost",
            "shared_write_cost_per_mib",
            "shared_bandwidth_limit",
            "throttle_hold_ns",
            "request_unit_bytes",
            "network_latency_ns",
            "limit_of_instance",
        ],
    )
};

/// Time for limits where nobody gives another: enough for every rate, and for bursts of a minute or two.
pub(crate) const TIME: Nanos = Nanos::secs(300);
/// The part of the time after which no load starts: what is in flight then is waited for.
const TIME_SHARE: f64 = 0.97;
/// The part of the time that is kept for what follows the long loads: units, holds, buckets.
const RESERVE_SHARE: f64 = 0.4;
/// The longest reserve: some sixty short loads follow, each of which takes 6 s below 70 requests a second.
const RESERVE_MAX: Nanos = Nanos::secs(600);
/// Requests of all long loads together, for each second of the time, on a virtual clock, whose time costs nothing, but
/// whose requests do: 76 million in three hours, so that a bucket of 20 million is spent and spent again.
const REQUESTS_PER_SECOND: u64 = 7_000;
/// The same of a short time, and what a load may always take.
const REQUESTS_MIN: u64 = 4_000_000;
const LOAD_REQUESTS_MIN: u64 = 500_000;
/// The part of them that is for the wait for a change; the rest spends what comes back into buckets.
const PATIENCE_SHARE: f64 = 0.7;
/// A bucket fills and shows its size within so many times what its content takes to come back.
const BUCKET_TIMES: u64 = 4;
/// How much rarer the requests of one direction must be to spend a shared budget instead of those of the other.
const RARER: f64 = 2.0;
/// Time between two completions from which on a debt of one request shows in a short load: half a hundredth of it.
const DEBT_MIN: Nanos = Nanos::millis(10);
/// A short load takes at most this part of the time that is left, and no longer than a minute.
const SHORT_PART: u64 = 100;
const SHORT_LONGEST: Nanos = Nanos::secs(60);
/// Requests that IOPS are counted in.
const SMALL: ByteSize = ByteSize::kib(4);
/// Lone requests of each kind, and the time between them, so that they find tokens at 100 a second.
const LONE: usize = 40;
const APART: Nanos = Nanos::millis(10);
/// The same in times of the last one's latency: where that waited for a slow limiter, the next one does not.
const APART_FACTOR: u64 = 6;
/// A short load: as long as 100 requests a second take to show a rate to half a hundredth.
const SHORT: Nanos = Nanos::secs(2);
/// Requests after which a short load ends earlier: their number is then exact to a thousandth.
const SHORT_REQUESTS: u64 = 12_000;
/// Of fewer, one more or less shows; then it takes up to three times as long.
const FEW_REQUESTS: u64 = 400;
/// The shortest of all, so that windows are longer than any wait of a request.
const SHORTEST: Nanos = Nanos::millis(200);

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reads,
    Writes,
    LargeReads,
    LargeWrites,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Reads, Self::Writes, Self::LargeReads, Self::LargeWrites];

    fn is_large(self) -> bool {
        matches!(self, Self::LargeReads | Self::LargeWrites)
    }

    fn writes(self) -> bool {
        matches!(self, Self::Writes | Self::LargeWrites)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads of 4 KiB",
            Self::Writes => "writes of 4 KiB",
            Self::LargeReads => "large reads",
            Self::LargeWrites => "large writes",
        }
    }

    fn limit(self) -> Key<u64> {
        match self {
            Self::Reads => limit!(read_iops_limit),
            Self::Writes => limit!(write_iops_limit),
            Self::LargeReads => limit!(read_bandwidth_limit),
            Self::LargeWrites => limit!(write_bandwidth_limit),
        }
    }

    fn burst(self) -> Key<u64> {
        match self {
            Self::Reads => limit!(read_iops_burst),
            Self::Writes => limit!(write_iops_burst),
            Self::LargeReads => limit!(read_bandwidth_burst),
            Self::LargeWrites => limit!(write_bandwidth_burst),
        }
    }
}

/// Rates of the streams of a short load, and latencies of its first, ns.
type RatesAndLatencies = (Vec<f64>, Vec<f64>);

/// A drive under load, and the time that is left for it.
struct Probe<'p, 'd> {
    prober: &'p mut Prober<'d>,
    progress: &'p mut dyn Progress,
    /// Bytes from the start that the requests go to.
    area: ByteSize,
    /// The longest request.
    large: ByteSize,
    ends: Nanos,
    /// Requests that are left, on a virtual clock.
    requests: u64,
}

impl Probe<'_, '_> {
    /// Time that is left.
    fn left(&self) -> Nanos {
        self.ends.since(self.prober.now())
    }

    fn queue_depth(&self) -> usize {
        self.prober.queue_depth() as usize
    }

    fn stream(&self, kind: Kind) -> Stream {
        let operation = if kind.writes() { Operation::Write } else { Operation::Read };
        let length = if kind.is_large() { self.large } else { SMALL.max(self.prober.logical_block()) };
        // A rotating disk is fastest in order, and what is large is not merged.
        Stream { operation, length, depth: 1, in_order: kind.is_large() }
    }

    fn run(
        &mut self,
        streams: &[Stream],
        until: Until,
        stage: &str,
        enough: &mut dyn FnMut(&Run) -> bool,
    ) -> Result<Run, LearnError> {
        let requests = match self.prober.clock() {
            Clock::Virtual => until.requests.min(self.requests.max(LOAD_REQUESTS_MIN)),
            Clock::Wall => until.requests,
        };
        let until = Until { time: until.time.min(self.left()), requests, ..until };
        let run = load::run(self.prober, (streams, self.area), until, enough, (self.progress, stage))?;
        self.requests = self.requests.saturating_sub(run.total());
        // A request that takes more than the bucket holds leaves a debt, which the next load would pay.
        let each = Nanos(run.elapsed.0 / run.total().max(1));
        if each >= DEBT_MIN {
            self.prober.pause(each.min(self.left()))?;
        }
        Ok(run)
    }

    /// The longest that a short load of few requests takes.
    fn short(&self) -> Nanos {
        Nanos(self.left().0 / SHORT_PART).clamp(SHORT * 3, SHORT_LONGEST)
    }

    /// Rates of a short load, stream by stream: of its last two thirds, when what small buckets had is spent.
    fn rates(&mut self, streams: &[Stream], stage: &str) -> Result<Option<Vec<f64>>, LearnError> {
        Ok(self.rates_and_latencies(streams, 0, stage)?.map(|(rates, _)| rates))
    }

    /// The same, with the latencies of the first stream.
    fn rates_and_latencies(
        &mut self,
        streams: &[Stream],
        keep: usize,
        stage: &str,
    ) -> Result<Option<RatesAndLatencies>, LearnError> {
        if self.left() < SHORT {
            return Ok(None);
        }
        let n = streams.len();
        let mut enough = |run: &Run| {
            let all = |requests: u64| (0..n).all(|stream| run.series[stream].total() >= requests);
            run.elapsed >= SHORTEST && all(SHORT_REQUESTS) || run.elapsed >= SHORT && all(FEW_REQUESTS)
        };
        let until = Until { time: self.short(), requests: u64::MAX, keep };
        let run = self.run(streams, until, stage, &mut enough)?;
        if run.series.iter().any(|series| series.total() == 0) {
            return Ok(None);
        }
        let rate = |stream: usize| {
            let (counts, width) = run.series[stream].rebinned(run.elapsed.0, 60);
            let last = &counts[counts.len() / 3..];
            last.iter().sum::<f64>() / (last.len() as f64 * width).max(1e-9)
        };
        Ok(Some(((0..n).map(rate).collect(), run.latencies)))
    }

    /// Median latency of lone requests, s.
    fn lone(&mut self, kind: Kind) -> Result<f64, LearnError> {
        let stream = self.stream(kind);
        let places = (self.area / stream.length).max(1);
        let count = if kind.is_large() { LONE / 2 } else { LONE };
        let mut latencies = Vec::with_capacity(count);
        let mut apart = APART;
        for n in 0..count {
            self.prober.pause(apart)?;
            let place =
                if stream.in_order { n as u64 } else { self.prober.random_offset(stream.length) / stream.length };
            let offset = stream.length * (place % places);
            let latency = match stream.operation {
                Operation::Write => self.prober.write(offset, stream.length)?,
                _ => self.prober.read(offset, stream.length)?,
            };
            // Also of the longest before: after one that did not wait, the next one would.
            apart = apart.max(latency * APART_FACTOR);
            latencies.push(latency.as_secs_f64());
        }
        Ok(median(latencies.split_off(count / 2)))
    }

    /// Spends what buckets that were seen to run dry have again, so that what follows is measured at the long-run rate.
    ///
    /// First each kind alone: two that draw from one bucket have half of its burst each, which may be less than the
    /// long-run rate. Then all together, for one's bucket fills while the other's is spent.
    fn spend(&mut self, caps: &[&Cap]) -> Result<(), LearnError> {
        let bursting: Vec<&Cap> = caps.iter().copied().filter(|cap| cap.burst.is_some()).collect();
        for cap in &bursting {
            self.spend_together(&[cap])?;
        }
        if bursting.len() > 1 { self.spend_together(&bursting) } else { Ok(()) }
    }

    fn spend_together(&mut self, bursting: &[&Cap]) -> Result<(), LearnError> {
        let most = (self.queue_depth() / bursting.len()).max(1);
        let streams: Vec<Stream> = bursting.iter().map(|cap| cap.stream.at_depth(cap.stream.depth.min(most))).collect();
        let mut are_dry = |run: &Run| bursting.iter().enumerate().all(|(stream, cap)| cap.is_dry(run, stream));
        let until = Until { time: self.left(), requests: u64::MAX, keep: 0 };
        self.run(&streams, until, "spending credits", &mut are_dry)?;
        Ok(())
    }

    /// Depth at which a rate is met with certainty, for both of two streams: eight times what the latency requires.
    fn depth_for(&self, rate: f64, latency: f64) -> usize {
        ((8.0 * rate * latency).ceil() as usize).clamp(8, (self.queue_depth() / 2).max(1))
    }
}

/// Measures the limits.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let area = REGION_BYTES_MIN;
    let large = prober.longest();
    if prober.may_write {
        for n in 0..area / large {
            prober.advance(progress, "filling the area", (large * n).bytes() as f64 / area.bytes() as f64)?;
            prober.write(large * n, large)?;
        }
        prober.flush()?;
    }
    let time = prober.time_left().unwrap_or(TIME);
    let time = Nanos((time.0 as f64 * TIME_SHARE) as u64);
    let ends = prober.now() + time;
    let requests = REQUESTS_MIN.max((time.as_secs_f64() * REQUESTS_PER_SECOND as f64) as u64);
    let reserve = Nanos(((time.0 as f64 * RESERVE_SHARE) as u64).min(RESERVE_MAX.0));
    let may_write = prober.may_write;
    let mut probe = Probe { prober, progress, area, large, ends, requests };
    let mut latencies = Vec::new();
    let mut caps: Vec<Cap> = Vec::new();
    let kinds = Kind::ALL.into_iter().filter(|kind| may_write || !kind.writes());
    // Before any load, while buckets have what lone requests need.
    for kind in kinds.clone() {
        latencies.push(probe.lone(kind)?);
    }
    for (kind, &lone) in kinds.zip(&latencies) {
        if let Some(cap) = Cap::first(&mut probe, kind, lone)? {
            caps.push(cap);
        }
    }
    let mut together = shared::Together::measure(&mut probe, &caps)?;
    patience(&mut probe, &mut caps, &together, reserve)?;
    let any_has_dropped = caps.iter().any(Cap::has_dropped);
    for n in 0..caps.len() {
        // First loads are short: where the other direction waited for both, a longer one follows.
        let has_time = probe.left() > reserve + FIRST;
        let is_stale = !caps[n].has_dropped() && (any_has_dropped || caps[n].outlook.is_none() && has_time);
        if is_stale || caps[n].is_short_after_drop() && has_time {
            // Its bucket has gained something since.
            let same = |other: &&Cap| other.kind.is_large() == caps[n].kind.is_large();
            probe.spend(&caps.iter().filter(same).collect::<Vec<_>>())?;
            caps[n].refresh(&mut probe)?;
        }
    }
    if any_has_dropped {
        together = shared::Together::measure(&mut probe, &caps)?;
    }
    caps::examine(&mut probe, &mut caps)?;
    let (hold, do_all_queue) = hold::measure(&mut probe, &caps)?;
    let costs = unit::measure(&mut probe, &caps)?;
    for cap in &mut caps {
        let is_by_requests = !cap.kind.is_large() && costs.are_by_requests() && together.covers(cap.kind);
        if hold.is_some() || is_by_requests || costs.are_by_requests() && costs.kind() == Some(cap.kind) {
            cap.prove();
        }
    }
    // What draws from a limiter's budget is limited by it.
    for kind in Kind::ALL {
        let is_other = |cap: &Cap| cap.kind != kind && cap.kind.is_large() == kind.is_large();
        let is_proven = caps.iter().any(|cap| is_other(cap) && cap.nature == Nature::Limiter);
        if is_proven && together.covers(kind) {
            caps.iter_mut().filter(|cap| cap.kind == kind).for_each(Cap::belong_to_limiter);
        }
    }
    let large_caps: Vec<Cap> = caps.iter().filter(|cap| cap.kind.is_large()).cloned().collect();
    for cap in caps.iter_mut().filter(|cap| !cap.kind.is_large()) {
        let same = large_caps.iter().find(|other| other.kind.writes() == cap.kind.writes());
        same.into_iter().for_each(|other| cap.compare_with(other));
    }
    shared::settle(&together, &mut caps, draft);
    for cap in &caps {
        cap.settle(draft);
        keep_curve(cap, draft);
    }
    costs.settle(large, draft);
    hold::settle((hold, do_all_queue), &caps, draft);
    bucket::settle(&mut probe, &caps, &together, hold, draft)?;
    settle_latency(&latencies, draft);
    let reason = "latencies do not show it; the volume's own log would".to_owned();
    let because = Because { recipe: "the same loads", reason, curve: None };
    draft.settle(limit!(limit_of_instance), Figure::unknown(), because);
    Ok(())
}

/// Keeps the load up, kind after kind, until a change is seen or the time for it is up.
///
/// Where all draw from one bucket, the first spends it for the others. That takes least time with small requests; where
/// their number would not last for the time, the slowest kind goes first, which needs least of them.
fn patience(
    probe: &mut Probe<'_, '_>,
    caps: &mut [Cap],
    together: &shared::Together,
    reserve: Nanos,
) -> Result<(), LearnError> {
    // What draws from one budget ends with it. Reads spare the drive, and their number costs only where the clock is
    // virtual.
    let are_writes_cheap = probe.prober.clock() == Clock::Virtual && probe.prober.writes_left().is_none();
    let rate = |kind: Kind| caps.iter().find(|cap| cap.kind == kind).map_or(f64::INFINITY, |cap| cap.rate);
    let spends = |kind: Kind| {
        let [reads, writes] =
            if kind.is_large() { [Kind::LargeReads, Kind::LargeWrites] } else { [Kind::Reads, Kind::Writes] };
        let by_writes = are_writes_cheap && rate(writes) * RARER < rate(reads);
        !together.covers(kind) || kind.writes() == by_writes
    };
    let mut order: Vec<usize> = (0..caps.len()).filter(|&n| spends(caps[n].kind)).collect();
    // The others have a short one after it.
    let reserve_of_all = reserve + FIRST * (caps.len() - order.len()) as u64;
    let kept = (probe.requests as f64 * (1.0 - PATIENCE_SHARE)) as u64;
    let fastest = order.iter().map(|&n| caps[n].rate).fold(0.0, f64::max);
    let requests_of_all = fastest * probe.left().since(reserve_of_all).as_secs_f64();
    if probe.prober.clock() == Clock::Virtual && requests_of_all > probe.requests.saturating_sub(kept) as f64 {
        order.sort_by(|&a, &b| caps[a].rate.total_cmp(&caps[b].rate));
    }
    let mut refill = Nanos(0);
    // Of a longer time, the reserve takes its share until it is the longest; some is kept for what is in flight.
    let kinds = order.len() as f64 / TIME_SHARE / if reserve < RESERVE_MAX { 1.0 - RESERVE_SHARE } else { 1.0 };
    let requests =
        if probe.prober.clock() == Clock::Virtual { REQUESTS_PER_SECOND as f64 * PATIENCE_SHARE } else { 0.0 };
    for (done, &n) in order.iter().enumerate() {
        let rest = (order.len() - done) as u64;
        let time = probe.left().since(reserve_of_all);
        // Half of the time may go to buckets that are already known to be there.
        let time = Nanos(time.since(refill).0.max(time.0 / 2) / rest);
        let requests_of_one = probe.requests.saturating_sub(kept) / rest;
        caps[n].wait_for_change(probe, time, requests_of_one)?;
        // Half of what is more may go to buckets.
        let seconds = kinds * if refill > Nanos(0) { 2.0 } else { 1.0 };
        let per_request = if requests > 0.0 { kinds / requests } else { 0.0 };
        caps[n].outlook = Some(Outlook { seconds, per_request });
        refill += caps[n].refill_time() * BUCKET_TIMES;
    }
    Ok(())
}

fn keep_curve(cap: &Cap, draft: &mut ProfileDraft) {
    let point = |&(x, y): &(f64, f64)| ProbePoint { x, y, low: y, high: y };
    draft.keep(ProbeCurve {
        name: format!("limits: {}", cap.kind.name()),
        x: "time under load, s".to_owned(),
        y: "requests a second".to_owned(),
        points: cap.curve.iter().map(point).collect(),
        fit: Vec::new(),
    });
}

/// What all requests have in common is at most what the fastest kind takes.
fn settle_latency(latencies: &[f64], draft: &mut ProfileDraft) {
    let least = latencies.iter().copied().fold(f64::INFINITY, f64::min);
    if !least.is_finite() {
        return;
    }
    let ns = (least * 1e9).round() as u64;
    let reason = format!(
        "the fastest kind of request takes {} when it comes alone: the network takes that or less, for the drive's own \
         part is in it",
        Nanos(ns)
    );
    let because = Because { recipe: "lone requests of each kind, 10 ms apart", reason, curve: None };
    draft.settle(limit!(network_latency_ns), Figure::inconclusive(ns, 0, ns), because);
}
