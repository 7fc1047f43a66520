//! A row of intervals over a run whose length nobody knows beforehand.
//!
//! Without a length asked for, intervals start at one microsecond; whenever there would be more than
//! [`MOST_AUTOMATIC`], neighbours are joined and the length doubles. So a run of any length ends with half of that
//! number to all of it, in a fixed amount of memory.
//!
//! A request counts in the interval of its completion; an interval starts behind its start and ends with its end. What
//! the flash programmed is read off at the first completion behind an interval's end, so it belongs to the interval up
//! to one request more or less.

use flashwise_block::{ByteSize, DeviceCounters, Nanos};

use super::SimulationError;
use super::document::{Interval, TimeSeries};

/// Most intervals where no length was asked for.
const MOST_AUTOMATIC: usize = 400;
/// Most intervals where one was.
pub(super) const MOST_ASKED_FOR: usize = 1_000_000;
const FIRST_INTERVAL_NS: u64 = 1_000;

/// What happened in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    bytes: u64,
    response_ns: u128,
    host_bytes_written: u64,
    flash_bytes_programmed: u64,
}

impl Sums {
    fn join(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.response_ns += other.response_ns;
        self.host_bytes_written += other.host_bytes_written;
        self.flash_bytes_programmed += other.flash_bytes_programmed;
    }
}

/// The intervals so far, the present one last.
pub(super) struct Timeline {
    origin_ns: u64,
    interval_ns: u64,
    is_automatic: bool,
    /// Last moment of the present interval.
    boundary_ns: u64,
    past: Vec<Sums>,
    present: Sums,
    /// What the drive had counted at the start of the present interval: written by the host, programmed.
    counted: (u64, u64),
}

impl Timeline {
    pub(super) fn new(origin_ns: u64, interval: Option<Nanos>, counters: &DeviceCounters) -> Self {
        let interval_ns = interval.map_or(FIRST_INTERVAL_NS, |interval| interval.0.max(1));
        Self {
            origin_ns,
            interval_ns,
            is_automatic: interval.is_none(),
            boundary_ns: origin_ns.saturating_add(interval_ns),
            past: Vec::with_capacity(MOST_AUTOMATIC),
            present: Sums::default(),
            counted: written_and_programmed(counters),
        }
    }

    /// Whether [`Self::advance`] has to be called before a request that completes now is counted.
    #[inline]
    pub(super) fn is_past(&self, now_ns: u64) -> bool {
        now_ns > self.boundary_ns
    }

    /// Counts a request in the present interval.
    #[inline]
    pub(super) fn completed(&mut self, length: ByteSize, response_ns: u64) {
        self.present.requests += 1;
        self.present.bytes += length.0;
        self.present.response_ns += u128::from(response_ns);
    }

    /// Continues to the interval that holds `now_ns`.
    pub(super) fn advance(&mut self, now_ns: u64, counters: &DeviceCounters) -> Result<(), SimulationError> {
        self.close(counters);
        loop {
            let index = (now_ns - self.origin_ns).saturating_sub(1) / self.interval_ns;
            if self.is_automatic && index >= MOST_AUTOMATIC as u64 {
                self.join_neighbours();
                continue;
            }
            if index >= MOST_ASKED_FOR as u64 {
                let (intervals, interval_ns) = (index + 1, self.interval_ns);
                return Err(SimulationError::Interval { intervals, interval_ns, most: MOST_ASKED_FOR });
            }
            let index = index as usize;
            let is_joined_with_present = self.past.len() == index + 1;
            self.present = if is_joined_with_present { self.past.pop().unwrap_or_default() } else { Sums::default() };
            self.past.resize(index, Sums::default());
            self.boundary_ns = self.origin_ns.saturating_add((index as u64 + 1).saturating_mul(self.interval_ns));
            return Ok(());
        }
    }

    fn close(&mut self, counters: &DeviceCounters) {
        let now = written_and_programmed(counters);
        self.present.host_bytes_written += now.0 - self.counted.0;
        self.present.flash_bytes_programmed += now.1 - self.counted.1;
        self.counted = now;
        self.past.push(self.present);
    }

    fn join_neighbours(&mut self) {
        let joined = |pair: &[Sums]| {
            let mut sums = pair[0];
            pair[1..].iter().for_each(|other| sums.join(other));
            sums
        };
        self.past = self.past.chunks(2).map(joined).collect();
        self.interval_ns *= 2;
    }

    /// The whole row; the last interval ends with the run.
    pub(super) fn end(mut self, end_ns: u64, counters: &DeviceCounters) -> TimeSeries {
        self.close(counters);
        let (interval_ns, run_ns) = (self.interval_ns, end_ns - self.origin_ns);
        let interval = |(index, sums): (usize, &Sums)| {
            let start_ns = index as u64 * interval_ns;
            sums.interval(start_ns, interval_ns.min(run_ns.saturating_sub(start_ns)))
        };
        TimeSeries { interval_ns, intervals: self.past.iter().enumerate().map(interval).collect() }
    }
}

impl Sums {
    fn interval(&self, start_ns: u64, length_ns: u64) -> Interval {
        let per_s = |count: u64| if length_ns == 0 { 0.0 } else { count as f64 * 1e9 / length_ns as f64 };
        let mean = (self.requests > 0).then(|| self.response_ns as f64 / self.requests as f64);
        let written = self.host_bytes_written;
        Interval {
            start_ns,
            requests: self.requests,
            iops: per_s(self.requests),
            bytes_per_s: per_s(self.bytes),
            mean_response_ns: mean,
            write_amplification: (written > 0).then(|| self.flash_bytes_programmed as f64 / written as f64),
        }
    }
}

fn written_and_programmed(counters: &DeviceCounters) -> (u64, u64) {
    (counters.host_bytes_written.0, counters.flash.unwrap_or_default().bytes_programmed.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(interval: Option<Nanos>, times: impl Iterator<Item = u64>) -> TimeSeries {
        let counters = DeviceCounters::default();
        let mut timeline = Timeline::new(50, interval, &counters);
        let mut end = 50;
        for time in times {
            end = 50 + time;
            if timeline.is_past(end) {
                timeline.advance(end, &counters).unwrap();
            }
            timeline.completed(ByteSize(4096), 10);
        }
        timeline.end(end, &counters)
    }

    #[test]
    fn each_request_counts_in_the_interval_of_its_completion() {
        let series = series(Some(Nanos(100)), [1, 100, 101, 450].into_iter());
        assert_eq!(series.interval_ns, 100);
        assert_eq!(series.intervals.iter().map(|i| i.requests).collect::<Vec<_>>(), [2, 1, 0, 0, 1]);
        assert_eq!(series.intervals[0].iops, 2e7);
        assert_eq!(series.intervals[4].iops, 2e7, "the last interval ends with the run, after 50 ns");
        assert_eq!((series.intervals[2].mean_response_ns, series.intervals[0].mean_response_ns), (None, Some(10.0)));
    }

    #[test]
    fn without_a_length_asked_for_there_are_200_to_400_intervals_and_no_request_is_lost() {
        for step in [1_000, 37_777, 1_000_000_007] {
            let series = series(None, (1..=10_000).map(|n| n * step));
            assert!((200..=400).contains(&series.intervals.len()), "{}", series.intervals.len());
            assert_eq!(series.intervals.iter().map(|i| i.requests).sum::<u64>(), 10_000);
            let mean = 10_000 / series.intervals.len() as u64;
            let middle = &series.intervals[1..series.intervals.len() - 1];
            assert!(middle.iter().all(|i| i.requests.abs_diff(mean) <= 2), "{mean}: {middle:?}");
        }
    }

    #[test]
    fn a_length_that_would_give_millions_of_intervals_is_refused() {
        let mut timeline = Timeline::new(0, Some(Nanos(1)), &DeviceCounters::default());
        let error = timeline.advance(1_000_000_000, &DeviceCounters::default()).unwrap_err();
        assert!(error.to_string().contains("use a longer interval"), "{error}");
    }
}
