//! All runs of a study: repeated with other seeds, interleaved, and kept in a file if one is given, so that a later
//! call goes on with them.
//!
//! ```text
//!   flashwise-study-stores VERSION, KEYS keys, UPDATES updates, SINGLE single updates   a file of other runs is refused
//!   CASE, seed N ⇥ number ⇥ number …                                                    a line a finished run
//! ```
//!
//! A line is written at once when its run is done. A run that was cut off leaves no whole line, and is run again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use flashwise_block::ResultsFile;
use flashwise_report::study::{Measured, StudyCell};

use super::case::{Case, Outcome, Side};
use super::{Scale, ours, peers, sqlite};
use crate::{Progress, StudyError, StudyOptions, parallel};

/// What all runs gave.
pub(super) struct Runs {
    /// The outcomes of each case, in the order of the seeds.
    outcomes: BTreeMap<String, Vec<Outcome>>,
    /// Runs of other stores that failed, and why.
    pub(super) failures: Vec<String>,
}

/// A file with finished runs.
struct Kept {
    file: Option<Mutex<ResultsFile>>,
    finished: BTreeMap<String, Outcome>,
}

fn heading(scale: &Scale) -> String {
    format!(
        "flashwise-study-stores {}, {} keys, {} updates, {} single updates",
        env!("CARGO_PKG_VERSION"),
        scale.keys,
        scale.updates,
        scale.single_updates
    )
}

fn name(case: &Case, seed: u64) -> String {
    format!("{case}, seed {seed}")
}

impl Kept {
    fn none() -> Self {
        Self { file: None, finished: BTreeMap::new() }
    }

    fn open(path: &Path, scale: &Scale) -> Result<Self, StudyError> {
        let refused = |why: String| StudyError::Resume { path: path.to_owned(), why };
        let (heading, mut finished, mut has_heading) = (heading(scale), BTreeMap::new(), false);
        let other = || format!("it does not start with '{heading}'; name a new file");
        let opened = ResultsFile::open(path, |line| {
            if has_heading {
                let (name, outcome) =
                    parsed(line).ok_or_else(|| Refused(format!("'{line}' is no finished run; name a new file")))?;
                finished.insert(name, outcome);
            }
            has_heading = has_heading || line == heading;
            if has_heading { Ok(()) } else { Err(Refused(other())) }
        });
        let mut file = opened.map_err(|Refused(why)| refused(why))?;
        if !has_heading {
            if !file.is_empty() {
                return Err(refused(other()));
            }
            file.add(&heading).map_err(|error| refused(error.to_string()))?;
        }
        Ok(Self { file: Some(Mutex::new(file)), finished })
    }

    fn add(&self, name: &str, outcome: &Outcome) -> Result<(), StudyError> {
        let Some(file) = &self.file else { return Ok(()) };
        let numbers: String = outcome.numbers().iter().map(|number| format!("\t{number}")).collect();
        let mut file = file.lock().map_err(|_| StudyError::Lost)?;
        Ok(file.add(&format!("{name}{numbers}"))?)
    }
}

/// Why a file is not read.
struct Refused(String);

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

fn parsed(line: &str) -> Option<(String, Outcome)> {
    let mut words = line.split('\t');
    let name = words.next()?.to_owned();
    let numbers: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some((name, Outcome::from_numbers(&numbers)?))
}

fn run(case: &Case, scale: &Scale, options: &StudyOptions, seed: u64) -> Result<Outcome, StudyError> {
    match &case.side {
        Side::Ours(engine) => ours::run(case, *engine, scale, seed),
        Side::Sqlite => sqlite::run(case, scale, options, seed),
        Side::Peer(name) => peers::run(case, name, scale, options, seed),
    }
}

impl Runs {
    /// Runs all cases.
    pub(super) fn all(
        cases: &[Case],
        scale: &Scale,
        options: &StudyOptions,
        progress: Progress<'_>,
    ) -> Result<Self, StudyError> {
        let mut named: Vec<&Case> = Vec::new();
        for case in cases {
            if !named.contains(&case) {
                named.push(case);
            }
        }
        let kept = options.resume.as_deref().map_or_else(|| Ok(Kept::none()), |path| Kept::open(path, scale))?;
        let seeds: Vec<u64> = (0..scale.runs).map(|n| options.seed.wrapping_add(n)).collect();
        // Seeds outermost: what disturbs the machine for a while disturbs all cases.
        let work: Vec<(&Case, u64)> =
            seeds.iter().flat_map(|&seed| named.iter().map(move |case| (*case, seed))).collect();
        let outcomes = parallel::map("stores", &work, progress, |&(case, seed)| {
            let name = name(case, seed);
            if let Some(outcome) = kept.finished.get(&name) {
                return Ok(Ok(*outcome));
            }
            match run(case, scale, options, seed) {
                Ok(outcome) => kept.add(&name, &outcome).map(|()| Ok(outcome)),
                // Another store that fails is no reason to stop; a later call tries it again.
                Err(StudyError::Peers(why)) => Ok(Err(format!("{name}: {why}"))),
                Err(error) => Err(error),
            }
        })?;
        let mut runs = Self { outcomes: BTreeMap::new(), failures: Vec::new() };
        for ((case, _), outcome) in work.iter().zip(outcomes) {
            match outcome {
                Ok(outcome) => runs.outcomes.entry(case.to_string()).or_default().push(outcome),
                Err(why) => runs.failures.push(why),
            }
        }
        Ok(runs)
    }

    /// The median of something of a case's runs, and the range of all of them; `None` where the case was not run.
    ///
    /// Of five runs the range covers the median with 94 %.
    pub(super) fn median(&self, case: &Case, of: impl Fn(&Outcome) -> f64) -> Option<Measured> {
        let mut values: Vec<f64> = self.outcomes.get(&case.to_string())?.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let value = match values.len() % 2 {
            1 => values[half],
            _ => (values[half - 1] + values[half]) / 2.0,
        };
        Some(Measured { value, low, high })
    }

    /// The same as a cell.
    pub(super) fn cell(&self, case: &Case, of: impl Fn(&Outcome) -> f64) -> StudyCell {
        self.median(case, of).map_or_else(|| StudyCell::text("–"), StudyCell::from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Phase;
    use super::*;

    const SCALE: Scale = Scale { keys: 10, updates: 10, single_updates: 10, runs: 1 };

    fn outcome(n: f64) -> Outcome {
        Outcome { load: Phase { user: n, ..Phase::default() }, space: 1.0 / 3.0, ..Outcome::default() }
    }

    #[test]
    fn finished_runs_are_found_again_and_one_that_was_cut_off_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs");
        let kept = Kept::open(&path, &SCALE).unwrap();
        kept.add("a, seed 1", &outcome(1.0)).unwrap();
        kept.add("b, seed 1", &outcome(2.0)).unwrap();
        drop(kept);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let kept = Kept::open(&path, &SCALE).unwrap();
        let error = Kept::open(&path, &SCALE).err().unwrap().to_string();
        assert!(error.contains("another run is adding to it"), "{error}");
        assert_eq!(kept.finished, [("a, seed 1".to_owned(), outcome(1.0))].into());
        drop(kept);
        let kept = Kept::open(&path, &SCALE).unwrap();
        kept.add("b, seed 1", &outcome(2.0)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_file_of_other_runs_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs");
        Kept::open(&path, &SCALE).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let error = Kept::open(&path, &Scale { keys: 11, ..SCALE }).err().unwrap().to_string();
        assert!(error.contains("11 keys") && error.contains("name a new file"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::write(&path, format!("{text}nonsense\n")).unwrap();
        assert!(Kept::open(&path, &SCALE).is_err());
        let error = Kept::open("/dev/zero".as_ref(), &SCALE).err().unwrap().to_string();
        assert!(error.contains("it is a character device"), "{error}");
    }

    #[test]
    fn a_median_has_the_range_of_all_runs() {
        let case = Case::base(Side::Sqlite);
        let runs = |values: &[f64]| {
            let outcomes = [(case.to_string(), values.iter().map(|&n| outcome(n)).collect())].into();
            Runs { outcomes, failures: Vec::new() }
        };
        let of = |outcome: &Outcome| outcome.load.user;
        let median = runs(&[3.0, 1.0, 2.0]).median(&case, of).unwrap();
        assert_eq!(median, Measured { value: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(runs(&[4.0, 1.0]).median(&case, of).unwrap().value, 2.5);
        assert_eq!(runs(&[1.0]).median(&Case { commit: 1, ..case.clone() }, of), None);
    }
}
