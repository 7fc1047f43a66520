//! A load that is never satisfied: each stream keeps its depth in flight, and each completion is counted by when it
//! happened.

use flashwise_block::{ByteSize, Nanos, Operation, Progress, Request};
use rand::RngExt;

use crate::LearnError;
use crate::prober::Prober;

/// Requests of one kind, so many of them in flight all the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) operation: Operation,
    pub(super) length: ByteSize,
    pub(super) depth: usize,
    /// Whether each request continues the one before it; otherwise they are anywhere in the area.
    pub(super) in_order: bool,
}

impl Stream {
    pub(super) fn at_depth(self, depth: usize) -> Self {
        Self { depth: depth.max(1), ..self }
    }

    pub(super) fn writes_bytes(&self) -> u64 {
        if self.operation == Operation::Write { self.length.bytes() } else { 0 }
    }
}

/// Completions by time, in windows of equal width. Pairs of windows are merged as the run grows, so that an hour takes
/// no more memory than a second.
#[derive(Clone, Debug)]
pub(super) struct Series {
    width_ns: u64,
    counts: Vec<u64>,
    total: u64,
}

/// Windows from which on pairs are merged: a change is placed to a thousandth of the run, finer than any figure needs.
const WINDOWS_MAX: usize = 2048;
/// Width of a window at first: a hundredth of the shortest run.
const FIRST_WIDTH_NS: u64 = 2_000_000;

impl Default for Series {
    fn default() -> Self {
        Self { width_ns: FIRST_WIDTH_NS, counts: Vec::new(), total: 0 }
    }
}

impl Series {
    fn count(&mut self, at_ns: u64) {
        while (at_ns / self.width_ns) as usize >= WINDOWS_MAX {
            self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width_ns *= 2;
        }
        let window = (at_ns / self.width_ns) as usize;
        if window >= self.counts.len() {
            self.counts.resize(window + 1, 0);
        }
        self.counts[window] += 1;
        self.total += 1;
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The counts of `elapsed_ns` in at most `bins` windows, none of which is cut off by its end; and their width in
    /// seconds.
    pub(super) fn rebinned(&self, elapsed_ns: u64, bins: usize) -> (Vec<f64>, f64) {
        let whole = (elapsed_ns / self.width_ns) as usize;
        let each = whole.div_ceil(bins.max(1)).max(1);
        // Of two streams the slower one may have nothing in the last windows.
        let count = |window: usize| self.counts.get(window).copied().unwrap_or(0);
        let bin = |n: usize| (n * each..(n + 1) * each).map(count).sum::<u64>() as f64;
        ((0..whole / each).map(bin).collect(), each as f64 * self.width_ns as f64 / 1e9)
    }

    #[cfg(test)]
    pub(super) fn of(at_ns: impl IntoIterator<Item = u64>) -> Self {
        let mut series = Self::default();
        at_ns.into_iter().for_each(|at| series.count(at));
        series
    }
}

/// What a load met with, stream by stream.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) elapsed: Nanos,
    pub(super) series: Vec<Series>,
    /// Latencies of the first stream from [`KEPT_FROM`] on, ns, as many as are kept.
    pub(super) latencies: Vec<f64>,
}

impl Run {
    pub(super) fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }

    pub(super) fn total(&self) -> u64 {
        self.series.iter().map(Series::total).sum()
    }
}

#[cfg(test)]
impl Run {
    pub(super) fn of(elapsed: Nanos, series: Series) -> Self {
        Self { elapsed, series: vec![series], latencies: Vec::new() }
    }
}

/// When a run ends, besides when it knows enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until {
    pub(super) time: Nanos,
    pub(super) requests: u64,
    /// Latencies of the first stream to keep.
    pub(super) keep: usize,
}

/// Latencies are kept from then on: what a small bucket had at first is spent.
const KEPT_FROM: Nanos = Nanos::millis(100);
/// Parts of what may still be written, one of which a load takes.
const WRITE_PARTS: u64 = 8;
/// Time between two looks at a run, as a share of it: so that looking takes a fraction of the time of measuring.
const LOOK_SHARE: f64 = 0.05;
/// The first look.
const FIRST_LOOK: Nanos = Nanos::millis(50);

/// Runs a load on the first `area` bytes until its end, or until `enough`; then waits for what is in flight, which is
/// not counted. After the end of the time it does nothing: what was in flight at its end may have been waited for
/// longer.
pub(super) fn run(
    prober: &mut Prober<'_>,
    (streams, area): (&[Stream], ByteSize),
    until: Until,
    enough: &mut dyn FnMut(&Run) -> bool,
    (progress, stage): (&mut dyn Progress, &str),
) -> Result<Run, LearnError> {
    let started = prober.now();
    let mut run = Run { elapsed: Nanos(0), series: vec![Series::default(); streams.len()], latencies: Vec::new() };
    if prober.time_left() == Some(Nanos(0)) {
        return Ok(run);
    }
    let mut in_flight = vec![0; streams.len()];
    let mut next = vec![0_u64; streams.len()];
    let places: Vec<u64> = streams.iter().map(|stream| (area / stream.length).max(1)).collect();
    let mut look_at = FIRST_LOOK;
    let reserve: u64 = streams.iter().map(|stream| stream.writes_bytes() * stream.depth as u64).sum();
    // Each load takes a part of what may be written, so that those after it have something.
    let writes_left = prober.writes_left().filter(|_| reserve > 0).map(|left| left.bytes() / WRITE_PARTS);
    if writes_left.is_some_and(|left| left < 2 * reserve) {
        return Ok(run);
    }
    let mut written = 0;
    loop {
        for (i, stream) in streams.iter().enumerate() {
            while in_flight[i] < stream.depth {
                next[i] = if stream.in_order { next[i] + 1 } else { prober.random.random_range(0..places[i]) };
                let offset = stream.length * (next[i] % places[i]);
                let request = match stream.operation {
                    Operation::Write => Request::write(offset, stream.length),
                    _ => Request::read(offset, stream.length),
                };
                prober.submit(request.tagged(i as u64))?;
                written += stream.writes_bytes();
                in_flight[i] += 1;
            }
        }
        let Some(completion) = prober.wait()? else { break };
        let stream = completion.tag as usize;
        in_flight[stream] -= 1;
        let at = completion.completed_at.since(started);
        run.series[stream].count(at.0);
        let latency = completion.latency().0;
        if stream == 0 && run.latencies.len() < until.keep && at > KEPT_FROM {
            run.latencies.push(latency as f64);
        }
        run.elapsed = at;
        if at >= look_at {
            progress.advance(stage, (at.0 as f64 / until.time.0 as f64).min(1.0))?;
            // The end is looked for on time: what follows has the rest.
            let next = Nanos(at.0 + (at.0 as f64 * LOOK_SHARE) as u64);
            look_at = if at < until.time { next.min(until.time) } else { next };
            let is_over = at >= until.time || prober.time_left() == Some(Nanos(0));
            if is_over || run.total() >= until.requests || enough(&run) {
                break;
            }
        }
        if writes_left.is_some_and(|left| written + reserve > left) {
            break;
        }
    }
    while prober.wait()?.is_some() {}
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_keeps_every_count_as_its_windows_grow() {
        let series = Series::of((0..1_000_000).map(|n| n * 1_000_000));
        assert_eq!(series.total(), 1_000_000);
        assert!(series.counts.len() <= WINDOWS_MAX);
        let (bins, seconds) = series.rebinned(1_000_000_000_000, 100);
        let rates: Vec<f64> = bins.iter().map(|count| count / seconds).collect();
        assert!(rates.iter().all(|rate| (rate - 1000.0).abs() < 1e-6), "{rates:?}");
    }

    #[test]
    fn windows_after_the_last_completion_count_nothing() {
        let series = Series::of([0, 1_000_000, 3_000_000]);
        assert_eq!(series.rebinned(8_000_000, 4), (vec![2.0, 1.0, 0.0, 0.0], 0.002));
    }
}
