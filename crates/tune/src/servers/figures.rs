//! Figures of a profile as evidence: those that are certain, and points of its throughput curves.

use flashwise_block::{ByteSize, Operation};
use flashwise_profile::{DeviceProfile, Figure, ThroughputCurve, ThroughputPoint, Verdict};

use super::EvidenceFigure;

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Measure {
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    /// A quotient with the widest interval that those of both allow.
    pub(crate) fn over(self, other: Self) -> Self {
        Self { value: self.value / other.value, low: self.low / other.high, high: self.high / other.low }
    }

    pub(crate) fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    pub(crate) fn evidence(self, figure: impl Into<String>, unit: &str) -> EvidenceFigure {
        let Self { value, low, high } = self;
        EvidenceFigure { figure: figure.into(), value, low, high, unit: unit.to_owned() }
    }
}

/// A counter of a server, which has no interval.
pub(crate) fn counted(figure: &str, count: f64, unit: &str) -> EvidenceFigure {
    Measure { value: count, low: count, high: count }.evidence(figure, unit)
}

/// A figure, or why it is no ground to change anything.
pub(crate) fn certain(figure: &Figure<u64>, what: &str) -> Result<Measure, String> {
    let whole = |value: Option<u64>, otherwise: u64| value.unwrap_or(otherwise) as f64;
    match figure.known() {
        Some(value) => {
            Ok(Measure { value: value as f64, low: whole(figure.low, value), high: whole(figure.high, value) })
        }
        None => Err(why_not(figure, what)),
    }
}

/// Why a figure that is not known is not.
pub(crate) fn why_not<T>(figure: &Figure<T>, what: &str) -> String {
    match (figure.verdict, figure.value.is_some()) {
        (Verdict::Absent, _) => format!("the drive has no {what}"),
        (_, true) => format!("the profile has no certain {what}"),
        (_, false) => format!("the profile has no {what}"),
    }
}

/// Random requests per second of a length with that many in flight; interpolated between two measured depths, and
/// `None` beyond the measured ones.
pub(crate) fn iops(profile: &DeviceProfile, operation: Operation, bytes: u64, in_flight: f64) -> Option<Measure> {
    let curve = profile.curves.throughput.iter().find(|c| c.operation == operation && c.request_bytes == bytes)?;
    at(curve, in_flight)
}

fn at(curve: &ThroughputCurve, in_flight: f64) -> Option<Measure> {
    let depth = |point: &ThroughputPoint| f64::from(point.in_flight);
    let above = curve.points.iter().filter(|p| depth(p) >= in_flight).min_by_key(|p| p.in_flight)?;
    let below = curve.points.iter().filter(|p| depth(p) <= in_flight).max_by_key(|p| p.in_flight)?;
    let way = depth(above) - depth(below);
    let share = if way > 0.0 { (in_flight - depth(below)) / way } else { 0.0 };
    let between = |get: fn(&ThroughputPoint) -> f64| get(below) + (get(above) - get(below)) * share;
    Some(Measure { value: between(|p| p.iops), low: between(|p| p.low), high: between(|p| p.high) })
}

/// The most requests a second of a length at any depth.
pub(crate) fn saturated_iops(profile: &DeviceProfile, operation: Operation, bytes: u64) -> Option<Measure> {
    let curve = profile.curves.throughput.iter().find(|c| c.operation == operation && c.request_bytes == bytes)?;
    let best = curve.points.iter().max_by(|a, b| a.iops.total_cmp(&b.iops))?;
    Some(Measure { value: best.iops, low: best.low, high: best.high })
}

/// Shares of the most requests a second from which on a deeper queue is mentioned: nearly all, and all but noise.
const MENTIONED_SHARES: [f64; 2] = [DEEP_ENOUGH, 0.98];

/// What depths reach of the drive's requests a second: `depth 2 reaches 14 % of the drive's random reads of 8 KiB, 16
/// 91 %, 32 100 %`. Beside the given depths, those are mentioned with which the drive is nearly busy. `None` where the
/// profile has no curve for them.
pub(crate) fn reach(profile: &DeviceProfile, operation: Operation, bytes: u64, depths: &[f64]) -> Option<String> {
    let curve = profile.curves.throughput.iter().find(|c| c.operation == operation && c.request_bytes == bytes)?;
    let most = saturated_iops(profile, operation, bytes)?.value;
    let nearly = MENTIONED_SHARES.iter().filter_map(|&share| depth_reaching(profile, operation, bytes, share));
    let mut depths: Vec<f64> = depths.iter().copied().chain(nearly).collect();
    depths.sort_by(f64::total_cmp);
    depths.dedup();
    let reached = depths.into_iter().filter_map(|depth| Some((depth, at(curve, depth)?.value / most)));
    let mut words = reached.map(|(depth, share)| format!("{depth} {:.0} %", share * 100.0));
    let (first, rest) = (words.next()?, words.collect::<Vec<_>>());
    let what = if operation == Operation::Write { "writes" } else { "reads" };
    let (depth, share) = first.split_once(' ')?;
    let rest: String = rest.iter().map(|words| format!(", {words}")).collect();
    Some(format!("depth {depth} reaches {share} of the drive's random {what} of {}{rest}", ByteSize(bytes)))
}

/// The share of the most requests a second from which on a queue is deep enough. PostgreSQL 15's cold bitmap heap scan
/// of 9,355 blocks on the simulated Samsung 960 EVO took 592 ms with 19 reads ahead (64 % of the drive's reads), 498 ms
/// with 64 (91 %) and 447 ms with 256.
pub(crate) const DEEP_ENOUGH: f64 = 0.9;

/// The smallest measured depth that reaches a share of the most requests a second of a length.
pub(crate) fn depth_reaching(profile: &DeviceProfile, operation: Operation, bytes: u64, share: f64) -> Option<f64> {
    let curve = profile.curves.throughput.iter().find(|c| c.operation == operation && c.request_bytes == bytes)?;
    let most = saturated_iops(profile, operation, bytes)?.value;
    let reaching = curve.points.iter().filter(|point| point.iops >= share * most);
    reaching.map(|point| point.in_flight).min().map(f64::from)
}

/// The share of the most requests a second of a length that a depth reaches; all of it beyond the measured depths.
/// `None` where the profile has no curve.
pub(crate) fn share_at(profile: &DeviceProfile, operation: Operation, bytes: u64, in_flight: f64) -> Option<f64> {
    let most = saturated_iops(profile, operation, bytes)?.value;
    let deepest = profile.curves.throughput.iter().filter(|c| c.operation == operation && c.request_bytes == bytes);
    let deepest = deepest.flat_map(|curve| &curve.points).map(|point| point.in_flight).max()?;
    iops(profile, operation, bytes, in_flight.min(f64::from(deepest))).map(|rate| rate.value / most)
}

/// Single reads a second of a length, one at a time, wherever they start.
pub(crate) fn single_reads(profile: &DeviceProfile, bytes: u64) -> Option<Measure> {
    let curve = profile.curves.location.iter().find(|curve| curve.read_bytes == bytes)?;
    let mut medians: Vec<u64> = curve.latency_ns.iter().map(|latency| latency.median).collect();
    medians.sort_unstable();
    let median = *medians.get(medians.len() / 2)?;
    let slowest = curve.latency_ns.iter().map(|latency| latency.high).max()?;
    let fastest = curve.latency_ns.iter().map(|latency| latency.low).min()?;
    let rate = |ns: u64| 1e9 / ns.max(1) as f64;
    Some(Measure { value: rate(median), low: rate(slowest), high: rate(fastest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u32, f64)]) -> ThroughputCurve {
        let point =
            |&(in_flight, iops): &(u32, f64)| ThroughputPoint { in_flight, iops, low: iops - 1.0, high: iops + 2.0 };
        ThroughputCurve { operation: Operation::Read, request_bytes: 8192, points: points.iter().map(point).collect() }
    }

    #[test]
    fn between_two_depths_a_curve_is_a_line_and_beyond_them_nothing() {
        let curve = curve(&[(1, 100.0), (4, 400.0), (8, 500.0)]);
        assert_eq!(at(&curve, 4.0).unwrap().value, 400.0);
        assert_eq!(at(&curve, 6.0).unwrap(), Measure { value: 450.0, low: 449.0, high: 452.0 });
        assert_eq!((at(&curve, 9.0), at(&curve, 0.5)), (None, None));
    }

    #[test]
    fn a_depth_is_found_for_a_share_and_a_share_for_a_depth() {
        let profile = crate::servers::tests::profile();
        let of_reads = |share| depth_reaching(&profile, Operation::Read, 8192, share);
        assert_eq!((of_reads(0.9), of_reads(0.95), of_reads(1.1)), (Some(16.0), Some(32.0), None));
        let share = |depth| share_at(&profile, Operation::Read, 8192, depth);
        assert_eq!((share(1.0), share(32.0), share(500.0)), (Some(12.0 / 140.0), Some(1.0), Some(1.0)));
        assert_eq!(share_at(&profile, Operation::Read, 16_384, 1.0), None);
    }

    #[test]
    fn the_share_that_each_depth_reaches_is_reported() {
        let mut profile = crate::servers::tests::profile();
        let reached = |profile: &DeviceProfile, depths: &[f64]| reach(profile, Operation::Read, 8192, depths);
        assert_eq!(
            reached(&profile, &[2.0, 16.0]).unwrap(),
            "depth 2 reaches 14 % of the drive's random reads of 8 KiB, 16 91 %, 32 100 %"
        );
        assert_eq!(
            reached(&profile, &[500.0]).unwrap(),
            "depth 16 reaches 91 % of the drive's random reads of 8 KiB, 32 100 %",
            "nothing is known of depths beyond the curve"
        );
        profile.curves.throughput.clear();
        assert_eq!(reached(&profile, &[2.0]), None);
    }

    #[test]
    fn a_quotient_is_as_wide_as_both_intervals_allow() {
        let (a, b) = (Measure { value: 10.0, low: 9.0, high: 12.0 }, Measure { value: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(a.over(b), Measure { value: 5.0, low: 3.0, high: 12.0 });
        assert!(a.over(b).contains(12.0) && !a.over(b).contains(12.1));
    }

    #[test]
    fn what_is_not_certain_is_told_as_what_it_is() {
        assert_eq!(certain(&Figure::certain(5, 4, 6), "x").unwrap(), Measure { value: 5.0, low: 4.0, high: 6.0 });
        assert_eq!(certain(&Figure::absent(), "stripe").unwrap_err(), "the drive has no stripe");
        assert_eq!(certain(&Figure::inconclusive(1, 1, 1), "k_r").unwrap_err(), "the profile has no certain k_r");
        assert_eq!(certain(&Figure::unknown(), "k_r").unwrap_err(), "the profile has no k_r");
    }
}
