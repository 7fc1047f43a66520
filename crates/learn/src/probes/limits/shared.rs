//! Whether reads and writes draw from one budget, and what a write costs there.
//!
//! ```text
//!   writes/s                 separate: both caps are met together, at the corner
//!      ▲ ─────┐              shared: what one gets the other loses, reads + c · writes = B
//!      │ ╲    │ corner
//!      │   ╲  │
//!      │     ╲│
//!      └──────┴───▶ reads/s
//! ```
//!
//! Both directions are loaded at several ratios of their depths. The three hypotheses predict where the points lie: at
//! the corner; on a line whose slope does not depend on the length of the writes; on one whose slope grows with it.
//! None is reported where the points are on neither, or where one direction alone does not reach its cap at the depth
//! at which both are loaded: what nothing limits is at the corner too.

use flashwise_block::ByteSize;
use flashwise_profile::Figure;

use super::caps::{Cap, Nature};
use super::{Kind, Probe, SMALL};
use crate::LearnError;
use crate::draft::{Because, ProfileDraft, limit};

/// Ratios of depths, reads to writes.
const RATIOS: [(usize, usize); 6] = [(7, 1), (2, 1), (1, 2), (1, 5), (1, 9), (1, 16)];
/// The same of large requests, whose budget has no slope to find.
const RATIOS_LARGE: [(usize, usize); 3] = [(3, 1), (1, 1), (1, 3)];
/// Both rates are those of each alone, up to this share.
const SAME_SHARE: f64 = 0.03;
/// Points are on a line within this share of the budget: two short loads differ by less.
const ON_LINE_SHARE: f64 = 0.015;
/// Length of the writes that show whether bytes count.
const LONGER: ByteSize = ByteSize::kib(16);

/// Rates of reads and writes.
type Point = (f64, f64);

/// What was measured of both directions of one length.
#[derive(Default)]
struct Both {
    /// The cap of each.
    caps: Point,
    /// The rate of each alone, at the depth at which they are then loaded together.
    alone: Option<Point>,
    /// The rates of both together.
    points: Vec<Point>,
}

/// What was measured of both directions together.
#[derive(Default)]
pub(super) struct Together {
    small: Both,
    large: Both,
    /// Reads of 4 KiB with longer writes.
    longer: Vec<Point>,
}

/// What the points say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Budget {
    /// Each direction has its own.
    Separate,
    /// Reads + cost · writes = budget, with the ends of intervals.
    Shared { budget: [f64; 3], cost: [f64; 3] },
    /// Neither.
    Unclear,
}

impl Both {
    fn measure(
        probe: &mut Probe<'_, '_>,
        (reads, writes): (&Cap, &Cap),
        ratios: &[(usize, usize)],
    ) -> Result<Self, LearnError> {
        let depth = depth_of_both(probe, reads, writes);
        let caps = (reads.rate, writes.rate);
        let alone = alone(probe, reads, writes, depth)?;
        Ok(Self { caps, alone, points: points(probe, (reads, writes), depth, ratios)? })
    }

    /// What the points say, if each alone met its cap.
    fn budget(&self) -> Budget {
        match self.alone {
            Some(alone) if is_same(alone.0, self.caps.0) && is_same(alone.1, self.caps.1) => {
                budget(&self.points, alone)
            }
            _ => Budget::Unclear,
        }
    }
}

impl Together {
    /// Loads both directions together.
    pub(super) fn measure(probe: &mut Probe<'_, '_>, caps: &[Cap]) -> Result<Self, LearnError> {
        let mut together = Self::default();
        let of = |kind: Kind| caps.iter().find(|cap| cap.kind == kind && cap.nature != Nature::Drive);
        if let (Some(reads), Some(writes)) = (of(Kind::Reads), of(Kind::Writes)) {
            together.small = Both::measure(probe, (reads, writes), &RATIOS)?;
            if together.covers(Kind::Reads) {
                let mut longer = writes.clone();
                longer.stream.length = LONGER.max(writes.stream.length);
                let depth = depth_of_both(probe, reads, writes);
                together.longer = points(probe, (reads, &longer), depth, &RATIOS_LARGE)?;
            }
        }
        if let (Some(reads), Some(writes)) = (of(Kind::LargeReads), of(Kind::LargeWrites)) {
            together.large = Both::measure(probe, (reads, writes), &RATIOS_LARGE)?;
        }
        Ok(together)
    }

    fn budget_of(&self, kind: Kind) -> Budget {
        if kind.is_large() { self.large.budget() } else { self.small.budget() }
    }

    /// Whether this kind has a budget of its own.
    pub(super) fn is_separate(&self, kind: Kind) -> bool {
        self.budget_of(kind) == Budget::Separate
    }

    /// Whether this kind draws from the budget of the other direction.
    pub(super) fn covers(&self, kind: Kind) -> bool {
        self.budget_of(kind).is_shared()
    }
}

impl Budget {
    fn is_shared(&self) -> bool {
        matches!(self, Self::Shared { .. })
    }
}

/// Whether two loads met the same cap.
fn is_same(rate: f64, cap: f64) -> bool {
    (rate / cap.max(1e-9) - 1.0).abs() <= SAME_SHARE
}

/// The depth for both: more would wait longer than a short load takes.
fn depth_of_both(probe: &Probe<'_, '_>, reads: &Cap, writes: &Cap) -> usize {
    probe.depth_for(reads.rate.max(writes.rate), reads.latency.max(writes.latency))
}

/// Both directions one after the other.
fn alone(probe: &mut Probe<'_, '_>, reads: &Cap, writes: &Cap, depth: usize) -> Result<Option<Point>, LearnError> {
    probe.spend(&[reads, writes])?;
    let Some(x) = probe.rates(&[reads.stream.at_depth(depth)], "reads alone")? else { return Ok(None) };
    // Meanwhile the bucket of writes gained something.
    probe.spend(&[reads, writes])?;
    let Some(y) = probe.rates(&[writes.stream.at_depth(depth)], "writes alone")? else { return Ok(None) };
    Ok(Some((x[0], y[0])))
}

fn points(
    probe: &mut Probe<'_, '_>,
    (reads, writes): (&Cap, &Cap),
    depth: usize,
    ratios: &[(usize, usize)],
) -> Result<Vec<Point>, LearnError> {
    let mut points = Vec::new();
    for &(r, w) in ratios {
        let most = r.max(w);
        probe.spend(&[reads, writes])?;
        let streams = [reads.stream.at_depth(depth * r / most), writes.stream.at_depth(depth * w / most)];
        let Some(rates) = probe.rates(&streams, "reads and writes together")? else { break };
        points.push((rates[0], rates[1]));
    }
    Ok(points)
}

/// Which hypothesis the points of both together support, given the rates of each alone.
fn budget(points: &[Point], (reads, writes): Point) -> Budget {
    if points.len() < 3 {
        return Budget::Unclear;
    }
    let is_corner = |&(x, y): &Point| x >= reads * (1.0 - SAME_SHARE) && y >= writes * (1.0 - SAME_SHARE);
    if points.iter().any(is_corner) {
        return Budget::Separate;
    }
    // The rates of one direction alone need not be on the line of both, and those of both at the cap of one neither.
    let is_inside = |&(x, y): &Point| x < reads * (1.0 - SAME_SHARE) && y < writes * (1.0 - SAME_SHARE);
    let inside: Vec<Point> = points.iter().copied().filter(|point| is_inside(point)).collect();
    let with_ends: Vec<Point> = points.iter().copied().chain([(reads, 0.0), (0.0, writes)]).collect();
    let with_writes: Vec<Point> = points.iter().copied().chain([(0.0, writes)]).collect();
    let fits: [&[Point]; 4] = [&with_ends, &with_writes, points, &inside];
    fits.into_iter().find_map(line).unwrap_or(Budget::Unclear)
}

/// The line through the points, if they are on one.
fn line(points: &[Point]) -> Option<Budget> {
    let (cost, budget) = fit(points)?;
    let is_off = |&(x, y): &Point| (x + cost * y - budget).abs() > ON_LINE_SHARE * budget;
    let spread =
        points.iter().map(|&(_, y)| y * cost).fold((f64::INFINITY, 0.0), |(a, b): Point, y| (a.min(y), b.max(y)));
    if points.len() < 3 || cost <= 0.0 || points.iter().any(is_off) || spread.1 - spread.0 < 0.2 * budget {
        return None;
    }
    let without = |left_out: usize| {
        let rest: Vec<Point> = points.iter().enumerate().filter(|&(n, _)| n != left_out).map(|(_, &p)| p).collect();
        fit(&rest)
    };
    let again: Vec<(f64, f64)> = (0..points.len()).filter_map(without).collect();
    let ends = |value: f64, of: fn(&(f64, f64)) -> f64| {
        let low = again.iter().map(of).fold(value, f64::min) - 0.01 * value;
        [value, low, again.iter().map(of).fold(value, f64::max) + 0.01 * value]
    };
    Some(Budget::Shared { budget: ends(budget, |fit| fit.1), cost: ends(cost, |fit| fit.0) })
}

/// Least squares of x = budget − cost · y.
fn fit(points: &[Point]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let syy: f64 = points.iter().map(|p| (p.1 - my).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (points.len() >= 2 && syy > 0.0).then(|| (-sxy / syy, mx - sxy / syy * my))
}

/// Sets the figures of shared budgets. Writes of a budget that reads were seen to exhaust are as certain as the reads.
pub(super) fn settle(together: &Together, caps: &mut [Cap], draft: &mut ProfileDraft) {
    let recipe = "reads and writes together at several ratios of their depths";
    let (small, large) = (together.small.budget(), together.large.budget());
    let is_limit = |caps: &[Cap], kind: Kind| caps.iter().any(|cap| cap.kind == kind && cap.is_limit());
    let small_counts = is_limit(caps, Kind::Reads) || is_limit(caps, Kind::Writes);
    let large_counts = is_limit(caps, Kind::LargeReads) || is_limit(caps, Kind::LargeWrites);
    let because = |reason: &str| Because { recipe, reason: reason.to_owned(), curve: None };
    let (flag, reason) = match (small, large) {
        (Budget::Shared { .. }, _) if small_counts => {
            (Figure::certain(true, true, true), "what writes get, reads lose")
        }
        (_, Budget::Shared { .. }) if large_counts => {
            (Figure::certain(true, true, true), "what large writes get, large reads lose")
        }
        (Budget::Separate, Budget::Separate | Budget::Unclear) if small_counts => {
            (Figure::certain(false, false, false), "both get together what each gets alone")
        }
        _ => (Figure::unknown(), "no limit was found, or the rates are neither those of each alone nor on a line"),
    };
    draft.settle(limit!(shared_budget), flag, because(reason));
    if flag.value.is_none()
        && let Some((reads, writes)) = together.small.alone
    {
        let both: Vec<String> = together.small.points.iter().map(|(x, y)| format!("{x:.0} and {y:.0}")).collect();
        let more = format!("alone {reads:.0} reads and {writes:.0} writes a second, together {}", both.join(", "));
        draft.add_to_reason("shared_budget", &more);
    }
    match small {
        Budget::Shared { budget, cost } if small_counts => {
            let is_certain = (is_seen(caps, Kind::Reads, budget[0])
                || is_seen(caps, Kind::Writes, budget[0] / cost[0]))
                && is_present(together.small.alone, caps, Kind::Reads, Kind::Writes);
            let [value, low, high] = budget;
            let figure = Figure::certain(value.round() as u64, low.floor() as u64, high.ceil() as u64);
            let reason = "the sum of reads and writes, each at its cost, was the same at each ratio";
            draft.settle(limit!(shared_iops_limit), open_unless(is_certain, figure), because(reason));
            let reason = "slope of the line through the rates of both";
            draft.settle(limit!(shared_write_cost), Figure::certain(cost[0], cost[1], cost[2]), because(reason));
            let large =
                caps.iter().filter(|cap| cap.kind.is_large()).map(|cap| cap.rate * cap.stream.length.bytes() as f64);
            // One of bytes that both directions meet: what a written byte costs of the budget limits large writes too.
            let bandwidth = large.reduce(f64::max).unwrap_or(f64::INFINITY);
            let is_of_bytes = caps.iter().any(|cap| cap.kind == Kind::Reads && cap.is_of_bytes);
            let bandwidth = if is_of_bytes { f64::INFINITY } else { bandwidth };
            settle_bytes(together, (budget[0], cost[0], bandwidth), draft, recipe);
            if is_of_bytes {
                draft.figures.limits.shared_write_cost_per_mib.doubt();
            }
            share(caps, is_certain, Kind::Reads, Kind::Writes);
        }
        Budget::Separate if small_counts => {
            draft.settle(limit!(shared_iops_limit), Figure::absent(), because("both directions met their own limits"));
            draft.settle(limit!(shared_write_cost), Figure::absent(), because("no budget is shared"));
            draft.settle(limit!(shared_write_cost_per_mib), Figure::absent(), because("no budget is shared"));
        }
        _ => {
            let reason = "no limit was found, or the rates of both together are on no line";
            draft.settle(limit!(shared_iops_limit), Figure::unknown(), because(reason));
            draft.settle(limit!(shared_write_cost), Figure::unknown(), because(reason));
            draft.settle(limit!(shared_write_cost_per_mib), Figure::unknown(), because(reason));
        }
    }
    match large {
        Budget::Shared { budget, cost } if large_counts => {
            let bytes = caps.iter().find(|cap| cap.kind == Kind::LargeReads).map_or(0, |cap| cap.stream.length.bytes());
            let is_certain = (is_seen(caps, Kind::LargeReads, budget[0])
                || is_seen(caps, Kind::LargeWrites, budget[0] / cost[0]))
                && is_present(together.large.alone, caps, Kind::LargeReads, Kind::LargeWrites);
            let [value, low, high] = budget.map(|rate| rate * bytes as f64);
            let figure = Figure::certain(value.round() as u64, low.floor() as u64, high.ceil() as u64);
            let reason = "the sum of both was the same at each ratio";
            draft.settle(limit!(shared_bandwidth_limit), open_unless(is_certain, figure), because(reason));
            share(caps, is_certain, Kind::LargeReads, Kind::LargeWrites);
        }
        Budget::Separate if large_counts => {
            let reason = "both directions met their own limits";
            draft.settle(limit!(shared_bandwidth_limit), Figure::absent(), because(reason));
        }
        _ => {
            let reason = "no limit was found, or the rates of both together are on no line";
            draft.settle(limit!(shared_bandwidth_limit), Figure::unknown(), because(reason));
        }
    }
}

/// What a written MiB costs, from writes of another length against the same budget, where no limit of bytes is met
/// first.
fn settle_bytes(
    together: &Together,
    (budget, cost, bandwidth): (f64, f64, f64),
    draft: &mut ProfileDraft,
    recipe: &str,
) {
    let because = |reason: String| Because { recipe, reason, curve: None };
    let bytes = |&(x, y): &Point| x * SMALL.bytes() as f64 + y * LONGER.bytes() as f64;
    let is_free = |point: &&Point| bytes(point) < bandwidth * (1.0 - SAME_SHARE);
    let shows = |&&(x, y): &&Point| y > 0.0 && x < 0.95 * budget;
    let free = together.longer.iter().filter(is_free).filter(shows);
    let costs: Vec<f64> = free.map(|(x, y)| (budget - x) / y).collect();
    let Some((low, high)) = costs.iter().copied().map(|c| (c, c)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
        let reason = match together.longer.is_empty() {
            true => "longer writes were not measured together with reads".to_owned(),
            false => format!("together with writes of {LONGER}, the bandwidth limit is met first"),
        };
        return draft.settle(limit!(shared_write_cost_per_mib), Figure::unknown(), because(reason));
    };
    let longer = (low + high) / 2.0;
    let extra_mib = (LONGER.bytes() - 4096) as f64 / f64::from(1 << 20);
    let reason = format!("a write of 4 KiB costs {cost:.2} reads, one of {LONGER} costs {longer:.2}");
    let figure = if high - low > 0.1 * longer {
        Figure::unknown()
    } else if (longer - cost).abs() < 0.05 * cost {
        Figure::absent()
    } else {
        let slope = |longer: f64| (longer - cost) / extra_mib;
        let value = slope(longer);
        Figure::certain(value, slope(low).min(value * 0.97), slope(high).max(value * 1.03))
    };
    draft.settle(limit!(shared_write_cost_per_mib), figure, because(reason));
}

fn open_unless(is_certain: bool, figure: Figure<u64>) -> Figure<u64> {
    if is_certain { figure } else { Figure { verdict: flashwise_profile::Verdict::Inconclusive, ..figure } }
}

/// Whether the rates of each alone, when both were loaded together, are those that were found before.
fn is_present(alone: Option<Point>, caps: &[Cap], reads: Kind, writes: Kind) -> bool {
    let is_of = |kind: Kind, rate: f64| caps.iter().any(|cap| cap.kind == kind && is_same(rate, cap.rate));
    alone.is_some_and(|(x, y)| is_of(reads, x) && is_of(writes, y))
}

/// Whether a kind was seen to come down to a rate, and not to one of its own below the budget of both.
fn is_seen(caps: &[Cap], kind: Kind, rate: f64) -> bool {
    caps.iter().any(|cap| cap.kind == kind && cap.has_changed() && is_same(cap.rate, rate))
}

/// Where one of two kinds that draw from one budget was seen at its long-run rate, the other's is as certain: if it was
/// measured at that level, and not while the bucket was full again.
fn share(caps: &mut [Cap], is_certain: bool, first: Kind, second: Kind) {
    for cap in caps.iter_mut().filter(|cap| cap.kind == first || cap.kind == second) {
        cap.is_shared = is_certain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_at_the_corner_are_of_separate_budgets() {
        assert_eq!(budget(&[(3000.0, 1000.0); 5], (3000.0, 1000.0)), Budget::Separate);
    }

    #[test]
    fn rates_on_a_line_are_of_one_budget_with_its_slope() {
        let points: Vec<Point> =
            [0.1, 0.3, 0.5, 0.7, 0.9].map(|share| (3000.0 * share, 3000.0 * (1.0 - share) / 2.5)).to_vec();
        let Budget::Shared { budget: [total, low, high], cost } = budget(&points, (3000.0, 1200.0)) else {
            panic!("not shared");
        };
        assert!((total - 3000.0).abs() < 1.0 && low < 3000.0 && high > 3000.0 && (cost[0] - 2.5).abs() < 0.01);
    }

    #[test]
    fn a_line_that_reads_alone_do_not_reach_is_found() {
        // Reads end at 275, the budget of both is 366.
        let points: Vec<Point> = [200.0, 150.0, 100.0, 50.0].map(|x| (x, (366.0 - x) / 2.1)).to_vec();
        let Budget::Shared { budget: [total, ..], cost } = budget(&points, (275.0, 174.3)) else {
            panic!("not shared")
        };
        assert!((total - 366.0).abs() < 1.0 && (cost[0] - 2.1).abs() < 0.02, "{total} {cost:?}");
    }

    #[test]
    fn rates_on_no_line_are_reported_as_neither() {
        let points = [(2500.0, 300.0), (2000.0, 800.0), (1900.0, 850.0), (500.0, 900.0), (100.0, 950.0)];
        assert_eq!(budget(&points, (3000.0, 1000.0)), Budget::Unclear);
    }
}
