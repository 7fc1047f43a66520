//! What is kept of each request: a place in a histogram, and a few sums.

use flashwise_block::{ByteSize, Operation};
use hdrhistogram::Histogram;

use super::document::TimeSeries;

/// Significant digits of a response time in a histogram.
const DIGITS: u8 = 3;

/// Times that a histogram of three significant digits does not tell apart are of one *class*: the numbers below 2,048 by
/// themselves, then 1,024 classes for each further power of two.
const CLASS_BITS: u32 = 10;

/// The class of a time. With the classes in a plain array, a response costs a few instructions, a sixth of what the
/// histogram takes; that is made when it is asked.
#[inline]
fn class_of(response_ns: u64) -> usize {
    let power = (response_ns | ((2 << CLASS_BITS) - 1)).ilog2() - CLASS_BITS;
    ((power as usize) << CLASS_BITS) + (response_ns >> power) as usize
}

/// The least time of a class.
fn least_of(class: usize) -> u64 {
    let power = (class >> CLASS_BITS).saturating_sub(1);
    ((class - (power << CLASS_BITS)) as u64) << power
}

/// Responses of one kind: exact count, sums and ends, and how many there are of each class, which grows with the longest
/// of them: a few times in a run, and a kind that there is none of takes no memory.
#[derive(Clone, Debug)]
pub(super) struct ResponseRecord {
    of_class: Vec<u64>,
    count: u64,
    pub(super) bytes: u64,
    pub(super) sum_ns: u128,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

impl Default for ResponseRecord {
    fn default() -> Self {
        Self { of_class: Vec::new(), count: 0, bytes: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl ResponseRecord {
    #[inline]
    fn add(&mut self, length: ByteSize, response_ns: u64) {
        let class = class_of(response_ns);
        match self.of_class.get_mut(class) {
            Some(count) => *count += 1,
            None => self.grow(class),
        }
        self.count += 1;
        self.bytes += length.0;
        self.sum_ns += u128::from(response_ns);
        self.min_ns = self.min_ns.min(response_ns);
        self.max_ns = self.max_ns.max(response_ns);
    }

    /// The first response of a class behind all others.
    #[cold]
    fn grow(&mut self, class: usize) {
        self.of_class.resize((class + 1).next_multiple_of(1 << CLASS_BITS), 0);
        self.of_class[class] = 1;
    }

    /// Adds what another record holds.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.count() == 0 {
            return *self = other.clone();
        }
        self.of_class.resize(self.of_class.len().max(other.of_class.len()), 0);
        self.of_class.iter_mut().zip(&other.of_class).for_each(|(sum, count)| *sum += count);
        self.count += other.count;
        self.bytes += other.bytes;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    #[allow(clippy::expect_used, reason = "the digits are a constant that the histogram accepts")]
    fn histogram(&self) -> Histogram<u64> {
        let mut histogram = Histogram::new(DIGITS).expect("the digits are allowed");
        let classes = self.of_class.iter().enumerate().rev().filter(|&(_, &count)| count > 0);
        for (class, &count) in classes {
            // Beyond what a histogram can grow to, which is hundreds of years, it counts at its end.
            if histogram.record_n(least_of(class), count).is_err() {
                histogram.saturating_record_n(least_of(class), count);
            }
        }
        histogram
    }

    /// The response times that some percents of all, in ascending order, do not exceed: one pass over the histogram for
    /// all of them.
    pub(super) fn percentiles<const COUNT: usize>(&self, percents: [f64; COUNT]) -> [u64; COUNT] {
        debug_assert!(percents.is_sorted());
        let histogram = self.histogram();
        let mut times = histogram.value_at_quantiles(percents.map(|percent| percent / 100.0));
        percents.map(|_| times.next().unwrap_or(0).clamp(self.min_ns, self.max_ns.max(self.min_ns)))
    }
}

/// What is kept of one flow while it runs.
#[derive(Debug, Default)]
pub(super) struct FlowRecord {
    reads: ResponseRecord,
    writes: ResponseRecord,
    /// Trims, flushes, and whatever else moves no bytes.
    others: ResponseRecord,
    trims: u64,
    start_ns: u64,
    submitted: u64,
    outstanding: u64,
    waiting_ns: u128,
    /// ∫ requests in flight dt, until `area_until_ns`.
    area: u128,
    area_until_ns: u64,
    /// The same until the last submission, and when that was.
    area_at_last_submission: u128,
    last_submission_ns: u64,
    last_completion_ns: u64,
}

impl FlowRecord {
    /// The flow starts.
    pub(super) fn start(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        (self.area_until_ns, self.last_submission_ns, self.last_completion_ns) = (start_ns, start_ns, start_ns);
    }

    /// One of its requests is with the drive.
    #[inline]
    pub(super) fn submitted(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.submitted += 1;
        self.outstanding += 1;
        (self.area_at_last_submission, self.last_submission_ns) = (self.area, now_ns);
    }

    /// One of its requests is answered.
    #[inline]
    pub(super) fn completed(&mut self, operation: Operation, length: ByteSize, response_ns: u64, now_ns: u64) {
        self.pass(now_ns);
        self.outstanding -= 1;
        self.last_completion_ns = now_ns;
        match operation {
            Operation::Read => self.reads.add(length, response_ns),
            Operation::Write => self.writes.add(length, response_ns),
            _ => {
                self.trims += u64::from(operation == Operation::Trim);
                self.others.add(ByteSize(0), response_ns);
            }
        }
    }

    /// So long a request that completes now had waited in its queue before the drive took it.
    #[inline]
    pub(super) fn waited(&mut self, waiting_ns: u64) {
        self.waiting_ns += u128::from(waiting_ns);
    }

    #[inline]
    fn pass(&mut self, now_ns: u64) {
        self.area += u128::from(self.outstanding) * u128::from(now_ns - self.area_until_ns);
        self.area_until_ns = now_ns;
    }

    /// The flow is through; `queue_depth` is what it kept up, where it kept one up.
    pub(super) fn end(self, name: String, queue_depth: Option<u32>) -> EndedFlow {
        let mut all = self.reads.clone();
        all.merge(&self.writes);
        all.merge(&self.others);
        let flushes = self.others.count() - self.trims;
        EndedFlow {
            name,
            queue_depth,
            submitted: self.submitted,
            outstanding: self.outstanding,
            waiting_ns: self.waiting_ns,
            all,
            reads: self.reads,
            writes: self.writes,
            trims: self.trims,
            flushes,
            start_ns: self.start_ns,
            last_submission_ns: self.last_submission_ns,
            last_completion_ns: self.last_completion_ns,
            area: self.area,
            area_at_last_submission: self.area_at_last_submission,
        }
    }
}

/// What is known of one flow at its end.
#[derive(Clone, Debug)]
pub(super) struct EndedFlow {
    pub(super) name: String,
    /// The depth that a closed flow without pauses keeps.
    pub(super) queue_depth: Option<u32>,
    pub(super) submitted: u64,
    pub(super) outstanding: u64,
    /// Time in submission queues, all requests together, ns.
    pub(super) waiting_ns: u128,
    pub(super) all: ResponseRecord,
    pub(super) reads: ResponseRecord,
    pub(super) writes: ResponseRecord,
    pub(super) trims: u64,
    pub(super) flushes: u64,
    pub(super) start_ns: u64,
    pub(super) last_submission_ns: u64,
    pub(super) last_completion_ns: u64,
    /// ∫ requests in flight dt over the whole flow.
    pub(super) area: u128,
    /// The same until the last submission.
    pub(super) area_at_last_submission: u128,
}

impl EndedFlow {
    /// From its start to its last completion, ns.
    pub(super) fn elapsed_ns(&self) -> u64 {
        self.last_completion_ns - self.start_ns
    }
}

/// What is known of a run at its end.
pub(super) struct Record {
    /// When the workload started, on the drive's clock.
    pub(super) origin_ns: u64,
    /// When the last request completed.
    pub(super) end_ns: u64,
    pub(super) flows: Vec<EndedFlow>,
    pub(super) time_series: TimeSeries,
    /// Requests that the drive still has.
    pub(super) outstanding: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_in_flight_are_added_up_over_time_beside_the_response_times() {
        let mut record = FlowRecord::default();
        record.start(100);
        record.submitted(100);
        record.submitted(150);
        record.completed(Operation::Read, ByteSize(4096), 100, 200);
        record.completed(Operation::Write, ByteSize(512), 150, 300);
        let flow = record.end("f".to_owned(), None);
        assert_eq!((flow.area, flow.all.sum_ns), (250, 250));
        assert_eq!((flow.area_at_last_submission, flow.last_submission_ns), (50, 150));
        assert_eq!((flow.all.count(), flow.all.bytes, flow.elapsed_ns()), (2, 4608, 200));
        assert_eq!((flow.reads.max_ns, flow.writes.min_ns), (100, 150));
    }

    proptest! {
        #[test]
        fn classes_are_those_of_the_histogram(times in prop::collection::vec((0_u64..1 << 20, 0_u32..34), 1..200)) {
            let (mut record, mut other) = (ResponseRecord::default(), ResponseRecord::default());
            let mut histogram = Histogram::<u64>::new(DIGITS).unwrap();
            for (n, (number, power)) in times.into_iter().enumerate() {
                let response_ns = number << power;
                if n % 3 == 0 { &mut other } else { &mut record }.add(ByteSize(0), response_ns);
                histogram.record(response_ns).unwrap();
                prop_assert_eq!(least_of(class_of(response_ns)), histogram.lowest_equivalent(response_ns));
            }
            record.merge(&other);
            let recorded = record.histogram();
            prop_assert_eq!(record.count(), histogram.len());
            for percent in 0..=100 {
                let quantile = f64::from(percent) / 100.0;
                prop_assert_eq!(recorded.value_at_quantile(quantile), histogram.value_at_quantile(quantile));
            }
        }
    }

    #[test]
    fn the_longest_time_has_a_class_too() {
        let mut record = ResponseRecord::default();
        record.add(ByteSize(0), u64::MAX);
        record.add(ByteSize(0), 5);
        let [half, all] = record.percentiles([50.0, 100.0]);
        assert!(half == 5 && all >= u64::MAX - 1, "{half} {all}");
    }

    #[test]
    fn percentiles_are_exact_to_three_digits_and_never_beyond_the_ends() {
        let mut record = ResponseRecord::default();
        (1..=10_000).for_each(|us| record.add(ByteSize(0), us * 1_000));
        let [least, most, all] = record.percentiles([0.0, 99.0, 100.0]);
        assert!(most.abs_diff(9_900_000) <= 9_900);
        assert_eq!((least, all), (1_000, 10_000_000));
    }
}
