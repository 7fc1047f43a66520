//! A token bucket on a clock of whole nanoseconds.
//!
//! Levels are counted in [`TOKEN`] parts of a token, so that a whole rate for a whole time is a whole number: no
//! rounding accumulates over hours. A bucket holds its size and what one nanosecond refills, because a request leaves
//! at the first whole nanosecond at which there are enough tokens, and the part of a nanosecond before it must not be
//! lost.
//!
//! A request that takes more than the bucket can hold leaves when the bucket is full, and leaves a debt behind. So in
//! any time t, requests that leave take at most size + rate × t, and one largest request where that is more than the
//! size.

use crate::config::TOKEN;

/// A bucket: its level at a time.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Parts of a token that a nanosecond refills: tokens a second.
    refill: i128,
    size: i128,
    level: i128,
    /// When the level was that; later than the present while requests wait whose time is already known.
    at_ns: u64,
}

impl Bucket {
    /// A bucket of so many tokens, filled to a share.
    pub(crate) fn new(refill_per_s: u64, size: u64, filled_share: f64) -> Self {
        let size = i128::from(size) * TOKEN;
        Self { refill: i128::from(refill_per_s), size, level: (size as f64 * filled_share) as i128, at_ns: 0 }
    }

    /// When a request that arrives now, and waits behind those before it, leaves.
    pub(crate) fn queue(&mut self, now_ns: u64, cost: i128) -> u64 {
        self.refill_to(now_ns);
        let lacking = self.needed(cost) - self.level;
        if lacking > 0 {
            let wait_ns = (lacking + self.refill - 1) / self.refill;
            self.level += wait_ns * self.refill;
            self.at_ns = self.at_ns.saturating_add(wait_ns as u64);
        }
        self.take(cost);
        self.at_ns
    }

    /// Whether a request that does not wait may leave now.
    pub(crate) fn try_take(&mut self, now_ns: u64, cost: i128) -> bool {
        self.refill_to(now_ns);
        let is_enough = self.level >= self.needed(cost);
        if is_enough {
            self.take(cost);
        }
        is_enough
    }

    /// Tokens that are in the bucket now; negative where it is in debt.
    pub(crate) fn level(&self, now_ns: u64) -> f64 {
        let mut present = self.clone();
        present.refill_to(now_ns);
        present.level as f64 / TOKEN as f64
    }

    fn needed(&self, cost: i128) -> i128 {
        cost.min(self.size)
    }

    fn take(&mut self, cost: i128) {
        debug_assert!(self.level >= self.needed(cost) && self.level <= self.size + self.refill);
        self.level -= cost;
    }

    fn refill_to(&mut self, now_ns: u64) {
        if now_ns > self.at_ns {
            let refilled = self.level + i128::from(now_ns - self.at_ns) * self.refill;
            (self.level, self.at_ns) = (refilled.min(self.size + self.refill), now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_serves_its_size_at_once_and_then_the_rate() {
        let mut bucket = Bucket::new(1000, 3, 1.0);
        let left: Vec<u64> = (0..6).map(|_| bucket.queue(0, TOKEN)).collect();
        assert_eq!(left, [0, 0, 0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn a_rate_that_no_nanosecond_divides_loses_nothing() {
        // 275,000 a second is one each 3636.36 ns.
        let mut bucket = Bucket::new(275_000, 0, 1.0);
        let last = (0..=275_000).map(|_| bucket.queue(0, TOKEN)).last();
        assert_eq!(last, Some(1_000_000_000));
    }

    #[test]
    fn a_request_that_is_larger_than_the_bucket_leaves_a_debt() {
        let mut bucket = Bucket::new(1000, 3, 1.0);
        assert_eq!(bucket.queue(0, 10 * TOKEN), 0);
        assert_eq!(bucket.level(0), -7.0);
        assert_eq!(bucket.queue(0, TOKEN), 8_000_000);
    }

    #[test]
    fn who_does_not_wait_takes_nothing_from_a_bucket_that_lacks_tokens() {
        let mut bucket = Bucket::new(1000, 2, 0.5);
        assert!(bucket.try_take(0, TOKEN));
        assert!(!bucket.try_take(999_999, TOKEN));
        assert!(bucket.try_take(1_000_000, TOKEN));
    }
}
