//! How long somebody waited who asks for one thing after the other: the time during which the drive had one of his
//! requests.
//!
//! A page that the kernel cuts in two is waited for as long as the later half takes, not for the sum. Times are those
//! of the drive's clock, so that a machine that answers late does not change them.

use flashwise_block::Nanos;
use flashwise_trace::TraceRecord;

/// The time during which at least one request of a trace was in progress; requests in the order of their submission.
pub(super) fn waited<'a>(requests: impl Iterator<Item = &'a TraceRecord>) -> Nanos {
    let (mut sum, mut until) = (0, 0);
    for request in requests {
        let end = request.at.0 + request.latency.unwrap_or_default().0;
        sum += end.max(until) - request.at.0.max(until);
        until = until.max(end);
    }
    Nanos(sum)
}

#[cfg(test)]
mod tests {
    use flashwise_block::{ByteSize, Operation};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    fn request(at: u64, latency: u64) -> TraceRecord {
        let record = TraceRecord::new(Nanos(at), Operation::Read, ByteSize(0), ByteSize(4096));
        TraceRecord { latency: Some(Nanos(latency)), ..record }
    }

    #[test]
    fn halves_that_overlap_are_waited_for_once() {
        assert_eq!(waited([request(100, 50), request(102, 60), request(300, 10)].iter()), Nanos(72));
        assert_eq!(waited([request(100, 50), request(110, 5)].iter()), Nanos(50));
    }

    #[test]
    fn it_is_the_number_of_moments_at_which_something_was_under_way() {
        let mut random = Pcg64Mcg::seed_from_u64(3);
        for _ in 0..200 {
            let mut requests: Vec<TraceRecord> =
                (0..20).map(|_| request(random.random_range(0..200), random.random_range(0..30))).collect();
            requests.sort_by_key(|request| request.at.0);
            let is_busy =
                |moment: u64| requests.iter().any(|r| (r.at.0..r.at.0 + r.latency.unwrap().0).contains(&moment));
            let moments = (0..300).filter(|&moment| is_busy(moment)).count() as u64;
            assert_eq!(waited(requests.iter()), Nanos(moments));
        }
    }
}
