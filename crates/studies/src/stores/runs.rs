//! All runs of a study: repeated with other seeds, interleaved, and kept in a file if one is given ([`Kept`]), so that
//! a later call goes on with them.

use std::collections::BTreeMap;
use std::path::Path;

use flashwise_report::study::{Measured, StudyCell};

use super::case::{Case, Outcome, Side};
use super::{Scale, ours, peers, sqlite};
use crate::kept::Kept;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// What all runs gave.
pub(super) struct Runs {
    /// The outcomes of each case, in the order of the seeds.
    outcomes: BTreeMap<String, Vec<Outcome>>,
    /// Runs of other stores that failed, and why.
    pub(super) failures: Vec<String>,
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

fn open(path: Option<&Path>, scale: &Scale) -> Result<Kept, StudyError> {
    Kept::open(path, &heading(scale), |numbers| Outcome::from_numbers(numbers).is_some())
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
        let kept = open(options.resume.as_deref(), scale)?;
        let seeds: Vec<u64> = (0..scale.runs).map(|n| options.seed.wrapping_add(n)).collect();
        // Seeds outermost: what disturbs the machine for a while disturbs all cases.
        let work: Vec<(&Case, u64)> =
            seeds.iter().flat_map(|&seed| named.iter().map(move |case| (*case, seed))).collect();
        let outcomes = parallel::map("stores", &work, progress, |&(case, seed)| {
            let name = name(case, seed);
            if let Some(outcome) = kept.get(&name).and_then(Outcome::from_numbers) {
                return Ok(Ok(outcome));
            }
            match run(case, scale, options, seed) {
                Ok(outcome) => kept.add(&name, &outcome.numbers()).map(|()| Ok(outcome)),
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
    fn a_file_is_of_one_scale_and_its_lines_are_outcomes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs");
        let kept = open(Some(&path), &SCALE).unwrap();
        kept.add("a, seed 1", &outcome(1.0).numbers()).unwrap();
        drop(kept);
        let error = open(Some(&path), &Scale { keys: 11, ..SCALE }).err().unwrap().to_string();
        assert!(error.contains("11 keys"), "{error}");
        let kept = open(Some(&path), &SCALE).unwrap();
        assert_eq!(kept.get("a, seed 1").and_then(Outcome::from_numbers), Some(outcome(1.0)));
        kept.add("b, seed 1", &[1.0]).unwrap();
        drop(kept);
        assert!(open(Some(&path), &SCALE).is_err());
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
