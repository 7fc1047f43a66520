//! What a volume grants in the long run, so that no rule takes a burst for it.
//!
//! A throughput that was measured for some minutes may be a burst. Where a profile knows limits, rules about a
//! sustained load follow from them; where a limit is inconclusive, no such rule decides.

use flashwise_block::{Operation, RateLimits};
use flashwise_profile::{DeviceProfile, Figure};

use super::EvidenceFigure;
use super::figures::{Measure, certain};

/// What writes get of a budget while reads want it too.
pub(crate) const WRITE_SHARE: f64 = 1.0 - RateLimits::READ_SHARE;

/// A sustained rate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Granted {
    /// Requests a second.
    pub(crate) rate: Measure,
    /// The limit that it follows from.
    pub(crate) evidence: EvidenceFigure,
    /// Whether reads and writes share it.
    pub(crate) is_shared: bool,
}

/// Requests of so many bytes that a volume grants each second, of the limits that are certain the one that binds;
/// `None` where none is known.
///
/// # Errors
/// Where a limit was seen and is inconclusive.
pub(crate) fn granted(profile: &DeviceProfile, operation: Operation, bytes: u64) -> Result<Option<Granted>, String> {
    let limits = &profile.limits;
    let is_write = operation == Operation::Write;
    let (iops, bandwidth) = match is_write {
        true => {
            (("write_iops_limit", &limits.write_iops_limit), ("write_bandwidth_limit", &limits.write_bandwidth_limit))
        }
        false => (("read_iops_limit", &limits.read_iops_limit), ("read_bandwidth_limit", &limits.read_bandwidth_limit)),
    };
    let shared = ("shared_iops_limit", &limits.shared_iops_limit);
    let shared_bandwidth = ("shared_bandwidth_limit", &limits.shared_bandwidth_limit);
    let operations = limits.charged_requests(bytes) as f64;
    let of_write = || limits.shared_cost_of_write(bytes).map(|cost| cost.of(bytes));
    let of_budget = if is_write { of_write() } else { Some(operations) };
    let rates = [
        (iops, Some(operations), false),
        (bandwidth, Some(bytes as f64), false),
        (shared, of_budget, true),
        (shared_bandwidth, Some(bytes as f64), true),
    ];
    let mut binding: Option<Granted> = None;
    for ((key, figure), cost, is_shared) in rates {
        let Some(cost) = cost.filter(|&cost| cost > 0.0) else { continue };
        let Some(rate) = rate(key, figure)? else { continue };
        let granted = Granted { rate: rate.times(1.0 / cost), evidence: rate.evidence(key, "per second"), is_shared };
        if binding.as_ref().is_none_or(|least| granted.rate.value < least.rate.value) {
            binding = Some(granted);
        }
    }
    Ok(binding)
}

fn rate(key: &str, figure: &Figure<u64>) -> Result<Option<Measure>, String> {
    match (figure.known(), figure.value) {
        (Some(_), _) => certain(figure, key).map(Some),
        (None, Some(_)) => Err(format!(
            "the volume's {} is inconclusive, and may be a burst: learn it with more time (--time-budget)",
            key.replace('_', " ").replace("iops", "IOPS")
        )),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use flashwise_profile::Limits;

    use super::*;
    use crate::servers::tests::profile;

    fn exactly(value: u64) -> Figure<u64> {
        Figure::certain(value, value, value)
    }

    fn rate_of(limits: Limits, operation: Operation, bytes: u64) -> Option<f64> {
        let profile = DeviceProfile { limits, ..profile() };
        granted(&profile, operation, bytes).unwrap().map(|granted| granted.rate.value)
    }

    #[test]
    fn the_limit_that_binds_at_a_length_decides() {
        let gp3 = Limits {
            write_iops_limit: exactly(3_000),
            write_bandwidth_limit: exactly(125 << 20),
            request_unit_bytes: exactly(256 << 10),
            ..Limits::default()
        };
        assert_eq!(rate_of(gp3.clone(), Operation::Write, 16 << 10), Some(3_000.0));
        assert_eq!(rate_of(gp3.clone(), Operation::Write, 128 << 10), Some(1_000.0));
        assert_eq!(rate_of(gp3, Operation::Read, 16 << 10), None);
    }

    #[test]
    fn a_shared_budget_charges_writes_by_what_they_cost() {
        let by_request = Limits {
            shared_iops_limit: exactly(6_000),
            shared_write_cost: Figure::certain(2.0, 2.0, 2.0),
            ..Limits::default()
        };
        assert_eq!(rate_of(by_request.clone(), Operation::Write, 8 << 10), Some(3_000.0));
        assert_eq!(rate_of(by_request.clone(), Operation::Read, 8 << 10), Some(6_000.0));
        let by_bytes = Limits { shared_write_cost_per_mib: Figure::certain(512.0, 512.0, 512.0), ..by_request };
        assert_eq!(rate_of(by_bytes, Operation::Write, 16 << 10), Some(750.0));
    }

    #[test]
    fn a_burst_that_may_end_is_no_ground_for_a_rule() {
        let limits = Limits { write_iops_limit: Figure::inconclusive(3_000, 0, 3_000), ..Limits::default() };
        let profile = DeviceProfile { limits, ..profile() };
        let why = granted(&profile, Operation::Write, 4096).unwrap_err();
        assert!(why.starts_with("the volume's write IOPS limit is inconclusive"), "{why}");
    }
}
