//! The long-run rate of one kind of request, what it was before, and whether a limiter or the drive itself sets it.
//!
//! **Credits that could remain.** A rate P that was constant for t seconds may be a burst above a lower rate R, as long
//! as the bucket held (P − R)·t or more. The largest buckets in the rules of public clouds: 5.4 million operations (EBS
//! gp2), the volume's capacity (EBS st1), and thirty minutes of any burst (EBS-optimised instances, Azure). So below
//! thirty minutes R has no bound; from then on R ≥ P − bucket ÷ t.
//!
//! **Limiter or drive.** A limiter's rate is flat and the same at each depth, while a request that comes alone takes
//! less time than the rate grants it, or none of several that come at once waits. A saturated drive grows a little with
//! depth, its rate is rough, and latency rises before the rate ends.

use flashwise_block::{ByteSize, Clock, Nanos};
use flashwise_profile::{Figure, Verdict};

use super::levels::{Levels, levels};
use super::load::{Run, Stream, Until};
use super::{FEW_REQUESTS, Kind, LOAD_REQUESTS_MIN, Probe};
use crate::LearnError;
use crate::draft::{Because, ProfileDraft};
use crate::stats::median;
use crate::verdict::{Doubt, Wording, applying, doubt};

/// The first load of each kind: longer ones follow where there is time.
pub(super) const FIRST: Nanos = Nanos::secs(6);
/// Requests after which the first load may end, and the time that it takes at least.
const FIRST_REQUESTS: u64 = 20_000;
const FIRST_LEAST: Nanos = Nanos::millis(1200);
/// Depths of the first load: of small requests, so that 500 µs of network still give 256,000 a second; of large ones,
/// so that they give 60 GB/s.
const DEPTH: usize = 128;
const DEPTH_LARGE: usize = 32;
/// Little's law: where depth ÷ rate is within this share of a lone request's latency, nothing limits the rate but the
/// depth.
const WAITING_SHARE_MIN: f64 = 0.2;
/// A rate is watched for at least this long after a drop, and for as long as it was higher.
const AFTER_DROP: f64 = 60.0;
/// Longest time that any burst of a full bucket lasts in the rules of public clouds, s.
const LONGEST_BURST: f64 = 1800.0;
/// Largest bucket of operations in the rules of public clouds: that of EBS gp2.
const LARGEST_BUCKET: f64 = 5_400_000.0;
/// Certain where the interval is within this share of the value: the tolerance that users of a limit need.
const TOLERANCE: f64 = 0.03;
/// Share of a rate by which that of a later load must be below it to show that a burst ended in between, and seconds
/// for which it must have been measured: first loads are short.
const DROP_SHARE: f64 = 0.1;
const BURST_SECONDS: f64 = 1.0;
/// Share of the rate by which a limiter's may differ at twice the depth: chance of the ends of two short loads.
const SAME_RATE_SHARE: f64 = 0.006;
/// Growth with depth from which on the rate is the drive's own.
const GROWTH_SHARE: f64 = 0.03;
/// A lone request that takes less than this share of the time that the rate grants for one would be served faster by
/// any drive.
const LONE_SHARE: f64 = 0.6;

/// What sets a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// A limiter: a drive does not behave like that.
    Limiter,
    /// A flat ceiling, which a limiter has, and some drives.
    Flat,
    /// The drive, or nothing up to the greatest depth.
    Drive,
    /// Neither is shown.
    Unknown,
}

/// One kind of request at its limit.
#[derive(Clone, Debug)]
pub(super) struct Cap {
    pub(super) kind: Kind,
    /// What a lone request takes, s.
    pub(super) latency: f64,
    pub(super) stream: Stream,
    /// The level at present.
    pub(super) rate: f64,
    pub(super) error: f64,
    /// Levels of the run that showed the last change.
    pub(super) burst: Option<(f64, f64)>,
    /// The highest level of all, with its seconds: another kind's load may have spent, before that run, a bucket that
    /// both draw from.
    peak: Option<(f64, f64)>,
    /// Requests beyond those of the last level, in the run that showed them.
    pub(super) surplus: f64,
    /// Seconds and requests at the present level.
    seconds: f64,
    requests: f64,
    is_by_the_clock: bool,
    pub(super) nature: Nature,
    /// Whether the reads and writes of a shared budget make it certain.
    pub(super) is_shared: bool,
    /// Whether small requests reach no more bytes than large ones: their rate is that of a limit of bytes, and credits
    /// of one of requests may remain.
    pub(super) is_of_bytes: bool,
    is_saturated: bool,
    capacity: ByteSize,
    /// Time and rate.
    pub(super) curve: Vec<(f64, f64)>,
    /// Most that a request was seen to be granted beyond the level: for reads, a bucket.
    pub(super) has_surplus: bool,
    dropped: bool,
    /// Share by which the rate is higher at twice the depth; `None` where there was no time for that.
    growth: Option<f64>,
    /// What a longer time would give the wait for a change; `None` where the other direction waited for both.
    pub(super) outlook: Option<Outlook>,
}

/// What part of a longer time one wait has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    /// Seconds of the time for a second of the wait, at most.
    pub(super) seconds: f64,
    /// Seconds of the time for a request of the wait, at most: 0 where requests are not counted.
    pub(super) per_request: f64,
}

impl Cap {
    /// Runs the first load of a kind, deeper where nothing else limits it; `None` where there is no time.
    pub(super) fn first(probe: &mut Probe<'_, '_>, kind: Kind, latency: f64) -> Result<Option<Self>, LearnError> {
        let mut depth = if kind.is_large() { DEPTH_LARGE } else { DEPTH }.min(probe.queue_depth());
        loop {
            let stream = probe.stream(kind).at_depth(depth);
            let mut watch = Watch { latest: FIRST_LEAST, requests: FIRST_REQUESTS, before: None };
            // Of a slow one, a few seconds show too little.
            let until = Until { time: FIRST.max(probe.short()), requests: u64::MAX, keep: 0 };
            let mut is_enough =
                |run: &Run| watch.is_over(run, 0.0) || run.elapsed >= FIRST && run.total() >= FEW_REQUESTS;
            let run = probe.run(&[stream], until, kind.name(), &mut is_enough)?;
            let Some(found) = levels(&run, 0, latency) else { return Ok(None) };
            let is_saturated = depth as f64 / found.rate > latency * (1.0 + WAITING_SHARE_MIN);
            if is_saturated || depth >= probe.queue_depth() {
                let mut cap = Self {
                    kind,
                    latency,
                    stream,
                    rate: found.rate,
                    error: found.error,
                    burst: None,
                    peak: None,
                    surplus: 0.0,
                    seconds: 0.0,
                    requests: 0.0,
                    is_by_the_clock: false,
                    nature: if is_saturated { Nature::Unknown } else { Nature::Drive },
                    is_shared: false,
                    is_of_bytes: false,
                    is_saturated,
                    capacity: probe.prober.capacity(),
                    curve: Vec::new(),
                    has_surplus: false,
                    dropped: false,
                    growth: None,
                    outlook: None,
                };
                cap.take_in(&run, &found, true);
                return Ok(Some(cap));
            }
            depth = (depth * 4).min(probe.queue_depth());
        }
    }

    /// Keeps up the load until a change is seen, and then until the new level is known.
    pub(super) fn wait_for_change(
        &mut self,
        probe: &mut Probe<'_, '_>,
        time: Nanos,
        requests: u64,
    ) -> Result<(), LearnError> {
        if time < FIRST {
            return Ok(());
        }
        let before = self.rate;
        let mut watch = Watch { latest: time, requests: 0, before: Some((before, self.seconds)) };
        let requests = match probe.prober.clock() {
            Clock::Virtual => requests.max(LOAD_REQUESTS_MIN),
            Clock::Wall => u64::MAX,
        };
        let until = Until { time, requests, keep: 0 };
        let run = probe.run(&[self.stream], until, self.kind.name(), &mut |run| watch.is_over(run, AFTER_DROP))?;
        if let Some(found) = levels(&run, 0, self.latency) {
            self.take_in(&run, &found, false);
        }
        self.dropped |= self.rate < before * (1.0 - TOLERANCE);
        Ok(())
    }

    fn take_in(&mut self, run: &Run, found: &Levels, is_first: bool) {
        let levels = [(self.rate, self.seconds), found.burst.map_or((0.0, 0.0), |burst| (burst.rate, burst.seconds))];
        let is_level = |&(_, seconds): &(f64, f64)| seconds >= BURST_SECONDS;
        let levels = levels.into_iter().filter(is_level).chain(self.peak);
        self.peak = levels.max_by(|a, b| a.0.total_cmp(&b.0));
        let is_same = (found.rate - self.rate).abs() <= TOLERANCE / 2.0 * self.rate;
        if let Some(burst) = found.burst {
            self.burst = Some((burst.rate, burst.seconds));
            self.surplus = found.surplus;
            (self.seconds, self.requests) = (0.0, 0.0);
        } else if found.rate < self.rate * (1.0 - DROP_SHARE) && self.seconds >= BURST_SECONDS {
            self.burst = Some((self.rate, self.seconds));
            (self.seconds, self.requests) = (0.0, 0.0);
        } else if !is_same {
            (self.seconds, self.requests) = (0.0, 0.0);
        } else if is_first {
            self.surplus = found.surplus;
        }
        (self.rate, self.error) = (found.rate, found.error);
        self.is_saturated = self.stream.depth as f64 / self.rate > self.latency * (1.0 + WAITING_SHARE_MIN);
        self.nature = if self.is_saturated { Nature::Unknown } else { Nature::Drive };
        self.seconds += found.seconds;
        self.requests += found.seconds * found.rate;
        self.is_by_the_clock = found.is_by_the_clock;
        self.has_surplus |= found.surplus > surplus_floor(self.stream, found.rate, self.latency);
        let (counts, width) = run.series[0].rebinned(run.elapsed.0, CURVE_POINTS);
        let offset = self.curve.last().map_or(0.0, |&(x, _)| x);
        let points = counts.iter().enumerate().map(|(n, count)| (offset + (n as f64 + 0.5) * width, count / width));
        self.curve.extend(points);
    }

    /// Whether a stream of a run has come down to the long-run rate.
    pub(super) fn is_dry(&self, run: &Run, stream: usize) -> bool {
        let (counts, width) = run.series[stream].rebinned(run.elapsed.0, 80);
        let tail = &counts[counts.len() - (counts.len() as f64 * TAIL_SHARE) as usize..];
        let (counted, seconds) = (tail.iter().sum::<f64>(), tail.len() as f64 * width);
        let rate = counted / seconds.max(1e-9);
        counts.len() >= 20 && counted >= 100.0 && rate <= self.rate * (1.0 + DRY_SHARE) + 2.0 / seconds
    }

    /// Whether the rate is another one than at the start.
    pub(super) fn has_dropped(&self) -> bool {
        self.dropped
    }

    /// Whether the last level was too short to see what grants it.
    pub(super) fn is_short_after_drop(&self) -> bool {
        self.dropped && !self.is_by_the_clock
    }

    pub(super) fn is_limit(&self) -> bool {
        matches!(self.nature, Nature::Limiter | Nature::Flat)
    }

    /// A flat ceiling is a limiter's where something else shows that no drive sets it.
    pub(super) fn prove(&mut self) {
        if self.nature == Nature::Flat {
            self.nature = Nature::Limiter;
        }
    }

    /// The other direction draws from the same budget, and a limiter sets that one's rate.
    pub(super) fn belong_to_limiter(&mut self) {
        if self.is_saturated {
            self.nature = Nature::Limiter;
        }
    }

    /// The present rate, from a load as long as the first.
    pub(super) fn refresh(&mut self, probe: &mut Probe<'_, '_>) -> Result<(), LearnError> {
        self.wait_for_change(probe, FIRST, u64::MAX)
    }

    /// What an idle time takes together with spending what came back in it, as a multiple of it: where no burst was
    /// seen long enough to have a rate, that rate need not be much higher than the one in the long run.
    pub(super) fn spending_factor(&self) -> f64 {
        let spending = self.burst.map_or(1.0, |(rate, _)| self.rate / (rate - self.rate).max(1e-9));
        1.0 + spending / (1.0 - TAIL_SHARE)
    }

    /// What the content of a bucket that was seen to run dry takes to come back.
    pub(super) fn refill_time(&self) -> Nanos {
        match self.burst {
            Some(_) => Nanos((self.surplus.max(0.0) / self.rate * 1e9) as u64),
            None => Nanos(0),
        }
    }

    /// The least long-run rate that a bucket of a public cloud would leave.
    fn bound(&self) -> f64 {
        let bound = (self.rate - self.largest_bucket() / self.seconds.max(1e-9)).max(0.0);
        if self.seconds < LONGEST_BURST { 0.0 } else { bound }
    }

    /// The largest bucket of a public cloud, in requests of this kind.
    fn largest_bucket(&self) -> f64 {
        // A large request may be charged as one, and so draw from a bucket of operations.
        let capacity = self.capacity.bytes() as f64 / self.stream.length.bytes() as f64;
        if self.kind.is_large() { LARGEST_BUCKET.max(capacity) } else { LARGEST_BUCKET }
    }

    /// Whether a higher rate was seen before, and the present one for long enough: then it is the long-run rate, unless
    /// another limit than that of these requests sets it.
    pub(super) fn has_changed(&self) -> bool {
        !self.is_of_bytes && self.burst.is_some_and(|(_, seconds)| self.seconds >= seconds.max(AFTER_DROP) * 0.9)
    }

    /// Bytes a second at the present level.
    fn bandwidth(&self) -> f64 {
        self.rate * self.stream.length.bytes() as f64
    }

    /// Compares small requests with the large ones of the same direction.
    pub(super) fn compare_with(&mut self, large: &Self) {
        self.is_of_bytes = large.is_saturated && self.bandwidth() >= large.bandwidth() * (1.0 - TOLERANCE);
    }

    /// What a request counts: itself, or its bytes.
    fn scale(&self) -> f64 {
        if self.kind.is_large() { self.stream.length.bytes() as f64 } else { 1.0 }
    }

    /// Sets the figures of the long-run rate and of the burst.
    pub(super) fn settle(&self, draft: &mut ProfileDraft) {
        let scale = self.scale();
        let recipe = format!("{}, {} in flight all the time", self.kind.name(), self.stream.depth);
        let name = format!("limits: {}", self.kind.name());
        let because = |reason| Because { recipe: &recipe, reason, curve: Some(&name) };
        let (plain, figure) = match self.nature {
            Nature::Drive if !self.is_saturated => (
                format!("{:.0} a second at {} in flight, and no request waited", self.rate, self.stream.depth),
                self.absence(),
            ),
            Nature::Drive => (
                format!("the rate, {:.0} a second, grows with depth: it is the drive's own", self.rate),
                self.absence(),
            ),
            Nature::Unknown => (
                match self.growth {
                    Some(growth) => format!(
                        "{:.0} a second, neither flat like a limiter's nor growing with depth ({:+.1} % at twice the \
                         depth)",
                        self.rate,
                        100.0 * growth
                    ),
                    None => format!("{:.0} a second, and no time was left for another depth", self.rate),
                },
                // What was measured is the best guess; what grants it was not seen.
                if self.growth.is_none() { inconclusive(self.figure(scale)) } else { Figure::unknown() },
            ),
            Nature::Limiter | Nature::Flat => (self.history(), self.figure(scale)),
        };
        let doubts = applying(&DOUBTS, self);
        let key = self.kind.limit();
        let judged = doubts.judge(figure);
        draft.settle(key, judged, because(doubts.reason(plain)));
        let (burst, reason) = match self.burst {
            _ if !self.is_limit() => (Figure::unknown(), "no limit was found".to_owned()),
            Some(burst) => {
                let (rate, seconds) = self.peak.unwrap_or(burst);
                let value = rate * scale;
                let (low, high) = (value * (1.0 - BURST_ERROR), value * (1.0 + BURST_ERROR));
                let figure = Figure::certain(value, low, high).map(|x| x.round() as u64);
                let is_certain = judged.verdict == Verdict::Certain && rate * seconds >= BURST_REQUESTS;
                let figure = if is_certain { figure } else { inconclusive(figure) };
                (figure, format!("{rate:.0} a second for {seconds:.0} s, then {:.0}", self.rate))
            }
            None if judged.verdict == Verdict::Certain && !self.is_shared => {
                (Figure::absent(), "the rate was the same throughout".to_owned())
            }
            None => (Figure::unknown(), self.unseen()),
        };
        draft.settle(self.kind.burst(), burst, because(reason));
    }

    /// Whether its rate is one that lasts, and no burst.
    pub(super) fn is_certain(&self) -> bool {
        self.is_limit() && applying(&DOUBTS, self).judge(self.figure(1.0)).verdict == Verdict::Certain
    }

    /// No limit was met, and none can follow when credits are spent.
    fn absence(&self) -> Figure<u64> {
        if self.bound() > self.rate * (1.0 - TOLERANCE) { Figure::absent() } else { Figure::unknown() }
    }

    fn figure(&self, scale: f64) -> Figure<u64> {
        let margin = self.error.max(RATE_ERROR) * self.rate;
        let is_seen = self.has_changed() || self.is_shared;
        let low = if is_seen { self.rate - margin } else { self.bound().min(self.rate - margin) };
        let (value, low, high) = (self.rate * scale, low.max(0.0) * scale, (self.rate + margin) * scale);
        Figure::certain(value.round() as u64, low.floor() as u64, high.ceil() as u64)
    }

    fn history(&self) -> String {
        let burst = self.burst.map(|(rate, seconds)| {
            let burst =
                format!("{rate:.0} a second for {seconds:.0} s, then {:.0} for {:.0} s", self.rate, self.seconds);
            match self.peak {
                Some((peak, seconds)) if peak > rate * (1.0 + DROP_SHARE) => {
                    format!("{peak:.0} a second for {seconds:.0} s; later {burst}")
                }
                _ => burst,
            }
        });
        match burst {
            Some(burst) => burst,
            None => format!("{:.0} a second for {:.0} s", self.rate, self.seconds),
        }
    }

    /// What a longer look could still show.
    fn unseen(&self) -> String {
        let bytes = self.stream.length.bytes();
        let (spent, largest) = if self.kind.is_large() {
            let spent = ByteSize((self.requests * bytes as f64) as u64);
            let largest = ByteSize((LARGEST_BUCKET * bytes as f64) as u64).max(self.capacity);
            (spent.to_string(), largest.to_string())
        } else {
            (format!("{:.0} operations", self.requests), format!("{LARGEST_BUCKET:.0}"))
        };
        let seen = format!("the rate did not change in {:.0} s: credits unseen, spent {spent}", self.seconds);
        let longer = |until: f64| {
            let minutes = self.outlook.map(|outlook| outlook.minutes_for(until - self.seconds, self.rate));
            minutes.map(|minutes| format!("a time budget that is {minutes:.0} minutes longer is enough to"))
        };
        if self.seconds < LONGEST_BURST {
            let next = longer(LONGEST_BURST).map(|longer| format!("; {longer} exclude bursts of up to half an hour"));
            return seen + &next.unwrap_or_default();
        }
        let low = self.bound() * self.scale();
        let settled = LONGEST_BURST.max(self.largest_bucket() / (TOLERANCE * self.rate));
        let next = longer(settled).map(|longer| format!("; {longer} make it certain"));
        format!("{seen}, while a bucket of {largest} would leave {low:.0} or more{}", next.unwrap_or_default())
    }
}

/// Share of the rate to which a burst must have come down.
const DRY_SHARE: f64 = 0.02;
/// Share of a run that must be at the long-run rate at its end.
const TAIL_SHARE: f64 = 0.25;
/// Points of a run in the profile.
const CURVE_POINTS: usize = 60;
/// Half of the interval of a long-run rate, as a share of it, at least: the ends of loads, and clocks.
const RATE_ERROR: f64 = 0.005;
/// Requests of a burst from which on its rate is known to [`BURST_ERROR`].
const BURST_REQUESTS: f64 = 400.0;
/// The same of a burst, which is read off fewer windows.
const BURST_ERROR: f64 = 0.02;

impl Outlook {
    /// Minutes of the time that give a wait at a rate so many seconds more.
    fn minutes_for(self, seconds: f64, rate: f64) -> f64 {
        (seconds * self.seconds.max(self.per_request * rate) / 60.0).ceil()
    }
}

fn inconclusive(figure: Figure<u64>) -> Figure<u64> {
    Figure { verdict: Verdict::Inconclusive, ..figure }
}

/// Why a long-run rate may be inconclusive.
const DOUBTS: [Doubt<Cap>; 3] = [
    doubt("credits may remain", Wording::InsteadOf(Cap::unseen), |cap| {
        cap.is_limit() && !cap.has_changed() && !cap.is_shared && cap.bound() < cap.rate * (1.0 - TOLERANCE)
    }),
    doubt("the new level is young", Wording::Then(", which is not long enough after the drop"), |cap| {
        cap.burst.is_some() && !cap.has_changed() && !cap.is_shared
    }),
    doubt("a drive may look like that", Wording::Then("; a drive's own ceiling may look the same"), |cap| {
        cap.nature == Nature::Flat
    }),
];

/// Requests beyond the level that chance and the way to the drive explain.
pub(super) fn surplus_floor(stream: Stream, rate: f64, latency: f64) -> f64 {
    8.0 + 3.0 * (rate * latency).sqrt() + 0.05 * stream.depth as f64
}

/// Looks out for a drop in a run, and ends it when both levels are known.
struct Watch {
    /// The end of a run without a drop.
    latest: Nanos,
    /// It ends then only after so many.
    requests: u64,
    /// The rate of earlier runs, and for how long.
    before: Option<(f64, f64)>,
}

impl Watch {
    fn is_over(&mut self, run: &Run, after_least: f64) -> bool {
        let (counts, width) = run.series[0].rebinned(run.elapsed.0, WATCHED);
        let n = counts.len();
        if n < 12 {
            return false;
        }
        let first = median(counts[1..5].to_vec());
        let is_low = |count: &f64| *count < first * (1.0 - 2.0 * TOLERANCE) - 3.0;
        let after = counts.iter().rev().take_while(|count| is_low(count)).count();
        let before = n - after;
        // What ends sooner is no burst: a request that had to wait for a debt lets others pass at once after it.
        if after >= 3 && before as f64 * width >= BURST_SECONDS {
            return after >= before.max(10) && after as f64 * width >= after_least;
        }
        if let Some((_, seconds)) = self.before.filter(|(rate, _)| first < rate * width * (1.0 - 2.0 * TOLERANCE) - 3.0)
        {
            return run.seconds() >= seconds.max(after_least);
        }
        run.elapsed >= self.latest && run.total() >= self.requests
    }
}

/// Windows of a run in which a drop is looked for.
const WATCHED: usize = 60;

/// Finds out whether limiters set the rates.
pub(super) fn examine(probe: &mut Probe<'_, '_>, caps: &mut [Cap]) -> Result<(), LearnError> {
    for cap in caps.iter_mut().filter(|cap| cap.is_saturated) {
        probe.spend(&[cap])?;
        let needed = 4.0 * cap.rate * cap.latency;
        let depth = cap.stream.depth;
        let other = if depth as f64 / 2.0 >= needed || depth >= probe.queue_depth() { depth / 2 } else { depth * 2 };
        let other = other.clamp(1, probe.queue_depth());
        let (small, great) = (depth.min(other), depth.max(other));
        let stage = "limiter or drive";
        let Some(at_small) = probe.rates(&[cap.stream.at_depth(small)], stage)? else { return Ok(()) };
        let Some(at_great) = probe.rates(&[cap.stream.at_depth(great)], stage)? else { return Ok(()) };
        let growth = at_great[0] / at_small[0].max(1e-9) - 1.0;
        cap.growth = Some(growth);
        let slack = 2.0 / (at_small[0] * 1.3).max(1.0);
        let is_same = growth.abs() <= SAME_RATE_SHARE + slack;
        let is_fast_alone = cap.latency * cap.rate < LONE_SHARE;
        let is_granted_at_once = cap.has_surplus && !cap.kind.writes();
        cap.nature = if growth > GROWTH_SHARE {
            Nature::Drive
        } else if !is_same || !(cap.is_by_the_clock || is_fast_alone || is_granted_at_once) {
            Nature::Unknown
        } else if is_fast_alone || is_granted_at_once {
            Nature::Limiter
        } else {
            Nature::Flat
        };
    }
    Ok(())
}
