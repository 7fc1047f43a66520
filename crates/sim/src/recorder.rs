//! What is kept of each request: a place in a histogram, and a few sums.
//!
//! The histogram is HdrHistogram's of three significant digits (Tene, "HdrHistogram: A High Dynamic Range Histogram"):
//! its classes, its rule for percentiles, compared with the library by a test. It is a plain array here, because a
//! response then costs a few instructions, a sixth of what the library takes, and the percentiles of a short run
//! nothing.

use flashwise_block::{ByteSize, Operation};

use super::document::TimeSeries;
use crate::life::History;

/// Times that a histogram of three significant digits does not tell apart are of one *class*: the numbers below 2,048
/// by themselves, then 1,024 classes for each further power of two.
const CLASS_BITS: u32 = 10;

/// The class of a time.
#[inline]
fn class_of(response_ns: u64) -> usize {
    let power = (response_ns | ((2 << CLASS_BITS) - 1)).ilog2() - CLASS_BITS;
    ((power as usize) << CLASS_BITS) + (response_ns >> power) as usize
}

/// The least time of a class.
fn least_of(class: usize) -> u64 {
    let power = power_of(class);
    ((class - (power << CLASS_BITS)) as u64) << power
}

/// The longest time of a class.
fn most_of(class: usize) -> u64 {
    least_of(class) + ((1 << power_of(class)) - 1)
}

/// How many times a class holds, as a power of two.
fn power_of(class: usize) -> usize {
    (class >> CLASS_BITS).saturating_sub(1)
}

/// Responses of one kind: exact count, sums and ends, and how many there are of each class, which grows with the
/// longest of them: a few times in a run, and a kind that there is none of takes no memory.
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
    #[inline(always)]
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

    /// The response times that some percents of all, in ascending order, do not exceed: one pass over the classes for
    /// all of them.
    pub(super) fn percentiles<const COUNT: usize>(&self, percents: [f64; COUNT]) -> [u64; COUNT] {
        debug_assert!(percents.is_sorted());
        let (mut classes, mut class, mut passed) = (self.of_class.iter().enumerate(), 0, 0);
        percents.map(|percent| {
            let wanted = ((percent / 100.0).clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
            while passed < wanted.max(1)
                && let Some((next, &count)) = classes.next()
            {
                (class, passed) = (next, passed + count);
            }
            let time_ns = if percent > 0.0 { most_of(class) } else { least_of(class) };
            time_ns.clamp(self.min_ns, self.max_ns.max(self.min_ns))
        })
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
    /// Completed with an error; in no figure but those that the invariants hold together.
    refused: ResponseRecord,
    start_ns: u64,
    submitted: u64,
    completed: u64,
    waiting_ns: u128,
    /// Times of all submissions, and of all completions, added up: see [`area`].
    submissions_ns: u128,
    completions_ns: u128,
    /// When the last submission was, and what the completions since then have added.
    last_submission_ns: u64,
    completions_since_ns: u128,
    completed_since: u64,
    last_completion_ns: u64,
}

/// ∫ requests in flight dt until a moment: each request that has completed counts for the time between its two ends,
/// each that is `outstanding` for the time since it was submitted.
fn area(submissions_ns: u128, completions_ns: u128, outstanding: u64, until_ns: u64) -> u128 {
    completions_ns + u128::from(outstanding) * u128::from(until_ns) - submissions_ns
}

impl FlowRecord {
    /// The flow starts.
    pub(super) fn start(&mut self, start_ns: u64) {
        (self.start_ns, self.last_submission_ns, self.last_completion_ns) = (start_ns, start_ns, start_ns);
    }

    /// One of its requests is with the drive.
    #[inline(always)]
    pub(super) fn submitted(&mut self, now_ns: u64) {
        (self.completions_since_ns, self.completed_since) = (0, 0);
        self.last_submission_ns = now_ns;
        self.submissions_ns += u128::from(now_ns);
        self.submitted += 1;
    }

    /// One of its requests is completed.
    #[inline(always)]
    pub(super) fn completed(&mut self, operation: Operation, length: ByteSize, response_ns: u64, now_ns: u64) {
        self.answered(now_ns);
        match operation {
            Operation::Read => self.reads.add(length, response_ns),
            Operation::Write => self.writes.add(length, response_ns),
            _ => {
                self.trims += u64::from(operation == Operation::Trim);
                self.others.add(ByteSize(0), response_ns);
            }
        }
    }

    #[inline(always)]
    fn answered(&mut self, now_ns: u64) {
        self.completions_ns += u128::from(now_ns);
        self.completed += 1;
        self.completions_since_ns += u128::from(now_ns);
        self.completed_since += 1;
        self.last_completion_ns = now_ns;
    }

    /// One of its requests is refused; gives whether it has read something, so that there is a reason to continue.
    #[cold]
    pub(super) fn refused(&mut self, response_ns: u64, now_ns: u64) -> bool {
        self.answered(now_ns);
        self.refused.add(ByteSize(0), response_ns);
        self.reads.count() > 0
    }

    /// So long a request that completes now had waited in its queue before the drive took it.
    #[inline(always)]
    pub(super) fn waited(&mut self, waiting_ns: u64) {
        self.waiting_ns += u128::from(waiting_ns);
    }

    /// The flow is through; `queue_depth` is what it kept up, where it kept one up.
    pub(super) fn end(self, name: String, queue_depth: Option<u32>) -> EndedFlow {
        let mut all = self.reads.clone();
        all.merge(&self.writes);
        all.merge(&self.others);
        let flushes = self.others.count() - self.trims;
        let until_ns = self.last_submission_ns.max(self.last_completion_ns);
        let outstanding = self.submitted - self.completed;
        // Just before the last submission, if there was one.
        let (earlier_ns, completions_ns, outstanding_then) = match self.submitted {
            0 => (0, 0, 0),
            _ => (
                self.submissions_ns - u128::from(self.last_submission_ns),
                self.completions_ns - self.completions_since_ns,
                outstanding + self.completed_since - 1,
            ),
        };
        EndedFlow {
            name,
            notes: Vec::new(),
            queue_depth,
            submitted: self.submitted,
            outstanding,
            waiting_ns: self.waiting_ns,
            all,
            reads: self.reads,
            writes: self.writes,
            trims: self.trims,
            refused: self.refused,
            flushes,
            start_ns: self.start_ns,
            last_submission_ns: self.last_submission_ns,
            last_completion_ns: self.last_completion_ns,
            area: area(self.submissions_ns, self.completions_ns, outstanding, until_ns),
            area_at_last_submission: area(earlier_ns, completions_ns, outstanding_then, self.last_submission_ns),
        }
    }
}

/// What is known of one flow at its end.
#[derive(Clone, Debug)]
pub(super) struct EndedFlow {
    pub(super) name: String,
    /// What to know of its requests.
    pub(super) notes: Vec<String>,
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
    pub(super) refused: ResponseRecord,
    pub(super) start_ns: u64,
    pub(super) last_submission_ns: u64,
    pub(super) last_completion_ns: u64,
    /// ∫ requests in flight dt over the whole flow.
    pub(super) area: u128,
    /// The same until the last submission.
    pub(super) area_at_last_submission: u128,
}

impl EndedFlow {
    /// Requests that were completed, and their response times added up, ns.
    pub(super) fn answered(&self) -> (u64, u128) {
        (self.all.count() + self.refused.count(), self.all.sum_ns + self.refused.sum_ns)
    }

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
    /// Notes on wear, where the drive has a limit.
    pub(super) life: Option<History>,
    /// Requests that the drive still has.
    pub(super) outstanding: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    /// Significant digits of the classes.
    const DIGITS: u8 = 3;

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
                let class = class_of(response_ns);
                prop_assert_eq!(least_of(class), histogram.lowest_equivalent(response_ns));
                prop_assert_eq!(most_of(class), histogram.highest_equivalent(response_ns));
            }
            record.merge(&other);
            prop_assert_eq!(record.count(), histogram.len());
            let percents: [f64; 201] = std::array::from_fn(|n| n as f64 / 2.0);
            let expected = percents.map(|p| histogram.value_at_quantile(p / 100.0).clamp(record.min_ns, record.max_ns));
            prop_assert_eq!(record.percentiles(percents), expected);
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
