//! The size from which on a request is charged as several.
//!
//! Reads of growing length are loaded until they are limited. Where requests are charged by units, a read of s bytes
//! costs ⌈s ÷ unit⌉ reads of 4 KiB; where bytes bind first, the rate is the bandwidth ÷ s, and says nothing about
//! units.

use flashwise_block::{ByteSize, Operation};
use flashwise_profile::Figure;

use super::caps::Cap;
use super::{Kind, Probe};
use crate::LearnError;
use crate::draft::{Because, ProfileDraft, limit};

/// Lengths just above a power of two, and half-way to the next: costs of units differ most there. KiB.
const LENGTHS_KIB: [u64; 13] = [12, 20, 24, 36, 48, 68, 96, 132, 192, 260, 384, 516, 768];
/// A cost is that of a model within this share: short loads differ by less.
const COST_SHARE: f64 = 0.04;
/// A length is limited by bytes where its bandwidth is within this share of the limit.
const BYTES_SHARE: f64 = 0.03;

/// A length with what it costs, in reads of 4 KiB.
type Cost = (u64, f64);

/// What requests of growing length cost.
pub(super) struct Costs {
    /// The kind of small request that they are compared with; `None` where no limit was found.
    kind: Option<Kind>,
    costs: Vec<Cost>,
}

/// Measures what longer requests cost.
pub(super) fn measure(probe: &mut Probe<'_, '_>, caps: &[Cap]) -> Result<Costs, LearnError> {
    let of = |kind: Kind| caps.iter().find(|cap| cap.kind == kind && cap.is_limit());
    let Some(cap) = of(Kind::Reads).or(of(Kind::Writes)) else { return Ok(Costs { kind: None, costs: Vec::new() }) };
    let kind = Some(cap.kind);
    probe.spend(&[cap])?;
    let large = if cap.stream.operation == Operation::Read { Kind::LargeReads } else { Kind::LargeWrites };
    let bandwidth = caps.iter().find(|cap| cap.kind == large).map(|cap| cap.rate * cap.stream.length.bytes() as f64);
    let depth = probe.depth_for(cap.rate, cap.latency).min(cap.stream.depth);
    let Some(small) = probe.rates(&[cap.stream.at_depth(depth)], "request unit")? else {
        return Ok(Costs { kind, costs: Vec::new() });
    };
    let mut costs: Vec<Cost> = Vec::new();
    for length in LENGTHS_KIB.map(ByteSize::kib) {
        if length > probe.large || !length.is_multiple_of(probe.prober.logical_block()) {
            continue;
        }
        let mut stream = cap.stream.at_depth(depth);
        stream.length = length;
        // Long requests that bytes limit first let the bucket of operations fill.
        probe.spend(&[cap])?;
        let Some(rates) = probe.rates(&[stream], "request unit")? else { break };
        let bytes = rates[0] * length.bytes() as f64;
        if bandwidth.is_none_or(|most| bytes < most * (1.0 - BYTES_SHARE)) {
            costs.push((length.bytes(), small[0] / rates[0].max(1e-9)));
        }
    }
    Ok(Costs { kind, costs })
}

impl Costs {
    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// Whether longer requests cost the same, or whole multiples: no drive does that.
    pub(super) fn are_by_requests(&self) -> bool {
        self.costs.len() >= LENGTHS_MIN && (is_unit(&self.costs, u64::MAX) || found(&self.costs).is_some())
    }

    /// Sets the figure of the unit.
    pub(super) fn settle(&self, longest: ByteSize, draft: &mut ProfileDraft) {
        let (figure, reason) = match self.kind {
            Some(_) => unit(&self.costs, longest),
            None => (Figure::unknown(), "no limit on requests was found".to_owned()),
        };
        let recipe = "random requests of growing length at the limit";
        draft.settle(limit!(request_unit_bytes), figure, Because { recipe, reason, curve: None });
    }
}

/// Lengths of which the cost must be known to say that requests are counted.
const LENGTHS_MIN: usize = 3;

/// Whether costs are those of whole units.
fn is_unit(costs: &[Cost], unit: u64) -> bool {
    costs.iter().all(|&(length, cost)| {
        let units = length.div_ceil(unit) as f64;
        (cost - units).abs() <= COST_SHARE * units
    })
}

/// The unit that explains the costs.
fn found(costs: &[Cost]) -> Option<u64> {
    let &(last, _) = costs.last()?;
    (12..=20).map(|bits| 1_u64 << bits).find(|&unit| is_unit(costs, unit) && unit < last)
}

fn unit(costs: &[Cost], longest: ByteSize) -> (Figure<u64>, String) {
    let Some(&(last, _)) = costs.last() else {
        return (Figure::unknown(), "the bandwidth limit is met first at each length".to_owned());
    };
    if is_unit(costs, u64::MAX) {
        // The longest that was tried is three quarters of the longest that there is.
        return if last * 4 / 3 >= longest.bytes() {
            (Figure::absent(), "requests of any length are granted alike".to_owned())
        } else {
            let reason =
                format!("requests up to {} count as one; beyond, the bandwidth limit is met first", ByteSize(last));
            (Figure::unknown(), reason)
        };
    }
    match found(costs) {
        Some(unit) => {
            let reason = format!("a request of s bytes costs as much as s ÷ {} requests, rounded up", ByteSize(unit));
            (Figure::certain(unit, unit, unit), reason)
        }
        None => (Figure::unknown(), "the cost of longer requests does not grow in steps of one size".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_profile::Verdict;

    fn costs(unit: u64, up_to: u64) -> Vec<Cost> {
        let lengths = LENGTHS_KIB.iter().map(|kib| kib << 10).filter(|&length| length <= up_to);
        lengths.map(|length| (length, length.div_ceil(unit) as f64 * 1.01)).collect()
    }

    #[test]
    fn costs_in_steps_have_a_unit() {
        for unit_bytes in [4 << 10, 16 << 10, 256 << 10] {
            assert_eq!(unit(&costs(unit_bytes, 1 << 20), ByteSize::mib(1)).0.known(), Some(unit_bytes));
        }
    }

    #[test]
    fn a_unit_beyond_what_the_bandwidth_lets_through_is_unknown() {
        assert_eq!(unit(&costs(256 << 10, 100 << 10), ByteSize::mib(1)).0, Figure::unknown());
        assert_eq!(unit(&[], ByteSize::mib(1)).0, Figure::unknown());
    }

    #[test]
    fn requests_that_count_as_one_at_any_length_have_no_unit() {
        assert_eq!(unit(&costs(u64::MAX, 1 << 20), ByteSize::mib(1)).0.verdict, Verdict::Absent);
    }
}
