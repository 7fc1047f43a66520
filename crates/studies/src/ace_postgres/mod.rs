//! ACE inside an unmodified PostgreSQL: the extension `postgres/` beside default and tuned settings, and beside the
//! paper's own scheme.
//!
//! ```text
//!   sessions: MS, WIS, RIS, MU ─▶ PostgreSQL with flashwise_ace, small pool ─▶ ext4 ─▶ flashwise attach ─▶ a published drive
//!     slices: default, off, tuned, extension, interleaved          direct or buffered I/O
//!   the same accesses ─▶ pool library in virtual time, classic and ACE in place ─▶ the same drive
//! ```
//!
//! - [`bench`]: a server, and one slice of work;
//! - [`sections`]: tables and claims.
//!
//! A part that is finished is kept in the file of `--resume`: all slices of a case.
//!
//! Source: T. I. Papon, M. Athanassoulis, ICDE 2023.

mod bench;
mod sections;

use std::time::Duration;

use flashwise_report::study::Measured;
use flashwise_tune::TuneError;

use crate::ace::{self, AccessPattern};
use crate::attached::{Cores, load_average};
use crate::kept::Kept;
use crate::statistics::mean;
use crate::{Findings, Progress, StudyError, StudyOptions};
use bench::{Bench, Settings, Slice};

/// A drive of the study.
#[derive(Debug, PartialEq)]
struct Drive {
    name: &'static str,
    preset: &'static str,
    /// Pages of 8 KiB that it writes at once.
    k_w: u32,
    /// One write of such a page to the idle drive.
    write_us: u32,
}

/// `flashwise simulate PRESET --rw randwrite --bs 8k --size 64m --requests 2000`, at depths of 1 to 16, gives the
/// times; `k_w` is where it stops to gain, and 8 for the last, as in the prototype.
static DRIVES: [Drive; 3] = [
    Drive { name: "P4510", preset: "intel-p4510", k_w: 4, write_us: 39 },
    Drive { name: "S4610", preset: "intel-s4610", k_w: 6, write_us: 130 },
    Drive { name: "virtual", preset: "virtual-ssd", k_w: 8, write_us: 790 },
];

/// What is compared: one server, four settings.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    drive: &'static Drive,
    pattern: AccessPattern,
    sessions: u32,
    is_direct: bool,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let io = if self.is_direct { "direct" } else { "buffered" };
        write!(f, "{}, {}, {} sessions, {io}", self.drive.name, self.pattern.name, self.sessions)
    }
}

/// How much is run.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Pages of the table, with a row each, and buffers of the pool: 6 % as in the paper.
    pages: u32,
    buffers: u32,
    /// Seconds of the machine for one of the drive's.
    time_scale: f64,
    /// Of each settings, on the machine's clock.
    slice: Duration,
    rounds: u32,
    /// About how long all of it takes on two idle processors.
    duration: &'static str,
}

impl Scale {
    const fn of(options: &StudyOptions) -> Self {
        let quick = Self {
            pages: 8_192,
            buffers: 512,
            time_scale: 20.0,
            slice: Duration::from_millis(1_500),
            rounds: 5,
            duration: "two minutes",
        };
        match options.quick {
            true => quick,
            false => Self { slice: Duration::from_secs(5), rounds: 10, duration: "an hour and a half", ..quick },
        }
    }
}

/// The cases of a form; without direct I/O where the server has none.
fn cases(is_quick: bool, has_direct: bool) -> Vec<Case> {
    let [ms, wis, ris, mu] = ace::patterns();
    let [p4510, s4610, virtual_ssd] = &DRIVES;
    let case =
        |drive, pattern: &AccessPattern, sessions, is_direct| Case { drive, pattern: *pattern, sessions, is_direct };
    let mut cases = match is_quick {
        true => vec![case(virtual_ssd, &ms, 4, true), case(p4510, &ms, 4, false)],
        false => {
            let mut cases = Vec::new();
            for drive in [p4510, s4610, virtual_ssd] {
                cases.extend([&ms, &wis, &ris, &mu].map(|pattern| case(drive, pattern, 4, true)));
                // 16 sessions saturate the drive.
                cases.extend([1, 16].map(|sessions| case(drive, &ms, sessions, true)));
            }
            cases.extend([p4510, virtual_ssd].map(|drive| case(drive, &ms, 4, false)));
            cases
        }
    };
    cases.retain(|case| has_direct || !case.is_direct);
    cases
}

/// A case and its slices: by round, in the order of [`Settings::ALL`].
struct Outcome {
    case: Case,
    rounds: Vec<[Slice; Settings::ALL.len()]>,
    /// What the paper's scheme gains in the pool library's simulator, per cent.
    in_place: Measured,
}

impl Outcome {
    fn mean(&self, settings: Settings, of: impl Fn(&Slice) -> f64) -> Measured {
        mean(&self.rounds.iter().map(|round| of(&round[settings as usize])).collect::<Vec<_>>())
    }

    /// Transactions a second beyond those with other settings, round by round, per cent.
    fn gain(&self, settings: Settings, over: Settings) -> Measured {
        let gain = |round: &[Slice; Settings::ALL.len()]| {
            100.0 * (round[settings as usize].rate / round[over as usize].rate - 1.0)
        };
        mean(&self.rounds.iter().map(gain).collect::<Vec<_>>())
    }
}

fn numbers(rounds: &[[Slice; Settings::ALL.len()]]) -> Vec<f64> {
    rounds.iter().flatten().flat_map(|slice| [slice.rate, slice.write_share]).collect()
}

fn rounds_of(numbers: &[f64]) -> Vec<[Slice; Settings::ALL.len()]> {
    let (slices, _) = numbers.as_chunks::<2>();
    let slices: Vec<Slice> = slices.iter().map(|&[rate, write_share]| Slice { rate, write_share }).collect();
    slices.as_chunks().0.to_vec()
}

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let scale = Scale::of(options);
    let (version, has_direct) = match bench::version(options.programs.as_deref()) {
        Err(StudyError::Database(TuneError::Missing(_))) => {
            return Err(StudyError::Missing(
                "no PostgreSQL server is installed: name the folder of its programs with --programs".to_owned(),
            ));
        }
        found => found?,
    };
    let load = load_average();
    let cases = cases(options.quick, has_direct);
    let heading = format!(
        "flashwise-study-ace-postgres {}, {version}, {} pages, {} rounds of {} ms",
        env!("CARGO_PKG_VERSION"),
        scale.pages,
        scale.rounds,
        scale.slice.as_millis()
    );
    let length = 2 * Settings::ALL.len() * scale.rounds as usize;
    let kept = Kept::open(options.resume.as_deref(), &heading, |numbers| numbers.len() == length)?;
    let mut outcomes = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let name = format!("{case}, seed {}", options.seed);
        progress(&format!("{case} (about {} in all)", scale.duration), at as f64 / cases.len() as f64);
        let rounds = match kept.get(&name) {
            Some(numbers) => rounds_of(numbers),
            None => {
                let rounds = slices(case, &scale, options)?;
                kept.add(&name, &numbers(&rounds))?;
                rounds
            }
        };
        let in_place = ace::gain_in_place(&case.pattern, case.drive.preset, case.drive.k_w as usize, options)?;
        outcomes.push(Outcome { case: case.clone(), rounds, in_place });
    }
    let mut limits = vec![
        format!(
            "{version}. The drive is slowed down {} times, and the server's timers with it; the machine's load before \
             was {load}. A machine that is slower than that narrows all differences.",
            scale.time_scale
        ),
        "The pool's simulator has one thread and waits for each batch; the server has several sessions.".to_owned(),
        "TPC-C is not among the workloads.".to_owned(),
    ];
    if !has_direct {
        limits.push(
            "This server has no direct I/O: PostgreSQL 16 and later do. Name another one with --programs.".to_owned(),
        );
    }
    Ok(Findings { claims: sections::claims(&outcomes), sections: sections::all(&outcomes, &scale), limits })
}

/// All slices of a case.
fn slices(case: &Case, scale: &Scale, options: &StudyOptions) -> Result<Vec<[Slice; Settings::ALL.len()]>, StudyError> {
    let cores = Cores::share()?;
    let mut bench = Bench::start(case, scale, options, &cores)?;
    // Until the pool is full.
    bench.slice(Settings::Default, options.seed)?;
    let mut rounds = Vec::new();
    for round in 0..scale.rounds {
        let mut slices = [Slice::default(); Settings::ALL.len()];
        for turn in 0..Settings::ALL.len() {
            // Another one is first in each round: drift is no gain.
            let settings = Settings::ALL[(turn + round as usize) % Settings::ALL.len()];
            let seed = options.seed.wrapping_add(1 + u64::from(round));
            slices[settings as usize] = bench.slice(settings, seed)?;
        }
        rounds.push(slices);
    }
    Ok(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_read_back_from_their_numbers() {
        let slice = |n: u32| Slice { rate: f64::from(n), write_share: 0.5 };
        let rounds: Vec<_> = (0..3).map(|round| [0, 1, 2, 3].map(|n| slice(4 * round + n))).collect();
        assert_eq!(rounds_of(&numbers(&rounds)), rounds);
    }

    #[test]
    fn gains_compare_the_slices_of_a_round() {
        let slices = |default: f64| [1.0, 1.0, 1.2, 1.5].map(|times| Slice { rate: default * times, write_share: 0.0 });
        let case = cases(true, true).remove(0);
        let outcome = Outcome { case, rounds: vec![slices(10.0), slices(20.0)], in_place: Measured::default() };
        let gain = outcome.gain(Settings::Extension, Settings::Tuned);
        assert!((gain.value - 25.0).abs() < 1e-9 && gain.high - gain.low < 1e-9, "{gain:?}");
        assert!((outcome.gain(Settings::Extension, Settings::Default).value - 50.0).abs() < 1e-9);
    }

    #[test]
    fn without_direct_io_buffered_cases_are_left() {
        assert!(cases(true, false).iter().chain(&cases(false, false)).all(|case| !case.is_direct));
        assert!(!cases(true, false).is_empty());
        let names: std::collections::BTreeSet<String> = cases(false, true).iter().map(Case::to_string).collect();
        assert_eq!(names.len(), cases(false, true).len());
    }
}
