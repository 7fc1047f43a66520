//! What ends a search: the clock, the time on a processor, or a number of runs.
//!
//! In a directory, and where the user names a time, it is the clock. On a simulated drive the clock would make the
//! answer depend on what else the machine does: beside other programs fewer configurations are tried, and a worse one
//! is recommended. There the time on a processor counts, divided by the threads that make the runs; on an idle machine
//! that is the time of the clock. The built-in workload is the same work everywhere, so that its search is a number of
//! runs and the answer the same on every machine.
//!
//! ```text
//!   FitOptions::budget ── capture: full_run, rounds, share_of_statements ── search: runs_within, share_of, charge
//! ```

use std::time::{Duration, Instant};

use super::bench::Place;
use super::fit::ROUNDS_MIN;
use super::run::Run;
use super::session::thread_time;
use super::workload::KeyValueWorkload;

/// Full runs of a search of the built-in workload, or five times as many short ones. With learning they take 75 s of
/// CPU time of an AMD EPYC on two threads (`time flashwise fit sqlite`, as `make run` builds it), and make 119 short
/// runs. A search that the clock had ended after 82 did not have the winner among them: a gain of 36 % in place of
/// 44 %.
const RUNS: f64 = 72.0;
/// The fewest of them: nine confirm, and nobody chooses among fewer than these.
const RUNS_LEAST: f64 = 36.0;
/// Statements of a full run of the built-in workload that [`RUNS`] counts on: those of its default size.
const RUN_STATEMENTS: u64 = 60_000;
/// The share of a budget in time that a full run may take. Nine runs confirm, about as many race, and the rest screens.
const FULL_RUN_SHARE: u32 = 40;

/// Rounds of the built-in workload in a run of which [`RUN_STATEMENTS`] are expected.
fn rounds(work: &KeyValueWorkload) -> u32 {
    let all = u32::try_from(RUN_STATEMENTS / work.statements_per_round().max(1)).unwrap_or(u32::MAX);
    work.rounds.min(all.max(ROUNDS_MIN))
}

/// Time that passed for a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Elapsed {
    /// By the wall clock.
    pub(crate) wall: Duration,
    /// On a processor.
    pub(crate) processor: Duration,
}

/// Measures what passes for the thread that started it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    wall: Instant,
    processor: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { wall: Instant::now(), processor: thread_time() }
    }

    pub(crate) fn elapsed(&self) -> Elapsed {
        Elapsed { wall: self.wall.elapsed(), processor: thread_time().saturating_sub(self.processor) }
    }
}

/// Which of both times is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Wall,
    Processor,
}

impl Measure {
    pub(crate) fn of(self, elapsed: Elapsed) -> Duration {
        match self {
            Self::Wall => elapsed.wall,
            Self::Processor => elapsed.processor,
        }
    }
}

/// How much a search may cost, and how much of that is spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// For the report; also where it is not what ends the search.
    pub(super) time: Duration,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    Wall {
        started: Instant,
    },
    Processor {
        spent: Duration,
    },
    /// Numbers of full runs.
    Runs {
        done: f64,
        all: f64,
    },
}

impl Budget {
    /// Limited by the clock, of which some is spent.
    pub(super) fn wall(time: Duration, spent: Duration) -> Self {
        let now = Instant::now();
        Self { time, limit: Limit::Wall { started: now.checked_sub(spent).unwrap_or(now) } }
    }

    /// Limited by the time on a processor, of which some is spent.
    pub(super) fn processor(time: Duration, spent: Duration) -> Self {
        Self { time, limit: Limit::Processor { spent } }
    }

    /// Limited by the number of runs of the built-in workload, which take about this time: longer ones are fewer.
    pub(super) fn runs(time: Duration, work: &KeyValueWorkload) -> Self {
        let statements = u64::from(rounds(work)) * work.statements_per_round();
        let longer = (statements as f64 / RUN_STATEMENTS as f64).max(1.0);
        Self { time, limit: Limit::Runs { done: 0.0, all: (RUNS / longer).max(RUNS_LEAST) } }
    }

    /// The time that is limited; `None` if it is a number of runs.
    pub(super) fn measure(&self) -> Option<Measure> {
        match self.limit {
            Limit::Wall { .. } => Some(Measure::Wall),
            Limit::Processor { .. } => Some(Measure::Processor),
            Limit::Runs { .. } => None,
        }
    }

    /// The most that a full run may take, where it is limited by a time.
    pub(super) fn full_run(&self) -> Option<(Measure, Duration)> {
        self.measure().map(|measure| (measure, self.time / FULL_RUN_SHARE))
    }

    /// Rounds of the built-in workload that a run does, before it is known how long they take.
    pub(super) fn rounds(&self, work: &KeyValueWorkload) -> u32 {
        if self.measure().is_none() { rounds(work) } else { work.rounds }
    }

    /// The share of what a run did that later ones may do; above 1 if they may do more.
    pub(super) fn share_of_statements(&self, run: &Run) -> f64 {
        let Some((measure, time)) = self.full_run() else { return 1.0 };
        let [all, preparation] = [run.elapsed, run.preparation].map(|elapsed| measure.of(elapsed));
        let [may, did] = [time, all].map(|time| time.saturating_sub(preparation).as_secs_f64());
        may / did.max(1e-3)
    }

    /// The share that is spent; above 1 once there is nothing left.
    pub(super) fn spent(&self) -> f64 {
        let of_time = |spent: Duration| spent.as_secs_f64() / self.time.as_secs_f64().max(1e-3);
        match self.limit {
            Limit::Wall { started } => of_time(started.elapsed()),
            Limit::Processor { spent } => of_time(spent),
            Limit::Runs { done, all } => done / all,
        }
    }

    /// The time that is left; `None` if a number of runs is limited.
    pub(super) fn left(&self) -> Option<Duration> {
        self.measure().map(|_| self.time.mul_f64((1.0 - self.spent()).max(0.0)))
    }

    /// Does not count a time of the clock: that of what is part of each fit, however short.
    pub(super) fn excuse(&mut self, time: Duration) {
        if let Limit::Wall { started } = &mut self.limit {
            *started += time;
        }
    }

    /// Counts runs of a place, which some threads made in this time together.
    pub(super) fn charge(&mut self, place: &Place, runs: usize, processor: Duration, threads: usize) {
        match &mut self.limit {
            Limit::Wall { .. } => {}
            Limit::Processor { spent } => *spent += processor.div_f64(threads.max(1) as f64),
            Limit::Runs { done, .. } => *done += runs as f64 * place.full_runs,
        }
    }

    /// The share that so many runs of a place take on some threads.
    pub(super) fn share_of(&self, place: &Place, runs: usize, threads: usize) -> f64 {
        match self.limit {
            Limit::Runs { all, .. } => runs as f64 * place.full_runs / all,
            _ => runs.div_ceil(threads.max(1)) as f64 * self.share_at_once(place),
        }
    }

    /// How many runs of a place take at most a share.
    pub(super) fn runs_within(&self, share: f64, place: &Place, threads: usize) -> usize {
        // A run that fits by all but a rounding error fits.
        let whole = |runs: f64| (runs + 1e-9).max(0.0) as usize;
        match self.limit {
            Limit::Runs { all, .. } => whole(share * all / place.full_runs),
            _ => match self.share_at_once(place) {
                one if one > 0.0 => whole(share / one).saturating_mul(threads.max(1)),
                _ => usize::MAX,
            },
        }
    }

    /// The share that a run on each thread takes.
    fn share_at_once(&self, place: &Place) -> f64 {
        place.expected.as_secs_f64() / self.time.as_secs_f64().max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::Workload;
    use crate::{DEFAULT_TARGET, Target};

    fn place(expected: Duration, full_runs: f64) -> Place {
        let target = Target::parse(DEFAULT_TARGET).unwrap();
        Place { target, workload: Workload::KeyValue(KeyValueWorkload::QUICK), loaded: None, expected, full_runs }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_number_of_runs_knows_neither_clock_nor_threads() {
        let mut budget = Budget::runs(SECOND, &KeyValueWorkload::QUICK);
        let (full, short) = (place(100 * SECOND, 1.0), place(SECOND, 0.2));
        for threads in [1, 2, 8] {
            assert_eq!(budget.share_of(&full, 9, threads), 9.0 / RUNS);
            assert_eq!(budget.runs_within(0.25, &short, threads), (RUNS / 4.0 * 5.0) as usize);
        }
        budget.charge(&full, 18, Duration::ZERO, 1);
        budget.charge(&short, 90, 90 * SECOND, 2);
        assert_eq!(budget.spent(), 36.0 / RUNS);
        assert_eq!((budget.measure(), budget.full_run()), (None, None));
    }

    #[test]
    fn a_long_workload_has_fewer_rounds_in_a_run_and_fewer_runs_where_its_rounds_are_long() {
        let all = |work: &KeyValueWorkload| match Budget::runs(SECOND, work).limit {
            Limit::Runs { all, .. } => all,
            limit => panic!("{limit:?}"),
        };
        let many = KeyValueWorkload { rounds: 1000, ..KeyValueWorkload::QUICK };
        assert_eq!((rounds(&many), all(&many)), (10, RUNS));
        assert_eq!((rounds(&KeyValueWorkload::FULL), all(&KeyValueWorkload::FULL)), (ROUNDS_MIN, RUNS_LEAST));
        let two = KeyValueWorkload { rounds: 2, ..KeyValueWorkload::FULL };
        assert_eq!(rounds(&two), 2, "never made longer");
        assert_eq!(Budget::wall(SECOND, Duration::ZERO).rounds(&many), 1000, "the clock ends those");
    }

    #[test]
    fn time_on_a_processor_is_shared_by_the_threads_that_run_at_once() {
        let mut budget = Budget::processor(40 * SECOND, 10 * SECOND);
        let full = place(2 * SECOND, 1.0);
        assert_eq!(budget.full_run(), Some((Measure::Processor, SECOND)));
        assert_eq!((budget.spent(), budget.share_of(&full, 3, 2)), (0.25, 0.1));
        assert_eq!((budget.runs_within(0.5, &full, 2), budget.runs_within(0.5, &full, 1)), (20, 10));
        budget.charge(&full, 2, 20 * SECOND, 2);
        assert_eq!(budget.spent(), 0.5);
    }

    #[test]
    fn the_clock_goes_on_by_itself() {
        let mut budget = Budget::wall(1000 * SECOND, 250 * SECOND);
        budget.charge(&place(SECOND, 1.0), 900, 900 * SECOND, 1);
        assert!((0.25..0.5).contains(&budget.spent()), "{}", budget.spent());
    }

    #[test]
    fn a_time_that_is_excused_is_taken_from_the_clock_alone() {
        let mut budget = Budget::wall(1000 * SECOND, 250 * SECOND);
        budget.excuse(200 * SECOND);
        assert!((0.05..0.2).contains(&budget.spent()), "{}", budget.spent());
        for mut other in [Budget::processor(40 * SECOND, 10 * SECOND), Budget::runs(SECOND, &KeyValueWorkload::QUICK)] {
            let spent = other.spent();
            other.excuse(10 * SECOND);
            assert_eq!(other.spent(), spent);
        }
    }

    #[test]
    fn a_stopwatch_tells_waiting_from_working() {
        let stopwatch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(50));
        let elapsed = stopwatch.elapsed();
        assert!(elapsed.wall >= Duration::from_millis(50) && elapsed.processor < elapsed.wall, "{elapsed:?}");
    }
}
