//! A store below the limits of its volume: pages are read and written only as fast as token buckets allow.
//!
//! Threads share the buckets. What of an exchange has tokens goes together; the thread sleeps until the next page has
//! them. Reads go first: a query waits for them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flashwise_block::{BlockError, Budget, Cost, Nanos, RateLimits, TokenBuckets};
use flashwise_profile::DeviceProfile;

use super::store::{Exchanged, PageImage, PageRead, PageStore};

/// The limits of a profile that are certain, for pages of a size; `None` where there is none to stay below.
pub fn rate_limits(profile: &DeviceProfile, page_bytes: u64) -> Option<RateLimits> {
    let limits = &profile.limits;
    // A page that is longer than the unit of a charged request counts as several.
    let charged = limits.charged_requests(page_bytes) as f64;
    let rate = |limit: Option<u64>| limit.map(|limit| limit as f64);
    let joint = rate(limits.shared_iops_limit.known()).zip(limits.shared_cost_of_write(page_bytes));
    let budgets: Vec<Budget> = [
        rate(limits.read_iops_limit.known()).map(|rate| Budget::read_iops(rate / charged)),
        rate(limits.write_iops_limit.known()).map(|rate| Budget::write_iops(rate / charged)),
        rate(limits.read_bandwidth_limit.known()).map(Budget::read_bandwidth),
        rate(limits.write_bandwidth_limit.known()).map(Budget::write_bandwidth),
        joint.map(|(per_second, write)| Budget { per_second, read: Cost::per_request(charged), write }),
        rate(limits.shared_bandwidth_limit.known()).map(|per_second| Budget {
            per_second,
            read: Cost::per_byte(1.0),
            write: Cost::per_byte(1.0),
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!budgets.is_empty()).then(|| RateLimits::new(budgets))
}

/// A store and its limits.
#[derive(Debug)]
pub struct GovernedStore<S> {
    store: S,
    buckets: Mutex<TokenBuckets>,
    start: Instant,
}

impl<S: PageStore> GovernedStore<S> {
    /// A store that is kept below limits, such as those of [`rate_limits`].
    pub fn new(store: S, limits: &RateLimits) -> Self {
        Self { store, buckets: Mutex::new(TokenBuckets::new(limits)), start: Instant::now() }
    }

    /// The store back.
    pub fn into_inner(self) -> S {
        self.store
    }

    fn buckets(&self) -> MutexGuard<'_, TokenBuckets> {
        // Tokens are taken in one step each, so a thread that panicked leaves none half taken.
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the tokens of as many of these reads and writes as have them now; with how long to wait if none has.
    fn take(&self, reads: usize, writes: usize) -> (usize, usize, Duration) {
        let bytes = self.store.page_bytes() as u64;
        let mut buckets = self.buckets();
        let now = Nanos(self.start.elapsed().as_nanos() as u64);
        let mut granted = |is_write: bool, wanted: usize| {
            let mut count = 0;
            while count < wanted && buckets.due(is_write, bytes) <= now {
                buckets.take(now, is_write, bytes);
                count += 1;
            }
            count
        };
        let (read, write) = (granted(false, reads), granted(true, writes));
        let next = |is_write: bool, wanted: usize| (wanted > 0).then(|| buckets.due(is_write, bytes));
        let due = next(false, reads).into_iter().chain(next(true, writes)).min();
        (read, write, Duration::from_nanos(due.map_or(0, |due| due.since(now).0)))
    }
}

impl<S: PageStore> PageStore for GovernedStore<S> {
    fn pages(&self) -> u64 {
        self.store.pages()
    }

    fn page_bytes(&self) -> usize {
        self.store.page_bytes()
    }

    fn exchange(&self, writes: Vec<PageImage>, mut reads: &mut [PageRead<'_>]) -> Exchanged {
        let mut writes = writes.into_iter();
        let mut exchanged = Exchanged { written: Ok(()), read: Ok(()) };
        while writes.len() + reads.len() > 0 {
            let (read, write, wait) = self.take(reads.len(), writes.len());
            if read + write == 0 {
                std::thread::sleep(wait);
                continue;
            }
            let (now, later) = reads.split_at_mut(read);
            let done = self.store.exchange(writes.by_ref().take(write).collect(), now);
            exchanged.written = exchanged.written.and(done.written);
            exchanged.read = exchanged.read.and(done.read);
            reads = later;
        }
        exchanged
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.store.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use flashwise_block::IoBuffer;
    use flashwise_profile::{Figure, Limits};

    use super::*;
    use crate::directory::Page;

    /// Counts pages and the exchanges that they came in.
    #[derive(Default)]
    struct Counting {
        read: AtomicUsize,
        written: AtomicUsize,
    }

    impl PageStore for Counting {
        fn pages(&self) -> u64 {
            1 << 20
        }
        fn page_bytes(&self) -> usize {
            4096
        }
        fn exchange(&self, writes: Vec<PageImage>, reads: &mut [PageRead<'_>]) -> Exchanged {
            self.written.fetch_add(writes.len(), Ordering::Relaxed);
            self.read.fetch_add(reads.len(), Ordering::Relaxed);
            reads.iter_mut().for_each(|read| read.into[0] = read.page.0 as u8);
            Exchanged { written: Ok(()), read: Ok(()) }
        }
        fn flush(&self) -> Result<(), BlockError> {
            Ok(())
        }
    }

    #[test]
    fn threads_together_stay_below_the_limit_and_get_every_page() {
        let limits = RateLimits::new(vec![Budget::read_iops(2_000.0), Budget::write_iops(1_000.0)]);
        let store = GovernedStore::new(Counting::default(), &limits);
        let work = |first: u32| {
            for n in (first..first + 20).step_by(4) {
                let mut frames = [[0_u8; 4096]; 4];
                let pages = (n..n + 4).map(Page);
                let mut reads: Vec<PageRead<'_>> =
                    pages.clone().zip(&mut frames).map(|(page, into)| PageRead { page, into }).collect();
                let writes = vec![PageImage { page: Page(n + 100), bytes: IoBuffer::zeroed(4096) }];
                let done = store.exchange(writes, &mut reads);
                assert!(done.read.is_ok() && done.written.is_ok());
                assert!(pages.zip(&frames).all(|(page, frame)| frame[0] == page.0 as u8));
            }
        };
        let start = Instant::now();
        std::thread::scope(|scope| {
            for first in [0, 20] {
                let work = &work;
                scope.spawn(move || work(first));
            }
        });
        // 40 reads at 1,900 a second, of which 3.8 are in the bucket at the start.
        assert!(start.elapsed() >= Duration::from_millis(19), "{:?}", start.elapsed());
        let store = store.into_inner();
        assert_eq!((store.read.into_inner(), store.written.into_inner()), (40, 10));
    }

    #[test]
    fn only_limits_that_are_certain_are_kept() {
        let exactly = |value| Figure::certain(value, value, value);
        let toml = include_str!("../../../audit/tests/samsung.toml");
        let mut profile = DeviceProfile::from_toml(toml, "samsung.toml").unwrap();
        assert_eq!(rate_limits(&profile, 8192), None, "a drive without limits needs no governor");
        profile.limits = Limits {
            read_iops_limit: exactly(3_000),
            write_iops_limit: Figure::inconclusive(3_000, 0, 3_000),
            request_unit_bytes: exactly(4096),
            shared_iops_limit: exactly(6_000),
            shared_write_cost_per_mib: Figure::certain(512.0, 512.0, 512.0),
            ..Limits::default()
        };
        let budgets = rate_limits(&profile, 8192).unwrap().budgets;
        let write = Cost::per_byte(512.0 / 1_048_576.0);
        let joint = Budget { per_second: 6_000.0, read: Cost::per_request(2.0), write };
        assert_eq!(budgets, [Budget::read_iops(1_500.0), joint]);
    }
}
