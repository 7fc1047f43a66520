//! What is recommended, as a client sees it: on the target's drive, attached to this machine, in a mounted file system.
//!
//! ```text
//!   the caller attaches the drive, some times as slow ──▶ default, checklist, best, interleaved, in a directory of it
//!     ──▶ seconds of a machine whose drive is as fast as the original ──▶ gains with intervals
//! ```
//!
//! Serving a drive takes another process, so the caller does that ([`AttachDrive`]). The drive is slowed down, so that
//! what its way to the client adds to each request counts little. A run then took what it waited, divided by the
//! slowdown, and the time of SQLite's own code on a processor, which is not slower. That time is the one of a simulated
//! run: between long waits the same code takes up to twice as long (0.09 s of 1,500 statements on this machine's own
//! disk, 0.20 s on a drive 20 times as slow), since other work has had the caches. Where the kernel reads ahead, a real
//! machine computes meanwhile, which this sum does not know: gains of scans come out too small, never too large. So
//! where SQLite computes for most of the time, the drive keeps its own speed, and the clock counts.
//!
//! It is done on request, and unasked where the target can be attached and the search leaves the time: what it takes is
//! known beforehand from the simulated runs.

use std::time::{Duration, Instant};

use flashwise_block::{BlockError, ByteSize, Progress};

use super::bench::{Place, SqliteBench, config};
use super::fit::FitOptions;
use super::objective::Objective;
use super::run::{Run, run};
use super::settings::Settings;
use crate::search::{Interval, WORTH_IT, confident};
use crate::{AttachDrive, Attaching, Gain, Host, RunMeasurement, Seen, Target, TuneError};

/// How much slower the drive is attached, and runs of each configuration: at least, and where they scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    slower: u32,
    runs: usize,
    runs_most: usize,
}

/// Requests of an attached drive take 40 to 270 µs longer than the drive itself: at ten times the time of a read of
/// 80 µs that is 5 to 30 %, at twenty times 3 to 17 %. An interval of two pairs is six times as wide as they scatter,
/// one of three too wide for a gain of 1.5 where runs scatter by a twentieth, one of twelve where they do by a third.
const SLOWED: Pace = Pace { slower: 20, runs: 3, runs_most: 12 };
/// Runs of 0.3 s scatter by a tenth (`scripts/fit-against-grid`), so that the median of fifteen is within 4 %.
const OWN_SPEED: Pace = Pace { slower: 1, runs: 15, runs_most: 15 };
/// The part of a default run that SQLite computes from which on the drive keeps its own speed. 54 MiB of analytics
/// with scans, 83 % computing, gain ×1.19 in the simulation and ×1.22 by the clock at the drive's own speed, and seem
/// to lose a tenth by the sum on one twenty times as slow. By that sum a shop, 2 % computing, is seen within 7 % of its
/// promise.
const MOSTLY_COMPUTING: f64 = 0.5;
/// How many times as long a request takes on its way to a drive at its own speed and back, at most: 270 µs beside 80.
const LONGEST_WAY: u32 = 4;
/// Configurations: default, checklist, best.
const ARMS: usize = 3;
/// Attaching a drive with a file system on it: 2 to 4 s on two cores (`time flashwise attach samsung-960-evo --mount
/// DIR --time-scale 20 -- true`).
const ATTACHING: Duration = Duration::from_secs(10);
/// What a drive writes at least while a database is copied to it before a run, bytes a second of its own time: a new
/// file system and 64 MiB took 585 ms on a Micron M500, 181 ms on a Samsung 960 EVO (`flashwise attach micron-m500
/// --mount DIR --time-scale 20 --fs ext4 -- dd bs=1M count=64 conv=fsync …`).
const COPIED_PER_S: f64 = 100e6;
/// What is written first, as on the simulated machine: the file system is one that is in use.
const EARLIER: ByteSize = ByteSize::mib(16);

/// Refuses what cannot be attached, before anything is measured.
pub(super) fn check(target: &Target, objectives: &[Objective]) -> Result<(), TuneError> {
    let refused = |why: &str| Err(TuneError::Options(format!("--attached: {why}")));
    match target {
        Target::Simulated { host: Host::Linux { .. }, .. } if objectives == [Objective::Throughput] => Ok(()),
        Target::Simulated { host: Host::Linux { .. }, .. } => refused("only throughput is measured there"),
        Target::Simulated { .. } => refused("the bare drive has no file system to mount; leave out --file-system none"),
        Target::Volume { .. } => refused("the target is a volume; only drives are attached"),
        Target::Directory(_) | Target::Raw(_) => {
            refused("the target is no simulated drive: what is measured there is what a client sees")
        }
    }
}

/// What was seen, or else why not where that is worth a note.
type SeenOrNot = (Option<Seen>, Option<String>);

/// Measures the three configurations on the attached drive where that is requested, or where the drive can be attached
/// and there is time.
pub(super) fn see_if_wanted(
    options: &FitOptions,
    bench: &mut SqliteBench<'_>,
    arms: [(Settings, &Run); ARMS],
) -> Result<SeenOrNot, TuneError> {
    let see = |attach: &dyn AttachDrive, bench: &mut SqliteBench<'_>, time: Option<Duration>| {
        self::see(attach, &bench.full, arms, options.seed, time, &mut *bench.progress)
    };
    let attach = match &options.attach {
        Attaching::Never => return Ok((None, None)),
        Attaching::Always(attach) => return Ok((Some(see(attach.as_ref(), bench, None)?), None)),
        Attaching::IfItCan(attach) => attach.as_ref(),
    };
    let needed = expected(arms.map(|(_, run)| run));
    let left = bench.budget.left();
    if left.is_none_or(|left| left < needed) || check(&options.target, &options.objectives).is_err() {
        return Ok((None, None));
    }
    match see(attach, bench, left) {
        Ok(seen) => Ok((Some(seen), None)),
        Err(stopped) if stopped.is_interrupt() => Err(stopped),
        // The search is done, and what it found stands.
        Err(why) => Ok((None, Some(format!("What a client sees was not measured: {why}.")))),
    }
}

/// How long it takes to measure configurations that take this in simulated runs.
fn expected(simulated: [&Run; ARMS]) -> Duration {
    let Pace { slower, runs, .. } = Pace::of_run(simulated[0]);
    let each = simulated.map(|run| {
        let RunMeasurement { cpu_time_ns, database_bytes, .. } = run.measurement;
        seconds_attached(run.time_ns() / 1e9, cpu_time_ns as f64 / 1e9, database_bytes, slower)
    });
    ATTACHING + Duration::from_secs_f64(each.iter().sum::<f64>() * runs as f64)
}

impl Pace {
    /// For a workload, by its simulated run with the default settings.
    fn of_run(default: &Run) -> Self {
        Self::of(default.measurement.cpu_time_ns as f64, default.time_ns())
    }

    fn of(computing_ns: f64, all_ns: f64) -> Self {
        if computing_ns > MOSTLY_COMPUTING * all_ns { OWN_SPEED } else { SLOWED }
    }

    /// Whether another run of each is made, after these gains of the best over the default, as logarithms: until a gain
    /// of the promised size could not be missed. How far runs scatter says nothing of where they come to, so that a
    /// gain becomes no more likely to be seen where there is none (Stein, as in the confirmation).
    fn goes_on(self, gains: &[f64], promised: f64, has_time: bool) -> bool {
        let is_wide = || {
            let Interval { ratio, low, .. } = confident(gains, 1);
            (ratio / low).ln() >= promised.max(WORTH_IT.ln())
        };
        gains.len() < self.runs || (gains.len() < self.runs_most && has_time && is_wide())
    }
}

/// Seconds that a run and the copy of its database before it take there.
fn seconds_attached(drive_s: f64, processor_s: f64, database_bytes: u64, slower: u32) -> f64 {
    (drive_s + database_bytes as f64 / COPIED_PER_S) * f64::from(slower.max(LONGEST_WAY)) + processor_s
}

/// Measures the default, the checklist and the best configuration on the attached drive of a place's target; with each
/// its simulated run. Runs that scatter are repeated as far as there is time, any if none is given.
fn see(
    attach: &dyn AttachDrive,
    full: &Place,
    arms: [(Settings, &Run); ARMS],
    seed: u64,
    time: Option<Duration>,
    progress: &mut dyn Progress,
) -> Result<Seen, TuneError> {
    let Target::Simulated { config: drive, host: Host::Linux { kernel, .. }, .. } = &full.target else {
        return Err(TuneError::Options("--attached: the target is no drive with a file system".to_owned()));
    };
    let file_system = kernel.file_system.name();
    let began = Instant::now();
    let has_time = || time.is_none_or(|time| began.elapsed() < time);
    progress.advance("attaching the drive", 0.0)?;
    let pace = Pace::of_run(arms[0].1);
    let attached = attach.attach(drive, pace.slower, file_system)?;
    write_earlier(&attached.directory())?;
    let target = Target::Directory(attached.directory());
    let stock = arms[0].0;
    let promised = (arms[0].1.time_ns() / arms[2].1.time_ns()).ln();
    // Logarithms of seconds, by run and arm.
    let mut logs: Vec<[f64; ARMS]> = Vec::with_capacity(pace.runs);
    let pairs = |logs: &[[f64; ARMS]], from: usize, to: usize| -> Vec<f64> {
        logs.iter().map(|of_run| of_run[from] - of_run[to]).collect()
    };
    while pace.goes_on(&pairs(&logs, 0, 2), promised, has_time()) {
        let n = logs.len();
        let mut of_run = [0.0; ARMS];
        for turn in 0..ARMS {
            // Each configuration is first, second and third once.
            let arm = (turn + n) % ARMS;
            let mut shown = Shown { progress: &mut *progress, pace, done: n * ARMS + turn };
            let (settings, simulated) = arms[arm];
            let config = config(&stock, &settings);
            let run = run(&target, &config, full.work(), seed + n as u64, None, &mut shown)?;
            of_run[arm] = seconds(&run, simulated, pace.slower).ln();
        }
        logs.push(of_run);
    }
    let of = |from: usize, to: usize| confident(&pairs(&logs, from, to), 1);
    let gain = |from: &str, to: &str, Interval { ratio, low, high }: Interval| Gain {
        metric: Objective::Throughput.metric().to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        ratio,
        low,
        high: high.min(f64::MAX),
    };
    Ok(Seen {
        file_system: file_system.to_owned(),
        slower: pace.slower,
        runs: logs.len(),
        gains: vec![
            gain("default", "best", of(0, 2)),
            gain("default", "checklist", of(0, 1)),
            gain("checklist", "best", of(1, 2)),
        ],
        was_late: attached.was_late(),
    })
}

/// Seconds of a machine whose drive is as fast as the original.
fn seconds(run: &Run, simulated: &Run, slower: u32) -> f64 {
    if slower == OWN_SPEED.slower {
        return (run.time_ns() / 1e9).max(1e-9);
    }
    let waited = (run.time_ns() / 1e9 - run.processor.as_secs_f64()).max(0.0);
    // Without any time there is no logarithm.
    (waited / f64::from(slower) + simulated.measurement.cpu_time_ns as f64 / 1e9).max(1e-9)
}

/// Writes a file and syncs it.
#[allow(clippy::disallowed_methods, reason = "a file of a drive that is gone at the end")]
fn write_earlier(directory: &std::path::Path) -> Result<(), TuneError> {
    use std::io::Write;
    let path = directory.join("earlier");
    let failed = |e: &std::io::Error| TuneError::file(&path, e);
    let mut file = std::fs::File::create_new(&path).map_err(|e| failed(&e))?;
    let block = vec![0; 1 << 20];
    for _ in 0..EARLIER.bytes() / block.len() as u64 {
        file.write_all(&block).map_err(|e| failed(&e))?;
    }
    file.sync_all().map_err(|e| failed(&e))
}

/// Progress in runs.
struct Shown<'a> {
    progress: &'a mut dyn Progress,
    pace: Pace,
    done: usize,
}

impl Progress for Shown<'_> {
    fn advance(&mut self, _stage: &str, _fraction: f64) -> Result<(), BlockError> {
        let Pace { slower, runs, .. } = self.pace;
        let all = (ARMS * runs).max((self.done / ARMS + 1) * ARMS);
        let slow = if slower == 1 { String::new() } else { format!(", {slower} times as slow") };
        let stage = format!("on the attached drive{slow}, run {} of {all}", self.done + 1);
        self.progress.advance(&stage, self.done as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mostly_computes_is_seen_on_a_drive_at_its_own_speed() {
        assert_eq!([Pace::of(2e8, 2.4e8), Pace::of(3e6, 1.4e8)], [OWN_SPEED, SLOWED]);
    }

    #[test]
    fn runs_that_scatter_are_repeated_until_a_gain_of_the_promised_size_cannot_be_missed() {
        let goes_on = |gains: &[f64], promised: f64| SLOWED.goes_on(gains, promised.ln(), true);
        assert!(goes_on(&[0.7, 0.7], 2.0), "three at least");
        // Student's t is 9.925 for three, and 4.604 for five: they may scatter by 0.12 and by 0.34.
        let [near, far] = [[0.6, 0.7, 0.8], [0.5, 0.7, 0.9]];
        assert!(!goes_on(&near, 2.0) && goes_on(&far, 2.0) && goes_on(&near, 1.5));
        assert!(!goes_on(&[0.5, 0.6, 0.7, 0.8, 0.9], 2.0));
        for gains in [&near[..], &far] {
            let elsewhere: Vec<f64> = gains.iter().map(|gain| gain - 0.7).collect();
            assert_eq!(goes_on(gains, 2.0), goes_on(&elsewhere, 2.0), "their scatter alone decides");
        }
        assert!(!SLOWED.goes_on(&far, 2_f64.ln(), false), "as far as there is time");
        assert!(!goes_on(&[0.0, 9.0].repeat(6), 2.0), "twelve at most");
    }

    #[test]
    fn the_copies_of_a_large_database_count_as_the_drive_is_slow_for_them_too() {
        assert_eq!(seconds_attached(2.0, 0.5, 0, SLOWED.slower), 40.5);
        let copied = seconds_attached(0.0, 0.0, 1_000_000_000, SLOWED.slower);
        assert!((copied - 200.0).abs() < 1e-9, "{copied}");
        assert_eq!(seconds_attached(2.0, 0.5, 0, OWN_SPEED.slower), 8.5, "the way there and back");
    }
}
