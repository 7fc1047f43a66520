//! The limits that a learner should find of a simulated volume.
//!
//! A request of one kind takes some tokens of each bucket that counts it. In the long run the bucket with the fewest
//! requests' worth of refill decides (the *binding* one), for a while the lowest of the peaks; what is granted beyond
//! the long run is the size of the binding bucket. Figures that two buckets decide together have no truth here.

use flashwise_block::Operation;
use flashwise_profile::{Figure, Limits};
use flashwise_volume::{AtLimit, Counts, DelayConfig, Direction, LimitConfig, Volume};

use crate::exactly;

/// Requests that IOPS are counted in.
const SMALL: u64 = 4096;
/// The longest request of a learner.
const LARGE_MAX: u64 = 1 << 20;
/// Shares of the limit between which the medium's own speed decides together with it.
const NEAR: std::ops::Range<f64> = 0.8..1.25;
/// Tokens of a bucket, in seconds of its refill, from which on it is a burst, and below which it is slack.
const BURST_SECONDS: f64 = 1.0;
/// Requests of a bucket from which on it stands out of what is on its way anyhow.
const REQUESTS_MIN: f64 = 200.0;
/// Requests in flight of a learner, at least, so that they try again one after the other.
const HELD: f64 = 32.0;
/// A rate of which another is less than this share above it is no burst.
const BURST_SHARE: f64 = 1.02;

/// A kind of request.
#[derive(Clone, Copy)]
struct Kind {
    operation: Operation,
    bytes: u64,
}

/// A limit with what requests of one kind take from it.
#[derive(Clone, Copy)]
struct Bound<'a> {
    limit: &'a LimitConfig,
    /// Requests a second in the long run.
    rate: f64,
    /// Requests a second while its bucket lasts; infinite where nothing else limits them.
    peak: f64,
    /// Requests that its full bucket holds.
    size: f64,
}

/// What is known of one kind.
#[derive(Clone, Copy)]
enum Rate<'a> {
    /// A limit decides.
    Limited(Bound<'a>, f64),
    /// The medium or the queue, or nothing.
    Unlimited,
    /// Both are too near each other.
    Unclear,
}

/// The limits of a volume, as far as one of them decides each figure.
///
/// # Example
/// ```
/// use flashwise_volume::Volume;
/// let volume = Volume::from_toml(
///     r#"
///     name = "3,000 requests a second"
///     capacity_bytes = 1_073_741_824
///     limits = [{ name = "IOPS", counts = "requests", rate_per_s = 3000 }]
///     medium.plain = { read_ns = 200_000, write_ns = 300_000 }
///     "#,
///     "example",
/// )?;
/// assert_eq!(flashwise_truth::limits(&volume).read_iops_limit.known(), Some(3000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn limits(volume: &Volume) -> Limits {
    let mut truth = Limits::default();
    let Some(speed) = speed(volume) else { return truth };
    let large = largest(volume);
    let kinds = [
        Kind { operation: Operation::Read, bytes: SMALL },
        Kind { operation: Operation::Write, bytes: SMALL },
        Kind { operation: Operation::Read, bytes: large },
        Kind { operation: Operation::Write, bytes: large },
    ];
    let rates = kinds.map(|kind| rate(volume, kind, speed(kind)));
    let [read, write, large_read, large_write] = rates;
    let small_scale = 1.0;
    (truth.read_iops_limit, truth.read_iops_burst) = caps(read, small_scale);
    (truth.write_iops_limit, truth.write_iops_burst) = caps(write, small_scale);
    (truth.read_bandwidth_limit, truth.read_bandwidth_burst) = caps(large_read, large as f64);
    (truth.write_bandwidth_limit, truth.write_bandwidth_burst) = caps(large_write, large as f64);
    (truth.burst_operations, truth.burst_operations_refill) = bucket(read, small_scale);
    (truth.write_burst_operations, truth.write_burst_operations_refill) = own_bucket(read, write, small_scale);
    (truth.burst_bytes, truth.burst_bytes_refill) = bucket(large_read, large as f64);
    (truth.write_burst_bytes, truth.write_burst_bytes_refill) = own_bucket(large_read, large_write, large as f64);
    shared(volume, &mut truth, [read, write, large_read, large_write], large);
    truth.request_unit_bytes = unit(volume, read, large, speed(kinds[0]));
    truth.throttle_hold_ns = hold(&rates);
    truth
}

/// The longest request of a learner: a power of two.
fn largest(volume: &Volume) -> u64 {
    let most = volume.config.max_transfer_bytes.clamp(1, LARGE_MAX);
    1 << most.ilog2()
}

/// Requests a second that medium, network and queue serve at most; `None` for media whose speed depends on the place.
fn speed(volume: &Volume) -> Option<impl Fn(Kind) -> f64 + '_> {
    let plain = volume.config.medium.plain.as_ref()?;
    let network = &volume.config.network;
    Some(move |kind: Kind| {
        let (base, per_s, delay) = match kind.operation {
            Operation::Read => (plain.read_ns, plain.read_bytes_per_s, &network.read),
            _ => (plain.write_ns, plain.write_bytes_per_s, &network.write),
        };
        let transfer = if per_s > 0 { kind.bytes as f64 / per_s as f64 } else { 0.0 };
        let service = base as f64 / 1e9 + transfer;
        let by_queue = f64::from(volume.config.queue_depth) / (service + middle(delay));
        let by_medium = if plain.parallel > 0 { f64::from(plain.parallel) / service } else { f64::INFINITY };
        by_queue.min(by_medium)
    })
}

/// A middle delay, s.
fn middle(delay: &DelayConfig) -> f64 {
    let point = delay.percentiles.iter().find(|point| point.share >= 0.5).map_or(0, |point| point.delay_ns);
    (delay.fixed_ns + delay.median_ns.max(point)) as f64 / 1e9
}

fn tokens(limit: &LimitConfig, kind: Kind) -> f64 {
    if !limit.covers(kind.operation) {
        return 0.0;
    }
    let (read, write) = limit.costs();
    let cost = if kind.operation == Operation::Read { read } else { write };
    let units = if limit.unit_bytes > 0 { kind.bytes.div_ceil(limit.unit_bytes) } else { 1 };
    cost.per_request * units as f64 + cost.per_byte * kind.bytes as f64
}

/// Each limit that counts a kind.
fn bounds(volume: &Volume, kind: Kind) -> Vec<Bound<'_>> {
    let config = &volume.config;
    let own = config.limits.iter().map(|limit| (limit, 0.0));
    let shared = config.instance.limits.iter().map(|limit| (limit, config.instance.used_per_s(limit)));
    own.chain(shared).filter_map(|(limit, used)| Bound::of(limit, used, kind)).collect()
}

impl<'a> Bound<'a> {
    /// What a limit grants of a kind, if it counts it; `used` tokens a second are others'.
    fn of(limit: &'a LimitConfig, used: f64, kind: Kind) -> Option<Self> {
        let cost = tokens(limit, kind);
        let rate = (limit.rate_per_s as f64 - used) / cost;
        let size = limit.size as f64 / cost;
        let is_burst = size / rate > BURST_SECONDS;
        let peak = limit.peak_per_s.map_or(if is_burst { f64::INFINITY } else { rate }, |peak| peak as f64 / cost);
        (cost > 0.0).then_some(Self { limit, rate, peak, size })
    }

    /// Whether its bucket is full again before those that are held come back, so that what is granted depends on how
    /// many there are. A bucket of the peak holds one request.
    fn loses_tokens(&self) -> bool {
        let between_tries = self.rate * self.limit.hold_ns as f64 / 1e9 / HELD;
        self.limit.at_limit == AtLimit::Hold
            && (self.limit.peak_per_s.is_some() || self.size < 4.0 * (1.0 + between_tries))
    }
}

fn rate(volume: &Volume, kind: Kind, speed: f64) -> Rate<'_> {
    let bounds = bounds(volume, kind);
    let Some(&binding) = bounds.iter().min_by(|a, b| a.rate.total_cmp(&b.rate)) else { return Rate::Unlimited };
    match speed / binding.rate {
        _ if bounds.iter().any(Bound::loses_tokens) => Rate::Unclear,
        share if share < NEAR.start => Rate::Unlimited,
        share if share < NEAR.end => Rate::Unclear,
        _ => Rate::Limited(binding, bounds.iter().map(|bound| bound.peak).fold(speed, f64::min)),
    }
}

/// Long-run rate and burst.
fn caps(rate: Rate<'_>, scale: f64) -> (Figure<u64>, Figure<u64>) {
    let whole = |x: f64| exactly((x * scale).round() as u64);
    match rate {
        Rate::Limited(bound, peak) => {
            let is_burst = peak > bound.rate * BURST_SHARE;
            let burst = match bound.limit.peak_per_s {
                _ if !is_burst => Figure::absent(),
                Some(_) => whole(peak),
                None => Figure::unknown(),
            };
            (whole(bound.rate), burst)
        }
        Rate::Unlimited => (Figure::absent(), Figure::unknown()),
        Rate::Unclear => (Figure::unknown(), Figure::unknown()),
    }
}

/// Size and refill of the bucket of one kind, where it is large enough to stand out.
fn bucket(rate: Rate<'_>, scale: f64) -> (Figure<u64>, Figure<u64>) {
    let whole = |x: f64| exactly((x * scale).round() as u64);
    let bound = match rate {
        Rate::Limited(bound, _) if bound.size >= REQUESTS_MIN => bound,
        _ => return (Figure::unknown(), Figure::unknown()),
    };
    if bound.size / bound.rate < BURST_SECONDS {
        return (whole(bound.size), Figure::unknown());
    }
    (whole(bound.size), whole(bound.rate))
}

/// The same of writes, which have none of their own where one limit decides both.
fn own_bucket(read: Rate<'_>, write: Rate<'_>, scale: f64) -> (Figure<u64>, Figure<u64>) {
    match (read, write) {
        (Rate::Limited(read, _), Rate::Limited(write, _)) if std::ptr::eq(read.limit, write.limit) => {
            (Figure::absent(), Figure::absent())
        }
        (Rate::Limited(..), _) => bucket(write, scale),
        _ => (Figure::unknown(), Figure::unknown()),
    }
}

fn shared(volume: &Volume, truth: &mut Limits, [read, write, large_read, large_write]: [Rate<'_>; 4], large: u64) {
    let joint = |a: Rate<'_>, b: Rate<'_>| match (a, b) {
        (Rate::Limited(a, _), Rate::Limited(b, _)) if std::ptr::eq(a.limit, b.limit) => Some((a.rate, b.rate)),
        _ => None,
    };
    let has_joint = volume
        .config
        .limits
        .iter()
        .chain(&volume.config.instance.limits)
        .any(|limit| limit.direction == Direction::Joint);
    let small = joint(read, write);
    let bytes = joint(large_read, large_write);
    if small.is_some() || bytes.is_some() {
        truth.shared_budget = exactly(true);
    } else if !has_joint && matches!((read, write), (Rate::Limited(..), Rate::Limited(..))) {
        truth.shared_budget = exactly(false);
        truth.shared_iops_limit = Figure::absent();
        truth.shared_write_cost = Figure::absent();
        truth.shared_write_cost_per_mib = Figure::absent();
    }
    if let (Some((reads, writes)), Rate::Limited(bound, _)) = (small, read) {
        truth.shared_iops_limit = exactly(reads.round() as u64);
        truth.shared_write_cost = exactly(reads / writes);
        let (_, cost) = bound.limit.costs();
        let read = tokens(bound.limit, Kind { operation: Operation::Read, bytes: SMALL });
        truth.shared_write_cost_per_mib = match bound.limit.counts {
            Counts::Requests if bound.limit.unit_bytes == 0 || bound.limit.unit_bytes >= 16 << 10 => Figure::absent(),
            Counts::Requests => Figure::unknown(),
            Counts::Bytes | Counts::Cost => exactly(cost.per_byte * f64::from(1 << 20) / read),
        };
    }
    if let Some((reads, writes)) = bytes {
        let is_same = (reads / writes - 1.0).abs() < 0.01;
        truth.shared_bandwidth_limit =
            if is_same { exactly((reads * large as f64).round() as u64) } else { Figure::unknown() };
    }
}

/// The unit, where requests just above it are still limited by their number.
fn unit(volume: &Volume, read: Rate<'_>, large: u64, speed: f64) -> Figure<u64> {
    let Rate::Limited(bound, _) = read else { return Figure::unknown() };
    let is_bound_at = |bytes: u64| {
        let kind = Kind { operation: Operation::Read, bytes };
        matches!(rate(volume, kind, speed), Rate::Limited(other, _) if std::ptr::eq(other.limit, bound.limit))
    };
    match (bound.limit.counts, bound.limit.unit_bytes) {
        (Counts::Requests, 0) if is_bound_at(large) => Figure::absent(),
        (Counts::Requests, unit) if unit > 0 && unit < large / 2 && is_bound_at(unit + SMALL) => exactly(unit),
        _ => Figure::unknown(),
    }
}

fn hold(rates: &[Rate<'_>]) -> Figure<u64> {
    let limits = rates.iter().filter_map(|rate| match rate {
        Rate::Limited(bound, _) => Some(bound.limit),
        _ => None,
    });
    let holds: Vec<u64> = limits.map(|limit| if limit.at_limit == AtLimit::Hold { limit.hold_ns } else { 0 }).collect();
    match holds.first() {
        Some(&first) if holds.iter().all(|&hold| hold == first) => {
            if first > 0 {
                exactly(first)
            } else {
                Figure::absent()
            }
        }
        _ => Figure::unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(limits: &str) -> Volume {
        let text = format!(
            "name = 'test'\ncapacity_bytes = 1_073_741_824\nlimits = [{limits}]\n\
             medium.plain = {{ read_ns = 200_000, write_ns = 300_000 }}"
        );
        Volume::from_toml(&text, "test").unwrap()
    }

    #[test]
    fn the_bucket_with_the_fewest_requests_decides() {
        let truth = limits(&volume(
            "{ name = 'IOPS', counts = 'requests', rate_per_s = 3000 }, \
             { name = 'bytes', counts = 'bytes', rate_per_s = 131_072_000 }",
        ));
        assert_eq!(truth.read_iops_limit.known(), Some(3000));
        assert_eq!(truth.read_bandwidth_limit.known(), Some(131_072_000));
        assert_eq!((truth.shared_budget.known(), truth.shared_write_cost.known()), (Some(true), Some(1.0)));
    }

    #[test]
    fn a_bucket_with_a_peak_is_a_burst_above_its_refill() {
        let truth = limits(&volume(
            "{ name = 'IOPS', counts = 'requests', rate_per_s = 300, size = 5_400_000, peak_per_s = 3000 }",
        ));
        assert_eq!((truth.read_iops_limit.known(), truth.read_iops_burst.known()), (Some(300), Some(3000)));
        assert_eq!(
            (truth.burst_operations.known(), truth.burst_operations_refill.known()),
            (Some(5_400_000), Some(300))
        );
    }

    #[test]
    fn a_limit_that_the_medium_does_not_reach_is_absent() {
        let truth = limits(&volume("{ name = 'IOPS', counts = 'requests', rate_per_s = 100_000_000 }"));
        assert_eq!(truth.read_iops_limit, Figure::absent());
    }

    #[test]
    fn writes_have_a_bucket_of_their_own_where_another_limit_decides() {
        let burst = |name: &str, direction: &str, rate: u64| {
            format!(
                "{{ name = '{name}', direction = '{direction}', counts = 'requests', rate_per_s = {rate}, \
                 size = 1_000_000, peak_per_s = 3000 }}"
            )
        };
        let apart = limits(&volume(&[burst("reads", "read", 300), burst("writes", "write", 200)].join(", ")));
        assert_eq!(
            (apart.burst_operations_refill.known(), apart.write_burst_operations_refill.known()),
            (Some(300), Some(200))
        );
        let joint = limits(&volume(&burst("IOPS", "joint", 300)));
        assert_eq!((joint.burst_operations.known(), joint.write_burst_operations), (Some(1_000_000), Figure::absent()));
    }

    #[test]
    fn directions_with_limits_of_their_own_share_nothing() {
        let truth = limits(&volume(
            "{ name = 'reads', direction = 'read', counts = 'requests', rate_per_s = 5000, at_limit = 'hold', \
             hold_ns = 3_000_000, size = 600 }, \
             { name = 'writes', direction = 'write', counts = 'requests', rate_per_s = 2000, at_limit = 'hold', \
             hold_ns = 3_000_000, size = 300 }",
        ));
        assert_eq!((truth.shared_budget.known(), truth.throttle_hold_ns.known()), (Some(false), Some(3_000_000)));
    }
}
