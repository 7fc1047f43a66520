//! The limits of a volume: what a cloud grants, in the long run and for a while, and what it does with the rest.
//!
//! ```text
//!   rate granted
//!     ▲
//!     │▔▔▔▔▔▔▔▔▔▔▔▔▔▔▏                      *_burst: while credits last
//!     │  credits     ▏
//!     │▁▁▁▁▁▁▁▁▁▁▁▁▁▁▏▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  *_limit: in the long run
//!     └──────────────┴──────────────────▶ time under a load that is never satisfied
//! ```
//!
//! The area between both lines is the bucket: `burst_operations` or `burst_bytes`. A rate that was measured for a while
//! and did not change is certain only where no credits can have been left; otherwise it is inconclusive, and its
//! interval starts at 0: the drive may be slower later.

use flashwise_block::Cost;

use crate::parameters::figures;

figures! {
    /// The limits of a volume. One that was not probed is inconclusive and has no value.
    pub struct Limits;
    /// Reads of 4 KiB a second in the long run; absent where no limit binds before the drive does.
    read_iops_limit: u64, PerSecond, "read IOPS limit";
    /// Writes of 4 KiB a second in the long run; absent where no limit binds before the drive does.
    write_iops_limit: u64, PerSecond, "write IOPS limit";
    /// Bytes read a second in the long run, in large requests; absent where no limit binds before the drive does.
    read_bandwidth_limit: u64, BytesPerSecond, "read bandwidth limit";
    /// Bytes written a second in the long run, in large requests; absent where no limit binds before the drive does.
    write_bandwidth_limit: u64, BytesPerSecond, "write bandwidth limit";
    /// Reads of 4 KiB a second while burst credits last; absent where the long-run rate is also the first one.
    read_iops_burst: u64, PerSecond, "read IOPS burst";
    /// Writes of 4 KiB a second while burst credits last; absent where the long-run rate is also the first one.
    write_iops_burst: u64, PerSecond, "write IOPS burst";
    /// Bytes read a second while burst credits last; absent where the long-run rate is also the first one.
    read_bandwidth_burst: u64, BytesPerSecond, "read bandwidth burst";
    /// Bytes written a second while burst credits last; absent where the long-run rate is also the first one.
    write_bandwidth_burst: u64, BytesPerSecond, "write bandwidth burst";
    /// Size of a full bucket of I/O credits: reads beyond those that the long-run rate grants, and writes where they
    /// draw from the same bucket.
    burst_operations: u64, Count, "I/O credits";
    /// I/O credits that an idle volume gains a second.
    burst_operations_refill: u64, PerSecond, "I/O credit refill";
    /// The same of writes that have a bucket of their own; absent where they draw from that of reads.
    write_burst_operations: u64, Count, "write I/O credits";
    /// Their refill; absent where writes draw from the bucket of reads.
    write_burst_operations_refill: u64, PerSecond, "write I/O credit refill";
    /// Size of a full bucket of byte credits: bytes read beyond those that the long-run rate grants, and written where
    /// both draw from the same bucket.
    burst_bytes: u64, Bytes, "byte credits";
    /// Byte credits that an idle volume gains a second.
    burst_bytes_refill: u64, BytesPerSecond, "byte credit refill";
    /// The same of writes that have a bucket of their own; absent where they draw from that of reads.
    write_burst_bytes: u64, Bytes, "written byte credits";
    /// Their refill; absent where writes draw from the bucket of reads.
    write_burst_bytes_refill: u64, BytesPerSecond, "written byte credit refill";
    /// Whether reads and writes draw from one budget.
    shared_budget: bool, Flag, "shared budget";
    /// Reads of 4 KiB a second that the shared budget is worth in the long run, `shared_write_cost` for each write.
    shared_iops_limit: u64, PerSecond, "shared IOPS limit";
    /// What a write of 4 KiB takes from the shared budget, in reads of 4 KiB.
    shared_write_cost: f64, Ratio, "cost of a 4-KiB write";
    /// What a written MiB takes from the shared budget, in reads of 4 KiB; absent where writes are charged by request.
    shared_write_cost_per_mib: f64, Ratio, "cost of a written MiB";
    /// Bytes a second that reads and writes share in the long run, in large requests.
    shared_bandwidth_limit: u64, BytesPerSecond, "shared bandwidth";
    /// How long a request beyond the limit is held; absent where it waits only for its turn.
    throttle_hold_ns: u64, Nanos, "hold of throttled I/O";
    /// Size from which on a request is charged as several; absent where any request is charged as one.
    request_unit_bytes: u64, Bytes, "request unit";
    /// Part of the latency that every request has in common, whatever its size and direction: the way to the drive.
    network_latency_ns: u64, Nanos, "network latency";
    /// Whether the limit is the instance's, over all of its volumes, and not the volume's.
    limit_of_instance: bool, Flag, "limit of the instance";
}

impl Limits {
    /// Whether no probe found anything: for `skip_serializing_if`, so that the profile of a drive has no such section.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// As how many requests one of so many bytes is charged.
    pub fn charged_requests(&self, bytes: u64) -> u64 {
        self.request_unit_bytes.known().map_or(1, |unit| bytes.div_ceil(unit.max(1)).max(1))
    }

    /// What a write of so many bytes takes of the budget that reads and writes share, in reads of 4 KiB: where bytes
    /// are charged, the straight line through a write of 4 KiB. `None` where neither is certain.
    ///
    /// # Example
    /// ```
    /// use flashwise_profile::{Figure, Limits};
    ///
    /// let limits = Limits {
    ///     shared_write_cost: Figure::certain(3.0, 3.0, 3.0),
    ///     shared_write_cost_per_mib: Figure::certain(512.0, 512.0, 512.0),
    ///     ..Limits::default()
    /// };
    /// // One read for the request, and two for each 4 KiB.
    /// assert_eq!(limits.shared_cost_of_write(16 << 10).map(|cost| cost.of(16 << 10)), Some(9.0));
    /// ```
    pub fn shared_cost_of_write(&self, bytes: u64) -> Option<Cost> {
        let of_block = self.shared_write_cost.known();
        match self.shared_write_cost_per_mib.known() {
            Some(of_mib) => {
                let per_byte = of_mib / 1_048_576.0;
                let per_request = of_block.map_or(0.0, |cost| (cost - per_byte * 4096.0).max(0.0));
                Some(Cost { per_request, per_byte })
            }
            None => of_block.map(|cost| Cost::per_request(cost * self.charged_requests(bytes) as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figure, Quantity};

    #[test]
    fn limits_that_were_not_probed_leave_no_trace_in_a_profile() {
        assert!(Limits::default().is_unknown());
        let limits = Limits { read_iops_limit: Figure::certain(3000, 2990, 3010), ..Limits::default() };
        assert!(!limits.is_unknown());
        let text = toml::to_string(&limits).unwrap();
        assert_eq!(toml::from_str::<Limits>(&text).unwrap(), limits);
        assert_eq!(limits.entries()[0].figure.value, Some(Quantity::PerSecond(3000)));
    }

    #[test]
    fn a_write_costs_what_its_request_and_its_bytes_do() {
        let exactly = |value: f64| Figure::certain(value, value, value);
        let cost = |limits: &Limits, bytes: u64| limits.shared_cost_of_write(bytes).map(|cost| cost.of(bytes));
        assert_eq!(cost(&Limits::default(), 4096), None);
        let by_bytes = Limits { shared_write_cost_per_mib: exactly(512.0), ..Limits::default() };
        assert_eq!(cost(&by_bytes, 16 << 10), Some(8.0));
        let both = Limits { shared_write_cost: exactly(3.0), ..by_bytes.clone() };
        assert_eq!((cost(&both, 4096), cost(&both, 16 << 10)), (Some(3.0), Some(9.0)));
        // A measured cost below the line's own is a request that costs nothing.
        assert_eq!(cost(&Limits { shared_write_cost: exactly(1.9), ..by_bytes }, 16 << 10), Some(8.0));
        let by_unit = Limits {
            shared_write_cost: exactly(2.0),
            request_unit_bytes: Figure::certain(8192, 8192, 8192),
            ..Limits::default()
        };
        assert_eq!((cost(&by_unit, 8192), cost(&by_unit, 16 << 10)), (Some(2.0), Some(4.0)));
    }

    #[test]
    fn no_limit_has_the_key_of_a_parameter() {
        let parameters = crate::Parameters::default().entries();
        assert!(Limits::default().entries().iter().all(|limit| parameters.iter().all(|other| other.key != limit.key)));
    }
}
