//! Reading a drive's learned curves at any size and any offset.

use flashwise_profile::{DurableWritePoint, HotLocation, LocationCurve, MedianNs};

/// `from + (to - from) · part / whole`, exact and without overflow.
fn between(from: u64, to: u64, part: u64, whole: u64) -> u64 {
    let (part, whole) = (u128::from(part), u128::from(whole));
    ((u128::from(from) * (whole - part) + u128::from(to) * part) / whole) as u64
}

/// Median latency of a durable write of `bytes`: linear between the curve's points, the first point's below them,
/// nothing beyond the last.
pub(crate) fn durable_write_ns(points: &[DurableWritePoint], bytes: u64) -> Option<u64> {
    let above = points.iter().filter(|p| p.write_bytes >= bytes).min_by_key(|p| p.write_bytes)?;
    let below = points.iter().filter(|p| p.write_bytes <= bytes).max_by_key(|p| p.write_bytes).unwrap_or(above);
    if above.write_bytes == below.write_bytes {
        return Some(above.latency_ns.median);
    }
    let (part, whole) = (bytes - below.write_bytes, above.write_bytes - below.write_bytes);
    Some(between(below.latency_ns.median, above.latency_ns.median, part, whole))
}

/// What a read loses by where it starts.
pub(crate) struct ReadLocation<'a> {
    curve: &'a LocationCurve,
    hot: HotLocation,
}

impl<'a> ReadLocation<'a> {
    /// The curve for reads of `length`: the nearest one that covers a whole period, if its length is within a factor
    /// of 1.5.
    pub(crate) fn for_length(curves: &'a [LocationCurve], hot: HotLocation, length: u64) -> Option<Self> {
        let covers = |c: &&LocationCurve| {
            hot.period_bytes > 0 && (c.latency_ns.len() as u64).saturating_mul(c.step_bytes) >= hot.period_bytes
        };
        let curve = curves.iter().filter(covers).min_by_key(|c| c.read_bytes.abs_diff(length))?;
        let (short, long) = (curve.read_bytes.min(length), curve.read_bytes.max(length));
        let near = u128::from(long) * 2 <= u128::from(short) * 3;
        near.then_some(Self { curve, hot })
    }

    /// Latency of a read that starts at `offset`, linear between the curve's points.
    fn at(&self, offset: u64) -> MedianNs {
        let (step, points) = (self.curve.step_bytes, &self.curve.latency_ns);
        let position = offset % self.hot.period_bytes;
        let index = (position / step) as usize;
        let (here, next) = (points[index], points[(index + 1) % points.len()]);
        let mix = |a, b| between(a, b, position % step, step);
        MedianNs {
            median: mix(here.median, next.median),
            low: mix(here.low, next.low),
            high: mix(here.high, next.high),
        }
    }

    /// What a read that starts at `offset` takes longer than one at a hot location; zero unless the intervals of the
    /// two are apart, so that noise never adds up to a cost.
    pub(crate) fn excess_ns(&self, offset: u64) -> u64 {
        let (here, hot) = (self.at(offset), self.at(self.hot.offset_bytes));
        if here.low > hot.high { here.median.saturating_sub(hot.median) } else { 0 }
    }

    /// The largest excess over one period, at the curve's own points.
    pub(crate) fn worst_excess_ns(&self) -> u64 {
        let offsets = (0..self.hot.period_bytes).step_by(self.curve.step_bytes as usize);
        offsets.map(|offset| self.excess_ns(offset)).max().unwrap_or(0)
    }
}
